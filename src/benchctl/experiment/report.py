"""An experiment's report, printed or as a page: expectations, then tables beside what was published."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from operator import add
from pathlib import Path
from typing import Final, Literal

import msgspec
from markupsafe import Markup

from benchctl.errors import UsageError
from benchctl.evidence.inlining_report import FOUND_WORDS, PARTLY
from benchctl.experiment.comparisons import (
    ExpectationResult,
    ExperimentAnalysis,
    ExperimentRow,
    ExperimentTable,
    FateGroup,
    FateResult,
    Outcome,
    SiteResult,
)
from benchctl.experiment.judge import FORKS_FOR_OUTCOME
from benchctl.experiment.record import (
    CallSite,
    ExperimentRecord,
    ExperimentSpec,
    TableSpec,
)
from benchctl.report.facts import fact_sections
from benchctl.report.html.page import write_pages
from benchctl.report.html.parts import PageBlock, Part, anchor, link, rendered
from benchctl.report.layout import MISSES, better, change_cells, verdict_cell
from benchctl.report.numbers import (
    NOT_AVAILABLE,
    counted,
    duration,
    figure,
    json_text,
    mebibytes,
    p_value,
    signed_percent,
    with_unit,
)
from benchctl.report.sentences import in_spite_of_looks
from benchctl.report.table import (
    ABOVE,
    INTERVAL,
    NOTES,
    VARIANT,
    VERDICT,
    WIDE,
    Cell,
    Column,
    Drawing,
    Items,
    Notes,
    Section,
    Table,
    Title,
    judged,
    named,
    worded,
    written,
)
from benchctl.report.table import Verdict as Answer
from benchctl.results.likeness import unlike
from benchctl.results.model import EngineFacts, Environment, RunRecord, RunStatus
from benchctl.stats.compare import FORKS_FOR_QUOTING, Comparison, Verdict
from benchctl.stats.decisions import further_text
from benchctl.stats.metrics import metric_of

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


def _fate_table(spec: ExperimentSpec, analysis: ExperimentAnalysis) -> Table | None:
    """Return a line for every fate of every call site and variant; None without call sites."""
    if not spec.call_sites:
        return None
    results = {call_site.name: call_site for call_site in analysis.call_sites}
    units = " or ".join(dict.fromkeys(result.unit for result in results.values()))
    tasks = list(dict.fromkeys(site.task for site in spec.call_sites))
    alone = tasks[0] if len(tasks) == 1 else ""
    task = named("Task")
    columns = (
        worded("Call"), VARIANT, worded("Fate"), "Forks", worded("Receivers"), task,
        f"{alone or 'Throughput'}, {units}",
    )  # fmt: skip
    lines = (line for site in spec.call_sites for line in _lines(site, results[site.name]))
    table = Table.of(_TITLE, columns, lines)
    return table.without(task.title) if alone else table


def _fate_lines(spec: ExperimentSpec, analysis: ExperimentAnalysis) -> Iterator[str]:
    if not spec.call_sites:
        return
    results = {call_site.name: call_site for call_site in analysis.call_sites}
    for site in spec.call_sites:
        about = " ".join(site.about.split())
        yield f"{site.label}: {site.callee} in {site.method}, measurement {site.measurement}. {about}".strip()
        yield from _missing(site, results[site.name])
    variants = [variant for result in results.values() for variant in result.variants]
    yield _READING
    if any(len(variant.groups) > 1 for variant in variants):
        yield _AFTER_THE_FACT


def _measured_text(one: FateResult) -> str:
    """Return `virtual call in 3 of 4 forks`, or `inlined in 4 of 4 forks (at least 47%)` if all agree."""
    fate = FOUND_WORDS[one.asked.fate.is_] if one.asked.fate else ""
    text = f"{fate} in {one.showing} of {counted(one.forks, 'fork')}"
    if one.at_least is not None:
        return f"{text} (at least {100 * one.at_least:.0f}%)"
    return text if one.at_most is None else f"{text} (at most {100 * one.at_most:.0f}%)"


def _lines(site: CallSite, result: SiteResult) -> Iterator[tuple[Cell | str, ...]]:
    label: Cell | str = site.label
    for site_variant in result.variants:
        variant = site_variant.variant
        total = sum(len(group.forks) for group in site_variant.groups)
        for group in site_variant.groups:
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
        if not site_variant.groups:
            yield label, variant, "no log", NOT_AVAILABLE, "", site.task, NOT_AVAILABLE
            label = ABOVE


def _receivers(group: FateGroup) -> str:
    # Without packages, and a nested class without its outer class, unless it is numbered.
    named = ", ".join(f"{_AROUND.sub('', receiver.name)} {receiver.calls:,}" for receiver in group.receivers)
    others = group.calls - sum(receiver.calls for receiver in group.receivers)
    return f"{named}, others {others:,}" if named and others > 0 else named


def _missing(site: CallSite, result: SiteResult) -> Iterator[str]:
    for variant in result.variants:
        name = f"{site.measurement}/{variant.variant}"
        for block, words in ((each.block, each.words) for each in variant.unread):
            yield f"No inlining log of {name}, block {block}: {words}."
        if not variant.groups and not variant.unread:
            yield f"No fork of {name} with an inlining log has finished."
        blocks = sorted(each.block for group in variant.groups for each in group.forks if each.given_up)
        if blocks:
            listed = ", ".join(map(str, blocks))
            yield f"{name}: the JVM stopped using that compilation later on, in block {listed}."


# Expectations and comparisons as tables.

_LISTED = 4
"""Number of an expectation's comparisons that are shown one by one."""
_LABEL_WIDTH = 28
_SHOWN_LIKE: Final[dict[Outcome, Verdict]] = {
    "confirmed": "faster",
    "refuted": "slower",
    "inconclusive": "different",
}
_WORDS: Final[dict[Outcome, str]] = {"confirmed": "confirmed", "refuted": "refuted", "inconclusive": "open"}


def _collect_notes(analysis: ExperimentAnalysis) -> Notes:
    caveats = [
        *(expectation.caveats for expectation in analysis.expectations),
        *(row.caveats for row in analysis.rows),
    ]
    return Notes(tuple(dict.fromkeys(doubt for own in caveats for doubt in own)), analysis.caveats)


def _expectation_table(analysis: ExperimentAnalysis, notes: Notes) -> Table | None:
    if not analysis.expectations and not analysis.fates:
        return None
    labels = {row.asked.name: row.asked.label for row in analysis.rows}
    columns = (
        "No", worded("Expectation"), Column("Outcome", "verdict"), worded("Change (95% interval)"),
        "p (Holm)", NOTES,
    )  # fmt: skip
    lines = (
        (str(number), result.asked.statement, _outcome(result), *_support(result, labels, notes))
        for number, result in analysis.numbered
    )
    return Table.of("Expectations", columns, lines).without_empty(NOTES.title)


def _outcome(one: ExpectationResult | FateResult) -> Cell:
    doubtful = isinstance(one, ExpectationResult) and one.provisional
    return judged(_SHOWN_LIKE[one.outcome], f"{one.outcome}{'?' if doubtful else ''}")


def _expectation_summary(analysis: ExperimentAnalysis) -> str:
    """Return `Of 22 expectations, 12 confirmed, 3 refuted, 7 left open`, and which may not be quoted."""
    counts = Counter(result.outcome for _, result in analysis.numbered)
    summary = (
        f"Of {counted(counts.total(), 'expectation')}, {counts['confirmed']} confirmed, "
        f"{counts['refuted']} refuted, {counts['inconclusive']} left open."
    )
    results = [
        (number, result) for number, result in analysis.numbered if isinstance(result, ExpectationResult)
    ]
    doubtful = ", ".join(str(number) for number, result in results if result.provisional)
    if not doubtful:
        return summary
    return (
        f"{summary} Provisional, not to be quoted: {doubtful} (fewer than {FORKS_FOR_QUOTING} forks or index "
        "builds per variant, or tasks that had not settled)."
    )


def _expectation_remarks(record: ExperimentRecord, analysis: ExperimentAnalysis) -> Iterator[str]:
    """Return remarks beyond the table by expectation number, and what to run next."""
    for number, result in analysis.numbered:
        remarks = [*result.doubts] if isinstance(result, FateResult) else [*_reasons(result, analysis)]
        if isinstance(result, ExpectationResult) and result.further is not None:
            remarks.append(f"inconclusive: {further_text(result.further)} forks per variant")
        remarks += [f"needs {result.asked.needs.removesuffix('.')}"] if result.asked.needs else []
        if remarks:
            yield f"{number}: {'; '.join(remarks)}."
    if record.status != "complete":
        return
    more = f"benchctl extend {record.id}"
    if any(expectation.undecided for expectation in analysis.expectations):
        yield f"Next, for what is open: {more} --until-decided"
    elif few := _forks_for_quoting(analysis):
        yield f"Next, with {FORKS_FOR_QUOTING} forks it may be quoted: {more} --forks {few}"


def _forks_for_quoting(analysis: ExperimentAnalysis) -> int:
    compared = [row.comparison for row in analysis.rows if not row.missing]
    forks = [min(comparison.replicates) for comparison in compared if comparison.replicate == "fork"]
    return max(0, FORKS_FOR_QUOTING - min(forks, default=FORKS_FOR_QUOTING))


def _support(
    one: ExpectationResult | FateResult, labels: Mapping[str, str], notes: Notes
) -> tuple[str, str, Cell | str]:
    if isinstance(one, FateResult):
        return _measured_text(one), NOT_AVAILABLE, ""
    p = NOT_AVAILABLE if one.p is None else f"{p_value(one.p)} ({p_value(one.p_adjusted)})"
    return _effects(one, labels), p, notes.cell(one.caveats)


def _effects(one: ExpectationResult, labels: Mapping[str, str]) -> str:
    """Return the effects of an expectation, or how many of its comparisons show it."""
    if len(one.judged) > _LISTED:
        counts = Counter(each.outcome for each in one.judged)
        listed = ", ".join(f"{counts[outcome]} {word}" for outcome, word in _WORDS.items() if counts[outcome])
        return f"of {len(one.judged)} comparisons {listed}"
    several = len(one.judged) > 1
    effects = (_effect(each.comparison, one.asked.tolerance[1]) for each in one.judged)
    leads = (f"{labels[each.name]}: " if several else "" for each in one.judged)
    return "; ".join(map(add, leads, effects))


def _effect(comparison: Comparison, unit: str) -> str:
    """Return `+3.2% (-1.0 to +7.6)`."""
    change, reach = change_cells(comparison)
    if change == NOT_AVAILABLE:
        return change
    return with_unit(change, unit) + ("" if reach.text == NOT_AVAILABLE else f" ({reach.text})")


def _reasons(one: ExpectationResult, analysis: ExperimentAnalysis) -> Iterator[str]:
    """Yield why comparisons have no verdict or which refute it, if the outcome of all does not say so."""
    labels = {row.asked.name: row.asked.label for row in analysis.rows}
    grouped: dict[str, list[str]] = {}
    for each in one.judged:
        reason = each.reason or ("refuted" if each.outcome == "refuted" and len(one.judged) > 1 else "")
        grouped.setdefault(reason, []).append(labels.get(each.name, each.name))
    for reason, names in grouped.items():
        if reason and len(names) < len(one.judged):
            yield f"{', '.join(names)}: {reason}"
        elif reason not in ("", "refuted"):
            yield reason


def _table_table(table: ExperimentTable, spec: TableSpec, notes: Notes) -> Table:
    figures = worded("Figures")
    columns = (
        Column("Comparison", "name", _LABEL_WIDTH), figures, spec.baseline, spec.contender, _diff(table),
        INTERVAL, "p", VERDICT, NOTES,
    )  # fmt: skip
    lines: list[tuple[Cell | str, ...]] = []
    for row in table.rows:
        name = _row_label(row, table)
        label: Cell | str = name
        if row.asked.published is not None:
            *values, change = _published(row.asked.published)
            unit = "%" if change and _diff(table) == "Diff" else ""
            lines.append((label, "published", *values, change + unit, "", "", "", ""))
            label = ABOVE
        lines.append((label, "measured", *_figures(row, table), _verdict(row), notes.cell(row.caveats)))
    shown = Table.of(_table_title(table), columns, lines)
    return shown if any(row.asked.published for row in table.rows) else shown.without(figures.title)


def _table_title(table: ExperimentTable) -> str:
    """Return the table's title, with the metric if all rows share it."""
    metrics = dict.fromkeys((row.asked.metric, row.unit) for row in table.rows)
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
    if len({(row.asked.metric, row.unit) for row in table.rows}) == 1:
        return row.asked.label
    title = metric_of(row.asked.metric).title
    # `rate: docs/s, docs/s` and `size: size, MB` say nothing twice.
    parts = [part for part in (title, row.unit) if part != row.asked.label]
    return f"{row.asked.label}{': ' if len(parts) > 1 else ', '}{', '.join(dict.fromkeys(parts))}"


def _published(published: tuple[float, ...]) -> tuple[str, str, str]:
    baseline, contender, *printed = published
    worked_out = 100 * (contender / baseline - 1)
    change = signed_percent(printed[0], 2) if printed else signed_percent(worked_out)
    # No digits that the source has not.
    return f"{baseline:,.10g}", f"{contender:,.10g}", change


def _figures(row: ExperimentRow, table: ExperimentTable) -> tuple[Cell | str, ...]:
    comparison = row.comparison
    values = [side.value for side in row.figures]
    if comparison.paired and not comparison.gapped and comparison.baseline_value is not None:
        # Of the pairs that the change is of.
        values = [comparison.baseline_value, comparison.contender_value]
    change, reach = change_cells(comparison, row.figures)
    if _diff(table) == "Diff" and change != NOT_AVAILABLE:
        change = with_unit(change, row.unit if _in_unit(row) else "%")
    cells = (
        f"{'>= ' if side.at_least else ''}{figure(value)}"
        for side, value in zip(row.figures, values, strict=True)
    )
    return (*cells, change, reach, p_value(comparison.p_adjusted))


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
    yield (f"{data}order seed {spec.seed}; {_forks(analysis)}{_took(record)}.")
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
        for one, other in product(*row.asked.sides)
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
    width = max((len(measurement.name) for measurement in record.spec.measurements), default=0)
    for measurement in record.spec.measurements:
        run = record.runs.get(measurement.name)
        looks = ["show"] if measurement.evidence is None else ["show", "explain"]
        shown = "; ".join(f"benchctl {word} {run}" for word in looks) if run else "not begun"
        yield f"{measurement.name:<{width}}  {shown}"


def _legend(analysis: ExperimentAnalysis) -> Iterator[str]:
    yield (
        "Values: geometric means over forks. Diff %: second column over the first, minus one; the verdict "
        f"is about the second. Interval and p: {_tests(analysis)}, on logarithms; intervals are unadjusted, "
        "p is adjusted over the rows of its table (Benjamini-Hochberg)"
        f"{in_spite_of_looks(row.comparison for row in analysis.rows)}."
    )
    if any(row.comparison.missed_percent is not None for row in analysis.rows):
        yield f"Misses: {MISSES}."
    if any(row.comparison.compared_as != "ratio" for row in analysis.rows):
        yield (
            "Differences, and what is made of several tasks: arithmetic means over forks, t on the values, "
            "Fieller's interval of ratios, and no ratio to what is not clearly above 0. Verdicts go by the "
            "percentage change; expectations of differences (contender minus baseline) by a margin in their "
            "unit."
        )
    if analysis.expectations:
        listed = sorted({expectation.asked.tolerance[::-1] for expectation in analysis.expectations})
        margins = ", ".join(with_unit(f"{margin:g}", unit) for unit, margin in listed)
        yield (
            f"Outcomes follow from verdicts, with margins of {margins}, and p of a difference adjusted over "
            "all expectations (Holm). Confirmed is the expected verdict; refuted is the opposite, equal "
            "where a difference was expected, or faster or slower where none was. All comparisons have to "
            "show it; one refutes it."
        )
    if analysis.fates:
        yield (
            f"Fates of calls are counted: with {FORKS_FOR_OUTCOME} forks or more, confirmed when every fork "
            "has an inlining log and shows it, refuted when all with a log show the opposite. In brackets "
            "the one-sided 95% bound of the share of node starts that would show it (Clopper and Pearson)."
        )


def _tests(analysis: ExperimentAnalysis) -> str:
    paired = {row.comparison.paired for row in analysis.rows}
    names = {True: "paired t over blocks", False: "Welch's t over index builds"}
    return " or ".join(name for test, name in names.items() if test in paired)


def _table_lines(spec: TableSpec) -> Iterator[str]:
    if spec.source:
        yield f"Published as: {spec.source}."
    if spec.about:
        yield spec.about


def _about_lines(record: ExperimentRecord) -> Iterator[str]:
    yield from (" ".join(part.split()) for part in record.spec.about.split("\n\n") if part.strip())
    if record.spec.source:
        yield f"Published figures: {record.spec.source}."


def _forks(analysis: ExperimentAnalysis) -> str:
    """Return `40 forks, 8 of each of 5 sides`, or from how many to how many."""
    counts = [count for sides in analysis.forks.values() for count in sides.values() if count]
    if not counts:
        return "no forks"
    least, most = min(counts), max(counts)
    each = str(most) if least == most else f"{least} to {most}"
    return f"{counted(sum(counts), 'fork')}, {each} of each of {counted(len(counts), 'side')}"


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
    sections = (section.lines for section in fact_sections(run) if section.heading == heading)
    return next(sections, ())


# As text, Markdown or JSON.

Format = Literal["text", "markdown", "json"]
"""Formats of a report; `write` makes the page."""


class ExperimentSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The run of one measurement, as far as readers of figures need it."""

    run: str
    status: RunStatus
    environment: Environment
    engines: tuple[EngineFacts, ...]


class ExperimentDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Content of `json`."""

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
    if output_format == "json":
        sources = {
            name: ExperimentSource(run.id, run.status, run.environment, run.engines)
            for name, run in runs.items()
        }
        return json_text(ExperimentDocument(record, analysis, sources))
    if output_format not in ("text", "markdown"):
        raise UsageError(f"no output format '{output_format}'", hint="one of text, markdown, json")
    return written(record.spec.title, _sections(record, runs, analysis), output_format, width=width)


class _Part(msgspec.Struct, frozen=True):
    """A part of the report: a sentence, a table, and lines below it."""

    lead: str
    table: Table
    lines: tuple[str, ...]
    heading: str  # of its section of the page


def _parts(record: ExperimentRecord, analysis: ExperimentAnalysis, notes: Notes) -> Iterator[_Part]:
    """Yield expectations, what the JVM did, and tables."""
    expected, fates = _expectation_table(analysis, notes), _fate_table(record.spec, analysis)
    if expected is not None:
        remarks = tuple(_expectation_remarks(record, analysis))
        yield _Part(_expectation_summary(analysis), expected, remarks, "Expectations")
    if fates is not None:
        yield _Part("", fates, tuple(_fate_lines(record.spec, analysis)), _TITLE)
    for table, spec in zip(analysis.tables, record.spec.tables, strict=True):
        yield _Part("", _table_table(table, spec, notes), tuple(_table_lines(spec)), "Tables")


def _sections(record: ExperimentRecord, runs: _Runs, analysis: ExperimentAnalysis) -> list[Section]:
    notes = _collect_notes(analysis)
    sections: list[Section] = [[Title(record.spec.title)], *([text] for text in _about_lines(record))]
    sections.append([*_setting_lines(record, runs, analysis)])
    for part in _parts(record, analysis, notes):
        sections += [[part.lead] if part.lead else [], [part.table], [*part.lines]]
    sections.append([*_legend(analysis), notes])
    if differences := tuple(_difference_lines(runs, analysis)):
        sections.append([Items("How sides differ", differences)])
    return [*sections, [Items("Runs", tuple(run_lines(record)))]]


# As a page: the frame, style and tables of the pages of runs.


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
    parts: dict[str, list[PageBlock]] = {}
    for part in _parts(record, analysis, notes):
        blocks: list[PageBlock] = [*([Answer(part.lead)] if part.lead else []), part.table]
        blocks += [Items("", part.lines)] if part.lines else []
        parts.setdefault(part.heading, []).extend(blocks)
    pages = Markup(", ").join(link(file, name) for name, file in (links or {}).items())
    differences = tuple(_difference_lines(runs, analysis))
    setting: list[PageBlock] = [
        *([Items("", (Markup("Pages of the runs: {}").format(pages),))] if pages else []),
        Drawing(tuple(run_lines(record))),
        *([Items("How sides differ", differences)] if differences else []),
    ]
    return rendered(
        record.spec.title,
        [
            Part("", "", [*_about_lines(record)]),
            *(Part(anchor(heading).lower(), heading, own) for heading, own in parts.items()),
            Part("reading", "How to read it, and notes", [*_legend(analysis), notes]),
            Part("runs", "Runs", setting),
        ],
        subtitle=tuple(_setting_lines(record, runs, analysis)),
    )
