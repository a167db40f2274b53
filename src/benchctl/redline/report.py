"""Throughput-latency curves: a table a variant, and a plot of all of them in plain characters."""

import math
import textwrap
from collections.abc import Sequence

import msgspec

from benchctl.redline.judge import percentile_name
from benchctl.report.facts import objective_text
from benchctl.report.numbers import NOT_AVAILABLE, counted, figure
from benchctl.report.table import Addition, Notes, Table
from benchctl.results.figures import RedlineEnd, load_text
from benchctl.results.plan import RedlineSpec
from benchctl.stats.analysis import Analysis, Curve, CurveRow, RedlineCurves, Spread
from benchctl.stats.compare import own_interval
from benchctl.stats.metrics import THROUGHPUT

_MARKS = "ox+*#@%&"
_BOTH = "?"
_PLOT_LINES = 4  # of a drawing, beside its rows
_LEAST_COLUMNS = 40
_MOST_COLUMNS = 84
_AXIS = 10
_NS_PER_MS = 1e6


def report(analysis: Analysis, notes: Notes | None) -> Addition | None:
    """Return what a red-line search adds to a report; None for other runs."""
    del notes
    curves = analysis.redline
    if curves is None:
        return None
    return Addition(
        answer=(_answer(analysis, curves),),
        results=tuple([table] for table in curve_tables(curves)),
        remarks=tuple(rate_lines(curves)),
        plot=lambda width, lines: curve_plot(curves, width, lines),
    )


def _answer(analysis: Analysis, found: RedlineCurves) -> str:
    """Return `red-line of range, p90 of latency within 50 ms: es 101.0 queries/s (98.5 to 103.6)`."""
    search = found.search
    what = f"all rates of {search.operation}" if search.by == "factor" else search.operation
    texts = (
        f"{curve.variant} {_found_text(curve, found)}{_there(curve, analysis)}" for curve in found.curves
    )
    return f"red-line of {what}, {objective_text(search)}: {'; '.join(texts)}."


_BOUNDS: dict[RedlineEnd | None, str] = {
    "max-rate": "no more was tried",
    "driver-limited": "the driver was the limit",
}


def _found_text(curve: Curve, found: RedlineCurves) -> str:
    searched = [fork for fork in curve.forks if fork.end is not None]
    forks = counted(len(searched), "fork")
    if curve.redline is None:
        lacking = sum(fork.redline is None for fork in searched)
        return f"none in {lacking} of {forks}" if searched else NOT_AVAILABLE
    load = f"{_number(curve.redline, found)}{'' if found.unit == 'x' else ' '}{found.unit}"
    if curve.at_least:
        ends = sorted({_BOUNDS[fork.end] for fork in searched if fork.end in _BOUNDS})
        return f"at least {load} ({' or '.join(ends)})"
    if curve.low is None or curve.high is None:
        return f"{load} (one fork: no interval)"
    if curve.low == curve.high:
        return f"{load} (the same in all {forks})"
    return f"{load} (95% interval {_number(curve.low, found)} to {_number(curve.high, found)})"


def _number(load: float, found: RedlineCurves) -> str:
    """Clients are whole, unless their mean is not."""
    whole = found.search.by == "clients" and math.isclose(load, round(load))
    return f"{load:,.0f}" if whole else figure(load)


def _there(curve: Curve, analysis: Analysis) -> str:
    """Return what so many clients get done: without that, their number means nothing."""
    for row in analysis.rows:
        for side in row.figures:
            if row.metric == THROUGHPUT.key and side.variant == curve.variant and side.value is not None:
                ends = own_interval(side.values, side.units)
                reach = "" if ends is None else f" ({figure(ends[0])} to {figure(ends[1])})"
                return f", {figure(side.value)} {row.unit}{reach} in the last step there"
    return ""


def load_title(search: RedlineSpec) -> str:
    """Return what is raised from step to step."""
    return {"rate": "offered rate", "factor": "factor of all rates", "clients": "clients"}[search.by]


def load_axis(found: RedlineCurves) -> str:
    """Return the same as the title of an axis, with its unit."""
    title = load_title(found.search)
    unit = "1/s" if found.unit == "queries/s" else found.unit
    return f"{title}, {unit}" if found.search.by == "rate" else title


def rate_tables(found: RedlineCurves) -> list[Table]:
    """Return what a factor means: the rates of the tasks that it multiplies; none for other searches."""
    if not found.tasks:
        return []
    factors = [1.0, *(curve.redline for curve in found.curves)]
    titles = ["As written", *(curve.variant for curve in found.curves)]
    bounds = [False, *(curve.at_least for curve in found.curves)]
    named = [
        title if factor is None else f"{title}: {'at least ' if bound else ''}{load_text(factor, 'x')}"
        for title, factor, bound in zip(titles, factors, bounds, strict=True)
    ]
    lines = (
        (
            task.label,
            f"{task.unit}/s",
            *(NOT_AVAILABLE if factor is None else figure(factor * task.rate_per_s) for factor in factors),
        )
        for task in found.tasks
    )
    return [Table.of("Rates that the factors mean", ("Task", "Unit", *named), lines)]


def rate_lines(found: RedlineCurves) -> list[str]:
    """Return the same, a line a variant."""
    return [
        f"{place}: {', '.join(f'{line[0]} {line[column]} {line[1]}' for line in grid.texts)}"
        for grid in rate_tables(found)
        for column, place in enumerate(grid.titles)
        if column > 1
    ]


def curve_tables(found: RedlineCurves) -> list[Table]:
    """Return what factors mean, then a table per variant, by load; none for one that never reached a step."""
    return [*rate_tables(found), *(_grid(curve, found) for curve in found.curves if curve.rows)]


def _load_columns(found: RedlineCurves) -> tuple[str, str]:
    match found.search.by:
        case "factor":
            return "Factor", "Achieved"
        case "clients":
            return "Clients", "Throughput/s"
        case "rate":
            return ("Rate/s" if found.unit == "queries/s" else found.unit.capitalize()), "Achieved/s"


def _grid(curve: Curve, found: RedlineCurves) -> Table:
    search = found.search
    # Each step has the figures of one task.
    whose = " of the task closest to its limit" if search.by == "factor" else ""
    title = (
        f"{curve.variant}: {search.operation} by {load_title(search)}; "
        f"latency{whose} in ms, median over forks (range)"
    )
    extra = percentile_name(search.percentile)
    columns = ["p50", "p90", "p99"]
    if extra not in columns:
        columns.append(extra)
    titles = (*_load_columns(found), *columns, "Met", "Forks")
    return Table.of(title, titles, (_line(row, columns, search) for row in curve.rows))


def _line(row: CurveRow, columns: Sequence[str], search: RedlineSpec) -> tuple[str, ...]:
    latencies = {"p50": row.p50_ms, "p90": row.p90_ms, "p99": row.p99_ms}
    return (
        f"{row.rate_per_s:.0f}" if search.by == "clients" else figure(row.rate_per_s),
        _spread(row.achieved_per_s),
        *(_spread(latencies.get(name, row.objective_ms)) for name in columns),
        f"{row.passed} of {row.steps}{', driver-limited' if row.driver_limited else ''}",
        str(row.forks),
    )


def _spread(value: Spread | None) -> str:
    if value is None:
        return NOT_AVAILABLE
    if value.low == value.high:
        return figure(value.median)
    return f"{figure(value.median)} ({figure(value.low)}-{figure(value.high)})"


class _Scale(msgspec.Struct, frozen=True):
    """A logarithmic axis: a value to a cell, and back."""

    low: float
    high: float
    cells: int

    def cell(self, value: float) -> int:
        span = math.log(self.high / self.low)
        return round(math.log(value / self.low) / span * (self.cells - 1))

    def value(self, cell: int) -> float:
        return float(self.low * (self.high / self.low) ** (cell / (self.cells - 1)))


def curve_plot(found: RedlineCurves, width: int, lines: int = 20) -> list[str]:
    """Draw the objective's percentile against the load, both logarithmic; one mark a variant and load.

    It takes about as many lines.
    """
    rows = lines - _PLOT_LINES
    points = [
        (row.rate_per_s, row.objective_ms.median, mark)
        for curve, mark in zip(found.curves, _marks(found), strict=True)
        for row in curve.rows
        if row.objective_ms is not None
    ]
    if not points:
        return []
    limit_ms = found.search.limit_ns / _NS_PER_MS
    columns = max(_LEAST_COLUMNS, min(width - _AXIS - 1, _MOST_COLUMNS))
    across = _axis([rate for rate, _, _ in points], columns)
    up = _axis([limit_ms, *(latency for _, latency, _ in points)], rows)
    cells = [[" "] * columns for _ in range(rows)]
    cells[up.cell(limit_ms)] = ["-"] * columns
    for rate, latency, mark in points:
        row, column = cells[up.cell(latency)], across.cell(rate)
        row[column] = mark if row[column] in {" ", "-", mark} else _BOTH
    return _framed(cells, found, across, up, width)


def _marks(found: RedlineCurves) -> list[str]:
    return [_MARKS[number % len(_MARKS)] for number in range(len(found.curves))]


def _axis(values: Sequence[float], cells: int) -> _Scale:
    # A single value still needs two ends.
    return _Scale(min(values) / 1.02, max(values) * 1.02, cells)


def _framed(
    cells: list[list[str]], found: RedlineCurves, across: _Scale, up: _Scale, width: int
) -> list[str]:
    limit_ms = found.search.limit_ns / _NS_PER_MS
    labels = {place: figure(up.value(place)) for place in (0, up.cells // 2, up.cells - 1)}
    labels[up.cell(limit_ms)] = f"{limit_ms:g}"
    body = [
        f"{labels.get(place, ''):>{_AXIS - 2}} |{''.join(cells[place])}".rstrip()
        for place in range(up.cells - 1, -1, -1)
    ]
    left, right = figure(across.low), figure(across.high)
    middle = figure(across.value(across.cells // 2))
    bottom = left + middle.center(across.cells - len(left) - len(right)) + right
    key = ", ".join(
        f"{mark} {curve.variant}" for curve, mark in zip(found.curves, _marks(found), strict=True)
    )
    name = percentile_name(found.search.percentile)
    key = f"{key}, {_BOTH} several, - objective"
    return [
        *textwrap.wrap(f"{name} of latency, ms, by {load_axis(found)}: {key}", width),
        *body,
        f"{'':>{_AXIS - 2}} +{'-' * across.cells}",
        f"{'':>{_AXIS}}{bottom}",
    ]
