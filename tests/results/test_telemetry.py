"""Telemetry on disk: what was written is read back, and what is unknown stays so."""

from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchctl.errors import BenchctlError
from benchctl.results.samples import Columns
from benchctl.results.store import RunFolder
from benchctl.results.telemetry import (
    GC_DTYPES,
    SERIES_DTYPES,
    empty_telemetry,
    gc_events,
    read_telemetry,
    write_telemetry,
)

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


def test_rows_are_read_in_order_of_time(tmp_path: Path):
    write_telemetry(series_of([5, 3, 4]), pauses_of([9, 7]), tmp_path / "t.parquet")
    assert read_telemetry(tmp_path / "t.parquet")["t_ns"].tolist() == [3, 4, 5]
    assert gc_events(tmp_path / "t.parquet")["t_ns"].tolist() == [7, 9]


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


def test_a_run_keeps_it_beside_its_samples(tmp_path: Path):
    folder = RunFolder(tmp_path)
    relative = folder.write_telemetry(series_of([1]), empty_telemetry(GC_DTYPES), "es", 3)
    assert relative == "telemetry/003-es.parquet"
    assert read_telemetry(tmp_path / relative)["t_ns"].tolist() == [1]
    assert [path.name for path in (tmp_path / "telemetry").iterdir()] == ["003-es.parquet"]


@pytest.mark.parametrize("read", [read_telemetry, gc_events])
def test_what_is_no_telemetry_is_named(tmp_path: Path, read: "type[object]"):
    with pytest.raises(BenchctlError, match="cannot read the telemetry"):
        read(tmp_path / "none.parquet")
    other = tmp_path / "other.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT 'gc' AS kind, 1 AS t_ns) TO '{other}' (FORMAT parquet)")
    with pytest.raises(BenchctlError, match="lacks the columns boot, "):
        read(other)
