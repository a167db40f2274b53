"""One comparison of an experiment: its test, and the doubts that a run's own analysis would have."""

from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Self

import msgspec

from benchctl.results.experiment import ComparisonSpec, Published, TaskRef
from benchctl.results.figures import TaskSummary
from benchctl.results.model import AnswerFinding, ForkRecord, RunRecord
from benchctl.stats import caveat
from benchctl.stats.analysis import Figures
from benchctl.stats.caveat import Caveat
from benchctl.stats.compare import Comparison, Series
from benchctl.stats.doubts import (
    WITHHOLDING,
    check_load,
    extreme_doubts,
    floor_doubts,
    row_doubts,
    unsupported_reason,
)
from benchctl.stats.experiment.model import ExperimentRow
from benchctl.stats.metrics import ForkSummaries, Metric, collect, fork_values, metric_of, task_at, unit_of
from benchctl.stats.multiplicity import looks_at
from benchctl.stats.scale import ScaleNote, operation_scale
from benchctl.stats.sides import Side, compare_sides
from benchctl.stats.steady import Steadiness, steadiness
from benchctl.track.model import Task

# One side of a comparison: a task of a variant, in all finished forks of its measurement.


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
        place = reference.place_in(run.plan)
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


# One comparison of an experiment.


def compare_row(spec: ComparisonSpec, runs: Mapping[str, RunRecord]) -> ExperimentRow:
    """Compare, p-values not yet adjusted.

    All measurements take turns block after block: the two sides of a block are a pair, unless the runs were
    declared to be unpaired. Two tasks of the same forks are pairs in any case.

    Args:
        spec: what is compared.
        runs: measurement -> its run.

    Raises:
        UsageError: a measurement has no such task.
        BenchctlError: a fork's tasks are not those of its plan.
    """
    sides = (TaskSide.of(spec.baseline, runs), TaskSide.of(spec.contender, runs))
    metric = metric_of(spec.metric).counting(unit_of(side.found for side in sides))
    doubts = list(dict.fromkeys(_doubts(metric, sides, runs)))
    measured = [runs[one.measurement] for one in (spec.baseline, spec.contender) if one.measurement in runs]
    blocked = bool(measured) and all(run.plan.paired for run in measured)
    comparison = compare_sides(
        metric,
        *(side.side(metric) for side in sides),
        paired=blocked or same_forks(spec.baseline, spec.contender),
        judged=_judged(metric, sides, doubts),
        by_build=False,
        looks=looks_at(measured),
    )
    return ExperimentRow(
        name=spec.name,
        label=spec.label,
        baseline=spec.baseline,
        contender=spec.contender,
        metric=metric.key,
        unit=metric.unit,
        higher_is_better=metric.higher_is_better,
        figures=(sides[0].figures(metric), sides[1].figures(metric)),
        comparison=_with_extremes(comparison, metric, sides),
        published=spec.published,
        published_percent=published_change(spec.published),
        missing="; ".join(dict.fromkeys(side.missing for side in sides if side.missing)),
        scale=_furthest(sides, runs),
        caveats=tuple(doubts),
        blocked=blocked,
    )


def same_forks(baseline: TaskRef, contender: TaskRef) -> bool:
    """Whether both values of a pair come from the same node starts."""
    return (baseline.measurement, baseline.variant) == (contender.measurement, contender.variant)


def published_change(published: Published | None) -> float | None:
    """The change in percent that a source printed, or that follows from its figures."""
    if published is None:
        return None
    if published.change_percent is not None:
        return published.change_percent
    return 100 * (published.contender / published.baseline - 1)


def finished(row: ExperimentRow, comparison: Comparison) -> ExperimentRow:
    """The row with its comparison's verdict, and with the comparison's doubts among its own."""
    caveats = tuple(dict.fromkeys((*row.caveats, *comparison.caveats)))
    return msgspec.structs.replace(row, comparison=comparison, caveats=caveats)


def _judged(metric: Metric, sides: tuple[TaskSide, TaskSide], doubts: list[Caveat]) -> bool:
    """Whether a verdict would be about the engines, and not about the load."""
    if any(doubt.code in WITHHOLDING for doubt in doubts):
        return False
    checks = [check_load(side.task, side.summaries) for side in sides if side.task is not None]
    return not any(check.withholds(metric.usual_key) for check in checks)


def _with_extremes(comparison: Comparison, metric: Metric, sides: tuple[TaskSide, TaskSide]) -> Comparison:
    """A quantile that is a fork's slowest request gets no verdict."""
    doubts = [doubt for side in sides for doubt in extreme_doubts(metric, {side.label: side.found}).values()]
    return msgspec.structs.replace(comparison, caveats=(*comparison.caveats, *dict.fromkeys(doubts)))


def _doubts(
    metric: Metric, sides: tuple[TaskSide, TaskSide], runs: Mapping[str, RunRecord]
) -> Iterator[Caveat]:
    """Those of each side on its own, and answers that differ where the sides are different variants."""
    others = (sides[1], sides[0])
    for side, other in zip(sides, others, strict=True):
        run = runs.get(side.reference.measurement)
        if run is None or side.task is None or not side.found:
            continue
        found = {side.label: side.found}
        yield from row_doubts(metric, side.task, found, None)
        yield from floor_doubts(found, run.calibration)
        yield from _answer_doubts(side, other.reference.variant, run)


def _answer_doubts(side: TaskSide, other: str, run: RunRecord) -> Iterator[Caveat]:
    own = side.reference.variant
    findings: tuple[AnswerFinding, ...] = run.answers.findings if run.answers else ()
    for finding in findings:
        if side.task is None or finding.operation != side.task.operation:
            continue
        if finding.kind == "wrong" and finding.variant == own:
            yield caveat.answers_wrong(side.label, finding.detail)
        if finding.kind == "different" and {finding.variant, finding.baseline} == {own, other}:
            yield caveat.answers_differ(finding.variant, finding.baseline, finding.detail)


def _furthest(sides: tuple[TaskSide, TaskSide], runs: Mapping[str, RunRecord]) -> ScaleNote | None:
    """The scale of the side that visited fewer documents for what the blog did."""
    notes = [side.scale(runs.get(side.reference.measurement)) for side in sides]
    return max((note for note in notes if note is not None), key=attrgetter("ratio"), default=None)
