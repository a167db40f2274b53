"""When this process did not run although the clock did, being stopped or not scheduled; and suspends."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

Span = tuple[int, int]
"""Begin and end in nanoseconds of the monotonic clock, or of that clock from a fork's origin on."""

# Threads on a busy machine wake up some ten milliseconds late; what is longer is not their usual wait.
LEAST_STOP_NS = 250_000_000
_NS_PER_S = 1_000_000_000


class Pulse:
    """Finds stops of the process in the waits of a thread that does nothing else.

    A wait that ends much later than it was to end is a stop, unless the process was busy meanwhile: then
    other threads held the interpreter, as its CPU time tells. It costs three readings of clocks a wait.

    Args:
        clock: monotonic, nanoseconds.
        cpu_clock: CPU time of the process, nanoseconds.

    Attributes:
        stops: so far; each may have begun up to one wait earlier.
    """

    def __init__(
        self,
        clock: Callable[[], int] = time.monotonic_ns,
        cpu_clock: Callable[[], int] = time.process_time_ns,
    ) -> None:
        self._clock = clock
        self._cpu_clock = cpu_clock
        self.stops: list[Span] = []

    @contextmanager
    def wait(self, most_s: float) -> Iterator[None]:
        """Watch the block, which takes no longer than that unless the process is stopped."""
        begun_ns, begun_cpu_ns = self._clock(), self._cpu_clock()
        yield
        ended_ns = self._clock()
        late_ns = ended_ns - begun_ns - round(most_s * _NS_PER_S)
        if late_ns >= LEAST_STOP_NS and 2 * (self._cpu_clock() - begun_cpu_ns) < late_ns:
            self.stops.append((ended_ns - late_ns, ended_ns))


def suspended_ns() -> int:
    """How long the host has been suspended since it was booted; the monotonic clock leaves that out."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()


def covered_ns(spans: Iterable[Span], begin_ns: int, end_ns: int) -> int:
    """How much of the time from begin to end the spans cover; what several cover counts once."""
    covered = 0
    for low, high in sorted(spans):
        upto_ns = min(high, end_ns)
        covered += max(upto_ns - max(low, begin_ns), 0)
        begin_ns = max(begin_ns, upto_ns)
    return covered
