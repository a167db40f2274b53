"""E-divisive: since which nights a series has had another level, for series of 20 nights and more."""

import math
from functools import lru_cache
from itertools import pairwise
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from benchctl.nightly.screening import Nights
from benchctl.stats.arrays import Floats, Integers

LEAST_NIGHTS: Final = 20
LEVEL: Final = 1e-4
MAGNITUDE: Final = 0.03

# Series of many thousand nights must not need memory for all pairs at once.
_RANKS_AT_ONCE: Final = 512


# The permutation test of E-divisive: how often chance in the order of nights gives as great a Q-hat.

LEAST_NIGHTS_OF_LEVEL: Final = 5
"""Fewer nights are no level: the screen and its confirmation see to them."""

REARRANGEMENTS: Final = 9_999
# The first is one look at whether more are worth it; most series without a change end there.
_CHUNKS: Final = (39, 160, 800, 1_000, *(2_000,) * 4)
_CUT_RATIO: Final = 1.35
_RANK_RATIO: Final = 1.8
_FIRST_RANK: Final = 2

# Numbers of nights that are tested as they are; above, one in so many steps is.
_SIZES_AS_THEY_ARE: Final = 40
_SIZE_RATIO: Final = 1.15
# One that was drawn in full takes 11 MB for 1,000 nights, 3 MB for 40.
_SIZES_KEPT: Final = 32

# Half precision, for the series as for its rearrangements: all are rounded alike.
_Squares = npt.NDArray[np.float16]


def significance(values: Floats, level: float) -> float:
    """Return the chance that a random order of ten values has as great a Q-hat: (k + 1) / (9,999 + 1).

    Values, shape (n,), are in the order of the nights. Once p is certain to exceed the level, no more
    rearrangements are drawn, and 1 is returned.
    """
    size = _size_tested(values.size)
    null = _null(size)
    values = values[np.linspace(0, values.size - 1, size).round().astype(np.int64)]
    weights = null.weights(values)
    seen = float((null.counted(values).astype(np.float32) @ weights).max())
    if seen <= 0:
        return 1.0
    exceeded = 0
    for number in range(len(_CHUNKS)):
        drawn = (null.chunk(number).astype(np.float32) @ weights).max(axis=1)
        # Equal orders differ by rounding alone.
        exceeded += int((drawn >= seen * (1 - 1e-5)).sum())
        if (exceeded + 1) / (REARRANGEMENTS + 1) > level:
            return 1.0
    return (exceeded + 1) / (REARRANGEMENTS + 1)


class _Null:
    """Random orders of n values, as weighted squared counts at the cuts and ranks that the test looks at."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._cuts = _grid(size, LEAST_NIGHTS_OF_LEVEL, _CUT_RATIO)
        self._ranks = _grid(size, _FIRST_RANK, _RANK_RATIO)
        self._block_of = np.searchsorted(self._cuts, np.arange(size), side="right")
        self._class_of = np.searchsorted(self._ranks, np.arange(size), side="right").astype(np.int8)
        self._chunks: list[_Squares] = []

    def weights(self, values: Floats) -> npt.NDArray[np.float32]:
        """Return distances between neighbouring classes of ranks, each at the mean of its values."""
        ordered = np.sort(values)
        starts = np.concatenate(([0], self._ranks))
        sizes = np.diff(starts, append=self._size)
        distances = np.diff(np.add.reduceat(ordered - ordered[0], starts) / sizes)
        return distances.astype(np.float32)

    def counted(self, values: Floats) -> _Squares:
        """Return counts for the order of the series itself, shape (cuts, ranks)."""
        # Equal values in random order: in that of the nights they would look like a trend.
        drawn = np.random.default_rng(self._size).permutation(self._size)
        classes = np.empty(self._size, np.int8)
        classes[np.lexsort((drawn, values))] = self._class_of
        squares: _Squares = self._squares(classes[None, :])[0]
        return squares

    def chunk(self, number: int) -> _Squares:
        """Return rearrangements, drawn when they are first asked for, shape (so many, cuts, ranks)."""
        while len(self._chunks) <= number:
            place = len(self._chunks)
            rng = np.random.default_rng([self._size, place])
            orders = np.broadcast_to(self._class_of, (_CHUNKS[place], self._size))
            self._chunks.append(self._squares(rng.permuted(orders, axis=1)))
        return self._chunks[number]

    def _squares(self, classes: npt.NDArray[np.int8]) -> _Squares:
        """Return 2 n / (t (n - t)) (count - expected)^2 for classes of ranks in order, shape (orders, n)."""
        orders, n = classes.shape
        blocks, kinds = self._cuts.size + 1, self._ranks.size + 1
        cells = (np.arange(orders)[:, None] * blocks + self._block_of) * kinds + classes
        counts = np.bincount(cells.ravel(), minlength=orders * blocks * kinds)
        counts = counts.reshape(orders, blocks, kinds)[:, :-1, :-1].cumsum(axis=1).cumsum(axis=2)
        expected = self._cuts[:, None] * self._ranks / n
        scale = 2 * n / (self._cuts * (n - self._cuts))
        squares: _Squares = (scale[:, None] * (counts - expected) ** 2).astype(np.float16)
        return squares


def _size_tested(size: int) -> int:
    """Return the largest number of nights up to this one for which orders are drawn."""
    if size <= _SIZES_AS_THEY_ARE:
        return size
    steps = int(math.log(size / _SIZES_AS_THEY_ARE) / math.log(_SIZE_RATIO))
    return int(_SIZES_AS_THEY_ARE * _SIZE_RATIO**steps)


def _grid(size: int, first: int, ratio: float) -> Integers:
    """Return places from both ends to the middle, each further from the end by a ratio, ascending."""
    steps = [size // 2]
    place = float(first)
    while place <= size / 2:
        steps.append(round(place))
        place = max(place * ratio, place + 1)
    return np.unique(np.array([*steps, *(size - step for step in steps)], np.int64))


@lru_cache(maxsize=_SIZES_KEPT)
def _null(size: int) -> _Null:
    return _Null(size)


class ChangePoint(msgspec.Struct, frozen=True):
    """Where a level ends and another begins."""

    night: int  # number of the first night of the new level
    before_log: float  # mean ln over the nights of the level before and of the new one
    after_log: float
    p: float  # of the permutation test; it cannot be less than 0.0001


def change_points(
    nights: Nights, *, level: float = LEVEL, magnitude: float = MAGNITUDE
) -> tuple[ChangePoint, ...]:
    """Cut a series where it changes, cut the parts again, then undo cuts that do not matter in practice.

    Every part is cut where Q-hat is greatest, as long as chance in the order of its nights rarely gives
    as great a one (Matteson and James 2014, with an exponent of 1). Then, beginning with the smallest,
    changes under the magnitude are undone, and the levels beside them become one. Nights of one level are
    assumed to be in random order; a host that drifts gives change points too. Nights count alike, however
    many forks they have.

    Args:
        nights: of one series.
        level: of the permutation test.
        magnitude: least relative change of the level that is kept.

    Returns:
        Ascending; none under 20 nights, or where a night was 0 in all forks.
    """
    means = nights.means
    if means.size < LEAST_NIGHTS or not np.isfinite(means).all():
        return ()
    found: dict[int, float] = {}
    parts = [(0, means.size)]
    while parts:
        low, high = parts.pop()
        if high - low < 2 * LEAST_NIGHTS_OF_LEVEL:
            continue
        p = significance(means[low:high], level)
        if p > level:
            continue
        cut = low + likeliest_cut(means[low:high])
        found[cut] = p
        parts += [(low, cut), (cut, high)]
    cuts = _of_magnitude(means, sorted(found), math.log1p(magnitude))
    levels = _levels(means, cuts)
    return tuple(
        ChangePoint(int(nights.numbers[cut]), before, after, found[cut])
        for cut, (before, after) in zip(cuts, pairwise(levels), strict=True)
    )


def q_hat(values: Floats) -> Floats:
    """Return how much the distributions on both sides of every cut differ, weighted by their sizes.

    For cuts of n values into the first t and the rest, t (n - t) / n times the energy distance
    2 E|X - Y| - E|X - X'| - E|Y - Y'|, all pairs counted (a V-statistic). In one dimension that distance is
    twice the integral of the squared difference of the distribution functions (Székely and Rizzo 2013), which
    needs one cumulative sum of ranks.

    Args:
        values: in the order of the nights, shape (n,).

    Returns:
        For t = 1 to n - 1, shape (n - 1,), at least 0.
    """
    n = values.size
    order = np.argsort(values, kind="stable")
    gaps = np.diff(values[order])
    ranks = np.empty(n, np.int64)
    ranks[order] = np.arange(n)
    t = np.arange(1, n, dtype=np.float64)
    sums = np.zeros(n - 1)
    for low in range(0, n - 1, _RANKS_AT_ONCE):
        columns = np.arange(low, min(low + _RANKS_AT_ONCE, n - 1))
        # Row t - 1, column k: how many of the first t values are among the k + 1 smallest, less their share.
        below = (ranks[:-1, None] <= columns).cumsum(axis=0, dtype=np.float32)
        below -= (t[:, None] * (columns + 1) / n).astype(np.float32)
        np.square(below, out=below)
        sums += below @ gaps[columns].astype(np.float32)
    distances: Floats = 2 * n / (t * (n - t)) * sums
    return distances


def likeliest_cut(values: Floats) -> int:
    """Return how many values precede the cut with the greatest Q-hat: each side has at least five."""
    edge = LEAST_NIGHTS_OF_LEVEL
    return edge + int(np.argmax(q_hat(values)[edge - 1 : values.size - edge]))


def _of_magnitude(means: Floats, cuts: list[int], least: float) -> list[int]:
    while cuts:
        steps = [abs(after - before) for before, after in pairwise(_levels(means, cuts))]
        smallest = min(range(len(steps)), key=steps.__getitem__)
        if steps[smallest] >= least:
            break
        cuts = cuts[:smallest] + cuts[smallest + 1 :]
    return cuts


def _levels(means: Floats, cuts: list[int]) -> list[float]:
    return [float(means[low:high].mean()) for low, high in pairwise([0, *cuts, means.size])]
