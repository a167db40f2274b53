"""The analysis of an experiment: its parts, and every comparison with its test and doubts."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from operator import attrgetter
from typing import Final, Literal, Self

import msgspec
import numpy as np

from benchctl.evidence.call_sites import Found
from benchctl.experiment.record import (
    ComparisonSpec,
    Expectation,
    SeenCall,
    SeenReceiver,
    Side,
    TaskRef,
    is_derived,
    side_text,
)
from benchctl.redline.judge import unsteady_nodes
from benchctl.results.figures import TaskSummary
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import Place, Plan
from benchctl.stats import caveat
from benchctl.stats.analyse import doubting, settled_tasks, side_figures, task_doubts
from benchctl.stats.analysis import Figures
from benchctl.stats.caveat import WITHHOLDING, Caveat, Replicate
from benchctl.stats.compare import Comparison, compare_sides, several_builds
from benchctl.stats.compare import Side as Values
from benchctl.stats.doubts import unfit_values, unit_doubts
from benchctl.stats.driver import LoadCheck, check_load, compare_pauses
from benchctl.stats.forecast import Forecast
from benchctl.stats.inference import looks_at
from benchctl.stats.metrics import (
    RECALL,
    ForkSummaries,
    Metric,
    builds_as_forks,
    collect,
    fork_values,
    metric_of,
    metrics_in,
    pairs_of_builds,
    shared_builds,
    task_at,
    unit_of,
)
from benchctl.stats.steady import Steadiness
from benchctl.sweep.recall import value_at
from benchctl.track.model import Task

SCHEMA_VERSION: Final = 2

Outcome = Literal["confirmed", "refuted", "inconclusive"]


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


class ExperimentTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rows that belong together, in the order of the file."""

    title: str
    rows: tuple[ExperimentRow, ...]


class Judged(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A comparison as an expectation judges it."""

    name: str  # of the comparison; `ONE over OTHER` of a difference of differences
    outcome: Outcome
    # With the margin of the expectation; p adjusted over all comparisons that expectations rest on (Holm).
    comparison: Comparison
    reason: str = ""  # why there is no verdict; empty where there is one


class ExpectationResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A statement and the outcome that follows from the verdicts of its comparisons."""

    asked: Expectation
    place: int  # of it in the experiment, from 0
    outcome: Outcome  # confirmed when all comparisons confirm it, refuted when one refutes it
    # `p`, `p_adjusted`: the greatest of its comparisons, since all have to show it; None where one has none.
    p: float | None
    p_adjusted: float | None
    judged: tuple[Judged, ...]  # its comparisons, in order
    # `MEASUREMENT/VARIANT` of its open comparisons, where more forks may decide it; empty otherwise.
    undecided: tuple[str, ...] = ()
    further: Forecast | None = None  # forks a side until these are decided; None where nothing foretells it
    caveats: tuple[Caveat, ...] = ()  # of its comparisons

    @property
    def provisional(self) -> bool:
        """True if the outcome is provisional: a variant has too few forks, or had not stabilized."""
        return self.outcome != "inconclusive" and any(result.comparison.provisional for result in self.judged)


class FateGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Forks in which a call site fared alike."""

    found: Found
    forks: tuple[SeenCall, ...]  # what was seen in each, in block order
    receivers: tuple[SeenReceiver, ...]
    calls: int
    # Of the call site's task, geometric mean of these forks; None without a value.
    throughput_per_s: float | None


class SiteVariant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call site in one variant."""

    variant: str
    groups: tuple[FateGroup, ...]  # forks by what became of it, the largest group first; none without logs
    unread: tuple[SeenCall, ...] = ()


class SiteResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call site in all of its variants; its name, and the unit of its task's throughput."""

    name: str
    unit: str
    variants: tuple[SiteVariant, ...]


class FateResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A statement about a call site and what the logs make of it."""

    asked: Expectation
    place: int  # of it in the experiment, from 0
    outcome: Outcome  # confirmed when all forks show it, refuted when all with a log show the opposite
    showing: int
    forks: int
    doubts: tuple[str, ...] = ()  # what weakens the outcome, or why there is none; without full stops
    # `at_least`, `at_most`: where all forks with a log show it, or none does, the one-sided 95% bound of
    # the share of nodes that would, 0 to 1; None otherwise.
    at_least: float | None = None
    at_most: float | None = None


class ExperimentAnalysis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that a report says about an experiment."""

    schema_version: int
    experiment: str
    forks: dict[str, dict[str, int]]  # measurement -> variant -> finished forks that count
    tables: tuple[ExperimentTable, ...]  # in the order of the file
    expectations: tuple[ExpectationResult, ...]
    caveats: tuple[Caveat, ...] = ()
    call_sites: tuple[SiteResult, ...] = ()  # what the JVM did there, in the order of the file
    fates: tuple[FateResult, ...] = ()  # what was expected of that

    @property
    def rows(self) -> tuple[ExperimentRow, ...]:
        """Return the rows of all tables, in order."""
        return tuple(row for table in self.tables for row in table.rows)

    @property
    def numbered(self) -> tuple[tuple[int, ExpectationResult | FateResult], ...]:
        """Return expectations of figures and of call sites in the order of the file, numbered from 1."""
        both: list[ExpectationResult | FateResult] = [*self.expectations, *self.fates]
        return tuple(enumerate(sorted(both, key=attrgetter("place")), 1))


# One side of a comparison: a task of a variant, in all finished forks of its measurement.


class _TaskSide(msgspec.Struct, frozen=True):
    """A side of a comparison: the values of one task."""

    reference: TaskRef
    label: str  # `MEASUREMENT/VARIANT`, its name in notes
    task: Task | None  # as it was planned; None if its measurement has no run yet
    plan: Plan | None  # of the measurement's run, or of its index builds
    place: Place | None
    forks: tuple[ForkRecord, ...]  # finished ones that count, in block order
    found: ForkSummaries
    settled: Steadiness = Steadiness("unknown")

    @classmethod
    def of(cls, reference: TaskRef, runs: Mapping[str, RunRecord]) -> Self:
        """Find it.

        Raises:
            UsageError: If its measurement has no such task.
            BenchctlError: If a fork's tasks are not those of the plan.
        """
        label, settled = f"{reference.measurement}/{reference.variant}", Steadiness("unknown")
        run = runs.get(reference.measurement)
        if run is None:
            return cls(reference, label, None, None, None, (), [])
        if reference.task:
            plan, forks = run.plan, run.compared(reference.variant)
            place = reference.place_in(plan)
            done = {spec.name: run.compared(spec.name) for spec in plan.variants}
            settled = settled_tasks(done, plan).get((reference.variant, place), settled)
        else:
            plan, builds = builds_as_forks(run.plan, {label: run.builds_of(reference.variant)})
            forks, place = tuple(builds[label]), (len(run.plan.schedules), 0)
        task = task_at(plan, place)
        summaries = collect({label: forks}, place, task)[label]
        return cls(reference, label, task, plan, place, forks, summaries, settled)

    @property
    def summaries(self) -> list[TaskSummary]:
        return [summary for _, summary in self.found]

    @property
    def missing(self) -> str:
        if self.task is None:
            return f"{self.reference.measurement} has not been measured"
        what = "fork" if self.reference.task else "index build"
        return "" if self.forks else f"no {what} of {self.label} has finished"

    @property
    def doubts_of_load(self) -> LoadCheck | None:
        """Return the doubts about the load; none of a red-line search, whose result it is."""
        if self.task is None or any(summary.redline_end is not None for summary in self.summaries):
            return None
        return check_load(self.task, self.summaries)

    def hits(self, run: RunRecord) -> int | None:
        """Return how many documents its searches match, counted exactly; None if that is not known."""
        operation = "" if self.task is None else self.task.operation
        exact = run.answers.exact_hits.get(operation, {}) if run.answers else {}
        counted = {summary.hits for summary in self.summaries if summary.hits_exact}
        return exact.get(self.reference.variant, counted.pop() if len(counted) == 1 else None)

    @property
    def steady(self) -> Steadiness:
        """Return whether it had stabilized, or the node in which a load was searched for."""
        search = None if self.plan is None else self.plan.redline
        unsteady = {} if search is None else unsteady_nodes(search, {self.label: self.forks})
        return unsteady.get(self.label) or self.settled


class _Sum(msgspec.Struct, frozen=True):
    """A side of a comparison: a task, or several whose values are combined block by block.

    They are added and subtracted; of ratios, they are multiplied. In blocks, what the host does to all of
    them is in all of them.
    """

    reference: Side
    # By term, its task, or the points of a sweep that its values at a recall lie between.
    terms: tuple[tuple[_TaskSide, ...], ...]
    lacking: tuple[Caveat, ...]  # why forks have none

    @classmethod
    def of(cls, reference: Side, runs: Mapping[str, RunRecord]) -> Self:
        """Find its tasks; errors as of `_TaskSide.of`."""
        terms: list[tuple[_TaskSide, ...]] = []
        lacking: list[Caveat] = []
        for ref, _ in reference:
            run = runs.get(ref.measurement)
            points = [_TaskSide.of(one, runs) for one in ([ref] if run is None else ref.points_in(run.plan))]
            if run is not None and ref.recall is not None:
                points, doubts = _around(ref, ref.recall, points)
                lacking += doubts
            terms.append(tuple(points))
        return cls(reference, tuple(terms), tuple(lacking))

    @property
    def tasks(self) -> tuple[_TaskSide, ...]:
        return tuple(task for tasks in self.terms for task in tasks)

    @property
    def label(self) -> str:
        return side_text(self.reference) if is_derived(self.reference) else self.tasks[0].label

    def values(self, metric: Metric) -> Values:
        """Return its values: of a derived side, in the blocks that all of its tasks have."""
        sides = [
            _value_of(metric, self.label, tasks, term.ref.recall)
            for term, tasks in zip(self.reference, self.terms, strict=True)
        ]
        if not is_derived(self.reference):
            return sides[0]
        blocks = tuple(sorted(set.intersection(*(set(side.blocks) for side in sides))))
        sides = [side.within(blocks) for side in sides]
        weights = [term.weight for term in self.reference]
        values = np.array([side.values for side in sides])
        ratio = metric.compared_as == "ratio"
        combined = values.prod(axis=0) if ratio else np.dot(weights, values)
        return msgspec.structs.replace(
            sides[0], values=tuple(combined.tolist()), signed=not ratio and min(weights) < 0
        )

    def figures(self, metric: Metric, replicate: Replicate) -> Figures:
        steady = [task.steady for task in self.tasks]
        return side_figures(
            metric,
            self.values(metric),
            [(task.found, task.doubts_of_load) for task in self.tasks],
            next((steadiness for steadiness in steady if steadiness.trend), steady[0]),
            replicate,
        )


def _around(ref: TaskRef, recall: float, points: list[_TaskSide]) -> tuple[list[_TaskSide], list[Caveat]]:
    """Return the points that values at a recall lie between, and the doubt that forks have none."""
    places = [value_at(recall, own, own)[1] for own in _by_fork(RECALL, points)]
    text = (
        f"{ref}: in {places.count(())} of {len(places)} forks no two points enclose this recall: no verdict"
    )
    between = [points[place] for place in sorted(set().union(*places))]
    return between or points, [Caveat("missing-values", text)] if () in places else []


def _value_of(metric: Metric, label: str, points: Sequence[_TaskSide], recall: float | None) -> Values:
    """Return the values of a task, or those that its points have at a recall."""
    values = Values.of(metric, label, points[0].forks, points[0].found)
    if recall is None:
        return values
    forks = zip(_by_fork(RECALL, points), _by_fork(metric, points), strict=True)
    return msgspec.structs.replace(values, values=tuple(value_at(recall, *fork)[0] for fork in forks))


def _by_fork(metric: Metric, points: Sequence[_TaskSide]) -> list[tuple[float, ...]]:
    return list(zip(*(fork_values(metric, point.found) for point in points), strict=True))


# One comparison: its test, and the doubts that a run's own analysis would have.


def compare_row(spec: ComparisonSpec, runs: Mapping[str, RunRecord]) -> ExperimentRow:
    """Compare, p-values not yet adjusted.

    All measurements take turns block after block: the two sides of a block are a pair.

    Raises:
        UsageError: If a measurement has no such task.
        BenchctlError: If a fork's tasks are not those of its plan.
    """
    sides = (_Sum.of(spec.sides[0], runs), _Sum.of(spec.sides[1], runs))
    tasks = [task for side in sides for task in side.tasks]
    measured = [runs[ref.measurement] for ref in spec.refs if ref.measurement in runs]
    # A red-line is in the unit of what was searched for.
    plans = (run.plan for run in measured if run.plan.redline)
    searched = (candidate for plan in plans for candidate in metrics_in(plan) if candidate.key == spec.metric)
    metric = msgspec.structs.replace(
        next(searched, metric_of(spec.metric))
        .counting(unit_of(task.found for task in tasks))
        .meeting(task.found for task in tasks),
        compared_as=spec.compared_as,
    )
    doubts = list(dict.fromkeys(_doubts(metric, sides, runs)))
    unfit = unfit_values(metric, _by_name(tasks)) if any(task.found for task in tasks) else {}
    paired = True
    several = several_builds({task.label: task.forks for task in tasks})
    replicate: Replicate = "build" if several else "fork"
    of_builds = not spec.refs[0].task
    if of_builds:
        builds = {
            str(ref): runs[ref.measurement].builds_of(ref.variant)
            for ref in spec.refs
            if ref.measurement in runs
        }
        in_turns = len({ref.measurement for ref in spec.refs}) == 1
        replicate, (paired, further) = "build", pairs_of_builds(builds, in_turns=in_turns)
        doubts += [*further, *shared_builds(builds)]
    pauses = [
        compare_pauses(
            metric,
            {name: [summary for _, summary in found] for name, found in _by_name(pair).items()},
        )
        for pair in zip(sides[0].tasks, sides[1].tasks, strict=False)
    ]
    unlike = [pause.doubt for pause in pauses if pause.doubt is not None]
    doubts += unlike
    comparison = compare_sides(
        metric,
        *(side.values(metric) for side in sides),
        paired=paired,
        judged=_judged(metric, tasks, doubts) and not unlike,
        replicate=replicate,
        looks=1 if of_builds else looks_at(measured),
        stretch=1 / (1 - max(pause.share for pause in pauses)),
    )
    return ExperimentRow(
        asked=spec,
        unit=metric.unit,
        higher_is_better=metric.higher_is_better,
        figures=(sides[0].figures(metric, replicate), sides[1].figures(metric, replicate)),
        comparison=doubting(
            comparison, (*unfit.values(), *(doubt for side in sides for doubt in side.lacking))
        ),
        missing="; ".join(dict.fromkeys(task.missing for task in tasks if task.missing)),
        caveats=tuple(doubts),
    )


def finished(row: ExperimentRow, comparison: Comparison) -> ExperimentRow:
    """Return the row with its comparison's verdict and doubts."""
    caveats = tuple(dict.fromkeys((*row.caveats, *comparison.caveats)))
    return msgspec.structs.replace(row, comparison=comparison, caveats=caveats)


def _judged(metric: Metric, tasks: Sequence[_TaskSide], doubts: list[Caveat]) -> bool:
    """Return whether a verdict would be about the engines, not about the load."""
    if any(doubt.code in WITHHOLDING for doubt in doubts):
        return False
    checks = [check for task in tasks if (check := task.doubts_of_load) is not None]
    return not any(check.withholds(metric.kind.name) for check in checks)


def _by_name(tasks: Sequence[_TaskSide]) -> dict[str, ForkSummaries]:
    """Return the forks of tasks by names that tell two tasks of one variant apart."""
    labels = [task.label for task in tasks]
    return {
        task.label if labels.count(task.label) == 1 else str(task.reference): task.found for task in tasks
    }


def _doubts(metric: Metric, sides: tuple[_Sum, _Sum], runs: Mapping[str, RunRecord]) -> Iterator[Caveat]:
    """Return the doubts that a run's own analysis would have of each task, and results that differ."""
    yield from unit_doubts(metric, _by_name([task for side in sides for task in side.tasks]))
    for side in sides:
        for task in side.tasks:
            run = runs.get(task.reference.measurement)
            if run is None or task.plan is None or task.place is None or not task.found:
                continue
            found, done = {task.label: task.found}, {task.label: task.forks}
            steady = {task.label: task.settled}
            yield from task_doubts(metric, task.plan, task.place, found, done, steady)
    for first, other in product(sides[0].tasks, sides[1].tasks):
        alike = (
            first.task is not None and other.task is not None and first.task.operation == other.task.operation
        )
        if alike and not metric.kind.built:
            yield from _answer_doubts(first, other, runs)


def _answer_doubts(baseline: _TaskSide, side: _TaskSide, runs: Mapping[str, RunRecord]) -> Iterator[Caveat]:
    """Yield that one operation is answered differently on two sides, as far as their runs can tell."""
    ours, theirs = (runs[compared_side.reference.measurement] for compared_side in (side, baseline))
    variant, other = side.reference.variant, baseline.reference.variant
    has_reported = False
    for run in {ours.id: ours, theirs.id: theirs}.values():
        # A run holds every variant against its first: two others differ if they differ from it in other ways.
        differences, expected = (_differences(run, name, side.task) for name in (variant, other))
        if differences != expected and {variant, other} <= {spec.name for spec in run.plan.variants}:
            has_reported = True
            yield caveat.answers_differ(variant, other, differences or expected)
    same_documents = (ours.plan.corpus, ours.plan.track_digest) == (
        theirs.plan.corpus,
        theirs.plan.track_digest,
    )
    if not has_reported and ours.id != theirs.id and same_documents:
        hits, expected_hits = side.hits(ours), baseline.hits(theirs)
        if None not in {hits, expected_hits} and hits != expected_hits:
            detail = f"hits {hits:,} and {expected_hits:,}"
            yield caveat.answers_differ(side.label, baseline.label, detail)


def _differences(run: RunRecord, variant: str, task: Task | None) -> str:
    findings = run.answers.findings if run.answers else ()
    return "; ".join(
        finding.detail
        for finding in findings
        if task is not None
        and (finding.kind, finding.operation, finding.variant) == ("different", task.operation, variant)
    )
