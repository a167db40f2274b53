"""Made-up nodes for searches: how slow they are follows from the variant and from what ran before."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from benchctl.errors import BenchctlError, ExitCode
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import VariantSpec
from benchctl.run.bench import SilentObserver
from benchctl.search.bisect import Bisecting
from benchctl.search.candidates import Candidates, candidates_of
from benchctl.search.conduct import Job, SearchContext, conduct
from benchctl.search.minimize import Minimizing
from benchctl.search.record import BisectSpec, Effect, MinimizeSpec, Point, SearchFolder, SearchRecord
from benchctl.track.load import load_track
from benchctl.track.model import Challenge, Task
from builders import CORPUS, ES, OS, make_fork, make_plan, make_record, make_summary

TASKS = ("default", "desc_sort_timestamp", "term", "composite-date_histogram-daily")
NEEDED = {"desc_sort_timestamp", "composite-date_histogram-daily"}
FORK_S = 2.0
POINTS = 32

Slowness = Callable[[list[Task], VariantSpec], float]


def slow_after_both(front: list[Task], _spec: VariantSpec) -> float:
    """The target takes half as long again when both ran before it."""
    return 1.5 if {task.label for task in front} >= NEEDED else 1.0


@dataclass
class World(SilentObserver):
    """Runs of such nodes.

    Attributes:
        slowness: factor of the last task's time.
        noise: SD of forks.
        broken: tasks, or variants, with which forks fail; `refusing`: variants that cannot be prepared.
        unbuilt: points of a history that do not build.
        interrupt_after: forks; then somebody presses Ctrl-C.
        silent: no fork has a figure.
        asked: tasks in front and variants, of every question that was measured.
    """

    slowness: Slowness = slow_after_both
    noise: float = 0.03
    broken: frozenset[str] = frozenset()
    refusing: frozenset[str] = frozenset()
    unbuilt: frozenset[int] = frozenset()
    interrupt_after: int = 10**6
    silent: bool = False
    clock_s: float = 0.0
    forks: int = 0
    asked: list[tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)
    begun: dict[str, RunRecord] = field(default_factory=dict)
    gone_on: list[tuple[str, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def variant(self, number: int) -> VariantSpec:
        if number in self.unbuilt:
            raise BenchctlError(f"p{number} does not build: make exited with status 2\n  no rule", hint="see")
        return msgspec.structs.replace(ES, name=f"p{number}")

    def measure(self, job: Job) -> tuple[RunRecord, ...]:
        plan = job.plans[0]
        names = tuple(spec.name for spec in plan.variants)
        self.asked.append((tuple(task.label for task in plan.schedules[0].schedule[:-1]), names))
        if self.refusing & {*names}:
            raise BenchctlError("elasticsearch 8.11.0 exited with status 1 before it was ready")
        runs = job.runs or tuple(f"run-{len(self.begun) + number}" for number in range(len(job.plans)))
        if job.runs:
            self.gone_on.append(runs)
        for name, one in zip(runs, job.plans, strict=True):
            self.begun.setdefault(name, make_record(name, plan=one))
        job.started(runs)
        block_s = FORK_S * len(runs) * len(names)
        for block in range(plan.forks):
            if job.enough([self.begun[name] for name in runs]):
                break
            if block and job.left_s is not None and job.left_s() < block_s:
                break
            for name in runs:
                self.block(name, block)
        return tuple(self.begun[name] for name in runs)

    def block(self, name: str, block: int) -> None:
        for spec in self.begun[name].plan.variants:
            record = self.begun[name]
            if any(fork.block == block and fork.variant == spec.name for fork in record.forks):
                continue
            if self.forks >= self.interrupt_after:
                self.interrupt_after = 10**6
                raise BenchctlError("interrupted", exit_code=ExitCode.INTERRUPTED)
            fork = self.fork(list(record.plan.schedules[0].schedule), spec, block)
            self.begun[name] = msgspec.structs.replace(record, forks=(*record.forks, fork))

    def fork(self, tasks: list[Task], spec: VariantSpec, block: int) -> ForkRecord:
        self.forks += 1
        self.clock_s += FORK_S
        draw = np.random.default_rng((self.forks, block)).normal(0, self.noise)
        mean_ms = 10 * self.slowness(tasks[:-1], spec) * math.exp(draw)
        summaries = [make_summary(task.label, mean_ms, task=place) for place, task in enumerate(tasks)]
        failed: dict[str, Any] = {}
        if self.broken & {spec.name, *(task.label for task in tasks)}:
            failed = {"status": "failed", "reason": "the node died"}
        done = () if self.silent else summaries
        return make_fork(spec.name, block, *done, wall_s=FORK_S, **failed)


def made(*, iterations: int = 10, short: int | None = None) -> Candidates:
    track, _ = load_track("big5", {})
    tasks = (*(Task(name, iterations=iterations) for name in TASKS), Task("range", iterations=10))
    return candidates_of(Challenge("big5", tasks), "range", track.operations, short)


def minimized(
    folder: SearchFolder,
    world: World,
    candidates: Candidates | None = None,
    *,
    effect: Effect | None = None,
    by: float | None = None,
    **changes: Any,
) -> SearchRecord:
    """A search of `range`, new or gone on with."""
    effect = effect or Effect("range", "slower", "es")
    candidates = candidates or made()
    record = SearchRecord(
        id=folder.path.name,
        spec=MinimizeSpec(effect=effect, by=by, prefix_iterations=candidates.iterations),
        metric="throughput",
        most=12,
        plan=make_plan(
            variants=(ES, OS) if effect.against else (ES,),
            schedules=(candidates.challenge,),
            corpus=msgspec.structs.replace(CORPUS, digest=""),
        ),
    )
    return _conducted(folder, world, Minimizing(candidates), record, changes)


def bisected(
    world: World, path: Path, levels: list[float] | None = None, most: int = 24, **changes: Any
) -> SearchRecord:
    """A bisection of points that take so long, as logarithms."""
    if levels is not None:
        world.noise, world.slowness = 0.02, lambda _, spec: math.exp(levels[int(spec.name[1:])])
    record = SearchRecord(
        id=path.name,
        spec=BisectSpec(
            points=tuple(Point(f"p{number}", f"Change {number}") for number in range(len(levels or ()))),
            variants=(ES,),
            place=(0, 0),
            task="range",
        ),
        metric="throughput",
        most=most,
        plan=make_plan(schedules=(Challenge("one", (Task("range", iterations=10),)),)),
    )
    return _conducted(SearchFolder(path), world, Bisecting(world.variant), record, changes)


def _conducted(
    folder: SearchFolder,
    world: World,
    policy: Minimizing | Bisecting,
    record: SearchRecord,
    changes: dict[str, Any],
) -> SearchRecord:
    record = folder.load() if (folder.path / "search.json").exists() else record
    record = msgspec.structs.replace(record, **{"budget_s": None, **changes})
    context = SearchContext(folder, policy, world.measure, world, clock=lambda: world.clock_s)
    found = conduct(context, record)
    assert folder.load() == found
    return found
