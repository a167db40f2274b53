"""Builders of samples, summaries and forks, with plain values for what a test does not care about."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchctl.results.figures import TaskSummary
from benchctl.results.plan import Plan
from benchctl.results.samples import Columns, empty_columns
from benchctl.track.model import Challenge, Task
from builders import make_fork as fork
from builders import make_plan, make_summary

__all__ = ["fork", "plan", "samples", "summary"]


def samples(durations_ns: Sequence[int], **columns: Any) -> Columns:
    """Back-to-back requests of one client, unless the columns say otherwise."""
    ends = np.cumsum(np.asarray(durations_ns, dtype=np.int64))
    made = empty_columns(len(durations_ns))
    made["end_ns"][:] = ends
    made["start_ns"][:] = ends - np.asarray(durations_ns)
    made["intended_ns"][:] = made["start_ns"]
    made["took_ms"][:] = -1
    made["hits"][:] = -1
    made["weight"][:] = 1
    for name, values in columns.items():
        made[name][:] = values
    return made


def plan(*tasks: Task, **changes: Any) -> Plan:
    return make_plan(**{"schedules": (Challenge("c", tasks),), **changes})


def summary(mean_ms: float, label: str = "range", task: int = 0, **changes: Any) -> TaskSummary:
    return make_summary(label, mean_ms, task=task, **changes)
