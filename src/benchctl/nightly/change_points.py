"""Change points of a series, by the statistic of E-divisive: pages draw them, and they decide nothing."""

import math
from itertools import pairwise
from typing import Final

import msgspec
import numpy as np

from benchctl.nightly.screening import Nights
from benchctl.stats.arrays import Floats

LEAST_NIGHTS: Final = 20
LEAST_NIGHTS_OF_LEVEL: Final = 5
MAGNITUDE: Final = 0.03

# Greatest Q-hat in mean distances of two nights: one unchanged series in a thousand has more.
_LIMIT: Final = 9.0
# Values at which distribution functions are compared: all of them up to so many, else as many quantiles.
_GRID: Final = 64


class ChangePoint(msgspec.Struct, frozen=True):
    """Boundary between two levels."""

    night: int  # number of the first night of the new level
    before_log: float  # mean ln over the nights of the level before and of the new one
    after_log: float


def change_points(nights: Nights) -> tuple[ChangePoint, ...]:
    """Cut a series where Q-hat is greatest, cut the parts again, and keep changes of 3% and more.

    Matteson and James, Journal of the American Statistical Association 109, 2014, with an exponent of 1 and a
    limit in place of their permutation test. A host that drifts gives change points, too.

    Returns:
        Ascending; none under 20 nights, or where a night was 0 in all forks.
    """
    means = nights.means
    if means.size < LEAST_NIGHTS or not np.isfinite(means).all():
        return ()
    cuts: list[int] = []
    parts = [(0, means.size)]
    edge = LEAST_NIGHTS_OF_LEVEL
    while parts:
        low, high = parts.pop()
        if high - low < 2 * edge:
            continue
        found = q_hat(means[low:high])[edge - 1 : high - low - edge]
        if found.max() > _LIMIT:
            cut = low + edge + int(found.argmax())
            cuts.append(cut)
            parts += [(low, cut), (cut, high)]
    cuts.sort()
    while cuts:
        levels = _levels(means, cuts)
        steps = [abs(after - before) for before, after in pairwise(levels)]
        if min(steps) >= math.log1p(MAGNITUDE):
            break
        del cuts[steps.index(min(steps))]
    return tuple(
        ChangePoint(int(nights.numbers[cut]), before, after)
        for cut, (before, after) in zip(cuts, pairwise(_levels(means, cuts)), strict=True)
    )


def q_hat(values: Floats) -> Floats:
    """Return how much the distributions on both sides of every cut differ, in mean distances of two values.

    For cuts of n values into the first t and the rest, t (n - t) / n times the energy distance
    2 E|X - Y| - E|X - X'| - E|Y - Y'|, all pairs counted. In one dimension that distance is twice the
    integral of the squared difference of the distribution functions (Székely and Rizzo 2013).

    Args:
        values: in the order of the nights, shape (n,).

    Returns:
        For t = 1 to n - 1, shape (n - 1,), at least 0; 0 where all values are equal.
    """
    n = values.size
    grid = np.sort(values)[np.linspace(0, n - 1, min(n, _GRID)).round().astype(np.int64)]
    gaps = np.diff(grid)
    below = values[:, None] <= grid[:-1]
    share = below.mean(axis=0)
    mean_distance = float(2 * gaps @ (share * (1 - share)))
    t = np.arange(1, n)
    apart = (below.cumsum(axis=0)[:-1] - t[:, None] * share) ** 2 @ gaps
    found: Floats = 2 * n / (t * (n - t)) * apart / (mean_distance or 1.0)
    return found


def _levels(means: Floats, cuts: list[int]) -> list[float]:
    return [float(means[low:high].mean()) for low, high in pairwise([0, *cuts, means.size])]
