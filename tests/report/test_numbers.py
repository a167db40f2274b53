import math
import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.report.numbers import (
    counted,
    figure,
    interval,
    mebibytes,
    p_value,
    percent,
    signed_figure,
    signed_percent,
    visible,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1964.79, "1,964.8"),
        (729.779, "729.8"),
        (45.678, "45.68"),
        (2.381, "2.381"),
        (0.4213, "0.4213"),
        (0.042134, "0.04213"),
        (9.9999, "10.00"),
        (63_000.4, "63,000"),
        (0, "0"),
        (None, "n/a"),
        (math.nan, "n/a"),
    ],
)
def test_figures_have_four_digits(value: float | None, text: str):
    assert figure(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(80.03, "+80.0"), (-44.14, "-44.1"), (0.04, "0.0"), (-0.04, "0.0"), (12345.0, "+12,345"), (None, "n/a")],
)
def test_differences_carry_their_sign(value: float | None, text: str):
    assert signed_percent(value) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (-1.25, 3.44, "-1.2..+3.4"),
        (-23.8, -19.04, "-24..-19"),
        (None, None, "n/a"),
        (11.04, None, "over +11"),
        # Nothing is less than none of it: such an end says nothing. Next to nothing says a gain of 100 times.
        (-100.0, 2224.0, "up to +2,224"),
        (-100.0, None, "unbounded"),
        (-99.9, 97_729.0, "unbounded"),
        (28.0, 97_729.0, "over +28"),
    ],
)
def test_intervals_are_in_per_cent(low: float | None, high: float | None, text: str):
    assert interval(low, high) == text


def test_intervals_in_a_unit_and_sizes():
    assert interval(-100.0, 3.0, signed_figure) == "-100.0..+3.000"
    assert percent(3.44) == "3.4%"
    assert percent(None) == "n/a"


@pytest.mark.parametrize(
    ("p", "text"), [(0.0004, "<0.001"), (0.001, "0.001"), (0.0499, "0.050"), (None, "n/a")]
)
def test_p_values(p: float | None, text: str):
    assert p_value(p) == text


def test_one_is_no_plural():
    assert [counted(count, "fork") for count in (0, 1, 2, 1200)] == [
        "0 forks",
        "1 fork",
        "2 forks",
        "1,200 forks",
    ]


def test_sizes():
    assert mebibytes(150 * 2**20) == "150.0 MiB"
    assert mebibytes(3 * 2**30) == "3.0 GiB"


@settings(deadline=None)
@given(st.floats(1e-5, 1e9))
def test_figures_read_back_to_half_a_digit(value: float | None):
    assert float(figure(value).replace(",", "")) == pytest.approx(value, rel=5.1e-4)


OBEYED = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_what_a_terminal_would_obey_is_marked():
    assert visible("\x1b[31mred\x07 \x9b2J\r\x7f") == "\ufffd[31mred\ufffd \ufffd2J\ufffd\ufffd"


def test_characters_that_turn_hide_or_move_text_are_marked():
    assert visible("a\u202eb\u2066c\u200bd\ufeff\udc80") == "a\ufffdb\ufffdc\ufffdd\ufffd\ufffd"
    assert visible("\tna\u00efve \U0001f600 \u0627\u0301\n") == "\tna\u00efve \U0001f600 \u0627\u0301\n"


def test_what_is_marked_is_what_unicode_calls_a_control_or_format_character():
    obeyed = {chr(code) for code in range(sys.maxunicode + 1) if visible(chr(code)) != chr(code)}
    named = {chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) in OBEYED}
    assert named - obeyed == {"\t", "\n"}
    # An older Unicode has no name for some of them.
    assert {unicodedata.category(char) for char in obeyed - named} <= {"Cn"}


@given(st.text())
def test_everything_else_stays_in_its_place(text: str):
    shown = visible(text)
    assert len(shown) == len(text)
    assert all(one in (other, "\ufffd") for one, other in zip(shown, text, strict=True))
    assert all(char in "\t\n" or unicodedata.category(char) not in OBEYED for char in shown)
