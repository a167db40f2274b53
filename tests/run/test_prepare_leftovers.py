"""Logs of failed node starts outlive the scratch folder, and the error says where they are."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from benchctl.errors import BenchctlError
from benchctl.run.prepare import keep_logs, logs_kept_of_failure


@pytest.fixture
def boot_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch" / "boot-0"
    folder.mkdir(parents=True)
    (folder / "stdout.log").write_text("why", encoding="utf-8")
    return folder


def test_a_failure_names_the_place_where_its_logs_stay(boot_folder: Path, tmp_path: Path):
    target = tmp_path / "kept" / "boot-0"
    target.mkdir(parents=True)
    (target / "old").touch()
    with pytest.raises(BenchctlError) as caught, logs_kept_of_failure(boot_folder, target):
        raise BenchctlError(f"died (logs in {boot_folder})", hint=f"see {boot_folder}")
    assert caught.value.message == f"died (logs in {target})"
    assert caught.value.hint == f"see {target}"
    assert [path.name for path in target.iterdir()] == ["stdout.log"]


def test_logs_that_cannot_be_kept_do_not_hide_the_failure(
    boot_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(*_args: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "move", full)
    with (
        pytest.raises(BenchctlError, match=f"died .logs in {boot_folder}"),
        logs_kept_of_failure(boot_folder, tmp_path / "kept"),
    ):
        raise BenchctlError(f"died (logs in {boot_folder})")
    with pytest.raises(BenchctlError, match="No space left") as caught:
        keep_logs(boot_folder, tmp_path / "kept")
    assert "free some space" in caught.value.hint


def test_a_start_that_never_was_leaves_nothing(tmp_path: Path):
    keep_logs(tmp_path / "missing", tmp_path / "kept")
    assert not (tmp_path / "kept").exists()
