"""Due times of requests and waiting for them: closed loop immediately, open loop at arrivals."""

import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, dropwhile, islice, takewhile

import numpy as np

from benchctl.errors import UsageError
from benchctl.track.model import Task

# Arrivals: pure and seeded, the same for every variant, with no clock in it.

NS_PER_S = 1_000_000_000

# Poisson arrivals are drawn in blocks: large enough that numpy's cost per call does not show, small enough
# that drawing one between two requests does not delay the second.
_BLOCK_PER_CLIENT = 64


@dataclass(frozen=True)
class Extent:
    """The extent of one client's work: a number of requests, or a period."""

    requests: int | None  # of one client, warm-up included; None when something else ends the task
    warmup_requests: int  # how many of these are warm-up
    # Nanoseconds from the task's start, warm-up included; None when requests bound the task.
    period_ns: int | None
    warmup_ns: int  # what falls before this offset is warm-up
    least_ns: int = 0  # for how long it measures at least, however many requests that takes

    def is_warmup(self, position: int, offset_ns: int) -> bool:
        """Return whether a client's request number `position` (from 0), due at `offset_ns`, is warm-up."""
        return position < self.warmup_requests or offset_ns < self.warmup_ns


def extent(task: Task) -> Extent:
    """Return the bounds of a task; one that names none runs once, as in Rally.

    Raises:
        UsageError: If the task has a warm-up period and nothing that ends it.
    """
    if task.time_period is not None:
        warmup_ns = round((task.warmup_time_period or 0) * NS_PER_S)
        return Extent(None, 0, warmup_ns + round(task.time_period * NS_PER_S), warmup_ns)
    if task.warmup_time_period is not None:
        raise UsageError(
            f"task '{task.label}' has a warmup-time-period but no time-period",
            hint="give it a time-period, or use warmup-iterations with iterations",
        )
    warmup = task.warmup_iterations or 0
    measured = 1 if task.iterations is None else task.iterations
    return Extent(warmup + measured, warmup, None, 0, round((task.least_time or 0) * NS_PER_S))


def arrivals(
    task: Task, *, client: int, seed: int, from_ns: int = 0, bounds: Extent | None = None
) -> Iterator[int]:
    """Yield when one client's requests are due in an open loop: ns from the task's start, non-decreasing.

    All clients share one arrival process, of which client i of n takes arrivals i, i + n and so on: clients
    are staggered, the total rate is the target, and the first request is throttled like every other.

    Deterministic arrival k is due at k / rate. Poisson arrivals are sums of exponential gaps, by inversion of
    the raw output of `PCG64`, the stream that numpy promises never to change; the task's label is part of the
    seed, so that two tasks of a schedule don't share their pattern.

    Args:
        task: a task with a target.
        client: its number, from 0.
        seed: the run's seed.
        from_ns: a client that ramps up later skips earlier arrivals; nobody else takes them.
        bounds: overrides the task's own bounds.

    Raises:
        ValueError: If the task has no target: a closed loop has no arrivals.
    """
    rate_per_s = task.rate_per_s
    if rate_per_s is None:
        raise ValueError(f"task '{task.label}' is a closed loop")
    if task.schedule == "poisson":
        entropy = np.random.SeedSequence([seed, zlib.crc32(task.label.encode())])
        due = _poisson(rate_per_s, task.clients, client, entropy)
    else:
        # From each arrival's number, not from its predecessor: rounding does not accumulate.
        due = (round(number * NS_PER_S / rate_per_s) for number in count(client, task.clients))
    bounds = extent(task) if bounds is None else bounds
    if from_ns:
        due = dropwhile(lambda offset_ns: offset_ns < from_ns, due)
    period_ns = bounds.period_ns
    if period_ns is None:
        return islice(due, bounds.requests)
    return takewhile(lambda offset_ns: offset_ns < period_ns, due)


def _poisson(rate_per_s: float, clients: int, client: int, seed: np.random.SeedSequence) -> Iterator[int]:
    """Clients draw the whole process and keeps its share: cheaper than a lock between them."""
    bits = np.random.PCG64(seed)
    mean_ns = NS_PER_S / rate_per_s
    block = _BLOCK_PER_CLIENT * clients
    now_ns = 0
    while True:
        uniform = (bits.random_raw(block) >> np.uint64(11)) * 2.0**-53
        # Gaps are whole nanoseconds before they are added, so the sum is exact however long it grows.
        gaps_ns = np.rint(-np.log1p(-uniform) * mean_ns).astype(np.int64)
        due_ns = now_ns + np.cumsum(gaps_ns)
        now_ns = int(due_ns[-1])
        yield from due_ns[client::clients].tolist()


# A wake-up later than this was a hiccup of the host, not its usual latency, and is not planned for.
_MAX_LEAD_NS = 300_000
_LEAD_MEMORY = 8

Clock = Callable[[], int]  # nanoseconds, monotonic
Cue = tuple[int | None, bool, int]
"""Due time of a request on the monotonic clock, None for at once; whether it is warm-up; its turn."""
_CUE: Cue = (None, False, 0)
_WARMUP_CUE: Cue = (None, True, 0)


class Waiter:
    """A client's clock, which waits for a moment as precisely as the host wakes a thread.

    A sleeping thread wakes late, by 0.1 ms on a busy core and more on an idle one. The waiter learns by how
    much and sleeps that much less. It spins only for what remains when it wakes earlier than usual, some
    microseconds: a driver that spins takes the core from the node it measures. Setting `halt` ends every wait
    at once.
    """

    def __init__(self, halt: threading.Event, clock: Clock = time.monotonic_ns) -> None:
        self._halt = halt
        self._clock = clock
        self._lead_ns = 0
        self.now_ns = clock
        self.halted = halt.is_set

    def wait_until(self, moment_ns: int) -> bool:
        """Return at `moment_ns`, never before; immediately when it has passed. False when halted."""
        clock = self._clock
        wake_ns = moment_ns - self._lead_ns
        sleep_ns = wake_ns - clock()
        if sleep_ns > 0:
            if self._halt.wait(sleep_ns / 1e9):
                return False
            late_ns = min(max(clock() - wake_ns, 0), _MAX_LEAD_NS)
            self._lead_ns += (late_ns - self._lead_ns) // _LEAD_MEMORY
        while clock() < moment_ns:
            pass
        return not self._halt.is_set()

    def cue(self, due_ns: int | None, *, warmup: bool) -> Cue | None:
        """Return the cue of a request when it is time: at once, or when it is due; None when halted."""
        if due_ns is not None:
            return (due_ns, warmup, 0) if self.wait_until(due_ns) else None
        if self.halted():
            return None
        return _WARMUP_CUE if warmup else _CUE


def cues(
    task: Task, *, client: int, seed: int, start_ns: int, timer: Waiter, ramp_up_ns: int = 0
) -> Iterator[Cue]:
    """Yield once per request of a client, when it is time to send it.

    The task starts at `start_ns` of the timer's clock, this client (from 0) `ramp_up_ns` later. Arrivals that
    fell due while the client was busy follow immediately; none is skipped.
    """
    bounds = extent(task)
    if not timer.wait_until(start_ns + ramp_up_ns):
        return
    if task.rate_per_s is not None:
        due = arrivals(task, client=client, seed=seed, from_ns=ramp_up_ns)
        yield from _open_loop(due, bounds, start_ns, timer)
    elif bounds.requests is not None:
        yield from _counted(bounds, bounds.requests, timer)
    elif bounds.period_ns is not None:
        yield from _timed(bounds, bounds.period_ns, start_ns, timer)


def open_ended(task: Task) -> Extent:
    """Return the extent of a task that runs until its work is exhausted; all but its warm-up is measured."""
    warmup_ns = round((task.warmup_time_period or 0) * NS_PER_S)
    return Extent(None, task.warmup_iterations or 0, None, warmup_ns)


def endless_cues(
    task: Task, *, client: int, seed: int, start_ns: int, timer: Waiter, ramp_up_ns: int = 0
) -> Iterator[Cue]:
    """Like `cues`, for a task that runs until its work is exhausted."""
    bounds = open_ended(task)
    if not timer.wait_until(start_ns + ramp_up_ns):
        return
    if task.rate_per_s is not None:
        due = arrivals(task, client=client, seed=seed, from_ns=ramp_up_ns, bounds=bounds)
        yield from _open_loop(due, bounds, start_ns, timer)
        return
    for position in count():
        cue = timer.cue(None, warmup=bounds.is_warmup(position, timer.now_ns() - start_ns))
        if cue is None:
            return
        yield cue


def _open_loop(due: Iterator[int], bounds: Extent, start_ns: int, timer: Waiter) -> Iterator[Cue]:
    for position, offset_ns in enumerate(due):
        cue = timer.cue(start_ns + offset_ns, warmup=bounds.is_warmup(position, offset_ns))
        if cue is None:
            return
        yield cue


def _counted(bounds: Extent, requests: int, timer: Waiter) -> Iterator[Cue]:
    cue_of, now_ns = timer.cue, timer.now_ns
    for _ in range(bounds.warmup_requests):
        if (cue := cue_of(None, warmup=True)) is None:
            return
        yield cue
    left, ends_ns = requests - bounds.warmup_requests, 0
    while (left > 0 or (bounds.least_ns and now_ns() < ends_ns)) and (
        (cue := cue_of(None, warmup=False)) is not None
    ):
        ends_ns = ends_ns or now_ns() + bounds.least_ns
        left -= 1
        yield cue


def _timed(bounds: Extent, period_ns: int, start_ns: int, timer: Waiter) -> Iterator[Cue]:
    now_ns = timer.now_ns
    while (elapsed_ns := now_ns() - start_ns) < period_ns:
        cue = timer.cue(None, warmup=bounds.is_warmup(0, elapsed_ns))
        if cue is None:
            return
        yield cue
