"""Copies of prepared indices: linked where Lucene never writes again, and never touching the original."""

import errno
import os
from pathlib import Path

import pytest

from benchctl.engine.index import PreparedIndex, copy_index
from benchctl.errors import BenchctlError
from benchctl.results.model import IndexFacts, IngestReport

FACTS = IndexFacts("k", 1, 1, (), IngestReport(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1))


@pytest.fixture
def prepared(tmp_path: Path) -> PreparedIndex:
    root = tmp_path / "prepared"
    for relative in (
        "data/indices/AbC/0/index/_0.cfs",
        "data/indices/AbC/0/index/segments_3",
        "data/indices/AbC/0/index/write.lock",
        "data/indices/AbC/0/translog/translog.ckp",
        "data/indices/AbC/0/_state/state-1.st",
        "data/_state/_1.cfe",
        "data/node.lock",
    ):
        path = root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(relative, encoding="utf-8")
    return PreparedIndex(root, FACTS)


def files(root: Path) -> dict[str, Path]:
    return {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}


def test_only_lucene_files_are_linked(prepared: PreparedIndex, tmp_path: Path):
    copy_index(prepared, tmp_path / "copy", None)
    linked = {name for name, path in files(tmp_path / "copy").items() if path.stat().st_nlink > 1}
    assert linked == {"indices/AbC/0/index/_0.cfs", "indices/AbC/0/index/segments_3"}
    expected = set(files(prepared.data)) - {"node.lock", "indices/AbC/0/index/write.lock"}
    assert set(files(tmp_path / "copy")) == expected


def test_changing_a_copy_leaves_the_original(prepared: PreparedIndex, tmp_path: Path):
    copy_index(prepared, tmp_path / "copy", None)
    translog = tmp_path / "copy/indices/AbC/0/translog/translog.ckp"
    translog.write_text("rewritten in place", encoding="utf-8")
    (tmp_path / "copy/indices/AbC/0/index/_0.cfs").unlink()
    for name, path in files(prepared.data).items():
        assert path.read_text(encoding="utf-8") == f"data/{name}"


@pytest.mark.parametrize("number", [errno.EXDEV, errno.EPERM, errno.EMLINK])
def test_where_linking_is_impossible_everything_is_copied(
    prepared: PreparedIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
):
    def refuse(*_args: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", refuse)
    copy_index(prepared, tmp_path / "copy", None)
    copied = files(tmp_path / "copy")
    assert (
        copied["indices/AbC/0/index/_0.cfs"].read_text(encoding="utf-8") == "data/indices/AbC/0/index/_0.cfs"
    )
    assert all(path.stat().st_nlink == 1 for path in copied.values())


def test_a_link_that_somebody_planted_is_not_followed(prepared: PreparedIndex, tmp_path: Path):
    secret = tmp_path / "secret"
    secret.write_text("for root's eyes", encoding="utf-8")
    for link, goal in (("data/_state/file", secret), ("data/folder", tmp_path)):
        (prepared.root / link).symlink_to(goal)
        with pytest.raises(BenchctlError, match="symbolic link"):
            copy_index(prepared, tmp_path / "copy", None)
        assert not (tmp_path / "copy").exists()
        (prepared.root / link).unlink()


def test_a_full_disk_is_named_and_leaves_nothing(
    prepared: PreparedIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(*_args: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(BenchctlError, match="No space left") as caught:
        copy_index(prepared, tmp_path / "copy", None)
    assert "free some space" in caught.value.hint
    assert not (tmp_path / "copy").exists()
