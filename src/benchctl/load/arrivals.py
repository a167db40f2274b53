"""When requests are due: pure and seeded, the same for every variant, with no clock in it."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, dropwhile, islice, takewhile

import numpy as np

from benchctl.errors import UsageError
from benchctl.track.model import Task

NS_PER_S = 1_000_000_000

# Poisson arrivals are drawn in blocks: large enough that numpy's cost per call does not show, small enough
# that drawing one between two requests does not delay the second.
_BLOCK_PER_CLIENT = 64


@dataclass(frozen=True)
class Extent:
    """How long one client of a task goes on: a number of requests, or a period.

    Attributes:
        requests: requests of one client, warm-up included; None when something else ends the task.
        warmup_requests: the first so many of them are warm-up.
        period_ns: nanoseconds from the task's start, warm-up included; None when requests bound the task.
        warmup_ns: what belongs before this offset is warm-up.
    """

    requests: int | None
    warmup_requests: int
    period_ns: int | None
    warmup_ns: int

    def is_warmup(self, position: int, offset_ns: int) -> bool:
        """Whether a client's request number `position` (from 0), due at `offset_ns`, is warm-up."""
        return position < self.warmup_requests or offset_ns < self.warmup_ns


def extent(task: Task) -> Extent:
    """Read the bounds of a task; one that names none runs once, as in Rally.

    Raises:
        UsageError: the task has a warm-up period and nothing that ends it.
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
    return Extent(warmup + measured, warmup, None, 0)


def arrivals(
    task: Task, *, client: int, seed: int, from_ns: int = 0, bounds: Extent | None = None
) -> Iterator[int]:
    """When one client's requests are due in an open loop.

    All clients share one arrival process, and client i of n takes its arrivals i, i + n, and so on: clients
    are staggered, the rate of the whole is the target, and the first request is throttled like every other.
    Deterministic arrival k is due at k / rate. Poisson arrivals are sums of exponential gaps, by inversion of
    the raw output of `PCG64`, the stream that numpy promises never to change; the task's label goes into the
    seed, so that two tasks of a schedule don't share their pattern.

    Args:
        task: a task with a target.
        client: which client, from 0.
        seed: the run's seed.
        from_ns: a client that ramps up later has no arrivals before that; nobody else takes them.
        bounds: how long the task goes on, where it is not what the task says.

    Returns:
        A lazy iterator of nanoseconds from the task's start, never decreasing.

    Raises:
        ValueError: the task has no target: a closed loop has no arrivals.
    """
    rate_per_s = task.rate_per_s
    if rate_per_s is None:
        raise ValueError(f"task '{task.label}' is a closed loop")
    if task.schedule == "poisson":
        due = _poisson(rate_per_s, task.clients, client, _seed_sequence(task, seed))
    else:
        due = _deterministic(rate_per_s, task.clients, client)
    bounds = extent(task) if bounds is None else bounds
    if from_ns:
        due = dropwhile(lambda offset_ns: offset_ns < from_ns, due)
    period_ns = bounds.period_ns
    if period_ns is None:
        return islice(due, bounds.requests)
    return takewhile(lambda offset_ns: offset_ns < period_ns, due)


def _seed_sequence(task: Task, seed: int) -> np.random.SeedSequence:
    return np.random.SeedSequence([seed, zlib.crc32(task.label.encode())])


def _deterministic(rate_per_s: float, clients: int, client: int) -> Iterator[int]:
    # Every arrival from its number, not from the one before: no rounding adds up.
    return (round(number * NS_PER_S / rate_per_s) for number in count(client, clients))


def _poisson(rate_per_s: float, clients: int, client: int, seed: np.random.SeedSequence) -> Iterator[int]:
    """Every client draws the whole process and keeps its own: cheaper than any lock between them."""
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
