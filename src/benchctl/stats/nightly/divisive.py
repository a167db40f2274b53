"""E-divisive: since which nights a series has had another level, for series of 20 nights and more."""

import math
from itertools import pairwise
from typing import Final

import msgspec
import numpy as np

from benchctl.stats.arrays import Floats
from benchctl.stats.nightly.nights import Nights
from benchctl.stats.nightly.rearranged import LEAST_NIGHTS_OF_LEVEL, significance

LEAST_NIGHTS: Final = 20
LEVEL: Final = 1e-4
MAGNITUDE: Final = 0.03

# Series of many thousand nights must not need memory for all pairs at once.
_RANKS_AT_ONCE: Final = 512


class ChangePoint(msgspec.Struct, frozen=True):
    """Where a level ends and another begins.

    Attributes:
        night: number of the first night of the new level.
        before_log, after_log: mean ln over the nights of the level before and of the new one.
        p: of the permutation test; it cannot be less than 0.0001.
    """

    night: int
    before_log: float
    after_log: float
    p: float


def change_points(
    nights: Nights, *, level: float = LEVEL, magnitude: float = MAGNITUDE
) -> tuple[ChangePoint, ...]:
    """Cut a series where it changes, cut the parts again, then undo cuts that do not matter in practice.

    Every part is cut where Q-hat is greatest, as long as chance in the order of its nights rarely gives as
    great a one (Matteson and James 2014, with an exponent of 1). Then, beginning with the smallest, changes
    under the magnitude go, and the levels beside them become one. Nights of one level are taken to be in
    random order; a host that drifts gives change points too.

    Args:
        nights: of one series; each counts the same, however many forks it has.
        level: of the permutation test.
        magnitude: least relative change of the level that is kept.

    Returns:
        Ascending; none under 20 nights.
    """
    means = nights.means
    if means.size < LEAST_NIGHTS:
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
    """How much the distributions on both sides of every cut differ, weighted by how much each side knows.

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
    """Where Q-hat is greatest: how many values are before the cut; both sides have five values at least."""
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
