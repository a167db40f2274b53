"""Runs survive being written and read, and a failed write leaves the old one."""

import errno
import os
import shlex
from collections.abc import Callable
from pathlib import Path

import duckdb
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.errors import BenchctlError, UsageError
from benchctl.results.model import RECORD_VERSION, ForkRecord, RunRecord
from benchctl.results.samples import SAMPLE_DTYPES, concatenate, empty_columns, select
from benchctl.results.store import RunFolder, RunStore, new_run_id, reference

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
    assert store.find(str(folders["20260101-000000-a-0001"].path)).load().id == "20260101-000000-a-0001"
    with pytest.raises(UsageError, match="fits 2 runs"):
        store.find("2026")
    with pytest.raises(UsageError, match="no run"):
        store.find("1999")


def test_a_damaged_or_foreign_record_is_named(store: RunStore, record: RecordMaker):
    folder = store.create("x")
    folder.record_path.write_text("{", encoding="utf-8")
    with pytest.raises(BenchctlError, match="damaged"):
        folder.load()
    newer = msgspec.structs.replace(record(), record_version=RECORD_VERSION + 1)
    folder.save(newer)
    with pytest.raises(BenchctlError, match="record version"):
        folder.load()
    assert list(store.runs()) == []


@pytest.mark.parametrize(("owner", "name"), [(Path, "write_bytes"), (os, "replace")])
def test_a_failed_write_leaves_the_old_record_and_no_rubbish(
    store: RunStore, monkeypatch: pytest.MonkeyPatch, record: RecordMaker, owner: object, name: str
):
    folder = store.create("x")
    folder.save(record())

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


@settings(max_examples=20, deadline=None)
@given(rows=st.integers(0, 50), seed=st.integers(0, 2**32 - 1))
def test_samples_survive_parquet_bit_by_bit(tmp_path_factory: pytest.TempPathFactory, rows: int, seed: int):
    random = np.random.default_rng(seed)
    columns = {
        name: random.integers(0, 2, rows).astype(dtype)
        if dtype == np.bool_
        else random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, rows, dtype=dtype)
        for name, dtype in SAMPLE_DTYPES.items()
    }
    folder = RunFolder(tmp_path_factory.mktemp("it's a run"))
    back = folder.read_samples(folder.write_samples(columns, "es@8.19.0", 3))
    for name, dtype in SAMPLE_DTYPES.items():
        assert back[name].dtype == dtype
        np.testing.assert_array_equal(back[name], columns[name])


def test_anybody_with_duckdb_sees_the_samples(store: RunStore):
    folder = store.create("x")
    columns = empty_columns(3)
    columns["end_ns"][:] = [5, 6, 7]
    folder.write_samples(columns, "es", 0)
    with duckdb.connect() as connection:
        query = "SELECT sum(end_ns) FROM read_parquet(?)"
        found = connection.execute(query, [f"{store.root}/*/forks/*.parquet"]).fetchall()
    assert found == [(18,)]


def test_columns_join_and_select():
    first, second = empty_columns(2), empty_columns(1)
    second["task"][:] = 4
    both = concatenate([first, second])
    assert both["task"].tolist() == [0, 0, 4]
    assert select(both, both["task"] == 4)["task"].tolist() == [4]
    assert concatenate([])["task"].shape == (0,)


@given(st.text())
def test_a_run_id_is_a_plain_file_name(label: str):
    name = new_run_id(label, "20260101-000000")
    assert "/" not in name
    assert "\0" not in name
    assert len(name.encode()) < 255


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


def test_a_name_that_no_file_can_have_is_no_run(store: RunStore):
    for name in ("", "x" * 300):
        with pytest.raises(UsageError, match="no run"):
            store.find(name)
