"""Guesses at what was meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import guess, nearest, suggestion

KNOWN = ("range", "range-only", "match-all")


@pytest.mark.parametrize(("word", "found"), [("rnage", "range"), ("range-olny", "range-only"), ("zzz", None)])
def test_the_most_alike_name_is_found_or_none(word: str, found: str | None):
    assert nearest(word, KNOWN) == found


def test_how_alike_is_for_the_caller_to_say():
    assert nearest("mat", KNOWN, alike=0.4) == "match-all"
    assert nearest("rnage", KNOWN, alike=0.95) is None


def test_a_guess_is_a_question_or_nothing():
    assert guess("rnage", KNOWN) == "did you mean 'range'?"
    assert guess("rnage", KNOWN, before="tag:") == "did you mean 'tag:range'?"
    assert guess("zzz", KNOWN) == ""


def test_without_a_guess_all_names_are_listed_once_and_in_order():
    assert suggestion("rnage", KNOWN, before="tag:") == "did you mean 'tag:range'?"
    assert suggestion("zzz", ("b", "a", "b")) == "known: b, a"
    assert suggestion("zzz", ()) == "known: none"


@given(st.lists(st.text(min_size=1), min_size=1))
def test_a_name_that_is_known_is_nearest_to_itself(known: list[str]):
    assert nearest(known[0], known) == known[0]
