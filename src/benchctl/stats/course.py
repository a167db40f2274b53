"""How a task went along: what its requests have to do with each other, and where its service time drifted."""

import math

import numpy as np
import numpy.typing as npt

from benchctl.stats.arrays import Floats, Integers
from benchctl.stats.counts import ValueCounts
from benchctl.stats.quantiles import median

_LEAST_FOR_LAG1 = 3
_LEAST_FOR_DRIFT = 6

# More would make the rows at a border fewer, which are few anyway: a 65,000th of all.
START_BINS = 1 << 16

_MOST_GROUPS = 512
_STEPS = 2048


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


class Groups:
    """A task's values in the order of their requests' starts: one by one, or as medians of groups.

    Up to 512 requests stand for themselves. Of more, groups of equal size (the last may be smaller) are stood
    for by their medians: a change of level is then known to a 512th of the requests, and what hardly any
    request of a group takes part in is not seen. Up to 65,536 requests the medians are exact. Of more, values
    are counted in 2,048 steps of equal ratio between the least and the greatest, at most 1 % apart over nine
    powers of ten, and medians are interpolated within a step: 4 MB, however many requests there are.

    Args:
        starts: the starts of all the values that will be added, known from an earlier reading. Requests that
            started at once, as far as these are rounded, stay in one group.
        least: the smallest of the values.
        most: the largest of them.
    """

    def __init__(self, starts: ValueCounts, least: float, most: float) -> None:
        self._starts = starts
        self._size = -(-starts.size // _MOST_GROUPS) if starts.size else 1
        self._whole: list[tuple[Integers, npt.NDArray[np.int16], Integers]] = []
        self._steps: npt.NDArray[np.int32] | None = None
        if starts.size > START_BINS:
            self._low = math.log(max(least, 1.0))
            self._per_step = max(math.log(max(most, 1.0)) - self._low, 1e-9) / _STEPS
            self._edges, self._begins = _group_edges(starts, self._size)
            self._steps = np.zeros((self._edges.size, _STEPS), np.int32)

    def add(self, values: Integers, starts: Integers, clients: npt.NDArray[np.int16]) -> None:
        """Take more values; the arguments are those of `Thirds.add`."""
        if self._steps is None:
            self._whole.append((starts, clients, values))
            return
        groups = np.searchsorted(self._edges, self._starts.rounded(starts), side="right") - 1
        steps = ((np.log(np.maximum(values, 1)) - self._low) / self._per_step).astype(np.int64)
        flat = groups * _STEPS + np.clip(steps, 0, _STEPS - 1)
        np.add.at(self._steps.reshape(-1), flat, 1)

    def medians(self) -> tuple[Floats, Integers]:
        """What was added.

        Returns:
            The values, or the medians of groups, and how many requests came before each; both of shape (k,).
        """
        if self._steps is not None:
            return self._interpolated(self._steps), self._begins
        if not self._whole:
            return np.zeros(0), np.zeros(0, np.int64)
        starts, clients, values = (np.concatenate(part) for part in zip(*self._whole, strict=True))
        values = values[np.lexsort((clients, starts))]
        begins = np.arange(0, values.size, self._size)
        full = values.size // self._size
        medians = np.median(values[: full * self._size].reshape(full, self._size), axis=1)
        if begins.size > full:
            medians = np.append(medians, np.median(values[full * self._size :]))
        return medians, begins

    def _interpolated(self, steps: npt.NDArray[np.int32]) -> Floats:
        medians = np.empty(steps.shape[0])
        for group, (counts, up_to) in enumerate(zip(steps, np.cumsum(steps, axis=1), strict=True)):
            ranks = np.array([(up_to[-1] - 1) // 2, up_to[-1] // 2])
            places = np.searchsorted(up_to, ranks, side="right")
            within = (ranks - up_to[places] + counts[places] + 0.5) / counts[places]
            medians[group] = np.exp(self._low + (places + within) * self._per_step).mean()
        return medians


def _group_edges(starts: ValueCounts, size: int) -> tuple[Integers, Integers]:
    """The rounded start with which each group begins, and how many requests started before it."""
    values, counts = starts.pairs()
    before = np.cumsum(counts) - counts
    places = np.unique(np.searchsorted(before, np.arange(0, starts.size, size)))
    places = places[places < values.size]
    return values[places], before[places]


def _border(starts: ValueCounts, rank: int) -> tuple[int, int]:
    """The rounded start of the request of this rank, and how many started before that."""
    values, counts = starts.pairs()
    up_to = np.cumsum(counts)
    place = int(np.searchsorted(up_to, rank, side="right"))
    return int(values[place]), int(up_to[place] - counts[place])
