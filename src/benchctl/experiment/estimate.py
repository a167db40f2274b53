"""What an experiment will take and be able to see, before any node starts: from earlier runs on this machine.

How long a fork takes is known from forks of the same variant that did the same, else from those of the same
engine. Where there are none it is put together: so much for a fork and every node start, and for every
request what the same operation took on the engine in any challenge, scaled to the corpus. Where an operation
was never measured either, a rule has to do.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

import msgspec

from benchctl.experiment.plan import Plans
from benchctl.results.experiment.model import ComparisonSpec, ExperimentSpec, TaskRef
from benchctl.results.model import RunRecord
from benchctl.results.plan import Plan, VariantSpec
from benchctl.run.plan import boots
from benchctl.stats.experiment.places import place_of
from benchctl.stats.history import History, Noise, collect_history, kind_of
from benchctl.stats.lognormal import sd_of
from benchctl.stats.power import mde
from benchctl.track.model import Challenge, Task

Basis = Literal["variant", "engine", "operations", "rule"]

FORK_S: Final = 3.0
"""Of a fork that is put together: copying the index, two host probes, writing the samples."""
BOOT_S: Final = 8.0
"""Of the same, for every node: its start, its calming down, its stop."""
REQUEST_S: Final = 0.001
"""The least that a request takes."""
REQUEST_S_PER_MILLION_DOCUMENTS: Final = 0.01
"""The rule: between a range (2 ms) and a composite aggregation (40 ms) of a million documents."""
ASSUMED_CVS_PERCENT: Final = (5.0, 10.0, 15.0)
"""Fork CVs that stand in for unknown ones: most tasks' lie in between."""
MOST_RECORDS: Final = 200
"""Of earlier runs that are looked at: some milliseconds each."""


class ForkCost(msgspec.Struct, frozen=True):
    """How long a fork takes.

    Attributes:
        measurement, variant: of which.
        seconds: expected.
        basis: earlier forks of this variant, of its engine, its operations in other forks, or the rule.
    """

    measurement: str
    variant: str
    seconds: float
    basis: Basis


class Sight(msgspec.Struct, frozen=True):
    """The least difference that a comparison will see.

    Attributes:
        comparison: its name.
        metric: machine name.
        least: as a ratio - 1, found with 80 % power; None where nothing is known about its forks.
        similar: what is known is of other sizes or settings, or of another variant of the engine.
    """

    comparison: str
    metric: str
    least: float | None
    similar: bool = False


class Estimate(msgspec.Struct, frozen=True):
    """What an experiment is expected to take and to see.

    Attributes:
        planned: forks of every variant, as the experiment has it.
        blocks: as many as are expected to be run: fewer than planned where a budget ends it.
        budget_s: of the forks; None without one.
        costs: of every variant of every measurement.
        sights: of every comparison, with as many forks as blocks.
        assumed: (CV in percent, least difference) for what is not known.
    """

    planned: int
    blocks: int
    budget_s: float | None
    costs: tuple[ForkCost, ...]
    sights: tuple[Sight, ...]
    assumed: tuple[tuple[float, float], ...]

    @property
    def block_s(self) -> float:
        """Of one fork of every variant of every measurement, seconds."""
        return sum(one.seconds for one in self.costs)

    @property
    def total_s(self) -> float:
        """Of all forks that are expected to be run, seconds; preparing is not in it."""
        return self.blocks * self.block_s

    @property
    def expected_s(self) -> float | None:
        """The same; None where nothing but the rule says so."""
        return None if all(one.basis == "rule" for one in self.costs) else self.total_s

    @property
    def rough(self) -> tuple[ForkCost, ...]:
        """Those whose likes were never measured here."""
        return tuple(one for one in self.costs if one.basis in ("operations", "rule"))


def estimate(
    spec: ExperimentSpec,
    plans: Plans,
    records: Iterable[RunRecord],
    fingerprint: str,
    *,
    budget_s: float | None = None,
) -> Estimate:
    """Look at earlier runs, and work out what an experiment costs and sees.

    Args:
        spec: what is asked.
        plans: of its measurements.
        records: of runs, newest first.
        fingerprint: of this host; runs of others say nothing.
        budget_s: for the forks; None for as long as they take.
    """
    past = _Past(records, fingerprint)
    costs = tuple(
        past.cost(name, planned.plan, variant)
        for name, planned in plans.items()
        for variant in planned.plan.variants
    )
    blocks = spec.forks
    if budget_s is not None:
        # The first block is run whatever it takes.
        blocks = min(blocks, max(1, int(budget_s // sum(one.seconds for one in costs))))
    return Estimate(
        planned=spec.forks,
        blocks=blocks,
        budget_s=budget_s,
        costs=costs,
        sights=tuple(past.sight(row, plans, blocks) for row in spec.comparisons),
        assumed=tuple((cv, _least(blocks, sd_of(cv / 100))) for cv in ASSUMED_CVS_PERCENT),
    )


class _Past:
    """Earlier runs on this machine, as they bear on single variants of plans."""

    def __init__(self, records: Iterable[RunRecord], fingerprint: str) -> None:
        self._records = [record for record in records if record.environment.fingerprint == fingerprint]
        self._fingerprint = fingerprint
        self._requests = _Requests(self._records)
        self._known: dict[tuple[str, str], tuple[History, History]] = {}

    def cost(self, measurement: str, plan: Plan, variant: VariantSpec) -> ForkCost:
        """Of one fork."""
        own, like = self._histories(measurement, plan, variant)
        kind = kind_of(variant)
        if kind in own.fork_s:
            return ForkCost(measurement, variant.name, own.fork_s[kind], "variant")
        if kind in like.fork_s:
            return ForkCost(measurement, variant.name, like.fork_s[kind], "engine")
        return ForkCost(measurement, variant.name, *self._requests.fork(plan, variant))

    def sight(self, row: ComparisonSpec, plans: Plans, forks: int) -> Sight:
        """Of one comparison."""
        noises = [self._noise(ref, row.metric, plans) for ref in (row.baseline, row.contender)]
        known = [one for one in noises if one is not None]
        if len(known) < len(noises):
            return Sight(row.name, row.metric, None)
        sd = math.sqrt(sum(noise.sd**2 for noise, _ in known) / len(known))
        similar = any(other or noise.match == "similar" for noise, other in known)
        return Sight(row.name, row.metric, _least(forks, sd), similar)

    def _noise(self, ref: TaskRef, metric: str, plans: Plans) -> tuple[Noise, bool] | None:
        """How much forks differ, and whether those are of another variant."""
        plan = plans[ref.measurement].plan
        place = place_of(plan, ref)
        (variant,) = (spec for spec in plan.variants if spec.name == ref.variant)
        own, like = self._histories(ref.measurement, plan, variant)
        for history, other in ((own, False), (like, True)):
            noise = history.noises.get((place, metric, kind_of(variant)))
            if noise is not None:
                return noise, other
        return None

    def _histories(self, measurement: str, plan: Plan, variant: VariantSpec) -> tuple[History, History]:
        """What is known of a variant itself, and of all of its engine."""
        key = (measurement, variant.name)
        if key not in self._known:
            alone = msgspec.structs.replace(plan, variants=(variant,))
            related = [record for record in self._records if _related(record.plan, plan)]
            self._known[key] = (
                collect_history(_of(related, variant), alone, self._fingerprint),
                collect_history(related, alone, self._fingerprint),
            )
        return self._known[key]


def _related(plan: Plan, other: Plan) -> bool:
    """Whether two plans have a challenge in common: without, neither says anything about the other."""
    names = {challenge.name for challenge in other.schedules}
    return plan.track == other.track and any(challenge.name in names for challenge in plan.schedules)


def _of(records: Iterable[RunRecord], variant: VariantSpec) -> Iterator[RunRecord]:
    """Records with only what is the same variant, whatever it was called."""
    wanted = msgspec.structs.replace(variant, name="")
    for record in records:
        same = tuple(
            spec for spec in record.plan.variants if msgspec.structs.replace(spec, name="") == wanted
        )
        if same:
            yield msgspec.structs.replace(record, plan=msgspec.structs.replace(record.plan, variants=same))


class _Requests:
    """How long requests took by engine and operation, whatever else the forks did.

    Args:
        records: of runs on this machine.
    """

    def __init__(self, records: Iterable[RunRecord]) -> None:
        found: dict[tuple[str, str], list[float]] = {}
        for record in records:
            millions = record.plan.corpus.documents / 1e6
            engines = {spec.name: spec.engine for spec in record.plan.variants}
            for fork in record.forks if millions else ():
                for one in fork.summaries:
                    if one.mean_ns and fork.variant in engines:
                        key = (engines[fork.variant], one.operation)
                        found.setdefault(key, []).append(one.mean_ns / 1e9 / millions)
        self._per_million = {key: statistics.median(values) for key, values in found.items()}

    def fork(self, plan: Plan, variant: VariantSpec) -> tuple[float, Basis]:
        """Seconds of a fork, and whether all of its operations are known."""
        warmups = (*plan.variant_warmups.get(variant.name, ()), *plan.warmup_challenges)
        starts = len(boots(plan))
        tasks = [*starts * _tasks(warmups), *_tasks(plan.schedules)]
        millions = plan.corpus.documents / 1e6
        seconds = FORK_S + starts * BOOT_S
        for task in tasks:
            known = self._per_million.get((variant.engine, task.operation), REQUEST_S_PER_MILLION_DOCUMENTS)
            seconds += task_s(task, max(REQUEST_S, millions * known))
        unknown = any((variant.engine, task.operation) not in self._per_million for task in tasks)
        return seconds, "rule" if unknown else "operations"


def _tasks(challenges: Sequence[Challenge]) -> list[Task]:
    return [task for challenge in challenges for task in challenge.schedule]


def task_s(task: Task, request_s: float) -> float:
    """Seconds of a task: its time, or its requests at the rate that it asks for, or as long as these take."""
    if task.time_period is not None:
        return task.time_period + (task.warmup_time_period or 0.0)
    requests = (task.iterations or 1) + (task.warmup_iterations or 0)
    if task.rate_per_s:
        return requests * task.clients / task.rate_per_s
    return requests * request_s


def _least(forks: int, sd: float) -> float:
    """The least difference that two sides of so many forks show, as a ratio - 1; infinite for one each."""
    return math.expm1(mde(forks, forks, sd))
