"""Sample files hold what they were given, in order, whatever it was cut into."""

from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.errors import BenchctlError
from benchctl.results.parquet import read_parquet, write_parquet
from benchctl.results.samples import SAMPLE_DTYPES, Columns, concatenate, empty_columns


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


@pytest.mark.parametrize("kept", [("end_ns",), ("start_ns", "part"), ("took_ms",)])
def test_a_file_that_lacks_a_column_is_refused(tmp_path: Path, kept: tuple[str, ...]):
    path = tmp_path / "x.parquet"
    with duckdb.connect() as connection:
        connection.register("samples", {name: np.zeros(2, np.int64) for name in kept})
        connection.execute(f"COPY samples TO '{path}' (FORMAT parquet)")
    with pytest.raises(BenchctlError, match="lacks the columns"):
        read_parquet(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(BenchctlError, match="cannot read the samples in"):
        read_parquet(tmp_path / "none.parquet")
