"""Standard output that is closed, or that cannot write every character."""

import io
import sys

import pytest

from benchctl.cli.streams import accept_all_characters, complain, emit, is_terminal, say, shown


def test_a_closed_stream_is_no_terminal():
    assert not is_terminal(None)
    assert not is_terminal(io.StringIO())


def test_what_an_encoding_lacks_becomes_a_question_mark(monkeypatch: pytest.MonkeyPatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    monkeypatch.setattr(sys, "stderr", None)
    accept_all_characters()
    sys.stdout.write("a \u2500 \udcff\n")
    sys.stdout.flush()
    assert raw.getvalue() == b"a ? ?\n"


class Terminal(io.StringIO):
    """Standard output of somebody who looks at it."""

    def isatty(self) -> bool:
        return True


FOREIGN = "range\x1b[31m\x9b2J\tfast\n"
SHOWN = "range\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}2J\tfast\n"


def test_what_people_read_has_no_control_characters(capsys: pytest.CaptureFixture[str]):
    assert shown(FOREIGN) == SHOWN
    say(FOREIGN, nl=False)
    complain(FOREIGN)
    assert tuple(capsys.readouterr()) == (SHOWN, f"{SHOWN}\n")


def test_programs_get_every_character_and_terminals_none_that_they_would_obey(
    monkeypatch: pytest.MonkeyPatch,
):
    for stream, written in ((io.StringIO(), FOREIGN), (Terminal(), SHOWN)):
        monkeypatch.setattr(sys, "stdout", stream)
        emit(FOREIGN)
        assert stream.getvalue() == written
