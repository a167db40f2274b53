"""Runs on disk with samples, for tests of what reads them."""

from pathlib import Path
from typing import NamedTuple

import duckdb
import msgspec
import numpy as np

from benchctl.results.model import RunRecord
from benchctl.results.samples import SAMPLE_DTYPES, Columns, empty_columns
from benchctl.results.store import RunFolder
from builders import make_fork, make_plan, make_record, make_summary

ROWS = 4


class StoredRun(NamedTuple):
    """A run on disk with its record."""

    folder: RunFolder
    record: RunRecord


def samples(service_ns: int, rows: int = ROWS) -> Columns:
    """Requests one behind the other, the first one of the warm-up."""
    columns = empty_columns(rows)
    columns["start_ns"] = np.arange(rows, dtype=np.int64) * 10**9
    columns["intended_ns"] = columns["start_ns"] - 10**6
    columns["end_ns"] = columns["start_ns"] + service_ns
    columns["processing_ns"] += 2 * service_ns
    columns["weight"] += 7
    columns["warmup"][:1] = True
    return columns


def stored(root: Path, run_id: str, record: RunRecord | None = None) -> StoredRun:
    """Two variants, two forks each: the service time is 1, 2, 3, 4 ms, fork by fork."""
    folder = RunFolder(root / run_id)
    forks = []
    for number, (block, variant) in enumerate([(0, "es"), (0, "os"), (1, "es"), (1, "os")], 1):
        relative = folder.write_samples([samples(number * 10**6)], variant, block)
        summary = make_summary("range", float(number), samples=ROWS - 1)
        forks.append(make_fork(variant, block, summary, samples=relative))
    base = record or make_record(run_id, plan=make_plan(), status="complete", tags=("a", "b"))
    kept = StoredRun(folder, msgspec.structs.replace(base, id=run_id, forks=tuple(forks)))
    folder.save(kept.record)
    return kept


def described(root: Path, run_id: str) -> StoredRun:
    """The same, whose record knows what its files are like."""
    run = stored(root, run_id)
    forks = tuple(map(run.folder.described, run.record.forks))
    kept = StoredRun(run.folder, msgspec.structs.replace(run.record, forks=forks))
    run.folder.save(kept.record)
    return kept


def read_parquet(path: Path) -> Columns:
    """All samples of a file."""
    with duckdb.connect() as connection:
        found = connection.execute("SELECT * FROM read_parquet(?)", [str(path)]).fetchnumpy()
    return {name: found[name].astype(dtype) for name, dtype in SAMPLE_DTYPES.items()}
