"""What tests of commands share: an empty home."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home, though nodes' user cannot enter pytest's directories: none is started."""
    monkeypatch.setattr("benchctl.home._check_reachable", lambda *_: None)
    monkeypatch.setenv("BENCHCTL_HOME", str(tmp_path))
    return tmp_path
