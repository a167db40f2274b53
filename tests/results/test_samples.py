"""Packed rows become columns, and small pieces become chunks."""

import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import BenchctlError
from benchctl.results import samples as samples_module
from benchctl.results.samples import (
    ROW_DTYPE,
    ROW_FIELDS,
    SAMPLE_DTYPES,
    Columns,
    RowFile,
    RowOwner,
    SampleSpool,
    columns_of,
    concatenate,
    empty_columns,
    gathered,
)


def piece(*takes: int) -> Columns:
    made = empty_columns(len(takes))
    made["took_ms"][:] = takes
    return made


def test_clocks_count_from_the_origin_and_durations_do_not():
    rows = np.zeros(2, ROW_DTYPE)
    for name in ROW_FIELDS:
        rows[name] = 1
    rows["start_ns"] = [1_005, 1_007]
    found = columns_of(rows, RowOwner(origin_ns=1_000, schedule=-1, task=2, boot=3, client=4))
    assert {name: values.dtype for name, values in found.items()} == dict(SAMPLE_DTYPES)
    assert found["start_ns"].tolist() == [5, 7]
    assert (found["end_ns"] + 999 == 0).all()
    assert (found["processing_ns"] == 1).all()
    assert [found[name][1] for name in ("schedule", "task", "boot", "client")] == [-1, 2, 3, 4]


@given(sizes=st.lists(st.integers(0, 10)), most=st.integers(10, 30))
def test_pieces_are_joined_in_order_and_no_chunk_is_too_large_or_empty(sizes: list[int], most: int):
    pieces = [piece(*range(number, number + size)) for number, size in enumerate(sizes)]
    chunks = list(gathered(pieces, most))
    counts = [chunk["took_ms"].size for chunk in chunks]
    assert all(0 < count <= most for count in counts)
    assert all(left + right > most for left, right in pairwise(counts))
    assert concatenate(chunks)["took_ms"].tolist() == concatenate(pieces)["took_ms"].tolist()


def rows(*takes: int) -> bytearray:
    made = np.zeros(len(takes), ROW_DTYPE)
    made["took_ms"] = takes
    return bytearray(made.tobytes())


def place(client: int = 0, *, schedule: int = 0, task: int = 0) -> RowOwner:
    return RowOwner(origin_ns=0, schedule=schedule, task=task, boot=0, client=client)


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[SampleSpool]:
    with SampleSpool(tmp_path / "spool") as made:
        yield made


def takes(chunks: samples_module.Chunks) -> list[int]:
    return concatenate(list(chunks))["took_ms"].tolist()


def test_buffers_and_the_rest_come_back_in_order_as_often_as_they_are_read(spool: SampleSpool):
    file = spool.file(place())
    for number in range(5):
        file.hand_over(rows(2 * number, 2 * number + 1))
    file.finish(rows(10))
    chunks = spool.all_chunks()
    assert takes(chunks) == list(range(11))
    assert takes(chunks) == list(range(11))


def test_the_buffer_handed_over_before_comes_back_free(spool: SampleSpool):
    file = spool.file(place())
    first, second = rows(1), rows(2)
    assert file.hand_over(first) is None
    assert file.hand_over(second) is first
    file.finish(bytearray())
    assert takes(spool.all_chunks()) == [1, 2]


def test_a_fork_is_read_file_after_file_with_the_place_of_each(spool: SampleSpool):
    for number, where in enumerate((place(0), place(1), place(0, task=1), place(0, schedule=-1))):
        spool.file(where).finish(rows(number))
    columns = concatenate(list(spool.all_chunks()))
    assert columns["took_ms"].tolist() == [0, 1, 2, 3]
    assert columns["client"].tolist() == [0, 1, 0, 0]
    assert columns["task"].tolist() == [0, 0, 1, 0]
    assert columns["schedule"].tolist() == [0, 0, 0, -1]


def test_rows_that_may_still_come_are_not_left_out_silently(spool: SampleSpool):
    spool.file(place()).hand_over(rows(1))
    with pytest.raises(RuntimeError, match="still being written"):
        list(spool.all_chunks())


def test_files_of_another_process_are_counted_in(spool: SampleSpool, tmp_path: Path):
    with SampleSpool(tmp_path / "other") as other:
        file = other.file(place(3))
        file.hand_over(rows(1, 2))
        with pytest.raises(RuntimeError, match="still being written"):
            pickle.dumps(file)
        file.finish(rows(3))
        spool.adopt(pickle.loads(pickle.dumps(other.all_chunks())))  # noqa: S301 - our own
        assert takes(spool.all_chunks()) == [1, 2, 3]
    with pytest.raises(TypeError, match="in files"):
        spool.adopt([empty_columns(1)])


def test_a_slow_disk_makes_the_client_wait(tmp_path: Path):
    disk_goes = threading.Event()
    with ThreadPoolExecutor(1) as disk, ThreadPoolExecutor(1) as client:
        disk.submit(disk_goes.wait)
        file = RowFile(tmp_path / "x.rows", place(), disk)
        assert file.hand_over(rows(1)) is None
        waiting = client.submit(file.hand_over, rows(2))
        assert not waiting.done()
        disk_goes.set()
        assert waiting.result() == rows(1)
        file.finish(rows(3))
    assert [piece["took_ms"].tolist() for piece in file.pieces()] == [[1, 2, 3]]


def test_a_full_disk_is_said_with_the_folder_and_what_to_do(tmp_path: Path):
    # The device that is always full; linked to, since a spool names its files itself.
    (tmp_path / "full.rows").symlink_to("/dev/full")
    with ThreadPoolExecutor(1) as disk:
        file = RowFile(tmp_path / "full.rows", place(), disk)
        file.hand_over(rows(1))
        with pytest.raises(BenchctlError, match="No space left on device") as caught:
            file.hand_over(rows(2))
        file.close()
        late = RowFile(tmp_path / "full.rows", place(), disk)
        with pytest.raises(BenchctlError):
            late.finish(rows(1))
        late.close()
    assert str(tmp_path) in caught.value.message
    assert "free some space" in caught.value.hint


def test_a_spool_that_cannot_be_is_said_before_anything_is_measured(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(BenchctlError, match="cannot create"), SampleSpool(tmp_path / "file" / "spool"):
        pass


def open_files() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def fail_half_way(folder: Path) -> None:
    with SampleSpool(folder) as spool:
        spool.file(place()).hand_over(rows(1))
        raise KeyError


def test_nothing_stays_behind_not_even_after_an_error(tmp_path: Path):
    before = open_files()
    threads = threading.active_count()
    with pytest.raises(KeyError):
        fail_half_way(tmp_path / "spool")
    assert not (tmp_path / "spool").exists()
    assert open_files() == before
    assert threading.active_count() == threads


# Run in a process of its own: the largest size that a process ever had cannot be taken back.
SCRIPT = """
import resource, sys
from pathlib import Path

import numpy as np

from benchctl.results.samples import ROW_DTYPE, RowOwner
from benchctl.results.samples import SampleSpool
from benchctl.results.store import RunFolder
from benchctl.stats.summary import summarise
from benchctl.track.model import Task

folder, buffers = Path(sys.argv[1]), int(sys.argv[2])
random = np.random.default_rng(1)
task = Task("range", time_period=60, target_throughput=1000)
with SampleSpool(folder / "spool") as spool:
    for client in range(4):
        file = spool.file(RowOwner(0, 0, 0, 0, client))
        for number in range(buffers):
            rows = np.zeros(62_500, ROW_DTYPE)
            rows["intended_ns"] = (np.arange(rows.size) + number * rows.size) * 1_000_000
            rows["start_ns"] = rows["intended_ns"] + random.integers(0, 3_000_000, rows.size)
            rows["end_ns"] = rows["start_ns"] + random.integers(500, 5_000, rows.size) * 1_000
            rows["processing_ns"] = rows["end_ns"] - rows["start_ns"] + random.integers(0, 1_000, rows.size)
            file.hand_over(bytearray(rows.tobytes()))
        file.finish(bytearray())
    found = summarise(spool.all_chunks(), schedule=0, task_index=0, task=task)
    RunFolder(folder).write_samples(spool.all_chunks(), "es", 0)
# What getrusage says includes the process that started this one.
status = Path("/proc/self/status").read_text()
print(found.samples, int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""


def samples_and_peak_mb(folder: Path, buffers: int) -> tuple[int, int]:
    folder.mkdir()
    command = [sys.executable, "-c", SCRIPT, str(folder), str(buffers)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    samples, peak_mb = done.stdout.split()
    return int(samples), int(peak_mb)


def test_three_million_samples_take_150_bytes_each(tmp_path: Path):
    samples, peak_mb = samples_and_peak_mb(tmp_path / "run", buffers=12)
    assert samples == 3_000_000
    # benchctl itself is 70 MB; the summary has those of one task in memory, the spool only a few chunks.
    assert peak_mb < 520
