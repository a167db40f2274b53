"""Every search of the big5 track must find something from 100,000 documents up, or it measures nothing."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from benchctl.track.load import load_track

Document = dict[str, Any]
Predicate = Callable[[Document], bool]


def _during(first: str, stop: str) -> dict[str, Any]:
    return {"range": {"@timestamp": {"gte": first, "lt": stop}}}


def _sized(first: int, last: int) -> dict[str, Any]:
    return {"range": {"metrics.size": {"gte": first, "lte": last}}}


TWO_DAYS = _during("2023-01-01T00:00:00", "2023-01-03T00:00:00")
INDIGO = {"term": {"aws.cloudwatch.log_stream": "indigodagger"}}
ANIMALS = {"query_string": {"query": "message: monkey jackal bear"}}

# What the searches of the full big5 schedule ask for; those that ask for all documents are left out.
BODIES: dict[str, dict[str, Any]] = {
    "term": {"query": {"term": {"log.file.path": {"value": "/var/log/messages/fuschiashoulder"}}}},
    "range": {"query": TWO_DAYS},
    "range-numeric": {"query": _sized(20, 200)},
    "keyword-in-range": {"query": {"bool": {"must": [TWO_DAYS, {"match": {"process.name": "kernel"}}]}}},
    "date_histogram_minute_agg": {"query": TWO_DAYS},
    "desc_sort_with_after_timestamp": {
        "sort": [{"@timestamp": "desc"}],
        "search_after": ["2023-01-06T23:59:58.000Z"],
    },
    "asc_sort_with_after_timestamp": {
        "sort": [{"@timestamp": "asc"}],
        "search_after": ["2023-01-01T23:59:58.000Z"],
    },
    "sort_timestamp_can_match_shortcut": {"query": {"match": {"process.name": "kernel"}}},
    "sort_numeric_with_match": {"query": {"match": {"log.file.path": "/var/log/messages/solarshark"}}},
    "range_field_conjunction_big_range_big_term_query": {
        "query": {"bool": {"must": [{"term": {"process.name": "systemd"}}, _sized(1, 100)]}}
    },
    "range_field_disjunction_big_range_small_term_query": {
        "query": {"bool": {"should": [INDIGO, _sized(1, 100)]}}
    },
    "range_field_conjunction_small_range_small_term_query": {
        "query": {"bool": {"should": [INDIGO, _sized(10, 20)]}}
    },
    "range_field_conjunction_small_range_big_term_query": {"query": {"bool": {"must": [_sized(20, 30)]}}},
    "the small term alone": {"query": INDIGO},
    "the small range alone": {"query": _sized(10, 20)},
    "multi_terms-keyword": {"query": _during("2023-01-05T00:00:00", "2023-01-05T05:00:00")},
    "composite-terms": {"query": _during("2023-01-02T00:00:00", "2023-01-02T10:00:00")},
    "composite-date_histogram-daily": {"query": _during("2022-12-30T00:00:00", "2023-01-07T12:00:00")},
    "query-string-on-message": {"query": ANIMALS},
    "query-string-on-message-filtered": {
        "query": {"bool": {"must": [_during("2023-01-03T00:00:00", "2023-01-03T10:00:00"), ANIMALS]}}
    },
}

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "gte": lambda value, bound: value >= bound,
    "gt": lambda value, bound: value > bound,
    "lte": lambda value, bound: value <= bound,
    "lt": lambda value, bound: value < bound,
}


def _comparable(value: Any) -> Any:
    """Dates are compared as text of one form, numbers as they are."""
    return value.removesuffix("Z").removesuffix(".000") if isinstance(value, str) else value


def _predicate(query: dict[str, Any]) -> Predicate:
    """The part of the query language that big5 uses; anything else is an error."""
    ((kind, body),) = query.items()
    match kind:
        case "match_all":
            return lambda _: True
        case "range":
            return _range(body)
        case "term" | "match":
            ((field, value),) = body.items()
            wanted = value["value"] if isinstance(value, dict) else value
            return lambda document: document[field] == wanted
        case "query_string":
            words = set(body["query"].removeprefix("message: ").split())
            return lambda document: bool(words & document["message.words"])
        case "bool":
            ((how, clauses),) = body.items()
            join = {"must": all, "should": any}[how]
            parts = [_predicate(clause) for clause in clauses]
            return lambda document: join(part(document) for part in parts)
    raise AssertionError(f"unknown query {kind}")


def _range(body: dict[str, Any]) -> Predicate:
    ((field, bounds),) = body.items()
    checks = [(COMPARISONS[name], _comparable(bound)) for name, bound in bounds.items()]
    return lambda document: all(check(_comparable(document[field]), bound) for check, bound in checks)


def _after(body: dict[str, Any]) -> Predicate:
    if "search_after" not in body:
        return lambda _: True
    ((field, order),) = body["sort"][0].items()
    return _range({field: {"lt" if order == "desc" else "gt": body["search_after"][0]}})


def _hits(body: dict[str, Any], sample: list[Document]) -> int:
    query, after = _predicate(body.get("query", {"match_all": {}})), _after(body)
    return sum(query(document) and after(document) for document in sample)


@pytest.mark.parametrize("name", BODIES)
def test_every_search_of_the_full_schedule_matches(sample: list[Document], name: str):
    assert _hits(BODIES[name], sample) >= 10


def test_every_search_of_the_shipped_track_matches(sample: list[Document]):
    track, _ = load_track("big5", {})
    bodies = {operation.name: operation.body for operation in track.operations.values() if operation.body}
    assert "range" in bodies
    assert [name for name, body in bodies.items() if _hits(body, sample) < 10] == []


def test_range_matches_the_blogs_share(sample: list[Document]):
    assert _hits(BODIES["range"], sample) / len(sample) == pytest.approx(0.276, abs=0.001)


def test_every_size_bucket_of_the_range_aggregations_is_filled(sample: list[Document]):
    for first, stop in ((1, 10), (10, 100), (100, 1000), (1000, 2000), (2000, 10_001)):
        assert any(first <= document["metrics.size"] < stop for document in sample)


def test_every_hour_has_documents(sample: list[Document]):
    hours = {document["@timestamp"][:13] for document in sample}
    assert len(hours) == 7 * 24 + 6
    assert datetime.fromisoformat(max(hours) + ":00:00Z") < datetime(2023, 1, 8, 6, tzinfo=UTC)
