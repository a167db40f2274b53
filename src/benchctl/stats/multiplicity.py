"""Adjusting p-values when several tasks are looked at, or one task several times.

Who looks, and goes on while nothing is found, finds something in the end. At the k-th look, figures are
judged as if all k looks had been at that level (Bonferroni). The first look was not: who adds five blocks to
five until p pleases is misled in 6.5 % of cases by the second look, and in 9 % by the tenth. A run that is
looked at after every block pays with Pocock's kind of boundary (Biometrika 64, 1977): one nominal level at
every look, found by simulation for paired t-tests of 5 to 50 blocks. Intervals at that level cover the truth
at all looks together (repeated confidence intervals: Jennison and Turnbull 1989, JRSS B 51). On average this
ends about where a fixed plan with 80 % power would; the tests measure both.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from benchctl.results.model import RunRecord

Method = Literal["benjamini-hochberg", "holm"]

EVERY_BLOCK = 0
"""As a number of looks: after every block."""
FIRST_LOOK = 5
MOST_BLOCKS = 50
"""The first and the last look that the levels for every block hold for."""
_LEVEL = 0.05
_TWO_SIDED = 0.006
_SLOPE = 0.84  # of ln(p over all looks) on ln(nominal p), from .1 to .002


BLOCKS_FOR_EQUIVALENCE = 8
"""For a run that may end at any look: of a side that is slow in one fork of three, five forks show none such
one time in seven."""


def looks_at(runs: Iterable[RunRecord]) -> int:
    """How often the figures of runs were looked at before there were more of them, plus one."""
    runs = list(runs)
    decided = [len(run.own_blocks) for run in runs if run.plan.stop is not None and run.plan.stop.decided]
    if decided and max(decided) <= MOST_BLOCKS:
        return EVERY_BLOCK
    # Some that were begun by an earlier benchctl have more blocks than the levels hold for.
    return max((*decided, *(run.looks for run in runs)), default=1)


def p_in_spite_of_looks(p: float, looks: int) -> float:
    """What a two-sided p-value at one look is worth over all looks.

    Args:
        p: of the last look.
        looks: how many there were, itself included; `EVERY_BLOCK`.
    """
    if looks:
        return min(1.0, looks * p)
    return min(1.0, max(p, _LEVEL * math.pow(p / _TWO_SIDED, _SLOPE)))


def confidence_in_spite_of_looks(confidence: float, looks: int) -> float:
    """The confidence of an interval at a single look, so that it has the given one at all looks together."""
    if looks:
        return 1 - (1 - confidence) / looks
    return 1 - _TWO_SIDED * math.pow((1 - confidence) / _LEVEL, 1 / _SLOPE)


def adjusted_p(p_values: Sequence[float], method: Method) -> list[float]:
    """Adjust the p-values of one family.

    Args:
        p_values: raw, in any order.
        method: `benjamini-hochberg` bounds the share of false findings, `holm` the chance of any.

    Returns:
        In the same order; to be compared with the level itself.
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
