"""The judge of an experiment: expectations of figures by verdicts, those of call sites by counting forks."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, Literal, get_args

import msgspec

from benchctl.evidence.call_sites import Found
from benchctl.experiment.comparisons import ExperimentRow, Runs, compare_row
from benchctl.experiment.record import (
    CallSite,
    ComparisonSpec,
    Dispatch,
    Expectation,
    ExperimentRecord,
    ExperimentSpec,
    FateSpec,
    Relation,
    SeenCall,
)
from benchctl.results.figures import OPERATIONS, TaskSummary
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.stats import caveat
from benchctl.stats.analysis import provisional
from benchctl.stats.caveat import WITHHOLDING, WITHOUT_VERDICT, Caveat
from benchctl.stats.compare import DECIDED, Comparison, Side, Verdict, adjust, judge
from benchctl.stats.disturbed import busy_host
from benchctl.stats.metrics import THROUGHPUT, ForkSummaries, collect, fork_values, task_at, unit_of
from benchctl.stats.outlook import family_weight, further_forks

SCHEMA_VERSION: Final = 3

Outcome = Literal["refuted", "inconclusive", "confirmed"]
Toward = Literal["slower", "faster", "alike", "different"]


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
    """A statement and the outcome that follows from verdicts, or from what the JVM did at a call site.

    Confirmed when all comparisons confirm it, refuted when one refutes it. Of a fate: confirmed when all
    forks show it, refuted when all with a log show the opposite.
    """

    asked: Expectation
    outcome: Outcome
    # `p`, `p_adjusted`: the greatest of its comparisons, since all have to show it; None where one has none.
    p: float | None = None
    p_adjusted: float | None = None
    judged: tuple[Judged, ...] = ()  # its comparisons, in order; none of a fate
    # Forks a side until its open comparisons are decided; None where there are none, or it is out of reach.
    further: int | None = None
    showing: int = 0  # forks that show its fate
    forks: int = 0  # with a log
    doubts: tuple[str, ...] = ()  # why it is open, or what weakens the outcome; without full stops
    caveats: tuple[Caveat, ...] = ()  # of its comparisons

    @property
    def provisional(self) -> bool:
        """True if the outcome is provisional: a variant has too few forks, or had not stabilized."""
        return self.outcome != "inconclusive" and any(result.comparison.provisional for result in self.judged)


class FateGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Forks in which a call site fared alike."""

    found: Found
    forks: tuple[SeenCall, ...]  # what was seen in each, in block order
    receivers: dict[str, int]  # class -> calls, the most frequent first
    calls: int
    # Of the call site's task, geometric mean of these forks; None without a value.
    throughput_per_s: float | None


class SiteFates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call site in one variant."""

    site: str
    variant: str
    unit: str  # of its task's throughput
    groups: tuple[FateGroup, ...]  # forks by what became of it, the largest group first; none without logs
    unread: tuple[SeenCall, ...] = ()  # forks without a log


class ExperimentAnalysis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that a report says about an experiment."""

    schema_version: int
    experiment: str
    forks: dict[str, dict[str, int]]  # measurement -> variant -> finished forks that count
    tables: tuple[ExperimentTable, ...]  # in the order of the file
    expectations: tuple[ExpectationResult, ...]  # in the order of the file
    caveats: tuple[Caveat, ...] = ()
    call_sites: tuple[SiteFates, ...] = ()  # what the JVM did there, in the order of the file

    @property
    def rows(self) -> tuple[ExperimentRow, ...]:
        """Return the rows of all tables, in order."""
        return tuple(row for table in self.tables for row in table.rows)


# Expectations: what follows from the verdicts of their comparisons, and nothing else.


def toward(relation: Relation, *, higher_is_better: bool) -> Toward:
    """Return the same by speed: more of what takes time, or room, is slower."""
    if relation == "more":
        return "faster" if higher_is_better else "slower"
    if relation == "less":
        return "slower" if higher_is_better else "faster"
    return relation


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


def judge_expectations(
    expectations: Sequence[Expectation], rows: Mapping[str, ExperimentRow], sites: Sequence[SiteFates] = ()
) -> tuple[ExpectationResult, ...]:
    """Judge all; `rows` are those of tables and those of one effect over another.

    p-values are adjusted over all comparisons that expectations rest on (Holm), so that at most 5% of
    experiments have any difference that is not there.
    """
    names = list(dict.fromkeys(name for expected in expectations for name in expected.judged))
    adjusted = adjust([rows[name].comparison for name in names], method="holm")
    by_name = dict(zip(names, adjusted, strict=True))
    return tuple(
        _by_figures(expected, expected.is_, rows, by_name)
        if expected.is_ is not None
        else _by_fate(expected, expected.fate, sites)
        for expected in expectations
    )


def _by_figures(
    expectation: Expectation,
    relation: Relation,
    rows: Mapping[str, ExperimentRow],
    adjusted: Mapping[str, Comparison],
) -> ExpectationResult:
    own = [rows[name] for name in expectation.judged]
    judged = tuple(_judged(expectation, relation, row, adjusted[row.asked.name]) for row in own)
    outcomes = {one.outcome for one in judged}
    # All have to show it; one refutes it.
    outcome = next(one for one in get_args(Outcome) if one in outcomes)
    tested = [
        (one.comparison.p, one.comparison.p_adjusted)
        for one in judged
        if one.comparison.p is not None and one.comparison.p_adjusted is not None
    ]
    p, p_adjusted = max(tested) if len(tested) == len(judged) else (None, None)
    weight = family_weight(adjusted.values(), "holm")
    # Forks on the same index builds are no further builds.
    needs = [
        further_forks(one.comparison, weight)
        for one in judged
        if one.outcome == "inconclusive" and not one.reason and one.comparison.replicate == "fork"
    ]
    lacking = needs if outcome == "inconclusive" else []
    several = len(judged) > 1
    reasons = [one.reason or ("refuted" if several and one.outcome == "refuted" else "") for one in judged]
    return ExpectationResult(
        asked=expectation,
        outcome=outcome,
        p=p,
        p_adjusted=p_adjusted,
        judged=judged,
        further=None if None in lacking else max(filter(None, lacking), default=None),
        doubts=tuple(
            f"{row.asked.label}: {reason}" if several else reason
            for row, reason in zip(own, reasons, strict=True)
            if reason
        ),
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


# Call sites beside figures: forks by what the JVM did there, and the expectations about that.


FORKS_FOR_OUTCOME = 3
"""Forks with a log that an outcome takes: of fewer, all often fare alike by chance."""
_OPPOSITE: Mapping[Dispatch, Dispatch] = {"inlined": "virtual", "virtual": "inlined"}


def site_fates(sites: Sequence[CallSite], runs: Runs, seen: Sequence[SeenCall]) -> tuple[SiteFates, ...]:
    """Return the fate of every call site, variant by variant, with the throughput of forks of the same fate.

    `seen` is from all forks that were to keep a log.

    Raises:
        BenchctlError: If a run's tasks are not those that the experiment names.
    """
    return tuple(
        _fates(site, variant, runs.get(site.measurement), seen) for site in sites for variant in site.variants
    )


def _fates(site: CallSite, variant: str, run: RunRecord | None, seen: Sequence[SeenCall]) -> SiteFates:
    summaries: ForkSummaries = []
    if run is not None:
        place = site.task_of(variant).place_in(run.plan)
        # Of all finished forks: those for evidence alone usually have the logs.
        found = collect({variant: run.done(variant)}, place, task_at(run.plan, place))[variant]
        summaries = [(block, _with_rate(summary)) for block, summary in found]
    own = sorted(
        (call for call in seen if (call.site, call.variant) == (site.name, variant)),
        key=lambda call: call.block,
    )
    kinds = Counter(call.found for call in own if call.found is not None)
    return SiteFates(
        site=site.name,
        variant=variant,
        unit=THROUGHPUT.counting(unit_of([summaries])).unit,
        groups=tuple(
            _group(kind, [call for call in own if call.found == kind], summaries)
            for kind in sorted(kinds, key=lambda kind: (-kinds[kind], kind))
        ),
        unread=tuple(call for call in own if call.found is None),
    )


def _with_rate(summary: TaskSummary) -> TaskSummary:
    """Return operations a second of a microbenchmark that reports times, one after the other."""
    if summary.unit != OPERATIONS or summary.throughput_per_s is not None or not summary.mean_ns:
        return summary
    return msgspec.structs.replace(summary, throughput_per_s=1e9 / summary.mean_ns)


def _group(found: Found, members: Sequence[SeenCall], summaries: ForkSummaries) -> FateGroup:
    blocks = {member.block for member in members}
    values = fork_values(THROUGHPUT, [summary for summary in summaries if summary[0] in blocks])
    counts: Counter[str] = Counter()
    for member in members:
        counts.update(member.receivers)
    return FateGroup(
        found=found,
        forks=tuple(members),
        receivers=dict(counts.most_common()),
        calls=sum(member.calls for member in members),
        throughput_per_s=Side.plain(values).value,
    )


def _by_fate(
    expectation: Expectation, fate: FateSpec | None, sites: Sequence[SiteFates]
) -> ExpectationResult:
    if fate is None:
        raise TypeError("an expectation has comparisons or a fate")
    seen = next(one for one in sites if (one.site, one.variant) == (fate.call_site, fate.variant))
    counts = {group.found: len(group.forks) for group in seen.groups}
    total, showing, unread = sum(counts.values()), counts.get(fate.is_, 0), len(seen.unread)
    outcome: Outcome = "inconclusive"
    doubts = []
    if total < FORKS_FOR_OUTCOME:
        doubts.append(f"forks with an inlining log: {total}; {FORKS_FOR_OUTCOME} are needed")
    elif showing == total and not unread:
        outcome = "confirmed"
    elif counts.get(_OPPOSITE[fate.is_], 0) == total:
        outcome = "refuted"
    if total and unread:
        doubts.append(f"{unread} of {total + unread} forks have no inlining log")
    if any(fork.given_up for group in seen.groups for fork in group.forks):
        doubts.append("in some forks the JVM stopped using that compilation later on")
    return ExpectationResult(expectation, outcome, showing=showing, forks=total, doubts=tuple(doubts))


# Runs in, analysis out: tables, expectations, and doubts about all of it.


def analyse_experiment(
    record: ExperimentRecord, runs: Runs, seen: Sequence[SeenCall] = ()
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
        name: {
            variant: runs[name].compared(variant) if name in runs else () for variant in measurement.variants
        }
        for name, measurement in spec.measurements.items()
    }

    def compared(asked: Iterable[ComparisonSpec]) -> list[ExperimentRow]:
        return _adjusted([compare_row(comparison, runs) for comparison in asked])

    tables = tuple(ExperimentTable(table.title, tuple(compared(table.rows))) for table in spec.tables)
    rows = [row for table in tables for row in table.rows] + compared(_of_effects(spec))
    sites = site_fates(spec.call_sites, runs, seen)
    return ExperimentAnalysis(
        schema_version=SCHEMA_VERSION,
        experiment=record.id,
        forks={name: {key: len(done) for key, done in own.items()} for name, own in forks.items()},
        tables=tables,
        expectations=judge_expectations(spec.expectations, {row.asked.name: row for row in rows}, sites),
        caveats=tuple(_caveats(runs, forks)),
        call_sites=sites,
    )


def _of_effects(spec: ExperimentSpec) -> Iterator[ComparisonSpec]:
    """Yield the comparisons of one effect with another that expectations ask for."""
    by_name = {row.name: row for row in spec.comparisons}
    pairs = dict.fromkeys((one.comparisons[0], one.than) for one in spec.expectations if one.than)
    yield from (by_name[first].over(by_name[than]) for first, than in pairs)


def _adjusted(rows: Sequence[ExperimentRow]) -> list[ExperimentRow]:
    """Return rows in order, p-values adjusted over those of one metric, and over all of index builds."""

    def family(row: ExperimentRow) -> str:
        return row.asked.metric if row.asked.refs[0].task else "index builds"

    by_name = {row.asked.name: row for row in rows}
    for _, members in groupby(sorted(rows, key=family), family):
        own = list(members)
        for row, adjusted in zip(own, adjust([row.comparison for row in own]), strict=True):
            comparison = provisional(adjusted, row.figures)
            caveats = tuple(dict.fromkeys((*row.caveats, *comparison.caveats)))
            by_name[row.asked.name] = msgspec.structs.replace(row, comparison=comparison, caveats=caveats)
    return list(by_name.values())


def _caveats(runs: Runs, forks: Mapping[str, Mapping[str, Sequence[ForkRecord]]]) -> Iterator[Caveat]:
    if any(run.plan.test_mode for run in runs.values()):
        yield Caveat("test-mode", "it was a trial (--test-mode): its values are meaningless")
    for name, run in runs.items():
        yield from _run_caveats(name, run)
    sides = {f"{name}/{variant}": done for name in runs for variant, done in forks[name].items()}
    yield from filter(None, [busy_host(sides)])
    single = [name for name in runs if runs[name].plan.index_builds == 1 and any(forks[name].values())]
    if single:
        yield caveat.one_index_build(single if len(single) < len(runs) else ())


def _run_caveats(name: str, run: RunRecord) -> Iterator[Caveat]:
    # That it was a trial is true of all runs, and said once.
    yield from (doubt for doubt in caveat.run_doubts(run) if doubt.code != "test-mode")
    yield from (Caveat("run", f"{name}: {text}") for text in run.caveats)
    kinds = ", ".join(run.plan.evidence_in(0))
    if kinds:
        carried = f"{name}: all forks collected evidence ({kinds}), whose overhead is in their values"
        yield Caveat("run", carried)
    failed = Counter(fork.variant for fork in run.forks if fork.status == "failed")
    yield from (caveat.failed_forks(f"{name}/{variant}", count) for variant, count in failed.items())
