"""How a task went along: what its requests have to do with each other, and where its service time drifted."""

import math

import numpy as np
import numpy.typing as npt

from benchctl.stats.counts import Integers, ValueCounts
from benchctl.stats.quantiles import median

_LEAST_FOR_LAG1 = 3
_LEAST_FOR_DRIFT = 6

# More would make the rows at a border fewer, which are few anyway: a 65,000th of all.
START_BINS = 1 << 16


class Neighbours:
    """Variance, and the correlation of each value with the one before it of the same client.

    Args:
        mean: of all the values that will be added; known from an earlier reading, so that nothing cancels.
    """

    def __init__(self, mean: float) -> None:
        self._mean = mean
        self._size = 0
        self._squares = 0.0
        self._products = 0.0
        self._last: dict[int, float] = {}

    def add(self, values: Integers, clients: npt.NDArray[np.int16]) -> None:
        """Take more values.

        Args:
            values: shape (n,); each client's in time order, behind those that were added before.
            clients: whose value it is, shape (n,).
        """
        if values.size == 0:
            return
        # A stable sort by client keeps each one's order; of 16-bit numbers it takes linear time.
        order = np.argsort(clients, kind="stable")
        owners, centred = clients[order], values[order] - self._mean
        self._size += values.size
        self._squares += float(centred @ centred)
        same = owners[1:] == owners[:-1]
        self._products += float((centred[1:] * centred[:-1])[same].sum())
        firsts = np.concatenate([[0], np.flatnonzero(~same) + 1])
        lasts = np.append(firsts[1:], owners.size) - 1
        for owner, first, last in zip(owners[firsts].tolist(), firsts, lasts, strict=True):
            self._products += self._last.get(owner, 0.0) * float(centred[first])
            self._last[owner] = float(centred[last])

    @property
    def sd(self) -> float | None:
        """Standard deviation; None under 2 values."""
        return math.sqrt(self._squares / (self._size - 1)) if self._size > 1 else None

    @property
    def lag1(self) -> float | None:
        """Autocorrelation between -1 and 1; None under 3 values or when all are equal."""
        if self._size < _LEAST_FOR_LAG1 or self._squares <= 0.0:
            return None
        return self._products / self._squares


def effective_samples(samples: int, lag1: float | None) -> float:
    """How many independent samples an autocorrelated series is worth: m(1-phi)/(1+phi), at most m."""
    if lag1 is None:
        return float(samples)
    return float(samples * min(1.0, (1 - lag1) / (1 + lag1)))


class Thirds:
    """The first and the last third of a task's values, in the order of their requests' starts.

    Args:
        starts: the starts of all the values that will be added, known from an earlier reading. They may be
            rounded: rows that fall on the rounded border of a third are put in order here.
    """

    def __init__(self, starts: ValueCounts) -> None:
        self._starts = starts
        self._first, self._last = ValueCounts(), ValueCounts()
        self._bordering: list[tuple[Integers, npt.NDArray[np.int16], Integers]] = []
        self._enough = starts.size >= _LEAST_FOR_DRIFT
        if self._enough:
            third = starts.size // 3
            self._first_border, before = _border(starts, third - 1)
            self._first_rest = third - before
            self._last_border, before = _border(starts, starts.size - third)
            self._last_skip = starts.size - third - before

    def add(self, values: Integers, starts: Integers, clients: npt.NDArray[np.int16]) -> None:
        """Take more values.

        Args:
            values: shape (n,).
            starts: of their requests, shape (n,), in nanoseconds.
            clients: whose value it is, shape (n,); of requests that started together the first client's goes
                first.
        """
        if not self._enough:
            return
        bins = self._starts.rounded(starts)
        self._first.add(values[bins < self._first_border])
        self._last.add(values[bins > self._last_border])
        border = (bins == self._first_border) | (bins == self._last_border)
        if border.any():
            self._bordering.append((starts[border], clients[border], values[border]))

    def drift(self) -> float | None:
        """ln(median of the last third / median of the first), after everything was added.

        Returns:
            Negative when values get smaller; None under 6 values, or when a median is not positive.
        """
        if not self._enough:
            return None
        starts, clients, values = (np.concatenate(part) for part in zip(*self._bordering, strict=True))
        self._bordering = []
        order = np.lexsort((clients, starts))
        bins, values = self._starts.rounded(starts[order]), values[order]
        self._first.add(values[bins == self._first_border][: self._first_rest])
        self._last.add(values[bins == self._last_border][self._last_skip :])
        first, last = median(self._first), median(self._last)
        return math.log(last / first) if first > 0 and last > 0 else None


def _border(starts: ValueCounts, rank: int) -> tuple[int, int]:
    """The rounded start of the request of this rank, and how many started before that."""
    values, counts = starts.pairs()
    up_to = np.cumsum(counts)
    place = int(np.searchsorted(up_to, rank, side="right"))
    return int(values[place]), int(up_to[place] - counts[place])
