"""The comparison of a run, or of forks from several, with parts of slices: what every report is made from."""

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Final, Literal

import msgspec

from benchctl.results.figures import CurvePoint, RedlineEnd
from benchctl.results.likeness import SideDifference
from benchctl.results.plan import RedlineSpec
from benchctl.spec import RestartPolicy
from benchctl.stats.caveat import Caveat, Replicate
from benchctl.stats.compare import DECIDED, UNITS, Comparison
from benchctl.stats.inference import Method
from benchctl.stats.metrics import MetricKey, metric_of

State = Literal["steady", "not steady", "unknown"]
Trend = Literal["not warmed up", "drifting", "little warm-up"]


class Steadiness(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Test for change during measurement in the forks of a task of one variant."""

    # `unknown` where it cannot be tested: under two forks with the six samples that a drift needs.
    state: State
    # Mean over forks of ln(geometric mean of the last third / of the first); None when no fork has one.
    drift: float | None = None
    # `low`, `high`: its 95% t-interval over forks; None under two forks.
    low: float | None = None
    high: float | None = None
    p: float | None = None  # of the t-test that there is no drift, adjusted over the rows of the run
    text: str = ""  # in which direction and how far, for a state of `not steady`; empty otherwise
    # `not warmed up` when it was still getting faster, else `drifting`; `little warm-up` where that is not
    # seen, and there was less than the operation is known to need; else None.
    trend: Trend | None = None


class Spread(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A figure over forks."""

    median: float
    low: float
    high: float


class CurveRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rate of a curve; a fork that tried it several times counts once, with the median of its steps."""

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
    """The steps of one fork, in order, the rate that it found and why its search ended; None for none."""

    block: int
    points: tuple[CurvePoint, ...]
    redline: float | None = None
    end: RedlineEnd | None = None


class Curve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A variant's curve."""

    variant: str
    rows: tuple[CurveRow, ...]  # by rate, ascending
    forks: tuple[ForkCurve, ...]
    # The rate that was found, geometric mean over forks; None when a fork found none.
    redline: float | None = None
    # `low`, `high`: its 95% interval; None of a bound, and under two forks.
    low: float | None = None
    high: float | None = None

    @property
    def at_least(self) -> bool:
        """True if any fork's rate is a bound, which makes the mean one."""
        return any(fork.redline is not None and fork.end != "found" for fork in self.forks)


class RedlineCurves(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The curves of all variants, and what was searched for."""

    search: RedlineSpec
    curves: tuple[Curve, ...]


class SweepAxis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Swept setting."""

    name: str  # such as `clients`
    labels: tuple[str, ...]  # of the points, as they were asked for: `1`, `250k`, `1s`
    numbers: tuple[float, ...] = ()  # of the points, ascending; empty for flags and names


class Bounded(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value with its 95% interval; without ends where nothing tells how exact it is."""

    value: float
    low: float | None = None
    high: float | None = None


class SweepLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A variant along the axis."""

    variant: str
    # By point, over forks: geometric, or arithmetic of what may be 0 or is told by its difference; None
    # where no fork has a value.
    means: tuple[Bounded | None, ...]
    forks: tuple[int, ...]  # by point, that have a value
    # By point, what must stand beside its value; empty where nothing is said of any.
    remarks: tuple[tuple[str, ...], ...] = ()
    # By point, the recall of its searches, mean over forks; empty where it has none or hardly rises.
    recall: tuple[Bounded | None, ...] = ()


class SweepPair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line against the first one."""

    baseline: str
    contender: str
    # By point from the second on: the contender's change since the first point against the baseline's. Their
    # values are these changes, as ratios, and the effect is their ratio: a verdict other than `equivalent`
    # says that the difference between the variants depends on the point. p is adjusted over all interactions
    # of the metric. None where values may be 0, or recall rises along the axis.
    interactions: tuple[Comparison, ...] = ()


class RecallLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line at one recall: in each block between the first point that reaches it and the point before."""

    variant: str
    mean: Bounded | None  # over the blocks that reach it; None where none does
    reached: int  # blocks that have a value: never beyond their points; or index builds where these count
    blocks: int  # of so many
    between: tuple[str, ...] = ()  # labels of the points that the values lie between, over all blocks
    reason: str = ""  # why blocks have no value; empty where all have one


class AtRecall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A metric where searches reach one recall."""

    recall: float  # 0 to 1
    lines: tuple[RecallLine, ...]  # by variant, the baseline first
    # Every further line against the first, as anywhere else; p is adjusted over all of the metric. Without a
    # verdict where blocks have no value: that is hardly chance.
    comparisons: tuple[Comparison, ...] = ()


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
    # By point, every further line against the first, as anywhere else. Of a single variant whose forks have
    # all points, each against the first of them; p is adjusted over all of the metric.
    comparisons: tuple[tuple[Comparison, ...], ...] = ()
    caveats: tuple[tuple[Caveat, ...], ...] = ()  # by point, doubts about what was measured there
    at_recall: tuple[AtRecall, ...] = ()  # where recall rises along the axis

    @property
    def changes(self) -> tuple[Comparison, ...]:
        """Comparisons of a single variant's points with its first."""
        return () if self.pairs else tuple(one for point in self.comparisons for one in point)


SCHEMA_VERSION: Final = 9

LoadState = Literal["saturated", "driver-limited"]
"""The cluster did not keep up with the rate; the driver did not offer it, or decided on figures itself."""


class Figures(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A variant's figures for one task and metric."""

    variant: str
    blocks: tuple[int, ...]  # the block of every value
    values: tuple[float | None, ...]  # one a fork, in the metric's unit; None where the fork has none
    value: float | None  # geometric mean over forks; None without values
    cv_percent: float | None  # SD over mean of the forks; None under two
    samples: int  # successful measured requests of the fork that has fewest
    steady: Steadiness
    unsupported: str | None = None  # the node's reason when it cannot do the operation
    at_least: bool = False
    load: tuple[LoadState, ...] = ()  # what was wrong with the load; empty when nothing was
    # What a few requests far beyond the typical one, or other waits, took of the time of a fork: the largest
    # share, 0 to 1; 0 where it is little in every fork.
    stalled: float = 0.0
    units: tuple[int, ...] = ()  # the index build or run of every value; empty where forks count
    # `between_units_percent`, `within_units_percent`: standard deviation (of logarithms) of these, and of the
    # forks of one, by the method of moments; None where that is unknown.
    between_units_percent: float | None = None
    within_units_percent: float | None = None


def weaknesses(sides: Iterable[Figures], caveats: Collection[Caveat]) -> tuple[str, ...]:
    """Return what must stand beside figures: load unlike the plan, failures, stalls, too little warm-up."""
    sides = list(sides)
    failed = ["requests failed"] if any(doubt.code == "failures" for doubt in caveats) else []
    stalled = ["stalled"] if any(side.stalled for side in sides) else []
    trends = [side.steady.trend for side in sides if side.steady.trend]
    return tuple(
        dict.fromkeys([*(state for side in sides for state in side.load), *failed, *stalled, *trends])
    )


BUSY_HOST = "busy host"


def too_few(comparison: Comparison) -> str:
    """Return `fewer than 5 forks per variant`."""
    return f"fewer than {comparison.forks_for_quoting} {UNITS[comparison.replicate]} per variant"


def reservations(comparison: Comparison, sides: Iterable[Figures]) -> tuple[str, ...]:
    """Return why a verdict would be provisional, the first reason first: what follows may be its doing."""
    own = [side for side in sides if side.variant in (comparison.baseline, comparison.contender)]
    trends = dict.fromkeys(side.steady.trend for side in own if side.steady.trend)
    return (
        *([BUSY_HOST] if any(doubt.code == "busy-host" for doubt in comparison.caveats) else []),
        *(["stalled"] if any(side.stalled for side in own) else []),
        *([] if trends and outlasts_drift(comparison, own) else trends),
        *([too_few(comparison)] if comparison.few else []),
    )


# What is still to come is at most so often the drift that was seen, where a task approaches its level
# exponentially with a time constant of up to 1.3 windows.
_TRENDS_AHEAD = 2.0
_MOST_QUANTILE = 0.9


def outlasts_drift(comparison: Comparison, sides: Sequence[Figures]) -> bool:
    """Return whether the direction would hold if one side went on as it changed, and the other did not.

    The interval of the effect, in logarithms, is moved towards zero by twice the spread of the drifts of both
    sides and of none at all. Where drifts are of requests, they tell about rates and times of requests alone;
    nothing is told of a side that was never seen long enough.
    """
    metric = metric_of(comparison.metric)
    if comparison.compared_as != "ratio" or not metric.kind.of_speed or metric.kind.loop == "open":
        return False
    if (metric.quantile or 0) > _MOST_QUANTILE or comparison.verdict == "equivalent":
        return False
    low, high = comparison.low_percent, comparison.high_percent
    drifts = [side.steady.drift for side in sides]
    if low is None or high is None or any(side.steady.trend == "little warm-up" for side in sides):
        return False
    known = [0.0, *(drift for drift in drifts if drift is not None)]
    ahead = _TRENDS_AHEAD * (max(known) - min(known))
    nearest = max(math.log1p(low / 100), -math.log1p(high / 100))
    return len(known) > len(sides) and nearest > ahead


def quotable(comparison: Comparison, sides: Iterable[Figures]) -> bool:
    """Return whether a verdict rests on enough forks, of tasks that had settled and did not stall."""
    return not reservations(comparison, sides)


def provisional(comparison: Comparison, sides: Iterable[Figures]) -> Comparison:
    """Mark it if what it decides is not to be reported."""
    doubtful = comparison.verdict in DECIDED and not quotable(comparison, sides)
    return msgspec.structs.replace(comparison, provisional=doubtful)


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task and metric over all variants."""

    schedule: int
    challenge: str
    task: int
    label: str
    operation: str  # the operation's name
    metric: MetricKey
    unit: str
    higher_is_better: bool
    figures: tuple[Figures, ...]
    comparisons: tuple[Comparison, ...]
    caveats: tuple[Caveat, ...] = ()
    swept: bool = False
    whole: bool = False  # whether its requests are all of its parallel element's
    # `build` where index builds are what has the values, not forks: of a challenge of their own, which
    # stands behind all others.
    level: Literal["task", "build"] = "task"


class DriverRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Activity of the driver, or of one load host, in one task of one variant: medians over forks.

    Only the lag and the clock error are the greatest of all forks. For what is of `DriverFigures`, see there.
    """

    schedule: int
    task: int
    label: str
    variant: str
    target_per_s: float | None  # of an open loop; None for a closed one
    offered_per_s: float | None
    lag_p50_ns: float | None
    lag_p99_ns: float | None
    lag_max_ns: int | None
    cpu_share: float | None
    gap_s: float | None
    workers: int
    load: tuple[LoadState, ...] = ()  # what was wrong with the load; empty when nothing was
    # Of one of several hosts only:
    host: str = ""
    clients: int = 0
    start_late_ns: float | None = None  # of its first request, on its own clock; None where unknown
    clock_error_ns: int | None = None  # by how much its clock may be wrong against the others'


TimeKind = Literal["first", "second", "took", "took sum", "service", "processing", "latency", "page"]
"""The service time of the first and the second request of a task; of the measured ones then the engine's own
time, and the driver's: to the last byte, until it was read, from when it was due; a page is one
of the requests of an operation that has several, a took sum is over the searches of a batch."""


class TimeRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of time of one task and variant: medians over forks of their quantiles."""

    schedule: int
    task: int
    label: str
    variant: str
    kind: TimeKind
    # `p50_ms`, `p90_ms`, `p99_ms`: milliseconds; None where a fork has too few requests for it, or too many
    # that failed.
    p50_ms: float | None
    p90_ms: float | None
    p99_ms: float | None
    search: int = 0  # which one of a batch, from 1; 0 for the request


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A challenge of a fork: what came before it is part of what is measured."""

    schedule: int
    challenge: str
    preceded_by: tuple[str, ...]
    level: Literal["task", "build"] = "task"


class Analysis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that a report says about speed."""

    schema_version: int
    runs: tuple[str, ...]  # where the forks come from
    variants: tuple[str, ...]  # in table order; the first is the baseline
    forks: dict[str, int]  # variant -> number of finished forks
    paired: bool  # analysed as differences within blocks
    restart: RestartPolicy  # when a fresh node came in between
    documents: int  # in the corpus; 0 where that is unknown, or differs from variant to variant
    sections: tuple[Section, ...]  # the challenges, in order
    rows: tuple[Row, ...]  # by metric, then challenge and task
    caveats: tuple[Caveat, ...]
    redline: RedlineCurves | None = None  # the curves of a red-line search; None for challenges
    # What the driver did, by challenge, task and variant; empty for a red-line search.
    drivers: tuple[DriverRow, ...] = ()
    hosts: tuple[DriverRow, ...] = ()  # the same by host, where the load came from hosts that have names
    times: tuple[TimeRow, ...] = ()  # every kind of time, by challenge, task, variant and kind
    block_s: float = 0.0  # of a fork of every variant, medians; 0 where that is unknown
    method: Method = "benjamini-hochberg"
    differences: tuple[SideDifference, ...] = ()
    alike: tuple[str, ...] = ()  # variants that are configured as the baseline: A/A
    versions: dict[str, str] = {}  # variant -> version of its engine, where the record says it
    curves: tuple[SweepCurve, ...] = ()
    builds: dict[str, int] = {}  # variant -> index builds that were compared; empty where none were
    replicate: Replicate = "fork"  # what intervals of tasks count

    @property
    def task_rows(self) -> tuple[Row, ...]:
        """Comparisons of tasks, which more forks make more precise."""
        return tuple(row for row in self.rows if row.level == "task")

    @property
    def build_rows(self) -> tuple[Row, ...]:
        """Comparisons of index builds."""
        return tuple(row for row in self.rows if row.level == "build")

    @property
    def compared_sections(self) -> tuple[Section, ...]:
        """The challenges of the rows, in order."""
        numbers = {row.schedule for row in self.rows}
        return tuple(section for section in self.sections if section.schedule in numbers)

    def where(self, row: "Row | DriverRow | TimeRow") -> str:
        """Return the task, with its challenge where there are several."""
        several = sum(section.level == "task" for section in self.sections) > 1
        found = self.sections[row.schedule]
        return f"{found.challenge}: {row.label}" if several and found.level == "task" else row.label
