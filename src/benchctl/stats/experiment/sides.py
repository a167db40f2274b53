"""One side of a comparison: a task of a variant, in all finished forks of its measurement."""

from collections.abc import Mapping
from typing import Self

import msgspec

from benchctl.results.experiment.model import TaskRef
from benchctl.results.figures import TaskSummary
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.stats.analysis import Figures
from benchctl.stats.doubts import unsupported_reason
from benchctl.stats.experiment.places import place_of
from benchctl.stats.metrics import Metric
from benchctl.stats.scale import ScaleNote, operation_scale
from benchctl.stats.selfcheck import check_load
from benchctl.stats.series import Series
from benchctl.stats.sides import Side
from benchctl.stats.steady import Steadiness, steadiness
from benchctl.stats.values import ForkSummaries, collect, fork_values, task_at
from benchctl.track.model import Task


class TaskSide(msgspec.Struct, frozen=True):
    """What a side of a comparison rests on.

    Attributes:
        reference: the task.
        label: `MEASUREMENT/VARIANT`, which notes call it by.
        task: as it was planned; None where its measurement has no run yet.
        challenge: its challenge.
        forks: finished ones that count, in block order.
        found: its summaries in them.
    """

    reference: TaskRef
    label: str
    task: Task | None
    challenge: str
    forks: tuple[ForkRecord, ...]
    found: ForkSummaries

    @classmethod
    def of(cls, reference: TaskRef, runs: Mapping[str, RunRecord]) -> Self:
        """Find it.

        Raises:
            UsageError: its measurement has no such task.
            BenchctlError: a fork's tasks are not those of the plan.
        """
        label = f"{reference.measurement}/{reference.variant}"
        run = runs.get(reference.measurement)
        if run is None:
            return cls(reference, label, None, reference.challenge, (), [])
        place = place_of(run.plan, reference)
        task = task_at(run.plan, place)
        forks = run.compared(reference.variant)
        found = collect({label: forks}, place, task)[label]
        return cls(reference, label, task, run.plan.schedules[place[0]].name, forks, found)

    @property
    def summaries(self) -> list[TaskSummary]:
        """One a fork."""
        return [summary for _, summary in self.found]

    @property
    def missing(self) -> str:
        """Why there is nothing of it; empty when there is."""
        if self.task is None:
            return f"{self.reference.measurement} has not been measured"
        return "" if self.forks else f"no fork of {self.label} has finished"

    def side(self, metric: Metric) -> Side:
        """For a comparison."""
        return Side.of(metric, self.label, self.forks, self.found)

    def figures(self, metric: Metric) -> Figures:
        """For tables."""
        alone = Series.of(fork_values(metric, self.found))
        return Figures(
            variant=self.label,
            blocks=tuple(block for block, _ in self.found),
            values=tuple(metric.value(summary) for summary in self.summaries),
            value=alone.value,
            cv_percent=alone.cv_percent,
            samples=min((summary.samples for summary in self.summaries), default=0),
            steady=steadiness(self.summaries) if self.found else Steadiness("unknown"),
            unsupported=unsupported_reason(self.found),
            load=() if self.task is None else check_load(self.task, self.summaries).states,
        )

    def scale(self, run: RunRecord | None) -> ScaleNote | None:
        """How far it is from the blog, by exact counts where there are any."""
        measured = [summary for summary in self.summaries if summary.samples > 0]
        if run is None or self.task is None or not measured:
            return None
        operation = self.task.operation
        exact = list(run.answers.exact_hits.get(operation, {}).values()) if run.answers else []
        known = [*exact, *(one.hits for one in measured if one.hits_exact and one.hits is not None)]
        return operation_scale(
            operation,
            self.challenge,
            hits=known[0] if known else None,
            requests=max(one.samples + one.warmup_samples for one in measured),
            documents=run.plan.corpus.documents,
        )
