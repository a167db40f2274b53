"""Evidence on disk: a round trip, and on the clock of a fork's samples."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from benchctl.errors import BenchctlError
from benchctl.evidence.files import (
    JIT_DTYPES,
    JIT_FILE,
    OS_DTYPES,
    fork_evidence,
    read_evidence,
    stacked_columns,
    write_evidence,
)
from benchctl.results.model import BootRecord, ForkRecord, NodeFate, NodeRecord
from benchctl.results.store import RunFolder
from builders import make_fork

ROWS = [(20, "compiled", 7, 4, True, "a.B::c", ""), (10, "unread", -1, -1, False, "", "what's this")]
BOOT = BootRecord((0,), 1.0, 0.1, 0.1, 0, 0, (), "boots/000-es/boot-0", origin_ns=-5)


def test_rows_come_back_in_order_of_time(tmp_path: Path):
    write_evidence(stacked_columns(ROWS, JIT_DTYPES), JIT_DTYPES, tmp_path / "e.parquet")
    found = read_evidence(tmp_path / "e.parquet", JIT_DTYPES)
    assert {name: values.dtype for name, values in found.items()} == dict(JIT_DTYPES)
    assert list(zip(*found.values(), strict=True)) == sorted(ROWS)


def test_what_is_unknown_stays_unknown_and_nothing_is_a_table_without_rows(tmp_path: Path):
    row = (1, *[np.nan] * (len(OS_DTYPES) - 1))
    write_evidence(stacked_columns([row], OS_DTYPES), OS_DTYPES, tmp_path / "e.parquet")
    assert np.isnan(read_evidence(tmp_path / "e.parquet", OS_DTYPES)["rss_bytes"]).all()
    write_evidence(stacked_columns([], JIT_DTYPES), JIT_DTYPES, tmp_path / "none.parquet")
    assert read_evidence(tmp_path / "none.parquet", JIT_DTYPES)["method"].size == 0


def test_a_file_that_is_no_evidence_is_refused(tmp_path: Path):
    (tmp_path / "other.parquet").write_bytes(b"PAR1")
    with pytest.raises(BenchctlError, match="cannot read the evidence"):
        read_evidence(tmp_path / "other.parquet", JIT_DTYPES)
    write_evidence(stacked_columns(ROWS, JIT_DTYPES), JIT_DTYPES, tmp_path / "e.parquet")
    with pytest.raises(BenchctlError, match=r"lacks the columns .*rss_bytes"):
        read_evidence(tmp_path / "e.parquet", OS_DTYPES)


def test_nothing_is_written_through_what_a_node_left_in_its_place(tmp_path: Path):
    (tmp_path / "e.parquet").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BenchctlError, match="the path already exists"):
        write_evidence(stacked_columns(ROWS, JIT_DTYPES), JIT_DTYPES, tmp_path / "e.parquet")
    assert not (tmp_path / "elsewhere").exists()


def kept(tmp_path: Path, *starts: BootRecord) -> tuple[RunFolder, ForkRecord]:
    folder, fork = RunFolder(tmp_path), make_fork("es", 2, boots=starts)
    for number in range(len(starts)):
        path = folder.evidence_folder("es", 2, number)
        path.mkdir(parents=True)
        write_evidence(stacked_columns(ROWS, JIT_DTYPES), JIT_DTYPES, path / JIT_FILE)
    return folder, fork


def test_node_starts_are_put_one_behind_the_other_on_the_clock_of_the_samples(tmp_path: Path):
    later = BootRecord((1,), 1.0, 0.1, 0.1, 0, 0, (), "", origin_ns=100)
    folder, fork = kept(tmp_path, BOOT, later)
    found = fork_evidence(folder, fork, JIT_FILE, JIT_DTYPES)
    assert found is not None
    assert found["t_ns"].tolist() == [5, 15, 110, 120]
    assert "uptime_ns" not in found


def test_nodes_have_clocks_of_their_own_and_those_that_went_have_no_evidence(tmp_path: Path):
    nodes = tuple(NodeRecord(f"node-{n}", 1.0, (), "", origin_ns=n) for n in (1, 2, 3))
    fates = (NodeFate(50, "node-3", "killed"), NodeFate(60, "node-3", "started again"))
    boot = msgspec.structs.replace(BOOT, node_starts=nodes, fates=fates)
    folder, fork = RunFolder(tmp_path), make_fork("es", 2, boots=(boot,))
    for node in nodes:
        path = folder.evidence_folder("es", 2, 0, node.name)
        path.mkdir(parents=True)
        write_evidence(stacked_columns(ROWS, JIT_DTYPES), JIT_DTYPES, path / JIT_FILE)
    times = {
        node: found["t_ns"].tolist()
        for node in (None, "node-1", "node-2")
        if (found := fork_evidence(folder, fork, JIT_FILE, JIT_DTYPES, node)) is not None
    }
    assert times == {None: [11, 12, 21, 22], "node-1": [11, 21], "node-2": [12, 22]}
    assert fork_evidence(folder, fork, JIT_FILE, JIT_DTYPES, "node-3") is None


def test_a_fork_without_evidence_has_none(tmp_path: Path):
    folder = RunFolder(tmp_path)
    assert fork_evidence(folder, make_fork("es", 0, boots=(BOOT,)), JIT_FILE, JIT_DTYPES) is None
