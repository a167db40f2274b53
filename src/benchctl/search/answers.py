"""Answers of a search: is a difference there or gone, by pairs of forks that are looked at one after another?

Pairs are logarithms of ratios, one a block, so that what drifts from block to block cancels. A question has
two landmarks: the mean of pairs where the difference is gone, and where it is there. It is answered as soon
as the interval of the mean, which holds at all looks together (`stats.inference`), excludes one of them while
the mean is nearer to the other. To test the middle between them instead would take four times as many pairs.

How much pairs differ is taken from all questions of the search together, since forks of one host and task
hardly change in that: so a clear answer takes three pairs, not eight. Where the pairs in question differ
more than that, their own SD counts.

What the bounds assume: pairs are independent and near normal on the logarithmic scale. Means between the
landmarks may be answered either way, the nearer one likelier.
"""

import math
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from benchctl.stats.inference import NO_SPREAD, Contrast

Answer = Literal["present", "absent", "undecided"]
Verdict = Literal["measuring"] | Answer

MIN_PAIRS = 3
"""Two pairs that agree by luck would look like certainty."""

Pairs = Sequence[float]


class Rule(msgspec.Struct, frozen=True):
    """Rule that answers a question; means of pairs, log ratios."""

    gone: float
    there: float  # at least `gone`, or minus infinity for a question that is never answered with `absent`
    middle: float  # on its two sides the mean is nearer to the one and the other
    alpha: float  # chance of `present` where it is gone
    beta: float  # chance of `absent` where it is there
    most: int  # pairs after which it stays open


def pooled(groups: Sequence[Pairs], weights: Sequence[float], *, sequential: bool = True) -> Contrast | None:
    """Estimate the weighted sum of the means of groups of pairs that differ equally much within each.

    Args:
        groups: pairs, log ratios; the groups with a weight have at least one.
        weights: one per group; 0 for a group that only shows how much pairs differ.
        sequential: whether the sum is looked at more than once.

    Returns:
        None when no group has two pairs.
    """
    df = sum(len(group) - 1 for group in groups if len(group) > 1)
    if not df:
        return None
    used = [(group, weight) for group, weight in zip(groups, weights, strict=True) if weight]
    own = [float(np.var(group, ddof=1)) for group, _ in used if len(group) > 1]
    common = sum(float(np.var(group)) * len(group) for group in groups if len(group) > 1) / df
    per_pair = math.fsum(weight**2 / len(group) for group, weight in used)
    return Contrast(
        estimate=math.fsum(weight * float(np.mean(group)) for group, weight in used),
        error=max(math.sqrt(max([common, *own]) * per_pair), NO_SPREAD),
        df=df,
        units=1 / per_pair,
        sequential=sequential,
    )


def difference(pairs: Pairs, others: Sequence[Pairs]) -> Contrast | None:
    """Estimate the mean of pairs; None while nothing shows how much they differ.

    Args:
        pairs: at least one, log ratios.
        others: those of earlier questions, which show how much pairs differ.
    """
    return pooled([pairs, *others], [1.0, *(0.0 for _ in others)])


def answer(pairs: Pairs, others: Sequence[Pairs], rule: Rule) -> Verdict:
    """Answer a question by its pairs so far; `measuring` while it takes more of them.

    Args:
        pairs: at least one, log ratios.
        others: as in `difference`.
        rule: of the question.
    """
    contrast = difference(pairs, others)
    if contrast is not None and len(pairs) >= MIN_PAIRS:
        if contrast.estimate >= rule.middle and contrast.interval(1 - 2 * rule.alpha)[0] > rule.gone:
            return "present"
        if contrast.estimate < rule.middle and contrast.interval(1 - 2 * rule.beta)[1] < rule.there:
            return "absent"
    return "undecided" if len(pairs) >= rule.most else "measuring"


def percents(pairs: Pairs, others: Sequence[Pairs]) -> tuple[float | None, float | None, float | None]:
    """Return the mean and its 95% interval in spite of all looks, in percent; None where it is unknown."""
    if not pairs:
        return None, None, None
    mean, contrast = 100 * math.expm1(float(np.mean(pairs))), difference(pairs, others)
    low, high = (-math.inf, math.inf) if contrast is None else contrast.interval(0.95)
    if math.isinf(high):
        return mean, None, None
    return mean, 100 * math.expm1(low), 100 * math.expm1(high)


class Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """Interim answer to a question."""

    verdict: Verdict = "measuring"
    reason: str = ""  # why it is undecided; else empty
    runs: tuple[str, ...] = ()  # relative to the search's folder; empty before there are any
    contender: tuple[float, ...] = ()  # one value per block that both finished
    reference: tuple[float, ...] = ()
    effect_percent: float | None = None  # contender / reference - 1, with its 95% interval at all looks
    low_percent: float | None = None
    high_percent: float | None = None
    seconds: float = 0.0  # of its forks, failed ones included

    @property
    def pairs(self) -> tuple[float, ...]:
        """Logarithms of contender / reference."""
        return tuple(map(math.log, map(float.__truediv__, self.contender, self.reference)))


Values = tuple[Sequence[float], Sequence[float]]
"""Values of the contender and the reference, a pair per block."""
