"""Samples made by hand."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from benchctl.results.figures import TaskSummary
from benchctl.results.reading import ForkSource, Telemetry
from benchctl.results.samples import SERIES_DTYPES, Columns, empty_columns
from benchctl.stats.task_shape import TaskShapes, run_shapes
from benchctl.track.model import Challenge, Task
from builders import make_plan

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
    chunks: Iterable[Columns] | None,
    label: str = "es",
    block: int = 0,
    *,
    absent: str = "",
    summaries: tuple[TaskSummary, ...] = (),
    telemetry: Telemetry | None = None,
) -> ForkSource:
    """A finished fork whose samples are in memory."""
    return ForkSource(label, block, chunks, absent, summaries, telemetry)


def make_telemetry(seconds: int, pauses: Sequence[tuple[float, float]] = (), **readings: float) -> Telemetry:
    """A reading a second, from 1 s on, always the same; and pauses of (start in s, length in ms)."""
    series = {name: np.full(seconds, readings.get(name, np.nan)) for name in SERIES_DTYPES} | {
        "boot": np.zeros(seconds, np.int16),
        "t_ns": (np.arange(seconds) + 1) * 1000 * NS_PER_MS,
    }
    events = {
        "boot": np.zeros(len(pauses), np.int16),
        "t_ns": np.array([round(start * 1000) * NS_PER_MS for start, _ in pauses], dtype=np.int64),
        "pause_ns": np.array([round(length * NS_PER_MS) for _, length in pauses], dtype=np.int64),
        "what": np.array([f"pause at {start:g}" for start, _ in pauses], dtype=object),
    }
    return Telemetry(series, events)


def make_task_shapes(*sources: ForkSource, **task: Any) -> TaskShapes:
    """The only task of a plan, of all these forks; how it is run by keyword."""
    plan = make_plan(schedules=(Challenge("c", (Task("range", **task),)),))
    return run_shapes(plan, sources).tasks[0, 0]
