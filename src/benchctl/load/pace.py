"""When a client sends: closed loop as soon as it can, open loop when an arrival is due."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from benchctl.load.arrivals import NS_PER_S, Extent, arrivals, extent
from benchctl.track.model import Task

# Beyond this much lateness a wake-up was the host's hiccup, not its habit, and nothing to plan for.
_MAX_LEAD_NS = 300_000
_LEAD_MEMORY = 8

Clock = Callable[[], int]
Turn = tuple[int | None, bool]
_TURN: Turn = (None, False)
_WARMUP_TURN: Turn = (None, True)


class Timer(Protocol):
    """A client's clock, and how it waits."""

    def now_ns(self) -> int:
        """Nanoseconds, monotonic."""
        ...

    def wait_until(self, moment_ns: int) -> bool:
        """Come back at `moment_ns`, never before; at once when it has passed. False when halted."""
        ...

    def halted(self) -> bool:
        """Whether the client is to end."""
        ...


class Waiter:
    """Waits until a moment, as exactly as the host wakes a thread.

    A sleeping thread is woken late, by 0.1 ms on a busy core and more on an idle one. The waiter learns by
    how much and sleeps that much less. It reads the clock in a loop only for what remains when it was woken
    sooner than usual, some microseconds: a driver that spins takes the core from the node it measures.

    Args:
        halt: ends every wait at once when set.
        clock: nanoseconds, monotonic.
    """

    def __init__(self, halt: threading.Event, clock: Clock = time.monotonic_ns) -> None:
        self._halt = halt
        self._clock = clock
        self._lead_ns = 0
        self.now_ns = clock
        self.halted = halt.is_set

    def wait_until(self, moment_ns: int) -> bool:
        """Come back at `moment_ns`, never before; at once when it has passed.

        Returns:
            False when halted, True otherwise.
        """
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


def turns(
    task: Task, *, client: int, seed: int, start_ns: int, timer: Timer, ramp_up_ns: int = 0
) -> Iterator[Turn]:
    """Yield once per request of a client, when it is time to send it.

    Args:
        task: what to do.
        client: which client, from 0.
        seed: of Poisson arrivals.
        start_ns: when the task starts, on the monotonic clock.
        timer: the client's clock.
        ramp_up_ns: how much later than the task this client starts.

    Yields:
        (intended start in nanoseconds of the monotonic clock, or None in a closed loop; whether it is
        warm-up). Arrivals that fell due while the client was busy follow without a pause; none is left out.
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
    """The extent of a task that goes on until its work has run out; all but its warm-up is measured."""
    warmup_ns = round((task.warmup_time_period or 0) * NS_PER_S)
    return Extent(None, task.warmup_iterations or 0, None, warmup_ns)


def endless_turns(
    task: Task, *, client: int, seed: int, start_ns: int, timer: Timer, ramp_up_ns: int = 0
) -> Iterator[Turn]:
    """As `turns`, for a task that goes on until its work has run out; all but its warm-up is measured."""
    bounds = open_ended(task)
    if not timer.wait_until(start_ns + ramp_up_ns):
        return
    if task.rate_per_s is not None:
        due = arrivals(task, client=client, seed=seed, from_ns=ramp_up_ns, bounds=bounds)
        yield from _open_loop(due, bounds, start_ns, timer)
        return
    position = 0
    while not timer.halted():
        yield None, bounds.is_warmup(position, timer.now_ns() - start_ns)
        position += 1


def _open_loop(due: Iterator[int], bounds: Extent, start_ns: int, timer: Timer) -> Iterator[Turn]:
    for position, offset_ns in enumerate(due):
        intended_ns = start_ns + offset_ns
        if not timer.wait_until(intended_ns):
            return
        yield intended_ns, bounds.is_warmup(position, offset_ns)


def _counted(bounds: Extent, requests: int, timer: Timer) -> Iterator[Turn]:
    halted = timer.halted
    for turn, times in (_WARMUP_TURN, bounds.warmup_requests), (_TURN, requests - bounds.warmup_requests):
        for _ in range(times):
            if halted():
                return
            yield turn


def _timed(bounds: Extent, period_ns: int, start_ns: int, timer: Timer) -> Iterator[Turn]:
    now_ns, halted = timer.now_ns, timer.halted
    while (elapsed_ns := now_ns() - start_ns) < period_ns and not halted():
        yield None, bounds.is_warmup(0, elapsed_ns)
