"""Quantiles that no summary holds: asked for after the run, computed from the samples of its forks."""

from collections.abc import Collection, Iterable

import msgspec
import numpy as np

from benchctl.results.figures import Quantiles, TaskSummary
from benchctl.results.model import ForkRecord
from benchctl.results.plan import Place
from benchctl.results.samples import Columns, Outcome
from benchctl.stats.counts import ValueCounts
from benchctl.stats.quantiles import quantile

SUMMARISED = (0.5, 0.9, 0.99)
"""The quantiles that every summary holds."""


class MoreQuantiles(Quantiles, frozen=True, forbid_unknown_fields=True):
    """Quantiles with further ones beside them, in nanoseconds; never written to a record.

    Attributes:
        more: probability -> quantile by Harrell and Davis.
    """

    more: dict[float, float]

    def at(self, probability: float) -> float | None:
        """Any of those that were asked for, too."""
        return self.more.get(probability, super().at(probability))


class _Times:
    """The service times and latencies of one task's successful measured operations."""

    def __init__(self) -> None:
        self.service = ValueCounts()
        self.latency = ValueCounts()


def requantiled(fork: ForkRecord, chunks: Iterable[Columns], quantiles: Collection[float]) -> ForkRecord:
    """The same fork, whose summaries know further quantiles of service time and latency.

    The requests are those of `summarise`: successful measured operations, without the parts of longer ones.
    Memory is bounded by a chunk and the number of distinct times.

    Args:
        fork: a finished fork.
        chunks: its samples: the columns schedule, task, warmup, part, outcome, and the three clocks.
        quantiles: probabilities between 0 and 1, both excluded.
    """
    times: dict[Place, _Times] = {}
    for chunk in chunks:
        _add(times, chunk)
    summaries = tuple(
        _with_more(summary, times.get((summary.schedule, summary.task)), quantiles)
        for summary in fork.summaries
    )
    return msgspec.structs.replace(fork, summaries=summaries)


def _add(times: dict[Place, _Times], chunk: Columns) -> None:
    kept = ~chunk["warmup"] & (chunk["part"] == 0) & (chunk["outcome"] == Outcome.OK)
    schedules, tasks = chunk["schedule"][kept], chunk["task"][kept]
    intended, start, end = (chunk[name][kept] for name in ("intended_ns", "start_ns", "end_ns"))
    for schedule, task in np.unique(np.stack([schedules, tasks]), axis=1).T.tolist():
        own = (schedules == schedule) & (tasks == task)
        found = times.setdefault((schedule, task), _Times())
        found.service.add((end - start)[own])
        found.latency.add((end - intended)[own])


def _with_more(summary: TaskSummary, times: _Times | None, quantiles: Collection[float]) -> TaskSummary:
    """A closed loop has no latency, in however many quantiles."""
    if times is None:
        return summary
    return msgspec.structs.replace(
        summary,
        service_time=_extended(summary.service_time, times.service, quantiles),
        latency=_extended(summary.latency, times.latency, quantiles),
    )


def _extended(known: Quantiles | None, counts: ValueCounts, quantiles: Collection[float]) -> Quantiles | None:
    if known is None:
        return None
    more = {one: value for one in quantiles if (value := quantile(counts, one)) is not None}
    return MoreQuantiles(**msgspec.structs.asdict(known), more=more)
