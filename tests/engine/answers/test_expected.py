"""What big5's operations must find, against a plain search through the documents themselves."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.corpus.big5 import Slice
from benchctl.engine.answers import Answer, AnswerBook
from benchctl.engine.expected_answers import expect_answers
from benchctl.track.load import load_track
from benchctl.track.operations.common import Operation
from benchctl.track.operations.search import Search, Sleep
from plain_search import Document, behind, buckets, documents, matching, sort_values

SIZE = 30_000
CORPUS = Slice(3, SIZE, 0, SIZE)
TRACK, _ = load_track("big5", {})
OPERATIONS = {name: one for name, one in TRACK.operations.items() if isinstance(one, Search)}


@pytest.fixture(scope="module")
def corpus() -> list[Document]:
    return documents(SIZE, seed=3)


def expected_of(operations: Iterable[Operation], corpus: Slice) -> dict[str, Answer]:
    operations = tuple(operations)
    book = AnswerBook(Path("never-written"))
    expect_answers(operations, corpus, book)
    return {one.name: answer for one in operations if (answer := book.get(one)) is not None}


@pytest.fixture(scope="module")
def expected() -> dict[str, Answer]:
    return expected_of(OPERATIONS.values(), CORPUS)


def test_every_operation_of_big5_is_understood(expected: dict[str, Answer]):
    assert expected.keys() == OPERATIONS.keys()
    for name, operation in OPERATIONS.items():
        assert set(expected[name].aggregations or {}) == set(operation.body.get("aggs", {}))
        assert bool(expected[name].sort_values) == ("sort" in operation.body)


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_finds_what_a_plain_search_finds(
    corpus: list[Document], expected: dict[str, Answer], name: str
):
    operation = OPERATIONS[name]
    found = matching(operation.body, corpus)
    size = operation.results_per_page or operation.body.get("size", 10)
    assert expected[name].total == len(found)
    assert expected[name].returned == min(size, len(behind(operation.body, found)))
    if "sort" in operation.body:
        assert expected[name].sort_values == sort_values(operation.body, found)
    for aggregation, definition in operation.body.get("aggs", {}).items():
        listed = expected[name].aggregations[aggregation]["buckets"]
        assert [(_plain_key(one.get("key")), one["doc_count"]) for one in listed] == [
            (_plain_key(key), count) for key, count in buckets(definition, found)
        ]


def _plain_key(key: Any) -> Any:
    """Keys of several parts as tuples; of one part as that."""
    parts = tuple(key.values()) if isinstance(key, dict) else tuple(key) if isinstance(key, list) else key
    return parts[0] if isinstance(parts, tuple) and len(parts) == 1 else parts


def search(**body: Any) -> Search:
    return Search(name="s", body=body)


def expect(**body: Any) -> Answer | None:
    return expected_of([search(**body)], Slice(1, 2000, 0, 2000)).get("s")


@pytest.mark.parametrize(
    "body",
    [
        {"query": {"match_phrase": {"message": "monkey"}}},
        {"query": {"range": {"@timestamp": {"lte": "2023-01-03"}}}},  # may be rounded up
        {"query": {"range": {"@timestamp": {"gte": "now-1d"}}}},
        {"query": {"range": {"event.ingested": {"gte": "2023"}}}},
        {"query": {"bool": {"must": [], "should": []}}},
        {"query": {"bool": {"must_not": [{"match_all": {}}]}}},
        {"query": {"query_string": {"query": "message: kernel"}}},
        {"query": {"query_string": {"query": "monkey"}}},
        {"query": {"term": {"message": "monkey"}}},
        {"query": {"term": {"process.name": {"value": "cron", "case_insensitive": True}}}},
        {"sort": [{"metrics.size": "asc"}, "_doc"]},
        {"sort": [{"host.name": "asc"}]},
        {"min_score": 1},
        {"from": 3},
        {"size": "many"},
    ],
)
def test_nothing_is_expected_of_what_is_not_understood(body: dict[str, Any]):
    assert expect(**body) is None


@pytest.mark.parametrize(
    "aggregation",
    [
        {"auto_date_histogram": {"field": "@timestamp"}},
        {"date_histogram": {"field": "@timestamp", "calendar_interval": "month"}},
        {"date_histogram": {"field": "@timestamp", "calendar_interval": "day", "offset": "6h"}},
        {"terms": {"field": "process.name", "order": {"_key": "asc"}}},
        {"terms": {"field": "metrics.size"}},
        {"terms": {}},
        {"composite": {"sources": [], "after": {}}},
        {"range": {"field": "metrics.size", "ranges": [{"key": "all"}]}},
    ],
)
def test_hits_are_expected_beside_an_aggregation_that_is_not_understood(aggregation: dict[str, Any]):
    assert expect(size=0, aggs={"a": aggregation}) == Answer(2000, aggregations={})


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_what_sorts_like_search_after_is_not_behind_it(order: str):
    sort = [{"metrics.size": order}]
    whole = expect(sort=sort, size=2000)
    assert whole is not None
    values = [value for (value,) in whole.sort_values]
    after = values[1000]
    behind_it = expect(sort=sort, size=2000, search_after=[after])
    assert behind_it is not None
    assert behind_it.sort_values == [[value] for value in values if value != after][values.index(after) :]
    assert (behind_it.total, behind_it.returned) == (2000, len(behind_it.sort_values))


def test_what_a_book_has_is_not_counted_again():
    operation = search()
    book = AnswerBook(Path("never-written"))
    book.add(operation, Answer(total=3))
    expect_answers([operation], Slice(1, 2000, 0, 2000), book)
    assert book.get(operation) == Answer(total=3)


def test_of_other_operations_and_other_indices_nothing_is_expected():
    odd = [
        Sleep(name="pause", duration=1),
        Search(name="elsewhere", index="other", body={}),
        Search(name="routed", request_params={"routing": "x"}, body={}),
    ]
    assert expected_of(odd, CORPUS) == {}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.sampled_from(["asc", "@timestamp"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["@timestamp", "process.name", "metrics.size", "range", "term", "bool", "must", "terms", "field",
             "ranges", "from", "gte", "size", "composite", "sources", "order", "query_string", "query",
             "date_histogram", "calendar_interval"]
        ),
        inner,
        max_size=3,
    ),
    max_leaves=12,
)  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(st.dictionaries(st.sampled_from(["query", "aggs", "sort", "size", "search_after"]), json_values))
def test_no_body_is_a_fault(body: dict[str, Any]):
    """A body may be anything: whether it is right, the engines say."""
    expected_of([search(**body)], Slice(1, 200, 0, 200))
