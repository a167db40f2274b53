"""`benchctl node`: which node is meant where none is named."""

import os
from pathlib import Path

import msgspec
import psutil
import pytest
from click.testing import CliRunner, Result

from benchctl.cli import root
from benchctl.errors import UsageError
from benchctl.home import Home
from benchctl.run.standalone import STATE_NAME, NodeState, node_folder


@pytest.fixture
def home(home: Path) -> Home:
    return Home(home)


@pytest.fixture
def terminated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The processes that were asked to end; this one, which serves all nodes here, goes on."""
    asked: list[int] = []
    monkeypatch.setattr(psutil.Process, "terminate", lambda process: asked.append(process.pid))
    monkeypatch.setattr(psutil.Process, "wait", lambda *_: 0)
    return asked


def up(home: Home, *variants: str) -> None:
    for variant in variants:
        folder = node_folder(home, variant).path
        (folder / "boot").mkdir(parents=True)
        (folder / "boot" / "stdout.log").write_text(f"{variant} says\n", encoding="utf-8")
        state = NodeState(variant, "1.0.0", "http://x", os.getpid(), psutil.Process().create_time(), 1)
        (folder / STATE_NAME).write_bytes(msgspec.json.encode(state))


def call(*arguments: str) -> Result:
    return CliRunner().invoke(root, ["node", *arguments])


def test_the_only_node_that_is_up_is_stopped_whatever_it_is(home: Home, terminated: list[int]):
    up(home, "os")
    assert call("logs").stdout == "os says\n"
    assert call("stop").stdout == "os is stopped\n"
    assert terminated == [os.getpid()]
    assert node_folder(home, "os").path.is_dir()
    assert call("stop", "--remove").stdout == "os is stopped\n"
    assert not node_folder(home, "os").path.exists()


def test_with_several_nodes_up_one_has_to_be_named(home: Home, terminated: list[int]):
    up(home, "es", "os")
    for verb in ("stop", "logs"):
        refused = call(verb)
        assert isinstance(refused.exception, UsageError)
        assert str(refused.exception) == f"2 nodes are up: es, os\n  hint: say which: benchctl node {verb} es"
    assert terminated == []
    assert call("stop", "os").stdout == "os is stopped\n"


def test_with_no_node_up_there_is_nothing_to_stop(home: Home):
    refused = call("stop")
    assert str(refused.exception) == (
        "no node is up\n  hint: to reach what one left behind, name it: benchctl node stop es"
    )
    assert list(home.nodes.iterdir()) == []
