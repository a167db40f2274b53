"""The driver's share of a task's time: how late it sent requests, and what rate that cost."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import msgspec
import numpy as np
import numpy.typing as npt

from benchctl.results.figures import DriverFigures
from benchctl.results.samples import Columns, select
from benchctl.stats.arrays import ValueCounts
from benchctl.track.model import Task

Span = tuple[int, int]
"""Begin and end in nanoseconds of the monotonic clock, or of that clock from a fork's origin on."""

# Threads on a busy machine wake up some ten milliseconds late; what is longer is not their usual wait.
LEAST_STOP_NS = 250_000_000
_NS_PER_S = 1_000_000_000


class Pulse:
    """Detects stops of the process from the waits of an otherwise idle thread.

    A wait that ends much later than planned is a stop, unless the process used CPU meanwhile: then other
    threads held the interpreter. Costs three clock readings per wait. Both clocks count nanoseconds:
    monotonic, and CPU time of the process.
    """

    def __init__(
        self,
        clock: Callable[[], int] = time.monotonic_ns,
        cpu_clock: Callable[[], int] = time.process_time_ns,
    ) -> None:
        self._clock = clock
        self._cpu_clock = cpu_clock
        self.stops: list[Span] = []  # so far; each may have begun up to one wait earlier

    @contextmanager
    def wait(self, most_s: float) -> Iterator[None]:
        """Watch the block, which takes no longer than `most_s` unless the process is stopped."""
        begun_ns, begun_cpu_ns = self._clock(), self._cpu_clock()
        yield
        ended_ns = self._clock()
        late_ns = ended_ns - begun_ns - round(most_s * _NS_PER_S)
        if late_ns >= LEAST_STOP_NS and 2 * (self._cpu_clock() - begun_cpu_ns) < late_ns:
            self.stops.append((ended_ns - late_ns, ended_ns))


def suspended_ns() -> int:
    """Return for how long the host was suspended since boot, in ns; the monotonic clock excludes that."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()


def covered_ns(spans: Iterable[Span], begin_ns: int, end_ns: int) -> int:
    """Return the ns between begin and end that the spans cover; overlaps count once."""
    covered = 0
    for low, high in sorted(spans):
        upto_ns = min(high, end_ns)
        covered += max(upto_ns - max(low, begin_ns), 0)
        begin_ns = max(begin_ns, upto_ns)
    return covered


_NS_PER_US = 1_000
_LONG_AGO_NS = -(2**62)

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


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
    found = meter.figures(cpu_s=cpu_s, wall_s=wall_s, workers=workers, stops=stops)
    if not task.mixed:
        return found
    # Between two requests of its own there are others', which are no lag.
    return msgspec.structs.replace(found, think_share=None, lag_p50_ns=None, lag_p99_ns=None, lag_max_ns=None)


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
        self._lag_ns = self._service_ns = 0
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
        busy_ns = self._lag_ns + self._service_ns
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
            think_share=self._lag_ns / busy_ns if closed and any_lag and busy_ns else None,
            cpu_share=cpu_s / wall_s / workers if wall_s > 0 else None,
            workers=workers,
            window_s=window_ns / _NS_PER_S if window_ns else None,
            stopped_s=stopped_ns / _NS_PER_S,
        )

    def _add_client(self, mine: Columns) -> None:
        number = int(mine["client"][0])
        course = self._clients.setdefault(number, _Course())
        lag_ns, could_start_ns = course.add(mine, open_loop=self._open)
        measured = ~mine["warmup"]
        sent = measured & (mine["attempt"] == 0)
        self._requests += int(sent.sum())
        service_ns = mine["end_ns"] - mine["start_ns"]
        self._service_ns += int(service_ns[measured].sum())
        self._ended_ns = _greatest(self._ended_ns, mine["end_ns"][measured])
        self._add_lag(lag_ns[sent & (lag_ns >= 0)])
        if not self._open:
            self._opens_ns = _least(self._opens_ns, mine["start_ns"][sent])
            self._closes_ns = self._ended_ns
        else:
            self._opens_ns = _least(self._opens_ns, mine["intended_ns"][sent])
            self._closes_ns = _greatest(self._closes_ns, mine["start_ns"][sent])
            self._last_due_ns = _greatest(self._last_due_ns, mine["intended_ns"][sent])
            self._could_close_ns = _greatest(self._could_close_ns, could_start_ns[sent])

    def _add_lag(self, lag_ns: Integers) -> None:
        if lag_ns.size:
            self._lag_us.add((lag_ns + _NS_PER_US // 2) // _NS_PER_US)
            self._lag_ns += int(lag_ns.sum())
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

    def add(self, mine: Columns, *, open_loop: bool) -> tuple[Integers, Integers]:
        """Follow the client's next requests: at least one row, and retries follow their first attempt.

        Given the measured response times and a driver that is never late, request i ends at
        E(i) = max(due(i), E(i - 1)) + t(i). Unrolled, with T(i) the sum of all t up to i, that is
        T(i) + max(E(0), max over j up to i of due(j) - T(j - 1)): one cumulative maximum.

        Returns:
            Lag in nanoseconds, and when each could have been sent; both of shape (n,), meaningless for
            retries. The lag of a first request in a closed loop is -1: it follows none.
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
        return lag_ns, could_end_ns - took_ns


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
