"""Even shares: which documents, and how evenly they lie."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.corpus.source import BLOCKS, Stretch, shared_out, stretches


def numbers(documents: int, held: int, *bounds: int) -> list[int]:
    return [number for start, stop in stretches(documents, held, *bounds) for number in range(start, stop)]


@st.composite
def shares(draw: st.DrawFn) -> tuple[int, int]:
    held = draw(st.integers(0, 30_000))
    return draw(st.integers(0, held)), held


@given(shares(), st.data())
def test_a_share_has_its_size_and_every_slice_of_it_is_a_slice_of_the_whole(
    share: tuple[int, int], data: st.DataObject
):
    documents, held = share
    found = numbers(documents, held)
    assert len(found) == documents
    assert all(one < other for one, other in pairwise(found))
    assert not found or 0 <= found[0] <= found[-1] < held
    start = data.draw(st.integers(0, documents))
    stop = data.draw(st.integers(start, documents))
    assert numbers(documents, held, start, stop) == found[start:stop]


@given(shares(), st.data())
def test_no_part_of_a_file_has_more_than_its_due(share: tuple[int, int], data: st.DataObject):
    documents, held = share
    until = data.draw(st.integers(0, held))
    due = documents * until / held if held else 0
    taken = sum(number < until for number in numbers(documents, held))
    assert abs(taken - due) <= max(documents / BLOCKS, 1)


@given(shares())
def test_stretches_are_apart_and_not_empty(share: tuple[int, int]):
    found = list(stretches(*share))
    assert all(one.start < one.stop for one in found)
    assert all(one.stop < other.start for one, other in pairwise(found))


def test_all_documents_are_one_stretch():
    assert list(stretches(5, 5)) == [Stretch(0, 5)]
    assert list(stretches(5, 5, 2, 4)) == [Stretch(2, 4)]
    assert list(stretches(0, 5)) == []


def test_few_documents_lie_in_the_middle_of_their_parts():
    assert list(stretches(2, 100)) == [Stretch(24, 25), Stretch(74, 75)]


@pytest.mark.parametrize("wrong", [(6, 5), (3, 5, 0, 4), (3, 5, 2, 1), (3, 5, -1, 2)])
def test_what_is_no_slice_of_a_share_is_refused(wrong: tuple[int, ...]):
    with pytest.raises(ValueError, match="are not a slice"):
        list(stretches(*wrong))


@given(st.lists(st.integers(0, 1000), max_size=8), st.data())
def test_documents_are_shared_over_files_in_proportion(held: list[int], data: st.DataObject):
    documents = data.draw(st.integers(0, sum(held)))
    found = shared_out(documents, held)
    assert sum(found) == documents
    for got, count in zip(found, held, strict=True):
        assert got <= count
        assert abs(got - documents * count / max(sum(held), 1)) < 1
