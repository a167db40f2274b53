"""The tables below the results: what could be seen, all times, and the driver."""

from typing import get_args

from benchctl.report.layout import metric_title, precision_table
from benchctl.report.numbers import NOT_AVAILABLE, figure, percent
from benchctl.report.table import (
    LOAD,
    OPERATION,
    VARIANT,
    Table,
    worded,
)
from benchctl.stats.analysis import (
    Analysis,
    DriverRow,
    Figures,
    TimeKind,
    TimeRow,
)
from benchctl.stats.compare import UNITS

_NS_PER_MS = 1e6
_MS_PER_S = 1e3
_LONG_MS = 10
_COLUMNS = (OPERATION, VARIANT, "Sent/s", "Lag p50", "Lag p99", "Lag max", "CPU", "Gap", LOAD)


def driver_table(analysis: Analysis) -> Table | None:
    """Return a line a task and variant; None if nothing is known of the driver."""
    if not analysis.drivers:
        return None
    title = (
        "Driver: requests sent (/target), how late, CPU of each process, gap before a task; ms, medians over "
        "forks, the greatest lag of all"
    )
    return Table.of(title, _COLUMNS, (_line(row, analysis) for row in analysis.drivers))


_HOST_COLUMNS = (
    OPERATION, VARIANT, worded("Host"), "Clients", "Sent/s", "Start", "Clock +/-", "Lag p50", "Lag p99",
    "Lag max", "CPU",
)  # fmt: skip


def host_table(analysis: Analysis) -> Table | None:
    """Return a line a task, variant and host; None where the load came from one host."""
    if not analysis.hosts:
        return None
    title = (
        "Load by host: its first request after it was due, by how much its clock may be wrong, how late it "
        "sent; ms, medians over forks, the greatest clock error and lag of all"
    )
    return Table.of(title, _HOST_COLUMNS, (_host_line(row, analysis) for row in analysis.hosts))


def _host_line(row: DriverRow, analysis: Analysis) -> tuple[str, ...]:
    times_ns = (row.start_late_ns, row.clock_error_ns, row.lag_p50_ns, row.lag_p99_ns, row.lag_max_ns)
    return (
        analysis.where(row),
        row.variant,
        row.host,
        str(row.clients),
        figure(row.offered_per_s),
        *map(_ms, times_ns),
        NOT_AVAILABLE if row.cpu_share is None else percent(100 * row.cpu_share),
    )


def _line(row: DriverRow, analysis: Analysis) -> tuple[str, ...]:
    target = "" if row.target_per_s is None else f"/{row.target_per_s:g}"
    processes = f"{row.workers} x " if row.workers > 1 else ""
    return (
        analysis.where(row),
        row.variant,
        f"{figure(row.offered_per_s)}{target}",
        *(_ms(lag_ns) for lag_ns in (row.lag_p50_ns, row.lag_p99_ns, row.lag_max_ns)),
        NOT_AVAILABLE if row.cpu_share is None else f"{processes}{percent(100 * row.cpu_share)}",
        NOT_AVAILABLE if row.gap_s is None else f"{row.gap_s * _MS_PER_S:,.1f}",
        ", ".join(row.load),
    )


def _ms(lag_ns: float | None) -> str:
    """Microseconds at the finest: that is what lags are counted in."""
    if lag_ns is None:
        return NOT_AVAILABLE
    lag_ms = lag_ns / _NS_PER_MS
    return f"{lag_ms:.3f}" if lag_ms < _LONG_MS else f"{lag_ms:,.0f}"


def units_table(analysis: Analysis) -> Table | None:
    """Return a line a task, metric and variant; None where forks are the unit, or there is one unit."""
    lines = tuple(
        (
            analysis.where(row),
            metric_title(row),
            figures.variant,
            _counts(figures),
            percent(figures.between_units_percent),
            percent(figures.within_units_percent),
        )
        for row in analysis.task_rows
        for figures in row.figures
        if figures.units and (analysis.replicate == "build" or figures.between_units_percent is not None)
    )
    if not lines:
        return None
    units = UNITS[analysis.replicate]
    unit = units.removesuffix("s")
    title = f"{units.capitalize()}: parts of the spread, by the method of moments (SD 0: forks explain it)"
    columns = (OPERATION, worded("Metric"), VARIANT, f"Forks per {unit}", f"SD of {units}", "SD of forks")
    return Table.of(title, columns, lines)


def _counts(figures: Figures) -> str:
    """Forks that have a value, build by build: `5 5 4`."""
    having = [build for build, value in zip(figures.units, figures.values, strict=True) if value is not None]
    return " ".join(str(having.count(build)) for build in sorted(set(figures.units)))


def times_table(analysis: Analysis) -> Table | None:
    """Return a line per task, search of a batch and variant, a column per kind of time, if any."""
    kinds = [kind for kind in get_args(TimeKind) if any(row.kind == kind for row in analysis.times)]
    if not kinds:
        return None
    lines: dict[tuple[int, int, str, int], dict[str, TimeRow]] = {}
    for row in analysis.times:
        lines.setdefault((row.schedule, row.task, row.variant, row.search), {})[row.kind] = row
    title = (
        "Times: p50 / p90 / p99, ms, medians over forks; no p90 under 10 requests, no p99 under 100; "
        "took is the engine's own clock"
    )
    if {"first", "second"} & {*kinds}:
        title += "; first request: cold, second: lukewarm, the others are after warm-up: settled (hot)"
    return Table.of(
        title,
        (OPERATION, VARIANT, *kinds),
        (
            (
                analysis.where(next(iter(found.values()))) + (f", search {search}" if search else ""),
                variant,
                *(_times_cell(found.get(kind)) for kind in kinds),
            )
            for (_, _, variant, search), found in lines.items()
        ),
    )


def _times_cell(row: TimeRow | None) -> str:
    """Known values of the three."""
    if row is None:
        return ""
    return " / ".join(figure(value) for value in (row.p50_ms, row.p90_ms, row.p99_ms) if value is not None)


def further_tables(analysis: Analysis, *, details: bool) -> list[Table]:
    """Return tables with something to say; `details` adds all kinds of times, and what the driver did."""
    tables = (
        [
            precision_table(analysis),
            units_table(analysis),
            times_table(analysis),
            driver_table(analysis),
            host_table(analysis),
        ]
        if details
        else [precision_table(analysis)]
    )
    return [table for table in tables if table is not None]
