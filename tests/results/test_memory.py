"""Millions of samples are spooled, summarised and written in the memory of a few chunks."""

import subprocess
import sys
from pathlib import Path

# Run in a process of its own: the largest size that a process ever had cannot be taken back.
SCRIPT = """
import resource, sys
from pathlib import Path

import numpy as np

from benchctl.results.samples import ROW_DTYPE, Place
from benchctl.results.samples import SampleSpool
from benchctl.results.store import RunFolder
from benchctl.stats.summary import summarise
from benchctl.track.model import Task

folder, buffers = Path(sys.argv[1]), int(sys.argv[2])
random = np.random.default_rng(1)
task = Task("range", time_period=60, target_throughput=1000)
with SampleSpool(folder / "spool") as spool:
    for client in range(4):
        file = spool.file(Place(0, 0, 0, 0, client))
        for number in range(buffers):
            rows = np.zeros(62_500, ROW_DTYPE)
            rows["intended_ns"] = (np.arange(rows.size) + number * rows.size) * 1_000_000
            rows["start_ns"] = rows["intended_ns"] + random.integers(0, 3_000_000, rows.size)
            rows["end_ns"] = rows["start_ns"] + random.integers(500, 5_000, rows.size) * 1_000
            rows["processing_ns"] = rows["end_ns"] - rows["start_ns"] + random.integers(0, 1_000, rows.size)
            file.hand_over(bytearray(rows.tobytes()))
        file.finish(bytearray())
    found = summarise(spool.task_chunks(0, 0), schedule=0, task_index=0, task=task)
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


def test_three_million_samples_fit_into_the_memory_of_a_few_chunks(tmp_path: Path):
    samples, peak_mb = samples_and_peak_mb(tmp_path / "run", buffers=12)
    assert samples == 3_000_000
    # They are 250 MB packed and 290 MB as columns; benchctl itself is 70 MB, and a million takes 180.
    assert peak_mb < 300
