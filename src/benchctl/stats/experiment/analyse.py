"""The runs of an experiment in, its analysis out: tables, expectations, and doubts about all of it."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from statistics import median

from benchctl.results.experiment import ExperimentRecord, Measurement, SeenCall, TableSpec
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import Plan
from benchctl.stats import caveat
from benchctl.stats.caveat import Caveat
from benchctl.stats.compare import adjust
from benchctl.stats.disturbed import disturbances
from benchctl.stats.evidence import TaskCost, cost_beside
from benchctl.stats.experiment.expectations import NOTABLE_SCALE, judge_expectations
from benchctl.stats.experiment.fates import judge_fates, site_results
from benchctl.stats.experiment.model import SCHEMA_VERSION, ExperimentAnalysis, ExperimentRow, ExperimentTable
from benchctl.stats.experiment.rows import compare_row, finished
from benchctl.stats.metrics import challenge_title
from benchctl.stats.scale import rounded_ratio


def analyse_experiment(
    record: ExperimentRecord, runs: Mapping[str, RunRecord], seen: Sequence[SeenCall] = ()
) -> ExperimentAnalysis:
    """Analyse an experiment as its file declared it; an unfinished one as far as it got.

    Comparisons are Welch's t on the logarithms of one value a fork, or t of pairs where both sides are tasks
    of the same forks. Their p-values are adjusted within the rows of a table that have the same metric
    (Benjamini-Hochberg).

    Args:
        record: what it asks.
        runs: measurement -> its run; measurements without one are shown as not measured.
        seen: of the call sites in the forks that kept inlining logs.

    Raises:
        BenchctlError: a run's tasks are not those that the experiment compares.
    """
    tables = tuple(ExperimentTable(table.title, _rows(table, runs)) for table in record.spec.tables)
    rows = {row.name: row for table in tables for row in table.rows}
    forks = {
        f"{one.name}/{variant}": runs[one.name].compared(variant)
        for one in record.spec.measurements
        if one.name in runs
        for variant in one.variants
    }
    call_sites = site_results(record.spec.call_sites, runs, seen)
    return ExperimentAnalysis(
        schema_version=SCHEMA_VERSION,
        experiment=record.id,
        forks={
            one.name: {name: len(forks.get(f"{one.name}/{name}", ())) for name in one.variants}
            for one in record.spec.measurements
        },
        tables=tables,
        expectations=judge_expectations(
            record.spec.expectations,
            rows,
            {label: median(fork.wall_s for fork in done) for label, done in forks.items() if done},
        ),
        caveats=tuple(_caveats(record.spec.measurements, runs, forks, list(rows.values()))),
        call_sites=call_sites,
        fates=judge_fates(record.spec.fates, call_sites),
    )


def _rows(table: TableSpec, runs: Mapping[str, RunRecord]) -> tuple[ExperimentRow, ...]:
    """In order, p-values adjusted over those of the same metric."""
    rows = {spec.name: compare_row(spec, runs) for spec in table.rows}
    by_metric = groupby(sorted(rows.values(), key=attrgetter("metric")), attrgetter("metric"))
    for _, members in by_metric:
        family = list(members)
        for row, comparison in zip(family, adjust([row.comparison for row in family]), strict=True):
            rows[row.name] = finished(row, comparison)
    return tuple(rows.values())


def _caveats(
    measurements: Sequence[Measurement],
    runs: Mapping[str, RunRecord],
    forks: Mapping[str, Sequence[ForkRecord]],
    rows: Sequence[ExperimentRow],
) -> Iterator[Caveat]:
    """Doubts about every table."""
    for one in measurements:
        if one.name not in runs:
            continue
        run = runs[one.name]
        yield from (Caveat("run", f"{one.name}: {text}") for text in run.caveats)
        yield from _carried(one.name, runs)
        for variant in one.variants:
            failed = sum(fork.variant == variant and fork.status == "failed" for fork in run.forks)
            if failed:
                yield caveat.failed_forks(f"{one.name}/{variant}", failed)
    off = dict.fromkeys(forks, 0)
    for disturbance in disturbances(forks):
        off[disturbance.variant] += 1
    if any(off.values()):
        yield _disturbed(off, sum(len(group) for group in forks.values()))
    furthest = max((row.scale.ratio for row in rows if row.scale is not None), default=0.0)
    if furthest >= NOTABLE_SCALE:
        yield caveat.small_scale(rounded_ratio(furthest))
    if any(doubt.code == "bimodal" for row in rows for doubt in row.caveats):
        yield caveat.bimodal_interval()
    if any(forks.values()):
        yield caveat.one_index_build()


def _carried(name: str, runs: Mapping[str, RunRecord]) -> Iterator[Caveat]:
    """Of evidence in all forks, what it cost is in all figures: how much, where another one did the same."""
    run = runs[name]
    kinds = ", ".join(run.plan.evidence_in(0))
    if not kinds:
        return
    plain = {other: cost_beside(run, found) for other, found in runs.items() if not found.plan.evidence_in(0)}
    beside = max(plain, key=lambda other: len(plain[other]), default=None)
    known = ""
    if beside is not None and plain[beside]:
        listed = ", ".join(_cost(one, run.plan) for one in plain[beside])
        known = f": against {beside}, mean service times (95 % intervals) of {listed}"
    text = f"{name}: all forks carried evidence ({kinds}), whose cost is in their figures{known}"
    yield Caveat("evidence", text)


def _cost(one: TaskCost, plan: Plan) -> str:
    challenge = f"{challenge_title(plan, one.schedule)}/" if len(plan.schedules) > 1 else ""
    interval = ""
    if one.low_percent is not None and one.high_percent is not None:
        interval = f" ({one.low_percent:+.1f} to {one.high_percent:+.1f})"
    return f"{one.variant}/{challenge}{one.label} {one.percent:+.1f} %{interval}"


def _disturbed(off: Mapping[str, int], total: int) -> Caveat:
    """As for a run, but counted: an experiment has too many forks to number them."""
    listed = ", ".join(f"{label} {count}" for label, count in off.items() if count)
    return Caveat(
        "disturbed",
        f"noisy host: its probes stand out around {sum(off.values())} of {total} forks, which are kept "
        f"in the figures: {listed}",
    )
