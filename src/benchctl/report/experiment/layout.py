"""What the JVM did at an experiment's call sites, beside the figures of the forks in which it did so."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from benchctl.report.grid import (
    ABOVE,
    INTERVAL,
    NOTES,
    VARIANT,
    VERDICT,
    Cell,
    Column,
    Grid,
    bounds,
    judged,
    worded,
)
from benchctl.report.inlining import FOUND_WORDS, PARTLY
from benchctl.report.layout import Notes, better, verdict_cell
from benchctl.report.numbers import (
    NOT_AVAILABLE,
    counted,
    duration,
    figure,
    interval,
    p_value,
    signed_percent,
)
from benchctl.report.tables import break_name
from benchctl.results.experiment import CallSite, ExperimentSpec, Published, TableSpec
from benchctl.stats.compare import Verdict
from benchctl.stats.experiment.expectations import OPEN
from benchctl.stats.experiment.model import (
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
)
from benchctl.stats.metrics import metric_of
from benchctl.stats.multiplicity import MOST_BLOCKS

_AROUND = re.compile(r"^.*[.$](?=[^\W\d])", re.DOTALL)
TITLE = "What the JVM did"
_READING = (
    f"Fates: in the newest compilation by C2 that says how the call is made. {PARTLY}. Receivers: with the "
    "calls that type profiles had counted when C2 compiled, over these forks; HotSpot prints none of a "
    "virtual call."
)
_AFTER_THE_FACT = (
    "Forks that fared differently were put together after the fact: a difference between their figures is a "
    "lead, not a test of it."
)


def fate_grid(spec: ExperimentSpec, analysis: ExperimentAnalysis) -> Grid | None:
    """A line for every fate of every call site and variant; None where no call site is asked for."""
    if not spec.call_sites:
        return None
    results = {one.name: one for one in analysis.call_sites}
    units = " or ".join(dict.fromkeys(one.unit for one in results.values()))
    tasks = list(dict.fromkeys(site.task for site in spec.call_sites))
    alone = tasks[0] if len(tasks) == 1 else ""
    task = worded("Task")
    columns = (
        worded("Call"), VARIANT, worded("Fate"), "Forks", worded("Receivers"), task,
        f"{alone or 'Throughput'}, {units}",
    )  # fmt: skip
    lines = (line for site in spec.call_sites for line in _lines(site, results[site.name]))
    grid = Grid.of(TITLE, columns, lines)
    return grid.without(task.title) if alone else grid


def fate_lines(spec: ExperimentSpec, analysis: ExperimentAnalysis) -> Iterator[str]:
    """What is said below: where calls are, which logs are missing, and how to read it."""
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


def measured_text(one: FateResult) -> str:
    """`virtual call in 3 of 4 forks`; `inlined in 4 of 4 forks (at least 47 %)` where none differs."""
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
    named = ", ".join(f"{_short(one.name)} {one.calls:,}" for one in group.receivers)
    others = group.calls - sum(one.calls for one in group.receivers)
    return f"{named}, others {others:,}" if named and others > 0 else named


def _short(name: str) -> str:
    """A class without its package, and a nested one without the class around it, but for a number's."""
    return _AROUND.sub("", name)


def _missing(site: CallSite, result: SiteResult) -> Iterator[str]:
    """Logs that are not there, and code that was given up."""
    for one in result.variants:
        name = f"{site.measurement}/{one.variant}"
        for block, words in ((each.block, each.words) for each in one.unread):
            yield f"No inlining log of {name}, block {block}: {words}."
        if not one.groups and not one.unread:
            yield f"No fork of {name} with an inlining log has finished."
        yield from _given_up(name, one)


def _given_up(name: str, one: SiteVariant) -> Iterator[str]:
    blocks = sorted(each.block for group in one.groups for each in group.forks if each.given_up)
    if blocks:
        listed = ", ".join(map(str, blocks))
        yield f"{name}: the JVM stopped using that compilation later on, in block {listed}."


# An experiment's analysis as titled grids of words, for a terminal (narrow) or a page (wide).


_EXPECTATION_COLUMNS = (
    "No", worded("Expectation"), Column("Outcome", "verdict"), worded("Change in speed (95 % interval)"),
    "p (Holm)",
)  # fmt: skip
_LISTED = 4
"""So many comparisons of an expectation are shown one by one."""
_LABEL_WIDTH = 28
_SHOWN_LIKE: Final[dict[Outcome, Verdict]] = {
    "confirmed": "faster",
    "refuted": "slower",
    "inconclusive": "different",
}
_WORDS: Final[dict[Outcome, str]] = {"confirmed": "confirmed", "refuted": "refuted", "inconclusive": "open"}


def collect_notes(analysis: ExperimentAnalysis) -> Notes:
    """Number the caveats in the order in which a reader meets them."""
    met = dict.fromkeys(doubt for row in analysis.rows for doubt in row.caveats)
    return Notes(tuple(met), analysis.caveats)


def expectation_grid(analysis: ExperimentAnalysis) -> Grid | None:
    """Every expectation with its outcome; None where there is none."""
    if not analysis.expectations and not analysis.fates:
        return None
    labels = {row.name: row.label for row in analysis.rows}
    lines = (
        (
            str(number),
            one.statement,
            judged(_SHOWN_LIKE[one.outcome], one.outcome),
            *_support(one, labels),
        )
        for number, one in analysis.numbered
    )
    return Grid.of("Expectations", _EXPECTATION_COLUMNS, lines)


def expectation_summary(analysis: ExperimentAnalysis) -> str:
    """`Of 22 expectations, 12 confirmed, 3 refuted, 7 left open`: the first thing to know."""
    counts = Counter(one.outcome for one in analysis.expectations)
    counts.update(one.outcome for one in analysis.fates)
    total = counted(counts.total(), "expectation")
    return (
        f"Of {total}, {counts['confirmed']} confirmed, {counts['refuted']} refuted, "
        f"{counts['inconclusive']} left open."
    )


def expectation_remarks(analysis: ExperimentAnalysis) -> Iterator[str]:
    """What the grid does not say of expectations, by their numbers; a doubt that several share once."""
    labels = {row.name: row.label for row in analysis.rows}
    doubts: dict[str, list[str]] = {}
    for number, one in analysis.numbered:
        reasons = () if isinstance(one, FateResult) else _reasons(one, labels)
        remarks = [*reasons, *_lacks(one), *_needs(one)]
        if remarks:
            yield f"{number}: {'; '.join(remarks)}."
        for doubt in one.doubts:
            doubts.setdefault(doubt, []).append(str(number))
    for doubt, numbers in doubts.items():
        yield f"{', '.join(numbers)}: {doubt}."


def narrow_grid(table: ExperimentTable, spec: TableSpec, notes: Notes) -> Grid:
    """What was published above what was measured, line by line."""
    figures = worded("Figures")
    columns = (
        worded("Comparison"), figures, spec.baseline, spec.contender, "Diff %", INTERVAL, "p", VERDICT, NOTES,
    )  # fmt: skip
    lines: list[tuple[Cell | str, ...]] = []
    for row in table.rows:
        name = row_label(row, table)
        label: Cell | str = name if " " in name else break_name(name, _LABEL_WIDTH)
        if row.published is not None:
            lines.append((label, "published", *_published(row), "", "", "", ""))
            label = ABOVE
        lines.append((label, "measured", *_figures(row), _verdict(row), notes.cell(row.caveats)))
    grid = Grid.of(grid_title(table), columns, lines)
    return grid if any(row.published for row in table.rows) else grid.without(figures.title)


def wide_grid(table: ExperimentTable, spec: TableSpec, notes: Notes) -> Grid:
    """What was published beside what was measured."""
    published = (f"published {spec.baseline}", f"published {spec.contender}", "published diff %")
    columns = (
        worded("Comparison"), *published, spec.baseline, spec.contender,
        "Diff %", INTERVAL, "p", VERDICT, NOTES,
    )  # fmt: skip
    lines = (
        (
            row_label(row, table),
            *_published(row),
            *_figures(row),
            _verdict(row),
            notes.cell(row.caveats),
        )
        for row in table.rows
    )
    return Grid.of(grid_title(table), columns, lines).without_empty(*published)


def grid_title(table: ExperimentTable) -> str:
    """The table's title with its metric, where all rows have the same."""
    metrics = dict.fromkeys((row.metric, row.unit) for row in table.rows)
    if len(metrics) != 1:
        return table.title
    ((key, unit),) = metrics
    metric = metric_of(key)
    return f"{table.title}: {metric.title}, {unit} ({better(metric)})"


def row_label(row: ExperimentRow, table: ExperimentTable) -> str:
    """The row's label; with its metric where the table has several."""
    if len({(one.metric, one.unit) for one in table.rows}) == 1:
        return row.label
    return f"{row.label}: {metric_of(row.metric).title}, {row.unit}"


def _support(one: ExpectationResult | FateResult, labels: Mapping[str, str]) -> tuple[str, str]:
    """What was measured or counted, and its p."""
    if isinstance(one, FateResult):
        return measured_text(one), NOT_AVAILABLE
    p = NOT_AVAILABLE if one.p is None else f"{p_value(one.p)} ({p_value(one.p_adjusted)})"
    return _measured(one, labels), p


def _lacks(one: ExpectationResult | FateResult) -> Iterator[str]:
    if isinstance(one, FateResult) or one.lacks is None:
        return
    if one.lacks.forks is None:
        yield f"{MOST_BLOCKS} forks a side would not decide it, if it stays as it is"
    else:
        forks = counted(one.lacks.forks, "further fork")
        yield f"takes about {forks} a side ({duration(one.lacks.seconds)}), if it stays as it is"


def _needs(one: ExpectationResult | FateResult) -> Iterator[str]:
    if one.needs:
        yield f"needs {one.needs.strip().removesuffix('.')}"


def _measured(one: ExpectationResult, labels: Mapping[str, str]) -> str:
    """The estimates of an expectation: one by one, or of many their range."""
    if len(one.judged) <= _LISTED:
        alone = len(one.judged) == 1
        return "; ".join(_estimate(each, "" if alone else labels[each.comparison]) for each in one.judged)
    counts = Counter(each.outcome for each in one.judged)
    speeds = [each.speed_percent for each in one.judged if each.speed_percent is not None]
    spread = f"; {interval(min(speeds), max(speeds))} %" if speeds else ""
    listed = ", ".join(f"{counts[outcome]} {word}" for outcome, word in _WORDS.items() if counts[outcome])
    return f"of {len(one.judged)} comparisons {listed}{spread}"


def _estimate(judged: Judged, label: str) -> str:
    lead = f"{label}: " if label else ""
    if judged.speed_percent is None:
        return f"{lead}{NOT_AVAILABLE}"
    change = f"{lead}{signed_percent(judged.speed_percent)} %"
    if judged.low_percent is None:
        return change
    return f"{change} ({interval(judged.low_percent, judged.high_percent)})"


def _reasons(one: ExpectationResult, labels: Mapping[str, str]) -> Iterator[str]:
    """Why comparisons are open or what they refute, where the outcome of all does not say it."""
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
    return (*_printed(row.published), change)


def _printed(published: Published) -> tuple[str, str]:
    """As it was printed: no digits that the source has not."""
    return f"{published.baseline:,.10g}", f"{published.contender:,.10g}"


def _figures(row: ExperimentRow) -> tuple[Cell | str, ...]:
    comparison = row.comparison
    values = [side.value for side in row.figures]
    if comparison.paired and comparison.baseline_value is not None:
        # Of the pairs that the change is of.
        values = [comparison.baseline_value, comparison.contender_value]
    return (
        *map(figure, values),
        signed_percent(comparison.effect_percent),
        bounds(comparison.low_percent, comparison.high_percent),
        p_value(comparison.p_adjusted),
    )


def _verdict(row: ExperimentRow) -> Cell:
    """As in tables of runs, but that the second column is always who is faster or slower."""
    if row.missing:
        return judged(None, "not measured")
    return verdict_cell(row.comparison, row.figures, row.caveats)
