"""Fixtures of the engine tests: a home of their own, a server that archives come from, a fake node."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchctl.home import Home
from engine.archive_server import Server, serving
from engine.fake_node import FakeNode, fake_node


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving() as started:
        yield started


@pytest.fixture
def node() -> Iterator[FakeNode]:
    with fake_node() as started:
        yield started
