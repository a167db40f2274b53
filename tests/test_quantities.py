"""Amounts: what each kind takes, as the command line and as files have it, and what it prints."""

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import UsageError
from benchctl.quantities import (
    COUNT,
    DURATION,
    KINDS,
    PERCENT,
    SIZE,
    Count,
    Duration,
    Kind,
    Percent,
    Size,
)

IN_FILES = {SIZE: Size, DURATION: Duration, PERCENT: Percent, COUNT: Count}


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (SIZE, "512m", 512), (SIZE, "4G", 4096), (SIZE, "1.5g", 1536), (SIZE, "524288k", 512),
        (SIZE, "1gb", 1024),
        (DURATION, "90s", 90), (DURATION, "1.5h", 5400), (DURATION, "0.5s", 0.5), (DURATION, "2d", 172_800),
        (DURATION, "250ms", 0.25), (DURATION, "36500d", 3_153_600_000),
        (PERCENT, "5%", 0.05), (PERCENT, "0.5%", 0.005), (PERCENT, "0%", 0),
        (COUNT, "1m", 1_000_000), (COUNT, "300K", 300_000), (COUNT, "1.74b", 1_740_000_000),
        (COUNT, "7.0", 7),
        (COUNT, "20_000", 20_000), (COUNT, "1740763348", 1_740_763_348),
    ],
)  # fmt: skip
def test_amounts_are_read_in_their_units(kind: Kind[Any], text: str, value: float):
    assert kind.parse(text) == value
    assert msgspec.convert(text, IN_FILES[kind]) == text


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *((SIZE, text) for text in ("4", "g", "-1g", "1t", "", "1 g", f"{'9' * 5000}g")),
        *((DURATION, text) for text in ("30", "m", "30 m", "-1m", "1h30m", "30M", "1w", "", "\u0663m")),
        *((PERCENT, text) for text in ("5", "-5%", "%", f"{'9' * 400}%")),
        *((COUNT, text) for text in ("lots", "1mm", "1g", "-1", "1e6", "1,0", "_1", "1_", "1__0", ".5m")),
    ],
)  # fmt: skip
def test_other_texts_are_refused_everywhere(kind: Kind[Any], text: str):
    with pytest.raises(UsageError, match=re.escape(f"invalid {kind.name} '{text}' (expected e.g. ")):
        kind.parse(text)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(text, IN_FILES[kind])


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (SIZE, "0m", "e.g. 512m or 4g"), (SIZE, "4k", "a whole number of MiB"),
        (SIZE, "9999999999999g", "at most"),
        (DURATION, "36501d", "at most 100 years"), (PERCENT, "1_000_000_001%", "at most"),
        (COUNT, "0k", "e.g. 300k"), (COUNT, "1.5", "a whole number of documents"),
        (COUNT, "9999999b", "at most"),
    ],
)  # fmt: skip
def test_amounts_out_of_range_are_refused(kind: Kind[Any], text: str, expected: str):
    with pytest.raises(UsageError, match=re.escape(f"(expected {expected}")):
        kind.parse(text)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (SIZE, 1024, "1g"), (SIZE, 1536, "1536m"),
        (DURATION, 1800.0, "30m"), (DURATION, 90.5, "90.5s"), (DURATION, 0, "0s"),
        (PERCENT, 0.05, "5%"), (PERCENT, 1 / 300, "0.333333333333%"),
        (COUNT, 4_000_000, "4m"), (COUNT, 300_000, "300k"), (COUNT, 12_345, "12345"), (COUNT, 0, "0"),
    ],
)  # fmt: skip
def test_amounts_are_printed_as_people_write_them(kind: Kind[Any], value: float, text: str):
    assert kind.text(value) == text


@given(st.sampled_from(KINDS), st.integers(1, 10**6))
def test_what_is_printed_is_read_again(kind: Kind[Any], number: int):
    value = kind.number(max(number, kind.least))
    assert kind.parse(kind.text(value)) == value
