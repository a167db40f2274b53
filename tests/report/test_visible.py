from hypothesis import given
from hypothesis import strategies as st

from benchctl.report.visible import visible


def test_what_a_terminal_would_obey_is_marked():
    assert visible("\x1b[31mred\x07 \x9b2J\r\x7f") == "\ufffd[31mred\ufffd \ufffd2J\ufffd\ufffd"


@given(st.text())
def test_everything_else_stays_in_its_place(text: str):
    shown = visible(text)
    assert len(shown) == len(text)
    assert all(one in (other, "\ufffd") for one, other in zip(shown, text, strict=True))
    assert all(char in "\t\n" or char.isprintable() or ord(char) >= 0xA0 for char in shown)
