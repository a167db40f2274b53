"""Tests of differences of means: linear contrasts, Fieller's ratio, and the power of t-tests."""

import math
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from scipy.special import nctdtrinc, stdtr, stdtrit

from benchctl.results.model import FORKS_FOR_VERDICT
from benchctl.stats.anytime import critical, p_value
from benchctl.stats.arrays import Floats

_MOST_SD = 10.0  # of which the CV is 10^21


def cv_of(sd: float) -> float:
    """Return the CV, as a ratio, of values whose natural logarithms have this SD."""
    return math.sqrt(math.expm1(min(sd, _MOST_SD) ** 2))


def sd_of(cv: float) -> float:
    """Return the SD of the natural logarithms of values that have this CV, as a ratio."""
    return math.sqrt(math.log1p(cv**2))


# Not scipy.stats: a run forecasts before its first request, and that takes half a second to load, and a
# hundred times as long to compute.


POWER = 0.8
ALPHA = 0.05
MOST_FORKS = 100_000
_LEAST_VALUES = 3  # of both sides together: fewer leave no degree of freedom
_LEAST_PAIRS = 2


def mde(n1: int, n2: int, sd: float, *, alpha: float = ALPHA, power: float = POWER) -> float:
    """Return the least difference of means that an unpaired t-test finds with the given power.

    Args:
        n1: forks of one side.
        n2: forks of the other.
        sd: fork SD, any unit; on log values the result is a log ratio.
        alpha: level of the test.
        power: wanted chance of finding it.

    Returns:
        In the unit of `sd`; infinite when there are too few forks to test.
    """
    if min(n1, n2) < 1 or n1 + n2 < _LEAST_VALUES:
        return math.inf
    error = sd * math.sqrt(1 / n1 + 1 / n2)
    df = n1 + n2 - 2
    return detectable(df, _critical(df, alpha), power=power) * error


def mde_paired(pairs: int, sd: float, *, alpha: float = ALPHA, power: float = POWER) -> float:
    """The least mean difference that a paired t-test finds; `sd` is that of the differences within pairs."""
    if pairs < _LEAST_PAIRS:
        return math.inf
    beyond = _critical(pairs - 1, alpha)
    return detectable(pairs - 1, beyond, power=power) * sd / math.sqrt(pairs)


def detectable(df: float, beyond: float, *, power: float = POWER) -> float:
    """Return the least effect, in standard errors, that a two-sided t-test finds in the right direction.

    Args:
        df: degrees of freedom, above 0.
        beyond: the t that it takes.
        power: wanted chance of finding it.
    """
    return float(nctdtrinc(df, 1 - power, beyond)) if math.isfinite(beyond) else math.inf


def forks_needed(
    effect: float, sd: float, *, paired: bool = False, alpha: float = ALPHA, power: float = POWER
) -> int:
    """Return forks a side that a comparison needs to find an effect.

    Args:
        effect: true difference of means, above 0, in the unit of `sd`.
        sd: fork SD; that of the differences within pairs when paired.
        paired: count pairs.
        alpha: level of the test.
        power: wanted chance of finding it.

    Returns:
        At least 3, below which there is no verdict; at most 100,000.

    Raises:
        ValueError: If the effect is not positive.
    """
    if not effect > 0:
        raise ValueError(f"effect must be positive, not {effect}")

    def too_few(forks: int) -> bool:
        if paired:
            return mde_paired(forks, sd, alpha=alpha, power=power) > effect
        return mde(forks, forks, sd, alpha=alpha, power=power) > effect

    return _fewest(too_few, FORKS_FOR_VERDICT)


def interval_half_width(forks: int, sd: float, *, paired: bool = False, alpha: float = ALPHA) -> float:
    """Half of the interval of a difference of means, where both sides have as many forks.

    Args:
        forks: of a side, or pairs; at least 2.
        sd: fork SD, any unit; that of the differences within pairs when paired.
        paired: count pairs.
        alpha: 1 - confidence.

    Returns:
        In the unit of `sd`.
    """
    if paired:
        return _critical(forks - 1, alpha) * sd / math.sqrt(forks)
    return _critical(2 * forks - 2, alpha) * sd * math.sqrt(2 / forks)


def forks_for_width(
    half_width: float, sd: float, *, paired: bool = False, least: int = FORKS_FOR_VERDICT
) -> int:
    """Return forks a side until an interval is expected to be so narrow: half its width, in the unit of `sd`.

    Returns:
        At least `least`; at most 100,000.

    Raises:
        ValueError: If the width is not positive.
    """
    if not half_width > 0:
        raise ValueError(f"half width must be positive, not {half_width}")
    return _fewest(lambda forks: interval_half_width(forks, sd, paired=paired) > half_width, least)


def _fewest(too_few: Callable[[int], bool], least: int) -> int:
    """The least number from `least` on that is not too few, up to 100,000."""
    low, high = least - 1, least
    while high < MOST_FORKS and too_few(high):
        low, high = high, high * 2
    high = min(high, MOST_FORKS)
    while high - low > 1:
        middle = (low + high) // 2
        if too_few(middle):
            low = middle
        else:
            high = middle
    return high


def _critical(df: float, alpha: float) -> float:
    return float(stdtrit(df, 1 - alpha / 2))


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

    def p_at_most(self, truth: float) -> float:
        """One-sided: how likely an estimate as low as this one, or lower, would be around `truth`."""
        half = self._two_sided(self.estimate - truth) / 2
        return half if self.estimate < truth else 1 - half

    def p_at_least(self, truth: float) -> float:
        """One-sided: how likely an estimate as high as this one, or higher, would be around `truth`."""
        half = self._two_sided(self.estimate - truth) / 2
        return half if self.estimate > truth else 1 - half

    @property
    def mde(self) -> float:
        """The effect that this test finds with 80 % power; infinite where it finds none yet."""
        return detectable(self.df, self.critical(1 - ALPHA)) * self.error

    def foreseen(self, units: int, further: int) -> "Contrast":
        """Return what it will be with more units, if it and the spread stay as they are.

        Args:
            units: that it rests on: blocks, or forks a side; at least 2.
            further: beyond these.
        """
        share = units / (units + further)
        return msgspec.structs.replace(
            self,
            error=self.error * math.sqrt(share),
            df=self.df * (units + further - 1) / (units - 1),
            units=self.units / share,
        )

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
        """As `difference_of`, which is None where this is."""
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


def further_forks(units: int, decided: Callable[[int], bool]) -> int | None:
    """Return the fewest more forks a side that decide what is open.

    Args:
        units: that there are: blocks, or forks a side.
        decided: whether so many more would decide it.

    Returns:
        At least 1; None where 50 would not do.
    """
    return next(filter(decided, range(1, 51 - units)), None)
