"""Does it matter what ran before? The same operation in two places of one fork, compared over forks."""

from collections.abc import Mapping, Sequence

import msgspec

from benchctl.results.model import ForkRecord
from benchctl.results.plan import Place, Plan
from benchctl.stats.compare import Comparison, Side, adjust, compare_sides
from benchctl.stats.metrics import Metric, collect, task_at, unit_of
from benchctl.track.model import Task

FRESH = "on a fresh node"
_MOST_NAMES = 4


class OrderEffect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An operation of one variant, where more had run before it against where least had."""

    operation: str  # the operation's name
    variant: str
    metric: str
    title: str
    unit: str
    baseline_place: Place
    contender_place: Place
    # `baseline_after`, `contender_after`: names of the tasks that the same node had run before, in order,
    # those of warm-up challenges included; empty on a fresh node.
    baseline_after: tuple[str, ...]
    contender_after: tuple[str, ...]
    # Paired over forks, since both values of a pair are of one fork; p-values are adjusted over the order
    # effects of the metric.
    comparison: Comparison
    unequal_requests: bool = False


def order_effects(
    metric: Metric,
    done: Mapping[str, Sequence[ForkRecord]],
    plan: Plan,
    reported: Sequence[Place],
    *,
    sequential: bool = False,
) -> list[OrderEffect]:
    """Compare operations that run in several of the reported places with the place where least ran before.

    Places are compared when they offer the same load after different tasks. The pairs are forks, which is no
    choice made by looking: the two values of a fork share its index copy, its block and its host.
    """
    found = []
    for group in _alike(plan, reported):
        baseline, *others = sorted(group, key=lambda place: (len(ran_before(plan, place)), place))
        for other in others:
            if ran_before(plan, other) != ran_before(plan, baseline):
                found += [
                    _effect(metric, forks, label, plan, (baseline, other), sequential=sequential)
                    for label, forks in done.items()
                ]
    adjusted = adjust([effect.comparison for effect in found])
    return [
        msgspec.structs.replace(effect, comparison=comparison)
        for effect, comparison in zip(found, adjusted, strict=True)
    ]


def ran_before(plan: Plan, place: Place) -> tuple[str, ...]:
    """Names of the tasks that the node had run before a place; what runs beside it is not before it."""
    schedule, task = place
    history = plan.history(schedule)
    if history == "polluted":
        return (history,)
    before = [task.label for challenge in plan.warmup_challenges for task in challenge.schedule]
    if plan.restart == "task" or history == "fresh":
        return tuple(before)
    if plan.restart == "never":
        before += [task.label for challenge in plan.schedules[:schedule] for task in challenge.schedule]
    steps = plan.schedules[schedule].steps
    own = next(step for step in steps if task in step)
    earlier = [number for step in steps[: steps.index(own)] for number in step]
    return tuple(before + [plan.schedules[schedule].schedule[number].label for number in earlier])


def describe_before(after: Sequence[str]) -> str:
    """Return what ran before, for readers: repetitions are counted, and of many only some are named."""
    if not after:
        return FRESH
    counts = {name: after.count(name) for name in after}
    words = [name if count == 1 else f"{name} x {count}" for name, count in counts.items()]
    listed = (
        words
        if len(words) <= _MOST_NAMES
        else [*words[: _MOST_NAMES - 1], f"{len(words) - _MOST_NAMES + 1} others"]
    )
    return "after " + ", ".join(listed)


def _alike(plan: Plan, reported: Sequence[Place]) -> list[list[Place]]:
    """Places of the same operation under the same load, where there are several; nothing else runs beside."""
    groups: dict[object, list[Place]] = {}
    points = {} if plan.swept is None else dict(enumerate(plan.swept.schedules))
    if plan.restart == "never" and plan.swept is not None and len(plan.swept.rounds()) > 1:
        # What ran before a point of a sweep differs from block to block.
        return []
    for place in reported:
        task = task_at(plan, place)
        # In random order, what ran before differs from block to block.
        if task.group is None and plan.schedules[place[0]].order == "written":
            at = tuple(points[place[0]].at.items()) if points else ()
            groups.setdefault((task.operation, task.clients, task.rate_per_s, at), []).append(place)
    return [group for group in groups.values() if len(group) > 1]


def _effect(
    metric: Metric,
    forks: Sequence[ForkRecord],
    label: str,
    plan: Plan,
    both: tuple[Place, Place],
    *,
    sequential: bool,
) -> OrderEffect:
    baseline, contender = both
    tasks = [task_at(plan, place) for place in (baseline, contender)]
    sides = [
        collect({label: forks}, place, task)[label]
        for place, task in zip((baseline, contender), tasks, strict=True)
    ]
    afters = [ran_before(plan, place) for place in (baseline, contender)]
    first, second = (
        Side.of(metric, describe_before(after), forks, side)
        for after, side in zip(afters, sides, strict=True)
    )
    judged = not (metric.key == "throughput" and tasks[0].throttled)
    comparison = compare_sides(
        metric, first, second, paired=True, judged=judged, replicate="fork", sequential=sequential
    )
    return OrderEffect(
        operation=tasks[0].operation,
        variant=label,
        metric=metric.key,
        title=metric.title,
        unit=metric.counting(unit_of(sides)).unit,
        baseline_place=baseline,
        contender_place=contender,
        baseline_after=afters[0],
        contender_after=afters[1],
        comparison=comparison,
        unequal_requests=_requests(tasks[0]) != _requests(tasks[1]),
    )


def _requests(task: Task) -> tuple[object, ...]:
    return (task.warmup_iterations, task.iterations, task.warmup_time_period, task.time_period)
