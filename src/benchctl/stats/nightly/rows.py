"""What is kept of a night's run for years: one figure a fork, task and metric that forks are judged by."""

import math
from collections.abc import Iterator, Mapping, Sequence

from benchctl.results.figures import TaskSummary
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.nightly.folder import FigureRow
from benchctl.results.plan import Place, Plan
from benchctl.stats.disturbed import disturbances
from benchctl.stats.history import metrics_of
from benchctl.stats.metrics import Metric, challenge_title, places, task_at


def figure_rows(
    record: RunRecord, *, night: int, night_id: str, labels: Mapping[str, str]
) -> Iterator[FigureRow]:
    """The figures of every finished fork, in the order of variants, tasks, metrics and forks.

    What tables do not show, what a node cannot do and what has no value has no row: nights without a value
    are not there.

    Args:
        record: of the night's run; of a confirming run, or another night's, just as well.
        night: number of the night.
        night_id: id of the night.
        labels: name of a variant in the run -> its label in the suite; others are left out.
    """
    plan = record.plan
    names = task_names(plan)
    done = {spec.name: record.compared(spec.name) for spec in plan.variants}
    off = {(one.variant, one.block) for one in disturbances(done)}
    versions = {facts.variant: facts.version for facts in record.engines}
    for name, label in labels.items():
        for place, metric, fork, summary in _figures(plan, done.get(name, ())):
            value = metric.value(summary)
            if value is None or not math.isfinite(value) or value <= 0:
                continue
            yield FigureRow(
                night=night,
                night_id=night_id,
                run=record.id,
                started=fork.started,
                variant=label,
                version=versions.get(name, ""),
                challenge=names[place][0],
                task=names[place][1],
                metric=metric.key,
                unit=metric.counting(summary.unit).unit,
                higher_is_better=metric.higher_is_better,
                fork=fork.block,
                value=value,
                samples=summary.samples,
                disturbed=(name, fork.block) in off,
            )


def task_names(plan: Plan) -> dict[Place, tuple[str, str]]:
    """(title of the challenge, label of the task) of every place, no two alike.

    Where a challenge has several tasks of one label, they have their numbers behind it.
    """
    labels = [[task.label for task in challenge.schedule] for challenge in plan.schedules]
    return {
        (schedule, task): (challenge_title(plan, schedule), _numbered(labels[schedule], task))
        for schedule, task in places(plan)
    }


def _numbered(labels: Sequence[str], place: int) -> str:
    label = labels[place]
    if labels.count(label) == 1:
        return label
    return f"{label} ({labels[: place + 1].count(label)} of {labels.count(label)})"


def _figures(
    plan: Plan, forks: Sequence[ForkRecord]
) -> Iterator[tuple[Place, Metric, ForkRecord, TaskSummary]]:
    """What there can be a value of."""
    by_place = [
        {(summary.schedule, summary.task): summary for summary in fork.summaries if summary.reported}
        for fork in forks
    ]
    for place in places(plan):
        for metric in metrics_of(plan, task_at(plan, place)):
            for fork, summaries in zip(forks, by_place, strict=True):
                if place in summaries:
                    yield place, metric, fork, summaries[place]
