"""Results as a table of luceneutil, with intervals that are ones: `--style luceneutil`."""

import math
from collections.abc import Sequence

from benchctl.report.grid import NOTES, Cell, Grid, named
from benchctl.report.layout import section_title
from benchctl.report.notes import Notes
from benchctl.report.numbers import NOT_AVAILABLE, figure, p_value
from benchctl.report.tables import adjustment
from benchctl.stats.analysis import Analysis, Figures, Row, Section
from benchctl.stats.compare import Comparison
from benchctl.stats.metrics import metric_of

_QUERIES = "queries/s"
_SMALL = 1.0


def luceneutil_grids(analysis: Analysis, notes: Notes) -> list[Grid]:
    """One grid a challenge, metric, unit and contender, each sorted by its difference as luceneutil does."""
    groups: dict[tuple[int, str, str], list[Row]] = {}
    for row in analysis.rows:
        groups.setdefault((row.schedule, row.metric, row.unit), []).append(row)
    ordered = sorted(groups.items(), key=lambda item: item[0][0])
    return [
        _grid(analysis, analysis.sections[schedule], rows, place, notes)
        for (schedule, _, _), rows in ordered
        for place in range(len(analysis.variants) - 1)
    ]


def luceneutil_legend(analysis: Analysis) -> list[str]:
    """How to read it, and where luceneutil's own table says something else."""
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
        "away from each other, which is no interval and does not narrow with more JVMs, and the p-value is a "
        "normal distribution's, too small for few JVMs."
    )
    return [here, there]


def _grid(analysis: Analysis, section: Section, rows: Sequence[Row], place: int, notes: Notes) -> Grid:
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
    lines = (_line(row, place, notes) for row in ranked)
    title = f"{section_title(section)}: {metric.title}, {base} against {candidate}"
    return Grid.of(title, columns, lines).without_empty(NOTES.title)


def _rank(comparison: Comparison) -> float:
    """Ascending; what has no difference comes last."""
    return math.inf if comparison.effect_percent is None else comparison.effect_percent


def _line(row: Row, place: int, notes: Notes) -> tuple[Cell | str, ...]:
    comparison = row.comparisons[place]
    return (
        row.label,
        _value(row.figures[0]),
        _value(row.figures[place + 1]),
        _difference(comparison),
        p_value(comparison.p_adjusted),
        notes.cell(row.caveats),
    )


def _value(figures: Figures) -> str:
    """`674.76 (4.8%)`; two decimals as luceneutil has, but for figures that would lose digits by it."""
    if figures.value is None or figures.unsupported:
        return NOT_AVAILABLE
    text = f"{figures.value:,.2f}" if figures.value >= _SMALL else figure(figures.value)
    bound = ">= " if figures.at_least else ""
    return f"{bound}{text} ({_percent(figures.cv_percent)})"


def _difference(comparison: Comparison) -> Cell:
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
