"""Runs survive being written and read, and a failed write leaves the old one."""

import errno
import os
import shlex
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchctl.errors import BenchctlError, UsageError
from benchctl.results.model import (
    RECORD_VERSION,
    ForkRecord,
    RunRecord,
)
from benchctl.results.samples import Columns, empty_columns
from benchctl.results.store import RunFolder, RunStore, new_run_id, reference
from builders import make_fork, make_plan, make_record, make_summary
from stored import read_parquet

RecordMaker = Callable[..., RunRecord]


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "runs")


NAMES = ("2026-a", "2026-a-b", "2026-c", "2027-d")


@pytest.fixture
def filled(store: RunStore, record: RecordMaker) -> RunStore:
    for name in reversed(NAMES):
        store.create(name).save(record(name))
    (store.root / "2028-without").mkdir()
    return store


def test_folders_with_a_record_are_listed_oldest_first_and_read(filled: RunStore, record: RecordMaker):
    assert [folder.path.name for folder in filled.folders()] == [*NAMES]
    assert filled.folders()[0].load() == record("2026-a")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("latest", "2027-d"),
        ("2027", "2027-d"),
        ("2026-a", "2026-a"),
        ("2026-a-", "2026-a-b"),
        ("d", "2027-d"),
        ("a-b", "2026-a-b"),
    ],
)
def test_a_run_is_found_by_id_or_by_a_beginning_or_end_that_it_has_alone(
    filled: RunStore, name: str, found: str
):
    assert filled.find(name).path == filled.root / found


def test_a_path_comes_first_wherever_it_is(
    filled: RunStore, record: RecordMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    elsewhere = RunStore(tmp_path).create("2027")
    elsewhere.save(record())
    monkeypatch.chdir(tmp_path)
    assert filled.find(str(elsewhere.path)) == filled.find("2027") == elsewhere


@pytest.mark.parametrize("name", ["", "x", "x" * 300, "2028-without", "2026-a-b-c", "-d", "7-d"])
def test_what_fits_none_is_refused(filled: RunStore, name: str):
    with pytest.raises(UsageError, match=f"no such run '{name}' in") as caught:
        filled.find(name)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("name", "found"),
    [("2026", "3 runs in .*2026-a, 2026-a-b, 2026-c"), ("e", "2 runs"), ("2029", "2 runs")],
)
def test_what_fits_several_is_refused_with_some_of_them(
    filled: RunStore, record: RecordMaker, name: str, found: str
):
    for other in ("2029-e", "2030-e", "2031-2029"):
        filled.create(other).save(record(other))
    with pytest.raises(UsageError, match=f"'{name}' is ambiguous: it matches {found}"):
        filled.find(name)


def test_a_store_that_was_never_made_is_empty_and_not_made_by_looking(store: RunStore, tmp_path: Path):
    assert store.folders() == []
    with pytest.raises(UsageError, match="no such run 'latest'"):
        store.find("latest")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_may_not_be_looked_into_is_listed(filled: RunStore, monkeypatch: pytest.MonkeyPatch):
    closed = filled.root / "2028-without"
    stat = Path.stat

    def refused(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if path.parent == closed:
            raise PermissionError
        return stat(path, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(Path, "stat", refused)
    assert filled.folders()[-1].path == closed


def test_latest_is_the_newest_finished_run_and_newer_ones_are_told_of(store: RunStore, record: RecordMaker):
    told: list[str] = []
    store = RunStore(store.root, told.append)
    for name, status in (("1-a", "complete"), ("2-b", "complete"), ("3-c", "failed"), ("4-d", "running")):
        store.create(name).save(record(name, status=status))
    store.create("5-e").record_path.write_text("{", encoding="utf-8")
    assert store.find("latest").path.name == "2-b"
    (text,) = told
    assert text.startswith("latest is 2-b, the newest finished run; newer: 5-e (")
    assert text.endswith("is damaged: Input data was truncated), 4-d (interrupted), 3-c (failed)")
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
    assert folder.load().status == "interrupted"
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
    with pytest.raises(BenchctlError, match="cannot keep runs in"):
        RunStore(tmp_path / "file" / "runs").open()


def test_a_run_that_ended_early_has_the_forks_of_the_blocks_that_it_began():
    forks = tuple(make_fork(name, block) for block in range(3) for name in ("es", "os"))
    running = make_record(plan=make_plan(forks=50), forks=forks[:-1])
    assert (running.blocks, running.total, len(running.missing())) == (50, 100, 95)
    ended = msgspec.structs.replace(running, stopped="early")
    assert (ended.blocks, ended.total, ended.missing()) == (3, 6, ((2, "os"),))
    assert msgspec.structs.replace(ended, forks=()).missing() == ()


FORK = make_fork("es", 1, make_summary("range", 3.0))


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        *(
            (
                {
                    "forks": (
                        make_fork("os", 2, msgspec.structs.replace(make_summary("range", 3.0), **place)),
                    )
                },
                "fork 2 of os has figures of a task that is not in its plan",
            )
            for place in ({"schedule": 1}, {"task": 1}, {"schedule": -1}, {"task": -1})
        ),
        (
            {"forks": (FORK, msgspec.structs.replace(FORK, status="failed"))},
            "it lists fork 1 of es 2 times",
        ),
        ({"plan": make_plan(variants=())}, "its plan has no variant"),
    ],
)
def test_what_contradicts_itself_is_refused(tmp_path: Path, changes: dict[str, Any], wrong: str):
    folder = RunFolder(tmp_path)
    folder.save(make_record(**changes))
    with pytest.raises(BenchctlError, match=rf"run\.json is damaged: {wrong}"):
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


@pytest.mark.parametrize("change", [("114", "914"), ('"sha256": "', '"sha256": "0'), ("\n}", " }")])
def test_a_record_that_is_changed_is_damaged(tmp_path: Path, change: tuple[str, str]):
    folder = RunFolder(tmp_path)
    folder.save(make_record("t114", status="complete"))
    assert folder.load().id == "t114"
    text = folder.record_path.read_text(encoding="utf-8")
    folder.record_path.write_text(text.replace(*change), encoding="utf-8")
    with pytest.raises(BenchctlError, match="is damaged: its content is not what was written"):
        folder.load()
    folder.record_path.write_text(text.replace('"sha256"', '"sha1"'), encoding="utf-8")
    with pytest.raises(BenchctlError, match="is damaged"):
        folder.load()
