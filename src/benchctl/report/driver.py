"""What the driver itself did, as a compact table."""

from benchctl.report.grid import LOAD, OPERATION, VARIANT, Grid
from benchctl.report.layout import task_name
from benchctl.report.numbers import NOT_AVAILABLE, figure, percent
from benchctl.stats.analysis import Analysis, DriverRow

_NS_PER_MS = 1e6
_MS_PER_S = 1e3
_LONG_MS = 10
_COLUMNS = (OPERATION, VARIANT, "Sent/s", "Lag p50", "Lag p99", "Lag max", "CPU", "Gap", LOAD)


def driver_grid(analysis: Analysis) -> Grid | None:
    """A line a task and variant; None where nothing is known of the driver."""
    if not analysis.drivers:
        return None
    title = (
        "Driver: requests sent (/target), how late, CPU of each process, gap before a task; ms, medians over "
        "forks, the greatest lag of all"
    )
    return Grid.of(title, _COLUMNS, (_line(row, analysis) for row in analysis.drivers))


def _line(row: DriverRow, analysis: Analysis) -> tuple[str, ...]:
    target = "" if row.target_per_s is None else f"/{row.target_per_s:g}"
    processes = f"{row.workers} x " if row.workers > 1 else ""
    return (
        task_name(row, analysis),
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
