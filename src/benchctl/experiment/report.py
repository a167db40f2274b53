"""An experiment's report: expectations, then tables beside what was published."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, Literal

import msgspec

from benchctl.evidence.inlining_report import FOUND_WORDS, PARTLY
from benchctl.experiment.comparisons import ExperimentRow, Runs
from benchctl.experiment.judge import (
    FORKS_FOR_OUTCOME,
    ExpectationResult,
    ExperimentAnalysis,
    ExperimentTable,
    FateGroup,
    Outcome,
    SiteFates,
)
from benchctl.experiment.record import CallSite, ExperimentRecord, ExperimentSpec, TableSpec
from benchctl.report.facts import fact_sections
from benchctl.report.layout import better, change_cells, misses, p_column, verdict_cell
from benchctl.report.numbers import (
    NOT_AVAILABLE,
    counted,
    duration,
    figure,
    json_text,
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
    Items,
    Notes,
    Section,
    Table,
    Title,
    judged,
    markdown,
    named,
    plain,
    worded,
)
from benchctl.stats.compare import FORKS_FOR_QUOTING, Comparison, Verdict
from benchctl.stats.metrics import metric_of

Format = Literal["text", "markdown", "html", "json"]

# What the JVM did at call sites, beside the figures of the forks in which it did so.

_AROUND = re.compile(r"^.*[.$](?=[^\W\d])", re.DOTALL)
_TITLE = "What the JVM did"
_READING = (
    f"Fates: in the newest compilation by C2 that shows how the call is made. {PARTLY}. Receivers: with the "
    "calls that type profiles had counted when C2 compiled, over these forks; HotSpot prints none of a "
    "virtual call. Forks were grouped by their fates afterwards: a difference between their "
    "figures is a lead, not a test of it."
)
_SURENESS = 0.95


def _fate_table(spec: ExperimentSpec, analysis: ExperimentAnalysis) -> Table:
    """Return a line for every fate of every call site and variant."""
    units = " or ".join(dict.fromkeys(one.unit for one in analysis.call_sites))
    columns = (
        worded("Call"), VARIANT, worded("Fate"), "Forks", worded("Receivers"), named("Task"),
        f"Throughput, {units}",
    )  # fmt: skip
    sites = {site.name: site for site in spec.call_sites}
    return Table.of(_TITLE, columns, (line for one in analysis.call_sites for line in _lines(sites, one)))


def _lines(sites: Mapping[str, CallSite], one: SiteFates) -> Iterator[tuple[Cell | str, ...]]:
    site, total = sites[one.site], sum(len(group.forks) for group in one.groups)
    label: Cell | str = ABOVE if one.variant != site.variants[0] else site.label
    variant = one.variant
    if not one.groups:
        yield label, variant, "no log", NOT_AVAILABLE, "", site.task, NOT_AVAILABLE
    for group in one.groups:
        forks, value = f"{len(group.forks)} of {total}", figure(group.throughput_per_s)
        yield label, variant, FOUND_WORDS[group.found], forks, _receivers(group), site.task, value
        label, variant = ABOVE, ""


def _receivers(group: FateGroup) -> str:
    # Without packages, and a nested class without its outer class, unless it is numbered.
    named = ", ".join(f"{_AROUND.sub('', name)} {calls:,}" for name, calls in group.receivers.items())
    others = group.calls - sum(group.receivers.values())
    return f"{named}, others {others:,}" if named and others > 0 else named


def _fate_lines(spec: ExperimentSpec, analysis: ExperimentAnalysis) -> Iterator[str]:
    for site in spec.call_sites:
        about = " ".join(site.about.split())
        yield f"{site.label}: {site.callee} in {site.method}, measurement {site.measurement}. {about}".strip()
        for one in analysis.call_sites:
            for call in one.unread if one.site == site.name else ():
                where = f"{site.measurement}/{one.variant}, block {call.block}"
                yield f"No inlining log of {where}: {call.words}."
    yield _READING


# Expectations and comparisons as tables.

_LISTED = 4
"""Number of an expectation's comparisons that are shown one by one."""
_SHOWN_LIKE: Final[dict[Outcome, Verdict]] = {
    "confirmed": "faster",
    "refuted": "slower",
    "inconclusive": "different",
}


def _expectation_table(analysis: ExperimentAnalysis, notes: Notes) -> Table:
    labels = {row.asked.name: row.asked.label for row in analysis.rows}
    columns = (
        "No", worded("Expectation"), Column("Outcome", "verdict"), worded("Change (95% interval)"),
        "p (Holm)", NOTES,
    )  # fmt: skip
    lines = (
        (
            str(number),
            one.asked.statement,
            judged(_SHOWN_LIKE[one.outcome], one.outcome + "?" * one.provisional),
            _fate_text(one) if one.asked.fate is not None else _effects(one, labels),
            NOT_AVAILABLE if one.p is None else f"{p_value(one.p)} ({p_value(one.p_adjusted)})",
            notes.cell(one.caveats),
        )
        for number, one in enumerate(analysis.expectations, 1)
    )
    return Table.of("Expectations", columns, lines).without_empty(NOTES.title)


def _fate_text(one: ExpectationResult) -> str:
    """Return `virtual call in 3 of 4 forks`, or `inlined in 4 of 4 forks (at least 47%)` if all agree.

    Where n forks of n show it, at least a share of 0.05^(1/n) of all node starts would, at 95%: the
    one-sided bound of Clopper and Pearson (Biometrika 26, 1934).
    """
    fate = FOUND_WORDS[one.asked.fate.is_] if one.asked.fate else ""
    text = f"{fate} in {one.showing} of {counted(one.forks, 'fork')}"
    if not one.forks or 0 < one.showing < one.forks:
        return text
    least = 100 * (1 - _SURENESS) ** (1 / one.forks)
    return f"{text} (at least {least:.0f}%)" if one.showing else f"{text} (at most {100 - least:.0f}%)"


def _effects(one: ExpectationResult, labels: Mapping[str, str]) -> str:
    """Return the effects of an expectation, or how many of its comparisons show it."""
    if len(one.judged) > _LISTED:
        counts = Counter(each.outcome for each in one.judged)
        return f"of {len(one.judged)} comparisons " + ", ".join(
            f"{counts[outcome]} {outcome}" for outcome in _SHOWN_LIKE if counts[outcome]
        )
    unit = one.asked.tolerance[1]
    effects = [(labels.get(each.name, ""), _effect(each.comparison, unit)) for each in one.judged]
    return "; ".join(f"{name}: {effect}" if len(effects) > 1 else effect for name, effect in effects)


def _effect(comparison: Comparison, unit: str) -> str:
    """Return `+3.2% (-1.0..+7.6)`."""
    change, reach = change_cells(comparison)
    if change == NOT_AVAILABLE:
        return change
    return with_unit(change, unit) + ("" if reach.text == NOT_AVAILABLE else f" ({reach.text})")


def _expectation_summary(analysis: ExperimentAnalysis) -> str:
    """Return `Of 22 expectations, 12 confirmed, 3 refuted, 7 left open`, and which may not be quoted."""
    counts = Counter(one.outcome for one in analysis.expectations)
    summary = (
        f"Of {counted(counts.total(), 'expectation')}, {counts['confirmed']} confirmed, "
        f"{counts['refuted']} refuted, {counts['inconclusive']} inconclusive."
    )
    doubtful = [str(number) for number, one in enumerate(analysis.expectations, 1) if one.provisional]
    if not doubtful:
        return summary
    return (
        f"{summary} Provisional, do not report: {', '.join(doubtful)} (fewer than {FORKS_FOR_QUOTING} "
        "forks or index builds per variant, or tasks that were not steady)."
    )


def _expectation_remarks(record: ExperimentRecord, analysis: ExperimentAnalysis) -> Iterator[str]:
    """Return remarks beyond the table by expectation number, and what to run next."""
    lacking = []
    for number, one in enumerate(analysis.expectations, 1):
        remarks = [*one.doubts]
        if one.further is not None:
            remarks.append(f"inconclusive: about {one.further} more forks per variant")
            lacking.append(one.further)
        remarks += [f"needs {one.asked.needs.strip().removesuffix('.')}"] if one.asked.needs else []
        if remarks:
            yield f"{number}: {'; '.join(remarks)}."
    compared = [row.comparison for row in analysis.rows if not row.missing]
    forks = [min(one.replicates) for one in compared if one.replicate == "fork"]
    further = max(*lacking, FORKS_FOR_QUOTING - min(forks, default=FORKS_FOR_QUOTING), 0)
    if record.status == "complete" and further:
        yield f"Next: benchctl extend {record.id} --forks {further}"


def _comparison_table(table: ExperimentTable, spec: TableSpec, notes: Notes) -> Table:
    kinds = {(row.asked.metric, row.unit) for row in table.rows}
    # Differences have their unit in every cell.
    in_units = any(row.comparison.compared_as == "difference" for row in table.rows)
    figures = worded("Figures")
    columns = (
        named("Comparison"), figures, spec.baseline, spec.contender,
        "Diff" if in_units else "Diff %", INTERVAL, p_column(row.comparison for row in table.rows), VERDICT,
        NOTES,
    )  # fmt: skip
    lines: list[tuple[Cell | str, ...]] = []
    for row in table.rows:
        # `docs/s, docs/s` says nothing twice.
        what = (
            "" if len(kinds) == 1 else ", ".join(dict.fromkeys((metric_of(row.asked.metric).title, row.unit)))
        )
        label: Cell | str = f"{row.asked.label}: {what}" if what else row.asked.label
        if row.asked.published is not None:
            baseline, contender = row.asked.published
            change = signed_percent(100 * (contender / baseline - 1), 2) + "%" * in_units
            # No digits that the source has not.
            lines.append((label, "published", f"{baseline:,.10g}", f"{contender:,.10g}", change, *[""] * 4))
            label = ABOVE
        verdict = (
            judged(None, "not measured")
            if row.missing
            else verdict_cell(row.comparison, row.figures, row.caveats)
        )
        lines.append((label, "measured", *_figures(row, in_units), verdict, notes.cell(row.caveats)))
    title = table.title
    if len(kinds) == 1:
        metric, unit = metric_of(table.rows[0].asked.metric), table.rows[0].unit
        title = f"{title}: {metric.title}, {unit} ({better(metric)})"
    shown = Table.of(title, columns, lines)
    return shown if any(row.asked.published for row in table.rows) else shown.without(figures.title)


def _figures(row: ExperimentRow, in_units: bool) -> tuple[Cell | str, ...]:  # noqa: FBT001 - of the table
    comparison = row.comparison
    values = [side.value for side in row.figures]
    if comparison.paired and not comparison.gapped and comparison.baseline_value is not None:
        # Of the pairs that the change is of.
        values = [comparison.baseline_value, comparison.contender_value]
    change, reach = change_cells(comparison, row.figures)
    if in_units and change != NOT_AVAILABLE:
        change = with_unit(change, row.unit if comparison.compared_as == "difference" else "%")
    return (*map(figure, values), change, reach, p_value(comparison.p_adjusted))


# The lines around tables: what it was run on, how to read it, how to look closer.


def _setting_lines(record: ExperimentRecord, runs: Runs, analysis: ExperimentAnalysis) -> Iterator[str]:
    ended = f": {record.stopped}" if record.stopped else ""
    moment = record.created.replace("T", " ").replace("+00:00", " UTC").replace("Z", " UTC")
    yield f"{record.id}, {moment}, {record.status}{ended}."
    counts = [count for sides in analysis.forks.values() for count in sides.values() if count]
    each = " to ".join(map(str, sorted({min(counts), max(counts)}))) if counts else ""
    forks = f"{counted(sum(counts), 'fork')}, {each} of each of {counted(len(counts), 'side')}"
    took = f", which took {duration(record.spent_s)}" if record.spent_s else ""
    yield f"Order seed {record.spec.seed}; {forks if counts else 'no forks'}{took}."
    for plan in (run.plan for run in runs.values()):
        if plan.micro is None:
            yield f"{plan.corpus.documents:,} documents, heap {plan.heap_mb} MiB."
    # All were measured on one host.
    yield from (f"{line}." for line in _facts(dict([*runs.items()][:1]), "Host"))
    yield from (f"{line}." for line in _facts(runs, "Engines"))


def _facts(runs: Runs, heading: str) -> tuple[str, ...]:
    """Return what the facts of runs have below a heading, once each."""
    sections = (section for run in runs.values() for section in fact_sections(run))
    return tuple(
        dict.fromkeys(line for section in sections if section.heading == heading for line in section.lines)
    )


def run_lines(record: ExperimentRecord) -> Iterator[str]:
    """Return each measurement, and the commands that show its run and its evidence."""
    width = max(map(len, record.spec.measurements), default=0)
    for name, measurement in record.spec.measurements.items():
        run = record.runs.get(name)
        looks = ["show", "explain"] if measurement.explained else ["show"]
        shown = "; ".join(f"benchctl {word} {run}" for word in looks) if run else "not begun"
        yield f"{name:<{width}}  {shown}"


def _legend(analysis: ExperimentAnalysis) -> Iterator[str]:
    paired = {row.comparison.paired for row in analysis.rows}
    tests = {True: "paired t over blocks", False: "Welch's t over index builds"}
    used = " or ".join(tests[one] for one in sorted(paired, reverse=True))
    looks = in_spite_of_looks(row.comparison for row in analysis.rows)
    yield (
        "Values: geometric means over forks. Diff %: second column over the first, minus one; the verdict is "
        f"about the second. Interval and p: {used}, on logarithms; intervals are unadjusted, p is adjusted "
        f"over the rows of its table (Benjamini-Hochberg){looks}."
    )
    yield from misses(row.comparison for row in analysis.rows)
    if any(row.comparison.compared_as != "ratio" for row in analysis.rows):
        yield (
            "Differences and values of several tasks: arithmetic means over forks, Fieller's interval "
            "of ratios; expectations of differences use a margin in their unit."
        )
    margins = {one.asked.tolerance[::-1] for one in analysis.expectations if one.judged}
    if margins:
        listed = ", ".join(with_unit(f"{margin:g}", unit) for unit, margin in sorted(margins))
        yield (
            f"Outcomes follow from verdicts, with margins of {listed}, and p adjusted over all expectations "
            "(Holm)."
        )
    if any(one.asked.fate for one in analysis.expectations):
        yield (
            f"Fates of calls are counted, over {FORKS_FOR_OUTCOME} forks or more. In brackets the one-sided "
            "95% bound of the share of node starts that would show it (Clopper and Pearson)."
        )


# As text, Markdown, a page, or JSON.


class ExperimentDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Content of `json`."""

    experiment: ExperimentRecord  # what it asked, as in experiment.json
    analysis: ExperimentAnalysis


def render(
    record: ExperimentRecord,
    runs: Runs,
    analysis: ExperimentAnalysis,
    output_format: Format = "text",
    *,
    width: int = WIDE,
) -> str:
    """Write the report.

    Text (of `width` columns), Markdown and HTML are for readers, JSON for programs, in full precision.
    """
    if output_format == "json":
        return json_text(ExperimentDocument(record, analysis))
    sections = _sections(record, runs, analysis)
    if output_format == "html":
        # Templates take a while to load, which no other form needs.
        from benchctl.report.html import render_blocks  # noqa: PLC0415 - see above

        return render_blocks(record.spec.title, (block for section in sections for block in section))
    return markdown(sections) if output_format == "markdown" else plain(sections, width)


def _sections(record: ExperimentRecord, runs: Runs, analysis: ExperimentAnalysis) -> list[Section]:
    spec = record.spec
    own = [*(one.caveats for one in analysis.expectations), *(row.caveats for row in analysis.rows)]
    notes = Notes(tuple(dict.fromkeys(doubt for each in own for doubt in each)), analysis.caveats)
    sections: list[Section] = [[Title(spec.title)]]
    sections += [[" ".join(part.split())] for part in spec.about.split("\n\n") if part.strip()]
    sections += [[f"Published figures: {spec.source}."]] if spec.source else []
    sections.append([*dict.fromkeys(_setting_lines(record, runs, analysis))])
    if analysis.expectations:
        remarks = [*_expectation_remarks(record, analysis)]
        sections += [[_expectation_summary(analysis)], [_expectation_table(analysis, notes)], remarks]
    if spec.call_sites:
        sections += [[_fate_table(spec, analysis)], [*_fate_lines(spec, analysis)]]
    for table, asked in zip(analysis.tables, spec.tables, strict=True):
        captions = [f"Published as: {asked.source.strip()}."] if asked.source else []
        captions += [asked.about.strip()] if asked.about else []
        sections += [[_comparison_table(table, asked, notes)], captions]
    sections.append([*_legend(analysis), notes])
    if differences := _facts(runs, "Differences between variants"):
        sections.append([Items("How sides differ", differences)])
    return [*sections, [Items("Runs", tuple(run_lines(record)))]]
