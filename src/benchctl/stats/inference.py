"""Tests of differences of means: contrasts, Fieller's ratio, interim analyses; adjustment of p-values."""

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit

from benchctl.results.model import Looks, RunRecord

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

# The mixture t-test: p-values and intervals that hold however often they are looked at.
#
# Whoever looks at figures and goes on while nothing is found finds something in the end. Here the truth is
# weighed against no effect by a likelihood ratio whose expectation never exceeds 1 while there is none: so it
# ever exceeds 1 / alpha with a chance of alpha at most, after as many looks as one likes (Ville's
# inequality).
# The SD is unknown with the right-Haar prior, the effect in SDs follows N(0, 1). It needs no bound on the
# number of looks and no table.
#
# Lai, Annals of Statistics 4, 1976; Rouder et al., Psychonomic Bulletin & Review 16, 2009; Wang and Ramdas,
# "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance", 2024.
#
# Estimate, interval and p are all those of the present look, so that they never contradict each other; the
# largest evidence of earlier looks would be a valid p, too, beside an interval that may hold 0 again.
#
# Who goes on a few times needs less: look k, from 0, is the plain t-test at level / 2^k. The levels sum up to
# twice the first one at most, and as looks share their values, to 1.5 times it.


def log_evidence(t: float, df: float, units: float) -> float:
    """Return the logarithm of the likelihood ratio of some effect against none.

    Args:
        t: estimate / standard error.
        df: degrees of freedom, above 0.
        units: that the estimate rests on: (SD of a unit / standard error)^2, which is the number of pairs.
    """
    v = 1.0 + units
    return -math.log(v) / 2 + (df + 1) / 2 * (math.log1p(t * t / df) - math.log1p(t * t / (v * df)))


def sequential_p(t: float, df: float, units: float) -> float:
    """Return the two-sided p over all looks; see `log_evidence`."""
    return math.exp(min(0.0, -log_evidence(t, df, units)))


def sequential_critical(confidence: float, df: float, units: float) -> float:
    """Return half the width of an interval in standard errors; infinite while there is none.

    Such intervals hold the truth at all looks together with the given confidence, between 0 and 1.
    """
    v = 1.0 + units
    a = math.pow(v / (1 - confidence) ** 2, 1 / (df + 1))
    return math.sqrt(df * (a - 1) / (1 - a / v)) if a < v else math.inf


def at_look(p: float, looks: int) -> float:
    """Return an ordinary p so that the level itself can be used: it doubles with every look."""
    return min(1.0, math.ldexp(p, looks - 1))


def critical(level: float, df: float, units: float, looks: Looks) -> float:
    """Return the t that p equals the level at, two-sided, between 0 and 1; infinite while there is none."""
    if looks is None:
        return sequential_critical(1 - level, df, units)
    return -float(stdtrit(df, math.ldexp(level / 2, 1 - looks)))


def p_of_signs(above: int, below: int) -> float:
    """Return the two-sided p over all looks for pairs of which so many lie above 0 and below it.

    The chance of a pair to lie above is 1/2 against uniformly distributed (Laplace's mixture).
    """
    pairs = above + below
    log_ratio = pairs * math.log(2) + math.lgamma(above + 1) + math.lgamma(below + 1) - math.lgamma(pairs + 2)
    return math.exp(min(0.0, -log_ratio))


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
    looks: Looks = 1

    @property
    def p(self) -> float:
        """Two-sided, for a truth of 0."""
        return self._two_sided(self.estimate)

    def critical(self, confidence: float) -> float:
        """Return half the width of an interval in standard errors; infinite where there is none yet."""
        return critical(1 - confidence, self.df, self.units, self.looks)

    def interval(self, confidence: float) -> tuple[float, float]:
        """Low and high; infinite where there is none yet."""
        half = self.critical(confidence) * self.error
        return self.estimate - half, self.estimate + half

    def _two_sided(self, distance: float) -> float:
        t = abs(distance) / self.error
        if self.looks is None:
            return sequential_p(t, self.df, self.units)
        return at_look(2 * float(stdtr(self.df, -t)), self.looks)


def contrast(*groups: Floats, looks: Looks = 1) -> Contrast | None:
    """Estimate the mean of differences within pairs, or that of a second group less that of the first.

    These are the paired and Welch's t, with Satterthwaite's degrees of freedom (Biometrics Bulletin 2, 1946).

    Args:
        groups: values of one or two, shape (n,) each.
        looks: how often they are looked at.

    Returns:
        None when a group has under two values, or nothing varies.
    """
    if min(values.size for values in groups) < _LEAST_FOR_SPREAD:
        return None
    parts = [float(values.var(ddof=1)) / values.size for values in groups]
    variance = math.fsum(parts)
    if math.sqrt(variance) < NO_SPREAD:
        return None
    estimate = float(groups[-1].mean()) - math.fsum(float(values.mean()) for values in groups[:-1])
    spread = math.fsum(part**2 / (values.size - 1) for part, values in zip(parts, groups, strict=True))
    units = 1 / math.fsum(1 / values.size for values in groups)
    return Contrast(estimate, math.sqrt(variance), variance**2 / spread, units, looks)


def difference_of(baseline: Floats, contender: Floats, *, paired: bool, looks: Looks = 1) -> Contrast | None:
    """Contender - baseline, shapes (n,) and (m,), (n,) and in the order of the pairs when paired."""
    return contrast(*([contender - baseline] if paired else [baseline, contender]), looks=looks)


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
    def of(cls, baseline: Floats, contender: Floats, *, paired: bool, looks: Looks = 1) -> "Ratio | None":
        """Return the ratio like `difference_of`; None in the same cases."""
        difference = difference_of(baseline, contender, paired=paired, looks=looks)
        if difference is None:
            return None
        first, second = (float(side.var(ddof=1)) / side.size for side in (baseline, contender))
        shared = float(np.cov(baseline, contender)[0, 1]) / baseline.size if paired else 0.0
        return cls((float(baseline.mean()), float(contender.mean())), (first, second), shared, difference)

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


# Adjustment of p-values when several tasks are looked at.

Method = Literal["benjamini-hochberg", "holm"]


def looks_at(runs: Iterable[RunRecord]) -> Looks:
    """Return the most that any run was looked at: by its stop rule, or before more was added."""
    found = [None if run.plan.stop is not None and run.plan.stop.decided else run.looks for run in runs]
    known = [looks for looks in found if looks is not None]
    return max(known, default=1) if len(known) == len(found) else None


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
