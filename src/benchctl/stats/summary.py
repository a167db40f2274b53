"""Summary of a fork's samples of a task: their course, and the values that forks are compared by."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus

import numpy as np
import numpy.typing as npt

from benchctl.results.figures import Quantiles, TaskSummary
from benchctl.results.samples import Columns, Outcome, select
from benchctl.stats.arrays import Floats, Integers, Mask, StartOrder, ValueCounts, start_counts
from benchctl.stats.disturbed import FarBeyond, far_beyond
from benchctl.stats.quantiles import TIMES, GroupedCounts, linear_quantiles, quantiles
from benchctl.stats.steady import find_course
from benchctl.track.model import Task

_LEAST_FOR_LAG1 = 3
_LEAST_FOR_DRIFT = 6

_MOST_GROUPS = 512


class Neighbours:
    """Variance, the correlation of each value with the one before it of the same client, and stalls.

    `mean` and `far` are of all the values that will be added, known from an earlier reading, so that nothing
    cancels. A stall is far beyond the typical value and the one before it: a client's first is none, nor are
    those of a warm-up.
    """

    def __init__(self, mean: float, far: FarBeyond) -> None:
        self._mean = mean
        self._far = far
        self.stalled = self.stalled_ns = 0
        self._size = 0
        self._squares = 0.0
        self._products = 0.0
        self._last: dict[int, int] = {}

    def add(self, values: Integers, clients: npt.NDArray[np.int16]) -> None:
        """Add values and their clients, shape (n,); each client's in time order, after those before."""
        if values.size == 0:
            return
        # A stable sort by client keeps each one's order; of 16-bit numbers it takes linear time.
        order = np.argsort(clients, kind="stable")
        owners, values = clients[order], values[order]
        firsts = np.concatenate([[0], np.flatnonzero(owners[1:] != owners[:-1]) + 1])
        before = np.empty(values.size)
        before[1:] = values[:-1]
        before[firsts] = [self._last.get(owner, math.nan) for owner in owners[firsts].tolist()]
        lasts = np.append(firsts[1:], owners.size) - 1
        self._last |= zip(owners[lasts].tolist(), values[lasts].tolist(), strict=True)
        centred = values - self._mean
        self._size += values.size
        self._squares += float(centred @ centred)
        self._products += float(np.nansum(centred * (before - self._mean)))
        stalls = values[(values > self._far.ns) & (values > self._far.ratio * before)]
        self.stalled += stalls.size
        self.stalled_ns += int(stalls.sum())

    @property
    def sd(self) -> float | None:
        """Standard deviation; None under 2 values."""
        return math.sqrt(self._squares / (self._size - 1)) if self._size > 1 else None

    @property
    def lag1(self) -> float | None:
        """Autocorrelation between -1 and 1; None under 3 values or when all are equal."""
        if self._size < _LEAST_FOR_LAG1 or self._squares <= 0.0:
            return None
        return self._products / self._squares


def effective_samples(samples: int, lag1: float | None) -> float:
    """Return how many independent samples an autocorrelated series is worth: m(1-phi)/(1+phi), at most m."""
    if lag1 is None:
        return float(samples)
    return float(samples * min(1.0, (1 - lag1) / (1 + lag1)))


class Thirds:
    """The first and the last third of a task's values, by the order of their requests' starts."""

    def __init__(self, order: StartOrder) -> None:
        self._order = order
        self._third = order.size // 3
        self._logs = [0.0, 0.0]
        self._sizes = [0, 0]

    def add(self, values: Integers, starts: Integers) -> None:
        """Add values and their requests' starts in ns, shape (n,)."""
        ranks = self._order.ranks(starts)
        for part, chosen in enumerate((ranks < self._third, ranks >= self._order.size - self._third)):
            with np.errstate(divide="ignore"):
                self._logs[part] += float(np.log(values[chosen]).sum())
            self._sizes[part] += int(chosen.sum())

    def drift(self) -> float | None:
        """ln(geometric mean of the last third / of the first), after everything was added.

        Negative when values get smaller; None under 6 values, or when one is not positive. Means, because a
        warm-up of less than a sixth of the requests moves no median of a third, and yet every quantile of the
        task from p84 on.
        """
        if self._order.size < _LEAST_FOR_DRIFT or not all(self._sizes):
            return None
        first, last = (logs / size for logs, size in zip(self._logs, self._sizes, strict=True))
        return last - first if math.isfinite(first) and math.isfinite(last) else None


class Groups:
    """A task's values in the order of their requests' starts: one by one, or as medians of groups.

    Up to 512 requests stand for themselves. Of more, groups of equal size (the last may be smaller) are stood
    for by their medians: a change of level is then known to a 512th of the requests, and what hardly any
    request of a group takes part in is not seen.
    """

    def __init__(self, order: StartOrder) -> None:
        self._order = order
        self._size = max(1, -(-order.size // _MOST_GROUPS))
        self._values = GroupedCounts()

    def add(self, values: Integers, starts: Integers) -> None:
        """Add values and their requests' starts in ns, shape (n,)."""
        self._values.add(self._order.ranks(starts) // self._size, values)

    def medians(self) -> tuple[Floats, Integers]:
        """Values, or medians of groups, and how many requests came before each; both of shape (k,)."""
        groups = [
            (linear_quantiles(values, counts, [0.5]).item(), int(counts.sum()))
            for _, values, counts in self._values.groups()
        ]
        sizes = np.array([size for _, size in groups], dtype=np.int64)
        return np.array([middle for middle, _ in groups]), np.cumsum(sizes) - sizes


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
    constant: bool = False,
) -> TaskSummary:
    """Summarise one task of one fork.

    Only successful measured operations enter the figures; warm-up, failures and what the driver cancelled are
    counted, never mixed in. But failed requests rank above all others in quantiles, which would get better
    without the slowest ones. The parts of an operation of several requests enter `pages` alone.

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
        constant: whether all requests are the same, of documents that nothing is meant to change.

    Raises:
        TypeError: If `chunks` can be iterated only once.
    """
    if isinstance(chunks, dict):
        chunks = [chunks]
    elif isinstance(chunks, Iterator):
        raise TypeError("samples must support repeated iteration")
    throttled = task.throttled
    tally = _Tally(throttled=throttled)
    for chunk in chunks:
        tally.add(_of_task(chunk, schedule, task_index))
    far = far_beyond(tally.service) if tally.service.size else FarBeyond(math.inf, math.inf)
    order = StartOrder(tally.starts)
    neighbours, thirds, groups = Neighbours(tally.mean_ns or 0.0, far), Thirds(order), Groups(order)
    for chunk in chunks:
        ok = tally.succeeded(_of_task(chunk, schedule, task_index))
        service_ns = ok["end_ns"] - ok["start_ns"]
        neighbours.add(service_ns, ok["client"])
        thirds.add(service_ns, ok["start_ns"])
        groups.add(service_ns, ok["start_ns"])
    samples, lag1 = tally.service.size, neighbours.lag1
    failed = max(0, sum(tally.failures.values()) - tally.retries)
    stalled_failed, failed_ns, all_ns = tally.failed_beyond(far.ns)
    stalled_ns = neighbours.stalled_ns + failed_ns
    hits, hits_exact = tally.agreed_hits()
    hits_least, hits_most = tally.changed_hits() if constant else (None, None)
    return TaskSummary(
        schedule=schedule,
        task=task_index,
        label=task.label,
        operation=task.operation,
        samples=samples,
        warmup_samples=tally.warmup,
        cancelled=tally.cancelled,
        retries=tally.retries,
        ignored_errors=tally.ignored_errors,
        failures={outcome.name.lower(): count for outcome, count in sorted(tally.failures.items())},
        throughput_per_s=tally.throughput_per_s(),
        target_per_s=task.rate_per_s,
        service_time=quantiles(tally.service, failed),
        latency=quantiles(tally.latency, failed) if throttled else None,
        took=quantiles(tally.took, failed),
        processing_time=quantiles(tally.processing, failed),
        first_byte=quantiles(tally.first_byte, failed),
        pages=quantiles(tally.pages, tally.failed_pages),
        mean_ns=tally.mean_ns,
        sd_ns=neighbours.sd,
        min_ns=tally.least_ns,
        max_ns=tally.most_ns,
        lag1=lag1,
        effective_samples=effective_samples(samples, lag1) if samples else None,
        drift=thirds.drift(),
        hits=hits,
        hits_exact=hits_exact,
        hits_least=hits_least,
        hits_most=hits_most,
        stalled=neighbours.stalled + stalled_failed,
        stalled_s=stalled_ns / _NS_PER_S,
        stalled_share=stalled_ns / all_ns if all_ns else 0.0,
        unsupported=unsupported,
        course=find_course(*groups.medians(), samples) if (tally.least_ns or 0.0) > 0 else None,
    )


class _Tally:
    """The first reading of a task's samples."""

    def __init__(self, *, throttled: bool) -> None:
        self._throttled = throttled
        self.warmup = self.cancelled = self.retries = self.ignored_errors = self.failed_pages = 0
        self.failures: Counter[Outcome] = Counter()
        self.service, self.latency, self.took = ValueCounts(), ValueCounts(), ValueCounts()
        self.processing, self.first_byte, self.pages = ValueCounts(), ValueCounts(), ValueCounts()
        self._failed = ValueCounts()
        self.starts = start_counts()
        self.least_ns: float | None = None
        self.most_ns: float | None = None
        self._service_ns = self._weight = 0
        self._opens_ns: int | None = None
        self._closes_ns: int | None = None
        # Least and most by whether the engine counted them all; two numbers say that answers disagree.
        self._hits: dict[bool, tuple[int, int]] = {}

    def add(self, mine: Columns) -> None:
        """Take more rows of the task."""
        whole = mine["part"] == 0
        cancelled = mine["outcome"] == Outcome.CANCELLED
        measured = ~mine["warmup"] & ~cancelled
        self.cancelled += int((whole & cancelled).sum())
        self.warmup += int((whole & mine["warmup"] & ~cancelled).sum())
        self.retries += int((measured & (mine["attempt"] > 0)).sum())
        succeeded = mine["outcome"] == Outcome.OK
        pages = measured & ~whole & succeeded
        self.pages.add(mine["end_ns"][pages] - mine["start_ns"][pages])
        self.failed_pages += int((measured & ~whole & ~succeeded).sum())
        self._add_outcomes(mine, measured & whole)
        if whole.all():
            # An operation of several requests has the status of one of them, such as its clean-up.
            ok = measured & succeeded
            self.ignored_errors += int((ok & (mine["status"] >= HTTPStatus.BAD_REQUEST)).sum())
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

    def failed_beyond(self, ns: float) -> tuple[int, int, int]:
        """Return how many failed operations took longer, these together, and all operations together, ns."""
        values, counts = self._failed.pairs()
        long = values > ns
        total_ns = self._service_ns + int(values @ counts)
        return int(counts[long].sum()), int(values[long] @ counts[long]), total_ns

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
        """Return the one number of hits that every answer gave, and whether all counted exactly."""
        numbers = {hits for bounds in self._hits.values() for hits in bounds}
        if len(numbers) != 1 or -1 in numbers:
            return None, False
        return next(iter(numbers)), False not in self._hits

    def changed_hits(self) -> tuple[int | None, int | None]:
        """Return the fewest and most hits, if exact ones differ or only some answers are exact; else None.

        What is not exact depends on how far the engine counted, and answers without hits do not count.
        """
        known = {exact: bounds for exact, bounds in self._hits.items() if bounds[0] >= 0}
        least, most = known.get(True, (0, 0))
        if least == most and len(known) < len((True, False)):
            return None, None
        return min(bounds[0] for bounds in known.values()), max(bounds[1] for bounds in known.values())

    def _add_outcomes(self, mine: Columns, measured: Mask) -> None:
        if not measured.any():
            return
        opens_ns = int(mine["intended_ns" if self._throttled else "start_ns"][measured].min())
        closes_ns = int(mine["end_ns"][measured].max())
        self._opens_ns = opens_ns if self._opens_ns is None else min(self._opens_ns, opens_ns)
        self._closes_ns = closes_ns if self._closes_ns is None else max(self._closes_ns, closes_ns)
        failed = measured & (mine["outcome"] != Outcome.OK)
        self._failed.add(mine["end_ns"][failed] - mine["start_ns"][failed])
        codes, counts = np.unique(mine["outcome"][measured], return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            if code != Outcome.OK:
                self.failures[Outcome(code)] += count

    def _add_successes(self, ok: Columns) -> None:
        service_ns = TIMES["service_time"](ok)
        if service_ns.size == 0:
            return
        self.service.add(service_ns)
        self.starts.add(ok["start_ns"])
        if self._throttled:
            self.latency.add(TIMES["latency"](ok))
        self.took.add(TIMES["took"](ok))
        self.first_byte.add(TIMES["first_byte"](ok))
        self.processing.add(ok["processing_ns"][ok["processing_ns"] > 0])
        least_ns, most_ns = float(service_ns.min()), float(service_ns.max())
        self.least_ns = least_ns if self.least_ns is None else min(self.least_ns, least_ns)
        self.most_ns = most_ns if self.most_ns is None else max(self.most_ns, most_ns)
        self._service_ns += int(service_ns.sum())
        self._weight += int(ok["weight"].sum())
        for exact in (True, False):
            hits = ok["hits"][ok["hits_exact"] == exact]
            if hits.size:
                least, most = self._hits.get(exact, (int(hits[0]), int(hits[0])))
                self._hits[exact] = min(least, int(hits.min())), max(most, int(hits.max()))


def took_quantiles(tooks: Sequence[Mapping[int, int]], failed: int) -> tuple[Quantiles, ...]:
    """Quantiles of each of several times, in nanoseconds, from milliseconds -> how often it was measured.

    Requests that `failed` are in none of them.
    """
    found = []
    for took in tooks:
        times = ValueCounts()
        times.add(np.repeat(np.array([*took]) * _NS_PER_MS, [*took.values()]))
        found.append(quantiles(times, failed))
    return tuple(one for one in found if one is not None)


def _of_task(chunk: Columns, schedule: int, task_index: int) -> Columns:
    return select(chunk, (chunk["schedule"] == schedule) & (chunk["task"] == task_index))
