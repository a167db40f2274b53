from pathlib import Path

import duckdb
import pytest

from benchctl.errors import BenchctlError, UsageError
from benchctl.results.sql import VIEWS, export_parquet, view_columns
from stored import ROWS, stored


def test_every_view_becomes_a_file_with_its_columns(tmp_path: Path):
    runs = [stored(tmp_path / "runs", name) for name in ("r1", "r2")]
    found = export_parquet(runs, tmp_path / "out")
    assert found == {
        tmp_path / "out" / "runs.parquet": 2,
        tmp_path / "out" / "builds.parquet": 0,
        tmp_path / "out" / "forks.parquet": 8,
        tmp_path / "out" / "tasks.parquet": 8,
        tmp_path / "out" / "samples.parquet": 8 * ROWS,
    }
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(path.name for path in found)
    for view in VIEWS:
        described = duckdb.execute(f"DESCRIBE FROM '{tmp_path}/out/{view}.parquet'").fetchall()
        assert [(name, kind) for name, kind, *_ in described] == [one[:2] for one in view_columns(view)]


def test_nothing_is_replaced_before_all_is_there(tmp_path: Path):
    run = stored(tmp_path / "runs", "r1")
    export_parquet([run], tmp_path / "out")
    before = {path: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    (run.folder.path / "forks" / "000-es.parquet").write_bytes(b"no parquet")
    with pytest.raises(BenchctlError, match=r"000-es\.parquet is damaged: "):
        export_parquet([run], tmp_path / "out")
    assert {path: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(BenchctlError, match="cannot export to"):
        export_parquet([stored(tmp_path / "runs", "r1")], tmp_path / "file" / "out")


@pytest.mark.parametrize("content", [b"mine", b"", b"PAR1", b"\xff\xff\xff\x7fPAR1"])
def test_files_of_others_are_not_overwritten(tmp_path: Path, content: bytes):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "tasks.parquet").write_bytes(content)
    with pytest.raises(UsageError, match=r"tasks\.parquet is there and was not written by benchctl"):
        export_parquet([stored(tmp_path / "runs", "r1")], tmp_path / "out")
    assert [path.read_bytes() for path in (tmp_path / "out").iterdir()] == [content]


def test_parquet_of_others_and_samples_of_a_fork_are_not_overwritten(tmp_path: Path):
    run = stored(tmp_path / "runs", "r1")
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / "samples.parquet"
    for make in (
        lambda: duckdb.execute(f"COPY (SELECT 1 AS one) TO '{target}' (FORMAT parquet)"),
        lambda: target.write_bytes((run.folder.path / "forks" / "000-es.parquet").read_bytes()),
    ):
        make()
        before = target.read_bytes()
        with pytest.raises(UsageError, match="was not written by benchctl"):
            export_parquet([run], tmp_path / "out")
        assert target.read_bytes() == before


def test_an_earlier_export_is_replaced(tmp_path: Path):
    export_parquet([stored(tmp_path / "runs", "r1")], tmp_path / "out")
    found = export_parquet([stored(tmp_path / "runs", name) for name in ("r2", "r3")], tmp_path / "out")
    assert found[tmp_path / "out" / "runs.parquet"] == 2
    assert duckdb.execute(f"FROM '{tmp_path}/out/runs.parquet' SELECT run").fetchall() == [("r2",), ("r3",)]
