"""Frozen data folders: what a node had committed, whatever it does meanwhile and afterwards."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchctl.engine.filling import ATTEMPTS, freeze

SHARD = "indices/AbC/0"
FILES = (
    f"{SHARD}/index/_0.cfs",
    f"{SHARD}/index/segments_3",
    f"{SHARD}/index/write.lock",
    f"{SHARD}/translog/translog.ckp",
    f"{SHARD}/translog/translog-2.tlog",
    "_state/_1.cfe",
    "_state/segments_9",
    "node.lock",
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for name in FILES:
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")
    return tmp_path / "data"


@pytest.fixture
def frozen(tmp_path: Path) -> Path:
    return tmp_path / "frozen"


def files(root: Path) -> dict[str, Path]:
    return {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}


class Meanwhile:
    """Does something to the node's folder before a file of it is linked, as a node does at any moment."""

    def __init__(self, act: Callable[[], None], times: int) -> None:
        self._link = os.link
        self._act = act
        self._left = times

    def __call__(self, name: str, target: Path, **options: Any) -> None:
        if name == "_0.cfs" and self._left:
            self._left -= 1
            self._act()
        self._link(name, target, **options)


def test_lucene_files_are_linked_and_all_else_is_copied(data: Path, frozen: Path):
    freeze(data, frozen)
    found = files(frozen)
    assert set(found) == {name for name in FILES if not name.endswith(".lock")}
    linked = {name for name, path in found.items() if path.samefile(data / name)}
    assert linked == {f"{SHARD}/index/_0.cfs", f"{SHARD}/index/segments_3"}


def test_what_the_node_does_afterwards_changes_nothing(data: Path, frozen: Path):
    freeze(data, frozen)
    before = {name: path.read_bytes() for name, path in files(frozen).items()}
    (data / SHARD / "translog/translog.ckp").write_text("rewritten in place", encoding="utf-8")
    (data / SHARD / "index/_0.cfs").unlink()
    (data / SHARD / "index/segments_4").touch()
    shutil.rmtree(data / "_state")
    assert {name: path.read_bytes() for name, path in files(frozen).items()} == before


def test_a_file_that_vanishes_in_the_middle_was_part_of_no_commit(
    data: Path, frozen: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(os, "link", Meanwhile((data / SHARD / "index/_0.cfs").unlink, 1))
    freeze(data, frozen)
    assert set(files(frozen)) == {name for name in FILES if not name.endswith((".lock", "_0.cfs"))}


def recommit(data: Path) -> Callable[[], None]:
    def act() -> None:
        (old,) = (data / SHARD / "index").glob("segments_*")
        old.rename(old.with_name(f"segments_{int(old.name[9:]) + 1}"))

    return act


def roll_translog(data: Path) -> Callable[[], None]:
    def act() -> None:
        with (data / SHARD / "translog/translog.ckp").open("a", encoding="utf-8") as file:
            file.write("next")

    return act


@pytest.mark.parametrize("act", [recommit, roll_translog])
def test_a_commit_in_the_middle_starts_it_over(
    data: Path, frozen: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[Path], Callable[[], None]]
):
    monkeypatch.setattr(os, "link", Meanwhile(act(data), ATTEMPTS - 1))
    freeze(data, frozen)
    assert {name: path.read_bytes() for name, path in files(frozen).items()} == {
        name: path.read_bytes() for name, path in files(data).items() if not name.endswith(".lock")
    }


def test_a_node_that_commits_all_the_time_is_given_up(
    data: Path, frozen: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(os, "link", Meanwhile(recommit(data), ATTEMPTS))
    with pytest.raises(OSError, match="commits all the time"):
        freeze(data, frozen)
    assert not frozen.exists()


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EPERM, errno.ENOSPC])
def test_where_linking_is_impossible_nothing_is_left(
    data: Path, frozen: Path, monkeypatch: pytest.MonkeyPatch, number: int
):
    def refuse(*_args: object, **_options: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(OSError, match=os.strerror(number)):
        freeze(data, frozen)
    assert not frozen.exists()


def test_a_link_that_somebody_planted_is_not_followed(data: Path, frozen: Path, tmp_path: Path):
    for link, goal in (("_state/file", tmp_path / "secret"), ("folder", tmp_path)):
        (data / link).symlink_to(goal)
        with pytest.raises(OSError, match="symbolic link"):
            freeze(data, frozen)
        assert not frozen.exists()
        (data / link).unlink()
