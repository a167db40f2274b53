"""What a number of forks can see: minimum detectable effects, and forks needed for an effect."""

import math

from scipy.optimize import brentq
from scipy.stats import nct, t

POWER = 0.8
ALPHA = 0.05
_MOST_FORKS = 100_000
_LEAST_VALUES = 3  # of both sides together: fewer leave no degree of freedom
_LEAST_PAIRS = 2


def two_sided_power(ncp: float, df: float, alpha: float = ALPHA) -> float:
    """Chance that a two-sided t-test rejects.

    Args:
        ncp: noncentrality, the true effect in standard errors; not negative.
        df: degrees of freedom, above 0.
        alpha: level of the test.
    """
    critical = float(t.isf(alpha / 2, df))
    return float(nct.sf(critical, df, ncp)) + _lower_tail(critical, df, ncp)


def mde(n1: int, n2: int, sd: float, *, alpha: float = ALPHA, power: float = POWER) -> float:
    """The least difference of means that an unpaired t-test finds with the given power.

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
    return _detectable_ncp(n1 + n2 - 2, alpha, power) * sd * math.sqrt(1 / n1 + 1 / n2)


def mde_paired(pairs: int, sd: float, *, alpha: float = ALPHA, power: float = POWER) -> float:
    """The least mean difference that a paired t-test finds; `sd` is that of the differences within pairs."""
    if pairs < _LEAST_PAIRS:
        return math.inf
    return _detectable_ncp(pairs - 1, alpha, power) * sd / math.sqrt(pairs)


def forks_needed(
    effect: float, sd: float, *, paired: bool = False, alpha: float = ALPHA, power: float = POWER
) -> int:
    """Forks a side that a comparison needs to find an effect.

    Args:
        effect: true difference of means, above 0, in the unit of `sd`.
        sd: fork SD; that of the differences within pairs when paired.
        paired: count pairs.
        alpha: level of the test.
        power: wanted chance of finding it.

    Returns:
        At least 3, below which there is no verdict; at most 100,000.

    Raises:
        ValueError: the effect is not positive.
    """
    if not effect > 0:
        raise ValueError(f"effect must be positive, not {effect}")

    def too_few(forks: int) -> bool:
        if paired:
            return mde_paired(forks, sd, alpha=alpha, power=power) > effect
        return mde(forks, forks, sd, alpha=alpha, power=power) > effect

    low, high = 2, 3
    while high < _MOST_FORKS and too_few(high):
        low, high = high, high * 2
    high = min(high, _MOST_FORKS)
    while high - low > 1:
        middle = (low + high) // 2
        if too_few(middle):
            low = middle
        else:
            high = middle
    return high


def _detectable_ncp(df: float, alpha: float, power: float) -> float:
    """The noncentrality at which the test reaches the power; solved, since it has no closed form."""
    upper = 2.0
    while two_sided_power(upper, df, alpha) < power:
        upper *= 2
    return float(brentq(lambda ncp: two_sided_power(ncp, df, alpha) - power, 0.0, upper, xtol=1e-9))


def _lower_tail(critical: float, df: float, ncp: float) -> float:
    """Rejections in the wrong direction; the far tail is reported as NaN by some scipy versions."""
    value = float(nct.cdf(-critical, df, ncp))
    return value if math.isfinite(value) else 0.0
