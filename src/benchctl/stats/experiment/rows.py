"""One comparison of an experiment: its test, and the doubts that a run's own analysis would have."""

from collections.abc import Iterator, Mapping
from operator import attrgetter

import msgspec

from benchctl.results.experiment.model import ComparisonSpec, Published, TaskRef
from benchctl.results.model import AnswerFinding, RunRecord
from benchctl.stats import caveat
from benchctl.stats.caveat import Caveat
from benchctl.stats.compare import Comparison
from benchctl.stats.doubts import WITHHOLDING, extreme_doubts, floor_doubts, row_doubts
from benchctl.stats.experiment.model import ExperimentRow
from benchctl.stats.experiment.sides import TaskSide
from benchctl.stats.metrics import Metric, metric_of
from benchctl.stats.scale import ScaleNote
from benchctl.stats.selfcheck import check_load
from benchctl.stats.sides import compare_sides
from benchctl.stats.values import unit_of


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
