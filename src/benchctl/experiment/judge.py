"""The judge of an experiment: expectations of figures by intervals, those of call sites by counting forks."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from statistics import median
from types import MappingProxyType

import msgspec
import numpy as np

from benchctl.experiment.comparisons import (
    SCHEMA_VERSION,
    ExpectationResult,
    ExperimentAnalysis,
    ExperimentRow,
    ExperimentTable,
    FateGroup,
    FateResult,
    Judged,
    Lack,
    Outcome,
    SiteResult,
    SiteVariant,
    compare_row,
    finished,
)
from benchctl.experiment.record import (
    CallSite,
    Dispatch,
    Expectation,
    ExperimentRecord,
    FateExpectation,
    Measurement,
    SeenCall,
    SeenReceiver,
    TableSpec,
    Toward,
    forks_of,
    terms_of,
    toward,
)
from benchctl.jvm.call_sites import Found
from benchctl.results.figures import OPERATIONS, TaskSummary
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import Plan
from benchctl.stats import caveat
from benchctl.stats.analysis import Figures, provisional, quotable
from benchctl.stats.arrays import Floats, log_points
from benchctl.stats.caveat import Caveat, CaveatCode
from benchctl.stats.compare import Series, adjust, as_percent, build_means
from benchctl.stats.disturbed import Disturbance, busy_host, disturbances
from benchctl.stats.doubts import APART
from benchctl.stats.evidence import TaskCost, cost_beside
from benchctl.stats.inference import Contrast, Ratio, contrast, further_forks
from benchctl.stats.metrics import (
    THROUGHPUT,
    ForkSummaries,
    challenge_title,
    collect,
    fork_values,
    metric_of,
    task_at,
    unit_of,
)
from benchctl.stats.multiplicity import holm
from benchctl.stats.scale import rounded_ratio

NOTABLE_SCALE = 10.0
"""So many times fewer document visits than in the blog are a doubt."""
OPEN = "the interval leaves it open"
"""Why a comparison is inconclusive that could have been judged."""

# Why a row has no verdict: what is said of an expectation that rests on it, in this order.
_WITHHOLDING: tuple[CaveatCode, ...] = (
    "unsupported", "missing-values", "same-builds", "no-ratio", "no-redline", "lower-bound", "hits-changed",
    "unlike-units", "saturated", "offered-rate", "driver-limited", "counted-less", "coarse", "few-samples",
    "single-fork", "few-forks", "single-build", "few-builds", "no-spread",
)  # fmt: skip
_WEAKENING: Mapping[CaveatCode, str] = MappingProxyType(
    {
        "answers-differ": "the variants do not answer alike",
        "failures": "requests failed",
        "nothing-found": "searches found nothing",
        "counted-more": "nodes counted more searches than were sent",
        "stalled": "a few waits took much of the time of a task",
        "node-lost": "forks went on without a node",
        "copied-shards": "nodes copied shards from each other as they started",
        "not-cold": "the page cache was not cold",
        "disturbed": "figures stand out where the host's probes do",
        "bimodal": "forks lie in separate groups, so that an interval may be too narrow",
        "fork-apart": "a fork lies apart from the others, so that an interval may be too narrow",
    }
)


# Changes in speed of one comparison, or of one over another, as a contrast over forks.

_Values = dict[int, float]
"""Block -> value of its fork."""
Effect = Contrast | Ratio


def speed_of(row: ExperimentRow) -> Effect | None:
    """Return how much faster the contender is than the baseline; None without a spread.

    A natural logarithm, except that differences are in the row's unit. It is the effect that its table tells.
    """
    compared_as = row.comparison.compared_as
    if compared_as == "ratio-of-sums" or (compared_as == "ratio" and metric_of(row.metric).additive):
        return _ratio(row)
    return _combined([(row, 1.0)])


def _speed_over(row: ExperimentRow, than: ExperimentRow) -> Contrast | None:
    """Return how much more one contender is faster than the other: a difference of differences."""
    return _combined([(row, 1.0), (than, -1.0)])


def _ratio(row: ExperimentRow) -> Ratio | None:
    baseline, contender = ([_values(row, figures, told=True)] for figures in row.figures)
    builds = _builds([row])
    if row.comparison.paired:
        first, second = _aligned([*baseline, *contender], builds)
    else:
        (first,), (second,) = _aligned(baseline, builds), _aligned(contender, builds)
    compared = row.comparison
    found = Ratio.of(first, second, paired=compared.paired, sequential=compared.sequential)
    return None if found is None else msgspec.structs.replace(found, inverted=not row.higher_is_better)


def _combined(terms: Iterable[tuple[ExperimentRow, float]]) -> Contrast | None:
    """Return the weighted sum of changes in speed."""
    # Tasks of the same forks are not independent groups, and neither are forks of one block: their values
    # are added up first. So what two comparisons have in common cancels, the host's speed in a block as well.
    terms = list(terms)
    sides = [
        (forks_of(side), weight if row.higher_is_better == (place == 1) else -weight, _values(row, figures))
        for row, weight in terms
        for place, (side, figures) in enumerate(zip((row.baseline, row.contender), row.figures, strict=True))
    ]
    forks = {one for one, _, _ in sides}
    # Sides that share some of their forks are no independent groups, either.
    overlapping = any(one & other for one in forks for other in forks if one != other)
    blocked = overlapping or all(row.blocked for row, _ in terms)
    groups_of: dict[frozenset[tuple[str, str]] | None, list[_Values]] = {}
    for own, factor, values in sides:
        weighted = {block: factor * value for block, value in values.items()}
        groups_of.setdefault(None if blocked else own, []).append(weighted)
    builds = _builds(row for row, _ in terms)
    groups = [np.sum(_aligned(values, builds), axis=0) for values in groups_of.values()]
    sequential = any(row.comparison.sequential for row, _ in terms)
    return contrast(groups, [1.0] * len(groups), sequential=sequential)


def _values(row: ExperimentRow, figures: Figures, *, told: bool = False) -> _Values:
    """Return natural logarithms, unless the row is about the values themselves, or they are known."""
    values = [math.nan if one is None else one for one in figures.values]
    if told or row.comparison.compared_as != "ratio":
        known = zip(figures.blocks, values, strict=True)
        return {block: value for block, value in known if math.isfinite(value)}
    additive = metric_of(row.metric).additive
    series = Series.of(values, additive=additive)
    points = log_points(series.points, additive=True) if additive else series.points
    if not np.isfinite(points).all():
        return {}
    return dict(zip(np.asarray(figures.blocks)[series.kept].tolist(), points.tolist(), strict=True))


def _builds(rows: Iterable[ExperimentRow]) -> dict[int, int]:
    """Return block -> index build, where the build is the unit; empty where forks are."""
    sides = [figures for row in rows for figures in row.figures]
    return {
        block: build
        for figures in sides
        if figures.builds
        for block, build in zip(figures.blocks, figures.builds, strict=True)
    }


def _aligned(values: Sequence[_Values], builds: Mapping[int, int]) -> list[Floats]:
    """Return values fork by fork or block by block, where all have one; or the means of builds."""
    common = sorted(set.intersection(*(set(one) for one in values)))
    found = [np.asarray([one[block] for block in common], dtype=np.float64) for one in values]
    return [build_means(one, [builds[block] for block in common]) for one in found] if builds else found


# Expectations judged by intervals, never by how an estimate looks.


def judge_relation(relation: Toward, speed: Effect, limit: float, comparisons: int = 1) -> Outcome:
    """Return what an estimate says about a relation.

    Args:
        relation: what the contender should be.
        speed: its change in speed, natural logarithm or difference; above 0 is faster.
        limit: below which two are alike, above 0, in the same terms: `Expectation.limit`.
        comparisons: of the expectation, each of which can refute it.
    """
    low90, high90 = speed.interval(0.90)
    low95, high95 = speed.interval(0.95)
    low, high = speed.interval(1 - 0.10 / comparisons)
    alike = -limit < low90 and high90 < limit
    # What one comparison alone would refute is not confirmed where it is one of several, either.
    match relation:
        case "slower":
            return _outcome(confirmed=high95 < 0 and low90 <= -limit, refuted=low > -limit)
        case "faster":
            return _outcome(confirmed=low95 > 0 and high90 >= limit, refuted=high < limit)
        case "alike":
            return _outcome(confirmed=alike, refuted=low > limit or high < -limit)
        case "different":
            return _outcome(
                confirmed=(low95 > 0 or high95 < 0) and not alike,
                refuted=-limit < low and high < limit,
            )


def support(relation: Toward, speed: Effect, limit: float) -> float:
    """Return how likely an estimate that supports the relation this much would be if it did not hold.

    Two-sided for a difference, even where its direction is expected; the greater of the two one-sided
    tests for `alike`.
    """
    if relation == "alike":
        return max(speed.p_at_least(-limit), speed.p_at_most(limit))
    wrong_way = {"slower": speed.estimate > 0, "faster": speed.estimate < 0}.get(relation, False)
    return 1.0 if wrong_way else speed.p


def together(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the outcome of several comparisons that all have to show it, each judged as one of so many."""
    if "refuted" in outcomes:
        return "refuted"
    return "confirmed" if outcomes and set(outcomes) == {"confirmed"} else "inconclusive"


def _outcome(*, confirmed: bool, refuted: bool) -> Outcome:
    if refuted:
        return "refuted"
    return "confirmed" if confirmed else "inconclusive"


# Every expectation against its rows: outcomes, p-values, doubts.


def _judge_expectations(
    expectations: Sequence[Expectation],
    rows: Mapping[str, ExperimentRow],
    fork_s: Mapping[str, float] = MappingProxyType({}),
) -> tuple[ExpectationResult, ...]:
    """Judge all expectations by rows with verdicts; p-values are adjusted by Holm."""
    # `fork_s` is `MEASUREMENT/VARIANT` -> seconds of one fork.
    results = [_judge(one, rows, fork_s) for one in expectations]
    places = [place for place, one in enumerate(results) if one.p is not None]
    adjusted = dict(zip(places, holm([one.p for one in results if one.p is not None]), strict=True))
    return tuple(
        msgspec.structs.replace(one, p_adjusted=adjusted.get(place)) for place, one in enumerate(results)
    )


def _judge(
    expectation: Expectation, rows: Mapping[str, ExperimentRow], fork_s: Mapping[str, float]
) -> ExpectationResult:
    than = rows[expectation.than] if expectation.than else None
    own = [rows[name] for name in expectation.comparisons]
    judged = tuple(_judged(expectation, row, than) for row in own)
    known = [one.p for one in judged if one.p is not None]
    return ExpectationResult(
        statement=expectation.statement,
        relation=expectation.is_,
        than=expectation.than,
        margin_percent=None if expectation.unit else 100 * expectation.margin,
        margin=expectation.margin if expectation.unit else None,
        unit=expectation.unit,
        outcome=together([one.outcome for one in judged]),
        p=max(known) if len(known) == len(judged) else None,
        p_adjusted=None,
        judged=judged,
        needs=expectation.needs,
        doubts=tuple(_doubts([*own, *([] if than is None else [than])])),
        place=expectation.place,
        lacks=_lack(expectation, own, than, judged, fork_s),
        provisional=any(
            not row.missing and not quotable(row.comparison, row.figures)
            for row in (*own, *([] if than is None else [than]))
        ),
    )


def _lack(
    expectation: Expectation,
    own: Sequence[ExperimentRow],
    than: ExperimentRow | None,
    judged: Sequence[Judged],
    fork_s: Mapping[str, float],
) -> Lack | None:
    """Return what would decide it, predicted fork by fork: intervals narrow by degrees of freedom, too."""
    outcomes = [one.outcome for one in judged]
    able = {
        place: row
        for place, row in enumerate(own)
        # Forks on the same index builds are no further builds.
        if judged[place].reason == OPEN and row.comparison.replicate == "fork"
    }
    if together(outcomes) != "inconclusive" or not able:
        return None
    held = [*able.values(), *([] if than is None else [than])]
    refs = [one.ref for row in held for side in (row.baseline, row.contender) for one in terms_of(side)]
    sides = tuple(dict.fromkeys(f"{ref.measurement}/{ref.variant}" for ref in refs))
    units = {
        place: min(min(one.comparison.replicates) for one in (row, than or row))
        for place, row in able.items()
    }
    speeds = {place: speed_of(row) if than is None else _speed_over(row, than) for place, row in able.items()}

    def decided(further: int) -> bool:
        for place, speed in speeds.items():
            if speed is not None:
                later = speed.foreseen(units[place], further)
                outcomes[place] = judge_relation(
                    _toward(expectation, own[place]), later, expectation.limit, len(own)
                )
        return together(outcomes) != "inconclusive"

    needed = further_forks(min(units.values()), decided)
    block_s = sum(fork_s.get(side, 0.0) for side in sides)
    return Lack(sides, needed, block_s, min(units.values()))


def _judged(expectation: Expectation, row: ExperimentRow, than: ExperimentRow | None) -> Judged:
    """Judge one comparison; it is open if its row, or the one that it is compared with, has no verdict."""
    speed = speed_of(row) if than is None else _speed_over(row, than)
    reasons = (_unjudged(one) for one in (row, *([] if than is None else [than])))
    reason = next((text for text in reasons if text), "")
    if speed is None or reason:
        alone = Judged(
            row.name,
            "inconclusive",
            reason=reason or "nothing varies from fork to fork",
            unit=expectation.unit,
        )
        if speed is not None:
            return _with_estimate(alone, row, speed, interval=False)
        return alone if than is not None else _with_point(alone, row)
    relation = _toward(expectation, row)
    outcome = judge_relation(relation, speed, expectation.limit, len(expectation.comparisons))
    found = Judged(
        row.name,
        outcome,
        p=support(relation, speed, expectation.limit),
        reason=OPEN if outcome == "inconclusive" else "",
        unit=expectation.unit,
    )
    return _with_estimate(found, row, speed, interval=True)


def _toward(expectation: Expectation, row: ExperimentRow) -> Toward:
    return toward(expectation.is_, higher_is_better=row.higher_is_better)


def _with_point(judged: Judged, row: ExperimentRow) -> Judged:
    """Add what is known without a test."""
    if judged.unit:
        return msgspec.structs.replace(judged, difference=row.comparison.difference)
    effect = row.comparison.effect_percent
    if effect is None or row.higher_is_better:
        return msgspec.structs.replace(judged, speed_percent=effect)
    return msgspec.structs.replace(judged, speed_percent=100 * (1 / (1 + effect / 100) - 1))


def _with_estimate(judged: Judged, row: ExperimentRow, speed: Effect, *, interval: bool) -> Judged:
    """Add ratios in the direction of speed; differences as they are, contender - baseline."""
    ends = [*speed.interval(0.95), *speed.interval(0.90)] if interval else []
    if judged.unit:
        sign = 1 if row.higher_is_better else -1
        wide, narrow = (sorted(sign * end for end in pair) for pair in (ends[:2], ends[2:]))
        told = dict(zip(_DIFFERENCES, (sign * speed.estimate, *wide, *narrow), strict=False))
        return msgspec.structs.replace(judged, **told)
    percents = [_percent(end) for end in (speed.estimate, *ends)]
    return msgspec.structs.replace(judged, **dict(zip(_PERCENTS, percents, strict=False)))


_PERCENTS = ("speed_percent", "low_percent", "high_percent", "low90_percent", "high90_percent")
_DIFFERENCES = (
    "difference", "difference_low", "difference_high", "difference_low90", "difference_high90",
)  # fmt: skip


def _percent(log_ratio: float) -> float | None:
    """Return a change in percent; None of a ratio without an upper end."""
    return None if log_ratio == math.inf else as_percent(log_ratio)


def _unjudged(row: ExperimentRow) -> str:
    withheld = row.comparison.verdict in ("n/a", "insufficient") or row.comparison.has_zero
    if row.missing or not withheld:
        return row.missing
    doubts = {doubt.code: doubt.text for doubt in reversed(row.caveats)}
    return next((doubts[code] for code in _WITHHOLDING if code in doubts), "there are no figures to compare")


def _doubts(rows: Sequence[ExperimentRow]) -> Iterator[str]:
    measured = [row for row in rows if not row.missing]
    if not measured:
        return
    unsteady = sum(row.unsteady for row in measured)
    if unsteady:
        which = "no comparison of it" if unsteady == len(measured) else "not every comparison of it"
        yield f"{which} is between settled speeds"
    furthest = max((row.scale.ratio for row in measured if row.scale is not None), default=0.0)
    if furthest >= NOTABLE_SCALE:
        yield (
            f"up to {rounded_ratio(furthest)} times fewer document visits than in the blog, which forbids a "
            "conclusion about its scale"
        )
    codes = {doubt.code for row in measured for doubt in row.caveats}
    yield from (text for code, text in _WEAKENING.items() if code in codes)


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


def judge_fates(
    expectations: Sequence[FateExpectation], results: Sequence[SiteResult]
) -> tuple[FateResult, ...]:
    """Judge all: confirmed when every fork shows it, refuted when every one with a log shows the opposite.

    Where n forks of n show it, at least a share of 0.05^(1/n) of all node starts would, at 95 %: the
    one-sided bound of Clopper and Pearson (Biometrika 26, 1934).
    """
    known = {(site.name, one.variant): one for site in results for one in site.variants}
    return tuple(_fate(one, known[one.call_site, one.variant]) for one in expectations)


def _site(site: CallSite, run: RunRecord | None, seen: Sequence[SeenCall]) -> SiteResult:
    own = [one for one in seen if one.site == site.name]
    found = {variant: _summaries(site, variant, run) for variant in site.variants}
    return SiteResult(
        name=site.name,
        unit=THROUGHPUT.counting(unit_of(found.values())).unit,
        variants=tuple(
            _variant(variant, [one for one in own if one.variant == variant], found[variant])
            for variant in site.variants
        ),
    )


def _summaries(site: CallSite, variant: str, run: RunRecord | None) -> ForkSummaries:
    """Return summaries of its task in all finished forks: those for evidence alone usually have the logs."""
    if run is None:
        return []
    place = site.task_of(variant).place_in(run.plan)
    found = collect({variant: run.done(variant)}, place, task_at(run.plan, place))[variant]
    return [(block, _with_rate(summary)) for block, summary in found]


def _with_rate(summary: TaskSummary) -> TaskSummary:
    """Return operations a second of a microbenchmark that reports times, one after the other."""
    if summary.unit != OPERATIONS or summary.throughput_per_s is not None or not summary.mean_ns:
        return summary
    return msgspec.structs.replace(summary, throughput_per_s=1e9 / summary.mean_ns)


def _variant(name: str, seen: Sequence[SeenCall], summaries: ForkSummaries) -> SiteVariant:
    groups: dict[Found, list[SeenCall]] = {}
    for one in sorted(seen, key=lambda each: each.block):
        if one.found is not None:
            groups.setdefault(one.found, []).append(one)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return SiteVariant(
        variant=name,
        groups=tuple(_group(found, members, summaries) for found, members in ordered),
        unread=tuple(one for one in seen if one.found is None),
    )


def _group(found: Found, members: Sequence[SeenCall], summaries: ForkSummaries) -> FateGroup:
    blocks = {one.block for one in members}
    values = fork_values(THROUGHPUT, [one for one in summaries if one[0] in blocks])
    counts: Counter[str] = Counter()
    for one in members:
        counts.update({receiver.name: receiver.calls for receiver in one.receivers})
    return FateGroup(
        found=found,
        forks=tuple(members),
        receivers=tuple(SeenReceiver(name, calls) for name, calls in counts.most_common()),
        calls=sum(one.calls for one in members),
        throughput_per_s=Series.of(values).value,
    )


def _fate(expectation: FateExpectation, seen: SiteVariant) -> FateResult:
    counts = {group.found: len(group.forks) for group in seen.groups}
    total = sum(counts.values())
    showing = counts.get(expectation.is_, 0)
    least = (1 - _SURENESS) ** (1 / total) if total else 0.0
    return FateResult(
        statement=expectation.statement,
        call_site=expectation.call_site,
        variant=expectation.variant,
        is_=expectation.is_,
        outcome=_fate_outcome(
            showing, counts.get(_OPPOSITE[expectation.is_], 0), total, unread=len(seen.unread)
        ),
        showing=showing,
        forks=total,
        needs=expectation.needs,
        doubts=tuple(_fate_doubts(seen, total)),
        at_least=least if total and showing == total else None,
        at_most=1 - least if total and not showing else None,
        place=expectation.place,
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
    if any(one.given_up for group in seen.groups for one in group.forks):
        yield "in some forks the JVM stopped using that compilation later on"


# Runs in, analysis out: tables, expectations, and doubts about all of it.


def analyse_experiment(
    record: ExperimentRecord, runs: Mapping[str, RunRecord], seen: Sequence[SeenCall] = ()
) -> ExperimentAnalysis:
    """Analyse an experiment as its file declared it; an unfinished one as far as it got.

    Comparisons are Welch's t on the logarithms of one value a fork (on the values of what is added up or
    compared by differences), or t of pairs if both sides have forks in common, or blocks are pairs. Their
    p-values are adjusted within the rows of a table that have the same metric (Benjamini-Hochberg).
    Measurements without a run are shown as not measured; `seen` is from the forks that kept inlining logs.

    Raises:
        BenchctlError: If a run's tasks are not those that the experiment compares.
    """
    forks = {
        f"{one.name}/{variant}": runs[one.name].compared(variant)
        for one in record.spec.measurements
        if one.name in runs
        for variant in _variants(one, runs)
    }
    noisy = disturbances(forks)
    trial = ["it was a trial (--test-mode): its values mean nothing"] if record.spec.test_mode else []
    tables = tuple(ExperimentTable(table.title, _rows(table, runs, noisy)) for table in record.spec.tables)
    rows = {row.name: row for table in tables for row in table.rows}
    call_sites = site_results(record.spec.call_sites, runs, seen)
    return ExperimentAnalysis(
        schema_version=SCHEMA_VERSION,
        experiment=record.id,
        forks={
            one.name: {name: len(forks.get(f"{one.name}/{name}", ())) for name in _variants(one, runs)}
            for one in record.spec.measurements
        },
        tables=tables,
        expectations=tuple(
            msgspec.structs.replace(one, doubts=(*trial, *one.doubts))
            for one in _judge_expectations(
                record.spec.expectations,
                rows,
                {label: median(fork.wall_s for fork in done) for label, done in forks.items() if done},
            )
        ),
        caveats=(
            *(Caveat("test-mode", text) for text in trial),
            *_caveats(record.spec.measurements, runs, forks, noisy, list(rows.values())),
        ),
        call_sites=call_sites,
        fates=judge_fates(record.spec.fates, call_sites),
    )


def _variants(measurement: Measurement, runs: Mapping[str, RunRecord]) -> tuple[str, ...]:
    """Return the variants as the run has them: a sweep makes several of one."""
    run = runs.get(measurement.name)
    return measurement.variants if run is None else tuple(spec.name for spec in run.plan.variants)


def _rows(
    table: TableSpec, runs: Mapping[str, RunRecord], noisy: Sequence[Disturbance]
) -> tuple[ExperimentRow, ...]:
    """Return the rows in order, p-values adjusted over those of one metric, and over all of index builds."""
    rows = {spec.name: compare_row(spec, runs, noisy) for spec in table.rows}
    families = groupby(sorted(rows.values(), key=_family), _family)
    for _, members in families:
        family = list(members)
        for row, comparison in zip(family, adjust([row.comparison for row in family]), strict=True):
            rows[row.name] = finished(row, provisional(comparison, row.figures))
    return tuple(rows.values())


def _family(row: ExperimentRow) -> str:
    return row.metric if terms_of(row.baseline)[0].ref.task else "index builds"


def _caveats(
    measurements: Sequence[Measurement],
    runs: Mapping[str, RunRecord],
    forks: Mapping[str, Sequence[ForkRecord]],
    noisy: Sequence[Disturbance],
    rows: Sequence[ExperimentRow],
) -> Iterator[Caveat]:
    for one in measurements:
        if one.name not in runs:
            continue
        run = runs[one.name]
        # That it was a trial is true of all runs, and said once.
        yield from (doubt for doubt in caveat.run_doubts(run) if doubt.code != "test-mode")
        yield from (Caveat("run", f"{one.name}: {text}") for text in run.caveats)
        yield from _carried(one.name, runs)
        for variant in _variants(one, runs):
            failed = sum(fork.variant == variant and fork.status == "failed" for fork in run.forks)
            if failed:
                yield caveat.failed_forks(f"{one.name}/{variant}", failed)
    busy = busy_host(fork for group in forks.values() for fork in group)
    yield from [] if busy is None else [busy]
    off = dict.fromkeys(forks, 0)
    for disturbance in noisy:
        off[disturbance.variant] += 1
    if any(off.values()):
        yield _disturbed(off, sum(len(group) for group in forks.values()))
    furthest = max((row.scale.ratio for row in rows if row.scale is not None), default=0.0)
    if furthest >= NOTABLE_SCALE:
        yield caveat.small_scale(rounded_ratio(furthest))
    if any(doubt.code in APART for row in rows for doubt in row.caveats):
        yield caveat.bimodal_interval()
    measured = dict.fromkeys(label.partition("/")[0] for label, done in forks.items() if done)
    yield from _single_builds(measured, runs)


def _single_builds(measured: Iterable[str], runs: Mapping[str, RunRecord]) -> Iterator[Caveat]:
    """Return the doubt about measurements on one build of each index, drawn or always the same."""
    single = [name for name in measured if runs[name].plan.index_builds == 1]
    for manner, doubt in (("usual", caveat.one_index_build), ("deterministic", caveat.deterministic_build)):
        once = [name for name in single if runs[name].plan.index == manner]
        if once:
            yield doubt(once if len(once) < len(runs) else ())


def _carried(name: str, runs: Mapping[str, RunRecord]) -> Iterator[Caveat]:
    """Return what evidence in all forks adds to all figures, if another measurement tells."""
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
    """Return disturbances as for a run, but counted: an experiment has too many forks to number them."""
    listed = ", ".join(f"{label} {count}" for label, count in off.items() if count)
    return Caveat(
        "disturbed",
        f"noisy host: its probes stand out around {sum(off.values())} of {total} forks, which are kept "
        f"in the figures: {listed}",
    )
