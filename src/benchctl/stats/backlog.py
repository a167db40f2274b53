"""Does the backlog grow while a rate is offered? Judged from how latency goes along the step."""

from dataclasses import dataclass

import numpy as np

from benchctl.stats.arrays import Integers

_BATCHES = 10
_LEAST_BATCHES = 3
_LEAST_PER_BATCH = 2
# Latency that grows by 1 % of the time belongs to a rate of which 99 % are completed.
_LEAST_GROWTH = 0.01
# Of the two-sided interval of the slope: its lower end is too high in one case of twenty.
_CONFIDENCE = 0.9


@dataclass(frozen=True)
class Growth:
    """How latency goes along a step.

    Attributes:
        slope: seconds of latency gained a second; what is offered over what is served, minus 1, where it is
            above 0 and stays so.
        low: lower end of its 90 % interval.
    """

    slope: float
    low: float

    @property
    def grows(self) -> bool:
        """Whether less than 99 % of the rate is served, and that is more than chance."""
        return self.slope > _LEAST_GROWTH and self.low > 0


def growth(due_ns: Integers, latency_ns: Integers) -> Growth:
    """Estimate how fast the backlog grows.

    A queue to which work comes faster than it goes gains latency at a constant rate, the overload. A stable
    one near its limit wanders, and neighbouring requests wait behind the same burst: a line through thousands
    of them would always be significant. So a step is cut into ten batches of equally many requests, in the
    order in which they were due, and Theil's and Sen's slope is taken through the medians of their latencies:
    single slow requests have no weight, and ten values claim no more than they know.

    Simulated on queues of one and two servers, 250 to 2,000 requests a step, Poisson arrivals: it finds no
    growth at 70 % load (6 % of steps where they have only 250 requests), 1 to 14 % at 90 %, 29 to 54 % at
    exactly 100 %, 68 to 100 % at 110 % and 95 to 100 % at 120 %. More than that 250 requests cannot say: by
    chance alone, so many move a queue by as much as 6 % of overload does. Longer steps see smaller ones.

    Args:
        due_ns: when requests were due, shape (n,), in any order.
        latency_ns: from then to their end, shape (n,).

    Returns:
        No growth where there are fewer than six requests.
    """
    batches = min(_BATCHES, due_ns.size // _LEAST_PER_BATCH)
    if batches < _LEAST_BATCHES:
        return Growth(0.0, 0.0)
    order = np.argsort(due_ns, kind="stable")
    parts = np.array_split(order, batches)
    when = [float(due_ns[part].mean() - due_ns[order[0]]) for part in parts]
    wait = [float(np.median(latency_ns[part])) for part in parts]
    if when[0] == when[-1]:
        return Growth(0.0, 0.0)
    # It takes most of a second to load, and many runs have no rate.
    from scipy.stats import theilslopes  # noqa: PLC0415 - see above

    found = theilslopes(wait, when, _CONFIDENCE)
    return Growth(float(found[0]), float(found[2]))


def undelayed_latency(due_ns: Integers, start_ns: Integers, end_ns: Integers, client: Integers) -> Integers:
    """Latencies as they would have been had the driver lost no time of its own.

    A request is sent when it is due and the one before it of the same client has ended; what passes beyond
    that is the driver's. Take it away, leave the time that every request took, and let each client's queue
    run again (Lindley's recursion): a driver that falls behind ever further does not make the node look slow.

    Args:
        due_ns: when requests were due, shape (n,).
        start_ns: when they were sent, shape (n,).
        end_ns: when they had ended, shape (n,).
        client: whose they are, shape (n,).

    Returns:
        Nanoseconds, shape (n,), in the order of the arguments.
    """
    latency = np.empty_like(due_ns)
    for number in np.unique(client):
        mine = np.flatnonzero(client == number)
        mine = mine[np.argsort(start_ns[mine], kind="stable")]
        due, took = due_ns[mine], end_ns[mine] - start_ns[mine]
        # end[i] = took[i] + max(due[i], end[i-1]), unrolled: sums are whole numbers, so nothing rounds.
        worked = np.cumsum(took)
        latency[mine] = worked + np.maximum.accumulate(due - (worked - took)) - due
    return latency
