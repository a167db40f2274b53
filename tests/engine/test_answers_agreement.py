"""Answers that agree or differ."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.engine.answers import Answer, AnswerBook, compare_answers, difference
from benchctl.track.operations.search import Search

RANGE = Search(name="range", body={"query": {}})
SORT = Search(name="sort", body={"sort": []})


def book(tmp_path: Path, name: str, **answers: Answer) -> AnswerBook:
    kept = AnswerBook(tmp_path / f"{name}.json")
    for operation in (RANGE, SORT):
        kept.add(operation, answers[operation.name])
    return kept


def test_equal_answers_have_no_findings(tmp_path: Path):
    same = {"range": Answer(total=5, returned=5), "sort": Answer(total=5, returned=1, sort_values=[[1]])}
    books = {"es": book(tmp_path, "es", **same), "os": book(tmp_path, "os", **same)}
    check = compare_answers([RANGE, SORT], books, "es")
    assert check.findings == ()
    assert check.exact_hits["range"] == {"es": 5, "os": 5}


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


@pytest.mark.parametrize(
    ("one", "other", "where"),
    [
        (Answer(total=1), Answer(total=2), "total hits"),
        (Answer(returned=1), Answer(returned=2), "returned"),
        (Answer(sort_values=[[1], [2]]), Answer(sort_values=[[2], [1]]), "sort values[0][0]"),
        (Answer(sort_values=[[1]]), Answer(sort_values=[]), "entries"),
        (
            Answer(aggregations={"a": {"buckets": [{"key": 1, "doc_count": 3}]}}),
            Answer(aggregations={"a": {"buckets": [{"key": 1, "doc_count": 4}]}}),
            "aggregations.a.buckets[0].doc_count",
        ),
        (Answer(aggregations={"a": 1}), Answer(aggregations={"b": 1}), "only one side has a, b"),
        (Answer(aggregations={"a": 1.0}), Answer(aggregations={"a": 1.000001}), "aggregations.a"),
        (Answer(aggregations={"a": True}), Answer(aggregations={"a": 1}), "aggregations.a"),
    ],
)
def test_a_difference_is_named_by_place(one: Answer, other: Answer, where: str):
    assert where in difference(one, other)


def significant(*buckets: tuple[str, int, float]) -> Answer:
    listed = [
        {"key": key, "doc_count": count, "bg_count": 9, "score": score} for key, count, score in buckets
    ]
    return Answer(aggregations={"a": {"buckets": listed}})


@pytest.mark.parametrize(
    ("found", "alike"),
    [
        ((("a", 4, 0.5), ("b", 3, 0.3), ("c", 3, 0.3), ("d", 2, 0.1)), True),
        ((("a", 4, 0.5), ("c", 3, 0.3), ("b", 3, 0.3), ("d", 2, 0.1)), True),  # equal scores, any order
        ((("a", 4, 0.5), ("b", 3, 0.3), ("c", 3, 0.3), ("e", 2, 0.1)), True),  # any that scores like the last
        ((("a", 4, 0.5), ("b", 3, 0.3), ("c", 3, 0.3), ("e", 1, 0.1)), False),
        ((("a", 4, 0.5), ("b", 3, 0.3), ("x", 3, 0.3), ("d", 2, 0.1)), False),
        ((("a", 4, 0.4), ("b", 3, 0.3), ("c", 3, 0.3), ("d", 2, 0.1)), False),
    ],
)
def test_significant_terms_of_equal_scores_come_in_any_order(
    found: tuple[tuple[str, int, float], ...], *, alike: bool
):
    expected = significant(("a", 4, 0.5), ("b", 3, 0.3), ("c", 3, 0.3), ("d", 2, 0.1))
    assert (difference(expected, significant(*found)) == "") is alike


def terms(error: int, *counts: int) -> Answer:
    listed = [{"key": str(place), "doc_count": count} for place, count in enumerate(counts)]
    return Answer(aggregations={"a": {"doc_count_error_upper_bound": error, "buckets": listed}})


def test_counts_that_an_engine_calls_estimates_are_not_compared():
    assert not difference(terms(117, 131), terms(120, 95))
    assert not difference(terms(0, 131), terms(-1, 95))
    assert difference(terms(0, 131), terms(0, 95))


ESTIMATING = Search(
    name="range",
    body={
        "aggs": {
            "days": {
                "date_histogram": {"field": "@timestamp"},
                "aggs": {
                    "late": {"percentiles": {"field": "n"}},
                    "odd": {"significant_terms": {"field": "k"}},
                },
            }
        }
    },
)


@pytest.mark.parametrize(("shards", "different"), [(1, True), (3, False)])
def test_sketches_are_not_compared_and_over_shards_significant_terms_neither(
    tmp_path: Path, shards: int, *, different: bool
):
    books = {}
    for value, name in enumerate(("es", "os")):
        day = {"key": 0, "doc_count": 5, "late": {"values": {"99.0": value}}, "odd": {"doc_count": value}}
        books[name] = AnswerBook(tmp_path / name)
        books[name].add(ESTIMATING, Answer(total=5, aggregations={"days": {"buckets": [day]}}))
    findings = compare_answers([ESTIMATING], books, "es", shards=shards).findings
    assert [found.detail for found in findings] == (
        ["aggregations.days.buckets[0].odd.doc_count: 0 against 1"] if different else []
    )


def test_the_last_bits_of_a_sum_do_not_matter():
    assert not difference(Answer(aggregations={"a": 0.1 + 0.2}), Answer(aggregations={"a": 0.3}))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(json_values, st.integers(0, 10))
def test_an_answer_equals_itself(aggregations: object, total: int):
    answer = Answer(total=total, aggregations=aggregations)
    assert not difference(answer, answer)


EXPECTED = Answer(
    total=7,
    returned=2,
    sort_values=[[5], [4]],
    aggregations={"days": {"buckets": [{"key": 0, "doc_count": 4}, {"key": 86_400_000, "doc_count": 3}]}},
)


def days(*numbers: int) -> dict[str, Any]:
    return {
        "days": {"buckets": [{"key": 86_400_000 * n, "doc_count": count} for n, count in enumerate(numbers)]}
    }


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Answer(6, 2, [[5], [4]], days(4, 3)), "total hits 7 against 6"),
        (Answer(7, 1, [[5]], days(4, 3)), "2 hits returned against 1"),
        (Answer(7, 2, [[5], [3]], days(4, 3)), "sort values[1][0]: 4 against 3"),
        (Answer(7, 2, [[5], [4]], days(4, 2)), "aggregations.days.buckets[1].doc_count: 3 against 2"),
        (Answer(7, 2, [[5], [4]], days(7)), "aggregations.days.buckets: 2 entries against 1"),
        (Answer(7, 2, [[5], [4]], {}), "aggregations: only one side has days"),
    ],
)
def test_the_first_difference_is_named_by_place(answer: Answer, text: str):
    assert difference(EXPECTED, answer) == text
