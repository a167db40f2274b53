"""Additions of slices to an analysis: curves of a search or sweep, and the cost of evidence."""

from typing import Literal

import msgspec

from benchctl.results.figures import CurvePoint, RedlineEnd
from benchctl.results.plan import RedlineSpec
from benchctl.spec import EvidenceKind
from benchctl.stats.caveat import Caveat
from benchctl.stats.compare import Comparison
from benchctl.stats.metrics import MetricKey


class Spread(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A figure over forks."""

    median: float
    low: float
    high: float


class CurveRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A load of a curve; a fork that tried it several times counts once, with the median of its steps."""

    rung: int
    rate_per_s: float  # offered, the median over forks: each shifts the grid by a part of a rung
    forks: int
    steps: int  # how often it was tried
    passed: int
    driver_limited: int
    achieved_per_s: Spread | None  # completed of it; like the figures below, None when no fork has one
    # `p50_ms`, `p90_ms`, `p99_ms`: of latency, from when requests were due.
    p50_ms: Spread | None
    p90_ms: Spread | None
    p99_ms: Spread | None
    objective_ms: Spread | None  # the percentile of latency that the objective bounds


class ForkCurve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The steps of one fork, in order, the load that it found and why its search ended; None for none."""

    block: int
    points: tuple[CurvePoint, ...]
    redline: float | None = None
    end: RedlineEnd | None = None


class Curve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A variant's curve."""

    variant: str
    rows: tuple[CurveRow, ...]  # by load, ascending
    forks: tuple[ForkCurve, ...]
    # The load that was found, geometric mean over forks; None when a fork found none.
    redline: float | None = None
    # `low`, `high`: its 95% interval; None of a bound, and under two forks.
    low: float | None = None
    high: float | None = None

    @property
    def at_least(self) -> bool:
        """True if any fork's load is a bound, which makes the mean one."""
        return any(fork.redline is not None and fork.end != "found" for fork in self.forks)


class ScaledTask(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A task whose rate a factor multiplies."""

    label: str
    unit: str
    rate_per_s: float  # at a factor of 1


class RedlineCurves(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The curves of all variants, and what was searched for."""

    search: RedlineSpec
    curves: tuple[Curve, ...]
    unit: str = "queries/s"
    tasks: tuple[ScaledTask, ...] = ()  # those that a factor scales, where one was searched for


class SweepAxis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Swept setting."""

    name: str  # such as `clients`
    labels: tuple[str, ...]  # of the points, as they were asked for: `1`, `250k`, `1s`
    numbers: tuple[float, ...] = ()  # of the points, ascending; empty for flags and names
    fixed: str = ""  # what the other axes are held at: `docs 1m`; empty without any


class Bounded(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value with its 95% interval; without ends where nothing tells how exact it is."""

    value: float
    low: float | None = None
    high: float | None = None


class PowerLaw(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line as y ~ x^b, or the exponents of two lines compared."""

    exponent: Bounded | None = None  # b; None where there is none, for `reason`
    steps: tuple[tuple[str, str, Bounded], ...] = ()
    blocks: int = 0
    left_out: int = 0
    without: tuple[str, ...] = ()
    # Of the test that b is the same all along (orthogonal polynomials in ln x, Holm); None under three
    # points or two blocks.
    misfit_p: float | None = None
    # What b does along the axis if that test says it is not the same; empty if it does not.
    misfit: Literal["", "rises", "falls", "changes"] = ""
    reason: str = ""  # why `exponent` is missing, or has no interval


class SweepLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A variant along the axis."""

    variant: str
    # By point, over forks: geometric, or arithmetic of what may be 0 or is told by its difference; None
    # where no fork has a value.
    means: tuple[Bounded | None, ...]
    forks: tuple[int, ...]  # by point, that have a value
    growth: PowerLaw
    # By point, what must stand beside its value; empty where nothing is said of any.
    remarks: tuple[tuple[str, ...], ...] = ()


class SweepPair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line against the first one."""

    baseline: str
    contender: str
    growth: PowerLaw


class SweepCurve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A metric of one task along one axis."""

    task: str
    challenge: str
    metric: MetricKey
    unit: str
    higher_is_better: bool
    axis: SweepAxis
    lines: tuple[SweepLine, ...]  # by variant, the baseline first
    pairs: tuple[SweepPair, ...]
    # By point, every further line against the first, as anywhere else.
    comparisons: tuple[tuple[Comparison, ...], ...] = ()
    paired: bool = True
    caveats: tuple[tuple[Caveat, ...], ...] = ()  # by point, doubts about what was measured there


class TaskCost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Cost of evidence in one task of one variant."""

    schedule: int
    task: int
    label: str
    variant: str
    plain: int
    evidence: int
    # Mean service time of the forks with evidence over that of the plain ones - 1, in percent, by geometric
    # means over forks.
    percent: float
    # `low_percent`, `high_percent`: its 95% interval, from Welch's t on logarithms; None with one fork of
    # either kind.
    low_percent: float | None = None
    high_percent: float | None = None


class EvidenceCost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Cost of evidence in a run that collected it in separate forks."""

    kinds: tuple[EvidenceKind, ...]  # what was collected
    forks: int
    # By challenge, task and variant; those without a value on both sides are missing.
    tasks: tuple[TaskCost, ...]
