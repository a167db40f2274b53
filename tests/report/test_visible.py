import sys
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from benchctl.report.numbers import visible

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
