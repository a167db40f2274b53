"""What earlier runs on a machine say about a plan: how much its forks will differ, and how long they take.

Only the spread is taken from them, never where the values lie: it is pooled within runs and variants, so that
neither a machine that changed in between nor a variant that is slower makes it larger. Needs no scipy.stats:
a run asks before its first request.
"""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from benchctl.results.figures import TaskSummary
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import Place, Plan, VariantSpec
from benchctl.stats.disturbed import disturbances
from benchctl.stats.metrics import LATENCY, REDLINE, SERVICE_TIME, THROUGHPUT, Metric, MetricKey
from benchctl.stats.values import places, task_at
from benchctl.track.model import Task

Match = Literal["same", "similar"]
"""A run of the same schedules on the same corpus and node, or one of the same task with other sizes."""

ENOUGH_FORKS = 40
"""Of a variant and task: more would say hardly more (the SD is then known within 11 %)."""

# What of a plan decides how much forks differ and how long they take; variants, seed and forks are not in it,
# nor is the track's digest: an operation that was added to it since is no reason to know nothing.
_SAME = (
    "track", "schedules", "warmup_challenges", "restart", "heap_mb", "segments", "transport",
    "workers", "redline", "pin",
)  # fmt: skip

Kind = tuple[str, tuple[str, ...]]
"""(engine, hosts): a cluster that runs already differs from fork to fork as no fresh node here does."""


class Noise(msgspec.Struct, frozen=True):
    """How much forks differ in one task and metric.

    Attributes:
        sd: of natural logarithms, pooled within runs and variants.
        df: degrees of freedom, one less than forks for every run and variant.
        forks: that it rests on.
        match: where they come from.
    """

    sd: float
    df: int
    forks: int
    match: Match


class History(msgspec.Struct, frozen=True):
    """What is known of a plan before it runs.

    Attributes:
        noises: by place, metric and kind of variant; those without two earlier forks in one run are missing.
        fork_s: median seconds of a fork by kind of variant, from the same runs only.
        hidden: places that tables do not show, because they only prepare the others.
        forks: earlier forks of any variant that it rests on.
        runs: ids, newest first.
        disturbed: how many of the forks, by the host probes around them.
    """

    noises: Mapping[tuple[Place, MetricKey, Kind], Noise]
    fork_s: Mapping[Kind, float]
    hidden: frozenset[Place]
    forks: int
    runs: tuple[str, ...]
    disturbed: int = 0

    def noise(self, place: Place, metric: Metric, spec: VariantSpec) -> Noise | None:
        """Of one task, metric and variant; None when nothing is known."""
        return self.noises.get((place, metric.key, kind_of(spec)))

    def block_s(self, plan: Plan) -> float | None:
        """Seconds of one fork of every variant; None when a variant's is not known."""
        known = [self.fork_s.get(kind_of(spec)) for spec in plan.variants]
        return None if None in known else sum(one for one in known if one is not None)


def kind_of(spec: VariantSpec) -> Kind:
    """Which earlier forks say something about a variant's: any of its engine, on the same hosts."""
    return spec.engine, () if spec.target is None else spec.target.hosts


def metrics_of(plan: Plan, task: Task) -> tuple[Metric, ...]:
    """What forks of a task are judged by: a throttled one by latency, since its throughput was asked for."""
    if plan.redline is not None:
        return (REDLINE,)
    return (SERVICE_TIME, LATENCY) if task.throttled else (THROUGHPUT, SERVICE_TIME)


def collect_history(records: Iterable[RunRecord], plan: Plan, fingerprint: str) -> History:
    """Look for earlier forks of a plan's tasks.

    Args:
        records: newest first; no more of them are taken than needed.
        plan: that is going to run; its corpus digest may still be empty.
        fingerprint: of the host; runs of other hosts say nothing.
    """
    collected = _Collected(plan)
    for record in records:
        if record.environment.fingerprint == fingerprint and record.imported is None:
            collected.add(record)
            if collected.enough:
                break
    return collected.history()


class _Sum:
    """Squares of deviations from the means of runs and variants."""

    def __init__(self) -> None:
        self.squares = 0.0
        self.df = 0
        self.forks = 0

    def add(self, logs: Sequence[float]) -> None:
        if len(logs) > 1:
            self.squares += statistics.variance(logs) * (len(logs) - 1)
            self.df += len(logs) - 1
            self.forks += len(logs)


_Key = tuple[Place, MetricKey, Kind]


class _Collected:
    """Sums over the runs so far, those of the same sizes apart from those of others."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._wanted = [
            (place, metric, kind)
            for place in places(plan)
            for metric in metrics_of(plan, task_at(plan, place))
            for kind in dict.fromkeys(kind_of(spec) for spec in plan.variants)
        ]
        self._sums: dict[Match, dict[_Key, _Sum]] = {"same": {}, "similar": {}}
        self._fork_s: dict[Kind, list[float]] = {}
        self._hidden: set[Place] = set()
        self._runs: dict[Match, dict[str, int]] = {"same": {}, "similar": {}}
        self._disturbed: Counter[str] = Counter()

    @property
    def enough(self) -> bool:
        """All that is wanted is known well from runs of the same sizes."""
        sums = self._sums["same"]
        keys = [_key(one) for one in self._wanted if one[0] not in self._hidden]
        return bool(sums) and all(key in sums and sums[key].forks >= ENOUGH_FORKS for key in keys)

    def add(self, record: RunRecord) -> None:
        """Take what one run has."""
        match: Match = "same" if _same(self._plan, record.plan) else "similar"
        off = Counter(
            one.variant
            for one in disturbances({spec.name: record.compared(spec.name) for spec in record.plan.variants})
        )
        for spec in record.plan.variants:
            forks = record.compared(spec.name)
            if forks and any(kind == kind_of(spec) for _, _, kind in self._wanted):
                used = self._add_variant(match, record, spec, forks)
                self._disturbed[record.id] += off[spec.name] * used

    def _add_variant(
        self, match: Match, record: RunRecord, spec: VariantSpec, forks: Sequence[ForkRecord]
    ) -> bool:
        """Take one variant of a run; whether it had anything to take."""
        used = False
        for place, metric, kind in self._wanted:
            if kind != kind_of(spec):
                continue
            found = [one for fork in forks for one in self._summaries(match, record.plan, fork, place)]
            if match == "same" and any(not one.reported for one in found):
                self._hidden.add(place)
            logs = [math.log(value) for one in found if (value := metric.value(one)) and value > 0]
            if len(logs) > 1:
                self._sums[match].setdefault((place, metric.key, kind), _Sum()).add(logs)
                used = True
        if match == "same":
            self._fork_s.setdefault(kind_of(spec), []).extend(fork.wall_s for fork in forks)
        if used:
            self._runs[match][record.id] = self._runs[match].get(record.id, 0) + len(forks)
        return used

    def _summaries(self, match: Match, plan: Plan, fork: ForkRecord, place: Place) -> Iterator[TaskSummary]:
        """One fork's figures for a task: those of its place, or the first of the same task elsewhere."""
        if match == "same":
            wanted: Place | None = place
        else:
            wanted = _place_of(plan, self._plan.schedules[place[0]].name, task_at(self._plan, place))
        return (one for one in fork.summaries if (one.schedule, one.task) == wanted)

    def history(self) -> History:
        """What came together: where runs of the same sizes say nothing, those of others have to do."""
        noises = {}
        used: dict[str, int] = {}
        for match in ("similar", "same"):
            for key, total in self._sums[match].items():
                noises[key] = Noise(math.sqrt(total.squares / total.df), total.df, total.forks, match)
        for match in {noise.match for noise in noises.values()}:
            used |= self._runs[match]
        return History(
            noises=noises,
            fork_s={kind: statistics.median(seconds) for kind, seconds in self._fork_s.items()},
            hidden=frozenset(self._hidden),
            forks=sum(used.values()),
            runs=tuple(sorted(used, reverse=True)),
            disturbed=sum(self._disturbed[run] for run in used),
        )


def _key(wanted: tuple[Place, Metric, Kind]) -> _Key:
    place, metric, kind = wanted
    return place, metric.key, kind


def _same(plan: Plan, other: Plan) -> bool:
    """Whether forks of the two are alike but for their variants."""
    corpora = [(one.corpus.documents, one.corpus.seed) for one in (plan, other)]
    carried = plan.evidence_in(0) == other.evidence_in(0)
    return (
        carried
        and corpora[0] == corpora[1]
        and all(getattr(plan, name) == getattr(other, name) for name in _SAME)
    )


def _place_of(plan: Plan, challenge: str, task: Task) -> Place | None:
    """Where another plan has the same task of the same challenge; a throttled task is another one."""
    for place in places(plan):
        found = task_at(plan, place)
        alike = (found.label, found.operation, found.rate_per_s) == (
            task.label,
            task.operation,
            task.rate_per_s,
        )
        if alike and plan.schedules[place[0]].name == challenge:
            return place
    return None
