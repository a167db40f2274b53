"""Sample files hold what they were given, in order, whatever it was cut into."""

from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchctl.errors import BenchctlError
from benchctl.results.samples import (
    GC_DTYPES,
    SAMPLE_DTYPES,
    SERIES_DTYPES,
    Columns,
    DuckDiskError,
    DuckError,
    concatenate,
    database,
    empty_columns,
    gc_events,
    read_telemetry,
    write_parquet,
    write_telemetry,
)
from stored import read_parquet


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
    with duckdb.connect() as connection:
        query = "SELECT count(DISTINCT row_group_id) FROM parquet_metadata(?)"
        groups = connection.execute(query, [str(tmp_path / "x.parquet")]).fetchone()
    assert groups is not None
    assert groups[0] > 1
    assert np.array_equal(read_parquet(tmp_path / "x.parquet")["start_ns"], np.arange(400_000))
    assert [path.name for path in tmp_path.iterdir()] == ["x.parquet"]


def test_progress_is_never_drawn():
    with database() as connection:
        assert connection.execute("SELECT current_setting('enable_progress_bar')").fetchone() == (False,)


def test_a_file_that_is_not_there_is_the_disk_s_fault_and_a_wrong_query_is_not(tmp_path: Path):
    with pytest.raises(DuckDiskError), database() as connection:
        connection.execute("SELECT * FROM read_parquet(?)", [str(tmp_path / "none.parquet")])
    with pytest.raises(DuckError) as caught, database() as connection:
        connection.execute("SELECT nothing FROM nowhere")
    assert not isinstance(caught.value, DuckDiskError)


def test_what_one_breaks_is_whole_for_the_next():
    with pytest.raises(DuckError), database(threads=1) as connection:
        connection.execute("SELECT nothing FROM nowhere")
    with database(threads=1) as connection:
        assert connection.execute("SELECT current_setting('threads')").fetchone() == (1,)


READINGS = [name for name in SERIES_DTYPES if name not in {"boot", "t_ns"}]


def series_of(times: list[int], reading: float = 1.0) -> Columns:
    rows = len(times)
    columns: Columns = {"boot": np.zeros(rows, np.int16), "t_ns": np.array(times, np.int64)}
    return columns | {name: np.full(rows, reading) for name in READINGS}


def pauses_of(times: list[int]) -> Columns:
    rows = len(times)
    return {
        "boot": np.ones(rows, np.int16),
        "t_ns": np.array(times, np.int64),
        "pause_ns": np.arange(rows, dtype=np.int64),
        "what": np.array([f"Young '{number}'" for number in range(rows)], object),
    }


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    times=st.lists(st.integers(-(2**62), 2**62), unique=True, max_size=6).map(sorted),
    readings=st.lists(st.one_of(st.just(np.nan), st.floats(0, 2.0**53)), min_size=6, max_size=6),
    pauses=st.lists(st.integers(-(2**62), 2**62), unique=True, max_size=4).map(sorted),
)
def test_both_kinds_are_read_back_as_written(
    tmp_path: Path, times: list[int], readings: list[float], pauses: list[int]
):
    series, events = series_of(times), pauses_of(pauses)
    for place, name in enumerate(READINGS):
        series[name] = np.roll(readings, place)[: len(times)]
    write_telemetry(series, events, tmp_path / "t.parquet")
    for written, read, dtypes in (
        (series, read_telemetry(tmp_path / "t.parquet"), SERIES_DTYPES),
        (events, gc_events(tmp_path / "t.parquet"), GC_DTYPES),
    ):
        assert list(read) == list(dtypes)
        for name, dtype in dtypes.items():
            assert read[name].dtype == dtype
            np.testing.assert_array_equal(read[name], written[name])


def test_sql_sees_the_unknown_as_null_and_kinds_apart(tmp_path: Path):
    file = tmp_path / "a 'quoted' name.parquet"
    series = series_of([1, 2], 4.0)
    series["merge_ms"] = np.array([np.nan, 8.0])
    write_telemetry(series, pauses_of([1]), file)
    with duckdb.connect() as connection:
        found = connection.execute(
            "SELECT kind, count(*), count(merge_ms), avg(merge_ms), any_value(what) FROM read_parquet(?) "
            "GROUP BY kind ORDER BY kind",
            [str(file)],
        ).fetchall()
    assert found == [("gc", 1, 0, None, "Young '0'"), ("series", 2, 1, 8.0, None)]


@pytest.mark.parametrize("read", [read_telemetry, gc_events])
def test_what_is_no_telemetry_is_named(tmp_path: Path, read: "type[object]"):
    with pytest.raises(BenchctlError, match="cannot read the telemetry"):
        read(tmp_path / "none.parquet")
    other = tmp_path / "other.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT 'gc' AS kind, 1 AS t_ns) TO '{other}' (FORMAT parquet)")
    with pytest.raises(BenchctlError, match="lacks the columns boot, "):
        read(other)
