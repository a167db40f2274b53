"""What the host probe explains: effects and spreads with the host held equal, beside the plain ones."""

from collections.abc import Sequence

from benchctl.report.layout import Grid, metric_title, task_name
from benchctl.report.numbers import NOT_AVAILABLE, interval, signed_percent
from benchctl.stats.analysis import Analysis, Row
from benchctl.stats.compare import Comparison

_TWO = 2
_EFFECTS = ("Diff %", "95 % interval", "Adjusted", "Its interval")
_SPREADS = ("CV %", "Adjusted CV")


def adjusted_grids(analysis: Analysis) -> list[Grid]:
    """One grid a metric; none where nothing can be adjusted, which JSON gives the reasons of."""
    metrics = dict.fromkeys(row.metric for row in analysis.rows)
    groups = [[row for row in analysis.rows if row.metric == metric] for metric in metrics]
    grid = _alone if len(analysis.variants) == 1 else _compared
    return [grid(rows, analysis) for rows in groups if _adjustable(rows)]


def _adjustable(rows: Sequence[Row]) -> bool:
    return any(figures.cv_adjusted_percent is not None for row in rows for figures in row.figures)


def _compared(rows: Sequence[Row], analysis: Analysis) -> Grid:
    """A line a task and contender."""
    several = len(analysis.variants) > _TWO
    names = ("Operation", "Variant") if several else ("Operation",)
    lines = tuple(
        (
            task_name(row, analysis),
            *((comparison.contender,) if several else ()),
            signed_percent(comparison.effect_percent),
            interval(comparison.low_percent, comparison.high_percent),
            *_adjusted(comparison),
            *_spreads(row, (comparison.baseline, comparison.contender)),
        )
        for row in rows
        for comparison in row.comparisons
    )
    sides = f"CV of {analysis.variants[0]} and of the variant"
    return Grid(
        f"{_title(rows, 'effect (the plain one decides)')}; {sides}",
        (*names, *_EFFECTS, *_SPREADS),
        lines,
        frozenset(range(len(names))),
    )


def _alone(rows: Sequence[Row], analysis: Analysis) -> Grid:
    """One variant has spreads only."""
    lines = tuple((task_name(row, analysis), *_spreads(row, analysis.variants)) for row in rows)
    return Grid(_title(rows, "spread"), ("Operation", *_SPREADS), lines, frozenset({0}))


def _title(rows: Sequence[Row], what: str) -> str:
    used = dict.fromkeys(one.adjusted_for for row in rows for one in row.comparisons if one.adjusted_for)
    kernels = f" ({', '.join(used)})" if used else ""
    return f"With the host's probes{kernels} held equal, beside the plain {what}: {metric_title(rows[0])}"


def _adjusted(comparison: Comparison) -> tuple[str, str]:
    """The effect and its interval, or why there is none."""
    if comparison.adjusted_reason:
        return NOT_AVAILABLE, comparison.adjusted_reason
    adjusted = interval(comparison.adjusted_low_percent, comparison.adjusted_high_percent)
    return signed_percent(comparison.adjusted_percent), adjusted


def _spreads(row: Row, variants: Sequence[str]) -> tuple[str, str]:
    """Plain and adjusted, each of all the variants."""
    sides = [figures for figures in row.figures if figures.variant in variants]
    return (
        ", ".join(_figure(side.cv_percent) for side in sides),
        ", ".join(_figure(side.cv_adjusted_percent) for side in sides),
    )


def _figure(value: float | None) -> str:
    return NOT_AVAILABLE if value is None else f"{value:.1f}"
