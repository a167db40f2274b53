"""What the driver and its readings cost on a machine, in words."""

from collections.abc import Iterator

import msgspec

from benchctl.results.figures import Calibration, ReadingCost

_NS_PER_US = 1e3
MOST_READING_SHARE = 0.005
"""Of one CPU: beyond it, readings disturb what they are there for."""


def calibration_lines(found: Calibration | None) -> Iterator[str]:
    """The driver's floor in sentences; none if it was not measured."""
    if found is None:
        return
    if len(found.hosts) > 1:
        for name, one in found.hosts.items():
            yield from (
                f"{name}: {line}" for line in calibration_lines(msgspec.structs.replace(one, hosts={}))
            )
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
    if found.reading is not None:
        yield reading_line(found.reading)


def reading_line(found: ReadingCost) -> str:
    """What readings cost, in a sentence, with a warning where that is too much."""
    disturbing = "" if found.share <= MOST_READING_SHARE else ", which disturbs what is measured"
    return (
        f"readings of a node of {found.threads} threads take {100 * found.share:.2f} % of a CPU during a task"
        f"{disturbing}: {_us(found.telemetry_p50_ns)} us (p50), {_us(found.telemetry_p99_ns)} us (p99) each; "
        f"before and after it {_us(found.bound_p50_ns)} us (p50), {_us(found.bound_p99_ns)} us (p99)"
    )


def _us(span_ns: int) -> str:
    return f"{span_ns / _NS_PER_US:,.0f}"
