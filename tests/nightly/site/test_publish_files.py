"""Files of a site: whole, left alone when unchanged, and only ours are removed."""

import os
from pathlib import Path

import pytest

from benchctl.disk import replacing
from benchctl.errors import BenchctlError
from benchctl.nightly.site.publish import MARK, remove_partials, remove_stale
from benchctl.report.html.page import write_changed


def test_a_file_is_written_once_and_again_only_when_its_text_changes(tmp_path: Path):
    path = tmp_path / "a" / "b.html"
    assert write_changed(path, "é")
    os.utime(path, (1, 1))
    assert not write_changed(path, "é")
    assert path.stat().st_mtime == 1
    assert write_changed(path, "e")
    assert path.read_text(encoding="utf-8") == "e"
    assert [one.name for one in path.parent.iterdir()] == ["b.html"]


def test_a_folder_in_its_place_is_an_error_with_the_path(tmp_path: Path):
    (tmp_path / "b.html" / "x").mkdir(parents=True)
    with pytest.raises(BenchctlError, match=r"cannot write .*b\.html"):
        write_changed(tmp_path / "b.html", "x")
    assert [one.name for one in tmp_path.iterdir()] == ["b.html"]


def test_stale_pages_go_and_files_of_others_stay(tmp_path: Path):
    for name in ("old.html", "kept.html"):
        (tmp_path / name).write_text(f"<!DOCTYPE html><head>{MARK}1", encoding="utf-8")
    (tmp_path / "mine.html").write_text("my notes", encoding="utf-8")
    (tmp_path / "old.txt").write_text(MARK, encoding="utf-8")
    assert remove_stale(tmp_path, {"kept.html"}) == ["old.html"]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["kept.html", "mine.html", "old.txt"]


def test_a_folder_that_is_not_there_holds_nothing_stale(tmp_path: Path):
    assert remove_stale(tmp_path / "none", set()) == []


def test_what_a_killed_writer_left_behind_goes(tmp_path: Path):
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / ".a.html.123.partial").write_text("half", encoding="utf-8")
    with replacing(tmp_path / "tasks" / "b.html") as partial:
        partial.touch()
        killed = partial.name
    (tmp_path / "tasks" / "b.html").rename(tmp_path / "tasks" / killed)
    (tmp_path / "tasks" / "a.html").write_text("whole", encoding="utf-8")
    (tmp_path / "tasks" / ".mine.partial").write_text("not ours", encoding="utf-8")
    (tmp_path / "tasks" / "more").mkdir()
    (tmp_path / "tasks" / "more" / ".b.html.123.partial").write_text("elsewhere", encoding="utf-8")
    remove_partials((tmp_path, tmp_path / "tasks"))
    assert sorted(one.name for one in (tmp_path / "tasks").iterdir()) == [".mine.partial", "a.html", "more"]
    assert list((tmp_path / "tasks" / "more").iterdir())
