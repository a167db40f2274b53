"""Ranges of documents, checked against plain sets of their numbers."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.corpus.bulk import Numbering, Range, count, merged, missing, within

SIZE = 60
RANGES = st.lists(
    st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)).map(lambda pair: (min(pair), max(pair))), max_size=8
)


def numbers(ranges: list[Range] | tuple[Range, ...]) -> set[int]:
    return {number for start, stop in ranges for number in range(start, stop)}


@given(RANGES)
def test_merged_ranges_hold_the_same_documents_and_are_as_few_as_possible(ranges: list[Range]):
    found = merged(ranges)
    assert numbers(found) == numbers(ranges)
    assert all(start < stop for start, stop in found)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(found))


@given(RANGES)
def test_a_document_is_counted_once(ranges: list[Range]):
    assert count(ranges) == len(numbers(ranges))


@given(RANGES)
def test_what_is_missing_is_everything_else(ranges: list[Range]):
    gaps = missing(ranges, SIZE)
    assert numbers(gaps) == set(range(SIZE)) - numbers(ranges)
    assert merged(gaps) == gaps


@given(RANGES, st.integers(0, SIZE), st.integers(0, SIZE))
def test_what_lies_within_a_stretch_is_what_both_hold(ranges: list[Range], start: int, stop: int):
    assert numbers(within(ranges, start, stop)) == numbers(ranges) & set(range(start, stop))


@given(RANGES, st.lists(st.integers(0, 9), max_size=20))
def test_numbers_are_handed_out_in_order_and_once(ranges: list[Range], sizes: list[int]):
    expected = sorted(numbers(ranges))
    numbering = Numbering(ranges)
    for size in sizes:
        if size > len(expected):
            with pytest.raises(ValueError, match="more came"):
                numbering.take(size)
            return
        taken = [number for start, stop in numbering.take(size) for number in range(start, stop)]
        assert taken == expected[:size]
        del expected[:size]
