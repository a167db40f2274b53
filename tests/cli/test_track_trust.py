"""Nothing of a track's plug-in is executed before the user has said so, by any command."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from benchctl.cli.listing import list_group
from benchctl.cli.run import run_command
from benchctl.cli.track import track_group
from benchctl.errors import BenchctlError, UsageError
from plugins import executed, write_track


@pytest.fixture
def books(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("BENCHCTL_HOME", str(home))
    # Nodes run as another user there, who cannot enter pytest's folders; none is started.
    monkeypatch.setattr("benchctl.home._check_reachable", lambda *_: None)
    return write_track(tmp_path / "books")


def call(command: click.Command, *arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [str(one) for one in arguments], catch_exceptions=False)


def plan(books: Path, *options: str) -> None:
    """A run as far as its plan, for which the plug-in is executed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchctl.cli.measuring.check_host", _stop)
        with pytest.raises(BenchctlError, match="planned"):
            call(run_command, "--track", books, "--challenge", "ask", "--docs", "1000", *options)


def _stop(*_: object) -> None:
    raise BenchctlError("planned")


def test_commands_that_only_read_a_track_execute_nothing_of_it(books: Path):
    validated = call(track_group, "validate", books)
    assert "nothing of it was executed" in validated.output
    assert "books/track.py" in validated.output
    assert "nothing of it was executed" in call(track_group, "show", books).output
    call(list_group, "operations", "--track", books)
    assert not executed(books)


def test_a_run_without_consent_says_what_is_missing_and_what_would_be_executed(books: Path):
    with pytest.raises(UsageError) as caught:
        call(run_command, "--track", books, "--challenge", "ask")
    assert caught.value.message == (
        "challenge 'ask' of track 'books' needs a Python plug-in, in track.py: task 'authors': param source "
        "'author-source'; task 'count': operation type 'count-books'; task 'count': scheduler 'lazily'"
    )
    assert "it would execute 1 file in" in caught.value.hint
    assert "--trust" in caught.value.hint
    assert f"benchctl track trust {books}" in caught.value.hint
    assert not executed(books)


def test_a_run_with_trust_executes_it(books: Path):
    plan(books, "--trust")
    assert executed(books)


def test_consent_is_remembered_until_the_plug_in_changes(books: Path):
    said = call(track_group, "trust", books).output
    assert said.startswith("trusted ")
    assert not executed(books)
    assert "you trust it" in call(track_group, "validate", books).output
    assert not executed(books)
    plan(books)
    assert executed(books)
    (books / "executed").unlink()
    (books / "new.py").touch()
    with pytest.raises(UsageError, match="needs a Python plug-in"):
        call(run_command, "--track", books, "--challenge", "ask")
    assert not executed(books)


@pytest.mark.parametrize("command", ["validate", "show"])
def test_a_track_can_be_validated_with_its_plug_in(books: Path, command: str):
    output = call(track_group, command, books, "--trust").output
    assert "it was executed, and registers all that is needed" in output
    assert executed(books)


@pytest.mark.parametrize("command", ["trust", "untrust"])
def test_there_is_nothing_to_trust_without_a_plug_in(books: Path, command: str):
    (books / "track.py").unlink()
    with pytest.raises(UsageError, match="has no Python plug-in"):
        call(track_group, command, books)


def test_a_challenge_that_needs_none_of_it_runs_without_consent(books: Path):
    text = (books / "track.json").read_text(encoding="utf-8")
    plain = text.replace('"param-source": "author-source", "authors": ["a", "b"]', '"body": {}')
    plain = plain.replace('"count-books"', '"refresh"').replace(', "schedule": "lazily"', "")
    (books / "track.json").write_text(plain, encoding="utf-8")
    plan(books)
    assert not executed(books)
