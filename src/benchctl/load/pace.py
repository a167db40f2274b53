"""When a client sends: closed loop as soon as it can, open loop when an arrival is due."""

import threading
import time
from collections.abc import Callable, Iterator

from benchctl.load.arrivals import Extent, arrivals, extent
from benchctl.track.model import Task

# Beyond this much lateness a wake-up was the host's hiccup, not its habit, and nothing to plan for.
_MAX_LEAD_NS = 300_000
_LEAD_MEMORY = 8

Clock = Callable[[], int]
Turn = tuple[int | None, bool]


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


def turns(task: Task, *, client: int, seed: int, start_ns: int, halt: threading.Event) -> Iterator[Turn]:
    """Yield once per request of a client, when it is time to send it.

    Args:
        task: what to do.
        client: which client, from 0.
        seed: of Poisson arrivals.
        start_ns: when the task starts, on the monotonic clock.
        halt: ends the iterator at once when set.

    Yields:
        (intended start in nanoseconds of the monotonic clock, or None in a closed loop; whether it is
        warm-up). Arrivals that fell due while the client was busy follow without a pause; none is left out.
    """
    waiter = Waiter(halt)
    bounds = extent(task)
    if not waiter.wait_until(start_ns):
        return
    if task.rate_per_s is not None:
        due = arrivals(task, client=client, seed=seed)
        yield from _open_loop(due, bounds, start_ns, waiter)
    elif bounds.requests is not None:
        yield from _counted(bounds, bounds.requests, halt)
    elif bounds.period_ns is not None:
        yield from _timed(bounds, bounds.period_ns, start_ns, halt)


def _open_loop(due: Iterator[int], bounds: Extent, start_ns: int, waiter: Waiter) -> Iterator[Turn]:
    for position, offset_ns in enumerate(due):
        intended_ns = start_ns + offset_ns
        if not waiter.wait_until(intended_ns):
            return
        yield intended_ns, bounds.is_warmup(position, offset_ns)


def _counted(bounds: Extent, requests: int, halt: threading.Event) -> Iterator[Turn]:
    for position in range(requests):
        if halt.is_set():
            return
        yield None, bounds.is_warmup(position, 0)


def _timed(bounds: Extent, period_ns: int, start_ns: int, halt: threading.Event) -> Iterator[Turn]:
    while (elapsed_ns := time.monotonic_ns() - start_ns) < period_ns and not halt.is_set():
        yield None, bounds.is_warmup(0, elapsed_ns)
