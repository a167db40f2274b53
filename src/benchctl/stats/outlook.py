"""Forecasts of comparisons and plans: what rows lack until a verdict, what plans find, what that takes."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from statistics import median
from typing import Final

import msgspec

from benchctl.results.model import ForkRecord
from benchctl.results.plan import Place, Plan
from benchctl.spec import MOST_FORKS
from benchctl.stats.compare import LEVEL, Comparison
from benchctl.stats.forecast import (
    Estimate,
    Forecast,
    Rule,
    Spread,
    forks_to_find,
    forks_to_verdict,
    least_effect,
    power,
)
from benchctl.stats.history import History, Match, Noise, compared_pairs, metrics_of
from benchctl.stats.inference import NO_SPREAD, Method, cv_of, sd_of
from benchctl.stats.metrics import Metric, MetricKey, challenge_title, metric_of, places, task_at

EFFECT: Final = 0.10
"""The difference that minutes to a verdict are told for, as a ratio - 1."""
_NOTHING_PERCENT = -100.0  # a ratio of 0
_MOST_LOG = 700.0  # exp of more is not a float


# Of comparisons.


class ComparedTask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The two variants, task and metric of a comparison."""

    schedule: int
    task: int
    label: str
    metric: MetricKey
    baseline: str
    contender: str


class VerdictCost(ComparedTask, frozen=True, forbid_unknown_fields=True):
    """A comparison's cost of finding a difference, at the spread that its forks had."""

    effect_percent: float  # the difference, found with 80% power
    forks: Forecast  # a side, or pairs, of a run of its own
    pair_s: float  # median seconds of a fork of the one and of the other together
    spread_percent: float  # CV that the forks follow from: of forks, or of ratios within pairs when paired
    # What an open row lacks until its own verdict, in forks of every variant; None where it has one.
    further: Forecast | None
    block_s: float  # median seconds of a fork of every variant

    @property
    def minutes(self) -> float | None:
        """Of the forks that find the difference, without preparation; None for too many."""
        return None if self.forks.forks is None else self.forks.forks * self.pair_s / 60

    @property
    def further_minutes(self) -> tuple[float | None, float | None, float | None]:
        """Of what an open row lacks: in the middle, at least and at most by the 80% range."""
        further = self.further
        forks = (None,) * 3 if further is None else (further.forks, further.low, further.high)
        middle, low, high = (None if count is None else count * self.block_s / 60 for count in forks)
        return middle, low, high


def verdict_costs(
    compared: Iterable[tuple[Place, str, Comparison]],
    done: Mapping[str, Sequence[ForkRecord]],
    method: Method = "benjamini-hochberg",
) -> tuple[VerdictCost, ...]:
    """Return what every comparison takes that gets a verdict, from (place, label, comparison).

    Left out are figures that are never judged, those of one fork or without any spread, forks whose
    duration is not known, and several index builds: those need more builds, which do not cost what a fork
    does.
    """
    typical = {
        label: median(fork.wall_s for fork in forks) if forks else 0.0 for label, forks in done.items()
    }
    block_s = sum(typical.values())
    costs = []
    for _, rows in groupby(compared, lambda row: "" if method == "holm" else row[2].metric):
        family = list(rows)
        weight = family_weight([comparison for _, _, comparison in family], method)
        for place, label, comparison in family:
            pair_s = typical.get(comparison.baseline, 0.0) + typical.get(comparison.contender, 0.0)
            estimate = estimate_of(comparison)
            if not comparison.judged or not pair_s or estimate is None:
                continue
            rule = rule_of(comparison, weight)
            rule = msgspec.structs.replace(rule, looks=rule.looks and 1)
            costs.append(
                VerdictCost(
                    *place,
                    label,
                    comparison.metric,
                    comparison.baseline,
                    comparison.contender,
                    effect_percent=100 * EFFECT,
                    forks=forks_to_find(math.log1p(EFFECT), estimate.spread, rule),
                    pair_s=pair_s,
                    spread_percent=100 * cv_of(estimate.spread.sd),
                    further=further_forks(comparison, weight),
                    block_s=block_s,
                )
            )
    return tuple(costs)


def spread_of(comparison: Comparison) -> Spread | None:
    """Return the spread behind the error of an effect, of forks or index builds; None if there is none."""
    error, sides = comparison.error, comparison.replicates
    if error is None:
        return None
    if comparison.paired:
        return Spread(error * math.sqrt(min(sides)), min(sides) - 1)
    cvs = comparison.cv_baseline_percent, comparison.cv_contender_percent
    noises = [
        (sd_of((cv or 0.0) / 100) ** 2 / units, units - 1) for cv, units in zip(cvs, sides, strict=True)
    ]
    return Spread(error / math.sqrt(sum(1 / units for units in sides)), _satterthwaite(noises))


def estimate_of(comparison: Comparison) -> Estimate | None:
    """Return effect and spread of forks; None where there is none, or index builds count instead."""
    effect, spread = comparison.effect_percent, spread_of(comparison)
    if spread is None or comparison.replicate != "fork" or effect is None or effect <= _NOTHING_PERCENT:
        return None
    return Estimate(math.log1p(effect / 100), spread, min(comparison.replicates))


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


def with_least_effects(family: Sequence[Comparison], method: Method) -> list[Comparison]:
    """Return comparisons that were adjusted together with the difference that as many forks find again."""
    weight = family_weight(family, method)
    comparisons = []
    for comparison in family:
        spread, rule, least = spread_of(comparison), rule_of(comparison, weight), math.inf
        if spread is not None and comparison.error is not None:
            # As many forks on both sides as have these degrees of freedom, and the error as it is.
            forks = spread.df / rule.sides + 1
            given = Spread(comparison.error * math.sqrt(forks / rule.sides), math.inf)
            least = least_effect(given, rule, forks)
        percent = 100 * math.expm1(least) if least < _MOST_LOG else None
        comparisons.append(msgspec.structs.replace(comparison, mde_percent=percent))
    return comparisons


def further_forks(comparison: Comparison, weight: float = 1.0, most: int | None = None) -> Forecast | None:
    """Return how many more forks a side an open comparison takes; None where it has a verdict or no spread.

    They are one more look, unless every block is. `most` are forks a side in all; by default as many as a run
    until it is decided may have, or twice as many as there are.
    """
    estimate = estimate_of(comparison)
    if comparison.verdict != "inconclusive" or estimate is None:
        return None
    rule = rule_of(comparison, weight)
    rule = msgspec.structs.replace(rule, looks=rule.looks and rule.looks + 1)
    return forks_to_verdict(estimate, rule, most or max(MOST_FORKS, 2 * estimate.forks))


# Of plans.


class Prospect(ComparedTask, frozen=True, forbid_unknown_fields=True):
    """The noise that one comparison of a plan is going to have."""

    # `sd`, `df`: as earlier runs had it, of natural logarithms: of differences within pairs.
    sd: float
    df: float
    match: Match
    challenge: str = ""  # its name, numbered where it runs more than once

    @property
    def spread(self) -> Spread:
        """Plan of the coming run."""
        return Spread(self.sd, self.df).of_coming_run


def prospects(history: History, plan: Plan, metrics: Sequence[Metric] | None = None) -> list[Prospect]:
    """Return every comparison that both sides have earlier forks for, by `metrics` or those of the plan."""
    expected = []
    for place in places(plan):
        task = task_at(plan, place)
        for metric in metrics_of(plan, task) if metrics is None else metrics:
            for baseline, contender in compared_pairs(plan):
                sides = [history.noise(place, metric, spec) for spec in (baseline, contender)]
                noises = [side for side in sides if side is not None]
                pairs = history.noise(place, metric, baseline, contender)
                if pairs is not None and pairs.sd > NO_SPREAD:
                    sd, df, noises = pairs.sd, float(pairs.df), [pairs]
                elif len(noises) == len(sides):
                    # Without blocks of both, as if a block had nothing in common: that only makes it smaller.
                    sd, df = summed_noise(noises)
                else:
                    continue
                match: Match = "same" if {noise.match for noise in noises} == {"same"} else "similar"
                names = (task.label, metric.key, baseline.name, contender.name)
                expected.append(Prospect(*place, *names, sd, df, match, challenge_title(plan, place[0])))
    return expected


def unknown_tasks(history: History, plan: Plan) -> tuple[str, ...]:
    """Tasks about which no earlier run says anything, but for those that tables never show."""
    predicted = {(prospect.schedule, prospect.task) for prospect in prospects(history, plan)} | history.hidden
    return tuple(
        f"{plan.schedules[place[0]].name}: {task_at(plan, place).label}"
        for place in places(plan)
        if place not in predicted
    )


def visible(found: Sequence[Prospect], forks: int, plan: Plan) -> Iterator[float]:
    """Yield the least difference of each, as a ratio - 1, that so many forks a side find with 80% power."""
    for prospect, rule in zip(found, _rules(found, plan), strict=True):
        yield math.expm1(least_effect(prospect.spread, rule, forks))


def interaction_power(found: Sequence[Prospect], forks: int, plan: Plan) -> list[float]:
    """Return the chance of each that its difference is found to change by `EFFECT` between two points.

    A change is the difference of two pairs, of which each has the spread of the comparison.
    """
    return [
        power(math.log1p(EFFECT), Spread(math.sqrt(2) * spread.sd, spread.df), rule, forks)
        for spread, rule in zip((prospect.spread for prospect in found), _rules(found, plan), strict=True)
    ]


def expected_forks(plan: Plan, block_s: float) -> int:
    """Return how many forks a side a plan is expected to take under its stop rule, at most the planned ones.

    `block_s` is the duration of one fork of every variant, seconds.
    """
    stop, most = plan.stop, plan.forks
    if stop is None:
        return most
    if stop.budget_s is not None:
        most = min(most, stop.blocks_in(block_s, plan.index_builds))
    return most


def summed_noise(sides: Sequence[Noise]) -> tuple[float, float]:
    """Return SD and degrees of freedom of a sum."""
    variances = [(side.sd**2, side.df) for side in sides]
    return math.sqrt(math.fsum(variance for variance, _ in variances)), _satterthwaite(variances)


def _satterthwaite(variances: Sequence[tuple[float, int]]) -> float:
    """Return the degrees of freedom of a sum of (estimated variance, its degrees of freedom)."""
    weight = math.fsum(variance**2 / df for variance, df in variances)
    total = math.fsum(variance for variance, _ in variances)
    return total**2 / weight if weight else float(min(df for _, df in variances))


def _rules(found: Sequence[Prospect], plan: Plan) -> Iterator[Rule]:
    """Yield the rule of each: the rows of a metric adjust each other's p, and none is found yet."""
    sizes = {
        key: sum(prospect.metric == key for prospect in found)
        for key in {prospect.metric for prospect in found}
    }
    looks = None if plan.stop is not None and plan.stop.decided else 1
    for prospect in found:
        margin = (plan.stop and plan.stop.margin) or metric_of(prospect.metric).margin
        weight = sizes[prospect.metric]
        yield Rule(math.log1p(margin), paired=True, looks=looks, weight=weight)
