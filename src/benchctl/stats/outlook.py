"""What a plan will be able to see, and what it takes to see more: power calculations from earlier forks."""

import math
from collections.abc import Sequence
from typing import Final

import msgspec
from scipy.special import chdtri

from benchctl.results.plan import Plan, StopSpec
from benchctl.stats.history import History, Match, Noise, metrics_of
from benchctl.stats.inference import cv_of, forks_for_width, forks_needed, mde, mde_paired, sd_of
from benchctl.stats.metrics import (
    Metric,
    MetricKey,
    beside,
    challenge_title,
    metric_of,
    metrics_in,
    places,
    task_at,
)

SCHEMA_VERSION: Final = 1
CONFIDENCE = 0.8
"""Of the upper bound of a fork SD, one-sided: as sure as the power that the forks are planned for."""
ASSUMED_CVS_PERCENT = (2.0, 5.0, 10.0, 15.0)


class Prospect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How noisy one comparison of a plan is going to be."""

    schedule: int
    task: int
    label: str
    metric: MetricKey
    baseline: str
    contender: str
    sd: float  # fork SD of natural logarithms: that of a side, if both had the same
    df: float
    match: Match
    challenge: str = ""  # its name, numbered where it runs more than once

    @property
    def upper_sd(self) -> float:
        """The SD is not larger than this, with a confidence of 80 % (chi-square)."""
        return self.sd * math.sqrt(self.df / float(chdtri(self.df, CONFIDENCE)))


class Need(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What it takes to find an effect."""

    cv_percent: float
    forks: int  # a side; pairs when paired
    seconds: float | None  # of all forks of all variants; None when it is not known how long one takes


class Requirement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A comparison of a plan and what it takes, by the best estimate and by a cautious one."""

    prospect: Prospect
    likely: Need  # from the SD as estimated
    cautious: Need  # from the upper 80 % bound of the SD


class ForkPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Forks and time for a difference of a given size."""

    schema_version: int
    effect_percent: float
    power_percent: float
    paired: bool
    requirements: tuple[Requirement, ...]  # by challenge, task and metric; empty without earlier runs
    unknown: tuple[str, ...]  # tasks without earlier forks, as `challenge: task`
    earlier_forks: int
    runs: tuple[str, ...]  # where they come from, newest first
    block_s: float | None  # seconds of one fork of every variant; None when not known
    assumed: tuple[Need, ...]
    index_builds: int = 1  # of every prepared index; what several of them differ by is in none of the figures
    command: str = ""  # the command line that measures so many forks; a pilot of five when nothing is known
    # Of the node's CPU per operation, which is compared beside the metrics by default; empty if it is not.
    beside: tuple[Requirement, ...] = ()

    @property
    def hardest(self) -> Requirement | None:
        """The comparison that takes most forks."""
        return max(self.requirements, key=lambda one: (one.likely.forks, one.cautious.forks), default=None)


def prospects(history: History, plan: Plan, metrics: Sequence[Metric] | None = None) -> list[Prospect]:
    """Return every comparison that both sides have earlier forks for, by `metrics` or those of the plan."""
    found = []
    known = {spec.name: spec for spec in plan.variants}
    pairs = [(known[group[0]], known[name]) for group in plan.compared_together(known) for name in group[1:]]
    for place in places(plan):
        task = task_at(plan, place)
        for metric in metrics_of(plan, task) if metrics is None else metrics:
            for baseline, spec in pairs:
                first = history.noise(place, metric, baseline)
                second = history.noise(place, metric, spec)
                if first is None or second is None:
                    continue
                sd, df = _together(first, second)
                match: Match = "same" if first.match == second.match == "same" else "similar"
                names = (task.label, metric.key, baseline.name, spec.name)
                found.append(Prospect(*place, *names, sd, df, match, challenge_title(plan, place[0])))
    return found


def unknown_tasks(history: History, plan: Plan) -> tuple[str, ...]:
    """Tasks about which no earlier run says anything, but for those that tables never show."""
    known = {(one.schedule, one.task) for one in prospects(history, plan)} | history.hidden
    return tuple(
        f"{plan.schedules[place[0]].name}: {task_at(plan, place).label}"
        for place in places(plan)
        if place not in known
    )


def visible(prospect: Prospect, forks: int, *, paired: bool) -> float:
    """Return the least difference, as a ratio - 1, that so many forks a side find with 80 % power."""
    if paired:
        return math.expm1(mde_paired(forks, _of_differences(prospect.sd)))
    return math.expm1(mde(forks, forks, prospect.sd))


def expected_forks(
    found: Sequence[Prospect], most: int, stop: StopSpec | None, block_s: float | None, *, paired: bool
) -> int:
    """Return how many forks a side a plan is expected to take under its stop rule, at most the planned ones.

    `block_s` is the duration of one fork of every variant, seconds, where known.
    """
    if stop is None:
        return most
    if stop.precision is not None and found:
        widest = max(one.sd for one in found)
        sd = _of_differences(widest) if paired else widest
        wanted = forks_for_width(math.log1p(stop.precision), sd, paired=paired, least=stop.least_forks)
        most = min(most, wanted)
    if stop.budget_s is not None and block_s:
        most = min(most, max(1, int(stop.budget_s // block_s)))
    return most


def plan_forks(history: History, plan: Plan, effect: float) -> ForkPlan:
    """Turn the spread of earlier forks into forks a side and a duration.

    `effect` is the difference to be found, as a ratio - 1.

    Raises:
        ValueError: If the effect is not positive.
    """
    block_s = history.block_s(plan)

    def need(sd: float, *, additive: bool = False) -> Need:
        per_side = _of_differences(sd) if plan.paired else sd
        forks = forks_needed(math.log1p(effect), per_side, paired=plan.paired)
        return Need(
            100 * (sd if additive else cv_of(sd)), forks, None if block_s is None else forks * block_s
        )

    def required(found: Sequence[Prospect]) -> tuple[Requirement, ...]:
        return tuple(
            Requirement(one, need(one.sd, additive=additive), need(one.upper_sd, additive=additive))
            for one in found
            for additive in (metric_of(one.metric).figure.additive,)
        )

    return ForkPlan(
        schema_version=SCHEMA_VERSION,
        effect_percent=100 * effect,
        power_percent=80.0,
        paired=plan.paired,
        requirements=required(prospects(history, plan)),
        beside=required(prospects(history, plan, beside(plan, metrics_in(plan)))),
        unknown=unknown_tasks(history, plan),
        earlier_forks=history.forks,
        runs=history.runs,
        block_s=block_s,
        assumed=tuple(need(sd_of(percent / 100)) for percent in ASSUMED_CVS_PERCENT),
        index_builds=plan.index_builds,
    )


def _together(first: Noise, second: Noise) -> tuple[float, float]:
    """(SD, degrees of freedom) of a side whose variance is the mean of the two."""
    squares = [one.sd**2 / 2 for one in (first, second)]
    weights = [square**2 / one.df for square, one in zip(squares, (first, second), strict=True)]
    if not sum(weights):
        return math.sqrt(sum(squares)), float(min(first.df, second.df))
    return math.sqrt(sum(squares)), sum(squares) ** 2 / sum(weights)


def _of_differences(sd: float) -> float:
    """Within pairs, if a block has nothing in common: what blocks share only makes it smaller."""
    return sd * math.sqrt(2)
