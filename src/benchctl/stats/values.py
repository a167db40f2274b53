"""Which number each fork contributes: summaries of one task by variant, and their values in one metric."""

import math
from collections.abc import Iterable, Mapping, Sequence

from benchctl.errors import UsageError
from benchctl.results.figures import TaskSummary
from benchctl.results.model import ForkRecord
from benchctl.results.plan import Place, Plan
from benchctl.stats.metrics import Metric
from benchctl.track.model import Task

ForkSummaries = list[tuple[int, TaskSummary]]
"""(block, summary) of one task in every finished fork of a variant."""


def places(plan: Plan) -> list[Place]:
    """Every task of the plan, in the order in which they ran."""
    return [
        (schedule, task)
        for schedule, challenge in enumerate(plan.schedules)
        for task in range(len(challenge.schedule))
    ]


def challenge_title(plan: Plan, schedule: int) -> str:
    """A challenge's name; of one that runs more than once, with its number."""
    names = [challenge.name for challenge in plan.schedules]
    name = names[schedule]
    if names.count(name) == 1:
        return name
    return f"{name} ({names[: schedule + 1].count(name)} of {names.count(name)})"


def task_at(plan: Plan, place: Place) -> Task:
    """The task at a place."""
    return plan.schedules[place[0]].schedule[place[1]]


def collect(done: Mapping[str, Sequence[ForkRecord]], place: Place, task: Task) -> dict[str, ForkSummaries]:
    """Find one task's summaries.

    Args:
        done: label -> finished forks.
        place: where the task is.
        task: what should be there.

    Raises:
        UsageError: another task was there.
    """
    return {
        label: [(fork.block, _summary(fork, label, place, task)) for fork in group]
        for label, group in done.items()
    }


def open_loop(task: Task, found: Mapping[str, ForkSummaries]) -> bool:
    """Whether requests had a due time; of imported results, only their latency tells."""
    return task.throttled or any(one.latency is not None for forks in found.values() for _, one in forks)


def unit_of(found: Iterable[ForkSummaries]) -> str:
    """What the throughput of a task counts, from the first fork of any side."""
    return next((summary.unit for forks in found for _, summary in forks), "queries")


def fork_values(metric: Metric, found: ForkSummaries) -> list[float]:
    """One value a fork, in the metric's unit; NaN where the fork has none."""
    values = [metric.value(summary) for _, summary in found]
    return [math.nan if value is None else value for value in values]


def block_values(
    metric: Metric, baseline: ForkSummaries, contender: ForkSummaries
) -> tuple[list[float], list[float]]:
    """Values of the blocks that both sides finished, side by side in block order."""
    left = dict(zip((block for block, _ in baseline), fork_values(metric, baseline), strict=True))
    right = dict(zip((block for block, _ in contender), fork_values(metric, contender), strict=True))
    common = sorted(left.keys() & right.keys())
    return [left[block] for block in common], [right[block] for block in common]


def _summary(fork: ForkRecord, label: str, place: Place, task: Task) -> TaskSummary:
    for summary in fork.summaries:
        if (summary.schedule, summary.task) == place:
            if summary.label != task.label:
                raise UsageError(
                    f"fork {fork.block} of '{label}' ran '{summary.label}' where the plan has '{task.label}'",
                    hint="compare runs of the same challenges",
                )
            return summary
    return TaskSummary(place[0], place[1], task.label, task.operation)
