"""Summary of a fork's samples of a task: the values that forks are compared by, the driver."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus

import msgspec
import numpy as np
import numpy.typing as npt

from benchctl.results.figures import DriverFigures, Quantiles, TaskSummary
from benchctl.results.samples import Columns, Outcome, Span, select
from benchctl.stats.arrays import Integers, Mask, StartOrder, ValueCounts, start_counts
from benchctl.stats.disturbed import FarBeyond, far_beyond
from benchctl.stats.quantiles import TIMES, quantiles
from benchctl.track.model import Task

_LEAST_FOR_DRIFT = 6


class Stalls:
    """Values far beyond the typical one and the client's one before: its first is none.

    `far` is of all the values that will be added, known from an earlier reading.
    """

    def __init__(self, far: FarBeyond) -> None:
        self._far = far
        self.count = self.ns = 0
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
        stalls = values[(values > self._far.ns) & (values > self._far.ratio * before)]
        self.count += stalls.size
        self.ns += int(stalls.sum())


class Thirds:
    """The first and the last third of a task's last values, by the order of their requests' starts."""

    def __init__(self, order: StartOrder, last: int) -> None:
        self._order = order
        self._last = last
        self._third = last // 3
        self._logs = [0.0, 0.0]
        self._sizes = [0, 0]

    def add(self, values: Integers, starts: Integers) -> None:
        """Add values and their requests' starts in ns, shape (n,)."""
        ranks = self._order.ranks(starts) - (self._order.size - self._last)
        first = (ranks >= 0) & (ranks < self._third)
        for part, chosen in enumerate((first, ranks >= self._last - self._third)):
            with np.errstate(divide="ignore"):
                self._logs[part] += float(np.log(values[chosen]).sum())
            self._sizes[part] += int(chosen.sum())

    def drift(self) -> float | None:
        """ln(geometric mean of the last third / of the first), after everything was added.

        Negative when values get smaller; None under 6 values, or when one is not positive. Means, because a
        warm-up of less than a sixth of the requests moves no median of a third, and yet every quantile of the
        task from p84 on.
        """
        if self._last < _LEAST_FOR_DRIFT or not all(self._sizes):
            return None
        first, last = (logs / size for logs, size in zip(self._logs, self._sizes, strict=True))
        return last - first if math.isfinite(first) and math.isfinite(last) else None


_NS_PER_S = 1_000_000_000
_NS_PER_MS = 1_000_000
_LONG_AGO_NS = -(2**62)
_LATE_NS = 2**62
_TURN_BITS = 32
# libcurl's clock and ours may differ by less than the microsecond that libcurl's is rounded to.
_CLOCKS_APART_NS = 1_000

# What the figures of successful requests are made of; the other columns are not copied for them.
_FIGURES = (
    "client",
    "intended_ns",
    "start_ns",
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
    without the slowest ones. The parts of an operation of several requests enter `pages` alone. The first and
    the second request may be of the warm-up.

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
    tally = _Tally(task)
    for chunk in chunks:
        tally.add(_of_task(chunk, schedule, task_index))
    far = far_beyond(tally.service) if tally.service.size else FarBeyond(math.inf, math.inf)
    stalls = Stalls(far)
    thirds = Thirds(StartOrder(tally.starts), tally.last_for_drift)
    first, second = tally.first, _Earliest(tally.first.end_ns - _CLOCKS_APART_NS)
    for chunk in chunks:
        mine = _of_task(chunk, schedule, task_index)
        second.add(mine)
        every = tally.succeeded(mine, warmup=True)
        thirds.add(every["end_ns"] - every["start_ns"], every["start_ns"])
        ok = tally.succeeded(mine)
        stalls.add(ok["end_ns"] - ok["start_ns"], ok["client"])
    failed = max(0, sum(tally.failures.values()) - tally.retries)
    stalled_failed, failed_ns, all_ns = tally.failed_beyond(far.ns)
    stalled_ns = stalls.ns + failed_ns
    hits, hits_exact = tally.agreed_hits()
    hits_least, hits_most = tally.changed_hits() if constant else (None, None)
    return TaskSummary(
        schedule=schedule,
        task=task_index,
        label=task.label,
        operation=task.operation,
        samples=tally.service.size,
        warmup_samples=tally.warmup,
        cancelled=tally.cancelled,
        retries=tally.retries,
        ignored_errors=tally.ignored_errors,
        failures={outcome.name.lower(): count for outcome, count in sorted(tally.failures.items())},
        throughput_per_s=tally.throughput_per_s(),
        units_per_request=tally.units_per_request,
        target_per_s=task.rate_per_s,
        service_time=quantiles(tally.service, failed),
        latency=quantiles(tally.latency, failed) if throttled else None,
        took=quantiles(tally.took, failed),
        processing_time=quantiles(tally.processing, failed),
        pages=quantiles(tally.pages, tally.failed_pages),
        first_ns=first.service_ns,
        second_ns=None if first.service_ns is None else second.service_ns,
        mean_ns=tally.mean_ns,
        drift=thirds.drift(),
        hits=hits,
        hits_exact=hits_exact,
        hits_least=hits_least,
        hits_most=hits_most,
        stalled=stalls.count + stalled_failed,
        stalled_s=stalled_ns / _NS_PER_S,
        stalled_share=stalled_ns / all_ns if all_ns else 0.0,
        unsupported=unsupported,
    )


class _Earliest:
    """The operation of a task that began first, at `since_ns` or later; measured or not."""

    def __init__(self, since_ns: int = _LONG_AGO_NS) -> None:
        self._since_ns = since_ns
        self._start_ns: int | None = None
        self.end_ns = since_ns
        self.service_ns: float | None = None  # None without one, or where it failed

    def add(self, mine: Columns) -> None:
        """Take more rows of the task."""
        rows = np.flatnonzero((mine["part"] == 0) & (mine["start_ns"] >= self._since_ns))
        if rows.size == 0:
            return
        row = rows[mine["start_ns"][rows].argmin()]
        start_ns = int(mine["start_ns"][row])
        if self._start_ns is None or start_ns < self._start_ns:
            self._start_ns, self.end_ns = start_ns, int(mine["end_ns"][row])
            succeeded = mine["outcome"][row] == Outcome.OK
            self.service_ns = float(self.end_ns - start_ns) if succeeded else None


class _Tally:
    """The first reading of a task's samples."""

    def __init__(self, task: Task) -> None:
        self._throttled, self._ramps_up = task.throttled, bool(task.ramp_up_time_period)
        # Clients that share connections do not work all the time of a turn.
        self._by_client = not (task.throttled or task.mixed or task.lanes)
        self._turns: dict[int, tuple[int, int]] = {}
        self.first = _Earliest()
        self.warmup = self.cancelled = self.retries = self.ignored_errors = self.failed_pages = 0
        self.failures: Counter[Outcome] = Counter()
        self.service, self.latency, self.took = ValueCounts(), ValueCounts(), ValueCounts()
        self.processing, self.pages = ValueCounts(), ValueCounts()
        self._failed = ValueCounts()
        self.starts = start_counts()
        self._service_ns = self._weight = self._weight_of_firsts = 0
        self._opens_ns: int | None = None
        self._closes_ns: int | None = None
        # Least and most by whether the engine counted them all; two numbers say that answers disagree.
        self._hits: dict[bool, tuple[int, int]] = {}

    def add(self, mine: Columns) -> None:
        """Take more rows of the task."""
        self.first.add(mine)
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
        firsts = whole & mine["warmup"] & (mine["turn"] > 0)
        self._add_window(mine, (measured & whole) | (firsts & ~cancelled))
        self._weight_of_firsts += int(mine["weight"][firsts & succeeded].sum())
        if whole.all():
            # An operation of several requests has the status of one of them, such as its clean-up.
            ok = measured & succeeded
            self.ignored_errors += int((ok & (mine["status"] >= HTTPStatus.BAD_REQUEST)).sum())
        self.starts.add(self.succeeded(mine, warmup=True)["start_ns"])
        self._add_successes(self.succeeded(mine))

    @staticmethod
    def succeeded(mine: Columns, *, warmup: bool = False) -> Columns:
        """The successful operations among the rows of a task; of their columns, the figures'."""
        ok = (mine["part"] == 0) & (mine["outcome"] == Outcome.OK)
        return select({name: mine[name] for name in _FIGURES}, ok if warmup else ok & ~mine["warmup"])

    @property
    def last_for_drift(self) -> int:
        """Requests that have to be level: the measured ones, or a third of all if these are more.

        100 measured behind 400 do not show a task that gets 5% faster every hundred; the last 167 do. Clients
        that ramp up are fast at first, for want of others: then only measured ones count.
        """
        measured = self.service.size
        return max(measured, self.starts.size // 3) if measured and not self._ramps_up else measured

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
        never overstated. In turns, a client's window is the sum of its turns, each from the end of its first
        request, which is warm-up, to the end of its last; clients count alike.
        """
        if self.service.size == 0 or self._opens_ns is None or self._closes_ns is None:
            return None
        window_ns: float = self._closes_ns - self._opens_ns
        weight = self._weight + self._weight_of_firsts
        if self._turns:
            clients = {key >> _TURN_BITS for key in self._turns}
            window_ns = sum(closes - opens for opens, closes in self._turns.values()) / len(clients)
            weight = self._weight
        return weight * _NS_PER_S / window_ns if window_ns > 0 else None

    @property
    def units_per_request(self) -> float | None:
        """Return what a successful request counts, on average; None without any."""
        return self._weight / self.service.size if self.service.size else None

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
        by_exactness = {exact: bounds for exact, bounds in self._hits.items() if bounds[0] >= 0}
        least, most = by_exactness.get(True, (0, 0))
        if least == most and len(by_exactness) < len((True, False)):
            return None, None
        return min(bounds[0] for bounds in by_exactness.values()), max(
            bounds[1] for bounds in by_exactness.values()
        )

    def _add_outcomes(self, mine: Columns, measured: Mask) -> None:
        if not measured.any():
            return
        failed = measured & (mine["outcome"] != Outcome.OK)
        self._failed.add(mine["end_ns"][failed] - mine["start_ns"][failed])
        codes, counts = np.unique(mine["outcome"][measured], return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            if code != Outcome.OK:
                self.failures[Outcome(code)] += count

    def _add_window(self, mine: Columns, within: Mask) -> None:
        if not within.any():
            return
        opens_ns = int(mine["intended_ns" if self._throttled else "start_ns"][within].min())
        closes_ns = int(mine["end_ns"][within].max())
        self._opens_ns = opens_ns if self._opens_ns is None else min(self._opens_ns, opens_ns)
        self._closes_ns = closes_ns if self._closes_ns is None else max(self._closes_ns, closes_ns)
        if self._by_client:
            self._add_turns(mine)

    def _add_turns(self, mine: Columns) -> None:
        rows = np.flatnonzero(
            (mine["part"] == 0) & (mine["turn"] > 0) & (mine["outcome"] != Outcome.CANCELLED)
        )
        keys, places = np.unique(
            (mine["client"][rows].astype(np.int64) << _TURN_BITS) | mine["turn"][rows], return_inverse=True
        )
        opens = np.full(keys.size, _LATE_NS)
        closes = np.zeros(keys.size, dtype=np.int64)
        ends = mine["end_ns"][rows]
        np.minimum.at(opens, places, np.where(mine["warmup"][rows], ends, mine["start_ns"][rows]))
        np.maximum.at(closes, places, ends)
        for key, opened, closed in zip(keys.tolist(), opens.tolist(), closes.tolist(), strict=True):
            known = self._turns.get(key, (opened, closed))
            self._turns[key] = min(known[0], opened), max(known[1], closed)

    def _add_successes(self, ok: Columns) -> None:
        service_ns = TIMES["service_time"](ok)
        if service_ns.size == 0:
            return
        self.service.add(service_ns)
        if self._throttled:
            self.latency.add(TIMES["latency"](ok))
        self.took.add(TIMES["took"](ok))
        self.processing.add(ok["processing_ns"][ok["processing_ns"] > 0])
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
    parts = []
    for took in tooks:
        times = ValueCounts()
        times.add(np.repeat(np.array([*took]) * _NS_PER_MS, [*took.values()]))
        parts.append(quantiles(times, failed))
    return tuple(part for part in parts if part is not None)


def _of_task(chunk: Columns, schedule: int, task_index: int) -> Columns:
    return select(chunk, (chunk["schedule"] == schedule) & (chunk["task"] == task_index))


# The driver's share of a task's time: how late it sent requests, and what rate that cost.

_NS_PER_US = 1_000


def covered_ns(spans: Iterable[Span], begin_ns: int, end_ns: int) -> int:
    """Return the ns between begin and end that the spans cover; overlaps count once."""
    covered = 0
    for low, high in sorted(spans):
        upto_ns = min(high, end_ns)
        covered += max(upto_ns - max(low, begin_ns), 0)
        begin_ns = max(begin_ns, upto_ns)
    return covered


def driver_figures(
    samples: Iterable[Columns],
    task: Task,
    *,
    cpu_s: float,
    wall_s: float,
    workers: int = 1,
    stops: Iterable[Span] = (),
    share: float = 1.0,
) -> DriverFigures:
    """Return the driver's figures for one task of one fork, without what only the fork knows.

    Args:
        samples: of that task only, in chunks; rows of a client in the order of its requests, across all
            chunks. Read once.
        task: the task.
        cpu_s: CPU time of the driver during the task, seconds.
        wall_s: wall time of the task, seconds.
        workers: number of processes its clients ran in.
        stops: when one of these did not run, on the clock of the samples.
        share: of the task's rate that these samples' clients have.
    """
    rate_per_s = None if task.rate_per_s is None else share * task.rate_per_s
    meter = LagMeter(rate_per_s, scheduled=task.scheduler is not None)
    for chunk in samples:
        meter.add(chunk)
    driver = meter.figures(cpu_s=cpu_s, wall_s=wall_s, workers=workers, stops=stops)
    if not task.mixed:
        return driver
    # Between two requests of its own there are others', which are no lag.
    return msgspec.structs.replace(
        driver, think_share=None, lag_p50_ns=None, lag_p99_ns=None, lag_max_ns=None
    )


def start_late_ns(samples: Iterable[Columns], task: Task, start_ns: int) -> int | None:
    """Return by how much the first request of these clients was late, in ns; None if unknown.

    Args:
        samples: of some clients of that task, in chunks.
        task: the task.
        start_ns: the common start, on the clock of the samples.
    """
    if not task.throttled and task.ramp_up_time_period:
        return None
    begun: list[tuple[int, int]] = []
    for chunk in samples:
        if chunk["start_ns"].size:
            first = int(chunk["start_ns"].argmin())
            sent_ns = int(chunk["start_ns"][first])
            begun.append(
                (sent_ns, sent_ns - (int(chunk["intended_ns"][first]) if task.throttled else start_ns))
            )
    return min(begun)[1] if begun else None


class LagMeter:
    """Accumulates the driver's lag in one task, chunk by chunk, in constant memory.

    A request can be sent once it is due and its client's previous request has ended; in a closed loop it is
    always due. The time from then until it is sent is lag, for which no node is to blame. Waiting behind a
    slow answer is not lag but latency. Nor is the back-off before a rejected request is resent: the operation
    asks for that.

    Args:
        rate_per_s: of an open loop, over all clients; None for a closed one.
        scheduled: whether requests were due at individual times without a rate.
    """

    def __init__(self, rate_per_s: float | None, *, scheduled: bool = False) -> None:
        self._rate_per_s = rate_per_s
        self._open = scheduled or rate_per_s is not None
        self._clients: dict[int, _Course] = {}
        self._lag_us = ValueCounts()
        self._most_lag_ns = 0
        self._requests = 0
        self._gaps_ns = self._took_ns = 0  # of the measured time of all clients
        # The window: from the first request to the last, and to when the last was due and could have been.
        self._opens_ns: int | None = None
        self._closes_ns: int | None = None
        self._ended_ns: int | None = None
        self._last_due_ns: int | None = None
        self._could_close_ns: int | None = None

    def add(self, columns: Columns) -> None:
        """Add samples: columns of shape (n,), the rows of each client in the order of its requests."""
        # The single requests of a longer operation are the operation's own business.
        columns = select(columns, columns["part"] == 0)
        numbers = columns["client"]
        borders = np.flatnonzero(np.diff(numbers)) + 1
        for first, last in zip([0, *borders], [*borders, numbers.size], strict=True):
            if last > first:
                self._add_client({name: values[first:last] for name, values in columns.items()})

    def figures(
        self, *, cpu_s: float, wall_s: float, workers: int = 1, stops: Iterable[Span] = ()
    ) -> DriverFigures:
        """Return the figures so far; see `driver_figures` for the arguments."""
        any_lag = self._lag_us.size > 0
        spent_ns = self._gaps_ns + self._took_ns
        closed = not self._open
        window_ns = stopped_ns = 0
        if self._opens_ns is not None and self._ended_ns is not None:
            window_ns = self._ended_ns - self._opens_ns
            stopped_ns = covered_ns(stops, self._opens_ns, self._ended_ns)
        return DriverFigures(
            requests=self._requests,
            offered_per_s=self._rate(self._closes_ns),
            due_per_s=None if closed else self._rate(self._last_due_ns),
            possible_per_s=None if closed else self._rate(self._could_close_ns),
            lag_p50_ns=self._quantile_ns(0.5) if any_lag else None,
            lag_p99_ns=self._quantile_ns(0.99) if any_lag else None,
            lag_max_ns=self._most_lag_ns if any_lag else None,
            think_share=self._gaps_ns / spent_ns if closed and any_lag and spent_ns else None,
            clients=len(self._clients),
            cpu_share=cpu_s / wall_s / workers if wall_s > 0 else None,
            workers=workers,
            window_s=window_ns / _NS_PER_S if window_ns else None,
            stopped_s=stopped_ns / _NS_PER_S,
        )

    def _add_client(self, mine: Columns) -> None:
        number = int(mine["client"][0])
        course = self._clients.setdefault(number, _Course())
        within = course.follows_in_window(mine)
        lag_ns, could_start_ns, took_ns = course.add(mine, open_loop=self._open)
        measured = ~mine["warmup"]
        # Of the rate, the first of a turn is a part, too.
        counted = _in_window(mine)
        first_tries = counted & (mine["attempt"] == 0)
        sent = measured & first_tries
        self._requests += int(first_tries.sum())
        self._took_ns += int(took_ns[measured].sum())
        self._gaps_ns += int(lag_ns[sent & within].sum())
        self._ended_ns = _greatest(self._ended_ns, mine["end_ns"][counted])
        self._add_lag(lag_ns[sent & (lag_ns >= 0)])
        if not self._open:
            self._opens_ns = _least(self._opens_ns, mine["start_ns"][first_tries])
            self._closes_ns = self._ended_ns
        else:
            self._opens_ns = _least(self._opens_ns, mine["intended_ns"][first_tries])
            self._closes_ns = _greatest(self._closes_ns, mine["start_ns"][first_tries])
            self._last_due_ns = _greatest(self._last_due_ns, mine["intended_ns"][first_tries])
            self._could_close_ns = _greatest(self._could_close_ns, could_start_ns[first_tries])

    def _add_lag(self, lag_ns: Integers) -> None:
        if lag_ns.size:
            self._lag_us.add((lag_ns + _NS_PER_US // 2) // _NS_PER_US)
            self._most_lag_ns = max(self._most_lag_ns, int(lag_ns.max()))

    def _rate(self, closes_ns: int | None) -> float | None:
        """Requests per second of the window, which begins when the first was due or sent.

        An open loop's window extends one interval beyond the last request, so that n requests on time have
        exactly the target rate, however few they are.
        """
        if self._opens_ns is None or closes_ns is None:
            return None
        window_s = (closes_ns - self._opens_ns) / _NS_PER_S
        if self._rate_per_s is not None:
            window_s += 1 / self._rate_per_s
        return self._requests / window_s if window_s > 0 else None

    def _quantile_ns(self, share: float) -> int:
        """The smallest lag that at least this share of the requests stay within."""
        values, counts = self._lag_us.pairs()
        up_to = np.cumsum(counts)
        return int(values[np.searchsorted(up_to, share * up_to[-1])]) * _NS_PER_US


class _Course:
    """A client across chunks: when its last request ended, and when it could have ended at best."""

    def __init__(self) -> None:
        self._ended_ns: int | None = None
        self._could_end_ns = _LONG_AGO_NS
        self._in_window = False  # whether the last one was

    def follows_in_window(self, mine: Columns) -> Mask:
        """Return which of the next rows follow one of the measured window; shape (n,)."""
        return np.concatenate([[self._in_window], _in_window(mine)[:-1]])

    def add(self, mine: Columns, *, open_loop: bool) -> tuple[Integers, Integers, Integers]:
        """Follow the client's next requests: at least one row, and retries follow their first attempt.

        Given the measured response times and a driver that is never late, request i ends at
        E(i) = max(due(i), E(i - 1)) + t(i). Unrolled, with T(i) the sum of all t up to i, that is
        T(i) + max(E(0), max over j up to i of due(j) - T(j - 1)): one cumulative maximum.

        Returns:
            Lag in nanoseconds and when each could have been sent, meaningless for retries, and how long each
            took, a retry with the back-off before it; all of shape (n,). The lag of a first request in a
            closed loop is -1: it follows none.
        """
        starts, ends = mine["start_ns"], mine["end_ns"]
        again = mine["attempt"] > 0
        before = np.empty_like(ends)
        before[0] = _LONG_AGO_NS if self._ended_ns is None else self._ended_ns
        before[1:] = ends[:-1]
        due = np.where(again, _LONG_AGO_NS, mine["intended_ns"] if open_loop else _LONG_AGO_NS)
        possible = np.maximum(due, before)
        # libcurl's clock and ours may differ by less than the microsecond that libcurl's is rounded to.
        lag_ns = np.where(possible == _LONG_AGO_NS, -1, np.maximum(starts - possible, 0))
        took_ns = ends - np.where(again, before, starts)
        upto_ns = np.cumsum(took_ns)
        waited = np.maximum.accumulate(due - (upto_ns - took_ns))
        could_end_ns = upto_ns + np.maximum(waited, self._could_end_ns)
        self._ended_ns, self._could_end_ns = int(ends[-1]), int(could_end_ns[-1])
        self._in_window = bool(_in_window(mine)[-1])
        return lag_ns, could_end_ns - took_ns, took_ns


def _in_window(mine: Columns) -> Mask:
    """Return which rows are measured, or the first of a turn, which is none but is followed by some."""
    return ~mine["warmup"] | (mine["turn"] > 0)


def _least(known: int | None, values: Integers) -> int | None:
    if values.size == 0:
        return known
    least = int(values.min())
    return least if known is None else min(known, least)


def _greatest(known: int | None, values: Integers) -> int | None:
    if values.size == 0:
        return known
    greatest = int(values.max())
    return greatest if known is None else max(known, greatest)
