from pathlib import Path

import numpy as np
import pytest

from benchctl.results.parquet import DuckDiskError, DuckError, database, quoted


def test_a_path_with_a_quote_is_still_one_path(tmp_path: Path):
    path = tmp_path / "it's.parquet"
    with database(threads=1) as connection:
        connection.execute(f"COPY (SELECT 1 AS one) TO {quoted(path)} (FORMAT parquet)")
        assert connection.execute("SELECT one FROM read_parquet(?)", [str(path)]).fetchall() == [(1,)]


def test_progress_is_never_drawn():
    with database() as connection:
        assert connection.execute("SELECT current_setting('enable_progress_bar')").fetchone() == (False,)


def test_a_file_that_is_not_there_is_the_disk_s_fault_and_a_wrong_query_is_not(tmp_path: Path):
    with pytest.raises(DuckDiskError), database() as connection:
        connection.execute("SELECT * FROM read_parquet(?)", [str(tmp_path / "none.parquet")])
    with pytest.raises(DuckError) as caught, database() as connection:
        connection.execute("SELECT nothing FROM nowhere")
    assert not isinstance(caught.value, DuckDiskError)


def test_nothing_is_left_for_whoever_comes_next():
    for _ in range(2):
        with database() as connection:
            connection.register("samples", {"one": np.arange(3)})
            connection.execute("CREATE TABLE kept AS SELECT * FROM samples")
            assert connection.execute("SHOW TABLES").fetchall() == [("kept",), ("samples",)]
    with database() as one, database() as other:
        one.execute("CREATE TABLE kept AS SELECT 1")
        assert other.execute("SHOW TABLES").fetchall() == []


def test_what_one_breaks_is_whole_for_the_next():
    with pytest.raises(DuckError), database(threads=1) as connection:
        connection.execute("SELECT nothing FROM nowhere")
    with database(threads=1) as connection:
        assert connection.execute("SELECT current_setting('threads')").fetchone() == (1,)
