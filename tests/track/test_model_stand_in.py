"""Templates of data streams on nodes without any: what stays, and the time stamp that nobody maps."""

from typing import Any

import pytest

from benchctl.track.model import Template, as_plain_template

STAMPED = {"mappings": {"properties": {"@timestamp": {"type": "date", "format": "epoch_second"}}}}


def test_a_template_of_plain_indices_is_left_alone():
    body = {"index_patterns": ["logs-*"], "template": {"settings": {"a": 1}}}
    assert as_plain_template(body, ()) == body


def test_without_its_key_a_template_makes_plain_indices_with_a_time_stamp():
    body = {
        "index_patterns": ["logs-*"],
        "data_stream": {},
        "priority": 9,
        "template": {"settings": {"a": 1}, "mappings": {"dynamic": "strict", "properties": {"door": {}}}},
    }
    before = repr(body)
    assert as_plain_template(body, ()) == {
        "index_patterns": ["logs-*"],
        "priority": 9,
        "template": {
            "settings": {"a": 1},
            "mappings": {"dynamic": "strict", "properties": {"door": {}, "@timestamp": {"type": "date"}}},
        },
    }
    assert repr(body) == before


@pytest.mark.parametrize(
    ("stream", "field"),
    [({}, "@timestamp"), ({"timestamp_field": {"name": "at"}}, "at"), (None, "@timestamp")],
)
def test_the_time_stamp_is_the_one_that_the_template_names(stream: Any, field: str):
    made = as_plain_template({"index_patterns": ["x"], "data_stream": stream}, ())
    assert made["template"]["mappings"]["properties"] == {field: {"type": "date"}}


def test_a_time_stamp_that_is_mapped_stays_as_it_is_mapped():
    own = {"index_patterns": ["x"], "data_stream": {}, "template": STAMPED}
    assert as_plain_template(own, ())["template"] == STAMPED
    composed = {"index_patterns": ["x"], "data_stream": {}, "composed_of": ["stamp"]}
    parts = (Template("stamp", "component", {"template": STAMPED}), Template("other", "component", {}))
    assert "template" not in as_plain_template(composed, parts)
    others = (Template("unused", "component", {"template": STAMPED}),)
    assert "template" in as_plain_template(composed, others)
