"""The judge of an experiment: expectations of figures by verdicts, those of call sites by counting forks."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby

import msgspec

from benchctl.evidence.call_sites import Found
from benchctl.experiment.comparisons import (
    SCHEMA_VERSION,
    ExpectationResult,
    ExperimentAnalysis,
    ExperimentRow,
    ExperimentTable,
    FateGroup,
    FateResult,
    Judged,
    Outcome,
    SiteResult,
    SiteVariant,
    compare_row,
    finished,
)
from benchctl.experiment.record import (
    CallSite,
    ComparisonSpec,
    Dispatch,
    Expectation,
    ExperimentRecord,
    ExperimentSpec,
    FateSpec,
    Measurement,
    Relation,
    SeenCall,
    SeenReceiver,
    Toward,
    over,
    toward,
)
from benchctl.results.figures import OPERATIONS, TaskSummary
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.stats import caveat
from benchctl.stats.analysis import provisional
from benchctl.stats.caveat import WITHHOLDING, WITHOUT_VERDICT, Caveat
from benchctl.stats.compare import DECIDED, Comparison, Series, Verdict, adjust, judge
from benchctl.stats.disturbed import busy_host
from benchctl.stats.metrics import THROUGHPUT, ForkSummaries, collect, fork_values, task_at, unit_of
from benchctl.stats.outlook import family_weight, further_forks

"""Factor of fewer document visits than in the original benchmark that raises a warning."""

# Expectations: what follows from the verdicts of their comparisons, and nothing else.


def outcome_of(relation: Toward, verdict: Verdict) -> Outcome:
    """Return the outcome of an expectation of one comparison.

    A difference that is real and perhaps too small to matter, `different`, refutes nothing.
    """
    if verdict not in DECIDED:
        return "inconclusive"
    if relation == "different":
        return "refuted" if verdict == "equivalent" else "confirmed"
    if verdict == ("equivalent" if relation == "alike" else relation):
        return "confirmed"
    return "inconclusive" if verdict == "different" else "refuted"


def together(outcomes: Collection[Outcome]) -> Outcome:
    """Return the outcome of several comparisons that all have to show it."""
    if "refuted" in outcomes:
        return "refuted"
    return "confirmed" if outcomes and set(outcomes) == {"confirmed"} else "inconclusive"


def judge_expectations(
    expectations: Sequence[Expectation], rows: Mapping[str, ExperimentRow]
) -> tuple[ExpectationResult, ...]:
    """Judge all; `rows` are those of tables and those of one effect over another.

    p-values are adjusted over all comparisons that expectations rest on (Holm), so that at most 5% of
    experiments have any difference that is not there.
    """
    asked = [
        (place, expected, expected.is_)
        for place, expected in enumerate(expectations)
        if expected.is_ is not None
    ]
    names = list(dict.fromkeys(name for _, expected, _ in asked for name in expected.judged))
    adjusted = adjust([rows[name].comparison for name in names], method="holm")
    by_name = dict(zip(names, adjusted, strict=True))
    return tuple(_expectation(place, expected, is_, rows, by_name) for place, expected, is_ in asked)


def _expectation(
    place: int,
    expectation: Expectation,
    relation: Relation,
    rows: Mapping[str, ExperimentRow],
    adjusted: Mapping[str, Comparison],
) -> ExpectationResult:
    own = [rows[name] for name in expectation.judged]
    judged = tuple(_judged(expectation, relation, row, adjusted[row.asked.name]) for row in own)
    outcome = together([result.outcome for result in judged])
    compared = (result.comparison for result in judged)
    tested = [
        (comparison.p, comparison.p_adjusted)
        for comparison in compared
        if comparison.p is not None and comparison.p_adjusted is not None
    ]
    p, p_adjusted = max(tested) if len(tested) == len(judged) else (None, None)
    undecided = [(row, one) for row, one in zip(own, judged, strict=True) if _more_forks_may_decide(one)]
    undecided = undecided if outcome == "inconclusive" else []
    weight = family_weight(adjusted.values(), "holm")
    # What is open goes on until it is decided.
    open_ = [msgspec.structs.replace(one.comparison, looks=None) for _, one in undecided]
    needs = [further_forks(comparison, weight) for comparison in open_]
    needs = [] if None in needs else needs
    return ExpectationResult(
        asked=expectation,
        place=place,
        outcome=outcome,
        p=p,
        p_adjusted=p_adjusted,
        judged=judged,
        undecided=tuple(
            dict.fromkeys(
                f"{ref.measurement}/{ref.variant}" for row, _ in undecided for ref in row.asked.refs
            )
        ),
        further=max((need for need in needs if need), key=lambda forecast: forecast.sort_key, default=None),
        caveats=tuple(dict.fromkeys(doubt for row in own for doubt in row.caveats)),
    )


def _judged(expectation: Expectation, relation: Relation, row: ExperimentRow, adjusted: Comparison) -> Judged:
    margin, unit = expectation.tolerance
    within = {"margin_percent" if unit == "%" else "margin_difference": margin}
    comparison = judge(msgspec.structs.replace(adjusted, **within), adjusted.p_adjusted)
    outcome = outcome_of(toward(relation, higher_is_better=row.higher_is_better), comparison.verdict)
    return Judged(row.asked.name, outcome, provisional(comparison, row.figures), _unjudged(row, comparison))


def _unjudged(row: ExperimentRow, comparison: Comparison) -> str:
    """Return why there is no verdict; empty where there is one, or more forks may bring it."""
    if row.missing or comparison.verdict not in ("n/a", "insufficient"):
        return row.missing
    withholding = WITHHOLDING | WITHOUT_VERDICT | {"too-few-samples", "no-ratio"}
    reasons = (doubt.text for doubt in row.caveats if doubt.code in withholding)
    return next(reasons, "no values to compare")


def _more_forks_may_decide(judged: Judged) -> bool:
    # Forks on the same index builds are no further builds.
    return judged.outcome == "inconclusive" and not judged.reason and judged.comparison.replicate == "fork"


# Call sites beside figures: forks by what the JVM did there, and the expectations about that.


FORKS_FOR_OUTCOME = 3
"""Forks with a log that an outcome takes: of fewer, all often fare alike by chance."""
_SURENESS = 0.95
_NO_LOG = "no fork has an inlining log"
_OPPOSITE: Mapping[Dispatch, Dispatch] = {"inlined": "virtual", "virtual": "inlined"}


def site_results(
    sites: Sequence[CallSite], runs: Mapping[str, RunRecord], seen: Sequence[SeenCall]
) -> tuple[SiteResult, ...]:
    """Return the fate of every call site, variant by variant, with the throughput of forks of the same fate.

    `seen` is from all forks that were to keep a log.

    Raises:
        BenchctlError: If a run's tasks are not those that the experiment names.
    """
    return tuple(_site(site, runs.get(site.measurement), seen) for site in sites)


def judge_fates(expectations: Sequence[Expectation], results: Sequence[SiteResult]) -> tuple[FateResult, ...]:
    """Judge all: confirmed when every fork shows it, refuted when every one with a log shows the opposite.

    Where n forks of n show it, at least a share of 0.05^(1/n) of all node starts would, at 95%: the
    one-sided bound of Clopper and Pearson (Biometrika 26, 1934).
    """
    variants = {(site.name, variant.variant): variant for site in results for variant in site.variants}
    return tuple(
        _fate(place, expected, expected.fate, variants[expected.fate.call_site, expected.fate.variant])
        for place, expected in enumerate(expectations)
        if expected.fate is not None
    )


def _site(site: CallSite, run: RunRecord | None, seen: Sequence[SeenCall]) -> SiteResult:
    own = [call for call in seen if call.site == site.name]
    summaries = {variant: _summaries(site, variant, run) for variant in site.variants}
    return SiteResult(
        name=site.name,
        unit=THROUGHPUT.counting(unit_of(summaries.values())).unit,
        variants=tuple(
            _variant(variant, [call for call in own if call.variant == variant], summaries[variant])
            for variant in site.variants
        ),
    )


def _summaries(site: CallSite, variant: str, run: RunRecord | None) -> ForkSummaries:
    """Return summaries of its task in all finished forks: those for evidence alone usually have the logs."""
    if run is None:
        return []
    place = site.task_of(variant).place_in(run.plan)
    summaries = collect({variant: run.done(variant)}, place, task_at(run.plan, place))[variant]
    return [(block, _with_rate(summary)) for block, summary in summaries]


def _with_rate(summary: TaskSummary) -> TaskSummary:
    """Return operations a second of a microbenchmark that reports times, one after the other."""
    if summary.unit != OPERATIONS or summary.throughput_per_s is not None or not summary.mean_ns:
        return summary
    return msgspec.structs.replace(summary, throughput_per_s=1e9 / summary.mean_ns)


def _variant(name: str, seen: Sequence[SeenCall], summaries: ForkSummaries) -> SiteVariant:
    groups: dict[Found, list[SeenCall]] = {}
    for call in sorted(seen, key=lambda each: each.block):
        if call.found is not None:
            groups.setdefault(call.found, []).append(call)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return SiteVariant(
        variant=name,
        groups=tuple(_group(found, members, summaries) for found, members in ordered),
        unread=tuple(call for call in seen if call.found is None),
    )


def _group(found: Found, members: Sequence[SeenCall], summaries: ForkSummaries) -> FateGroup:
    blocks = {member.block for member in members}
    values = fork_values(THROUGHPUT, [summary for summary in summaries if summary[0] in blocks])
    counts: Counter[str] = Counter()
    for member in members:
        counts.update({receiver.name: receiver.calls for receiver in member.receivers})
    return FateGroup(
        found=found,
        forks=tuple(members),
        receivers=tuple(SeenReceiver(name, calls) for name, calls in counts.most_common()),
        calls=sum(member.calls for member in members),
        throughput_per_s=Series.of(values).value,
    )


def _fate(place: int, expectation: Expectation, fate: FateSpec, seen: SiteVariant) -> FateResult:
    counts = {group.found: len(group.forks) for group in seen.groups}
    total = sum(counts.values())
    showing = counts.get(fate.is_, 0)
    least = (1 - _SURENESS) ** (1 / total) if total else 0.0
    return FateResult(
        asked=expectation,
        place=place,
        outcome=_fate_outcome(showing, counts.get(_OPPOSITE[fate.is_], 0), total, unread=len(seen.unread)),
        showing=showing,
        forks=total,
        doubts=tuple(_fate_doubts(seen, total)),
        at_least=least if total and showing == total else None,
        at_most=1 - least if total and not showing else None,
    )


def _fate_outcome(showing: int, opposite: int, total: int, *, unread: int) -> Outcome:
    if total < FORKS_FOR_OUTCOME:
        return "inconclusive"
    if showing == total and not unread:
        return "confirmed"
    return "refuted" if opposite == total else "inconclusive"


def _fate_doubts(seen: SiteVariant, total: int) -> Iterator[str]:
    if not total:
        yield _NO_LOG
    elif total < FORKS_FOR_OUTCOME:
        yield f"{total} {'fork' if total == 1 else 'forks'} with a log: {FORKS_FOR_OUTCOME} are needed"
    if total and seen.unread:
        yield f"{len(seen.unread)} of {total + len(seen.unread)} forks have no inlining log"
    if any(fork.given_up for group in seen.groups for fork in group.forks):
        yield "in some forks the JVM stopped using that compilation later on"


# Runs in, analysis out: tables, expectations, and doubts about all of it.


def analyse_experiment(
    record: ExperimentRecord, runs: Mapping[str, RunRecord], seen: Sequence[SeenCall] = ()
) -> ExperimentAnalysis:
    """Analyse an experiment as its file declared it; an unfinished one as far as it got.

    Comparisons are those of a run, of sides in different runs: pairs are the forks of a block. In tables,
    p-values are adjusted within the rows of the same metric (Benjamini-Hochberg). Measurements without a run
    are shown as not measured; `seen` is from the forks that kept inlining logs.

    Raises:
        BenchctlError: If a run's tasks are not those that the experiment compares.
    """
    spec = record.spec
    forks = {
        f"{measurement.name}/{variant}": runs[measurement.name].compared(variant)
        for measurement in spec.measurements
        if measurement.name in runs
        for variant in _variants(measurement, runs)
    }

    def compared(asked: Iterable[ComparisonSpec]) -> list[ExperimentRow]:
        return _adjusted([compare_row(comparison, runs) for comparison in asked])

    tables = tuple(ExperimentTable(table.title, tuple(compared(table.rows))) for table in spec.tables)
    rows = {row.asked.name: row for table in tables for row in table.rows}
    call_sites = site_results(spec.call_sites, runs, seen)
    return ExperimentAnalysis(
        schema_version=SCHEMA_VERSION,
        experiment=record.id,
        forks={
            measurement.name: {
                name: len(forks.get(f"{measurement.name}/{name}", ()))
                for name in _variants(measurement, runs)
            }
            for measurement in spec.measurements
        },
        tables=tables,
        expectations=judge_expectations(
            spec.expectations, rows | {row.asked.name: row for row in compared(_of_effects(spec))}
        ),
        caveats=tuple(_caveats(spec, runs, forks)),
        call_sites=call_sites,
        fates=judge_fates(spec.expectations, call_sites),
    )


def _of_effects(spec: ExperimentSpec) -> Iterator[ComparisonSpec]:
    """Yield the comparisons of one effect with another that expectations ask for."""
    by_name = {row.name: row for row in spec.comparisons}
    pairs = dict.fromkeys(
        (expectation.comparisons[0], expectation.than)
        for expectation in spec.expectations
        if expectation.than and expectation.comparisons
    )
    yield from (over(by_name[first], by_name[than]) for first, than in pairs)


def _variants(measurement: Measurement, runs: Mapping[str, RunRecord]) -> tuple[str, ...]:
    """Return the variants as the run has them: a sweep makes several of one."""
    run = runs.get(measurement.name)
    return measurement.variants if run is None else tuple(spec.name for spec in run.plan.variants)


def _adjusted(rows: Sequence[ExperimentRow]) -> list[ExperimentRow]:
    """Return rows in order, p-values adjusted over those of one metric, and over all of index builds."""
    by_name = {row.asked.name: row for row in rows}
    for _, members in groupby(sorted(rows, key=_family), _family):
        family = list(members)
        for row, comparison in zip(family, adjust([row.comparison for row in family]), strict=True):
            by_name[row.asked.name] = finished(row, provisional(comparison, row.figures))
    return list(by_name.values())


def _family(row: ExperimentRow) -> str:
    return row.asked.metric if row.asked.refs[0].task else "index builds"


def _caveats(
    spec: ExperimentSpec,
    runs: Mapping[str, RunRecord],
    forks: Mapping[str, Sequence[ForkRecord]],
) -> Iterator[Caveat]:
    if spec.test_mode:
        yield Caveat("test-mode", "it was a trial (--test-mode): its values mean nothing")
    for measurement in spec.measurements:
        if measurement.name in runs:
            yield from _run_caveats(measurement.name, runs[measurement.name])
    busy = busy_host(forks)
    yield from [] if busy is None else [busy]
    measured = dict.fromkeys(label.partition("/")[0] for label, done in forks.items() if done)
    yield from _single_builds(measured, runs)


def _run_caveats(name: str, run: RunRecord) -> Iterator[Caveat]:
    # That it was a trial is true of all runs, and said once.
    yield from (doubt for doubt in caveat.run_doubts(run) if doubt.code != "test-mode")
    yield from (Caveat("run", f"{name}: {text}") for text in run.caveats)
    kinds = ", ".join(run.plan.evidence_in(0))
    if kinds:
        carried = f"{name}: all forks carried evidence ({kinds}), whose cost is in their figures"
        yield Caveat("evidence", carried)
    failed = Counter(fork.variant for fork in run.forks if fork.status == "failed")
    yield from (caveat.failed_forks(f"{name}/{variant}", count) for variant, count in failed.items())


def _single_builds(measured: Iterable[str], runs: Mapping[str, RunRecord]) -> Iterator[Caveat]:
    """Return the doubt about measurements on one build of each index, drawn or always the same."""
    single = [name for name in measured if runs[name].plan.index_builds == 1]
    for manner, doubt in (("fast", caveat.one_index_build), ("deterministic", caveat.deterministic_build)):
        once = [name for name in single if runs[name].plan.index_build == manner]
        if once:
            yield doubt(once if len(once) < len(runs) else ())
