"""`benchctl nightly run`: what is refused before anybody waits for a lock."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import benchctl.home as boundary_home
from benchctl.errors import UsageError
from benchctl.nightly.commands.run import run_command


def test_a_challenge_that_nobody_has_is_found_before_any_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(boundary_home, "_check_reachable", lambda *_: None)
    suite = tmp_path / "big5.yml"
    suite.write_text("variants: [es@8.19.0]\nchallenges: [range-onyl]\n")
    ended = CliRunner().invoke(run_command, [str(suite)], env={"BENCHCTL_HOME": str(tmp_path / "home")})
    assert isinstance(ended.exception, UsageError)
    assert ended.exception.message.startswith(f"{suite}:2:14: challenges, entry 1: there is no challenge")
    assert not list(tmp_path.glob("home/nightly/*"))
