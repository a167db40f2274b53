"""Comparisons of an experiment: two sides, of one run or of two, with their test and doubts."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Self

import msgspec
import numpy as np

from benchctl.experiment.record import ComparisonSpec, Side, TaskRef, Term, is_derived, side_text
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import Place, Plan
from benchctl.stats import caveat
from benchctl.stats.analyse import doubting, settled_tasks, side_figures, task_doubts
from benchctl.stats.analysis import Figures, Steadiness
from benchctl.stats.caveat import WITHHOLDING, Caveat, Replicate
from benchctl.stats.compare import Comparison, compare_sides, several_builds
from benchctl.stats.compare import Side as Values
from benchctl.stats.doubts import unfit_values, unit_doubts
from benchctl.stats.driver import LoadCheck, check_load, compare_pauses
from benchctl.stats.inference import looks_at
from benchctl.stats.metrics import (
    RECALL,
    ForkSummaries,
    Metric,
    builds_as_forks,
    collect,
    fork_values,
    metric_of,
    pairs_of_builds,
    shared_builds,
    task_at,
    unit_of,
)
from benchctl.sweep.curve import value_at
from benchctl.track.model import Task

Runs = Mapping[str, RunRecord]
"""Measurement -> its run."""


class ExperimentRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A comparison."""

    asked: ComparisonSpec
    unit: str
    higher_is_better: bool
    # Of the baseline and of the contender; called `MEASUREMENT/VARIANT`, as in all notes, or by all tasks
    # that a derived value is made of.
    figures: tuple[Figures, Figures]
    # The contender against the baseline; p-values adjusted within its table and metric.
    comparison: Comparison
    missing: str = ""  # why there is nothing to compare; empty when there is
    caveats: tuple[Caveat, ...] = ()


class _TaskSide(msgspec.Struct, frozen=True):
    """A task of a variant, or the builds of its index, in all finished forks of its measurement."""

    ref: TaskRef
    task: Task | None = None  # as it was planned; None if its measurement has no run yet
    plan: Plan | None = None  # of the measurement's run, or of its index builds
    place: Place = (0, 0)
    forks: tuple[ForkRecord, ...] = ()  # finished ones that count, in block order
    found: ForkSummaries = []
    settled: Steadiness = Steadiness("unknown")

    @classmethod
    def of(cls, ref: TaskRef, runs: Runs) -> Self:
        """Find it.

        Raises:
            UsageError: If its measurement has no such task.
            BenchctlError: If a fork's tasks are not those of the plan.
        """
        run, settled = runs.get(ref.measurement), Steadiness("unknown")
        if run is None:
            return cls(ref)
        if ref.task:
            plan, forks = run.plan, run.compared(ref.variant)
            place = ref.place_in(plan)
            done = {spec.name: run.compared(spec.name) for spec in plan.variants}
            settled = settled_tasks(done, plan).get((ref.variant, place), settled)
        else:
            plan, builds = builds_as_forks(run.plan, {ref.variant: run.builds_of(ref.variant)})
            forks, place = tuple(builds[ref.variant]), (len(run.plan.schedules), 0)
        task = task_at(plan, place)
        found = collect({ref.variant: forks}, place, task)[ref.variant]
        return cls(ref, task, plan, place, forks, found, settled)

    @property
    def label(self) -> str:
        """Name in notes."""
        return f"{self.ref.measurement}/{self.ref.variant}"

    @property
    def missing(self) -> str:
        if self.task is None:
            return f"{self.ref.measurement} has not been measured"
        what = "fork" if self.ref.task else "index build"
        return "" if self.forks else f"no {what} of {self.label} has finished"

    @property
    def load(self) -> LoadCheck | None:
        return None if self.task is None else check_load(self.task, [summary for _, summary in self.found])

    def doubts(self, metric: Metric) -> tuple[Caveat, ...]:
        """Return those that a run's own analysis would have."""
        if self.plan is None or not self.found:
            return ()
        found, done = {self.label: self.found}, {self.label: self.forks}
        return task_doubts(metric, self.plan, self.place, found, done, {self.label: self.settled})


class _Term(msgspec.Struct, frozen=True):
    """A task, or the points of a sweep that its values at a recall lie between."""

    term: Term
    tasks: tuple[_TaskSide, ...]
    lacking: tuple[Caveat, ...] = ()  # why forks have no value

    @classmethod
    def of(cls, term: Term, runs: Runs) -> Self:
        """Find its tasks; errors as of `_TaskSide.of`."""
        ref, recall, run = term.ref, term.ref.recall, runs.get(term.ref.measurement)
        points = tuple(_TaskSide.of(one, runs) for one in ([ref] if run is None else ref.points_in(run.plan)))
        if run is None or recall is None:
            return cls(term, points)
        places = [value_at(recall, own, own)[1] for own in _by_fork(RECALL, points)]
        text = (
            f"{ref}: in {places.count(())} of {len(places)} forks no two points enclose this recall: no "
            "verdict"
        )
        between = tuple(points[place] for place in sorted(set().union(*places)))
        lacking = (Caveat("missing-values", text),) if () in places else ()
        return cls(term, between or points, lacking)

    def values(self, metric: Metric, label: str) -> Values:
        values = Values.of(metric, label, self.tasks[0].forks, self.tasks[0].found)
        recall = self.term.ref.recall
        if recall is None:
            return values
        forks = zip(_by_fork(RECALL, self.tasks), _by_fork(metric, self.tasks), strict=True)
        return msgspec.structs.replace(values, values=tuple(value_at(recall, *fork)[0] for fork in forks))


def _by_fork(metric: Metric, points: Sequence[_TaskSide]) -> list[tuple[float, ...]]:
    return list(zip(*(fork_values(metric, point.found) for point in points), strict=True))


class _Sum(msgspec.Struct, frozen=True):
    """A side of a comparison: a task, or several whose values are combined block by block.

    They are added and subtracted; of ratios, they are multiplied. In blocks, what the host does to all of
    them is in all of them.
    """

    side: Side
    terms: tuple[_Term, ...]

    @classmethod
    def of(cls, side: Side, runs: Runs) -> Self:
        """Find its tasks; errors as of `_TaskSide.of`."""
        return cls(side, tuple(_Term.of(term, runs) for term in side))

    @property
    def tasks(self) -> tuple[_TaskSide, ...]:
        return tuple(task for term in self.terms for task in term.tasks)

    def values(self, metric: Metric) -> Values:
        """Return its values: of a derived side, in the blocks that all of its tasks have."""
        derived = is_derived(self.side)
        label = side_text(self.side) if derived else self.tasks[0].label
        sides = [term.values(metric, label) for term in self.terms]
        if not derived:
            return sides[0]
        blocks = tuple(sorted(set.intersection(*(set(side.blocks) for side in sides))))
        sides = [side.within(blocks) for side in sides]
        weights = [-1 if term.minus else 1 for term in self.side]
        values = np.array([side.values for side in sides])
        ratio = metric.compared_as == "ratio"
        combined = values.prod(axis=0) if ratio else np.dot(weights, values)
        return msgspec.structs.replace(
            sides[0], values=tuple(combined.tolist()), signed=not ratio and min(weights) < 0
        )

    def figures(self, metric: Metric, replicate: Replicate) -> Figures:
        steady = [task.settled for task in self.tasks]
        return side_figures(
            metric,
            self.values(metric),
            [(task.found, task.load) for task in self.tasks],
            next((steadiness for steadiness in steady if steadiness.trend), steady[0]),
            replicate,
        )


def compare_row(spec: ComparisonSpec, runs: Runs) -> ExperimentRow:
    """Compare, p-values not yet adjusted.

    All measurements take turns block after block: the two sides of a block are a pair.

    Raises:
        UsageError: If a measurement has no such task.
        BenchctlError: If a fork's tasks are not those of its plan.
    """
    sides = _Sum.of(spec.sides[0], runs), _Sum.of(spec.sides[1], runs)
    tasks = [task for side in sides for task in side.tasks]
    counting = metric_of(spec.metric).counting(unit_of(task.found for task in tasks))
    metric = msgspec.structs.replace(
        counting.meeting(task.found for task in tasks), compared_as=spec.compared_as
    )
    named = _by_name(tasks)
    doubts = [*unit_doubts(metric, named)]
    doubts += [doubt for task in tasks for doubt in task.doubts(metric)]
    doubts += _answer_doubts(metric, sides, runs)
    paired, of_builds = True, not spec.refs[0].task
    unlike: list[Caveat] = []
    several = several_builds({task.label: task.forks for task in tasks})
    replicate: Replicate = "build" if several or of_builds else "fork"
    measured = [ref for ref in spec.refs if ref.measurement in runs]
    if of_builds:
        builds = {str(ref): runs[ref.measurement].builds_of(ref.variant) for ref in measured}
        in_turns = len({ref.measurement for ref in spec.refs}) == 1
        paired, further = pairs_of_builds(builds, in_turns=in_turns)
        doubts += further
        unlike = [*shared_builds(builds)]
    pauses = [
        compare_pauses(
            metric,
            {name: [summary for _, summary in found] for name, found in _by_name(pair).items()},
        )
        for pair in zip(sides[0].tasks, sides[1].tasks, strict=False)
    ]
    unlike += [pause.doubt for pause in pauses if pause.doubt is not None]
    # A verdict has to be about the engines, not about the load.
    withheld = any(doubt.code in WITHHOLDING for doubt in doubts) or any(
        check is not None and check.withholds(metric.kind.name) for check in (task.load for task in tasks)
    )
    comparison = compare_sides(
        metric,
        *(side.values(metric) for side in sides),
        paired=paired,
        judged=not withheld and not unlike,
        replicate=replicate,
        looks=1 if of_builds else looks_at([runs[ref.measurement] for ref in measured]),
        stretch=1 / (1 - max(pause.share for pause in pauses)),
    )
    unfit = unfit_values(metric, named) if any(task.found for task in tasks) else {}
    lacking = [doubt for side in sides for term in side.terms for doubt in term.lacking]
    return ExperimentRow(
        asked=spec,
        unit=metric.unit,
        higher_is_better=metric.higher_is_better,
        figures=(sides[0].figures(metric, replicate), sides[1].figures(metric, replicate)),
        comparison=doubting(comparison, (*unfit.values(), *lacking)),
        missing="; ".join(dict.fromkeys(task.missing for task in tasks if task.missing)),
        caveats=tuple(dict.fromkeys((*doubts, *unlike))),
    )


def _by_name(tasks: Sequence[_TaskSide]) -> dict[str, ForkSummaries]:
    """Return the forks of tasks by names that tell two tasks of one variant apart."""
    labels = [task.label for task in tasks]
    return {task.label if labels.count(task.label) == 1 else str(task.ref): task.found for task in tasks}


def _answer_doubts(metric: Metric, sides: tuple[_Sum, _Sum], runs: Runs) -> Iterator[Caveat]:
    """Yield that variants of a run answer one operation differently."""
    for other, one in product(sides[0].tasks, sides[1].tasks):
        alike = one.task is not None and other.task is not None and one.task.operation == other.task.operation
        if metric.kind.built or not alike or one.ref.measurement != other.ref.measurement:
            continue
        answers = runs[one.ref.measurement].answers
        # A run holds every variant against its first: two differ if they differ from it in other ways.
        details = {
            finding.variant: finding.detail
            for finding in (answers.findings if answers else ())
            if one.task and (finding.kind, finding.operation) == ("different", one.task.operation)
        }
        names = one.ref.variant, other.ref.variant
        if details.get(names[0]) != details.get(names[1]):
            yield caveat.answers_differ(*names, details.get(names[0]) or details[names[1]])
