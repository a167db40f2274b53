"""The tables below the results: what could be seen, and on request all times and the driver's figures."""

from collections.abc import Sequence
from typing import get_args

from benchctl.report.driver import driver_grid
from benchctl.report.evidence.cost import cost_grid
from benchctl.report.grid import INTERVAL, OPERATION, VARIANT, Cell, Grid, bounds, worded
from benchctl.report.layout import metric_title, precision_grid, task_name
from benchctl.report.numbers import NOT_AVAILABLE, figure, percent, signed_percent
from benchctl.report.order import order_grids
from benchctl.stats.analysis import Analysis, Figures, Row, TimeKind, TimeRow
from benchctl.stats.compare import Comparison

# Where the spread comes from when indices were built several times: builds, or forks on one build.

_COLUMNS = (
    OPERATION, worded("Metric"), VARIANT, "Forks on each build", "SD of builds", "SD of forks on a build",
)  # fmt: skip


def builds_grid(analysis: Analysis) -> Grid | None:
    """A line a task, metric and variant; None for one build."""
    lines = tuple(
        (
            task_name(row, analysis),
            metric_title(row),
            figures.variant,
            _counts(figures),
            percent(figures.between_builds_percent),
            percent(figures.within_builds_percent),
        )
        for row in analysis.rows
        for figures in row.figures
        if figures.builds
    )
    if not lines:
        return None
    title = "Index builds: parts of the spread, by the method of moments; an SD of 0: the forks explain it"
    return Grid.of(title, _COLUMNS, lines)


def _counts(figures: Figures) -> str:
    """Forks that have a value, build by build: `5 5 4`."""
    having = [build for build, value in zip(figures.builds, figures.values, strict=True) if value is not None]
    return " ".join(str(having.count(build)) for build in sorted(set(figures.builds)))


# All the times of a task side by side, as a compact table.


def times_grid(analysis: Analysis) -> Grid | None:
    """A line a task and variant, a column a kind of time; None where nothing is known."""
    kinds = [kind for kind in get_args(TimeKind) if any(row.kind == kind for row in analysis.times)]
    if not kinds:
        return None
    lines: dict[tuple[int, int, str], dict[str, TimeRow]] = {}
    for row in analysis.times:
        lines.setdefault((row.schedule, row.task, row.variant), {})[row.kind] = row
    title = (
        "Times: p50 / p90 / p99, ms, medians over forks; no p90 under 10 requests, no p99 under 100; "
        "took is the engine's own clock"
    )
    return Grid.of(
        title,
        (OPERATION, VARIANT, *kinds),
        (
            (
                task_name(next(iter(found.values())), analysis),
                variant,
                *(_cell(found.get(kind)) for kind in kinds),
            )
            for (_, _, variant), found in lines.items()
        ),
    )


def _cell(row: TimeRow | None) -> str:
    """What there is of the three."""
    if row is None:
        return ""
    return " / ".join(figure(value) for value in (row.p50_ms, row.p90_ms, row.p99_ms) if value is not None)


# What the host probe explains: effects and spreads with the host held equal, beside the plain ones.

_TWO = 2
_EFFECTS = ("Diff %", INTERVAL, "Adjusted", "Its interval")
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
    names = (OPERATION, VARIANT) if several else (OPERATION,)
    lines = (
        (
            task_name(row, analysis),
            *((comparison.contender,) if several else ()),
            signed_percent(comparison.effect_percent),
            bounds(comparison.low_percent, comparison.high_percent),
            *_adjusted(comparison),
            *_spreads(row, (comparison.baseline, comparison.contender)),
        )
        for row in rows
        for comparison in row.comparisons
    )
    sides = f"CV of {analysis.variants[0]} and of the variant"
    title = f"{_title(rows, 'effect (the plain one decides)')}; {sides}"
    return Grid.of(title, (*names, *_EFFECTS, *_SPREADS), lines)


def _alone(rows: Sequence[Row], analysis: Analysis) -> Grid:
    """One variant has spreads only."""
    lines = ((task_name(row, analysis), *_spreads(row, analysis.variants)) for row in rows)
    return Grid.of(_title(rows, "spread"), (OPERATION, *_SPREADS), lines)


def _title(rows: Sequence[Row], what: str) -> str:
    used = dict.fromkeys(one.adjusted_for for row in rows for one in row.comparisons if one.adjusted_for)
    kernels = f" ({', '.join(used)})" if used else ""
    return f"With the host's probes{kernels} held equal, beside the plain {what}: {metric_title(rows[0])}"


def _adjusted(comparison: Comparison) -> tuple[str, Cell | str]:
    """The effect and its interval, or why there is none."""
    if comparison.adjusted_reason:
        return NOT_AVAILABLE, comparison.adjusted_reason
    adjusted = bounds(comparison.adjusted_low_percent, comparison.adjusted_high_percent)
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


# The tables below the results.


def further_grids(analysis: Analysis, *, details: bool) -> list[Grid]:
    """Those of the tables that there is something to say in: order effects first, which are results, too.

    Args:
        analysis: what to print.
        details: with all kinds of times, and what the driver itself did.
    """
    grids = [*order_grids(analysis), cost_grid(analysis)]
    if details:
        grids += [*precision_grids(analysis), times_grid(analysis), driver_grid(analysis)]
    else:
        grids.append(precision_grid(analysis))
    return [grid for grid in grids if grid is not None]


def precision_grids(analysis: Analysis) -> list[Grid]:
    """What could be seen, what the host and the builds of indices have to do with it, and what it takes."""
    grids = [precision_grid(analysis), *adjusted_grids(analysis), builds_grid(analysis)]
    return [grid for grid in grids if grid is not None]
