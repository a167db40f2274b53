"""A linear contrast of the means of independent groups, whose variances need not be alike."""

import math
from collections.abc import Callable, Sequence

import msgspec
from scipy.special import stdtr, stdtrit

from benchctl.stats.arrays import Floats
from benchctl.stats.multiplicity import (
    EVERY_BLOCK,
    MOST_BLOCKS,
    confidence_in_spite_of_looks,
    p_in_spite_of_looks,
)

_LEAST_FOR_SPREAD = 2

# Logarithms of equal values differ by rounding alone; below this the spread is no measurement.
_NO_SPREAD = 1e-12


class Contrast(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An estimate that follows a t-distribution around the truth; in the unit of the groups.

    Attributes:
        estimate: the sum of weight x mean.
        error: its standard error, above 0.
        df: degrees of freedom.
        looks: at the estimate so far, as `multiplicity` counts them; p-values and intervals hold in spite of
            them.
    """

    estimate: float
    error: float
    df: float
    looks: int = 1

    @property
    def p(self) -> float:
        """Two-sided, for a truth of 0."""
        return p_in_spite_of_looks(2 * float(stdtr(self.df, -abs(self.estimate) / self.error)), self.looks)

    def interval(self, confidence: float) -> tuple[float, float]:
        """Low and high."""
        confidence = confidence_in_spite_of_looks(confidence, self.looks)
        half = float(stdtrit(self.df, (1 + confidence) / 2)) * self.error
        return self.estimate - half, self.estimate + half

    def p_at_most(self, truth: float) -> float:
        """One-sided: how likely an estimate as low as this one, or lower, would be around `truth`."""
        return self._one_sided((self.estimate - truth) / self.error)

    def p_at_least(self, truth: float) -> float:
        """One-sided: how likely an estimate as high as this one, or higher, would be around `truth`."""
        return self._one_sided((truth - self.estimate) / self.error)

    def foreseen(self, units: int, further: int) -> "Contrast":
        """What it will be with more units, if it and the spread stay as they are: looked at once more.

        Args:
            units: that it rests on: blocks, or forks a side; at least 2.
            further: beyond these.
        """
        later = units + further
        return Contrast(
            self.estimate,
            self.error * math.sqrt(units / later),
            self.df * (later - 1) / (units - 1),
            self.looks if self.looks == EVERY_BLOCK else self.looks + 1,
        )

    def _one_sided(self, errors: float) -> float:
        p = float(stdtr(self.df, errors))
        return max(p, p_in_spite_of_looks(min(1.0, 2 * p), self.looks) / 2)


def contrast(groups: Sequence[Floats], weights: Sequence[float], looks: int = 1) -> Contrast | None:
    """Estimate the weighted sum of the means of groups.

    Degrees of freedom are Satterthwaite's (Biometrics Bulletin 2, 1946): for two groups weighted -1 and 1,
    this is Welch's t; for one group of differences it is the paired t.

    Args:
        groups: values, shape (n,) each; independent of each other.
        weights: one a group; those weighted 0 are left out.
        looks: at the estimate so far.

    Returns:
        None when a group has under two values, or nothing varies.

    Raises:
        ValueError: there are not as many weights as groups.
    """
    kept = [(values, weight) for values, weight in zip(groups, weights, strict=True) if weight]
    if not kept or min(values.size for values, _ in kept) < _LEAST_FOR_SPREAD:
        return None
    estimate = math.fsum(weight * float(values.mean()) for values, weight in kept)
    parts = [weight**2 * float(values.var(ddof=1)) / values.size for values, weight in kept]
    variance = math.fsum(parts)
    if math.sqrt(variance) < _NO_SPREAD:
        return None
    spread = math.fsum(part**2 / (values.size - 1) for part, (values, _) in zip(parts, kept, strict=True))
    return Contrast(estimate, math.sqrt(variance), variance**2 / spread, looks)


def further_forks(units: int, decided: Callable[[int], bool]) -> int | None:
    """The fewest more forks a side that decide what is open.

    Args:
        units: that there are: blocks, or forks a side.
        decided: whether so many more would decide it.

    Returns:
        At least 1; None where `MOST_BLOCKS` would not do.
    """
    return next(filter(decided, range(1, MOST_BLOCKS + 1 - units)), None)
