"""Fixtures of the engine tests: homes of their own, a server that archives come from, a fake node."""

import pwd
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchctl.home import Home, Owner
from engine.archive_server import Server, serving
from engine.fake_node import FakeNode, fake_node


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def nobody() -> Owner:
    """Another user, without rights; tests that ask for it need root."""
    entry = pwd.getpwnam("nobody")
    return Owner(entry.pw_name, entry.pw_uid, entry.pw_gid)


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that everybody can reach; pytest's own is private."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def nobodys_home(public: Path, nobody: Owner) -> Home:
    """A home within `public` whose nodes run as nobody."""
    return Home(public / "home", nobody)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving() as started:
        yield started


@pytest.fixture
def node() -> Iterator[FakeNode]:
    with fake_node() as started:
        yield started
