"""What a number of forks can see: minimum detectable effects, and forks needed for an effect."""

import math
from collections.abc import Callable

# Not scipy.stats: a run forecasts before its first request, and that takes half a second to load, and a
# hundred times as long to compute.
from scipy.special import nctdtrinc, stdtrit

from benchctl.results.model import FORKS_FOR_VERDICT

POWER = 0.8
ALPHA = 0.05
MOST_FORKS = 100_000
_LEAST_VALUES = 3  # of both sides together: fewer leave no degree of freedom
_LEAST_PAIRS = 2


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
    error = sd * math.sqrt(1 / n1 + 1 / n2)
    return detectable(n1 + n2 - 2, alpha=alpha, power=power) * error


def mde_paired(pairs: int, sd: float, *, alpha: float = ALPHA, power: float = POWER) -> float:
    """The least mean difference that a paired t-test finds; `sd` is that of the differences within pairs."""
    if pairs < _LEAST_PAIRS:
        return math.inf
    return detectable(pairs - 1, alpha=alpha, power=power) * sd / math.sqrt(pairs)


def detectable(df: float, *, alpha: float = ALPHA, power: float = POWER) -> float:
    """The least effect, in standard errors, that a two-sided t-test finds in the right direction.

    Args:
        df: degrees of freedom, above 0.
        alpha: level of the test.
        power: wanted chance of finding it.
    """
    return float(nctdtrinc(df, 1 - power, _critical(df, alpha)))


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
    """Forks a side until an interval is expected to be so narrow: half its width, in the unit of `sd`.

    Returns:
        At least `least`; at most 100,000.

    Raises:
        ValueError: the width is not positive.
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
