"""Answers of two nights: what counts as changed, in which words, and what does not count."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.engine.answers import cut
from benchctl.nightly.changes import changed, comparable
from benchctl.results.model import ANSWERS_VERSION, KeptAnswer, TopHits, VariantAnswers

SINCE = "00041-20261120-0300"


def answers(*kept: KeptAnswer) -> VariantAnswers:
    return VariantAnswers(ANSWERS_VERSION, "es@latest", anew=True, answers=kept)


def kept(**fields: Any) -> KeptAnswer:
    return KeptAnswer(**{"operation": "range", "question": "q", "total": 5, **fields})


def said(old: KeptAnswer, new: KeptAnswer) -> tuple[str, str] | None:
    """Before and after, of one operation."""
    found = changed(answers(old), answers(new), SINCE)
    for change in found:
        assert (change.variant, change.operation, change.since) == ("es@latest", "range", SINCE)
    return (found[0].before, found[0].after) if found else None


def days(*counts: int) -> dict[str, Any]:
    return {"days": {"buckets": [{"key": place, "doc_count": count} for place, count in enumerate(counts)]}}


def many(number: int) -> dict[str, Any]:
    return {"minutes": {"buckets": [{"key": place, "doc_count": 7 * place} for place in range(number)]}}


def large(found: Any, where: str = "aggregations") -> dict[str, Any]:
    assert cut(found) is not None
    return {f"{where}_cut": cut(found)}


ONE = TopHits(1, 1, [5], "aaaa", '{"message":"one"}')


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ({"total": 998}, {"total": 1000}, ("998 hits", "1,000 hits")),
        ({"total": 1}, {"total": None}, ("1 hit", "hits not counted")),
        ({"returned": 10}, {"returned": 1}, ("10 hits returned", "1 hit returned")),
        (
            {"aggregations": days(1, 2)},
            {"aggregations": days(1)},
            ("2 entries in aggregations.days.buckets", "1 entries in aggregations.days.buckets"),
        ),
        (
            {"aggregations": days(1, 2)},
            {"aggregations": days(1, 3)},
            (
                "aggregations.days.buckets[1].doc_count is 2",
                "aggregations.days.buckets[1].doc_count is 3",
            ),
        ),
        (
            {"aggregations": {"a": {"value": 1.5}}},
            {"aggregations": {"a": {"v": 1.5}}},
            ("value in aggregations.a", "v in aggregations.a"),
        ),
        (
            {"aggregations": {"a": {}}},
            {"aggregations": {"a": {"v": 1}}},
            ("no v in aggregations.a", "v in aggregations.a"),
        ),
        (
            {"aggregations": {"a": 1, "b": 1}},
            {"aggregations": {"a": 1}},
            ("b in aggregations", "no b in aggregations"),
        ),
        ({"aggregations": None}, {"aggregations": {}}, ("aggregations is None", "aggregations is {}")),
        (
            {"sort_values": [[5], [6]]},
            {"sort_values": [[5], [7]]},
            ("sort values[1][0] is 6", "sort values[1][0] is 7"),
        ),
        ({"scores": (2.5, 1.5)}, {"scores": (2.5, 1.25)}, ("hit 2 scores 1.5", "hit 2 scores 1.25")),
        ({"scores": (2.5,)}, {"scores": ()}, ("1 hit scored", "0 hits scored")),
        (
            {"top": (ONE,)},
            {"top": (TopHits(1, 1, [5], "bbbb", '{"message":"two"}'),)},
            ('hit 1: {"message":"one"}', 'hit 1: {"message":"two"}'),
        ),
        (
            {"top": (ONE,)},
            {"top": (TopHits(1, 1, [5], "bbbb", '{"message":"one"}'),)},
            ("hit 1: with digest aaaa", "hit 1: with digest bbbb"),
        ),
        (
            {"top": (ONE, TopHits(2, 3, [6], "cccc"))},
            {"top": (ONE, TopHits(2, 3, [6], "dddd"))},
            ("hits 2 to 4: with digest cccc", "hits 2 to 4: with digest dddd"),
        ),
        ({"total": None, "unsupported": "no such"}, {}, ("unsupported: no such", "answered")),
        ({}, {"total": None, "failed": "too many buckets"}, ("answered", "failed: too many buckets")),
        (
            {"total": None, "unsupported": "no such"},
            {"total": None, "failed": "too many buckets"},
            ("unsupported: no such", "failed: too many buckets"),
        ),
    ],
)
def test_a_change_is_told_in_words(old: dict[str, Any], new: dict[str, Any], words: tuple[str, str]):
    assert said(kept(**old), kept(**new)) == words


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"aggregations": {"a": 0.1 + 0.2}}, {"aggregations": {"a": 0.3}}),
        ({"sort_values": [[0.1 + 0.2]]}, {"sort_values": [[0.3]]}),
        ({"scores": (1.5,)}, {"scores": (1.5000001,)}),
        ({"top": (ONE,)}, {"top": (TopHits(1, 2, [5], "bbbb"),)}),
        ({"top": (ONE,)}, {"top": ()}),
        ({"unsupported": "no such at node-1"}, {"unsupported": "no such at node-2"}),
        ({"total": 5, "unsteady": "random scores"}, {"total": 6, "unsteady": "random scores"}),
        ({"total": 5, "question": "q"}, {"total": 6, "question": "another"}),
        (large(many(2000)), {"aggregations": many(2000)}),
    ],
)
def test_what_right_answers_may_differ_in_is_no_change(old: dict[str, Any], new: dict[str, Any]):
    assert said(kept(**old), kept(**new)) is None
    assert said(kept(**new), kept(**old)) is None


def test_a_change_fits_on_a_line():
    found = said(kept(total=None, failed="x" * 500), kept())
    assert found is not None
    assert len(found[0]) == 100
    assert found[0].endswith("…")


def test_hits_come_before_all_that_follows_from_them():
    old = kept(total=5, returned=5, aggregations=days(1), sort_values=[[1]], scores=(1.0,), top=(ONE,))
    new = kept(total=6, returned=6, aggregations=days(2), sort_values=[[2]], scores=(2.0,), top=())
    found = changed(answers(old), answers(new), SINCE)
    assert [(one.before, one.after) for one in found] == [("5 hits", "6 hits")]
    assert said(old, msgspec.structs.replace(new, total=5)) == ("5 hits returned", "6 hits returned")
    again = msgspec.structs.replace(new, total=5, returned=5)
    assert said(old, again) == (
        "aggregations.days.buckets[0].doc_count is 1",
        "aggregations.days.buckets[0].doc_count is 2",
    )
    again = msgspec.structs.replace(again, aggregations=days(1))
    assert said(old, again) == ("sort values[0][0] is 1", "sort values[0][0] is 2")


def test_only_what_is_asked_alike_and_stays_can_be_held_against_each_other():
    one, other = kept(operation="one", question="1"), kept(operation="other", question="2")
    moving = kept(operation="moving", question="3", unsteady="random scores")
    before, now = answers(one, other, moving), answers(one, kept(operation="other", question="9"), moving)
    assert comparable(before, now) == {"one"}


@given(
    st.builds(
        kept,
        total=st.none() | st.integers(0),
        returned=st.integers(0),
        aggregations=st.none() | st.dictionaries(st.text(), st.floats(allow_nan=False) | st.text()),
        scores=st.lists(st.floats(0, 100)).map(tuple),
        unsupported=st.none() | st.text(),
    )
)
def test_an_answer_is_no_change_of_itself(answer: KeptAnswer):
    assert said(answer, answer) is None
