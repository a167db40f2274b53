"""Adjusting p-values when several tasks are looked at, or one task several times.

Who looks, and goes on while nothing is found, finds something in the end. At the k-th look, figures are
judged as if all k looks had been at that level (Bonferroni). The first look was not: who adds five blocks to
five until p pleases is misled in 6.5 % of cases by the second look, and in 9 % by the tenth. A run that is
looked at after every block pays with Pocock's kind of boundary (Biometrika 64, 1977): one nominal level at
every look, found by simulation for paired t-tests of 5 up to the most blocks that it may have. The fewer
those are, the less it pays: at 12, intervals are a fifth narrower than where there may be 50. Intervals at
that level cover the truth at all looks together (repeated confidence intervals: Jennison and Turnbull 1989,
JRSS B 51). On average this ends about where a fixed plan with 80 % power would; the tests measure both.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from benchctl.results.model import RunRecord

Method = Literal["benjamini-hochberg", "holm"]

FIRST_LOOK = 5
MOST_BLOCKS = 50
"""The first and the last look that the levels for every block hold for."""
_LEVEL = 0.05
# By the most blocks: the nominal p that is worth .05 over all looks from the fifth block on, and the slope of
# ln(p over all looks) on ln(nominal p) from .05 to .1; below, it is a little steeper. Found in 800,000 runs.
_NOMINAL = {
    5: (0.05, 1.0),
    6: (0.0342, 0.944),
    7: (0.0269, 0.917),
    8: (0.0225, 0.898),
    10: (0.0175, 0.877),
    12: (0.0146, 0.867),
    16: (0.0115, 0.850),
    20: (0.0098, 0.845),
    30: (0.0077, 0.836),
    MOST_BLOCKS: (0.0059, 0.825),
}

BLOCKS_FOR_EQUIVALENCE = 8
"""For a run that may end at any look: of a side that is slow in one fork of three, five forks show none such
one time in seven."""


def looks_at(runs: Iterable[RunRecord]) -> int:
    """Return how often the figures of runs were looked at before more were measured, plus one.

    Below 0 if that is after every block: minus the most blocks that there can be.
    """
    return strictest(_looks_at(run) for run in runs)


def _looks_at(run: RunRecord) -> int:
    stop = run.plan.stop
    if stop is None or not stop.decided:
        return run.looks
    return every_block(stop.most or MOST_BLOCKS)


def strictest(looks: Iterable[int]) -> int:
    """Of several numbers of looks, the one that widens intervals most."""
    return max(looks, key=lambda one: confidence_in_spite_of_looks(1 - _LEVEL, one), default=1)


def every_block(most: int) -> int:
    """One look after every block, of which there are at most so many, up to 50, as a number of looks."""
    return -max(most, FIRST_LOOK)


def after_every_block(looks: int) -> bool:
    """Return whether a number of looks stands for one after every block."""
    return looks < 0


def p_in_spite_of_looks(p: float, looks: int) -> float:
    """The p-value over all looks for a two-sided p-value at the last one; looks may be from `every_block`."""
    if not after_every_block(looks):
        return min(1.0, looks * p)
    level, slope = _nominal(-looks)
    return min(1.0, max(p, _LEVEL * math.pow(p / level, slope)))


def confidence_in_spite_of_looks(confidence: float, looks: int) -> float:
    """Return the confidence of an interval at a single look for the given one over all looks together."""
    if not after_every_block(looks):
        return 1 - (1 - confidence) / looks
    level, slope = _nominal(-looks)
    return 1 - level * math.pow((1 - confidence) / _LEVEL, 1 / slope)


def _nominal(most: int) -> tuple[float, float]:
    sizes = np.log(list(_NOMINAL))
    levels, slopes = np.array(list(_NOMINAL.values())).T
    place = math.log(most)
    return math.exp(np.interp(place, sizes, np.log(levels))), float(np.interp(place, sizes, slopes))


def adjusted_p(p_values: Sequence[float], method: Method) -> list[float]:
    """Adjust the p-values of one family, in the same order; to be compared with the level itself.

    `benjamini-hochberg` bounds the share of false findings, `holm` the chance of any.
    """
    if not p_values:
        return []
    if method == "holm":
        return holm(p_values)
    # It takes most of a second to load, which reports of single forks need not wait for.
    from scipy.stats import false_discovery_control  # noqa: PLC0415 - see above

    return [float(p) for p in false_discovery_control(np.asarray(p_values, dtype=np.float64))]


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment (Scandinavian Journal of Statistics 6, 1979)."""
    raw = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(raw, kind="stable")
    factors = np.arange(raw.size, 0, -1)
    stepped = np.minimum(1.0, np.maximum.accumulate(raw[order] * factors))
    adjusted = np.empty_like(raw)
    adjusted[order] = stepped
    return [float(p) for p in adjusted]
