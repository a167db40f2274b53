"""Throughput-latency curves: the steps of all forks of a variant, rate by rate."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

import msgspec

from benchctl.results.figures import CurvePoint
from benchctl.results.model import ForkRecord
from benchctl.results.plan import RedlineSpec


class Spread(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A figure over forks."""

    median: float
    low: float
    high: float


class CurveRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rate of a curve; a fork that tried it several times counts once, with the median of its steps.

    Attributes:
        rung: which rate of the grid.
        rate_per_s: offered, the median over forks: each shifts the grid by a part of a rung.
        forks: how many tried it.
        steps: how often it was tried.
        passed: how many of these met the objective.
        driver_limited: how many the driver spoilt.
        achieved_per_s: completed of it; like the figures below, None when no fork has one.
        p50_ms, p90_ms, p99_ms: of latency, from when requests were due.
        objective_ms: the percentile of latency that the objective bounds.
    """

    rung: int
    rate_per_s: float
    forks: int
    steps: int
    passed: int
    driver_limited: int
    achieved_per_s: Spread | None
    p50_ms: Spread | None
    p90_ms: Spread | None
    p99_ms: Spread | None
    objective_ms: Spread | None


class ForkCurve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The steps of one fork, in order."""

    block: int
    points: tuple[CurvePoint, ...]


class Curve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One variant's curve.

    Attributes:
        variant: its name.
        rows: by rate, ascending.
        forks: every step of every fork.
    """

    variant: str
    rows: tuple[CurveRow, ...]
    forks: tuple[ForkCurve, ...]


class RedlineCurves(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The curves of all variants, and what was searched for.

    Attributes:
        search: the search.
        curves: in table order.
    """

    search: RedlineSpec
    curves: tuple[Curve, ...]


def redline_curves(done: Mapping[str, Sequence[ForkRecord]], search: RedlineSpec) -> RedlineCurves:
    """Put the steps of finished forks together.

    Args:
        done: label -> finished forks.
        search: what all of them searched for.
    """
    return RedlineCurves(search, tuple(_curve(label, forks) for label, forks in done.items()))


def _curve(variant: str, forks: Sequence[ForkRecord]) -> Curve:
    rungs = sorted({point.rung for fork in forks for point in fork.curve})
    rows = tuple(_row(rung, list(_tried(rung, forks))) for rung in rungs)
    return Curve(variant, rows, tuple(ForkCurve(fork.block, fork.curve) for fork in forks))


def _tried(rung: int, forks: Sequence[ForkRecord]) -> Iterator[list[CurvePoint]]:
    """The steps of every fork that tried this rung."""
    for fork in forks:
        points = [point for point in fork.curve if point.rung == rung]
        if points:
            yield points


def _row(rung: int, forks: Sequence[Sequence[CurvePoint]]) -> CurveRow:
    points = [point for fork in forks for point in fork]
    return CurveRow(
        rung=rung,
        rate_per_s=median(fork[0].rate_per_s for fork in forks),
        forks=len(forks),
        steps=len(points),
        passed=sum(point.verdict == "pass" for point in points),
        driver_limited=sum(point.verdict == "driver-limited" for point in points),
        achieved_per_s=_spread([[point.achieved_per_s for point in fork] for fork in forks]),
        p50_ms=_spread([[_ms(point.p50_ns) for point in fork] for fork in forks]),
        p90_ms=_spread([[_ms(point.p90_ns) for point in fork] for fork in forks]),
        p99_ms=_spread([[_ms(point.p99_ns) for point in fork] for fork in forks]),
        objective_ms=_spread([[_ms(point.objective_ns) for point in fork] for fork in forks]),
    )


def _ms(value_ns: float | None) -> float | None:
    return None if value_ns is None else value_ns / 1e6


def _spread(forks: Sequence[Sequence[float | None]]) -> Spread | None:
    """Median and range over the medians of forks; steps without the figure are left out."""
    known = [[value for value in fork if value is not None] for fork in forks]
    values = [median(fork) for fork in known if fork]
    return Spread(median(values), min(values), max(values)) if values else None
