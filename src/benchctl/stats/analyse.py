"""Analyse forks: one value a fork, comparisons adjusted within each metric, and doubts with them."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from statistics import median
from types import MappingProxyType

import msgspec

from benchctl.results.figures import Quantiles, TaskSummary
from benchctl.results.likeness import configured_alike, resolved, side_differences
from benchctl.results.model import AnswerCheck, ForkRecord, IndexFacts, Looks, RunRecord
from benchctl.results.plan import Place, Plan
from benchctl.slices import hook
from benchctl.stats.analysis import (
    SCHEMA_VERSION,
    Analysis,
    Figures,
    Row,
    Section,
    Steadiness,
    SweepCurve,
    TimeKind,
    TimeRow,
    provisional,
)
from benchctl.stats.caveat import WITHHOLDING, Caveat, Replicate, run_doubts
from benchctl.stats.compare import Comparison, Side, adjust, compare_sides, several_builds
from benchctl.stats.disturbed import busy_host, most_stalled
from benchctl.stats.doubts import (
    cold_doubts,
    general_doubts,
    hits_apart,
    node_doubts,
    row_doubts,
    settling_doubts,
    steadiness,
    unfit_values,
    unsupported_reason,
)
from benchctl.stats.driver import LoadCheck, check_load, compare_pauses, driver_rows
from benchctl.stats.inference import Method, looks_at
from benchctl.stats.metrics import (
    INDEX_BUILDS,
    REDLINE,
    Builds,
    ForkSummaries,
    Metric,
    MetricKey,
    builds_as_forks,
    challenge_title,
    collect,
    metric_of,
    metrics_in,
    pairs_of_builds,
    places,
    separate_builds,
    shared_builds,
    task_at,
    unit_of,
)
from benchctl.stats.outlook import with_outlooks

LEAST_FOR_P90 = 10
LEAST_FOR_P99 = 100
_NS_PER_MS = 1e6
_SIDES = 2

_KINDS: Mapping[TimeKind, Callable[[TaskSummary], Quantiles | None]] = {
    "first": lambda summary: _single(summary.first_ns),
    "second": lambda summary: _single(summary.second_ns),
    "took": lambda summary: summary.took,
    "took sum": lambda summary: summary.took_sum,
    "service": lambda summary: summary.service_time,
    "processing": lambda summary: summary.processing_time,
    "latency": lambda summary: summary.latency,
    "page": lambda summary: summary.pages,
}

SettledTasks = Mapping[tuple[str, Place], Steadiness]
"""(label, place of a task) -> whether its forks had settled; index builds have no such thing."""


def analyse_run(
    record: RunRecord,
    *,
    margins: Mapping[MetricKey, float] | None = None,
    metrics: Sequence[Metric] | None = None,
) -> Analysis:
    """Analyse one run, finished or not, as its plan declared it; the first variant is the baseline.

    `margins` are relative differences that do not matter, where they differ from the plan's; `metrics`
    are in table order, None for the usual ones.
    """
    forks = {
        spec.name: [
            fork
            for fork in record.forks
            if fork.variant == spec.name and not record.plan.is_extra(fork.block)
        ]
        for spec in record.plan.variants
    }
    analysis = analyse(
        forks,
        record.plan,
        runs=(record.id,),
        answers=record.answers,
        margins=margins,
        metrics=metrics,
        looks=looks_at([record]),
        builds={name: record.builds_of(name) for name in forks},
    )
    own = (*run_doubts(record), *(Caveat("run", text) for text in record.caveats))
    return msgspec.structs.replace(
        analysis,
        caveats=(*own, *analysis.caveats),
        differences=side_differences(resolved(record)),
        alike=configured_alike(resolved(record)),
        versions=versions_of(record),
    )


def versions_of(record: RunRecord) -> dict[str, str]:
    """Of the engines of variants, and of what a sweep made them of, where that stays one version."""
    found = {facts.variant: facts.version for facts in record.engines}
    # Nodes that only filled an index leave no facts; a target's version is known to itself alone.
    if not record.forks and not found:
        found = {variant.name: variant.version for variant in record.plan.variants if variant.target is None}
    families: dict[str, set[str]] = {}
    for name, swept in record.plan.swept.variants.items() if record.plan.swept else ():
        families.setdefault(swept.of, set()).add(found.get(name, ""))
    return found | {name: min(known) for name, known in families.items() if len(known) == 1 and min(known)}


def analyse(
    forks: Mapping[str, Sequence[ForkRecord]],
    plan: Plan,
    *,
    runs: Sequence[str] = (),
    answers: AnswerCheck | None = None,
    margins: Mapping[MetricKey, float] | None = None,
    method: Method = "benjamini-hochberg",
    metrics: Sequence[Metric] | None = None,
    looks: Looks = 1,
    builds: Mapping[str, Sequence[IndexFacts]] = MappingProxyType({}),
    built_in: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> Analysis:
    """Compare variants, each against the first.

    The p-values of one metric are adjusted together: all tasks of all challenges, against all contenders.
    With Holm's method, which is for a gate, those of all metrics are, because a gate is one decision.
    Those of index builds, which stand in one table, are a family of their own.

    Args:
        forks: label -> forks, failed ones included, from one run or several comparable ones; the first label
            is the baseline.
        plan: the plan that the forks ran, or one of those that they have in common.
        runs: ids of the runs. Of several, each is one observation: a fork's `index_build` is then the number
            of its run, and blocks are pairs where every variant has forks in all runs.
        answers: of the engines, if checked.
        margins: relative differences that do not matter, by metric, where they differ from the defaults.
        method: how p-values are adjusted.
        metrics: in table order; None for the usual ones.
        looks: how often the figures were looked at.
        builds: label -> builds of its prepared index.
        built_in: label -> the number of each build's run, where there are several runs.

    Raises:
        UsageError: If a fork's tasks are not those of the plan.
    """
    done = {label: _finished(group) for label, group in forks.items()}
    several = len(runs) > 1
    replicate: Replicate = "run" if several else "build" if several_builds(done) else "fork"
    in_runs = [{fork.index_build for fork in group} for group in done.values()] if several else [{0}]
    paired = all(own == in_runs[0] for own in in_runs)
    own_margin = None if plan.stop is None else plan.stop.margin
    row_of = partial(
        _row,
        answers=answers,
        settled=settled_tasks(done, plan),
        paired=paired,
        replicate=replicate,
        # A run enters as one value among those of other runs, whatever ended it.
        looks=1 if several else looks,
    )
    groups = [{label: done[label] for label in group} for group in plan.compared_together(done)]
    rows: list[Row] = []
    asked = [
        msgspec.structs.replace(metric, margin=(margins or {}).get(metric.key, own_margin or metric.margin))
        for metric in metrics or metrics_in(plan, builds=True)
    ]
    for metric in asked:
        shown = [place for place in _reported(done, plan) if _has(metric, done, plan, place)]
        rows += [row_of(metric, group, plan, place) for place in shown for group in groups]
    own = separate_builds(builds)
    built_rows = _build_rows(asked, own, built_in if several else {}, plan, groups)
    busy = busy_host(done, together=plan.together and not several)
    # Of a comparison it is a doubt of its own, and makes its verdict provisional.
    doubt = busy if busy and busy.code == "busy-host" and len(forks) > 1 else None
    rows = _adjusted([*rows, *built_rows], method, doubt)
    tasks = [row for row in rows if row.level == "task"]
    built = [Section(len(plan.schedules), INDEX_BUILDS, (), "build")] if len(tasks) < len(rows) else []
    curves: tuple[SweepCurve, ...] = ()
    if not several:
        own_margins = {metric.key: metric.margin for metric in asked}
        curves = tuple(hook("swept_curves")(tasks, plan, margins=own_margins, method=method, looks=looks))
    if not curves:
        rows = [msgspec.structs.replace(row, swept=False) for row in rows]
    drivers, hosts = driver_rows(done, plan) if plan.redline is None else ((), ())
    return Analysis(
        schema_version=SCHEMA_VERSION,
        runs=tuple(runs),
        variants=tuple(forks),
        forks={label: len(group) for label, group in done.items()},
        paired=paired,
        restart=plan.restart,
        # Points of a sweep may have numbers of their own.
        documents=0 if any(spec.documents for spec in plan.variants) else plan.corpus.documents,
        sections=(*_sections(plan), *built),
        rows=tuple(rows),
        caveats=(
            *(_notes(plan, several=several)),
            *([busy] if busy and doubt is None else []),
            *general_doubts(forks, done, prepared=plan.origin == "prepared" and not several),
            *(shared_builds(builds) if any(metric.kind.built for metric in asked) else ()),
        ),
        redline=None if plan.redline is None else hook("redline").redline_curves(done, plan.redline),
        drivers=drivers,
        hosts=hosts,
        times=time_rows(done, plan),
        block_s=sum(median(fork.wall_s for fork in group) for group in done.values() if group),
        method=method,
        curves=curves,
        builds={label: len(group) for label, group in own.items() if built},
        replicate=replicate,
    )


def _notes(plan: Plan, *, several: bool) -> Iterator[Caveat]:
    """Yield what was alike on all sides, and is in what is said of them."""
    if several:
        yield Caveat(
            "run", "from several runs: the unit is the run, not the fork; host, day and index build differ"
        )
    if kinds := ", ".join(plan.evidence_in(0)):
        yield Caveat(
            "run",
            f"every fork collected evidence ({kinds}), whose cost is in the values; "
            "--evidence-forks 1 collects it in an extra fork",
        )


def _has(metric: Metric, done: Mapping[str, Sequence[ForkRecord]], plan: Plan, place: Place) -> bool:
    """Return whether a task has figures in a metric that not all tasks have."""
    found = collect(done, place, task_at(plan, place))
    if plan.micro is not None:
        # What a microbenchmark has depends on JMH's mode, which those that fail do not tell.
        named = metric.kind.name == "op_time"
        return any(
            metric.value(summary) is not None or (named and summary.failures)
            for forks in found.values()
            for _, summary in forks
        )
    if metric.kind.built or metric.kind.quality:
        return any(metric.value(summary) is not None for forks in found.values() for _, summary in forks)
    return metric.kind.loop != "open" or task_at(plan, place).throttled


def _build_rows(
    asked: Sequence[Metric],
    builds: Builds,
    runs: Mapping[str, Sequence[int]],
    plan: Plan,
    groups: Sequence[Mapping[str, object]],
) -> Iterator[Row]:
    """Metric by metric, then part by part of the index: one value a build, where forks have one each."""
    unit: Replicate = "run" if runs else "build"
    # Those that stand in one table are a family of tests.
    for metric in sorted(asked, key=lambda metric: not metric.kind.usual) if builds else ():
        for group in groups if metric.kind.built else ():
            own = {label: builds[label] for label in group if label in builds}
            if len(own) < min(len(group), _SIDES):
                continue
            whole, forks = builds_as_forks(plan, own, runs)
            pairs, doubts = pairs_of_builds(own, in_turns=not runs)
            row = _row(metric, forks, whole, (len(plan.schedules), 0), paired=pairs, replicate=unit)
            lacking = (
                Caveat(
                    "missing-values",
                    f"unknown for {count} of {len(side.values)} index builds of {side.variant}, which were "
                    "interrupted; to build them again, delete them from indices/ in benchctl's home",
                )
                for side in row.figures
                if (count := side.values.count(None))
            )
            caveats = (*row.caveats, *lacking, *doubts)
            yield msgspec.structs.replace(row, caveats=caveats, swept=False, level="build")


def _reported(done: Mapping[str, Sequence[ForkRecord]], plan: Plan) -> list[Place]:
    """The tasks that tables show: all except administrative ones, which prepare the others."""
    hidden = {
        (summary.schedule, summary.task)
        for forks in done.values()
        for fork in forks
        for summary in fork.summaries
        if not summary.reported
    }
    return [place for place in places(plan) if place not in hidden]


def _finished(forks: Sequence[ForkRecord]) -> list[ForkRecord]:
    """In block order; forks of several runs stay in the order of the runs within a block."""
    return sorted((fork for fork in forks if fork.status == "done"), key=lambda fork: fork.block)


def _sections(plan: Plan) -> tuple[Section, ...]:
    """The challenges, each with what its node had run before."""
    warmups = tuple(challenge.name for challenge in plan.warmup_challenges)
    names = tuple(challenge.name for challenge in plan.schedules)
    # The points of a sweep have no order.
    ordered = plan.restart == "never" and (plan.swept is None or len(plan.swept.rounds()) == 1)
    return tuple(
        Section(place, challenge_title(plan, place), warmups + (names[:place] if ordered else ()))
        for place in range(len(names))
    )


def _row(
    metric: Metric,
    done: Mapping[str, Sequence[ForkRecord]],
    plan: Plan,
    place: Place,
    *,
    answers: AnswerCheck | None = None,
    settled: SettledTasks = MappingProxyType({}),
    paired: bool,
    replicate: Replicate,
    looks: Looks = 1,
) -> Row:
    task, challenge = task_at(plan, place), plan.schedules[place[0]]
    found = collect(done, place, task)
    metric = metric.counting(unit_of(found.values())).meeting(found.values())
    baseline, *contenders = found
    summaries = {label: [summary for _, summary in forks] for label, forks in found.items()}
    checks = {label: check_load(task, own) for label, own in summaries.items()}
    steady = {label: settled.get((label, place), Steadiness("unknown")) for label in found}
    caveats = task_doubts(metric, plan, place, found, done, steady, answers=answers)
    if plan.redline is not None:
        steady |= hook("redline").unsteady_nodes(done)
    judged = not any(doubt.code in WITHHOLDING for doubt in caveats)
    judged &= not any(check.withholds(metric.kind.name) for check in checks.values())
    sides = {label: Side.of(metric, label, done[label], forks) for label, forks in found.items()}
    unfit = unfit_values(metric, found)
    pauses = {
        label: compare_pauses(metric, {name: summaries[name] for name in (baseline, label)})
        for label in contenders
    }
    return Row(
        schedule=place[0],
        challenge=challenge.name,
        task=place[1],
        label=task.label,
        operation=task.operation,
        whole=challenge.is_whole(place[1]),
        metric=metric.key,
        unit=metric.unit,
        higher_is_better=metric.higher_is_better,
        figures=tuple(
            side_figures(
                metric,
                sides[label],
                [(forks, None if metric.key == REDLINE.key else checks[label])],
                steady[label],
                replicate,
            )
            for label, forks in found.items()
        ),
        comparisons=tuple(
            doubting(
                compare_sides(
                    metric,
                    sides[baseline],
                    sides[contender],
                    paired=paired,
                    judged=judged and pauses[contender].doubt is None,
                    replicate=replicate,
                    looks=looks,
                    stretch=1 / (1 - pauses[contender].share),
                ),
                (
                    *(unfit[label] for label in (baseline, contender) if label in unfit),
                    *filter(None, [pauses[contender].doubt]),
                ),
            )
            for contender in contenders
        ),
        caveats=caveats,
        # What a curve of a single variant does not tell are its comparisons.
        swept=plan.swept is not None and not (contenders and len(plan.swept.bases) == 1),
    )


def task_doubts(
    metric: Metric,
    plan: Plan,
    place: Place,
    found: Mapping[str, ForkSummaries],
    done: Mapping[str, Sequence[ForkRecord]],
    steady: Mapping[str, Steadiness],
    *,
    answers: AnswerCheck | None = None,
) -> tuple[Caveat, ...]:
    """Return every doubt about a task in a metric that does not follow from the comparison itself.

    Args:
        metric: that is shown.
        plan: of the forks.
        place: of the task.
        found: label -> the task's summaries, the baseline's first.
        done: label -> the same forks as a whole.
        steady: label -> whether its forks had settled.
        answers: of the engines, if checked.
    """
    task = task_at(plan, place)
    doubts = (
        *row_doubts(metric, task, found, answers),
        *([] if metric.kind.of_start else settling_doubts(task, found, steady)),
        *(hits_apart(found) if answers is None and plan.swept is None else ()),
        *node_doubts({label: done[label] for label in found}),
        *cold_doubts(metric, plan, place, found),
    )
    if plan.redline is None:
        return doubts
    return (*hook("redline").redline_doubts(found, done), *doubts)


def doubting(comparison: Comparison, doubts: Iterable[Caveat]) -> Comparison:
    """Add doubts about the values of either side; the verdict follows when p-values are adjusted."""
    own = list(doubts)
    # That values are missing is told once, by why they are.
    why = any(doubt.code == "missing-values" for doubt in own)
    caveats = [doubt for doubt in comparison.caveats if not (why and doubt.code == "missing-values")]
    return msgspec.structs.replace(comparison, caveats=(*caveats, *dict.fromkeys(own)))


def settled_tasks(done: Mapping[str, Sequence[ForkRecord]], plan: Plan) -> SettledTasks:
    """Return whether each reported task of each variant had settled, tested over all of them."""
    return steadiness(
        {
            (label, place): [summary for _, summary in forks]
            for place in _reported(done, plan)
            for label, forks in collect(done, place, task_at(plan, place)).items()
        }
    )


def side_figures(
    metric: Metric,
    side: Side,
    tasks: Sequence[tuple[ForkSummaries, LoadCheck | None]],
    steady: Steadiness,
    replicate: Replicate,
) -> Figures:
    """Return a variant's figures, of one task or of several that were combined; checks of the load if any."""
    summaries = [summary for found, _ in tasks for _, summary in found]
    bounded = metric.key == REDLINE.key and any(summary.redline_is_bound for summary in summaries)
    figures = Figures(
        variant=side.label,
        blocks=side.blocks,
        values=tuple(None if math.isnan(value) else value for value in side.values),
        value=side.value,
        # Bounds differ by where searches ended, not by what nodes can do.
        cv_percent=None if bounded else side.cv_percent,
        samples=min((summary.samples for summary in summaries), default=0),
        # The first requests come before anything has settled.
        steady=Steadiness("unknown") if metric.kind.of_start else steady,
        stalled=0.0 if metric.kind.of_start else most_stalled(summaries),
        unsupported=next(filter(None, (unsupported_reason(found) for found, _ in tasks)), None),
        at_least=bounded,
        load=tuple(dict.fromkeys(state for _, check in tasks if check for state in check.states)),
    )
    return figures if replicate == "fork" else msgspec.structs.replace(figures, **side.unit_figures())


def _adjusted(rows: Sequence[Row], method: Method, busy: Caveat | None) -> list[Row]:
    """The rows, which come metric by metric and end with index builds, with their p-values adjusted."""
    families = [rows] if method == "holm" else [list(own) for _, own in groupby(rows, _family)]
    adjusted = iter(
        comparison
        for family in families
        for comparison in with_outlooks(
            adjust([comparison for row in family for comparison in row.comparisons], method=method), method
        )
    )
    finished = []
    for row in rows:
        own_doubts = () if busy is None or row.level == "build" else (busy,)
        comparisons = tuple(
            provisional(
                msgspec.structs.replace(comparison, caveats=(*own_doubts, *comparison.caveats)), row.figures
            )
            for comparison in (next(adjusted) for _ in row.comparisons)
        )
        own = dict.fromkeys(doubt for comparison in comparisons for doubt in comparison.caveats)
        caveats = tuple(dict.fromkeys((*row.caveats, *own)))
        finished.append(msgspec.structs.replace(row, comparisons=comparisons, caveats=caveats))
    return finished


def _family(row: Row) -> str:
    """The rows of a table: of a metric, or of index builds, of which usual ones do not depend on others."""
    if row.level == "task":
        return row.metric
    return f"builds, {metric_of(row.metric).kind.usual}"


def time_rows(done: Mapping[str, Sequence[ForkRecord]], plan: Plan) -> tuple[TimeRow, ...]:
    """Return every known time, task by task and variant by variant."""
    rows: list[TimeRow] = []
    for place in places(plan):
        for label, forks in collect(done, place, task_at(plan, place)).items():
            summaries = [summary for _, summary in forks]
            for kind, of in _KINDS.items():
                known = [(one, found) for one in summaries if (found := of(one)) is not None]
                rows += _times_row(place, label, kind, known)
            for part in range(max((len(one.took_parts) for one in summaries), default=0)):
                known = [(one, one.took_parts[part]) for one in summaries if part < len(one.took_parts)]
                rows += _times_row(place, label, "took", known, search=1 + part)
    return tuple(rows)


def _times_row(
    place: Place, label: str, kind: TimeKind, known: Sequence[tuple[TaskSummary, Quantiles]], search: int = 0
) -> Iterator[TimeRow]:
    if known:
        # Of pages there are at least as many as of operations.
        fewest = min(summary.samples for summary, _ in known)
        yield TimeRow(
            schedule=place[0],
            task=place[1],
            label=known[0][0].label,
            variant=label,
            kind=kind,
            p50_ms=_typical_ms([found.p50 for _, found in known]),
            p90_ms=_typical_ms([found.p90 for _, found in known]) if fewest >= LEAST_FOR_P90 else None,
            p99_ms=_typical_ms([found.p99 for _, found in known]) if fewest >= LEAST_FOR_P99 else None,
            search=search,
        )


def _single(value_ns: float | None) -> Quantiles | None:
    """Return the time of one request, which has no tail."""
    return None if value_ns is None else Quantiles(value_ns, None, None)


def _typical_ms(values_ns: Sequence[float | None]) -> float | None:
    """Median over forks, ms; None where one has no upper bound."""
    known = [value for value in values_ns if value is not None]
    return median(known) / _NS_PER_MS if len(known) == len(values_ns) else None
