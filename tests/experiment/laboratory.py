"""Experiments without nodes: forks are made up, everything that is written is real."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

from benchctl.experiment.conduct import Laboratory, begin, conduct
from benchctl.experiment.file import Experiment
from benchctl.experiment.record import ExperimentFolder, ExperimentRecord, ExperimentStore
from benchctl.home import Home
from benchctl.results.figures import Calibration
from benchctl.results.model import RunRecord
from benchctl.results.plan import Plan
from benchctl.results.store import RunFolder, RunStore
from benchctl.run.bench import Bench
from benchctl.run.fork import ForkJob
from benchctl.run.orchestrate import Extras, More
from benchctl.run.study import Hopeless, LeftOf, NotResumable, OpenRun
from builders import make_environment, make_fork, make_record, make_summary
from report.conftest import CALIBRATION

Fork = tuple[int, str, str]
"""(block, measurement, variant)."""

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


class Observer:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.started: list[str] = []
        self.ended: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def stage(self, text: str) -> None:
        pass

    def progress(self, what: str, done: int, total: int) -> None:
        pass

    def fork_started(self, variant: str, number: int, total: int, remaining_s: float | None) -> None:
        assert remaining_s is None or remaining_s >= 0
        self.started.append(f"{variant} {number}/{total}")

    def fork_done(self, record: Any, remaining_s: float | None) -> None:
        assert remaining_s is None or remaining_s >= 0
        self.ended.append(record.variant)


class MadeRun(OpenRun):
    """A run that needs no node for a fork."""

    def __init__(self, world: "World", bench: Bench, folder: RunFolder, record: RunRecord) -> None:
        subjects: Any = [SimpleNamespace(spec=spec) for spec in record.plan.variants]
        track: Any = None
        super().__init__(bench, folder, record, track, subjects)
        self._world = world

    def ask(self) -> None:
        self.timings["answers-s"] = 0.1

    def company(self, job: ForkJob) -> object:
        return job.subject.spec.name

    def fork(
        self, jobs: Sequence[ForkJob], number: int, total: int | None, left_s: LeftOf
    ) -> dict[str, Hopeless]:
        (job,) = jobs
        variant = job.subject.spec.name
        one = (job.block, measurement_of(self.record), variant)
        self._world.before_fork(one)
        self._bench.observer.fork_started(variant, number, total, left_s([variant]))
        self._world.forks.append(one)
        plan = self.record.plan
        summaries = [
            make_summary(task.label, self._world.time_ms(one), schedule=schedule, task=place)
            for schedule, challenge in enumerate(plan.schedules)
            for place, task in enumerate(challenge.schedule)
        ]
        changes = {"status": "failed", "reason": "no node"} if self._world.fails(one) else {}
        fork = make_fork(variant, job.block, *summaries, wall_s=2.0, **changes)
        others = [old for old in self.record.forks if (old.block, old.variant) != (fork.block, variant)]
        self._update(forks=(*others, fork), caveats=self._caveats_after(fork))
        self._bench.observer.fork_done(fork, left_s([]))
        error = self._hopeless(fork)
        return {} if error is None else {variant: error}


def measurement_of(record: RunRecord) -> str:
    (tag,) = (tag for tag in record.tags if tag.startswith("measurement-"))
    return tag.removeprefix("measurement-")


def nothing(_what: Any) -> None:
    """Let it go on."""


@dataclass
class World:
    """One machine.

    Attributes:
        root: of its home.
        before_fork: called with every fork; may raise.
        before_open: called with every plan that is opened.
        before_reopen: called with every record that is gone on with.
        fails: which forks fail.
        time_ms: of every request of a fork.
        forks: that were run, in order.
        calibrated: how often the driver's own cost was measured.
    """

    root: Path
    before_fork: Callable[[Fork], None] = nothing
    before_open: Callable[[Plan], None] = nothing
    before_reopen: Callable[[RunRecord], None] = nothing
    fails: Callable[[Fork], bool] = lambda _fork: False
    time_ms: Callable[[Fork], float] = lambda _fork: 10.0
    forks: list[Fork] = field(default_factory=list)
    observer: Observer = field(default_factory=Observer)
    calibrated: int = 0

    @property
    def home(self) -> Home:
        return Home(self.root)

    @property
    def store(self) -> RunStore:
        return RunStore(self.home.runs)

    @property
    def experiments(self) -> ExperimentStore:
        return ExperimentStore(self.home.experiments)

    @property
    def folder(self) -> ExperimentFolder:
        (folder,) = self.experiments.folders()
        return folder

    @property
    def record(self) -> ExperimentRecord:
        return self.folder.load()

    def run(self, name: str) -> RunRecord:
        return self.store.find(self.record.runs[name]).load()

    def begin(self, experiment: Experiment, budget_s: float | None = None) -> ExperimentRecord:
        folder = begin(self.experiments, experiment, NOW)
        return conduct(folder, self.bench, experiment.plans, budget_s=budget_s, laboratory=self.laboratory)

    def resume(self, budget_s: float | None = None, more: More | None = None) -> ExperimentRecord:
        return conduct(self.folder, self.bench, budget_s=budget_s, more=more, laboratory=self.laboratory)

    @property
    def bench(self) -> Bench:
        return Bench(self.home, self.store, self.observer, Event())

    @property
    def laboratory(self) -> Laboratory:
        return Laboratory(open=self.open, reopen=self.reopen, calibration=self.calibration)

    def calibration(self, _bench: Any, _plan: Plan) -> Calibration:
        self.calibrated += 1
        return CALIBRATION

    def open(self, bench: Bench, plan: Plan, _track: Any, extras: Extras) -> OpenRun:
        self.before_open(plan)
        assert not extras.forecast
        folder = bench.store.create(f"run-{len(bench.store.folders())}")
        record = make_record(
            folder.path.name,
            plan=plan,
            tags=extras.tags,
            environment=make_environment(),
            calibration=extras.calibration,
        )
        folder.save(record)
        run = MadeRun(self, bench, folder, record)
        run.timings["prepare-s"] = 1.5
        return run

    def reopen(self, bench: Bench, folder: RunFolder, _track: Any) -> OpenRun:
        record = folder.load()
        self.before_reopen(record)
        return MadeRun(self, bench, folder, record)


def not_resumable(record: RunRecord) -> None:
    raise NotResumable(f"run {record.id} cannot be resumed, because the kernel was another")
