"""How long `benchctl compare` takes over a store of many runs, as a process, imports included.

    PYTHONPATH=tests/support python tests/benchmarks/bench_compare.py [--runs 200] [--samples 5000000]

Two stores are made for it, of hand-made records and samples. In the plain one every run has both engines; in
the mixed one every run has one, all are unlike but for the oldest two, and so every record has to be read.
Python with nothing but `scipy.stats` is timed in turn with the commands: no comparison takes less than that.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

from benchctl.results.figures import Course, TaskSummary
from benchctl.results.foreign import unknown_engine
from benchctl.results.model import BootRecord, ForkRecord, HostProbe, RunRecord
from benchctl.results.samples import Columns, empty_columns
from benchctl.results.store import RunFolder, RunStore
from benchctl.track.model import Challenge, Task
from builders import ES, OS, make_driver, make_fork, make_plan, make_record, make_summary

GOAL_S = 2.0
FORKS = 5
TASKS = ("desc_sort_timestamp", "composite-date_histogram-daily", "range")
ENGINES = {"es": ES, "os": OS}
SAMPLE_FILES = FORKS * len(ENGINES)


class Timed(NamedTuple):
    """One command and what it took, round by round: seconds, and seconds of CPU time."""

    name: str
    words: Sequence[str]
    seconds: list[float]
    cpu_seconds: list[float]


def make_samples(rows: int, draw: np.random.Generator) -> Columns:
    """One fork's samples: its tasks one behind the other."""
    columns = empty_columns(rows)
    service_ns = draw.lognormal(16, 0.3, rows).astype(np.int64) // 1000 * 1000
    columns["end_ns"][:] = np.cumsum(service_ns)
    columns["start_ns"][:] = columns["end_ns"] - service_ns
    columns["intended_ns"][:] = columns["start_ns"]
    columns["task"][:] = np.arange(rows) * len(TASKS) // rows
    columns["weight"][:] = 1
    return columns


def measured_task(task: int, samples: int, draw: np.random.Generator) -> TaskSummary:
    """With everything that a real one holds."""
    mean_ms = 10 * float(draw.lognormal(0, 0.05))
    summary = make_summary(TASKS[task], mean_ms, task=task, samples=samples, driver=make_driver())
    times = summary.service_time
    course = Course("flat", 0, samples, (0,), (1e6 * mean_ms,))
    return msgspec.structs.replace(
        summary, took=times, processing_time=times, first_byte=times, course=course
    )


def measured_fork(variant: str, block: int, samples: int, draw: np.random.Generator) -> ForkRecord:
    """A fork on one node start, whose command line is as long as they are."""
    probe = HostProbe(int(draw.normal(1e8, 1e6)), int(draw.normal(1e8, 1e6)))
    command = (f"-Dexample.property.number.{number}=a-value-of-some-length" for number in range(40))
    boot = BootRecord(
        (0,), 4.5, 0.5, 1.0, samples, samples, ("java", *command), f"boots/{block:03d}-{variant}-0", 1
    )
    tasks = (measured_task(task, samples // len(TASKS), draw) for task in range(len(TASKS)))
    path = f"forks/{block:03d}-{variant}.parquet"
    return make_fork(variant, block, *tasks, boots=(boot,), probes=(probe, probe), samples=path)


def measured_run(
    run_id: str, variants: Sequence[str], samples: int, heap_mb: int, draw: np.random.Generator
) -> RunRecord:
    """A complete run; the heap makes it unlike others where that is wanted."""
    return make_record(
        run_id,
        status="complete",
        plan=make_plan(
            variants=tuple(ENGINES[name] for name in variants),
            schedules=(Challenge("big5rangedebug", tuple(Task(name, iterations=100) for name in TASKS)),),
            forks=FORKS,
            heap_mb=heap_mb,
        ),
        engines=tuple(unknown_engine(ENGINES[name]) for name in variants),
        forks=tuple(measured_fork(name, block, samples, draw) for block in range(FORKS) for name in variants),
        tags=("oldest",) if run_id.endswith("-0000") else (),
    )


def write_samples(folder: RunFolder, per_fork: int, draw: np.random.Generator) -> list[Path]:
    """The sample files of one run; those of the others are links to them, which read the same."""
    names = [
        folder.write_samples([make_samples(per_fork, draw)], variant, block)
        for block in range(FORKS)
        for variant in ENGINES
    ]
    return [folder.path / name for name in names]


def make_store(root: Path, runs: int, samples: int, *, mixed: bool) -> int:
    """Fill a store; returns the bytes of its records."""
    store, draw = RunStore(root), np.random.default_rng(1)
    per_fork = samples // (runs * SAMPLE_FILES)
    files: list[Path] = []
    size = 0
    for number in range(runs):
        run_id = f"20260101-{number:06d}-big5rangedebug-{number:04d}"
        folder = store.create(run_id)
        if files:
            for file in files:
                os.link(file, folder.path / "forks" / file.name)
        else:
            files = write_samples(folder, per_fork, draw)
        variants = ("os" if number % 2 else "es",) if mixed else tuple(ENGINES)
        heap_mb = 1024 + (number if mixed and number > 1 else 0)
        folder.save(measured_run(run_id, variants, per_fork, heap_mb, draw))
        size += folder.record_path.stat().st_size
    return size


def run(words: Sequence[str]) -> tuple[float, float]:
    """Seconds of one process from its start to its end, and of CPU time."""
    began, used = time.perf_counter(), _children_s()
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    seconds = time.perf_counter() - began
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)}: {done.stderr}")
    return seconds, _children_s() - used


def _children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def timed(folder: Path, newest: str, rounds: int) -> list[Timed]:
    """Every command once a round, so that all of them meet the same machine."""
    compare = [sys.executable, "-c", "from benchctl.cli import main; main()", "compare", "--runs"]
    plain, mixed = [*compare, str(folder / "plain")], [*compare, str(folder / "mixed")]
    contestants = [
        Timed("python -c 'import scipy.stats'", [sys.executable, "-c", "import scipy.stats"], [], []),
        Timed("compare es os", [*plain, "es", "os"], [], []),
        Timed("the same, the only like runs are the oldest", [*mixed, "es", "os"], [], []),
        Timed("compare RUN:es tag:oldest:es", [*plain, f"{newest}:es", "tag:oldest:es"], [], []),
        Timed("compare es os --format json", [*plain, "es", "os", "--format", "json"], [], []),
        Timed("compare es os --quantile 0.95", [*plain, "es", "os", "--quantile", "0.95"], [], []),
    ]
    if rounds > 1:
        for one in contestants:
            run(one.words)  # the first one fills the caches of the disk and of Python
    for _ in range(rounds):
        for one in contestants:
            seconds, cpu_seconds = run(one.words)
            one.seconds.append(seconds)
            one.cpu_seconds.append(cpu_seconds)
    return contestants


def main() -> None:
    """Build the stores, time the commands, print the table; fails when the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--samples", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    console = Console()
    with tempfile.TemporaryDirectory(prefix="bench-compare-") as name:
        folder = Path(name)
        for kind in ("plain", "mixed"):
            size = make_store(folder / kind, options.runs, options.samples, mixed=kind == "mixed")
            console.print(
                f"{kind}: {options.runs} runs, {options.samples:,} samples, {size / 2**20:.1f} MiB of records"
            )
        newest = f"20260101-{options.runs - 1:06d}"
        found = timed(folder, newest, options.rounds)
    table = Table("Command", "median s", "least s", "most s", "CPU s", f"goal {GOAL_S:g} s")
    reference, *commands = found
    table.add_row(reference.name, *_figures(reference), "reference")
    for one in commands:
        table.add_row(one.name, *_figures(one), "pass" if median(one.seconds) < GOAL_S else "FAIL")
    console.print(table)
    console.print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}; {options.rounds} rounds in turn")
    if any(median(one.seconds) >= GOAL_S for one in commands):
        raise SystemExit(1)


def _figures(one: Timed) -> list[str]:
    shown = (median(one.seconds), min(one.seconds), max(one.seconds), median(one.cpu_seconds))
    return [f"{value:.2f}" for value in shown]


if __name__ == "__main__":
    main()
