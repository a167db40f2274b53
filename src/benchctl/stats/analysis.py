"""The comparison of a whole run, or of forks from several: what every report is made from."""

from collections.abc import Collection, Iterable
from typing import Final, Literal

import msgspec

from benchctl.spec import RestartPolicy
from benchctl.stats.caveat import Caveat
from benchctl.stats.compare import DECIDED, FORKS_FOR_QUOTING, Comparison
from benchctl.stats.cost import VerdictCost
from benchctl.stats.evidence import EvidenceCost, TaskCost
from benchctl.stats.metrics import MetricKey
from benchctl.stats.multiplicity import Method
from benchctl.stats.order import OrderEffect
from benchctl.stats.redline import RedlineCurves
from benchctl.stats.scale import ScaleNote
from benchctl.stats.steady import Steadiness
from benchctl.stats.sweep import SweepCurve

SCHEMA_VERSION: Final = 2

LoadState = Literal["saturated", "driver-limited"]
"""The cluster did not keep up with the rate; the driver did not offer it, or decided on figures itself."""


class Figures(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One variant's figures for one task and metric.

    Attributes:
        variant: its name.
        blocks: the block of every value; a number may repeat when forks come from several runs.
        values: one a fork, in the metric's unit; None where the fork has none.
        value: geometric mean over forks; None without values.
        cv_percent: SD over mean of the forks; None under two.
        samples: successful measured requests of the fork that has fewest.
        steady: whether it had settled.
        unsupported: the node's reason when it cannot do the operation.
        at_least: the value is a lower bound.
        load: what was wrong with the load; empty when nothing was.
        cv_adjusted_percent: cv_percent of what the host probe leaves, with one slope for all variants of the
            row; None when there is no adjusting. Never decides.
        builds: the index build of every value; empty when there is one build.
        between_builds_percent, within_builds_percent: standard deviation (of logarithms) of index builds, and
            of the forks on one build, by the method of moments; None where that cannot be told.
    """

    variant: str
    blocks: tuple[int, ...]
    values: tuple[float | None, ...]
    value: float | None
    cv_percent: float | None
    samples: int
    steady: Steadiness
    unsupported: str | None = None
    at_least: bool = False
    load: tuple[LoadState, ...] = ()
    cv_adjusted_percent: float | None = None
    builds: tuple[int, ...] = ()
    between_builds_percent: float | None = None
    within_builds_percent: float | None = None


def weaknesses(sides: Iterable[Figures], caveats: Collection[Caveat]) -> tuple[str, ...]:
    """What must stand beside figures: load that was not as asked for, failed requests, too little warm-up."""
    sides = list(sides)
    failed = ["requests failed"] if any(doubt.code == "failures" for doubt in caveats) else []
    trends = [side.steady.trend for side in sides if side.steady.trend]
    return tuple(dict.fromkeys([*(state for side in sides for state in side.load), *failed, *trends]))


def quotable(comparison: Comparison, sides: Iterable[Figures]) -> bool:
    """Whether a verdict rests on enough forks, of tasks that had settled."""
    own = [side for side in sides if side.variant in (comparison.baseline, comparison.contender)]
    return min(comparison.replicates) >= FORKS_FOR_QUOTING and not any(side.steady.trend for side in own)


def provisional(comparison: Comparison, sides: Iterable[Figures]) -> Comparison:
    """Mark it if what it decides is not to be quoted."""
    doubtful = comparison.verdict in DECIDED and not quotable(comparison, sides)
    return msgspec.structs.replace(comparison, provisional=doubtful)


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One task and metric over all variants.

    Attributes:
        schedule: position of the challenge in a fork.
        challenge: its name.
        task: position of the task in the challenge.
        label: the task's name.
        operation: the operation's name.
        metric: machine name.
        unit: of the values.
        higher_is_better: which way is faster.
        figures: per variant, the baseline first.
        comparisons: every other variant against the baseline.
        scale: distance from the blog; None when the blog has no such task.
        caveats: doubts about this row, those of its comparisons included.
        swept: it is a point of a curve, and is shown there.
        level: `build` where index builds are what has the values, not forks: of a challenge of their own,
            which stands behind all others.
    """

    schedule: int
    challenge: str
    task: int
    label: str
    operation: str
    metric: MetricKey
    unit: str
    higher_is_better: bool
    figures: tuple[Figures, ...]
    comparisons: tuple[Comparison, ...]
    scale: ScaleNote | None = None
    caveats: tuple[Caveat, ...] = ()
    swept: bool = False
    level: Literal["task", "build"] = "task"


class DriverRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the driver itself did in one task of one variant: medians over forks, but for the greatest lag.

    Attributes:
        schedule: position of the challenge in a fork.
        task: position of the task in the challenge.
        label: the task's name.
        variant: whose forks.
        target_per_s: of an open loop; None for a closed one.
        offered_per_s, possible_per_s, think_share, cpu_share, gap_s, workers: see `DriverFigures`.
        lag_p50_ns, lag_p99_ns, lag_max_ns: the same; the last is the greatest of all forks.
        load: what was wrong with the load; empty when nothing was.
    """

    schedule: int
    task: int
    label: str
    variant: str
    target_per_s: float | None
    offered_per_s: float | None
    possible_per_s: float | None
    lag_p50_ns: float | None
    lag_p99_ns: float | None
    lag_max_ns: int | None
    think_share: float | None
    cpu_share: float | None
    gap_s: float | None
    workers: int
    load: tuple[LoadState, ...] = ()


class HostRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one of several hosts did in one task of one variant: medians over forks, but for the last two.

    Attributes:
        schedule: position of the challenge in a fork.
        task: position of the task in the challenge.
        label: the task's name.
        variant: whose forks.
        host: its name.
        clients: of the task, that worked there.
        start_late_ns: how late its first request was sent, on its own clock; None where unknown.
        offered_per_s, lag_p50_ns, lag_p99_ns, cpu_share: see `DriverFigures`.
        clock_error_ns: by how much its clock may be wrong against the others', the greatest of all forks.
        lag_max_ns: the greatest of all forks.
    """

    schedule: int
    task: int
    label: str
    variant: str
    host: str
    clients: int
    start_late_ns: float | None
    offered_per_s: float | None
    lag_p50_ns: float | None
    lag_p99_ns: float | None
    cpu_share: float | None
    clock_error_ns: int
    lag_max_ns: int | None


TimeKind = Literal["took", "took sum", "first byte", "service", "processing", "latency", "page"]
"""The engine's own time, and the driver's: to the first byte, to the last, until it was read, from when it
was due; a page is one of the requests of an operation that has several, a took sum is over the searches of a
batch."""


class TimeRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One kind of time of one task and variant: medians over forks of their quantiles.

    Attributes:
        schedule: position of the challenge in a fork.
        task: position of the task in the challenge.
        label: the task's name.
        variant: whose forks.
        kind: which time.
        p50_ms, p90_ms, p99_ms: milliseconds; None where a fork has too few requests for it.
        search: which one of a batch, from 1; 0 for the request.
    """

    schedule: int
    task: int
    label: str
    variant: str
    kind: TimeKind
    p50_ms: float
    p90_ms: float | None
    p99_ms: float | None
    search: int = 0


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One challenge of a fork: what came before it is part of what is measured.

    Attributes:
        schedule: position in the fork.
        challenge: its name.
        preceded_by: challenges that the same node had run before, warm-up challenges included.
        level: as of its rows.
    """

    schedule: int
    challenge: str
    preceded_by: tuple[str, ...]
    level: Literal["task", "build"] = "task"


class Analysis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that a report says about speed.

    Attributes:
        schema_version: of this structure.
        runs: where the forks come from.
        variants: in table order; the first is the baseline.
        forks: variant -> number of finished forks.
        paired: analysed as differences within blocks.
        restart: when a fresh node came in between.
        documents: in the corpus; 0 where that is unknown, or differs from variant to variant.
        sections: the challenges, in order.
        rows: by metric, then challenge and task.
        caveats: doubts about all of it.
        redline: the curves of a red-line search; None for challenges.
        drivers: what the driver did, by challenge, task and variant; empty for a red-line search.
        hosts: the same by host, where the load came from hosts that have names.
        times: every kind of time, by challenge, task, variant and kind.
        order_effects: operations that ran in several places of a fork, by metric and variant.
        costs: minutes to a verdict, in the order of the rows.
        method: how p-values were adjusted: Benjamini-Hochberg within each metric, or Holm over all of them.
        disturbed: variant -> number of its forks around which a host probe was off; without those that have
            none.
        differences: how variants differ beyond engine and version, in words: a line for each that does.
        evidence: what collecting it cost, where extra forks did; None elsewhere.
        versions: variant -> version of its engine, where the record says it.
        curves: of a sweep: every task and metric along the first axis, at each point of the others.
        builds: variant -> index builds that were compared; empty where none were.
    """

    schema_version: int
    runs: tuple[str, ...]
    variants: tuple[str, ...]
    forks: dict[str, int]
    paired: bool
    restart: RestartPolicy
    documents: int
    sections: tuple[Section, ...]
    rows: tuple[Row, ...]
    caveats: tuple[Caveat, ...]
    redline: RedlineCurves | None = None
    drivers: tuple[DriverRow, ...] = ()
    hosts: tuple[HostRow, ...] = ()
    times: tuple[TimeRow, ...] = ()
    order_effects: tuple[OrderEffect, ...] = ()
    costs: tuple[VerdictCost, ...] = ()
    method: Method = "benjamini-hochberg"
    disturbed: dict[str, int] = {}
    differences: tuple[str, ...] = ()
    evidence: EvidenceCost | None = None
    versions: dict[str, str] = {}
    curves: tuple[SweepCurve, ...] = ()
    builds: dict[str, int] = {}

    @property
    def task_rows(self) -> tuple[Row, ...]:
        """Those of tasks, which more forks say more about."""
        return tuple(row for row in self.rows if row.level == "task")

    @property
    def build_rows(self) -> tuple[Row, ...]:
        """Those of index builds."""
        return tuple(row for row in self.rows if row.level == "build")

    def where(self, row: "Row | DriverRow | HostRow | TimeRow | TaskCost") -> str:
        """The task, with its challenge where there are several."""
        several = sum(section.level == "task" for section in self.sections) > 1
        found = self.sections[row.schedule]
        return f"{found.challenge}: {row.label}" if several and found.level == "task" else row.label
