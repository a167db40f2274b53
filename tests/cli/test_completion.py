"""Values that shells complete."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from benchctl.cli import root
from benchctl.results.store import RunStore
from builders import make_record
from golden import Cases

RUN = "20260101-000000-c-0001"


@pytest.fixture(autouse=True)
def stored_run(home: Path) -> None:
    RunStore(home / "runs").create(RUN).save(make_record(RUN))


def offered(*words: str) -> list[str]:
    *before, incomplete = words
    complete = ShellComplete(root, {}, "benchctl", "_BENCHCTL_COMPLETE")
    return [item.value for item in complete.get_completions(before, incomplete)]


def test_names_are_offered(cases: Cases):
    cases("completion", lambda words: " ".join(offered(*json.loads(words))))


def test_pressing_tab_makes_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BENCHCTL_HOME", str(tmp_path / "none"))
    assert offered("show", "") == ["latest"]
    assert not (tmp_path / "none").exists()


def test_runs_of_another_folder_are_offered(tmp_path: Path):
    RunStore(tmp_path / "other").create("x-1").save(make_record("x-1"))
    assert offered("show", "--runs", str(tmp_path / "other"), "") == ["latest", "x-1"]


def test_a_challenge_may_be_a_file():
    complete = ShellComplete(root, {}, "benchctl", "_BENCHCTL_COMPLETE")
    (item,) = complete.get_completions(["run", "--challenge"], "./my")
    assert (item.type, item.value) == ("file", "./my")


def test_bash_completes_after_the_documented_line(home: Path):
    """The script itself, with benchctl on the path as a shell finds it."""
    program = home / "benchctl"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m benchctl "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    script = (
        'eval "$(_BENCHCTL_COMPLETE=bash_source benchctl)"; COMP_WORDS=(benchctl nig); COMP_CWORD=1; '
        '_benchctl_completion benchctl; echo "${COMPREPLY[@]}"'
    )
    environ = {**os.environ, "PATH": f"{home}:{os.environ['PATH']}"}
    done = subprocess.run(
        [shutil.which("bash") or "bash", "-c", script],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("nightly\n", "")
