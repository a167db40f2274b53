"""Is an effect still there? Asked after every pair of forks, with errors that stay bounded however often.

The question is put to pairs: logarithms of ratios, one a block, so that what drifts from block to block
cancels. Two answers are told apart: the effect is what it was (the mean lies `gap` above the threshold), or
it is gone (`gap` below). The test is the sequential probability ratio test on t (Rushton 1950; Hajnal 1961;
Schnuerch and Erdfelder 2020, Psychological Methods 25): since the spread is not known, the likelihood ratio
is that of the t statistic, whose distribution depends on mean / SD only. Under either hypothesis that ratio
is a martingale, so that by Ville's inequality it ever exceeds 1 / alpha with probability alpha at most,
after as many looks as one likes (Perez-Ortiz et al. 2024, Annals of Statistics 52).

What the bound assumes: pairs are independent, near normal on the logarithmic scale, and differ no more than
`standardised_gap` was told. Effects between gone and what they were may be answered either way, the nearer
one likelier.
"""

import math
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

Answer = Literal["present", "absent", "undecided"]
Verdict = Literal["measuring"] | Answer

LEAST_PAIRS = 3
"""Two pairs that agree by luck would look like certainty."""
LEAST_PAIRS_WHOLE = 5
"""The first question also says how large the effect is and how much pairs differ, which later ones need."""

_LOOKS_APART = 3
_SD_CONFIDENCE = 0.8
_MOST_STANDARDISED = 2.0
_GRID = np.linspace(0.0, 1.0, 1501)[1:]
_BEYOND_MODE = 12.0
_NO_DIFFERENCE = 1e-9  # a log ratio; what is less comes of rounding


class Rule(msgspec.Struct, frozen=True):
    """When a question is answered."""

    threshold: float  # of the mean of pairs, a log ratio: above it the effect counts as there
    gap: float  # how far the means to be told apart lie from the threshold, a log ratio above 0
    standardised_gap: float  # the same in SDs of pairs, as earlier questions know them
    alpha: float  # chance of `present` where it is gone
    beta: float  # chance of `absent` where it is there
    most: int


class Judgement(msgspec.Struct, frozen=True):
    """The judgement of pairs. `verdict` is `measuring` while more are needed."""

    verdict: Verdict
    log_odds: float | None = None
    log_odds_needed: float | None = None


class Estimate(msgspec.Struct, frozen=True):
    """The mean of pairs with its ordinary 95 % t interval, log ratios; infinite under two pairs."""

    mean: float
    low: float
    high: float


def spent_alpha(alpha: float, number: int) -> float:
    """Return the share of alpha of the question with this number, from 1: the sum over all of them is alpha.

    A search does not know how many questions it is going to have, so they get 6 / (pi k)^2 each.
    """
    return alpha * 6.0 / (math.pi * number) ** 2


def estimate(pairs: Sequence[float]) -> Estimate:
    """Mean and interval of at least one pair."""
    mean = float(np.mean(pairs))
    half = _half_width(pairs, 0.05 / 2)
    return Estimate(mean, mean - half, mean + half)


def log_odds(pairs: Sequence[float], threshold: float, standardised_gap: float) -> float:
    """Logarithm of how much more likely the pairs are if the effect is there than if it is gone.

    With x the pairs less the threshold and a = gap sum(x) / sqrt(sum(x^2)), the ratio of the densities of
    noncentral t, with noncentralities +- gap sqrt(n), is I(a) / I(-a), where I(a) is the integral over y > 0
    of y^(n-1) exp(a y - y^2/2).

    Pairs are log ratios; the threshold is in the middle between the two means, and the gap from it to each is
    in SDs of pairs, above 0.
    """
    shifted = np.asarray(pairs, dtype=float) - threshold
    norm = math.sqrt(float(shifted @ shifted))
    if norm < _NO_DIFFERENCE:
        return 0.0
    slope = standardised_gap * float(shifted.sum()) / norm
    power = len(shifted) - 1
    return _log_integral(slope, power) - _log_integral(-slope, power)


def cautious_log_odds(pairs: Sequence[float], rule: Rule) -> float:
    """Log odds at the lesser of two standardised gaps: the rule's, and that by the SD of these very pairs.

    A smaller gap only moves the odds towards even, whatever the pairs are, so that the bounds on errors
    hold as for the rule's own gap. It helps where pairs of this schedule differ more than those before:
    in two groups, for instance, by which state the JIT landed in. There are at least two pairs, log
    ratios.
    """
    sd = float(np.std(pairs, ddof=1))
    gap = min(rule.standardised_gap, rule.gap / sd) if sd else rule.standardised_gap
    return log_odds(pairs, rule.threshold, gap)


def answer(pairs: Sequence[float], rule: Rule) -> Answer | None:
    """Return the answer by the pairs so far; None to go on measuring."""
    if len(pairs) >= LEAST_PAIRS:
        odds = cautious_log_odds(pairs, rule)
        if odds >= -math.log(rule.alpha):
            return "present"
        if odds <= math.log(rule.beta):
            return "absent"
    return "undecided" if len(pairs) >= rule.most else None


def judge(pairs: Sequence[float], rule: Rule) -> Judgement:
    """Return the answer by the pairs so far, with the odds behind it."""
    odds = cautious_log_odds(pairs, rule) if len(pairs) >= LEAST_PAIRS else None
    return Judgement(answer(pairs, rule) or "measuring", odds, -math.log(rule.alpha))


def confirm(pairs: Sequence[float], least_effect: float, alpha: float, most: int) -> Answer | None:
    """Is there an effect to begin with? None to go on measuring.

    The spread is not known yet, so this is a t-test at a few looks that were fixed before, which share
    alpha (Bonferroni): it holds for any spread.

    Args:
        pairs: log ratios so far.
        least_effect: that the mean has to be above.
        alpha: chance of `present` where the mean is not, and of `absent` where it is.
        most: pairs after which the question stays open.
    """
    looks = _looks(most)
    if len(pairs) not in looks:
        return None
    half, mean = _half_width(pairs, level_of_look(alpha, most)), float(np.mean(pairs))
    if mean - half > least_effect:
        return "present"
    if mean + half < least_effect:
        return "absent"
    return "undecided" if len(pairs) >= most else None


def level_of_look(alpha: float, most: int) -> float:
    """Return the level, one-sided, of each t-test by which `confirm` answers."""
    return alpha / len(_looks(most))


def standardised_gap(gap: float, groups: Sequence[Sequence[float]]) -> float:
    """Return a gap, a log ratio above 0, in SDs of earlier pairs, each group about a mean of its own.

    The SD is taken at its upper 80 % bound: pairs that differ more than assumed would break the test's
    promise; pairs that differ less only make it slower. At least one group has two pairs.
    """
    squares = sum(float(np.var(group)) * len(group) for group in groups if len(group) > 1)
    df = sum(len(group) - 1 for group in groups if len(group) > 1)
    from scipy.special import gammaincinv  # noqa: PLC0415 - lists of searches need only the words above

    lowest = 2.0 * float(gammaincinv(df / 2, 1 - _SD_CONFIDENCE))
    bound = math.sqrt(squares / lowest)
    return min(gap / bound, _MOST_STANDARDISED) if bound else _MOST_STANDARDISED


def expected_pairs(gap: float, alpha: float) -> int:
    """Rough number of pairs of a correct `present` at a standardised gap (Wald 1947), for forecasts only."""
    return max(LEAST_PAIRS, math.ceil(-math.log(alpha) / (2 * gap**2)))


def _looks(most: int) -> tuple[int, ...]:
    """Numbers of pairs at which the first question is looked at."""
    first = min(LEAST_PAIRS_WHOLE, most)
    return tuple(dict.fromkeys((*range(first, most, _LOOKS_APART), most)))


def _half_width(pairs: Sequence[float], tail: float) -> float:
    if len(pairs) <= 1:
        return math.inf
    from scipy.special import stdtrit  # noqa: PLC0415 - see above

    error = float(np.std(pairs, ddof=1)) / math.sqrt(len(pairs))
    return float(stdtrit(len(pairs) - 1, 1 - tail)) * error


def _log_integral(slope: float, power: int) -> float:
    """Logarithm of the integral over y > 0 of y^power exp(slope y - y^2/2)."""
    mode = (slope + math.sqrt(slope**2 + 4 * power)) / 2
    y = _GRID * (max(mode, 0.0) + _BEYOND_MODE)
    exponents = power * np.log(y) + slope * y - y**2 / 2
    top = float(exponents.max())
    heights = np.exp(exponents - top)
    # By trapezoids; at y = 0 the function is 0, but for power 0.
    total = float(heights.sum() - heights[-1] / 2) + (math.exp(-top) / 2 if not power else 0.0)
    return top + math.log(total * float(y[0]))
