"""Sample files hold what they were given, in order, whatever it was cut into."""

from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.errors import BenchctlError
from benchctl.results.samples import (
    SAMPLE_DTYPES,
    Columns,
    concatenate,
    database,
    empty_columns,
    write_parquet,
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


def test_progress_is_never_drawn_and_what_one_breaks_is_whole_for_the_next():
    with pytest.raises(BenchctlError, match="cannot try: Catalog Error"), database("try") as connection:
        connection.execute("SELECT nothing FROM nowhere")
    query = "SELECT current_setting('threads'), current_setting('enable_progress_bar')"
    with database("try") as connection:
        assert connection.execute(query).fetchone() == (1, False)
