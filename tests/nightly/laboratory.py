"""Nights without nodes: runs are made up from how fast every variant is said to be, all else is real."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event as Flag
from typing import Any

import msgspec
import numpy as np

from benchctl.home import Home
from benchctl.nightly.night import Ended, Laboratory, Shift, run_night
from benchctl.nightly.records import SuiteFolder
from benchctl.nightly.suite import load_suite
from benchctl.results.model import EngineFacts, RunRecord
from benchctl.results.plan import Plan, VariantSpec
from benchctl.results.store import RunFolder, RunStore
from benchctl.run.bench import Bench
from benchctl.run.fitness import Snapshot
from benchctl.run.orchestrate import Extras
from builders import make_environment, make_fork, make_record, make_summary

SLOW_FLAG = "-XX:-Inline"
ENOUGH_TO_DECIDE = 8

SUITE = """
variants: ["{label}=es{options}"]
canary: steady=os
challenges: [{challenge}]
forks: 5
host: {{settle: 0s, {limits}}}
{more}
"""


class Observer:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def stage(self, text: str) -> None:
        pass

    def progress(self, what: str, done: int, total: int) -> None:
        pass

    def fork_started(self, variant: str, number: int, total: int, remaining_s: float | None) -> None:
        pass

    def fork_done(self, record: Any, remaining_s: float | None) -> None:
        pass


@dataclass
class World:
    """What tonight is like.

    Attributes:
        root: where everything is.
        mean_ms: how long a request takes, by variant; the flag doubles it.
        host: everything takes so many times as long.
        noise: SD of forks.
        broken: variant whose nodes do not start.
        failures: of every task, by outcome.
        hits: of every search.
        fail: called with the plan before a run is made: may raise.
        now: the wall clock of the next night.
        clock_s: seconds; a fork takes `fork_s`.
    """

    root: Path
    mean_ms: Callable[[VariantSpec], float] = lambda _spec: 10.0
    host: float = 1.0
    noise: float = 0.01
    broken: str = ""
    failures: dict[str, int] = field(default_factory=dict)
    hits: int = 1
    fail: Callable[[Plan], None] = lambda _plan: None
    now: datetime = datetime(2026, 11, 1, 3, 0, tzinfo=UTC)
    clock_s: float = 0.0
    fork_s: float = 1.0
    build: str = "build-1"
    host_limits: str = "least-free-gb: 0"
    challenge: str = "range-only-short"
    runs: list[RunRecord] = field(default_factory=list)
    observer: Observer = field(default_factory=Observer)

    @property
    def home(self) -> Home:
        return Home(self.root / "home")

    @property
    def folder(self) -> SuiteFolder:
        return SuiteFolder(self.home.nightly / "suite")

    def night(self, *, flags: str = "", more: str = "", label: str = "candidate", options: str = "") -> Ended:
        """Run one, a day after the last."""
        path = self.write_suite(flags=flags, more=more, label=label, options=options)
        suite = load_suite(path)
        bench = Bench(self.home, RunStore(self.home.runs), self.observer, Flag())
        shift = Shift(suite, self.folder, bench, self.laboratory, lambda: self.now, lambda: self.clock_s)
        try:
            return run_night(shift)
        finally:
            self.now += timedelta(days=1)

    def notified_night(self) -> None:
        """Run one, and keep that its message was sent."""
        record = self.night().record
        self.folder.save(msgspec.structs.replace(record, told=True))

    def write_suite(
        self, *, flags: str = "", more: str = "", label: str = "candidate", options: str = ""
    ) -> Path:
        path = self.root / "suite.yml"
        options += flags and f",jvm:{flags}"
        text = SUITE.format(
            label=label, options=options, more=more, limits=self.host_limits, challenge=self.challenge
        )
        path.write_text(text)
        return path

    @property
    def laboratory(self) -> Laboratory:
        return Laboratory(
            start=self.start,
            pin=lambda spec, _home: spec,
            look=self.look,
        )

    def look(self, _home: Home) -> Snapshot:
        return Snapshot(0.0, None, None, 100 * 10**9, 16 * 10**9)

    def start(self, bench: Bench, plan: Plan, _track: Any, extras: Extras) -> tuple[RunFolder, RunRecord]:
        """Make a run up: one block after the other, for as long as there is time."""
        assert extras.files.local is None
        number = len(bench.store.folders()) + 1
        folder = bench.store.create(f"run-{number:03d}")
        record = make_record(folder.path.name, plan=plan, tags=extras.tags, environment=make_environment())
        folder.save(record)
        self.fail(plan)
        left = None if extras.left_s is None else extras.left_s()
        return folder, self._measured(folder, record, left)

    def _measured(self, folder: RunFolder, record: RunRecord, left_s: float | None) -> RunRecord:
        plan = record.plan
        forks = []
        stopped = ""
        draw = np.random.default_rng(len(self.runs))
        # What the tests are about is decided by that many.
        most = ENOUGH_TO_DECIDE if plan.stop is not None and plan.stop.decided else plan.forks
        for block in range(most):
            if left_s is not None and block and (block + 1) * self.fork_s * len(plan.variants) > left_s:
                stopped = f"ended after {block} of at most {plan.forks} forks per variant"
                break
            for spec in plan.variants:
                forks.append(self._fork(plan, spec, block, float(draw.normal(0, self.noise))))
                self.clock_s += self.fork_s
        facts = [
            EngineFacts(
                spec.name, spec.version, self.build, "9.8.0", "sha", "Temurin 21.0.8", spec.jvm_flags, ()
            )
            for spec in plan.variants
        ]
        record = msgspec.structs.replace(
            record, status="complete", forks=tuple(forks), engines=tuple(facts), stopped=stopped
        )
        folder.save(record)
        self.runs.append(record)
        return record

    def _fork(self, plan: Plan, spec: VariantSpec, block: int, noise: float) -> Any:
        slow = 2.0 if SLOW_FLAG in spec.jvm_flags else 1.0
        mean_ms = self.mean_ms(spec) * slow * self.host * (1 + noise)
        summaries = [
            make_summary(
                task.label,
                mean_ms,
                schedule=schedule,
                task=place,
                failures=self.failures,
                hits=self.hits,
                hits_exact=True,
            )
            for schedule, challenge in enumerate(plan.schedules)
            for place, task in enumerate(challenge.schedule)
        ]
        if spec.name == self.broken:
            return make_fork(spec.name, block, wall_s=self.fork_s, status="failed", reason="no node started")
        return make_fork(spec.name, block, *summaries, wall_s=self.fork_s)
