"""Consent to execute a plug-in is to its very content, and can be taken back."""

from pathlib import Path

import pytest

from benchctl.home import Home
from benchctl.plugin.code import Consent, refusal
from plugins import code_in


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_nobody_has_consented_at_first(tmp_path: Path, home: Home):
    assert not Consent(home).covers(code_in(tmp_path / "books"))


def test_consent_for_one_command_is_not_remembered(tmp_path: Path, home: Home):
    code = code_in(tmp_path / "books")
    assert Consent(home, given=True).covers(code)
    assert not Consent(home).covers(code)


def test_a_remembered_consent_lasts_until_a_file_changes(tmp_path: Path, home: Home):
    code = code_in(tmp_path / "books", {"track.py": "x = 1"})
    Consent(home).remember(code)
    assert Consent(home).covers(code)
    changed = code_in(tmp_path / "books", {"track.py": "x = 2"})
    assert not Consent(home).covers(changed)
    assert Consent(home).covers(code_in(tmp_path / "books", {"track.py": "x = 1"}))


def test_taking_consent_back_covers_what_the_plug_in_was_before(tmp_path: Path, home: Home):
    before = code_in(tmp_path / "books", {"track.py": "x = 1"})
    other = code_in(tmp_path / "other", {"track.py": "y = 1"})
    Consent(home).remember(before)
    Consent(home).remember(other)
    now = code_in(tmp_path / "books", {"track.py": "x = 2"})
    assert Consent(home).forget(now) == 1
    assert not Consent(home).covers(before)
    assert Consent(home).covers(other)
    assert Consent(home).forget(now) == 0


def test_a_damaged_record_of_consent_is_no_hindrance(tmp_path: Path, home: Home):
    (home.trusted / "x.json").write_text("[", encoding="utf-8")
    (home.trusted / "y.json").write_text("[]", encoding="utf-8")
    assert Consent(home).forget(code_in(tmp_path / "books")) == 0


def test_a_refusal_names_the_files_and_both_ways_to_consent(tmp_path: Path):
    code = code_in(tmp_path / "books", {"track.py": "", "a.py": ""})
    said = str(refusal("something needs it", code))
    assert said.startswith("something needs it\n")
    assert "books/track.py, books/a.py" in said
    assert "--trust" in said
    assert f"benchctl track trust {tmp_path / 'books'}" in said


def test_there_is_nothing_to_consent_to_without_a_plug_in():
    assert refusal("something needs it", None).hint == ""
