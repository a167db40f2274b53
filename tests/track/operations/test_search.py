"""Operations as tracks write them: Rally's keys, and mistakes that are found before any node starts."""

import json
from typing import Any

import msgspec
import pytest

from benchctl.track.operations import url_param
from benchctl.track.operations.catalogue import decode_operation
from benchctl.track.operations.search import Search
from golden import Cases

COMPOSITE = {"composite": {"sources": [{"n": {"terms": {"field": "n"}}}]}}


def read(kind: str, **raw: Any) -> Any:
    return decode_operation({"name": "x", "operation-type": kind, **raw})


def test_an_operation_without_a_type_is_a_search():
    assert isinstance(decode_operation({"name": "x", "body": {}}), Search)


def test_searches_and_documents_are_shown_and_chores_are_not():
    kinds = {
        "search": {}, "raw-request": {"path": "/"}, "bulk": {"bulk-size": 1}, "refresh": {},
        "sleep": {"duration": 1},
    }  # fmt: skip
    shown = [kind for kind, keys in kinds.items() if read(kind, **keys).reported]
    assert shown == ["search", "raw-request", "bulk"]
    assert read("refresh", **{"include-in-reporting": True}).reported
    assert not read("search", **{"include-in-reporting": False}).reported
    units = [read(kind, **keys).unit for kind, keys in kinds.items()]
    assert units == ["queries", "ops", "docs", "ops", "ops"]


def test_what_cannot_be_asked_is_refused(cases: Cases):
    cases("search", lambda kind, raw: read(kind, **json.loads(raw)))


def test_pages_may_be_all():
    assert read("search", pages="all").pages == "all"
    assert read("scroll-search").pages == "all"


def test_statuses_to_ignore_are_one_or_several():
    assert read("raw-request", path="/", ignore=404).accepted == {404}
    assert read("raw-request", path="/", ignore=[404, 409]).accepted == {404, 409}
    assert read("raw-request", path="/").accepted == frozenset()


def test_placeholders_may_stand_in_all_that_is_sent():
    assert read("search", body={"a": 1}).templates == {"a": 1}
    assert read("raw-request", path="/p", body=["b"]).templates == ["/p", ["b"]]
    searches = [{"body": {"a": 1}, "header": {"h": 2}}]
    assert read("multi-search", searches=searches).templates == [[{"h": 2}, {"a": 1}]]


def test_query_parameters_are_written_as_engines_read_them():
    found = [url_param(value) for value in (True, False, None, 1.5, ["a", 1, True], "x")]
    assert found == ["true", "false", "", "1.5", "a,1,true", "x"]


def test_numbers_may_stand_as_texts_of_digits_where_templates_made_them_so():
    found = read("bulk", **{"bulk-size": "500", "ingest-percentage": "12.5", "pipeline": "7"})
    assert (found.bulk_size, found.ingest_percentage, found.pipeline) == (500, 12.5, "7")
    assert read("search", pages="3").pages == 3
    assert read("search", pages="all").pages == "all"
    for wrong in ("five", "5x", "1.5", "", "٣"):
        with pytest.raises(msgspec.ValidationError, match="Expected `int`, got `str`"):
            read("bulk", **{"bulk-size": wrong})


def test_keys_are_read_as_rally_spells_them_in_its_code_too():
    found = read("field-caps", index_filter={"a": 1}, retries_on_429=2)
    assert (found.index_filter, found.retry_on_429) == ({"a": 1}, 2)


def test_what_rallys_client_takes_from_the_request_parameters_stays_out_of_the_url():
    params = {"request_timeout": 7200, "ignore": [404, "400"], "wait_for_status": "green"}
    found = read("cluster-health", **{"request-params": params})
    assert found.url_params == {"wait_for_status": "green"}
    assert found.deadline_s == 7200
    assert found.accepted == {404, 400}
    assert read("cluster-health", **{"request-params": params, "request-timeout": 3}).deadline_s == 3
    plain = read("search")
    assert (plain.deadline_s, plain.accepted) == (None, frozenset())


def test_queries_in_languages_and_composites_are_shown_as_searches_are():
    shown = {
        "sql": {"body": {"query": "x"}},
        "esql": {"query": "x"},
        "field-caps": {},
        "vector-search": {"body": {"size": 1}},
        "composite": {"requests": [{"operation-type": "search"}]},
        "proto-bulk": {},
    }
    assert all(read(kind, **keys).reported for kind, keys in shown.items())


def test_a_mistake_in_a_key_of_foreign_tracks_is_found_when_it_is_read(cases: Cases):
    cases("foreign_keys", lambda kind, raw: read(kind, **json.loads(raw)))


@pytest.mark.parametrize(
    ("raw", "place"),
    [
        ({"operation-type": "raw-request", "path": "/a\r\nx: y"}, "path"),
        ({"index": "a\nb"}, "index"),
        ({"operation-type": "refresh", "index": "a\x1b"}, "index"),
        ({"tags": ["a\n"]}, "tags"),
        ({"name": "x\n"}, "name"),
    ],
)
def test_what_is_on_one_line_has_no_control_characters(raw: dict[str, Any], place: str):
    with pytest.raises(msgspec.ValidationError) as caught:
        decode_operation({"name": "x", **raw})
    assert f"$.{place}" in str(caught.value)
