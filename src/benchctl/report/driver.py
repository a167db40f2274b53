"""What the driver itself did, as a compact table; and what it costs on this machine, in words."""

from collections.abc import Iterator

from benchctl.report.layout import Grid, task_name
from benchctl.report.numbers import NOT_AVAILABLE, figure, percent
from benchctl.results.figures import Calibration
from benchctl.stats.analysis import Analysis, DriverRow

_NS_PER_MS = 1e6
_NS_PER_US = 1e3
_MS_PER_S = 1e3
_LONG_MS = 10
_HEADERS = ("Operation", "Variant", "Sent/s", "Lag p50", "Lag p99", "Lag max", "CPU", "Gap", "Load")


def driver_grid(analysis: Analysis) -> Grid | None:
    """A line a task and variant; None where nothing is known of the driver."""
    if not analysis.drivers:
        return None
    title = (
        "Driver: requests sent (/target), how late, CPU of each process, gap before a task; ms, medians over "
        "forks, the greatest lag of all"
    )
    lines = tuple(_line(row, analysis) for row in analysis.drivers)
    return Grid(title, _HEADERS, lines, frozenset({0, 1, len(_HEADERS) - 1}))


def calibration_lines(found: Calibration | None) -> Iterator[str]:
    """The driver's floor in sentences; none where it was not measured."""
    if found is None:
        return
    yield (
        f"service time is overstated by {_us(found.error_p50_ns)} us (p50), {_us(found.error_p99_ns)} us "
        f"(p99); a request costs {_us(found.cpu_ns_per_request)} us of CPU"
    )
    yield (
        f"at most {found.one_client_per_s:,.0f} requests/s with 1 client, "
        f"{found.clients_per_s:,.0f} requests/s with {found.clients}"
    )
    for paced in found.paced:
        yield (
            f"open loop at {paced.rate_per_s:g}/s: sent late by {_us(paced.lag_p50_ns)} us (p50), "
            f"{_us(paced.lag_p99_ns)} us (p99), {_us(paced.lag_max_ns)} us (most)"
        )


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


def _us(span_ns: int) -> str:
    return f"{span_ns / _NS_PER_US:,.0f}"
