"""When a question is answered, and how sure that is: the rules of a search, from its decisions so far.

Errors are not alike. A needed task that is removed makes the result wrong: all questions of a search share
`ALPHA` for that. A task that is kept makes it larger than it has to be: every question may err with `BETA`,
and what stays open at the bound of pairs is kept.

Simulated: six tasks of which an effect of 40 % needs two, twelve pairs at most, 400 searches each. With forks
whose CV is 5, 10 and 15 %, a needed task went in 0.0, 0.5 and 0.8 % of them, the result was larger than it
has to be in 0, 3 and 29 %, and a search took 38, 48 and 71 pairs (median). Without any effect, 2 % began.
"""

import math
from collections.abc import Sequence

import msgspec

from benchctl.minimize.pairs import log_ratios
from benchctl.results.minimize import Decision, MinimizeSpec, Verdict
from benchctl.stats.metrics import metric_of
from benchctl.stats.sequential import (
    LEAST_PAIRS,
    Rule,
    answer,
    cautious_log_odds,
    confirm,
    expected_pairs,
    spent_alpha,
    standardised_gap,
)

BETA = 0.05
"""Chance that one question says `absent` where the effect is there: the result is then larger than needed."""
ALPHA = 0.05
"""Chance that any question of a search says `present` where the effect is gone."""


class Said(msgspec.Struct, frozen=True):
    """What pairs say. `verdict` is `measuring` while more are needed."""

    verdict: Verdict
    log_odds: float | None = None
    log_odds_needed: float | None = None


class FirstQuestion:
    """Is there an effect to begin with? A t-test at few looks."""

    def __init__(self, spec: MinimizeSpec, number: int) -> None:
        self.alpha = spent_alpha(spec.alpha, number)
        self._least = math.log1p(spec.by or 0.0)
        self._most = spec.most_forks

    def said(self, pairs: Sequence[float]) -> Said:
        """What these pairs say."""
        return Said(confirm(pairs, self._least, self.alpha, self._most) or "measuring")


class RemovalQuestion:
    """Does it persist? A sequential test between what it was and none, about the threshold between them.

    Args:
        spec: of the search.
        decisions: those before it; one of them found the effect.
        number: of the question.
    """

    def __init__(self, spec: MinimizeSpec, decisions: Sequence[Decision], number: int) -> None:
        metric = metric_of(spec.metric)
        groups = [log_ratios(one, spec.effect, metric) for one in decisions if one.number < number]
        found = next(one for one in decisions if one.phase != "remove" and one.verdict == "present")
        whole = log_ratios(found, spec.effect, metric)
        # Half of it persists, or as much as was asked for.
        threshold = sum(whole) / len(whole) / 2 if spec.by is None else math.log1p(spec.by)
        self.alpha = spent_alpha(spec.alpha, number)
        self._rule = Rule(
            threshold=threshold,
            gap=threshold,
            standardised_gap=standardised_gap(threshold, groups),
            alpha=self.alpha,
            beta=BETA,
            most=spec.most_forks,
        )

    def said(self, pairs: Sequence[float]) -> Said:
        """What these pairs say."""
        odds = None
        if len(pairs) >= LEAST_PAIRS:
            odds = cautious_log_odds(pairs, self._rule)
        return Said(answer(pairs, self._rule) or "measuring", odds, -math.log(self.alpha))

    @property
    def expected_pairs(self) -> int:
        """About how many pairs it takes; as many as it may have at most."""
        return min(expected_pairs(self._rule.standardised_gap, self.alpha), self._rule.most)

    @property
    def hopeless(self) -> bool:
        """Whether pairs differ so much that the bound will usually come before an answer."""
        return expected_pairs(self._rule.standardised_gap, self.alpha) > self._rule.most


Question = FirstQuestion | RemovalQuestion
