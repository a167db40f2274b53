"""How many records of samples a second are made for a store, beside the official client's bulk helper.

    python tests/benchmarks/bench_export.py [--samples 200000] [--rounds 3] [--to URL]

Nothing is indexed: the helper's requests are answered at once. With `--to`, the same samples are also sent to
a real store, as `benchctl export --samples` sends them; its indices `rally-*` stay there.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import elasticsearch.helpers
import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

from benchctl.endpoint import Endpoint
from benchctl.network import Answer
from benchctl.official import elasticsearch_over
from benchctl.results.races import Layout, Race, sample_bodies
from benchctl.results.samples import CHUNK_ROWS, empty_columns
from benchctl.results.sql import StoredRun
from benchctl.results.store import RunFolder
from benchctl.run.export import export
from builders import make_fork, make_plan, make_record, make_summary
from stored import read_parquet

GOAL = 10.0
"""Times as fast as the helper."""


def make_run(folder: Path, rows: int) -> StoredRun:
    """One fork of one task."""
    draw = np.random.default_rng(1)
    columns = empty_columns(rows)
    service_ns = draw.lognormal(16, 0.3, rows).astype(np.int64)
    columns["end_ns"][:] = np.cumsum(service_ns)
    columns["start_ns"][:] = columns["end_ns"] - service_ns
    columns["intended_ns"][:] = columns["start_ns"]
    columns["processing_ns"][:] = service_ns + 50_000
    columns["weight"] += 1
    run = RunFolder(folder / f"20260101-000000-bench-{time.monotonic_ns():x}")
    (run.path / "forks").mkdir(parents=True)
    groups = ({name: part[start : start + CHUNK_ROWS] for name, part in columns.items()}
              for start in range(0, rows, CHUNK_ROWS))  # fmt: skip
    samples = run.write_samples(groups, "es", 0)
    fork = make_fork("es", 0, make_summary("range", 8.0, samples=rows), samples=samples)
    plan = make_plan(forks=1, variants=make_plan().variants[:1])
    return StoredRun(run, make_record(run.path.name, status="complete", plan=plan, forks=(fork,)))


def race_of(run: StoredRun) -> Race:
    return Race(Layout(), run.record, run.record.forks[0], 0)


def ours(run: StoredRun) -> int:
    return sum(body.records for body in sample_bodies(run.folder, race_of(run)))


def helper(run: StoredRun) -> int:
    """Dictionaries, encoded by the client, as tools do it."""
    race = race_of(run)

    def actions() -> Iterator[dict[str, Any]]:
        columns = read_parquet(run.folder.path / str(race.fork.samples))
        task = race.fork.summaries[0]
        for row in range(columns["task"].size):
            start, end = int(columns["start_ns"][row]), int(columns["end_ns"][row])
            intended, processing = int(columns["intended_ns"][row]), int(columns["processing_ns"][row])
            times = {"latency": end - intended, "service_time": end - start, "processing_time": processing}
            for name, ns in times.items():
                record = race.metric(name, ns / 1e6, "ms", task)
                yield {"_index": race.index("metrics"), "_id": f"{race.digest}-{row}-{name[0]}", **record}

    def carry(_method: str, _path: str, body: bytes, _headers: Mapping[str, str], _s: object) -> Answer:
        items = [{"index": {"status": 201}}] * (body.count(b"\n") // 2)
        told = msgspec.json.encode({"errors": False, "items": items})
        return Answer(200, {"content-type": "application/json", "x-elastic-product": "Elasticsearch"}, told)

    client = elasticsearch_over(carry)
    done, _ = elasticsearch.helpers.bulk(client, actions(), chunk_size=5_000, stats_only=True)
    return int(done)


def rates(work: Callable[[StoredRun], int], run: StoredRun, rounds: int) -> list[float]:
    found = []
    for _ in range(rounds):
        clock = time.process_time()
        records = work(run)
        found.append(records / (time.process_time() - clock))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--samples", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--to")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        run = make_run(Path(name), arguments.samples)
        small = make_run(Path(name), max(arguments.samples // 20, 1))
        table = Table("", "records a second of CPU time", "least", "most")
        found = {
            "bulk helper": rates(helper, small, arguments.rounds),
            "benchctl": rates(ours, run, arguments.rounds),
        }
        for label, values in found.items():
            table.add_row(label, *(f"{one:,.0f}" for one in (median(values), min(values), max(values))))
        if arguments.to:
            clock = time.monotonic()
            (done,) = export([run], Endpoint.of(arguments.to), Layout(), samples=True)
            rate = done.records / (time.monotonic() - clock)
            table.add_row("to the store, of wall time", f"{rate:,.0f}", "", "")
    Console().print(table)
    return 0 if median(found["benchctl"]) >= GOAL * median(found["bulk helper"]) else 1


if __name__ == "__main__":
    sys.exit(main())
