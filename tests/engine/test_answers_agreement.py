"""Answers that agree or differ."""

from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.engine.answers import AnswerBook, ask, compare_answers
from benchctl.engine.client import SearchClient
from benchctl.results.answers import Answer, difference
from benchctl.track.operations.search import Search
from builders import exact_hits

RANGE = Search(name="range", body={"query": {}})
SORT = Search(name="sort", body={"sort": []})


def book(tmp_path: Path, name: str, **answers: Answer) -> AnswerBook:
    kept = AnswerBook(tmp_path / f"{name}.json")
    for operation in (RANGE, SORT):
        kept.add(operation, answers[operation.name])
    return kept


def test_equal_answers_have_no_findings(tmp_path: Path):
    same = {"range": Answer(total=5, returned=5), "sort": Answer(total=5, returned=1, top_hits="ab")}
    books = {"es": book(tmp_path, "es", **same), "os": book(tmp_path, "os", **same)}
    check = compare_answers([RANGE, SORT], books, "es")
    assert check.findings == ()
    assert exact_hits(check)["range"] == {"es": 5, "os": 5}


def test_differences_and_missing_features_are_findings(tmp_path: Path):
    books = {
        "es": book(tmp_path, "es", range=Answer(total=5), sort=Answer(unsupported="no handler")),
        "os": book(tmp_path, "os", range=Answer(total=6), sort=Answer(total=5)),
    }
    findings = compare_answers([RANGE, SORT], books, "es").findings
    assert [(found.operation, found.variant, found.kind) for found in findings] == [
        ("range", "os", "different"),
        ("sort", "es", "unsupported"),
    ]
    assert "5 against 6" in findings[0].detail
    assert findings[1].detail == "no handler"


class Answering:
    """Stands in for a node with one answer."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.answer = answer

    def search(self, *_: object) -> dict[str, Any]:
        return self.answer


def answered(
    aggregations: Any = None, *sort: Any, body: dict[str, Any] | None = None, total: int = 7, shards: int = 1
) -> Answer:
    found = {"hits": {"total": {"value": total}, "hits": [{"sort": list(values)} for values in sort]}}
    node = Answering({**found, "aggregations": aggregations, "_shards": {"total": shards}})
    return ask(cast("SearchClient", node), Search(name="x", body=body or {}), "big5")


def days(*counts: int) -> dict[str, Any]:
    buckets = [{"key": 86_400_000 * n, "doc_count": count} for n, count in enumerate(counts)]
    return {"days": {"buckets": buckets}}


EXPECTED = answered(days(4, 3), [5], [4])


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (EXPECTED, ""),
        (answered(days(4, 3), [5], [4], total=6), "total hits 7 against 6"),
        (answered(days(4, 3), [5]), "2 hits returned against 1"),
        (answered(days(4, 3), [5], [3]), "top hits"),
        (answered(days(4, 3), [4], [5]), "top hits"),
        (answered(days(4, 2), [5], [4]), "aggregations"),
        (answered(days(7), [5], [4]), "aggregations"),
        (answered({}, [5], [4]), "aggregations"),
    ],
)
def test_the_part_that_differs_is_named(answer: Answer, part: str):
    assert bool(difference(EXPECTED, answer)) is bool(part)
    assert part in difference(EXPECTED, answer)


@pytest.mark.parametrize(
    ("sort", "alike"),
    [
        (["n", "_doc"], True),
        ([{"n": "asc"}, {"_shard_doc": "asc"}], True),
        (["n", "m"], False),
        ("_doc", False),
    ],
)
def test_places_in_the_index_are_not_compared(sort: Any, *, alike: bool):
    values = ([1], [2]) if sort == "_doc" else ([1, 8], [1, 9])
    first, second = (answered(None, value, body={"sort": sort}) for value in values)
    assert (first == second) is (alike or sort == "_doc")


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (0.1 + 0.2, 0.3, True),
        (1.0, 1, True),
        (99.99999999999, 100, True),
        (1.0, 1.000001, False),
        (1_672_531_200_000, 1_672_531_200_001, False),
        (1_672_531_200_000.0, 1_672_531_200_001.0, False),
        (2.0**70, 2.0**70 * (1 + 1e-12), True),
        (True, 1, False),
    ],
)
def test_the_last_digits_of_a_double_do_not_matter(one: Any, other: Any, *, alike: bool):
    assert (answered({"a": one}) == answered({"a": other})) is alike
    assert (answered(None, [one]) == answered(None, [other])) is alike


@pytest.mark.parametrize(
    ("kind", "shards", "compared"),
    [
        ("percentiles", 1, False),
        ("top_hits", 1, False),
        ("significant_terms", 1, False),
        ("terms", 1, True),
        ("terms", 3, False),
        ("sum", 3, True),
    ],
)
def test_estimates_are_not_compared_at_any_depth(kind: str, shards: int, *, compared: bool):
    inner = {"days": {"date_histogram": {}, "aggs": {"odd": {kind: {"field": "n"}}}}}
    first, second = (
        answered(
            {"days": {"buckets": [{"key": 0, "odd": {"value": n}}]}}, body={"aggs": inner}, shards=shards
        )
        for n in (1, 2)
    )
    assert (first != second) is compared


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_any_answer_equals_itself(aggregations: object):
    assert not difference(answered(aggregations), answered(aggregations))
