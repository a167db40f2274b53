"""Samples made by hand."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from benchctl.results.samples import Columns, empty_columns
from benchctl.results.store import ForkSource

NS_PER_MS = 1_000_000


def make_samples(
    service_ms: Sequence[float], *, gap_ms: float = 0.0, start_ms: float = 0.0, **columns: Any
) -> Columns:
    """One client's successful requests, one after the other; columns by name, a value or one a row."""
    rows = empty_columns(len(service_ms))
    service_ns = np.round(np.asarray(service_ms, dtype=np.float64) * NS_PER_MS).astype(np.int64)
    ends = np.cumsum(service_ns + round(gap_ms * NS_PER_MS)) + round(start_ms * NS_PER_MS)
    rows["end_ns"][:] = ends - round(gap_ms * NS_PER_MS)
    rows["start_ns"][:] = rows["end_ns"] - service_ns
    rows["intended_ns"][:] = rows["start_ns"]
    rows["weight"][:] = 1
    rows["hits"][:] = 5
    rows["hits_exact"][:] = True
    for name, values in columns.items():
        rows[name][:] = values
    return rows


def make_source(
    chunks: Iterable[Columns] | None, label: str = "es", block: int = 0, *, absent: str = ""
) -> ForkSource:
    """A finished fork whose samples are in memory."""
    return ForkSource(label, block, chunks, absent)
