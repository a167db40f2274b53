"""One fork's samples of one task -> the figures that forks are compared by, in bounded memory."""

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from benchctl.results.figures import TaskSummary
from benchctl.results.samples import Columns, Outcome, select
from benchctl.stats.arrays import Mask
from benchctl.stats.counts import ValueCounts
from benchctl.stats.course import START_BINS, Groups, Neighbours, Thirds, effective_samples
from benchctl.stats.quantiles import quantiles
from benchctl.stats.segments import find_course
from benchctl.track.model import Task

_NS_PER_S = 1_000_000_000
_NS_PER_MS = 1_000_000

# What the figures of successful requests are made of; the other columns are not copied for them.
_FIGURES = (
    "client",
    "intended_ns",
    "start_ns",
    "first_byte_ns",
    "end_ns",
    "took_ms",
    "hits",
    "hits_exact",
    "weight",
    "processing_ns",
)


def summarise(
    chunks: Columns | Iterable[Columns],
    *,
    schedule: int,
    task_index: int,
    task: Task,
    unsupported: str | None = None,
) -> TaskSummary:
    """Summarise one task of one fork.

    Only successful measured operations enter the figures; warm-up, failures and what the driver cancelled are
    counted, never mixed in. The parts of an operation of several requests enter `pages` alone.

    Memory is bounded by the size of a chunk, not by their number. Figures are exact nevertheless; only where
    a quantity has more than a million distinct values are its quantiles those of values rounded to a
    microsecond (see `ValueCounts`).

    Args:
        chunks: samples of the fork, each column of shape (n,); may hold other tasks, too. The rows of a
            client are in the order of its requests, over all chunks. Read twice.
        schedule: position of the challenge in the fork.
        task_index: position of the task in that challenge.
        task: the task itself.
        unsupported: the node's reason when it cannot do this operation at all.

    Raises:
        TypeError: `chunks` can be iterated only once.
    """
    if isinstance(chunks, dict):
        chunks = [chunks]
    elif isinstance(chunks, Iterator):
        raise TypeError("samples are read twice: an iterator can be read once")
    throttled = task.throttled
    tally = _Tally(throttled=throttled)
    for chunk in chunks:
        tally.add(_of_task(chunk, schedule, task_index))
    neighbours, thirds = Neighbours(tally.mean_ns or 0.0), Thirds(tally.starts)
    groups = Groups(tally.starts, tally.least_ns or 0.0, tally.most_ns or 0.0)
    for chunk in chunks:
        ok = tally.succeeded(_of_task(chunk, schedule, task_index))
        service_ns = ok["end_ns"] - ok["start_ns"]
        neighbours.add(service_ns, ok["client"])
        thirds.add(service_ns, ok["start_ns"], ok["client"])
        groups.add(service_ns, ok["start_ns"], ok["client"])
    samples, lag1 = tally.service.size, neighbours.lag1
    hits, hits_exact = tally.agreed_hits()
    return TaskSummary(
        schedule=schedule,
        task=task_index,
        label=task.label,
        operation=task.operation,
        samples=samples,
        warmup_samples=tally.warmup,
        cancelled=tally.cancelled,
        retries=tally.retries,
        failures={outcome.name.lower(): count for outcome, count in sorted(tally.failures.items())},
        throughput_per_s=tally.throughput_per_s(),
        target_per_s=task.rate_per_s,
        service_time=quantiles(tally.service),
        latency=quantiles(tally.latency) if throttled else None,
        took=quantiles(tally.took),
        processing_time=quantiles(tally.processing),
        first_byte=quantiles(tally.first_byte),
        pages=quantiles(tally.pages),
        mean_ns=tally.mean_ns,
        sd_ns=neighbours.sd,
        min_ns=tally.least_ns,
        max_ns=tally.most_ns,
        lag1=lag1,
        effective_samples=effective_samples(samples, lag1) if samples else None,
        drift=thirds.drift(),
        hits=hits,
        hits_exact=hits_exact,
        unsupported=unsupported,
        course=find_course(*groups.medians(), samples) if (tally.least_ns or 0.0) > 0 else None,
    )


class _Tally:
    """What a first reading of a task's samples comes to.

    Args:
        throttled: requests had a due time, from which latency and the measured window count.

    Attributes:
        warmup: operations of the warm-up.
        cancelled: operations that the driver itself ended, warm-up included.
        retries: measured requests that were sent again after a rejection.
        failures: measured operations that failed.
        service, latency, took, processing, first_byte: times of successful measured operations.
        pages: service times of the successful requests that longer operations consist of.
        starts: when the successful measured operations began, rounded where they are many.
        least_ns, most_ns: of service time; None without samples.
    """

    def __init__(self, *, throttled: bool) -> None:
        self._throttled = throttled
        self.warmup = self.cancelled = self.retries = 0
        self.failures: Counter[Outcome] = Counter()
        self.service, self.latency, self.took = ValueCounts(), ValueCounts(), ValueCounts()
        self.processing, self.first_byte, self.pages = ValueCounts(), ValueCounts(), ValueCounts()
        self.starts = ValueCounts(START_BINS)
        self.least_ns: float | None = None
        self.most_ns: float | None = None
        self._service_ns = self._weight = 0
        self._opens_ns: int | None = None
        self._closes_ns: int | None = None
        self._hits: set[int] = set()
        self._hits_exact = True

    def add(self, mine: Columns) -> None:
        """Take more rows of the task."""
        whole = mine["part"] == 0
        cancelled = mine["outcome"] == Outcome.CANCELLED
        measured = ~mine["warmup"] & ~cancelled
        self.cancelled += int((whole & cancelled).sum())
        self.warmup += int((whole & mine["warmup"] & ~cancelled).sum())
        self.retries += int((measured & (mine["attempt"] > 0)).sum())
        pages = measured & ~whole & (mine["outcome"] == Outcome.OK)
        self.pages.add(mine["end_ns"][pages] - mine["start_ns"][pages])
        self._add_outcomes(mine, measured & whole)
        self._add_successes(self.succeeded(mine))

    @staticmethod
    def succeeded(mine: Columns) -> Columns:
        """The successful measured operations among the rows of a task; of their columns, the figures'."""
        ok = (mine["part"] == 0) & (mine["outcome"] == Outcome.OK) & ~mine["warmup"]
        return select({name: mine[name] for name in _FIGURES}, ok)

    @property
    def mean_ns(self) -> float | None:
        """Of service time; None without samples."""
        return self._service_ns / self.service.size if self.service.size else None

    def throughput_per_s(self) -> float | None:
        """Successful units over the seconds of the measured window; None without samples.

        The window opens with the first measured request of any client (when it was due, if the task is
        throttled) and closes with the end of the last one, failed ones included: time spent on failures is
        time spent. Clients may end their warm-up at different times; what a late client still does as warm-up
        inside the window is not counted, so several clients with few iterations are slightly understated,
        never overstated.
        """
        if self.service.size == 0 or self._opens_ns is None or self._closes_ns is None:
            return None
        window_ns = self._closes_ns - self._opens_ns
        return self._weight * _NS_PER_S / window_ns if window_ns > 0 else None

    def agreed_hits(self) -> tuple[int | None, bool]:
        """The one number of hits that every answer gave, and whether all counted exactly."""
        if len(self._hits) != 1 or -1 in self._hits:
            return None, False
        return next(iter(self._hits)), self._hits_exact

    def _add_outcomes(self, mine: Columns, measured: Mask) -> None:
        if not measured.any():
            return
        opens_ns = int(mine["intended_ns" if self._throttled else "start_ns"][measured].min())
        closes_ns = int(mine["end_ns"][measured].max())
        self._opens_ns = opens_ns if self._opens_ns is None else min(self._opens_ns, opens_ns)
        self._closes_ns = closes_ns if self._closes_ns is None else max(self._closes_ns, closes_ns)
        codes, counts = np.unique(mine["outcome"][measured], return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            if code != Outcome.OK:
                self.failures[Outcome(code)] += count

    def _add_successes(self, ok: Columns) -> None:
        service_ns = ok["end_ns"] - ok["start_ns"]
        if service_ns.size == 0:
            return
        self.service.add(service_ns)
        self.starts.add(ok["start_ns"])
        if self._throttled:
            self.latency.add(ok["end_ns"] - ok["intended_ns"])
        took_ms = ok["took_ms"]
        self.took.add(took_ms[took_ms >= 0].astype(np.int64) * _NS_PER_MS)
        # No answer takes no time: 0 is what a recorder keeps when it does not know.
        for counts, name in ((self.processing, "processing_ns"), (self.first_byte, "first_byte_ns")):
            counts.add(select({name: ok[name]}, ok[name] > 0)[name])
        least_ns, most_ns = float(service_ns.min()), float(service_ns.max())
        self.least_ns = least_ns if self.least_ns is None else min(self.least_ns, least_ns)
        self.most_ns = most_ns if self.most_ns is None else max(self.most_ns, most_ns)
        self._service_ns += int(service_ns.sum())
        self._weight += int(ok["weight"].sum())
        # Two different numbers say that answers disagree; there may be a million of them.
        self._hits |= {int(ok["hits"].min()), int(ok["hits"].max())}
        self._hits = set(sorted(self._hits)[:2])
        self._hits_exact &= bool(ok["hits_exact"].all())


def _of_task(chunk: Columns, schedule: int, task_index: int) -> Columns:
    return select(chunk, (chunk["schedule"] == schedule) & (chunk["task"] == task_index))
