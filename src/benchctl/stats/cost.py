"""What a verdict costs: the forks that it takes, times how long they are."""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

import msgspec

from benchctl.results.model import ForkRecord
from benchctl.results.plan import Place
from benchctl.stats.compare import Comparison, as_percent, judge
from benchctl.stats.inference import Contrast, cv_of, forks_needed, further_forks
from benchctl.stats.metrics import MetricKey

EFFECT = 0.10
"""The difference that minutes to a verdict are told for, as a ratio - 1."""
_OPEN = frozenset({"inconclusive", "different"})
_NOTHING_PERCENT = -100.0  # a ratio of 0
_S_PER_MINUTE = 60


class Compared(msgspec.Struct, frozen=True):
    """A comparison, and of which task."""

    place: Place
    label: str
    comparison: Comparison


class VerdictCost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long a comparison would have to run to find a difference, at the spread that its forks had."""

    schedule: int
    task: int
    label: str
    metric: MetricKey
    baseline: str
    contender: str
    effect_percent: float  # the difference, found with 80 % power
    cv_baseline_percent: float | None
    cv_contender_percent: float | None
    forks: int  # a side; pairs when paired
    pair_s: float  # median seconds of a fork of the one and of the other together
    minutes: float  # forks x pair_s; the preparation is not in it
    paired: bool
    spread_percent: float  # CV that the forks follow from: of forks, or of ratios within pairs when paired
    open: bool  # whether it has none
    # `verdict_forks`, `verdict_minutes`: what an open row of this run lacks until its own verdict, if
    # effect and spread stay as they are; None where it has one, or it would take too many. Minutes are
    # those of whole blocks, with a fork of every variant.
    verdict_forks: int | None = None
    verdict_minutes: float | None = None


def verdict_costs(
    compared: Iterable[Compared], done: Mapping[str, Sequence[ForkRecord]]
) -> tuple[VerdictCost, ...]:
    """Minutes to a verdict on a difference of 10 %, for every comparison that gets one.

    Left out are figures that are never judged, those of one fork or without any spread, forks whose
    duration is not known, and several index builds: those need more builds, which do not cost what a fork
    does.
    """
    typical = {
        label: median(fork.wall_s for fork in forks) if forks else 0.0 for label, forks in done.items()
    }
    block_s = sum(typical.values())
    costs = []
    for each in compared:
        one = each.comparison
        pair_s = typical.get(one.baseline, 0.0) + typical.get(one.contender, 0.0)
        if not one.judged or not pair_s or one.replicate != "fork":
            continue
        sd = fork_sd(one)
        if sd is None:
            continue
        forks = forks_needed(math.log1p(EFFECT), sd, paired=one.paired)
        further = forks_to_verdict(one)
        costs.append(
            VerdictCost(
                schedule=each.place[0],
                task=each.place[1],
                label=each.label,
                metric=one.metric,
                baseline=one.baseline,
                contender=one.contender,
                effect_percent=100 * EFFECT,
                cv_baseline_percent=one.cv_baseline_percent,
                cv_contender_percent=one.cv_contender_percent,
                forks=forks,
                pair_s=pair_s,
                minutes=forks * pair_s / _S_PER_MINUTE,
                paired=one.paired,
                spread_percent=100 * cv_of(sd),
                open=one.verdict in _OPEN,
                verdict_forks=further,
                verdict_minutes=None if further is None else further * block_s / _S_PER_MINUTE,
            )
        )
    return tuple(costs)


def forks_to_verdict(comparison: Comparison) -> int | None:
    """Return how many more forks a side an open comparison lacks for a verdict, if effect and spread stay.

    Other tasks are assumed to weigh on p as they do now. At least 1; None if it has a verdict, or
    `MOST_BLOCKS` would not bring one.
    """
    sd, effect = fork_sd(comparison), comparison.effect_percent
    if comparison.verdict not in _OPEN or sd is None or effect is None or effect <= _NOTHING_PERCENT:
        return None
    done = min(comparison.replicates)
    sides = 1 if comparison.paired else 2
    now = Contrast(
        math.log1p(effect / 100),
        sd * math.sqrt(sides / done),
        sides * (done - 1),
        done / sides,
        comparison.sequential,
    )
    weight = max(1.0, (comparison.p_adjusted or 1) / (comparison.p or 1))

    def decided(further: int) -> bool:
        later = now.foreseen(done, further)
        low, high = later.interval(0.90)
        foreseen = msgspec.structs.replace(
            comparison,
            replicate="fork",
            n_baseline=done + further,
            n_contender=done + further,
            low90_percent=as_percent(low),
            high90_percent=as_percent(high),
            p=later.p,
        )
        return judge(foreseen, weight * later.p).verdict not in _OPEN

    return further_forks(done, decided)


def fork_sd(comparison: Comparison) -> float | None:
    """Return the SD of logarithms behind the error of an effect: of forks, or of index builds if these count.

    That of a side, if both had the same; of the differences within pairs when paired; None if there is
    none.
    """
    if comparison.error is None:
        return None
    if comparison.paired:
        return comparison.error * math.sqrt(min(comparison.replicates))
    return comparison.error / math.sqrt(sum(1 / units for units in comparison.replicates))
