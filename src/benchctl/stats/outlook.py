"""Least effects, power and forks to go, at the spread that forks have: by the noncentral t.

The spread is taken as known: of few forks it is not, and neither is what follows from it.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from scipy.special import nctdtr, nctdtrinc, ndtr, ndtri

from benchctl.results.model import FORKS_FOR_VERDICT, Looks
from benchctl.results.plan import FIRST_LOOK
from benchctl.spec import MOST_FORKS
from benchctl.stats.compare import LEVEL, Comparison
from benchctl.stats.inference import Method, critical

POWER: Final = 0.8
_NOTHING_PERCENT = -100.0  # a ratio of 0
_MOST_LOG = 700.0  # exp of more is not a float
_LEAST_DF = 1 - 1e-9  # of what is computed in floats, too
_LEAST_SD = 1e-9  # logarithms: where nothing varied, the coming run varies by next to nothing


class Rule(msgspec.Struct, frozen=True):
    """The verdict rule in force for a row."""

    margin: float  # natural logarithm of 1 + the difference that does not matter
    paired: bool
    looks: Looks = 1  # the last one decides; with None every one does, after every block from the fifth on
    # What p is multiplied by for the other rows of its family: m / (k + 1) by Benjamini and Hochberg, where k
    # of m rows are significant already.
    weight: float = 1.0
    stretch: float = 1.0  # as of `Comparison`

    @property
    def sides(self) -> int:
        """Samples that the spread is estimated from: the differences, or both sides."""
        return 1 if self.paired else 2

    def critical(self, forks: float, level: float = LEVEL) -> float:
        """Return the t that p equals the level at, two-sided; infinite while there is none."""
        df = self.sides * (forks - 1)
        if df < _LEAST_DF:
            return math.inf
        return critical(level, df, forks / self.sides, self.looks)

    def error(self, sd: float, forks: float) -> float:
        """Return the standard error of the effect, from the SD of pairs or of forks."""
        return max(sd, _LEAST_SD) * math.sqrt(self.sides / forks)


class Estimate(msgspec.Struct, frozen=True):
    """Interim result of a run, in natural logarithms."""

    effect: float
    sd: float  # of differences within pairs, or of forks
    forks: int  # a side

    def shrunk(self, rule: Rule) -> float:
        """Return the mean of the effect given the run: the mixture t-test's prior draws it towards 0.

        Beside a verdict that ended a run, the plain estimate lies too far from 0 on average.
        """
        units = self.forks / rule.sides
        return self.effect * units / (units + 1)


def power(effect: float, sd: float, rule: Rule, forks: float) -> float:
    """Return the chance that so many forks a side find an effect in its direction.

    Found is what is significant and, where the effect lies beyond the margin, is estimated beyond it: the
    rarer of the two, which is hardly more than both.

    Args:
        effect: natural logarithm of the ratio, above 0.
        sd: of natural logarithms, of pairs or forks.
        rule: the verdict rule.
        forks: a side, or pairs.
    """
    t, error = rule.critical(forks, LEVEL / rule.weight), rule.error(sd, forks)
    if math.isinf(t):
        return 0.0
    significant = 1 - float(nctdtr(rule.sides * (forks - 1), effect / error, t))
    beyond = float(ndtr((effect - rule.margin) / error)) if effect > rule.margin else 1.0
    return min(significant, beyond)


def least_effect(sd: float, rule: Rule, forks: float) -> float:
    """Return the effect that so many forks a side find with 80% power; infinite where they find none."""
    error = rule.error(sd, forks)
    if math.isinf(t := rule.critical(forks, LEVEL / rule.weight)):
        return math.inf
    significant = float(nctdtrinc(rule.sides * (forks - 1), 1 - POWER, t)) * error
    # Beyond the margin, the estimate has to be so, too.
    beyond = rule.margin + float(ndtri(POWER)) * error
    return significant if significant <= rule.margin else max(significant, beyond)


def forks_to_verdict(found: Estimate, rule: Rule, most: int) -> int | None:
    """Return the further forks a side until a run has a verdict, if its effect is as estimated.

    With so many, one of the verdicts is found with 80% power. None for more than `most` in all.
    """

    def decides(forks: int) -> bool:
        error, bound = rule.error(found.sd, forks), rule.margin / rule.stretch
        reach = bound - rule.critical(forks, 2 * LEVEL) * error
        equal = float(ndtr((reach - effect) / error) - ndtr((-reach - effect) / error)) if reach > 0 else 0.0
        return equal >= POWER or (effect > 0 and power(effect, found.sd, rule, forks) >= POWER)

    effect = abs(found.shrunk(rule) if rule.looks is None else found.effect)
    least = max(found.forks + 1, FIRST_LOOK if rule.looks is None else FORKS_FOR_VERDICT)
    total = least + bisect_left(range(least, most + 1), True, key=decides)  # noqa: FBT003 - what is looked for
    return total - found.forks if total <= most else None


def estimate_of(comparison: Comparison) -> Estimate | None:
    """Return effect and spread of forks; None where there is none, or index builds count instead."""
    effect, error = comparison.effect_percent, comparison.error
    if error is None or comparison.replicate != "fork" or effect is None or effect <= _NOTHING_PERCENT:
        return None
    forks, sides = min(comparison.replicates), 1 if comparison.paired else 2
    return Estimate(math.log1p(effect / 100), error * math.sqrt(forks / sides), forks)


def rule_of(comparison: Comparison, weight: float = 1.0) -> Rule:
    """Return the rule that a comparison's verdict follows, its p multiplied by `weight`."""
    margin = math.log1p(comparison.margin_percent / 100)
    return Rule(margin, comparison.paired, comparison.looks, weight, comparison.stretch)


def family_weight(family: Iterable[Comparison], method: Method = "benjamini-hochberg") -> float:
    """Return what multiplies p of an open comparison if it is the next of its family to be found."""
    tested = [comparison.p_adjusted for comparison in family if comparison.p_adjusted is not None]
    detected = sum(p <= LEVEL for p in tested)
    left = len(tested) - detected
    return max(1.0, left if method == "holm" else len(tested) / (detected + 1))


def with_outlooks(family: Sequence[Comparison], method: Method) -> list[Comparison]:
    """Return comparisons that were adjusted together with what as many forks find, and forks to go."""
    weight = family_weight(family, method)
    comparisons = []
    for comparison in family:
        rule, least = rule_of(comparison, weight), math.inf
        if comparison.error is not None:
            # As many forks on both sides as have these degrees of freedom, and the error as it is.
            forks = _degrees(comparison) / rule.sides + 1
            least = least_effect(comparison.error * math.sqrt(forks / rule.sides), rule, forks)
        percent = 100 * math.expm1(least) if least < _MOST_LOG else None
        further = further_forks(comparison, weight)
        comparisons.append(msgspec.structs.replace(comparison, mde_percent=percent, further=further))
    return comparisons


def _degrees(comparison: Comparison) -> float:
    """Return the degrees of freedom of an effect, of forks or index builds; of two sides Satterthwaite's."""
    sides = comparison.replicates
    if comparison.paired:
        return min(sides) - 1
    cvs = comparison.cv_baseline_percent, comparison.cv_contender_percent
    # The variance of logarithms of values that have this CV.
    parts = [
        (math.log1p(((cv or 0.0) / 100) ** 2) / units, units - 1)
        for cv, units in zip(cvs, sides, strict=True)
    ]
    spread = math.fsum(part**2 / df for part, df in parts if df)
    return math.fsum(part for part, _ in parts) ** 2 / spread if spread else min(sides) - 1


def further_forks(comparison: Comparison, weight: float = 1.0) -> int | None:
    """Return how many more forks a side an open comparison takes; None where it has a verdict or no spread.

    They are one more look, unless every block is. None, too, for more than a run until it is decided may
    have, or than twice as many as there are.
    """
    estimate = estimate_of(comparison)
    if comparison.verdict != "inconclusive" or estimate is None:
        return None
    rule = rule_of(comparison, weight)
    rule = msgspec.structs.replace(rule, looks=rule.looks and rule.looks + 1)
    return forks_to_verdict(estimate, rule, max(MOST_FORKS, 2 * estimate.forks))
