"""Reports read what charts need, in bounded pieces, from every file that benchctl has written."""

from pathlib import Path

import duckdb
import numpy as np
import pytest

from benchctl.errors import BenchctlError
from benchctl.results.samples import (
    CHART_COLUMNS,
    CHUNK_ROWS,
    SAMPLE_DTYPES,
    Columns,
    SampleFile,
    TaskWindow,
    empty_columns,
    write_parquet,
)
from benchctl.results.store import RunFolder, fork_sources, task_windows
from builders import make_fork
from sampled import make_samples
from stored import samples


def numbered(rows: int, start: int = 0) -> Columns:
    numbers = np.arange(rows)
    starts = numbers + start
    return empty_columns(rows) | {"start_ns": starts, "end_ns": starts + 1}


def test_samples_come_back_in_order_in_the_columns_of_charts_as_often_as_asked(tmp_path: Path):
    write_parquet([numbered(5)], tmp_path / "x.parquet")
    file = SampleFile(tmp_path / "x.parquet")
    for _ in range(2):
        (chunk,) = file
        assert tuple(chunk) == CHART_COLUMNS
        assert {name: values.dtype for name, values in chunk.items()} == {
            name: SAMPLE_DTYPES[name] for name in CHART_COLUMNS
        }
        assert chunk["start_ns"].tolist() == [0, 1, 2, 3, 4]


def test_row_groups_of_other_writers_are_cut(tmp_path: Path):
    path = tmp_path / "x.parquet"
    with duckdb.connect() as connection:
        connection.register("samples", dict(numbered(300_000)))
        connection.execute(f"COPY samples TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 300000)")
    chunks = list(SampleFile(path))
    assert max(chunk["start_ns"].size for chunk in chunks) <= CHUNK_ROWS
    assert np.array_equal(np.concatenate([chunk["start_ns"] for chunk in chunks]), np.arange(300_000))


def test_a_file_that_lacks_a_column_is_refused(tmp_path: Path):
    path = tmp_path / "x.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT 1 AS start_ns, 2 AS end_ns) TO '{path}' (FORMAT parquet)")
    with pytest.raises(BenchctlError, match="cannot read the samples"):
        list(SampleFile(path))


def test_a_file_that_is_none_is_named(tmp_path: Path):
    (tmp_path / "x.parquet").write_text("no Parquet")
    with pytest.raises(BenchctlError, match=r"cannot read .*x\.parquet"):
        list(SampleFile(tmp_path / "x.parquet"))


def test_finished_forks_come_in_order_with_what_was_kept_of_them(tmp_path: Path):
    folder = RunFolder(tmp_path)
    kept = folder.write_samples([make_samples([1.0])], "es", 1)
    forks = (
        make_fork("es", 2, samples="forks/002-es.parquet"),
        make_fork("es", 1, samples=kept),
        make_fork("es", 3, status="failed"),
        make_fork("os", 0),
    )
    found = list(fork_sources(folder, forks))
    assert [(source.label, source.block) for source in found] == [("os", 0), ("es", 1), ("es", 2)]
    assert [source.absent for source in found] == [
        "no samples were kept",
        "",
        "forks/002-es.parquet is gone",
    ]
    assert [source.samples is None for source in found] == [True, False, True]
    assert found[1].samples is not None
    assert concatenate_starts(list(found[1].samples)) == [0]


def concatenate_starts(chunks: list[Columns]) -> list[int]:
    return [start for chunk in chunks for start in chunk["start_ns"].tolist()]


def test_a_window_begins_with_the_first_request_and_ends_with_the_last_answer(tmp_path: Path):
    folder = RunFolder(tmp_path)
    warm_up, unmeasured = samples(1000), samples(1000)
    warm_up["schedule"] -= 1
    measured = samples(10**6)
    measured["boot"][:] = 2
    unmeasured["task"] += 1
    unmeasured["warmup"][:] = True
    path = folder.write_samples([measured, warm_up, unmeasured], "es", 0)
    found = task_windows(folder, make_fork("es", 0, samples=path))
    assert found == {(0, 0): TaskWindow(10**9, 3 * 10**9 + 10**6, boot=2)}


def test_without_samples_nobody_knows(tmp_path: Path):
    for path in (None, "forks/gone.parquet"):
        with pytest.raises(BenchctlError, match="the samples of fork 3 of es are not there"):
            task_windows(RunFolder(tmp_path), make_fork("es", 3, samples=path))
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    with pytest.raises(BenchctlError, match="cannot read the samples"):
        task_windows(RunFolder(tmp_path), make_fork("es", 3, samples="broken.parquet"))
