"""What collecting evidence costs: forks that carry it over plain ones, task by task."""

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import EvidenceKind, Place, Plan
from benchctl.stats.arrays import Floats
from benchctl.stats.caveat import Caveat
from benchctl.stats.estimate import spread
from benchctl.stats.values import collect, places, task_at


class TaskCost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What evidence cost in one task of one variant.

    Attributes:
        schedule: position of the challenge in a fork.
        task: position of the task in the challenge.
        label: the task's name.
        variant: whose forks.
        plain, evidence: forks of either kind that have a value.
        percent: mean service time of the forks with evidence over that of the plain ones - 1, in percent, by
            geometric means over forks.
        low_percent, high_percent: its 95 % interval, from Welch's t on logarithms; None with one fork of
            either kind.
    """

    schedule: int
    task: int
    label: str
    variant: str
    plain: int
    evidence: int
    percent: float
    low_percent: float | None = None
    high_percent: float | None = None


class EvidenceCost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What evidence cost in a run that collected it in forks of its own.

    Attributes:
        kinds: what was collected.
        forks: of every variant that were planned for it.
        tasks: by challenge, task and variant; those without a value on both sides are missing.
    """

    kinds: tuple[EvidenceKind, ...]
    forks: int
    tasks: tuple[TaskCost, ...]


def evidence_cost(record: RunRecord) -> EvidenceCost | None:
    """Hold a run's forks with evidence against its plain ones.

    Those with evidence come behind all others, so that a host that got slower meanwhile is in the cost.

    Returns:
        None when no extra forks were planned for evidence, or the run searched for a red-line.
    """
    plan, evidence = record.plan, record.plan.evidence
    if evidence is None or not evidence.extra_forks or plan.redline is not None:
        return None
    found = []
    for place in places(plan):
        for spec in plan.variants:
            done = record.done(spec.name)
            usual = [fork for fork in done if not plan.is_extra(fork.block)]
            extra = [fork for fork in done if plan.is_extra(fork.block)]
            found.append(_cost(plan, place, spec.name, usual, extra))
    tasks = tuple(one for one in found if one is not None)
    return EvidenceCost(evidence.kinds, evidence.extra_forks, tasks)


def cost_beside(carrying: RunRecord, plain: RunRecord) -> tuple[TaskCost, ...]:
    """Hold a run whose forks all carry evidence against another one that does the same without any.

    Args:
        carrying: the run with evidence.
        plain: the other, of the same experiment, so that heap and documents are the same; only tasks count
            before which both ran the same, on variants that are the same.

    Returns:
        By task and variant; those without a value on both sides are missing.
    """
    mine, other = carrying.plan, plain.plan
    common = [
        spec.name
        for spec in mine.variants
        if spec in other.variants and mine.warmups_of(spec.name) == other.warmups_of(spec.name)
    ]
    found = [
        _cost(mine, place, name, plain.compared(name), carrying.compared(name))
        for place in places(mine)
        if _same_so_far(mine, other, place[0])
        for name in common
    ]
    return tuple(one for one in found if one is not None)


def _same_so_far(one: Plan, other: Plan, schedule: int) -> bool:
    """Whether two plans do the same on a node up to the end of a challenge."""
    # Within the first challenge, restarts between challenges do not matter.
    restarts = {one.restart, other.restart}
    alike = one.schedules[: schedule + 1] == other.schedules[: schedule + 1]
    return (
        alike
        and one.track_digest == other.track_digest
        and (len(restarts) == 1 or (schedule == 0 and "task" not in restarts))
    )


def evidence_everywhere(kinds: Sequence[EvidenceKind]) -> Caveat:
    """All that is compared carried evidence: alike on both sides, but not like what is usual."""
    return Caveat(
        "evidence",
        f"every fork carried evidence ({', '.join(kinds)}): what it cost is not known; run with "
        "--evidence-forks 1 to see",
    )


def _cost(
    plan: Plan, place: Place, variant: str, without: Sequence[ForkRecord], with_it: Sequence[ForkRecord]
) -> TaskCost | None:
    plain, carrying = _values(without, plan, place), _values(with_it, plan, place)
    if not plain.size or not carrying.size:
        return None
    tested = spread(plain, carrying, paired=False)
    low, high = (None, None) if tested is None else map(_percent, tested.interval95)
    return TaskCost(
        schedule=place[0],
        task=place[1],
        label=task_at(plan, place).label,
        variant=variant,
        plain=plain.size,
        evidence=carrying.size,
        percent=_percent(float(carrying.mean() - plain.mean())),
        low_percent=low,
        high_percent=high,
    )


def _values(forks: Sequence[ForkRecord], plan: Plan, place: Place) -> Floats:
    """Logarithms of mean service times of a task that tables show, one a fork, shape (n,)."""
    found = collect({"": forks}, place, task_at(plan, place))[""]
    return np.array([math.log(one.mean_ns) for _, one in found if one.reported and one.mean_ns])


def _percent(log_ratio: float) -> float:
    return 100 * math.expm1(log_ratio)
