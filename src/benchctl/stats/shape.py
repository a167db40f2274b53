"""Value counts -> the few points that a chart of them needs: shares, quantiles, boxes."""

from collections.abc import Iterator

import msgspec
import numpy as np

from benchctl.stats.arrays import Floats, Integers, Mask
from benchctl.stats.counts import ValueCounts
from benchctl.stats.quantiles import linear_quantiles

TAIL_REQUESTS = 10
"""Requests that must lie beyond a quantile before it is drawn."""

ODDS: Floats = np.unique(np.append((10.0 ** (np.arange(61) / 20)).round(9), 2.0))
"""Where quantile curves have points, up to p99.9: at x, one request in x takes longer (quantile 1 - 1/x)."""

LEVELS: Floats = (np.arange(100) + 0.5) / 100
"""Shares of requests at which the distributions of forks are compared."""

_GROUP_SPAN = 10**15
_MOST_GROUPS = 9_000


class Box(msgspec.Struct, frozen=True):
    """The requests of one order of magnitude of hits.

    Attributes:
        magnitude: 0 for none, 1 for 1 to 9 hits, 2 for 10 to 99, and so on.
        requests: how many.
        least_ns, p25_ns, p50_ns, p75_ns, p95_ns: of their service time.
    """

    magnitude: int
    requests: int
    least_ns: float
    p25_ns: float
    p50_ns: float
    p75_ns: float
    p95_ns: float

    @property
    def hits(self) -> str:
        """The magnitude in words: `0`, `1 to 9`, `10 to 99`."""
        if self.magnitude == 0:
            return "0"
        low = 10 ** (self.magnitude - 1)
        return f"{low:,} to {10 * low - 1:,}"


class GroupedCounts:
    """`ValueCounts` of many groups, in the memory of one.

    Values share one limit on distinct ones: where all groups together have more than a million, values of all
    of them are cut to a microsecond, and so on.
    """

    def __init__(self) -> None:
        self._counts = ValueCounts()

    def add(self, groups: Integers, values: Integers) -> None:
        """Count more values.

        Args:
            groups: the group of each value, shape (n,); from 0, under 9,000.
            values: shape (n,); from 0, under 10^15: nanoseconds of eleven days.

        Raises:
            ValueError: a group or a value is out of its range.
        """
        if values.size == 0:
            return
        if (
            values.min() < 0
            or values.max() >= _GROUP_SPAN
            or groups.min() < 0
            or groups.max() >= _MOST_GROUPS
        ):
            raise ValueError("a group or a value is out of range")
        self._counts.add(groups * _GROUP_SPAN + values)  # a power of ten: cutting values moves none elsewhere

    def groups(self) -> Iterator[tuple[int, Integers, Integers]]:
        """Every group that has values, ascending: its number, its distinct values, and their counts."""
        keys, counts = self._counts.pairs()
        groups = keys // _GROUP_SPAN
        numbers, firsts = np.unique(groups, return_index=True)
        edges = np.append(firsts, keys.size)
        for number, first, end in zip(numbers.tolist(), edges[:-1], edges[1:], strict=True):
            yield number, keys[first:end] - number * _GROUP_SPAN, counts[first:end]


def quantile_curve(values: Integers, counts: Integers) -> Floats:
    """Quantiles at ODDS, shape of ODDS; NaN where fewer than ten requests would lie beyond.

    Args:
        values: distinct values, ascending, shape (k,); at least one.
        counts: how often each occurred, shape (k,).
    """
    curve = linear_quantiles(values, counts, 1 - 1 / ODDS)
    return np.where(carries(int(counts.sum())), curve, np.nan)


def carries(requests: int) -> Mask:
    """Which of ODDS so many requests are enough for: 10/(1-q) of them."""
    return requests >= TAIL_REQUESTS * ODDS * (1 - 1e-12)  # so that rounding cannot ask for one more


def ecdf(values: Integers, counts: Integers, most: int) -> tuple[Integers, Floats]:
    """Points of the empirical distribution function: every one is exact, but there may be fewer than values.

    Args:
        values: distinct values, ascending, shape (k,); at least one.
        counts: how often each occurred, shape (k,).
        most: points that may be returned, at least 2; they are evenly spread over the requests.

    Returns:
        Values, ascending, from the least to the greatest; and for each the share of requests that took no
        longer, in (0, 1].
    """
    up_to = np.cumsum(counts)
    if values.size > most:
        ranks = np.linspace(0, int(up_to[-1]) - 1, most).round().astype(np.int64)
        kept = np.unique(np.searchsorted(up_to, ranks, side="right"))
        values, up_to, requests = values[kept], up_to[kept], up_to[-1]
    else:
        requests = up_to[-1]
    return values, up_to / requests


def magnitudes(hits: Integers) -> Integers:
    """Orders of magnitude of hit counts, shape (n,): 0 for none, 1 for 1 to 9, 2 for 10 to 99, and so on.

    Args:
        hits: from 0, shape (n,).
    """
    powers = 10 ** np.arange(19, dtype=np.int64)
    return np.searchsorted(powers, hits, side="right").astype(np.int64)


def boxes(service_ns: GroupedCounts) -> tuple[Box, ...]:
    """One box for every order of magnitude that has requests, ascending.

    Args:
        service_ns: service times, grouped by `magnitudes` of their hits.
    """
    found = []
    for magnitude, values, counts in service_ns.groups():
        quartiles = linear_quantiles(values, counts, (0.0, 0.25, 0.5, 0.75, 0.95)).tolist()
        found.append(Box(magnitude, int(counts.sum()), *quartiles))
    return tuple(found)
