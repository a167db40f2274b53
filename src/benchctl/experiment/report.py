"""An experiment's report, printed or as a page: expectations, then tables beside what was published."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Final, Literal

import msgspec

import benchctl
from benchctl.errors import UsageError
from benchctl.experiment.comparisons import (
    ExpectationResult,
    ExperimentAnalysis,
    ExperimentRow,
    ExperimentTable,
    FateGroup,
    FateResult,
    Judged,
    Outcome,
    SiteResult,
    same_forks,
)
from benchctl.experiment.judge import FORKS_FOR_OUTCOME, NOTABLE_SCALE, OPEN
from benchctl.experiment.record import CallSite, ExperimentRecord, ExperimentSpec, TableSpec, terms_of
from benchctl.report.charts import dark_palette
from benchctl.report.facts import fact_sections
from benchctl.report.grid import (
    ABOVE,
    INTERVAL,
    NOTES,
    VARIANT,
    VERDICT,
    Cell,
    Column,
    Grid,
    escaped,
    grid_table,
    judged,
    named,
    note_lists,
    worded,
)
from benchctl.report.html.page import write_pages
from benchctl.report.html.parts import FOLDER, anchor, content_policy, embedded, templates
from benchctl.report.inlining import FOUND_WORDS, PARTLY
from benchctl.report.layout import Notes, better, change_cells, verdict_cell
from benchctl.report.numbers import (
    NOT_AVAILABLE,
    counted,
    duration,
    figure,
    interval,
    json_text,
    mebibytes,
    p_value,
    signed_figure,
    signed_percent,
    visible,
)
from benchctl.report.tables import WIDE, break_name, in_spite_of_looks, render_page
from benchctl.results.likeness import unlike
from benchctl.results.model import MOST_FORKS, EngineFacts, Environment, RunRecord, RunStatus
from benchctl.results.plan import EVIDENCE_READERS
from benchctl.stats.compare import FORKS_FOR_QUOTING, Verdict
from benchctl.stats.metrics import HELD, metric_of

# What the JVM did at call sites, beside the figures of the forks in which it did so.

_Runs = Mapping[str, RunRecord]
"""Measurement -> its run."""

_AROUND = re.compile(r"^.*[.$](?=[^\W\d])", re.DOTALL)
_TITLE = "What the JVM did"
_READING = (
    f"Fates: in the newest compilation by C2 that says how the call is made. {PARTLY}. Receivers: with the "
    "calls that type profiles had counted when C2 compiled, over these forks; HotSpot prints none of a "
    "virtual call."
)
_AFTER_THE_FACT = (
    "Forks that fared differently were put together after the fact: a difference between their figures is a "
    "lead, not a test of it."
)


def _fate_grid(spec: ExperimentSpec, analysis: ExperimentAnalysis) -> Grid | None:
    """Return a line for every fate of every call site and variant; None without call sites."""
    if not spec.call_sites:
        return None
    results = {one.name: one for one in analysis.call_sites}
    units = " or ".join(dict.fromkeys(one.unit for one in results.values()))
    tasks = list(dict.fromkeys(site.task for site in spec.call_sites))
    alone = tasks[0] if len(tasks) == 1 else ""
    task = named("Task")
    columns = (
        worded("Call"), VARIANT, worded("Fate"), "Forks", worded("Receivers"), task,
        f"{alone or 'Throughput'}, {units}",
    )  # fmt: skip
    lines = (line for site in spec.call_sites for line in _lines(site, results[site.name]))
    grid = Grid.of(_TITLE, columns, lines)
    return grid.without(task.title) if alone else grid


def _fate_lines(spec: ExperimentSpec, analysis: ExperimentAnalysis) -> Iterator[str]:
    if not spec.call_sites:
        return
    results = {one.name: one for one in analysis.call_sites}
    for site in spec.call_sites:
        about = " ".join(site.about.split())
        yield f"{site.label}: {site.callee} in {site.method}, measurement {site.measurement}. {about}".strip()
        yield from _missing(site, results[site.name])
    variants = [one for result in results.values() for one in result.variants]
    yield _READING
    if any(len(one.groups) > 1 for one in variants):
        yield _AFTER_THE_FACT


def _measured_text(one: FateResult) -> str:
    """Return `virtual call in 3 of 4 forks`, or `inlined in 4 of 4 forks (at least 47 %)` if all agree."""
    text = f"{FOUND_WORDS[one.is_]} in {one.showing} of {counted(one.forks, 'fork')}"
    if one.at_least is not None:
        return f"{text} (at least {100 * one.at_least:.0f} %)"
    return text if one.at_most is None else f"{text} (at most {100 * one.at_most:.0f} %)"


def _lines(site: CallSite, result: SiteResult) -> Iterator[tuple[Cell | str, ...]]:
    label: Cell | str = site.label
    for one in result.variants:
        variant = one.variant
        total = sum(len(group.forks) for group in one.groups)
        for group in one.groups:
            yield (
                label,
                variant,
                FOUND_WORDS[group.found],
                f"{len(group.forks)} of {total}",
                _receivers(group),
                site.task,
                figure(group.throughput_per_s),
            )
            label, variant = ABOVE, ""
        if not one.groups:
            yield label, variant, "no log", NOT_AVAILABLE, "", site.task, NOT_AVAILABLE
            label = ABOVE


def _receivers(group: FateGroup) -> str:
    # Without packages, and a nested class without its outer class, unless it is numbered.
    named = ", ".join(f"{_AROUND.sub('', one.name)} {one.calls:,}" for one in group.receivers)
    others = group.calls - sum(one.calls for one in group.receivers)
    return f"{named}, others {others:,}" if named and others > 0 else named


def _missing(site: CallSite, result: SiteResult) -> Iterator[str]:
    for one in result.variants:
        name = f"{site.measurement}/{one.variant}"
        for block, words in ((each.block, each.words) for each in one.unread):
            yield f"No inlining log of {name}, block {block}: {words}."
        if not one.groups and not one.unread:
            yield f"No fork of {name} with an inlining log has finished."
        blocks = sorted(each.block for group in one.groups for each in group.forks if each.given_up)
        if blocks:
            listed = ", ".join(map(str, blocks))
            yield f"{name}: the JVM stopped using that compilation later on, in block {listed}."


# Expectations and comparisons as grids, narrow for a terminal and wide for a page.

_LISTED = 4
"""So many comparisons of an expectation are shown one by one."""
_LABEL_WIDTH = 28
_NOTHING_PERCENT = -100.0
_SHOWN_LIKE: Final[dict[Outcome, Verdict]] = {
    "confirmed": "faster",
    "refuted": "slower",
    "inconclusive": "different",
}
_WORDS: Final[dict[Outcome, str]] = {"confirmed": "confirmed", "refuted": "refuted", "inconclusive": "open"}


def _collect_notes(analysis: ExperimentAnalysis) -> Notes:
    met = dict.fromkeys(doubt for row in analysis.rows for doubt in row.caveats)
    return Notes(tuple(met), analysis.caveats)


def _expectation_grid(analysis: ExperimentAnalysis) -> Grid | None:
    if not analysis.expectations and not analysis.fates:
        return None
    rows = {row.name: row for row in analysis.rows}
    mixed = any(not _of_speed(one, rows[name]) for one in analysis.expectations for name in _names(one))
    change = "Change (95 % interval)" if mixed else "Change in speed (95 % interval)"
    lines = (
        (
            str(number),
            one.statement,
            judged(_SHOWN_LIKE[one.outcome], f"{one.outcome}{'?' if _doubted(one) else ''}"),
            *_support(one, rows, mixed=mixed),
        )
        for number, one in analysis.numbered
    )
    columns = ("No", worded("Expectation"), Column("Outcome", "verdict"), worded(change), "p (Holm)")
    return Grid.of("Expectations", columns, lines)


def _names(one: ExpectationResult) -> list[str]:
    return [each.comparison for each in one.judged]


def _doubted(one: ExpectationResult | FateResult) -> bool:
    """Return whether a decided outcome is not to be quoted."""
    return isinstance(one, ExpectationResult) and one.provisional and one.outcome != "inconclusive"


def _of_speed(one: ExpectationResult, row: ExperimentRow) -> bool:
    """Return whether its change is told as one in speed: of a ratio, and not of more or less of something."""
    return not one.unit and one.relation not in {"less", "more"} and row.metric not in HELD


def _expectation_summary(analysis: ExperimentAnalysis) -> str:
    """Return `Of 22 expectations, 12 confirmed, 3 refuted, 7 left open`, and why they are provisional."""
    counts = Counter(one.outcome for one in analysis.expectations)
    counts.update(one.outcome for one in analysis.fates)
    total = counted(counts.total(), "expectation")
    found = (
        f"Of {total}, {counts['confirmed']} confirmed, {counts['refuted']} refuted, "
        f"{counts['inconclusive']} left open."
    )
    doubtful = {
        str(number): one
        for number, one in analysis.numbered
        if isinstance(one, ExpectationResult) and one.provisional
    }
    if not doubtful:
        return found
    names = {name for one in doubtful.values() for name in (*_names(one), one.than)}
    rows = [row for row in analysis.rows if row.name in names and not row.missing]
    few = any(min(row.comparison.replicates) < FORKS_FOR_QUOTING for row in rows)
    reasons = [f"fewer than {FORKS_FOR_QUOTING} forks or index builds a side"] if few else []
    reasons += ["tasks that had not settled"] if any(row.unsteady for row in rows) else []
    which = "" if len(doubtful) == counts.total() else f" ({', '.join(doubtful)})"
    return f"Provisional{which}: {found[:1].lower()}{found[1:]} Not to be quoted: {'; '.join(reasons)}."


def _expectation_remarks(record: ExperimentRecord, analysis: ExperimentAnalysis) -> Iterator[str]:
    """Return remarks beyond the grid by expectation number, shared doubts once, and what to run next."""
    labels = {row.name: row.label for row in analysis.rows}
    doubts: dict[str, list[str]] = {}
    for number, one in analysis.numbered:
        reasons = () if isinstance(one, FateResult) else _reasons(one, labels)
        needs = [f"needs {one.needs.strip().removesuffix('.')}"] if one.needs else []
        remarks = [*reasons, *_lacks(one), *needs]
        if remarks:
            yield f"{number}: {'; '.join(remarks)}."
        for doubt in one.doubts:
            doubts.setdefault(doubt, []).append(str(number))
    for doubt, numbers in doubts.items():
        yield f"{', '.join(numbers)}: {doubt}."
    yield from _next(record, analysis)


def _next(record: ExperimentRecord, analysis: ExperimentAnalysis) -> Iterator[str]:
    """Yield the command that adds what open expectations lack, or the forks that make the others quotable."""
    if record.status != "complete":
        return
    lacking = [one.lacks for one in analysis.expectations if one.lacks is not None and one.lacks.forks]
    forks, why = max((one.forks or 0 for one in lacking), default=0), "for what is open"
    by_fork = [
        row.comparison for row in analysis.rows if not row.missing and row.comparison.replicate == "fork"
    ]
    fewest = min((min(one.replicates) for one in by_fork), default=FORKS_FOR_QUOTING)
    if forks < FORKS_FOR_QUOTING - fewest:
        forks, why = FORKS_FOR_QUOTING - fewest, f"with {FORKS_FOR_QUOTING} forks it may be quoted"
    if forks:
        yield f"Next, {why}: benchctl experiment run --more {record.id} --forks {forks}"


def _narrow_grid(table: ExperimentTable, spec: TableSpec, notes: Notes) -> Grid:
    figures = worded("Figures")
    columns = (
        worded("Comparison"), figures, spec.baseline, spec.contender, _diff(table), INTERVAL, "p", VERDICT,
        NOTES,
    )  # fmt: skip
    lines: list[tuple[Cell | str, ...]] = []
    for row in table.rows:
        name = _row_label(row, table)
        label: Cell | str = name if " " in name else break_name(name, _LABEL_WIDTH)
        if row.published is not None:
            *values, change = _published(row)
            unit = " %" if change and _diff(table) == "Diff" else ""
            lines.append((label, "published", *values, change + unit, "", "", "", ""))
            label = ABOVE
        lines.append((label, "measured", *_figures(row, table), _verdict(row), notes.cell(row.caveats)))
    grid = Grid.of(_grid_title(table), columns, lines)
    return grid if any(row.published for row in table.rows) else grid.without(figures.title)


def _wide_grid(table: ExperimentTable, spec: TableSpec, notes: Notes) -> Grid:
    published = (f"published {spec.baseline}", f"published {spec.contender}", "published diff %")
    columns = (
        worded("Comparison"), *published, spec.baseline, spec.contender,
        _diff(table), INTERVAL, "p", VERDICT, NOTES,
    )  # fmt: skip
    lines = (
        (
            _row_label(row, table),
            *_published(row),
            *_figures(row, table),
            _verdict(row),
            notes.cell(row.caveats),
        )
        for row in table.rows
    )
    return Grid.of(_grid_title(table), columns, lines).without_empty(*published)


def _grid_title(table: ExperimentTable) -> str:
    """Return the table's title, with the metric if all rows share it."""
    metrics = dict.fromkeys((row.metric, row.unit) for row in table.rows)
    if len(metrics) != 1:
        return table.title
    ((key, unit),) = metrics
    metric = metric_of(key)
    return f"{table.title}: {metric.title}, {unit} ({better(metric)})"


def _diff(table: ExperimentTable) -> str:
    """Return the title `Diff %` or `Diff, ms`, or what cells have units for."""
    kinds = {row.unit if _in_unit(row) else "%" for row in table.rows}
    if len(kinds) > 1:
        return "Diff"
    (kind,) = kinds
    return "Diff %" if kind == "%" else f"Diff, {kind}"


def _in_unit(row: ExperimentRow) -> bool:
    return row.comparison.compared_as == "difference"


def _row_label(row: ExperimentRow, table: ExperimentTable) -> str:
    if len({(one.metric, one.unit) for one in table.rows}) == 1:
        return row.label
    title = metric_of(row.metric).title
    # `rate: docs/s, docs/s` and `size: size, MB` say nothing twice.
    parts = [part for part in (title, row.unit) if part != row.label]
    return f"{row.label}{': ' if len(parts) > 1 else ', '}{', '.join(dict.fromkeys(parts))}"


def _support(
    one: ExpectationResult | FateResult, rows: Mapping[str, ExperimentRow], *, mixed: bool
) -> tuple[str, str]:
    if isinstance(one, FateResult):
        return _measured_text(one), NOT_AVAILABLE
    p = NOT_AVAILABLE if one.p is None else f"{p_value(one.p)} ({p_value(one.p_adjusted)})"
    return _measured(one, rows, mixed=mixed), p


def _lacks(one: ExpectationResult | FateResult) -> Iterator[str]:
    if isinstance(one, FateResult) or one.lacks is None:
        return
    if one.lacks.forks is None:
        yield f"{MOST_FORKS} forks a side would not decide it, if it stays as it is"
    else:
        lacks, few = one.lacks, one.lacks.known < FORKS_FOR_QUOTING
        forks = counted(one.lacks.forks, "further fork")
        guess = f", or more: {lacks.known} forks tell little of their spread" if few else ""
        about = "" if few else "about "
        yield f"takes {about}{forks} a side ({duration(lacks.seconds)}), if it stays as it is{guess}"


def _measured(one: ExpectationResult, rows: Mapping[str, ExperimentRow], *, mixed: bool) -> str:
    """Return the estimates of an expectation, or the range of many; `in speed` where not all are."""
    told = [_told(one, each, rows[each.comparison]) for each in one.judged]
    shown = signed_figure if one.unit else signed_percent
    unit = one.unit or ("% in speed" if mixed and _of_speed(one, rows[one.judged[0].comparison]) else "%")
    if len(one.judged) <= _LISTED:
        leads = [f"{rows[name].label}: " if len(told) > 1 else "" for name in _names(one)]
        return "; ".join(
            f"{lead}{_estimate(estimate, shown, unit)}" for lead, estimate in zip(leads, told, strict=True)
        )
    counts = Counter(each.outcome for each in one.judged)
    known = [change for change, _, _ in told if change is not None]
    spread = f"; {shown(min(known))} to {shown(max(known))} {unit}" if known else ""
    listed = ", ".join(f"{counts[outcome]} {word}" for outcome, word in _WORDS.items() if counts[outcome])
    return f"of {len(one.judged)} comparisons {listed}{spread}"


_Estimate = tuple[float | None, float | None, float | None]
"""Change, and the ends of its interval."""


def _told(one: ExpectationResult, judged: Judged, row: ExperimentRow) -> _Estimate:
    """Return a difference or a change in speed; of what is held and what changes, the change of that."""
    if one.unit:
        return judged.difference, judged.difference_low, judged.difference_high
    speed = judged.speed_percent, judged.low_percent, judged.high_percent
    if _of_speed(one, row) or row.higher_is_better:
        return speed
    change, high, low = (_inverse(percent) for percent in speed)
    return change, low, high


def _inverse(percent: float | None) -> float | None:
    """Return the change of a time that a change in speed means: half the speed is twice the time."""
    return None if percent is None or percent <= _NOTHING_PERCENT else 100 * (1 / (1 + percent / 100) - 1)


def _estimate(estimate: _Estimate, shown: Callable[[float | None], str], unit: str) -> str:
    change, low, high = estimate
    if change is None:
        return NOT_AVAILABLE
    reach = "" if low is None else f" ({interval(low, high, shown)})"
    return f"{shown(change)} {unit}{reach}"


def _reasons(one: ExpectationResult, labels: Mapping[str, str]) -> Iterator[str]:
    """Yield why comparisons are open or what they refute, if the outcome of all does not say so."""
    grouped: dict[str, list[str]] = {}
    for each in one.judged:
        if each.outcome == "refuted" and len(one.judged) > 1:
            grouped.setdefault("refuted", []).append(labels[each.comparison])
        elif each.reason:
            grouped.setdefault(each.reason, []).append(labels[each.comparison])
    for reason, names in grouped.items():
        if len(names) < len(one.judged):
            yield f"{', '.join(names)}: {reason}"
        elif reason not in (OPEN, "refuted"):
            yield reason


def _published(row: ExperimentRow) -> tuple[str, str, str]:
    if row.published is None:
        return "", "", ""
    printed = row.published.change_percent
    change = signed_percent(row.published_percent) if printed is None else signed_percent(printed, 2)
    # No digits that the source has not.
    return f"{row.published.baseline:,.10g}", f"{row.published.contender:,.10g}", change


def _figures(row: ExperimentRow, table: ExperimentTable) -> tuple[Cell | str, ...]:
    comparison = row.comparison
    values = [side.value for side in row.figures]
    if comparison.paired and not comparison.gapped and comparison.baseline_value is not None:
        # Of the pairs that the change is of.
        values = [comparison.baseline_value, comparison.contender_value]
    change, reach = change_cells(comparison, row.figures)
    if _diff(table) == "Diff" and change != NOT_AVAILABLE:
        change = f"{change} {row.unit if _in_unit(row) else '%'}"
    told = (
        f"{'>= ' if side.at_least else ''}{figure(value)}"
        for side, value in zip(row.figures, values, strict=True)
    )
    return (*told, change, reach, p_value(comparison.p_adjusted))


def _verdict(row: ExperimentRow) -> Cell:
    """Return the verdict as in tables of runs, but the second column is always who is faster or slower."""
    if row.missing:
        return judged(None, "not measured")
    return verdict_cell(row.comparison, row.figures, row.caveats)


# The lines around tables: what it was run on, how to read it, how to look closer.


def _setting_lines(record: ExperimentRecord, runs: _Runs, analysis: ExperimentAnalysis) -> Iterator[str]:
    spec = record.spec
    ended = f": {record.stopped}" if record.stopped else ""
    moment = record.created.replace("T", " ").replace("+00:00", " UTC").replace("Z", " UTC")
    yield f"{record.id}, {moment}, {record.status}{ended}."
    data = "" if spec.without_nodes else f"{documents_text(spec)}, heap {spec.heap_mb} MiB, "
    yield (f"{data}order seed {spec.seed}; {_forks(record, analysis)}{_took(record)}.")
    if spec.test_mode:
        yield "A trial (--test-mode): its figures mean nothing."
    for host in dict.fromkeys(_host(run) for run in runs.values()):
        yield f"{host}."
    yield from dict.fromkeys(f"{line}." for run in runs.values() for line in _section(run, "Engines"))


def documents_text(spec: ExperimentSpec) -> str:
    """Return a number of documents as text."""
    if spec.without_nodes:
        return "no documents"
    return "all documents" if spec.docs is None else f"{spec.docs:,} documents"


def _difference_lines(runs: _Runs, analysis: ExperimentAnalysis) -> Iterator[str]:
    """Return how variants differ, and measurements that are compared, beyond their challenges."""
    yield from dict.fromkeys(
        line for run in runs.values() for line in _section(run, "Differences between variants")
    )
    compared = dict.fromkeys(
        (one.ref.measurement, other.ref.measurement)
        for row in analysis.rows
        for one, other in product(terms_of(row.baseline), terms_of(row.contender))
    )
    for one, other in compared:
        if one in runs and other in runs:
            first, second = runs[one], runs[other]
            # Which challenges they run is what most experiments are about, and what their tables say.
            plan = msgspec.structs.replace(second.plan, schedules=first.plan.schedules)
            reasons = unlike(first, msgspec.structs.replace(second, plan=plan))
            if reasons:
                yield f"{one} and {other}: {'; '.join(reasons)}"


def run_lines(record: ExperimentRecord) -> Iterator[str]:
    """Return each measurement, and the commands that show its run and its evidence."""
    width = max((len(one.name) for one in record.spec.measurements), default=0)
    for one in record.spec.measurements:
        run = record.runs.get(one.name)
        kinds = () if one.evidence is None else one.evidence.kinds
        looks = dict.fromkeys(["show", *(EVIDENCE_READERS[kind].split()[0] for kind in kinds)])
        shown = "; ".join(f"benchctl {word} {run}" for word in looks) if run else "not begun"
        yield f"{one.name:<{width}}  {shown}"


def _scale_lines(analysis: ExperimentAnalysis) -> Iterator[str]:
    """Return rows far below the blog's scale; those of the same distance together."""
    grouped: dict[str, dict[str, None]] = {}
    for row in analysis.rows:
        if row.scale is not None and row.scale.ratio >= NOTABLE_SCALE:
            refs = [one.ref for side in (row.baseline, row.contender) for one in terms_of(side)]
            tasks = {f"{one.measurement}/{one.task}": None for one in refs}
            grouped.setdefault(row.scale.text, {}).update(tasks)
    for text, tasks in grouped.items():
        yield f"Scale: {text}: {', '.join(tasks)}"


def _legend(analysis: ExperimentAnalysis) -> Iterator[str]:
    yield (
        "Values: geometric means over forks. Diff %: second column over the first, minus one; the verdict "
        f"is about the second. Interval and p: {_tests(analysis)}; intervals are unadjusted, p is adjusted "
        "over the rows of its table (Benjamini-Hochberg)"
        f"{in_spite_of_looks(row.comparison for row in analysis.rows)}."
    )
    if any(row.comparison.compared_as != "ratio" for row in analysis.rows):
        yield (
            "Differences, and what is made of several tasks: arithmetic means over forks, t on the values, "
            "Fieller's interval of ratios, and no ratio to what is not clearly above 0. Verdicts go by the "
            "change in per cent; expectations of differences (contender minus baseline) by a margin in their "
            "unit."
        )
    if analysis.expectations:
        listed = sorted({(e.unit, e.margin or e.margin_percent or 0.0) for e in analysis.expectations})
        margins = ", ".join(f"{margin:g} {unit or '%'}" for unit, margin in listed)
        yield (
            "Expectations: slower, faster, less and more are confirmed by a 95 % interval on that side of "
            "0, and refuted by a 90 % one that excludes as much as the margin; alike is confirmed by a 90 % "
            "interval within the margin, and refuted by one beyond it. All comparisons have to show it; one "
            "refutes it, so that of k comparisons refuting takes an interval of 1 - 10 %/k (Bonferroni). "
            "Margins: "
            f"{margins}. p is the greatest of an expectation's comparisons."
        )
        yield (
            "Outcomes rest on intervals that are not adjusted for the number of expectations: of 40 "
            "differences that are not there, about one is confirmed as slower or faster (2.5 % each); "
            "confirming anything else by mistake, and refuting, happen to at most 5 % each. Only p in "
            "brackets is adjusted, over all expectations (Holm)."
        )
    if analysis.fates:
        yield (
            f"Fates of calls are counted: with {FORKS_FOR_OUTCOME} forks or more, confirmed when every fork "
            "has an inlining log and shows it, refuted when all with a log show the opposite. In brackets "
            "the one-sided 95 % bound of the share of node starts that would show it (Clopper and Pearson)."
        )


def _tests(analysis: ExperimentAnalysis) -> str:
    blocked = [row.blocked for row in analysis.rows]
    if any(blocked):
        some = "" if all(blocked) else ", Welch's t over forks where runs were declared unpaired"
        return f"paired t over blocks, on logarithms{some}"
    paired = sum(same_forks(row.baseline, row.contender) for row in analysis.rows)
    if not paired:
        return "Welch's t over forks, on logarithms"
    if paired == len(analysis.rows):
        return "t of pairs, on logarithms: both sides are tasks of the same forks"
    return "Welch's t over forks, on logarithms; t of pairs where both sides are tasks of the same forks"


def _table_lines(spec: TableSpec) -> Iterator[str]:
    if spec.source:
        yield f"Published as: {spec.source}."
    if spec.about:
        yield spec.about


def _about_lines(record: ExperimentRecord) -> Iterator[str]:
    yield from (" ".join(part.split()) for part in record.spec.about.split("\n\n") if part.strip())
    if record.spec.source:
        yield f"Published figures: {record.spec.source}."


def _forks(record: ExperimentRecord, analysis: ExperimentAnalysis) -> str:
    """Return `8 forks of each of 20 sides`, or what exists of them."""
    spec = record.spec
    sides = [
        (count, spec.forks_of(one))
        for one in spec.measurements
        if not one.ingest
        for count in analysis.forks.get(one.name, {}).values()
    ]
    if spec.until_decided and sides:
        counts = [count for count, _ in sides]
        return f"{sum(counts)} forks, {min(counts)} to {max(counts)} of each of {len(sides)} sides"
    if any(count != wanted for count, wanted in sides):
        done, planned = (sum(column) for column in zip(*sides, strict=True))
        return f"{done} of {planned} forks, of {len(sides)} sides"
    if not sides:
        return "index builds only"
    numbers = Counter(wanted for _, wanted in sides)
    (most, alike), *rest = numbers.most_common() or [(spec.forks, 0)]
    text = f"{counted(most, 'fork')} of {f'each of {alike} sides' if alike != 1 else 'one side'}"
    return ", ".join([text, *(f"{forks} of {count}" for forks, count in rest)])


def _took(record: ExperimentRecord) -> str:
    if not record.spent_s:
        return ""
    expected = "" if record.expected_s is None else f" ({duration(record.expected_s)} were expected)"
    return f", which took {duration(record.spent_s)}{expected}"


def _host(run: RunRecord) -> str:
    host = run.environment
    return (
        f"{host.hostname}: {host.cpu_model}, {host.cpus} CPUs, {mebibytes(host.memory_bytes)} memory, Linux "
        f"{host.kernel}, benchctl {host.benchctl}"
    )


def _section(run: RunRecord, heading: str) -> tuple[str, ...]:
    found = (section.lines for section in fact_sections(run) if section.heading == heading)
    return next(found, ())


# As text, Markdown or JSON.

Format = Literal["text", "markdown", "json"]
"""What a report can be printed as; `write` makes the page."""


class ExperimentSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The run of one measurement, as far as readers of figures need it."""

    run: str
    status: RunStatus
    environment: Environment
    engines: tuple[EngineFacts, ...]


class ExperimentDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `json` prints."""

    experiment: ExperimentRecord  # what it asked, as in experiment.json
    analysis: ExperimentAnalysis
    sources: dict[str, ExperimentSource]  # measurement -> its run


def render(
    record: ExperimentRecord,
    runs: _Runs,
    analysis: ExperimentAnalysis,
    output_format: Format = "text",
    *,
    width: int = WIDE,
) -> str:
    """Write the report.

    Text (of `width` columns) and Markdown are for readers, JSON for programs, in full precision.

    Raises:
        UsageError: If there is no such format.
    """
    match output_format:
        case "text":
            return _text(record, runs, analysis, width)
        case "markdown":
            return _markdown(record, runs, analysis)
        case "json":
            sources = {
                name: ExperimentSource(run.id, run.status, run.environment, run.engines)
                for name, run in runs.items()
            }
            return json_text(ExperimentDocument(record, analysis, sources))
        case _:
            raise UsageError(f"no output format '{output_format}'", hint="one of text, markdown, json")


def _text(record: ExperimentRecord, runs: _Runs, analysis: ExperimentAnalysis, width: int) -> str:
    notes = _collect_notes(analysis)

    def lines(*sentences: str) -> str:
        return render_page([], sentences, width)

    blocks = [lines(record.spec.title)]
    blocks += [lines(text) for text in _about_lines(record)]
    blocks.append(lines(*_setting_lines(record, runs, analysis)))
    expected = _expectation_grid(analysis)
    if expected is not None:
        blocks.append(lines(_expectation_summary(analysis)))
        blocks.append(render_page([expected], _expectation_remarks(record, analysis), width))
    fates = _fate_grid(record.spec, analysis)
    if fates is not None:
        blocks.append(render_page([fates], _fate_lines(record.spec, analysis), width))
    for table, spec in zip(analysis.tables, record.spec.tables, strict=True):
        blocks.append(render_page([_narrow_grid(table, spec, notes)], _table_lines(spec), width))
    blocks.append(render_page([], _legend(analysis), width, notes=notes))
    blocks.append(lines(*_scale_lines(analysis)))
    blocks.append(_listed("How sides differ:", _difference_lines(runs, analysis), width))
    blocks.append(_listed("Runs:", run_lines(record), width))
    return "\n".join(block for block in blocks if block)


def _listed(heading: str, items: Iterator[str], width: int) -> str:
    lines = [render_page([], [item], width - 2).splitlines() for item in items]
    if not lines:
        return ""
    return "\n".join([heading, *(f"  {line}" for own in lines for line in own)]) + "\n"


def _markdown(record: ExperimentRecord, runs: _Runs, analysis: ExperimentAnalysis) -> str:
    notes = _collect_notes(analysis)
    parts = [f"## {escaped(record.spec.title)}"]
    parts += [escaped(text) for text in _about_lines(record)]
    parts.append(_items(_setting_lines(record, runs, analysis)))
    expected = _expectation_grid(analysis)
    if expected is not None:
        parts += [escaped(_expectation_summary(analysis)), grid_table(expected)]
        parts.append(_items(_expectation_remarks(record, analysis)))
    fates = _fate_grid(record.spec, analysis)
    if fates is not None:
        parts += [grid_table(fates), _items(_fate_lines(record.spec, analysis))]
    for table, spec in zip(analysis.tables, record.spec.tables, strict=True):
        parts.append(grid_table(_wide_grid(table, spec, notes)))
        parts += [escaped(text) for text in _table_lines(spec)]
    parts.append(_items(_legend(analysis)))
    parts += note_lists(notes)
    parts.append(_items(_scale_lines(analysis)))
    differences = _items(_difference_lines(runs, analysis))
    parts += ["### How sides differ", differences] if differences else []
    parts += ["### Runs", "\n".join(["```text", *map(visible, run_lines(record)), "```"])]
    return "\n\n".join(part for part in parts if part) + "\n"


def _items(lines: Iterator[str]) -> str:
    return "\n".join(f"- {escaped(line)}" for line in lines)


# As a page: the frame, style and tables of the pages of runs.


class _Section(msgspec.Struct, frozen=True):
    table: Grid
    lines: tuple[str, ...]


def write(
    folder: Path,
    record: ExperimentRecord,
    runs: _Runs,
    analysis: ExperimentAnalysis,
    pages: Mapping[str, str] | None = None,
) -> Path:
    """Write the page and the files that it needs, without network, and return the path of `index.html`.

    The folder is made if missing. `pages` are those of its runs, by measurement, which it links to.

    Raises:
        UsageError: If the folder holds a page that benchctl did not write.
        BenchctlError: If it cannot be written.
    """
    links = {name: f"{anchor(runs[name].id)}.html" for name in pages or {}}
    texts = {links[name]: text for name, text in (pages or {}).items()}
    return write_pages(folder, {**texts, "index.html": page(record, runs, analysis, links)})


def page(
    record: ExperimentRecord,
    runs: _Runs,
    analysis: ExperimentAnalysis,
    links: Mapping[str, str] | None = None,
) -> str:
    """Return the page as text; style and script are in a folder with it, and its runs' pages at `links`."""
    notes = _collect_notes(analysis)
    expected = _expectation_grid(analysis)
    fates = _fate_grid(record.spec, analysis)
    return (
        templates(("benchctl.experiment", ""))
        .get_template("experiment.html.jinja")
        .render(
            title=record.spec.title,
            subtitle=tuple(_setting_lines(record, runs, analysis)),
            about=tuple(_about_lines(record)),
            summary=_expectation_summary(analysis) if expected is not None else "",
            expectations=expected,
            remarks=tuple(_expectation_remarks(record, analysis)),
            fates=fates,
            fate_lines=tuple(_fate_lines(record.spec, analysis)),
            sections=[
                _Section(_wide_grid(found, spec, notes), tuple(_table_lines(spec)))
                for found, spec in zip(analysis.tables, record.spec.tables, strict=True)
            ],
            legend=tuple(_legend(analysis)),
            notes=[doubt.text for doubt in notes.numbered],
            general=[doubt.text for doubt in notes.general],
            scale=tuple(_scale_lines(analysis)),
            differences=tuple(_difference_lines(runs, analysis)),
            runs="\n".join(run_lines(record)),
            links=links or {},
            folder=FOLDER,
            inline=False,
            version=benchctl.__version__,
            policy=content_policy(inline=False),
            palette=embedded(dark_palette()),
        )
    )
