"""Composites as tracks write them: what hangs on what, and mistakes that are found before any node starts."""

import json
from typing import Any

import msgspec

from benchctl.track.operations.catalogue import Composite, OpenPointInTime, Stream, decode_operation, parts_of
from benchctl.track.operations.search import Search
from golden import Cases

OPEN = {"operation-type": "open-point-in-time", "name": "point"}
SEARCH = {"operation-type": "search", "with-point-in-time-from": "point"}


def composite(*requests: Any, **raw: Any) -> Any:
    return decode_operation({"name": "x", "operation-type": "composite", "requests": list(requests), **raw})


def test_operations_within_a_composite_are_called_by_their_types_unless_they_have_names():
    found = composite(OPEN, {"stream": [SEARCH, {"stream": [SEARCH]}]})
    assert isinstance(found, Composite)
    assert [step.name for step in parts_of(found)] == ["point", "search", "search"]
    kinds = [type(step) for step in found.requests]
    assert kinds == [OpenPointInTime, Stream]
    assert isinstance(found.requests[1], Stream)
    assert isinstance(found.requests[1].stream[0], Search)


def test_a_composite_within_a_composite_shares_what_is_opened_outside_of_it():
    inner = {"operation-type": "composite", "requests": [{"stream": [SEARCH]}, {"stream": [SEARCH]}]}
    found = composite({"stream": [OPEN, inner]}, SEARCH)
    assert [step.name for step in parts_of(found)] == ["point", "search", "search", "search"]


def test_a_composite_is_encoded_as_it_was_read():
    inner = {"operation-type": "composite", "requests": [SEARCH], "max-connections": 2}
    found = composite(OPEN, {"stream": [SEARCH, inner]}, **{"max-connections": "3"})
    assert found.max_connections == 3
    assert decode_operation(msgspec.json.decode(msgspec.json.encode(found))) == found


def test_a_mistake_in_a_composite_is_found_when_it_is_read(cases: Cases):
    cases("composite", lambda requests: composite(*json.loads(requests)))


def test_what_hangs_on_others_makes_no_sense_alone(cases: Cases):
    cases("alone", lambda raw: decode_operation({"name": "x", **json.loads(raw)}))


def test_all_points_in_time_can_be_closed_alone():
    assert decode_operation({"name": "x", "operation-type": "delete-point-in-time"}).unit == "ops"
