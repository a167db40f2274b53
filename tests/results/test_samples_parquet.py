"""Sample files hold what they were given, in order, and reports read it in bounded pieces."""

from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.errors import BenchctlError
from benchctl.results.samples import (
    CHART_COLUMNS,
    CHUNK_ROWS,
    SAMPLE_DTYPES,
    Columns,
    SampleFile,
    TaskWindow,
    concatenate,
    database,
    empty_columns,
    write_parquet,
)
from benchctl.results.store import RunFolder, fork_sources, task_windows
from builders import make_fork
from sampled import make_samples
from stored import read_parquet, samples


def random_columns(rows: int, seed: int) -> Columns:
    random = np.random.default_rng(seed)
    return {
        name: random.integers(0, 2, rows).astype(dtype)
        if dtype == np.bool_
        else random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, rows, dtype=dtype)
        for name, dtype in SAMPLE_DTYPES.items()
    }


@settings(max_examples=20, deadline=None)
@given(sizes=st.lists(st.integers(0, 50), max_size=5), seed=st.integers(0, 2**32 - 1))
def test_samples_survive_bit_by_bit(tmp_path_factory: pytest.TempPathFactory, sizes: list[int], seed: int):
    folder = tmp_path_factory.mktemp("it's a run")
    chunks = [random_columns(size, seed + number) for number, size in enumerate(sizes)]
    write_parquet(iter(chunks), folder / "x.parquet")
    found, expected = read_parquet(folder / "x.parquet"), concatenate(chunks)
    for name, dtype in SAMPLE_DTYPES.items():
        assert found[name].dtype == dtype
        np.testing.assert_array_equal(found[name], expected[name])
    assert [path.name for path in folder.iterdir()] == ["x.parquet"]


def test_a_long_fork_has_row_groups_in_order_and_leaves_no_parts(tmp_path: Path):
    chunks = [empty_columns(100_000) for _ in range(4)]
    for number, chunk in enumerate(chunks):
        chunk["start_ns"][:] = np.arange(100_000) + number * 100_000
    write_parquet(iter(chunks), tmp_path / "x.parquet")
    with database("count row groups") as connection:
        query = "SELECT max(row_group_id) FROM parquet_metadata(?)"
        assert connection.execute(query, [str(tmp_path / "x.parquet")]).fetchall()[0][0] > 0
    read = [chunk["start_ns"] for chunk in SampleFile(tmp_path / "x.parquet")]
    assert max(starts.size for starts in read) <= CHUNK_ROWS
    assert np.array_equal(np.concatenate(read), np.arange(400_000))
    assert [path.name for path in tmp_path.iterdir()] == ["x.parquet"]


def test_progress_is_never_drawn_and_what_one_breaks_is_whole_for_the_next():
    with pytest.raises(BenchctlError, match="cannot try: Table with name"), database("try") as connection:
        connection.execute("SELECT nothing FROM nowhere")
    query = "SELECT current_setting('threads'), current_setting('enable_progress_bar')"
    with database("try") as connection:
        assert connection.execute(query).fetchone() == (1, False)


def test_what_the_database_complains_of_is_one_sentence(tmp_path: Path):
    (tmp_path / "none.parquet").write_text("nothing", encoding="utf-8")
    for command, reason in (
        ("COPY (SELECT 1) TO '/dev/full' (FORMAT parquet)", "No space left on device"),
        (f"COPY (SELECT 1) TO '{tmp_path}/no/x' (FORMAT parquet)", "No such file or directory"),
    ):
        with pytest.raises(BenchctlError) as caught, database("write there") as connection:
            connection.execute(command)
        assert caught.value.message == f"cannot write there: {reason}"
    with pytest.raises(BenchctlError, match="cannot read") as caught:
        list(SampleFile(tmp_path / "none.parquet"))
    assert not {"\n", "{"} & set(caught.value.message)
    assert "Error:" not in caught.value.message


def test_samples_come_back_in_order_in_the_columns_of_charts_as_often_as_asked(tmp_path: Path):
    write_parquet([empty_columns(5) | {"start_ns": np.arange(5)}], tmp_path / "x.parquet")
    file = SampleFile(tmp_path / "x.parquet")
    for _ in range(2):
        (chunk,) = file
        assert tuple(chunk) == CHART_COLUMNS
        assert {name: values.dtype for name, values in chunk.items()} == {
            name: SAMPLE_DTYPES[name] for name in CHART_COLUMNS
        }
        assert chunk["start_ns"].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("query", ["SELECT 1 AS start_ns, 2 AS end_ns", ""])
def test_a_file_that_is_none_is_named(tmp_path: Path, query: str):
    path = tmp_path / "x.parquet"
    path.write_text("no Parquet")
    if query:
        duckdb.sql(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    with pytest.raises(BenchctlError, match=r"cannot read the samples in .*x\.parquet"):
        list(SampleFile(path))


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
    assert [chunk["start_ns"].tolist() for chunk in found[1].samples] == [[0]]


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
