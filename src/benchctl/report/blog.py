"""Results as the tables of the blog that benchctl came from, digit by digit: `--style blog`."""

import math
from collections.abc import Sequence

from benchctl.report.grid import INTERVAL, NOTES, OPERATION, Cell, Grid
from benchctl.report.layout import better, section_title
from benchctl.report.notes import Notes
from benchctl.report.numbers import NOT_AVAILABLE, signed_percent
from benchctl.stats.analysis import Analysis, Figures, Row
from benchctl.stats.compare import Comparison
from benchctl.stats.metrics import metric_of

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
    """How to read it, and what the blog could not know."""
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
    magnitude = math.floor(math.log10(value))
    text = f"{value:.{max(0, _DIGITS - 1 - magnitude)}f}"
    digits = text.rstrip("0").rstrip(".") if "." in text else text
    return f"{'>= ' if figures.at_least else ''}{digits} {unit}"


def _difference(percent: float | None) -> str:
    """`-21.43%`; a difference of nothing is `0`, as in the blog."""
    text = signed_percent(percent, decimals=_DECIMALS)
    if text == NOT_AVAILABLE:
        return text
    return "0" if float(text.replace(",", "")) == 0 else f"{text}%"


def _interval(comparison: Comparison) -> Cell | str:
    low, high = comparison.low_percent, comparison.high_percent
    if low is None or high is None:
        return ""
    return Cell((f"{_difference(low)} to", _difference(high)))
