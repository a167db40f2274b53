"""Runs survive being written and read, and a failed write leaves the old one."""

import errno
import os
import shlex
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from benchctl.errors import BenchctlError, UsageError
from benchctl.results.model import (
    RECORD_VERSION,
    ForkRecord,
    RunRecord,
)
from benchctl.results.samples import Columns, empty_columns
from benchctl.results.store import RunFolder, RunStore, contradiction, new_run_id, reference
from builders import make_fork, make_plan, make_record, make_summary
from stored import read_parquet

RecordMaker = Callable[..., RunRecord]


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "runs")


def test_a_record_survives_and_is_found_by_id_beginning_path_and_latest(store: RunStore, record: RecordMaker):
    folders = {}
    for name in ("20260101-000000-a-0001", "20260102-000000-b-0002"):
        folders[name] = store.create(name)
        folders[name].save(record(name))
    assert store.find("20260101").load() == record("20260101-000000-a-0001")
    assert store.find("latest").path.name == "20260102-000000-b-0002"
    assert store.find("0001").path.name == "20260101-000000-a-0001"
    assert store.find(str(folders["20260101-000000-a-0001"].path)).load().id == "20260101-000000-a-0001"
    with pytest.raises(UsageError, match="matches 2 runs"):
        store.find("2026")
    with pytest.raises(UsageError, match="no such run"):
        store.find("1999")


def test_latest_is_the_newest_finished_run_and_newer_ones_are_told_of(store: RunStore, record: RecordMaker):
    told: list[str] = []
    store = RunStore(store.root, told.append)
    for name, status in (("1-a", "complete"), ("2-b", "complete"), ("3-c", "failed"), ("4-d", "running")):
        store.create(name).save(record(name, status=status))
    store.create("5-e").record_path.write_text("{", encoding="utf-8")
    assert store.find("latest").path.name == "2-b"
    (text,) = told
    assert text.startswith("latest is 2-b, the newest finished run; newer: 5-e (")
    assert text.endswith("is damaged: Input data was truncated), 4-d (running, or cut off), 3-c (failed)")
    # Whoever goes on with a run means the newest of all.
    assert store.find("latest", finished=False).path.name == "5-e"
    assert len(told) == 1


@pytest.mark.parametrize("version", [RECORD_VERSION - 1, RECORD_VERSION + 1])
def test_a_record_of_another_version_is_refused_and_the_others_are_read(
    store: RunStore, record: RecordMaker, version: int
):
    other, own = store.create("1-other"), store.create("2-own")
    own.save(record())
    other.save(msgspec.structs.replace(record(), record_version=version))
    with pytest.raises(BenchctlError) as refused:
        other.load()
    assert refused.value.message == (
        f"{other.record_path}: unsupported record version {version} (expected {RECORD_VERSION})"
    )
    assert refused.value.hint
    notes: list[str] = []
    assert [folder for folder, _ in store.runs(notes.append)] == [own]
    assert notes == [refused.value.message]


@pytest.mark.parametrize(("owner", "name"), [(Path, "write_bytes"), (os, "replace")])
def test_a_failed_write_leaves_the_old_record_and_no_rubbish(
    store: RunStore, monkeypatch: pytest.MonkeyPatch, record: RecordMaker, owner: object, name: str
):
    folder = store.create("x")
    folder.save(record(status="running"))

    def full(*_args: object, **_kwargs: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(owner, name, full)
    with pytest.raises(BenchctlError, match="No space left"):
        folder.save(record(status="complete"))
    monkeypatch.undo()
    assert folder.load().status == "running"
    assert sorted(path.name for path in folder.path.iterdir()) == ["forks", "run.json"]


def test_missing_forks_are_the_planned_ones_that_are_not_done(
    record: RecordMaker, fork: Callable[..., ForkRecord]
):
    run = msgspec.structs.replace(
        record(), forks=(fork("es", 0), fork("os", 0, status="failed"), fork("os", 1))
    )
    assert run.missing() == ((0, "os"), (1, "es"))
    assert [done.block for done in run.done("os")] == [1]


def test_samples_of_a_fork_are_found_where_the_record_says(store: RunStore):
    folder = store.create("x")
    chunks = [empty_columns(2), empty_columns(1)]
    chunks[1]["end_ns"][:] = 9
    relative = folder.write_samples(iter(chunks), "es@8.19.0", 3)
    assert relative == "forks/003-es@8.19.0.parquet"
    assert read_parquet(folder.path / relative)["end_ns"].tolist() == [0, 0, 9]


@pytest.mark.parametrize("name", ["/etc/passwd", "../other/forks/a.parquet", "forks/../../a.parquet"])
def test_a_record_names_no_file_outside_its_folder(store: RunStore, name: str):
    folder = store.create("r")
    assert folder.inside("forks/000-es.parquet") == folder.path / "forks/000-es.parquet"
    with pytest.raises(BenchctlError, match="not in the run's directory"):
        folder.inside(name)


def test_samples_that_cannot_be_written_leave_no_rubbish(store: RunStore):
    folder = store.create("x")

    def failing() -> Iterator[Columns]:
        yield empty_columns(2)
        yield empty_columns(2)
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(BenchctlError, match="No space left"):
        folder.write_samples(failing(), "es", 0)
    assert list((folder.path / "forks").iterdir()) == []


@pytest.mark.parametrize(
    ("newest", "time"),
    [
        ("20260101-115959", "20260101-120000"),
        ("20260101-120000", "20260101-120001"),
        ("20260101-235959", "20260102-000000"),
        ("20260103-000000", "20260101-120000"),  # a clock that had not been set
        ("20260101-995959", "20260101-120000"),
        ("x", "20260101-120000"),
    ],
)
def test_a_new_run_sorts_behind_the_others_though_the_clock_was_set_back(
    store: RunStore, record: RecordMaker, newest: str, time: str
):
    store.create(f"{newest}-c-ffff").save(record("c"))
    assert store.new_id("c", datetime(2026, 1, 1, 12, tzinfo=UTC)).startswith(f"{time}-c-")


@pytest.mark.parametrize("letter", ["a", "\u00e4", "\u4e16", "\U00010400"])
def test_a_long_label_is_cut_at_a_whole_letter_before_it_is_too_long_for_a_folder(letter: str):
    name = new_run_id(100 * letter, "20260101-000000")
    label = name.removeprefix("20260101-000000-")[:-5]
    assert label == letter * (60 // len(letter.encode()))


def test_a_command_line_finds_a_run_wherever_it_lies(tmp_path: Path, record: RecordMaker):
    usual, other = RunStore(tmp_path / "home" / "runs"), RunStore(tmp_path / "my own" / "runs")
    for store in (usual, other):
        folder = store.create("x")
        folder.save(record("x"))
        (named,) = shlex.split(reference(folder, usual.root))
        assert usual.find(named).path == folder.path
    assert reference(usual.find("x"), usual.root) == "x"


def test_a_folder_that_cannot_keep_runs_is_refused_at_once(tmp_path: Path):
    RunStore(tmp_path / "new" / "runs").open()
    (tmp_path / "file").touch()
    with pytest.raises(BenchctlError, match="runs cannot be kept in") as caught:
        RunStore(tmp_path / "file" / "runs").open()
    assert "--runs" in caught.value.hint


def test_a_run_that_ended_early_has_the_forks_of_the_blocks_that_it_began():
    forks = tuple(make_fork(name, block) for block in range(3) for name in ("es", "os"))
    running = make_record(plan=make_plan(forks=50), forks=forks[:-1])
    assert (running.blocks, running.total, len(running.missing())) == (50, 100, 95)
    ended = msgspec.structs.replace(running, stopped="early")
    assert (ended.blocks, ended.total, ended.missing()) == (3, 6, ((2, "os"),))
    assert msgspec.structs.replace(ended, forks=()).missing() == ()


@pytest.mark.parametrize("place", [{"schedule": 1}, {"task": 1}, {"schedule": -1}, {"task": -1}])
def test_figures_are_of_a_task_of_the_plan(place: dict[str, int]):
    summary = msgspec.structs.replace(make_summary("range", 3.0), **place)
    assert (
        contradiction(make_record(forks=(make_fork("os", 2, summary),)))
        == "fork 2 of os has figures of a task that is not in its plan"
    )


def test_a_fork_is_listed_once():
    fork = make_fork("es", 1, make_summary("range", 3.0))
    failed = msgspec.structs.replace(fork, status="failed")
    assert contradiction(make_record(forks=(fork, failed))) == "it lists fork 1 of es 2 times"


def test_what_is_wrong_is_said_when_a_record_is_read(tmp_path: Path):
    folder = RunFolder(tmp_path)
    folder.save(make_record(plan=make_plan(variants=())))
    with pytest.raises(BenchctlError, match=r"run\.json is damaged: its plan has no variant"):
        folder.load()


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("names", [("0-copy", "r1", "r1-copy"), ("a", "b")])
def test_copies_of_a_run_count_once(
    store: RunStore, record: RecordMaker, names: tuple[str, ...], *, newest_first: bool
):
    for name in names:
        store.create(name).save(record("r1"))
    skipped: list[str] = []
    (kept,) = store.runs(skipped.append, newest_first=newest_first)
    assert kept[0].path.name in ({"r1"} & {*names} or {*names})
    assert len(skipped) == len(names) - 1
    assert all("another copy of run r1" in text for text in skipped)
    assert [one.id for one in store.newest()] == ["r1"]
