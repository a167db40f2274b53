"""Option values that are more than words."""

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.cli.options import DocumentsType, DurationType, HeapType, TagType, keyed
from benchctl.errors import UsageError


@given(st.integers(1, 10**6))
def test_heaps_are_mebibytes(number: int):
    assert HeapType().convert(f"{number}m", None, None) == number
    assert HeapType().convert(f"{number}G", None, None) == 1024 * number


@pytest.mark.parametrize("text", ["4", "4k", "g", "-1g", "0m", "1.5g", ""])
def test_other_heaps_are_refused(text: str):
    with pytest.raises(click.BadParameter, match="512m or 4g"):
        HeapType().convert(text, None, None)


def test_documents_are_read_and_refused():
    assert DocumentsType().convert("300k", None, None) == 300_000
    with pytest.raises(UsageError, match="lots"):
        DocumentsType().convert("lots", None, None)


def test_values_are_for_one_variant_or_for_all():
    assert keyed(["es=/a", "/b"], "--jdk") == {"es": "/a", "": "/b"}
    assert keyed(["es=https://host/x?a=b"], "--target") == {"es": "https://host/x?a=b"}
    assert keyed(["https://host/x?a=b", "es=/a=b"], "--target") == {
        "": "https://host/x?a=b",
        "es": "/a=b",
    }
    with pytest.raises(UsageError, match="twice for es"):
        keyed(["es=1", "es=2"], "--jdk")
    with pytest.raises(UsageError, match="twice for all"):
        keyed(["1", "2"], "--jdk")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90.0), ("30m", 1800.0), ("2h", 7200.0), ("1.5h", 5400.0), ("0.5s", 0.5), ("2d", 172_800.0)],
)
def test_times_are_seconds(text: str, seconds: float):
    assert DurationType().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["30", "m", "30 m", "-1m", "1h30m", "30M", "1w", "", "\u0663m"])
def test_other_times_are_refused(text: str):
    with pytest.raises(click.BadParameter, match="90s, 30m, 2h or 7d"):
        DurationType().convert(text, None, None)


def test_times_beyond_every_calendar_are_refused():
    assert DurationType().convert("36500d", None, None) == 36_500 * 86_400
    for text in ("36501d", "999999999999d", f"1{'0' * 400}s"):
        with pytest.raises(click.BadParameter, match="longer than 100 years"):
            DurationType().convert(text, None, None)


def test_tags_are_words_or_keys_with_values():
    for text in ("nightly", "8.19.0", "before_upgrade-2", "env:laptop"):
        assert TagType().convert(text, None, None) == (text,)
    assert TagType().convert("env:laptop,disk:ssd,x", None, None) == ("env:laptop", "disk:ssd", "x")
    for text in ("", "a b", "a:", ":b", "a:b:c", "a,,b", "-x", "a/b", "x" * 65, "\u00fc"):
        with pytest.raises(click.BadParameter, match="is not a tag"):
            TagType().convert(text, None, None)
