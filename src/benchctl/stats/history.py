"""Expectations of a plan from earlier runs on the machine: variation between forks, and duration.

Only the spread is taken from them, never where the values lie: it is pooled within runs and variants, so that
neither a machine that changed in between nor a variant that is slower makes it larger. That of differences
within blocks is known apart: what a block has in common is not in it. Forks of the same variant say most;
where there are none, those of any variant of its engine have to do. Needs no scipy.stats: a run asks before
its first request.
"""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal

import msgspec
import numpy as np

from benchctl.results.figures import TaskSummary
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import EngineName, Place, Plan, VariantSpec
from benchctl.stats.arrays import log_points
from benchctl.stats.metrics import (
    Metric,
    MetricKey,
    metrics_in,
    places,
    task_at,
)
from benchctl.track.model import Task

Match = Literal["same", "similar"]
"""A variant's forks in runs of the same schedules on the same corpus and node, or of the same task with other
sizes or settings, those of another variant among them."""

ENOUGH_FORKS = 40
"""Of a variant and task: more would say hardly more (the SD is then known within 11%)."""

# What of a plan decides how much forks differ and how long they take; variants, seed and forks are not in it,
# nor is the track's digest: an operation that was added to it since is not a reason to know nothing.
_SAME = (
    "track", "schedules", "warmup_challenges", "pollution", "restart", "heap_mb", "segments", "page_cache",
    "workers", "redline", "pin", "load_hosts", "index_build", "together",
)  # fmt: skip


class Kind(msgspec.Struct, frozen=True):
    """Kind of earlier forks that predict a variant's."""

    engine: EngineName
    hosts: tuple[str, ...]
    # Everything of a variant except its name, encoded; empty for any variant of the engine.
    traits: bytes = b""

    @property
    def of_engine(self) -> "Kind":
        """Forks of any variant of the engine, on the same hosts."""
        return Kind(self.engine, self.hosts)


Kinds = tuple[Kind, ...]
"""Of a variant, or of baseline and contender, whose forks of one block make a difference."""


class Noise(msgspec.Struct, frozen=True):
    """Variation of forks, or of differences within blocks, in one task and metric."""

    sd: float  # of natural logarithms (`log_points`), pooled within runs and variants
    df: int
    forks: int
    match: Match  # where they come from


class History(msgspec.Struct, frozen=True):
    """Expectations of a plan before it runs."""

    # By place, metric and kinds, of variants and of engines; those without two earlier forks
    # or blocks in one run are missing.
    noises: Mapping[tuple[Place, MetricKey, Kinds], Noise]
    # Median seconds of a fork by kind, of variants and of engines, from the same runs only.
    fork_s: Mapping[Kind, float]
    hidden: frozenset[Place]
    forks: int
    runs: tuple[str, ...]

    def noise(self, place: Place, metric: Metric, *specs: VariantSpec) -> Noise | None:
        """Of a variant's forks, or of differences between two variants'; None when nothing is known."""
        own = tuple(kind_of(spec) for spec in specs)
        noises = (self.noises.get((place, metric.key, kinds)) for kinds in (own, _of_engine(own)))
        return next(filter(None, noises), None)

    def fork_time_s(self, spec: VariantSpec) -> float | None:
        """Seconds of a fork of a variant; None when nothing is known."""
        own = kind_of(spec)
        return self.fork_s.get(own, self.fork_s.get(own.of_engine))


def kind_of(spec: VariantSpec) -> Kind:
    """Return what a variant is, whatever it is called."""
    traits = msgspec.json.encode(msgspec.structs.replace(spec, name=""), order="deterministic")
    return Kind(spec.engine, () if spec.target is None else spec.target.hosts, traits)


def _of_engine(kinds: Kinds) -> Kinds:
    return tuple(kind.of_engine for kind in kinds)


def compared_pairs(plan: Plan) -> list[tuple[VariantSpec, VariantSpec]]:
    """Return (baseline, contender) of everything that a plan compares."""
    by_name = {spec.name: spec for spec in plan.variants}
    return [
        (by_name[group[0]], by_name[name]) for group in plan.compared_together(by_name) for name in group[1:]
    ]


def metrics_of(plan: Plan, task: Task) -> tuple[Metric, ...]:
    """Return the metric that judges a task: latency if its throughput is prescribed.

    Few tasks have a recall, which a plan does not tell: forks are planned for it only where it is asked for.
    """
    return tuple(
        metric
        for metric in metrics_in(plan)
        if plan.redline is not None
        or not (metric.lacking(task) or (metric.kind.quality and not plan.metrics))
    )


def collect_history(records: Iterable[RunRecord], plan: Plan, fingerprint: str) -> History:
    """Look for earlier forks of a plan's tasks.

    `records` are newest first, and no more are read than needed. The plan's corpus digest may still be
    empty; `fingerprint` is of the host: runs of other hosts do not count.
    """
    collected = _Collected(plan)
    for record in records:
        if record.environment.fingerprint == fingerprint:
            collected.add(record)
            if collected.enough:
                break
    return collected.history()


class _Sum:
    """Squares of deviations from the means of runs and variants, and whose forks they are."""

    def __init__(self) -> None:
        self.squares = 0.0
        self.df = 0
        self.forks = 0
        self.sources: set[_Source] = set()

    def add(self, logs: Sequence[float], source: "_Source") -> None:
        if len(logs) > 1:
            self.squares += statistics.variance(logs) * (len(logs) - 1)
            self.df += len(logs) - 1
            self.forks += len(logs)
            self.sources.add(source)

    def noise(self, match: Match) -> Noise:
        return Noise(math.sqrt(self.squares / self.df), self.df, self.forks, match)


_Key = tuple[Place, MetricKey, Kinds]
_Logs = dict[tuple[Place, MetricKey], dict[int, float]]  # by block
_Source = tuple[str, str]  # run, variant


class _Collected:
    """Sums over the runs so far, those of the same sizes apart from the others."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._kinds = tuple(dict.fromkeys(kind_of(spec) for spec in plan.variants))
        pairs: set[Kinds] = {(kind_of(first), kind_of(second)) for first, second in compared_pairs(plan)}
        self._pairs = pairs | {_of_engine(pair) for pair in pairs}
        self._metrics = [
            (place, metric) for place in places(plan) for metric in metrics_of(plan, task_at(plan, place))
        ]
        self._sums: dict[Match, dict[_Key, _Sum]] = {"same": {}, "similar": {}}
        self._fork_s: dict[Kind, list[float]] = {}
        self._hidden: set[Place] = set()
        self._forks: Counter[_Source] = Counter()

    @property
    def enough(self) -> bool:
        """True if runs of the same sizes provide every expectation."""
        sums = self._sums["same"]
        keys = [key for key in self._keys() if key[0] not in self._hidden]
        return bool(sums) and all(key in sums and sums[key].forks >= ENOUGH_FORKS for key in keys)

    def add(self, record: RunRecord) -> None:
        """Take what one run has."""
        match: Match = "same" if _same(self._plan, record.plan) else "similar"
        engines = {kind.of_engine for kind in self._kinds}
        sides: list[tuple[Kind, _Source, _Logs]] = []
        for spec in record.plan.variants:
            forks, own = record.compared(spec.name), kind_of(spec)
            if forks and own.of_engine in engines:
                source = (record.id, spec.name)
                self._forks[source] = len(forks)
                kinds = (own, own.of_engine) if own in self._kinds else (own.of_engine,)
                logs = self._logs(match, record.plan, forks)
                sides.append((own, source, logs))
                for kind in kinds:
                    self._add(match, (kind,), logs, source)
                for kind in kinds if match == "same" else ():
                    self._fork_s.setdefault(kind, []).extend(fork.wall_s for fork in forks)
        for (first, source, left), (second, _, right) in combinations(sides, 2):
            pairs: set[Kinds] = {(first, second), (second, first)}
            pairs |= {_of_engine(pair) for pair in pairs}
            differences = {
                key: {block: right[key][block] - log for block, log in own.items() if block in right[key]}
                for key, own in left.items()
                if key in right
            }
            for pair in pairs & self._pairs:
                self._add(match, pair, differences, source)

    def _add(self, match: Match, kinds: Kinds, logs: _Logs, source: _Source) -> None:
        for (place, metric), values in logs.items():
            if len(values) > 1:
                total = self._sums[match].setdefault((place, metric, kinds), _Sum())
                total.add(list(values.values()), source)

    def _logs(self, match: Match, plan: Plan, forks: Sequence[ForkRecord]) -> _Logs:
        """Of every task and metric that forks of one variant have values for."""
        by_metric: _Logs = {}
        for place, metric in self._metrics:
            own = [
                (fork.block, summary)
                for fork in forks
                for summary in self._summaries(match, plan, fork, place)
            ]
            if match == "same" and any(not summary.reported for _, summary in own):
                self._hidden.add(place)
            additive = metric.kind.additive
            values = {
                block: value
                for block, summary in own
                if (value := metric.value(summary)) is not None and (value > 0 or (additive and value == 0))
            }
            if any(values.values()):
                logs = log_points(np.asarray(list(values.values())), additive=additive).tolist()
                by_metric[place, metric.key] = dict(zip(values, logs, strict=True))
        return by_metric

    def _summaries(self, match: Match, plan: Plan, fork: ForkRecord, place: Place) -> Iterator[TaskSummary]:
        """Return a fork's summary of a task: at its place, else the first of the same task."""
        if match == "same":
            wanted: Place | None = place
        else:
            wanted = _place_of(plan, self._plan.schedules[place[0]].name, task_at(self._plan, place))
        return (summary for summary in fork.summaries if (summary.schedule, summary.task) == wanted)

    def history(self) -> History:
        """Return the noise of runs of the same sizes if they have any, else that of the others."""
        sums = self._sums["similar"] | self._sums["same"]
        noises = {
            # An engine's are not the variant's own.
            key: total.noise(
                "same" if key[2] != _of_engine(key[2]) and key in self._sums["same"] else "similar"
            )
            for key, total in sums.items()
        }
        needed = [key if key in sums else (key[0], key[1], _of_engine(key[2])) for key in self._keys()]
        used = {source for key in needed if key in sums for source in sums[key].sources}
        return History(
            noises=noises,
            fork_s={kind: statistics.median(seconds) for kind, seconds in self._fork_s.items()},
            hidden=frozenset(self._hidden),
            forks=sum(self._forks[source] for source in used),
            runs=tuple(sorted({run for run, _ in used}, reverse=True)),
        )

    def _keys(self) -> list[_Key]:
        return [(place, metric.key, (kind,)) for place, metric in self._metrics for kind in self._kinds]


def _same(plan: Plan, other: Plan) -> bool:
    """Return whether forks of the two are alike but for their variants."""
    corpora = [(one.corpus.documents, one.corpus.seed) for one in (plan, other)]
    carried = plan.evidence_in(0) == other.evidence_in(0)
    return (
        carried
        and corpora[0] == corpora[1]
        and all(getattr(plan, name) == getattr(other, name) for name in _SAME)
    )


def _place_of(plan: Plan, challenge: str, task: Task) -> Place | None:
    """Return where another plan has the same task of the same challenge; a throttled task is another one."""
    for place in places(plan):
        candidate = task_at(plan, place)
        alike = (candidate.label, candidate.operation, candidate.rate_per_s) == (
            task.label,
            task.operation,
            task.rate_per_s,
        )
        if alike and plan.schedules[place[0]].name == challenge:
            return place
    return None
