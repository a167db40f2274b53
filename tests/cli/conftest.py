"""What tests of commands share: an empty home, and the command line."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from benchctl.cli import root
from benchctl.cli.boundary import guarded


class Ended(NamedTuple):
    """How a command ended, and what it printed."""

    status: int
    out: str
    err: str


Benchctl = Callable[..., Ended]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home, though nodes' user cannot enter pytest's directories: none is started."""
    monkeypatch.setattr("benchctl.home._check_reachable", lambda *_: None)
    monkeypatch.setenv("BENCHCTL_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def benchctl(capsys: pytest.CaptureFixture[str]) -> Benchctl:
    """Call the command line as a user does."""

    def call(*arguments: object) -> Ended:
        status = guarded(root, list(map(str, arguments)))
        return Ended(int(status), *capsys.readouterr())

    return call
