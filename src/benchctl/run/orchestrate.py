"""A run from plan to record: block after block, every fork on disk before the next begins."""

import shutil
import statistics
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from benchctl.errors import BenchctlError, ExitCode
from benchctl.home import Home
from benchctl.results.model import (
    RECORD_VERSION,
    EngineFacts,
    Environment,
    ForkRecord,
    Plan,
    RunRecord,
    RunStatus,
)
from benchctl.results.store import RunFolder, RunStore, new_run_id
from benchctl.run.fork import ForkJob, ForkRunner
from benchctl.run.host import describe_host, free_bytes
from benchctl.run.observer import Observer
from benchctl.run.plan import block_order
from benchctl.run.prepare import Subject, check_answers, check_memory, prepare_corpus, prepare_subjects
from benchctl.track.model import Track

# Logs, translogs and cluster states of a fork; the index itself is linked.
FREE_BYTES_PER_FORK = 300 * 2**20
# One failure may be bad luck; the second in a row of the same variant will be followed by a third.
MAX_FAILURES_IN_A_ROW = 2
HIGH_LOAD_PER_CPU = 0.5


@dataclass(frozen=True)
class Bench:
    """What every run on this machine shares."""

    home: Home
    store: RunStore
    observer: Observer
    stop: threading.Event


def start_run(bench: Bench, plan: Plan, track: Track) -> tuple[RunFolder, RunRecord]:
    """Prepare and run a new plan; its corpus digest may still be empty.

    Returns:
        The run's folder and its final record; forks that failed are in the record.

    Raises:
        BenchctlError: preparation failed, results cannot be written, or the run was interrupted.
    """
    environment = describe_host()
    clean_scratch(bench.home)
    check_memory(plan, environment.memory_bytes)
    clock = time.monotonic()
    plan, subjects = _prepare(bench, plan, track)
    now = datetime.now(UTC)
    label = "+".join(challenge.name for challenge in plan.schedules)
    folder = bench.store.create(new_run_id(label, now.strftime("%Y%m%d-%H%M%S")))
    record = RunRecord(
        record_version=RECORD_VERSION,
        id=folder.path.name,
        created=now.isoformat(timespec="seconds"),
        status="running",
        plan=plan,
        environment=environment,
        indices={subject.spec.name: subject.index.facts for subject in subjects},
        caveats=host_caveats(environment),
    )
    folder.save(record)
    timings = {"prepare-s": time.monotonic() - clock}
    return folder, _Run(bench, folder, record, track, subjects).execute(timings)


def resume_run(bench: Bench, folder: RunFolder, track: Track) -> RunRecord:
    """Run the forks that a record is missing.

    Raises:
        BenchctlError: what is measured, or where, is not what it was.
    """
    record = folder.load()
    environment = describe_host()
    clean_scratch(bench.home)
    plan, subjects = _prepare(bench, record.plan, track)
    changes = [
        *environment_changes(record.environment, environment),
        *_plan_changes(record.plan, plan, track),
        *_engine_changes(record, subjects),
    ]
    if changes:
        raise BenchctlError(
            f"run {record.id} cannot be resumed, because this is no longer what it was measured on: "
            + "; ".join(changes),
            hint="start a new run; the finished forks of the old one stay readable",
        )
    return _Run(bench, folder, record, track, subjects).execute({})


def clean_scratch(home: Home) -> None:
    """Remove what a killed benchctl left half-done; call it with the host lock held."""
    for leftover in home.scratch.iterdir():
        shutil.rmtree(leftover, ignore_errors=True)


def _prepare(bench: Bench, plan: Plan, track: Track) -> tuple[Plan, list[Subject]]:
    corpus = prepare_corpus(bench.home, plan.corpus.documents, plan.corpus.seed, bench.observer)
    spec = msgspec.structs.replace(
        plan.corpus, digest=corpus.digest, generator_version=corpus.generator_version
    )
    plan = msgspec.structs.replace(plan, corpus=spec)
    subjects = prepare_subjects(plan, track, corpus, bench.home, bench.observer)
    return plan, subjects


class _Run:
    """The part of a run that repeats: forks, each saved before the next."""

    def __init__(
        self, bench: Bench, folder: RunFolder, record: RunRecord, track: Track, subjects: Sequence[Subject]
    ) -> None:
        self._bench = bench
        self._folder = folder
        self._record = record
        self._track = track
        self._subjects = {subject.spec.name: subject for subject in subjects}
        self._runner = ForkRunner(record.plan, track, folder, bench.home, bench.observer, bench.stop)
        self._seconds: list[float] = []
        self._failures_in_a_row: dict[str, int] = {}

    def execute(self, timings: dict[str, float]) -> RunRecord:
        """Check the answers, run what is missing, and say how it ended."""
        try:
            self._answers(timings)
            clock = time.monotonic()
            self._forks()
            timings["forks-s"] = time.monotonic() - clock
        except KeyboardInterrupt as err:
            self._finish("interrupted", timings)
            raise BenchctlError(
                f"interrupted; {self._summary()}",
                hint=f"go on with: benchctl run --resume {self._record.id}",
                exit_code=ExitCode.INTERRUPTED,
            ) from err
        except BenchctlError:
            self._finish("failed", timings)
            raise
        self._finish("failed" if self._record.missing() else "complete", timings)
        return self._record

    def _answers(self, timings: dict[str, float]) -> None:
        if self._record.answers is not None:
            return
        clock = time.monotonic()
        subjects = list(self._subjects.values())
        answers = check_answers(
            subjects, self._record.plan, self._track, self._bench.home, self._bench.observer
        )
        timings["answers-s"] = time.monotonic() - clock
        self._update(answers=answers)
        for finding in answers.findings:
            self._bench.observer.note(
                f"answers: {finding.operation} on {finding.variant} is {finding.kind}: {finding.detail}"
            )

    def _forks(self) -> None:
        plan = self._record.plan
        missing = set(self._record.missing())
        total = plan.forks * len(plan.variants)
        for block in range(plan.forks):
            for position, spec in enumerate(block_order(plan, block)):
                if (block, spec.name) in missing:
                    number = total - len(self._record.missing()) + 1
                    self._fork(ForkJob(self._subjects[spec.name], block, position), number, total)

    def _fork(self, job: ForkJob, number: int, total: int) -> None:
        name = job.subject.spec.name
        free = free_bytes(self._bench.home.scratch)
        if free < FREE_BYTES_PER_FORK:
            raise BenchctlError(
                f"only {free / 2**20:.0f} MB are free in {self._bench.home.root}, "
                f"a fork needs {FREE_BYTES_PER_FORK / 2**20:.0f}",
                hint=f"free some space, then: benchctl run --resume {self._record.id}",
            )
        left = len(self._record.missing())
        expected = statistics.median(self._seconds) * left if self._seconds else None
        self._bench.observer.fork_started(name, number, total, expected)
        fork, facts = self._runner.run(job)
        self._seconds.append(fork.wall_s)
        self._keep(fork, facts)
        self._bench.observer.fork_done(fork)
        self._give_up_when_hopeless(fork)

    def _keep(self, fork: ForkRecord, facts: EngineFacts | None) -> None:
        others = [old for old in self._record.forks if (old.block, old.variant) != (fork.block, fork.variant)]
        engines = self._record.engines
        if facts is not None and facts.variant not in {known.variant for known in engines}:
            engines = (*engines, facts)
        self._update(forks=(*others, fork), engines=engines, caveats=self._caveats_after(fork))

    def _caveats_after(self, fork: ForkRecord) -> tuple[str, ...]:
        """A node that answered searches nobody sent has another JIT state than the schedule's."""
        strays = [
            f"fork {fork.block} of {fork.variant}: the node counted {boot.searches_counted} searches, "
            f"{boot.searches_sent} were sent"
            for boot in fork.boots
            if boot.searches_counted is not None and boot.searches_counted != boot.searches_sent
        ]
        return (*self._record.caveats, *strays)

    def _give_up_when_hopeless(self, fork: ForkRecord) -> None:
        failures = self._failures_in_a_row.get(fork.variant, 0) + 1 if fork.status == "failed" else 0
        self._failures_in_a_row[fork.variant] = failures
        if failures >= MAX_FAILURES_IN_A_ROW:
            raise BenchctlError(
                f"{failures} forks of {fork.variant} failed one after the other; {self._summary()}\n"
                f"  the last: {fork.reason}",
                hint=f"mend the cause, then: benchctl run --resume {self._record.id}",
            )

    def _update(self, **changes: object) -> None:
        self._record = msgspec.structs.replace(self._record, **changes)
        self._folder.save(self._record)

    def _finish(self, status: RunStatus, timings: dict[str, float]) -> None:
        merged = dict(self._record.timings)
        for name, seconds in timings.items():
            merged[name] = merged.get(name, 0.0) + seconds
        self._update(status=status, timings=merged)

    def _summary(self) -> str:
        plan = self._record.plan
        total = plan.forks * len(plan.variants)
        return f"{total - len(self._record.missing())} of {total} forks are kept in {self._folder.path}"


def host_caveats(environment: Environment) -> tuple[str, ...]:
    """What about the host makes its figures doubtful."""
    found = []
    if environment.other_java:
        found.append(f"other Java processes were up: {', '.join(environment.other_java)}")
    if environment.governor not in {None, "performance"}:
        found.append(f"the CPU governor is '{environment.governor}', not 'performance'")
    if environment.load_before[0] > HIGH_LOAD_PER_CPU * environment.cpus:
        found.append(
            f"the load before the run was {environment.load_before[0]:.1f} on {environment.cpus} CPUs"
        )
    return tuple(found)


def environment_changes(before: Environment, now: Environment) -> list[str]:
    """What differs between two descriptions of a host that a run may not cross."""
    fixed = (
        "hostname", "kernel", "cpu_model", "cpus", "governor", "memory_bytes", "virtualization", "python",
        "benchctl", "benchctl_commit", "libcurl",
    )  # fmt: skip
    return [
        f"{name.replace('_', ' ')} was {getattr(before, name)}, is {getattr(now, name)}"
        for name in fixed
        if getattr(before, name) != getattr(now, name)
    ]


def _plan_changes(before: Plan, now: Plan, track: Track) -> list[str]:
    changes = []
    if before.corpus.digest != now.corpus.digest:
        changes.append(f"corpus was {before.corpus.digest[:12]}, is {now.corpus.digest[:12]}")
    if before.track_digest != track.digest:
        changes.append(f"track {track.name} was {before.track_digest[:12]}, is {track.digest[:12]}")
    return changes


def _engine_changes(record: RunRecord, subjects: Sequence[Subject]) -> list[str]:
    changes = []
    known = {facts.variant: facts for facts in record.engines}
    for subject in subjects:
        name = subject.spec.name
        facts = known.get(name)
        if facts is not None and facts.archive_sha256 != subject.installation.archive_sha256:
            changes.append(f"the archive of {name} has changed")
        if facts is not None and facts.jdk != f"{subject.jdk.vendor} {subject.jdk.version}":
            changes.append(
                f"the JDK of {name} was {facts.jdk}, is {subject.jdk.vendor} {subject.jdk.version}"
            )
        index = record.indices.get(name)
        if index is not None and index.key != subject.index.facts.key:
            changes.append(f"the prepared index of {name} has changed")
    return changes
