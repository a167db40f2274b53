"""Amounts as people write them into YAML."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.yaml_file import Documents, Duration, HeapSize, Percent, fraction, mebibytes, seconds


@given(st.integers(0, 10**6))
def test_amounts_are_read_in_their_units(number: int):
    assert seconds(msgspec.convert(f"{number}s", Duration)) == number
    assert seconds(msgspec.convert(f"{number}m", Duration)) == 60 * number
    assert seconds(msgspec.convert(f"{number}.5h", Duration)) == 3600 * (number + 0.5)
    assert mebibytes(msgspec.convert(f"{number}M", HeapSize)) == number
    assert mebibytes(msgspec.convert(f"{number}g", HeapSize)) == 1024 * number
    assert fraction(msgspec.convert(f"{number}%", Percent)) == number / 100
    assert fraction(msgspec.convert(f"{number}.5 %", Percent)) == (number + 0.5) / 100


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Duration, "90"), (Duration, "1d"), (Duration, "-3m"), (Duration, "1h30m"), (Duration, "90m "),
        (HeapSize, "4"), (HeapSize, "1.5g"), (HeapSize, "4k"), (Percent, "5"), (Percent, "-5%"),
        (Duration, f"{'9' * 400}h"), (HeapSize, f"{'9' * 5000}g"), (Percent, f"{'9' * 400}%"),
        (Percent, "%"), (Documents, "lots"), (Documents, "1 m"), (Documents, "1__0"),
    ],
)  # fmt: skip
def test_other_amounts_are_refused(kind: object, text: str):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(text, kind)
