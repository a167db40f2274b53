"""Stored sides to an analysis: sides selected, metrics chosen, quantiles computed."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from benchctl.errors import BenchctlError, UsageError
from benchctl.results.likeness import JoinedRuns, Resolved, configured_alike, resolved, side_differences
from benchctl.results.model import AnswerCheck, ForkRecord
from benchctl.results.plan import Place, Plan
from benchctl.results.select import Archive, Selection, Side
from benchctl.results.store import fork_sources
from benchctl.spec import COMPARED_AS, Diff
from benchctl.stats.analyse import analyse, versions_of
from benchctl.stats.analysis import Analysis
from benchctl.stats.caveat import Caveat, run_doubts
from benchctl.stats.inference import Method, looks_at
from benchctl.stats.metrics import (
    SUMMARISED,
    Metric,
    before_text,
    check_told_by_clusters,
    metric,
    metric_names,
    metric_of,
    metrics_in,
    percentile,
)
from benchctl.stats.quantiles import requantiled

_SUMMARISED = "0.5, 0.9 and 0.99"
# Beyond these it would take millions of requests a fork.
_LEAST_QUANTILE, _GREATEST_QUANTILE = 0.0001, 0.9999


@dataclass(frozen=True)
class Measures:
    """Metrics, difference and margins of a comparison, as given on the command line."""

    metrics: tuple[str, ...] = ()  # by name; empty for the default ones
    quantiles: tuple[float, ...] = ()  # of times; empty for p90
    margin: float | None = None  # relative; None for each metric's own
    diff: Diff | None = None  # None for what was asked for when it was measured
    builds: bool = True  # metrics of index builds are among the default ones: not for a gate

    def chosen(self, plan: Plan) -> tuple[Metric, ...]:
        """Return the metrics, in the order of the tables.

        Args:
            plan: of what is compared; red-line searches have a metric of their own.

        Raises:
            UsageError: If red-line searches or running clusters have none of those asked for, or there is no
                such quantile.
        """
        for quantile in self.quantiles:
            if not _LEAST_QUANTILE <= quantile <= _GREATEST_QUANTILE:
                raise UsageError(
                    f"--quantile {quantile:g} is not between {_LEAST_QUANTILE} and {_GREATEST_QUANTILE}",
                    hint="0.5 is the median, 0.99 the 99th percentile",
                )
        if all(spec.target is not None for spec in plan.variants):
            check_told_by_clusters(self.metrics)
        chosen: Sequence[Metric] = metrics_in(plan, builds=self.builds or not plan.schedules)
        if plan.redline is None:
            names = dict.fromkeys(self.metrics or (entry.kind.name for entry in chosen))
            chosen = [entry for name in names for entry in self._of_name(name)]
        elif self.metrics or self.quantiles:
            raise UsageError(
                "red-line searches are compared by the rates that they found",
                hint="remove --metric and --quantile",
            )
        compared_as = COMPARED_AS[self.diff or plan.diff]
        return tuple(
            msgspec.structs.replace(
                entry, margin=entry.margin if self.margin is None else self.margin, compared_as=compared_as
            )
            for entry in chosen
        )

    def _of_name(self, name: str) -> list[Metric]:
        usual = metric(name)
        if usual.quantile is None or not self.quantiles:
            return [usual]
        return [metric(name, quantile) for quantile in sorted({*self.quantiles})]

    def told(self, found: Analysis, plan: Plan) -> Analysis:
        """Return an analysis by these metrics, with a note of those requested that no side has.

        Raises:
            UsageError: If no side has any of the requested metrics.
        """
        if self.metrics and _is_empty(found):
            raise UsageError(f"nothing to show: {'; '.join(_lacking(metric(name)) for name in self.metrics)}")
        # What a microbenchmark has of the usual ones depends on its mode.
        planned = metric_names(plan.metrics) if plan.redline is None and plan.micro is None else ()
        shown = {metric_of(row.metric).kind.name for row in found.rows}
        lacking = [metric(name) for name in self.metrics or planned if name not in shown]
        notes = (Caveat("missing-values", _lacking(entry)) for entry in lacking)
        return msgspec.structs.replace(found, caveats=(*found.caveats, *notes))


def _is_empty(found: Analysis) -> bool:
    """Return whether no side has a value, unless that is because no request was answered."""
    sides = [side for row in found.rows for side in row.figures]
    if any(side.value is not None or side.load for side in sides):
        return False
    unanswered = any(caveat.code == "failures" for caveat in found.caveats)
    return not sides or (any(found.forks.values()) and not unanswered)


def compared(
    archive: Archive, selection: Selection, measures: Measures, *, method: Method = "benjamini-hochberg"
) -> Analysis:
    """Analyse the sides of a selection from an archive, which knows where their samples are.

    Raises:
        UsageError: If no side has what is to be compared, or a running cluster cannot tell it.
        BenchctlError: If a quantile needs samples, and there are none.
    """
    if any(
        spec.target is not None
        for side in selection.parts
        for spec in side.run.plan.variants
        if spec.name == side.variant
    ):
        check_told_by_clusters(measures.metrics)
    metrics = measures.chosen(selection.sides[0].run.plan)
    beyond_summaries = [quantile for quantile in measures.quantiles if quantile not in SUMMARISED]
    if beyond_summaries:
        parts = [
            [_with_quantiles(archive, part, beyond_summaries) for part in side.parts]
            for side in selection.sides
        ]
        sides = tuple(replace(first, further=tuple(further)) for first, *further in parts)
        selection = replace(selection, sides=sides)
    if measures.margin is not None:
        text = f"differences under {100 * measures.margin:g}% do not matter in these verdicts (--margin)"
        selection = replace(selection, remarks=(*selection.remarks, text))
    analysis = _analysed(selection, metrics, method)
    if not analysis.rows:
        raise UsageError(f"nothing to compare: {'; '.join(map(_lacking, metrics))}")
    return measures.told(analysis, selection.sides[0].run.plan)


def _lacking(metric: Metric) -> str:
    """Return why there are no rows of a metric."""
    title = metric.kind.title
    if metric.kind.loop == "open":
        return f"no task has a {title}: only throttled tasks have one; for others, use service_time"
    if metric.kind.of_tasks:
        return f"no task has any {title}"
    return f"no index builds, or the same ones on all sides: no {title}"


def _analysed(selection: Selection, metrics: Sequence[Metric], method: Method) -> Analysis:
    """Analyse the sides of a selection as they are."""
    sides = selection.sides
    first = sides[0].run
    runs = JoinedRuns.of(side.runs for side in sides)
    ids = tuple(runs.first_blocks)
    alone = len(ids) == 1
    built = {
        side.label: [
            (ids.index(part.run.id), facts)
            for part in side.parts
            for facts in part.run.builds_of(part.variant)
        ]
        for side in sides
    }
    analysis = analyse(
        {
            side.label: [fork for part in side.parts for fork in runs.moved(part.run, _all_forks(part))]
            for side in sides
        },
        runs.plan,
        runs=ids,
        answers=_relabelled(first.answers, sides) if alone else None,
        metrics=metrics,
        method=method,
        looks=looks_at(part.run for part in selection.parts),
        builds={label: [facts for _, facts in own] for label, own in built.items()},
        built_in={label: [number for number, _ in own] for label, own in built.items()},
    )
    if not alone:
        analysis = _other_tasks(analysis, sides, runs.places)
    marks = [f"incomparable results (--force): {text}" for text in selection.differences]
    own = [*selection.remarks, *(text for part in selection.parts for text in part.run.caveats)]
    caveats = (
        *(doubt for part in selection.parts for doubt in run_doubts(part.run)),
        *(Caveat("unlike", text) for text in marks),
        *(Caveat("run", text) for text in own),
        *analysis.caveats,
    )
    found = _resolved(sides)
    return msgspec.structs.replace(
        analysis,
        caveats=tuple(dict.fromkeys(caveats)),
        differences=side_differences(found),
        alike=() if marks else configured_alike(found),
        versions={
            side.label: versions[side.variant]
            for side in sides
            if side.variant in (versions := versions_of(side.run))
        },
    )


def _resolved(sides: Sequence[Side]) -> list[Resolved]:
    """Return what the sides resolved to, by their names here."""
    found = []
    for side in sides:
        known = {run.label: run for run in resolved(side.run)}
        found += [replace(known[side.variant], label=side.label)] if side.variant in known else []
    return found


def _other_tasks(
    found: Analysis, sides: Sequence[Side], places: Mapping[str, Mapping[Place, Place]]
) -> Analysis:
    """Add which tasks not all sides have, and where other tasks had run before those that they have."""
    here = {side.label: {target: place for place, target in places[side.run.id].items()} for side in sides}
    alone: dict[tuple[str, ...], list[str]] = {}
    rows = []
    for row in found.rows:
        doubts = list(row.caveats)
        if row.level == "task":
            place = (row.schedule, row.task)
            having = [side for side in sides if place in here[side.label]]
            if len(having) < len(sides):
                alone.setdefault(tuple(side.label for side in having), []).append(found.where(row))
            before = {side.label: before_text(side.run.plan, here[side.label][place]) for side in having}
            if len({*before.values()}) > 1:
                ran = "; ".join(f"{what} ({label})" for label, what in before.items())
                doubts.append(Caveat("other-tasks", f"ran {ran}"))
        rows.append(msgspec.structs.replace(row, caveats=tuple(doubts)))
    lacking = tuple(
        Caveat("other-tasks", f"only in the run of {' and '.join(labels)}: {', '.join(dict.fromkeys(tasks))}")
        for labels, tasks in alone.items()
    )
    return msgspec.structs.replace(found, rows=tuple(rows), caveats=(*lacking, *found.caveats))


def _all_forks(side: Side) -> tuple[ForkRecord, ...]:
    """Return the finished forks, and the failed ones, so that they are counted."""
    failed = (
        fork
        for fork in side.run.forks
        if (fork.variant, fork.status) == (side.variant, "failed") and not side.run.plan.is_extra(fork.block)
    )
    return (*side.forks, *failed)


def _with_quantiles(archive: Archive, side: Side, quantiles: Collection[float]) -> Side:
    asked = " and ".join(percentile(quantile) for quantile in quantiles)
    hint = f"summaries contain --quantile {_SUMMARISED}; other quantiles need the samples of every fork"
    forks = []
    by_block = {fork.block: fork for fork in side.forks}
    for source in fork_sources(archive.folder_of(side.run), side.forks):
        if source.samples is None:
            raise BenchctlError(
                f"no {asked} of {side.label}: in fork {source.block} of run {side.run.id}, {source.absent}",
                hint=hint,
            )
        forks.append(requantiled(by_block[source.block], source.samples, quantiles))
    return replace(side, forks=tuple(forks))


def _relabelled(answers: AnswerCheck | None, sides: Sequence[Side]) -> AnswerCheck | None:
    """Return results by the variants' names here."""
    if answers is None:
        return None
    labels: Mapping[str, str] = {side.variant: side.label for side in sides}
    findings = tuple(
        msgspec.structs.replace(
            finding,
            variant=labels.get(finding.variant, finding.variant),
            baseline=labels.get(finding.baseline, finding.baseline),
        )
        for finding in answers.findings
    )
    by_label = {
        operation: {labels.get(name, name): answer for name, answer in own.items()}
        for operation, own in answers.answers.items()
    }
    return msgspec.structs.replace(answers, answers=by_label, findings=findings)
