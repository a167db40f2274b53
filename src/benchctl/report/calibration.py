"""What the driver costs on a machine, in words."""

from collections.abc import Iterator

from benchctl.results.figures import Calibration

_NS_PER_US = 1e3


def calibration_lines(found: Calibration | None) -> Iterator[str]:
    """The driver's floor in sentences; none if it was not measured."""
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


def _us(span_ns: int) -> str:
    return f"{span_ns / _NS_PER_US:,.0f}"
