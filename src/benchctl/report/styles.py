"""Results in the tables of others, for readers who know those: `--style luceneutil`, `--style blog`."""

import math
from collections.abc import Callable, Sequence
from typing import Literal

from benchctl.errors import UsageError
from benchctl.report.grid import (
    INTERVAL,
    NOTES,
    OPERATION,
    Cell,
    Grid,
    escaped,
    grid_table,
    named,
    note_lists,
)
from benchctl.report.layout import Notes, better, collect_notes, section_title
from benchctl.report.numbers import NOT_AVAILABLE, figure, p_value, signed_percent
from benchctl.report.tables import WIDE, adjustment, render_page
from benchctl.stats.analysis import Analysis, Figures, Row, Section
from benchctl.stats.compare import Comparison
from benchctl.stats.metrics import metric_of

# Results as the tables of the blog that benchctl came from, digit by digit: `--style blog`.


# Rally writes figures with about so many digits; the blog printed them as they were.
_DIGITS = 6
_DECIMALS = 2


def blog_grids(analysis: Analysis, notes: Notes) -> list[Grid]:
    """One grid a challenge, metric and contender: both values with their unit, and the difference."""
    groups: dict[tuple[int, str], list[Row]] = {}
    for row in analysis.rows:
        groups.setdefault((row.schedule, row.metric), []).append(row)
    ordered = sorted(groups.items(), key=lambda item: item[0][0])
    return [
        _grid(analysis, schedule, rows, place, notes)
        for (schedule, _), rows in ordered
        for place in range(len(analysis.variants) - 1)
    ]


def blog_legend(analysis: Analysis) -> list[str]:
    """How to read the tables, and what the blog could not know."""
    baseline, fewest = analysis.variants[0], min(analysis.forks.values(), default=0)
    if fewest <= 1:
        alone = (
            "1 node start a side, as in the blog: there is no interval, because nothing says how far another "
            "start would have been from this one."
        )
        return [f"Diff %: over {baseline}.", alone]
    counts = ", ".join(f"{name} {count}" for name, count in analysis.forks.items())
    spread = (
        "95 % interval: over forks, on logarithms, unadjusted; the blog's tables are of 1 node start a side "
        "and have none."
    )
    return [f"Diff %: over {baseline}, from geometric means over forks ({counts}).", spread]


def _grid(analysis: Analysis, schedule: int, rows: Sequence[Row], place: int, notes: Notes) -> Grid:
    metric, section = metric_of(rows[0].metric), analysis.sections[schedule]
    columns = (OPERATION, analysis.variants[0], analysis.variants[place + 1], "Diff %", INTERVAL, NOTES)
    title = f"{section_title(section)}: {metric.title} ({better(metric)})"
    grid = Grid.of(title, columns, (_line(row, place, notes) for row in rows))
    return grid.without_empty(INTERVAL.title, NOTES.title)


def _line(row: Row, place: int, notes: Notes) -> tuple[Cell | str, ...]:
    comparison = row.comparisons[place]
    return (
        row.label,
        _value(row.figures[0], row.unit),
        _value(row.figures[place + 1], row.unit),
        _difference(comparison.effect_percent),
        _interval(comparison),
        notes.cell(row.caveats),
    )


def _value(figures: Figures, unit: str) -> str:
    """`0.42 queries/s`, `1964.79 ms`: six digits, none of them a zero at the end."""
    value = figures.value
    if value is None or figures.unsupported:
        return NOT_AVAILABLE
    magnitude = math.floor(math.log10(value)) if value else 0
    text = f"{value:.{max(0, _DIGITS - 1 - magnitude)}f}"
    digits = text.rstrip("0").rstrip(".") if "." in text else text
    return f"{'>= ' if figures.at_least else ''}{digits} {unit}"


def _difference(percent: float | None) -> str:
    """`-21.43%`; no difference is `0`, as in the blog."""
    text = signed_percent(percent, decimals=_DECIMALS)
    if text == NOT_AVAILABLE:
        return text
    return "0" if float(text.replace(",", "")) == 0 else f"{text}%"


def _interval(comparison: Comparison) -> Cell | str:
    low, high = comparison.low_percent, comparison.high_percent
    if low is None or high is None:
        return ""
    return Cell((f"{_difference(low)} to", _difference(high)))


# Results as a table of luceneutil, with intervals that are ones: `--style luceneutil`.


_QUERIES = "queries/s"
_SMALL = 1.0


def luceneutil_grids(analysis: Analysis, notes: Notes) -> list[Grid]:
    """One grid a challenge, metric, unit and contender, each sorted by its difference as luceneutil does."""
    groups: dict[tuple[int, str, str], list[Row]] = {}
    for row in analysis.rows:
        groups.setdefault((row.schedule, row.metric, row.unit), []).append(row)
    ordered = sorted(groups.items(), key=lambda item: item[0][0])
    return [
        _luceneutil_grid(analysis, analysis.sections[schedule], rows, place, notes)
        for (schedule, _, _), rows in ordered
        for place in range(len(analysis.variants) - 1)
    ]


def luceneutil_legend(analysis: Analysis) -> list[str]:
    """How to read the tables, and where luceneutil's own differ."""
    counts = ", ".join(f"{name} {count}" for name, count in analysis.forks.items())
    test = "paired t over blocks" if analysis.paired else "Welch's t over forks"
    here = (
        f"Values: geometric means over forks ({counts}); (stddev): of the forks, in % of their own mean. "
        f"(low - high): 95 % interval of the difference; p-value: {test}, on logarithms, adjusted "
        f"{adjustment(analysis)}."
    )
    there = (
        "Not so in luceneutil: a JVM counts by the median of its requests but for the slowest 10 %, both "
        "(stddev) are in % of the base, (low - high) is from the means one standard deviation towards and "
        "away from each other, which is not an interval and does not narrow with more JVMs, and the p-value "
        "is a normal distribution's, too small for few JVMs."
    )
    return [here, there]


def _luceneutil_grid(
    analysis: Analysis, section: Section, rows: Sequence[Row], place: int, notes: Notes
) -> Grid:
    base, candidate = analysis.variants[0], analysis.variants[place + 1]
    metric = metric_of(rows[0].metric)
    unit = "QPS" if rows[0].unit == _QUERIES else rows[0].unit
    columns = (
        named("Task"),
        f"{unit} {base} (stddev)",
        f"{unit} {candidate} (stddev)",
        "Pct diff (low - high)",
        "p-value",
        NOTES,
    )
    ranked = sorted(rows, key=lambda row: _rank(row.comparisons[place]))
    lines = (_luceneutil_line(row, place, notes) for row in ranked)
    title = f"{section_title(section)}: {metric.title}, {base} against {candidate}"
    return Grid.of(title, columns, lines).without_empty(NOTES.title)


def _rank(comparison: Comparison) -> float:
    """Ascending; what has no difference comes last."""
    return math.inf if comparison.effect_percent is None else comparison.effect_percent


def _luceneutil_line(row: Row, place: int, notes: Notes) -> tuple[Cell | str, ...]:
    comparison = row.comparisons[place]
    return (
        row.label,
        _luceneutil_value(row.figures[0]),
        _luceneutil_value(row.figures[place + 1]),
        _luceneutil_difference(comparison),
        p_value(comparison.p_adjusted),
        notes.cell(row.caveats),
    )


def _luceneutil_value(figures: Figures) -> str:
    """`674.76 (4.8%)`; two decimals as luceneutil has, except for figures that would lose digits."""
    if figures.value is None or figures.unsupported:
        return NOT_AVAILABLE
    text = f"{figures.value:,.2f}" if figures.value >= _SMALL else figure(figures.value)
    bound = ">= " if figures.at_least else ""
    return f"{bound}{text} ({_percent(figures.cv_percent)})"


def _luceneutil_difference(comparison: Comparison) -> Cell:
    if comparison.effect_percent is None:
        return Cell((NOT_AVAILABLE,))
    low, high = comparison.low_percent, comparison.high_percent
    within = NOT_AVAILABLE if low is None or high is None else f"{_percent(low)} - {_percent(high)}"
    return Cell((_percent(comparison.effect_percent), f"({within})"))


def _percent(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return NOT_AVAILABLE
    text = f"{value:.1f}%"
    return "0.0%" if text == "-0.0%" else text


# Results in the tables of others, for readers who know those: `--style luceneutil`, `--style blog`.


Style = Literal["luceneutil", "blog"]

_LEAST_VARIANTS = 2
_GRIDS: dict[Style, Callable[[Analysis, Notes], list[Grid]]] = {
    "luceneutil": luceneutil_grids,
    "blog": blog_grids,
}
_LEGENDS: dict[Style, Callable[[Analysis], list[str]]] = {
    "luceneutil": luceneutil_legend,
    "blog": blog_legend,
}


def render_styled(
    analysis: Analysis, style: Style, output_format: Literal["text", "markdown"], *, width: int = WIDE
) -> str:
    """Write an analysis in the tables of `style`, with how to read them, and all caveats.

    Raises:
        UsageError: there is only one variant, and these tables are comparisons.
    """
    if len(analysis.variants) < _LEAST_VARIANTS:
        raise UsageError(f"--style {style} compares variants, and there is only {analysis.variants[0]}")
    if analysis.curves:
        raise UsageError(f"--style {style} has no place for a sweep", hint="leave --style out")
    notes = collect_notes(analysis)
    grids, legend = _GRIDS[style](analysis, notes), _LEGENDS[style](analysis)
    if output_format == "text":
        return render_page(grids, legend, width, notes=notes)
    parts = [*map(grid_table, grids), escaped(" ".join(legend)), *note_lists(notes)]
    return "\n\n".join(part for part in parts if part) + "\n"
