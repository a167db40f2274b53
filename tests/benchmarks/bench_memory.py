"""What a very long task takes: time and memory of recording, summarising and writing its samples.

Run by hand: python tests/benchmarks/bench_memory.py [--rows 30000000] [--clients 8]. No request is sent: the
rows are made up, microseconds of service time as libcurl gives them, and latencies in nanoseconds.
"""

import argparse
import resource
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchctl.load.recorder import Recorder
from benchctl.load.request import Answer, Exchange
from benchctl.results.samples import Outcome, Place, RowFile, SampleSpool
from benchctl.results.store import RunFolder
from benchctl.stats.summary import summarise
from benchctl.track.model import Task

TASK = Task("range", time_period=3600, target_throughput=50_000)
ANSWER = Answer(Outcome.OK, took_ms=3, hits=10_000, hits_exact=False)
BLOCK = 1 << 13


def record(file: RowFile, rows: int, clients: int, seed: int) -> None:
    """One client's share of the rows."""
    random = np.random.default_rng(seed)
    recorder = Recorder(None, file, clients=clients)
    append = recorder.append
    start_ns = done = 0
    while done < rows:
        size = min(BLOCK, rows - done)
        service_ns = random.lognormal(7, 0.5, size).astype(np.int64) * 1_000
        late_ns = random.exponential(3e6, size).astype(np.int64)
        for service, late in zip(service_ns.tolist(), late_ns.tolist(), strict=True):
            start_ns += service + late
            exchange = Exchange(start_ns, 0, service // 2, start_ns + service, 200, b"", 1500)
            append(exchange, ANSWER, start_ns - late, warmup=False, processing_ns=service + late // 1000)
        done += size
    recorder.finish()


@contextmanager
def step(name: str, rows: int) -> Iterator[None]:
    """Say how long a step took, and the largest size that the process has had so far."""
    clock = time.perf_counter()
    yield
    seconds = time.perf_counter() - clock
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    line = f"{name:10} {seconds:8.1f} s {seconds / rows * 1e6:8.3f} us a row, peak so far {peak_mb:6.0f} MB"
    sys.stdout.write(line + "\n")


def main() -> None:
    """Record, summarise, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=30_000_000)
    parser.add_argument("--clients", type=int, default=8)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        with step("start", 1):
            pass
        with SampleSpool(folder / "spool") as spool:
            with step("record", options.rows):
                share = options.rows // options.clients
                files = [spool.file(Place(0, 0, 0, 0, number)) for number in range(options.clients)]
                threads = [
                    threading.Thread(target=record, args=(file, share, options.clients, number))
                    for number, file in enumerate(files)
                ]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            sys.stdout.write(f"waits for the disk: {sum(file.waits for file in files)}\n")
            with step("summarise", options.rows):
                found = summarise(spool.all_chunks(), schedule=0, task_index=0, task=TASK)
            with step("write", options.rows):
                name = RunFolder(folder).write_samples(spool.all_chunks(), "es", 0)
        size_mb = (folder / name).stat().st_size / 2**20
        sys.stdout.write(f"{found.samples:,} samples, {size_mb:.0f} MB of Parquet\n")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
