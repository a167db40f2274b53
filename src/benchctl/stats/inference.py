"""Tests of differences of means: linear contrasts and Fieller's ratio."""

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from scipy.special import stdtr, stdtrit

from benchctl.stats.anytime import critical, p_value
from benchctl.stats.arrays import Floats

_MOST_SD = 10.0  # of which the CV is 10^21


def cv_of(sd: float) -> float:
    """Return the CV, as a ratio, of values whose natural logarithms have this SD."""
    return math.sqrt(math.expm1(min(sd, _MOST_SD) ** 2))


def sd_of(cv: float) -> float:
    """Return the SD of the natural logarithms of values that have this CV, as a ratio."""
    return math.sqrt(math.log1p(cv**2))


_LEAST_FOR_SPREAD = 2

# Logarithms of equal values differ by rounding alone; below this the spread is no measurement.
NO_SPREAD = 1e-12


class Contrast(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An estimate that follows a t-distribution around the truth; in the unit of the groups."""

    estimate: float
    error: float  # its standard error, above 0
    df: float
    # That the estimate rests on: (SD of a unit / error)^2, the number of pairs where there are pairs.
    units: float
    sequential: bool = False  # looked at any number of times: p-values and intervals hold in spite of that

    @property
    def p(self) -> float:
        """Two-sided, for a truth of 0."""
        return self._two_sided(self.estimate)

    def critical(self, confidence: float) -> float:
        """Return half the width of an interval in standard errors; infinite where there is none yet."""
        if self.sequential:
            return critical(confidence, self.df, self.units)
        return float(stdtrit(self.df, (1 + confidence) / 2))

    def interval(self, confidence: float) -> tuple[float, float]:
        """Low and high; infinite where there is none yet."""
        half = self.critical(confidence) * self.error
        return self.estimate - half, self.estimate + half

    def p_at_least(self, truth: float) -> float:
        """Return the one-sided probability of an estimate this high or higher, given `truth`."""
        half = self._two_sided(self.estimate - truth) / 2
        return half if self.estimate > truth else 1 - half

    def _two_sided(self, distance: float) -> float:
        t = abs(distance) / self.error
        return p_value(t, self.df, self.units) if self.sequential else 2 * float(stdtr(self.df, -t))


def contrast(
    groups: Sequence[Floats], weights: Sequence[float], *, sequential: bool = False
) -> Contrast | None:
    """Estimate the weighted sum of the means of groups.

    Degrees of freedom are Satterthwaite's (Biometrics Bulletin 2, 1946): for two groups weighted -1 and 1,
    this is Welch's t; for one group of differences it is the paired t.

    Args:
        groups: values, shape (n,) each; independent of each other.
        weights: one a group; those weighted 0 are left out.
        sequential: whether they are looked at more than once.

    Returns:
        None when a group has under two values, or nothing varies.

    Raises:
        ValueError: If there are not as many weights as groups.
    """
    kept = [(values, weight) for values, weight in zip(groups, weights, strict=True) if weight]
    if not kept or min(values.size for values, _ in kept) < _LEAST_FOR_SPREAD:
        return None
    estimate = math.fsum(weight * float(values.mean()) for values, weight in kept)
    parts = [weight**2 * float(values.var(ddof=1)) / values.size for values, weight in kept]
    variance = math.fsum(parts)
    if math.sqrt(variance) < NO_SPREAD:
        return None
    spread = math.fsum(part**2 / (values.size - 1) for part, (values, _) in zip(parts, kept, strict=True))
    units = 1 / math.fsum(weight**2 / values.size for values, weight in kept)
    return Contrast(estimate, math.sqrt(variance), variance**2 / spread, units, sequential)


def difference_of(
    baseline: Floats, contender: Floats, *, paired: bool, sequential: bool = False
) -> Contrast | None:
    """Contender - baseline, shapes (n,) and (m,), (n,) and in the order of the pairs when paired."""
    if paired:
        return contrast([contender - baseline], [1.0], sequential=sequential)
    return contrast([baseline, contender], [-1.0, 1.0], sequential=sequential)


class Ratio(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The ratio of two means of any sign: which ratios r leave contender - r x baseline at 0.

    Its interval is Fieller's (Journal of the Royal Statistical Society B 16, 1954). With the degrees of
    freedom of the difference it holds 1 just where the difference holds 0.
    """

    means: tuple[float, float]
    variances: tuple[float, float]
    shared: float  # covariance of these means, 0 unless they are paired
    difference: Contrast

    @classmethod
    def of(
        cls, baseline: Floats, contender: Floats, *, paired: bool, sequential: bool = False
    ) -> "Ratio | None":
        """Return the ratio like `difference_of`; None in the same cases."""
        found = difference_of(baseline, contender, paired=paired, sequential=sequential)
        if found is None:
            return None
        first, second = (float(side.var(ddof=1)) / side.size for side in (baseline, contender))
        shared = float(np.cov(baseline, contender)[0, 1]) / baseline.size if paired else 0.0
        return cls((float(baseline.mean()), float(contender.mean())), (first, second), shared, found)

    @property
    def p(self) -> float:
        """Two-sided, for means that are alike."""
        return self.difference.p

    @property
    def ratio(self) -> float | None:
        """Contender over baseline; None where the baseline is not above 0."""
        return self.means[1] / self.means[0] if self.means[0] > 0 else None

    @property
    def log_error(self) -> float | None:
        """Standard error of the ratio's logarithm; None where there is no logarithm."""
        if not self.ratio or self.ratio < 0:
            return None
        return self.over(self.ratio).error / self.means[1]

    def over(self, ratio: float) -> Contrast:
        """Contender - ratio x baseline."""
        variance = self.variances[1] + ratio**2 * self.variances[0] - 2 * ratio * self.shared
        estimate = self.means[1] - ratio * self.means[0]
        error = math.sqrt(max(variance, NO_SPREAD**2))
        return msgspec.structs.replace(self.difference, estimate=estimate, error=error)

    def bounds(self, confidence: float) -> tuple[float, float]:
        """Of the ratio; they hold 1 just where the difference holds 0.

        Of a baseline that is not clearly above 0, infinite both ways, or on the side to which the difference
        is clear: what the test keeps is then all that lies beyond a stretch around 1.
        """
        t = self.difference.critical(confidence)
        if math.isinf(t):
            return -math.inf, math.inf
        a = self.means[0] ** 2 - t**2 * self.variances[0]
        b = self.means[0] * self.means[1] - t**2 * self.shared
        c = self.means[1] ** 2 - t**2 * self.variances[1]
        reach = math.sqrt(max(b * b - a * c, 0.0))
        if a > 0 and self.means[0] > 0:
            return (b - reach) / a, (b + reach) / a
        if self.means[0] <= 0 or abs(self.difference.estimate) <= t * self.difference.error:
            return -math.inf, math.inf
        if self.difference.estimate > 0:
            return max(c / (b + reach), 1.0) if b + reach else 1.0, math.inf
        least = (b + reach) / a if a else 0.0
        return -math.inf, least if 0 < least < 1 else 1.0
