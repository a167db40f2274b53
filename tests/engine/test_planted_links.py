"""What runs as the nodes' user may put a link anywhere in the nodes' folders; benchctl, as root, reads on."""

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from benchctl import disk
from benchctl.engine.node import Node
from benchctl.engine.prepared_index import contents, copy, link
from benchctl.engine.process import last_lines, read_pauses
from benchctl.errors import BenchctlError
from benchctl.evidence.collectors import InliningCollector, Scene

SECRET = "[1ns][7] for root's eyes\n" * 10_000


@pytest.fixture(autouse=True)
def theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    """All folders of the test belong to the nodes' user."""
    monkeypatch.setattr(disk, "_nodes_uid", os.getuid)


def collected_inlining(root: Path) -> None:
    (root / "evidence").mkdir()
    (root / "evidence" / "jvm.log").touch()
    collector = InliningCollector(Scene(root / "evidence", root))
    collector.begin(cast("Node", SimpleNamespace(stdout=root / "logs" / "stdout.log")))
    collector.end()


READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "pauses": ("logs/gc.log", lambda root: read_pauses(root / "logs", 7, 0)),
    "evidence of inlining": ("logs/stdout.log", collected_inlining),
    "copied file": ("logs/x", lambda root: copy(root / "logs" / "x", root / "copy")),
    "linked file": ("logs/x", lambda root: link(root / "logs" / "x", root / "copy")),
    "file of an index": ("logs/_state/_0.st", lambda root: contents(root / "logs")),
}


def secret_of(tmp_path: Path, name: str) -> Path:
    secret = tmp_path / "roots" / name
    secret.parent.mkdir(parents=True)
    secret.write_text(SECRET, encoding="utf-8")
    return secret


def found_out(root: Path) -> bool:
    """Whether the secret got to where the nodes' user may read it."""
    return any(path.is_file() and not path.is_symlink() and path.stat().st_size for path in root.rglob("*"))


@pytest.mark.parametrize("what", READERS)
def test_a_link_in_the_place_of_a_folder_is_not_followed(tmp_path: Path, what: str):
    name, read = READERS[what]
    secret = secret_of(tmp_path, name)
    root = tmp_path / "node"
    root.mkdir()
    (root / "logs").symlink_to(tmp_path / "roots" / "logs")
    with pytest.raises((OSError, BenchctlError)):
        read(root)
    assert not found_out(root)
    assert (secret.read_text(encoding="utf-8"), secret.stat().st_nlink) == (SECRET, 1)


@pytest.mark.parametrize("what", sorted(READERS.keys() - {"linked file"}))
def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path, what: str):
    name, read = READERS[what]
    secret = secret_of(tmp_path, "secret")
    planted = tmp_path / "node" / name
    planted.parent.mkdir(parents=True)
    planted.symlink_to(secret)
    with pytest.raises((OSError, BenchctlError)):
        read(tmp_path / "node")
    assert not found_out(tmp_path / "node")


def test_of_a_log_that_is_a_link_only_that_is_told(tmp_path: Path):
    (tmp_path / "stdout.log").symlink_to(secret_of(tmp_path, "secret"))
    (line,) = last_lines(tmp_path / "stdout.log", 3)
    assert line.startswith(f"{tmp_path}/stdout.log cannot be read: ")


def test_links_of_others_lead_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A home may lie behind links of whoever keeps the machine."""
    monkeypatch.setattr(disk, "_nodes_uid", lambda: None)
    (tmp_path / "home").symlink_to(secret_of(tmp_path, "stdout.log").parent)
    assert last_lines(tmp_path / "home" / "stdout.log", 1) == SECRET.splitlines()[:1]
