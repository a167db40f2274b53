"""Standard output that is closed, or that cannot write every character."""

import io
import sys

import pytest

from benchctl.cli.streams import accept_all_characters, is_terminal


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
