"""Answers as a run keeps them: small, whole up to a bound, and without what right answers may differ in."""

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.engine.answers import (
    WHOLE_BYTES,
    Answer,
    AnswerBook,
    digested,
    entries,
    keep,
    keep_answers,
    unlike,
    unsteady,
)
from benchctl.results.model import TopHits, VariantAnswers
from benchctl.track.operations.search import MultiSearch, OneSearch, Search, Sleep
from golden import Cases

RANGE = Search(name="range", body={"query": {}})
TOP = (TopHits(1, 1, 2.5, "ab"),)


def minutes(number: int, **changes: Any) -> dict[str, Any]:
    buckets = [{"key": 60_000 * place, "doc_count": place} for place in range(number)]
    return {"minutes": {"buckets": buckets, **changes}}


def test_small_answers_are_kept_whole():
    answer = Answer(7, 1, [[5]], minutes(3), top=TOP)
    kept = keep(RANGE, answer, 1)
    assert (kept.operation, kept.total, kept.returned) == ("range", 7, 1)
    assert (kept.sort_values, kept.aggregations, kept.top) == ([[5]], minutes(3), TOP)
    assert (kept.sort_values_cut, kept.aggregations_cut, kept.left_out, kept.unsteady) == (None, None, (), "")
    assert keep(RANGE, Answer(failed="no"), 1).failed == "no"
    assert keep(RANGE, Answer(unsupported="no"), 1).unsupported == "no"


def test_of_large_ones_size_number_digest_and_beginning_are_left():
    large = minutes(5000)
    kept = keep(RANGE, Answer(7, 5000, [[place] for place in range(5000)], large), 1)
    assert (kept.sort_values, kept.aggregations) == ([], None)
    assert kept.sort_values_cut is not None
    assert kept.aggregations_cut is not None
    assert (kept.sort_values_cut.entries, kept.aggregations_cut.entries) == (5000, 5000)
    assert kept.aggregations_cut.size_bytes == len(msgspec.json.encode(large)) > WHOLE_BYTES
    assert kept.aggregations_cut.begins.startswith('{"minutes":{"buckets":[{"key":0')
    assert len(msgspec.json.encode(kept)) < 1000
    large["minutes"]["buckets"][4321]["doc_count"] += 1
    assert keep(RANGE, Answer(aggregations=large), 1).aggregations_cut != kept.aggregations_cut


def test_answers_that_agree_have_one_digest():
    def odd(error: int, last: str, noise: float) -> dict[str, Any]:
        scored = [{"key": "a", "doc_count": 4, "score": 0.5}, {"key": last, "doc_count": 3, "score": 0.3}]
        values = [chance * noise for chance in chances]
        frequent = {"doc_count_error_upper_bound": error, "buckets": [{"doc_count": error}]}
        return {"odd": {"buckets": scored}, "sums": values, "frequent": frequent}

    chances = [1e6 * math.sin(place) for place in range(500)] + [12345.65, 0.5, 100.0, 0.0]
    one, other = odd(7, "b", 1.0), odd(9, "c", 1 + 3e-15)
    assert unlike(one, other, "") is None
    assert digested(one).digest == digested(other).digest
    assert digested(one).digest != digested(odd(7, "b", 1.00001)).digest
    assert digested(one).digest != digested({**one, "odd": {"buckets": []}}).digest


@pytest.mark.parametrize("number", [1.0, 2.5, 100.0, 12345.65, 1e-300, -7.25])
def test_a_digest_sees_five_digits_of_a_number_and_its_sign_but_no_rounding(number: float):
    def digest(found: float) -> str:
        return digested([found]).digest

    assert digest(number) == digest(number * (1 - 1e-12)) == digest(number * (1 + 1e-12))
    assert len({digest(number), digest(-number), digest(number * 1.00001), digest(number * 0.99999)}) == 4


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_whatever_is_answered_can_be_kept_and_read(aggregations: Any):
    found = msgspec.json.decode(msgspec.json.encode(aggregations))
    kept = keep(RANGE, Answer(1, aggregations=found), 1)
    assert msgspec.json.decode(msgspec.json.encode(kept), type=type(kept)) == kept
    assert digested(found) == digested(found)


def test_buckets_are_counted_at_all_depths():
    inner = {"inner": {"buckets": {"a": {}, "b": {}}}}
    assert entries({"days": {"buckets": [inner, inner, {}]}}) == 7
    assert entries([minutes(3), None, minutes(4)]) == 7


def test_estimates_and_the_documents_of_buckets_are_left_out_and_named():
    aggs = {
        "days": {
            "date_histogram": {"field": "@timestamp"},
            "aggs": {"late": {"percentiles": {"field": "n"}}, "first": {"top_hits": {"size": 1}}},
        }
    }
    day = {"key": 0, "doc_count": 5, "late": {"values": {}}, "first": {"hits": {"hits": [{"_id": "x"}]}}}
    operation = Search(name="days", body={"aggs": aggs})
    kept = keep(operation, Answer(5, aggregations={"days": {"buckets": [day]}}), 1)
    assert kept.aggregations == {"days": {"buckets": [{"key": 0, "doc_count": 5}]}}
    assert kept.left_out == ("first", "late")


def test_over_several_shards_scores_follow_from_which_document_is_where():
    scored = Answer(5, 1, scores=(2.5,), top=TOP)
    kept = keep(RANGE, scored, 2)
    assert (kept.scores, kept.top, kept.left_out) == ((), (), ("scores",))
    assert keep(RANGE, Answer(5, 1, [[5]], top=TOP), 2).top == TOP


def test_what_changes_by_itself_says_why(cases: Cases):
    def said(text: str) -> str:
        query = json.loads(text)
        batch = MultiSearch(name="m", searches=(OneSearch({}), OneSearch({"query": query})))
        assert keep(batch, Answer(), 1).unsteady == unsteady({"query": query})
        return unsteady({"query": query})

    cases("unsteady", said)


def test_a_variants_answers_come_in_the_order_of_its_operations():
    book = AnswerBook()
    book.add(RANGE, Answer(7))
    other = Sleep(name="pause", duration=1)
    found = keep_answers("es", [other, RANGE], book, shards=1, anew=True)
    assert (found.variant, found.anew) == ("es", True)
    assert [(one.operation, one.total) for one in found.answers] == [("pause", None), ("range", 7)]
    assert msgspec.json.decode(msgspec.json.encode(found), type=VariantAnswers) == found
