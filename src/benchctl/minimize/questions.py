"""What the questions of a search for the smallest schedule ask of pairs of forks; see `stats.sequential`.

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

from benchctl.errors import BenchctlError
from benchctl.minimize.record import Decision, Effect, MinimizeSpec
from benchctl.results.model import RunRecord
from benchctl.stats.metrics import Metric, block_values, collect, metric_of, task_at
from benchctl.stats.sequential import (
    Judgement,
    Rule,
    confirm,
    estimate,
    expected_pairs,
    judge,
    spent_alpha,
    standardised_gap,
)

# What runs say about an effect: values block by block, as log ratios that grow with it.


class Values(msgspec.Struct, frozen=True):
    """Of the blocks that both sides finished, in order: the metric's values."""

    contender: tuple[float, ...]
    reference: tuple[float, ...]


def values_of(records: Sequence[RunRecord], effect: Effect, metric: Metric) -> Values:
    """Read them from runs: the schedule's, and after it the fresh node's, unless variants are compared."""
    whole = records[0]
    place = (0, len(whole.plan.schedules[0].schedule) - 1)
    task = task_at(whole.plan, place)
    contender = collect({"": whole.compared(effect.variant)}, place, task)[""]
    if effect.against:
        reference = collect({"": whole.compared(effect.against)}, place, task)[""]
    else:
        reference = collect({"": records[1].compared(effect.variant)}, (0, 0), task)[""]
    both = [
        (left, right)
        for left, right in zip(*block_values(metric, contender, reference), strict=True)
        if left > 0 and right > 0
    ]
    return Values(tuple(left for left, _ in both), tuple(right for _, right in both))


def log_ratios(values: Values | Decision, effect: Effect, metric: Metric) -> tuple[float, ...]:
    """ln(contender / reference), with the sign of the effect: more of it is more."""
    sign = -1.0 if (effect.direction == "slower") == metric.higher_is_better else 1.0
    return tuple(
        sign * math.log(left / right) for left, right in zip(values.contender, values.reference, strict=True)
    )


def percent_of(log_ratio: float, effect: Effect, metric: Metric) -> float:
    """Such a log ratio, as contender / reference - 1 in percent."""
    sign = -1.0 if (effect.direction == "slower") == metric.higher_is_better else 1.0
    return 100 * math.expm1(sign * log_ratio)


def interval_percent(
    pairs: Sequence[float], effect: Effect, metric: Metric
) -> tuple[float | None, float | None, float | None]:
    """Effect, lower and upper end of its 95 % interval, percent; None if unknown."""
    if not pairs:
        return None, None, None
    found = estimate(pairs)
    mean = percent_of(found.mean, effect, metric)
    if not math.isfinite(found.low):
        return mean, None, None
    low, high = sorted(percent_of(end, effect, metric) for end in (found.low, found.high))
    return mean, low, high


def require_values(values: Values, task: str) -> None:
    """Refuse a target that was never answered.

    Raises:
        BenchctlError: no block has a value.
    """
    if not values.contender:
        raise BenchctlError(
            f"task '{task}' has no figure in any block: its requests failed, or it is unsupported",
            hint="try it first with: benchctl run",
        )


# The questions of a search, from its decisions so far.


BETA = 0.05
"""Chance that one question says `absent` where the effect is there: the result is then larger than needed."""
ALPHA = 0.05
"""Chance that any question of a search says `present` where the effect is gone."""


class FirstQuestion:
    """Is there an effect to begin with? A t-test at few looks."""

    def __init__(self, spec: MinimizeSpec, number: int) -> None:
        self.alpha = spent_alpha(spec.alpha, number)
        self._least = math.log1p(spec.by or 0.0)
        self._most = spec.most_forks

    def judge(self, pairs: Sequence[float]) -> Judgement:
        """Judge these pairs."""
        return Judgement(confirm(pairs, self._least, self.alpha, self._most) or "measuring")


class RemovalQuestion:
    """Does it persist? A sequential test between the earlier effect and none, about their threshold.

    Of the decisions before it, one found the effect.
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

    def judge(self, pairs: Sequence[float]) -> Judgement:
        """Judge these pairs."""
        return judge(pairs, self._rule)

    @property
    def expected_pairs(self) -> int:
        """Rough number of pairs that it takes, at most its limit."""
        return min(expected_pairs(self._rule.standardised_gap, self.alpha), self._rule.most)

    @property
    def hopeless(self) -> bool:
        """Whether pairs differ so much that the limit will usually come before an answer."""
        return expected_pairs(self._rule.standardised_gap, self.alpha) > self._rule.most


Question = FirstQuestion | RemovalQuestion
