"""Numbers of documents as people write them, and ranges, checked against plain sets of their numbers."""

import itertools
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.corpus.documents import Numbering, Range, count, merged, missing, parse_documents, within
from benchctl.errors import ExitCode, UsageError


@pytest.mark.parametrize(
    ("text", "documents"),
    [
        ("1m", 1_000_000),
        ("300k", 300_000),
        ("20m", 20_000_000),
        ("1.74b", 1_740_000_000),
        ("1_000_000", 1_000_000),
        ("1740763348", 1_740_763_348),
        (" 2M ", 2_000_000),
        ("0.5K", 500),
        ("1.740763348b", 1_740_763_348),
        ("7.0", 7),
    ],
)
def test_sizes(text: str, documents: int):
    assert parse_documents(text) == documents


@pytest.mark.parametrize(
    "text",
    [
        "",
        "m",
        "1mm",
        "1g",
        "-1",
        "0",
        "0k",
        "1.5",
        "1.0001k",
        "1e6",
        "1,000",
        "_1",
        "1_",
        "1__0",
        ".5m",
        "1.m",
        "\u0661",
    ],
)
def test_other_texts_are_usage_errors(text: str):
    with pytest.raises(UsageError, match="document") as caught:
        parse_documents(text)
    assert caught.value.exit_code == ExitCode.USAGE
    assert repr(text) in caught.value.message


@given(st.integers(1, 10**12))
def test_plain_and_grouped_numbers_are_themselves(documents: int):
    assert parse_documents(str(documents)) == documents
    assert parse_documents(f"{documents:_}") == documents


@given(st.text(max_size=12))
def test_any_text_is_a_size_or_a_usage_error(text: str):
    with suppress(UsageError):
        assert parse_documents(text) >= 1


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
