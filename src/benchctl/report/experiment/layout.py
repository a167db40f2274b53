"""An experiment's analysis as titled grids of words, for a terminal (narrow) or a page (wide)."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from benchctl.report.experiment.call_sites import measured_text
from benchctl.report.grid import ABOVE, INTERVAL, NOTES, VERDICT, Cell, Column, Grid, bounds, judged, worded
from benchctl.report.layout import better, verdict_cell
from benchctl.report.notes import Notes
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
from benchctl.results.experiment import Published, TableSpec
from benchctl.stats.compare import Verdict
from benchctl.stats.experiment.expectations import OPEN
from benchctl.stats.experiment.model import (
    ExpectationResult,
    ExperimentAnalysis,
    ExperimentRow,
    ExperimentTable,
    FateResult,
    Judged,
    Outcome,
)
from benchctl.stats.metrics import metric_of
from benchctl.stats.multiplicity import MOST_BLOCKS

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
