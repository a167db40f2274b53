"""Arrays that statistics are made of, counts of values in bounded memory, and values on the log scale."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def log_points(values: Floats, *, additive: bool) -> Floats:
    """Return one value a fork as tests on the log scale take it, shape (n,).

    Of values that may be 0 that is ln of their arithmetic mean, plus how far each is from it as a share of
    it: the mean of these is ln of the mean, and their SD the CV (the delta method). They are not independent
    of each other, so that no sequential test may take them one by one. Where all are 0, so is no logarithm:
    they are minus infinity.
    """
    if not additive:
        return np.log(values)
    mean = float(values.mean()) if values.size else 0.0
    return math.log(mean) + values / mean - 1 if mean > 0 else np.full(values.shape, -math.inf)


_MOST_DISTINCT = 1 << 20
_MOST_PENDING = 1 << 18
_NS_PER_US = 1_000


class ValueCounts:
    """Distinct values and their counts, merged from any number of arrays.

    Nothing is lost up to `most` distinct values, of 16 bytes each: libcurl's times are whole
    microseconds, of which even 100 million requests have few. Clocks of the driver are nanoseconds;
    beyond `most` all values are cut to a microsecond, then to 10, and so on, until they fit.
    """

    def __init__(self, most: int = _MOST_DISTINCT) -> None:
        self.size = 0
        self.grid = 1
        self._most = most
        self._values = np.zeros(0, np.int64)
        self._counts = np.zeros(0, np.int64)
        self._pending: list[Integers] = []
        self._pending_size = 0

    def add(self, values: npt.NDArray[np.integer[Any]]) -> None:
        """Count more values of shape (n,), in any order; the array is not kept."""
        if values.size == 0:
            return
        self.size += values.size
        self._pending.append(values.astype(np.int64))
        self._pending_size += values.size
        # Merging costs as much as there are distinct values: worth it once many have come.
        if self._pending_size >= _MOST_PENDING:
            self._merge()

    def pairs(self) -> tuple[Integers, Integers]:
        """Return the distinct values, ascending, and how often each occurred; both of shape (distinct,)."""
        self._merge()
        return self._values, self._counts

    def rounded(self, values: Integers) -> Integers:
        """Round values as those that were added have been: towards zero, so that several steps equal one."""
        return values if self.grid == 1 else values - np.fmod(values, self.grid)

    def _merge(self) -> None:
        if not self._pending:
            return
        pending = self._pending[0] if len(self._pending) == 1 else np.concatenate(self._pending)
        self._pending, self._pending_size = [], 0
        values, counts = np.unique(self.rounded(pending), return_counts=True)
        if self._values.size == 0:
            self._values, self._counts = values, counts.astype(np.int64)
        else:
            self._insert(values, counts)
        while self._values.size > self._most:
            self._coarsen()

    def _insert(self, values: Integers, counts: Integers) -> None:
        places = np.searchsorted(self._values, values)
        is_present = self._values[np.minimum(places, self._values.size - 1)] == values
        self._counts[places[is_present]] += counts[is_present]
        self._values = np.insert(self._values, places[~is_present], values[~is_present])
        self._counts = np.insert(self._counts, places[~is_present], counts[~is_present])

    def _coarsen(self) -> None:
        self.grid = _NS_PER_US if self.grid == 1 else self.grid * 10
        coarse = self.rounded(self._values)  # still ascending: equal ones stand side by side
        firsts = np.flatnonzero(np.diff(coarse, prepend=coarse[0] - 1))
        self._values, self._counts = coarse[firsts], np.add.reduceat(self._counts, firsts)


def start_counts() -> ValueCounts:
    """Return an empty count of starts of requests; of over 65,536 distinct ones, neighbours become equal."""
    return ValueCounts(1 << 16)


class StartOrder:
    """Ranks of requests by their starts, ns, which are all known from an earlier reading.

    Requests whose starts were counted as equal share a rank.
    """

    def __init__(self, counted: ValueCounts) -> None:
        self.size = counted.size
        self._counted = counted
        self._starts, counts = counted.pairs()
        self._before = np.cumsum(counts) - counts

    def ranks(self, starts: Integers) -> Integers:
        """Return how many requests start before each; shape (n,)."""
        return self._before[np.searchsorted(self._starts, self._counted.rounded(starts))]
