"""A run from plan to record: block after block, every fork on disk before the next begins."""

import shutil
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache

import msgspec

from benchctl.disk import free_bytes, require_space
from benchctl.endpoint import Endpoint
from benchctl.engine.prepared.index import bytes_per_document
from benchctl.errors import BenchctlError, ExitCode
from benchctl.home import Home
from benchctl.load.workers import WorkerPool
from benchctl.results.checks import stray_boots
from benchctl.results.figures import Calibration
from benchctl.results.model import RECORD_VERSION, EngineFacts, ForkRecord, RunRecord, RunStatus
from benchctl.results.plan import CorpusSpec, Plan
from benchctl.results.store import RunFolder, RunStore, new_run_id, reference
from benchctl.run.caveats import data_caveats, host_caveats, load_caveats, stand_in_caveats
from benchctl.run.changes import (
    corpus_changes,
    engine_changes,
    environment_changes,
    pin_changes,
    track_changes,
)
from benchctl.run.documents import (
    FileOptions,
    Parcel,
    check_files,
    find_corpus,
    is_generated,
    needs_documents,
    parcels,
)
from benchctl.run.forecast import announce
from benchctl.run.fork import ForkJob, ForkRunner
from benchctl.run.host import describe_host
from benchctl.run.observer import Observer
from benchctl.run.pilot import PilotBench, check_lengthening, run_pilot
from benchctl.run.pin import allowed_cpus, cores_of, pin_caveats, pinned
from benchctl.run.plan import block_order
from benchctl.run.prepare import check_answers, check_memory, prepare_corpus, prepare_subject
from benchctl.run.session import AnySubject, TargetSubject
from benchctl.run.stopping import reason_to_stop, remaining_s, shortfall, within
from benchctl.run.targets import corpus_of_targets, prepare_target, target_caveats
from benchctl.run.work import check_work
from benchctl.track.model import Track

# Logs, translogs and cluster states of a fork; the index itself is linked.
FREE_BYTES_PER_FORK = 300 * 2**20
# One failure may be bad luck; the second in a row of the same variant will be followed by a third.
MAX_FAILURES_IN_A_ROW = 2


@dataclass(frozen=True)
class Bench:
    """What every run on this machine shares.

    Attributes:
        home: where everything is kept that runs have in common.
        store: of the runs.
        observer: told what happens.
        stop: set from outside to end a task early.
        endpoints: variant -> where it is and with which credentials, for clusters that run already.
    """

    home: Home
    store: RunStore
    observer: Observer
    stop: threading.Event
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)


def start_run(
    bench: Bench,
    plan: Plan,
    track: Track,
    *,
    calibration: Calibration | None = None,
    tags: tuple[str, ...] = (),
    until_steady: bool = False,
    files: FileOptions | None = None,
    left_s: Callable[[], float] | None = None,
    ask_anew: bool = False,
) -> tuple[RunFolder, RunRecord]:
    """Prepare and run a new plan; its corpus digest may still be empty.

    Args:
        bench: where.
        plan: what.
        track: of the plan.
        calibration: what the driver costs here, if that was measured: kept with the run.
        tags: words to find it again by.
        until_steady: let pilot forks choose for how long tasks warm up.
        files: which documents are to come from files, as it was said when the plan was made.
        left_s: seconds that forks may take, asked once all is prepared; None for as long as the plan says.
        ask_anew: ask all searches, also those whose answers are kept beside prepared indices.

    Returns:
        The run's folder and its final record; forks that failed are in the record.

    Raises:
        UsageError: pilot forks were asked for, and there is nothing that they could choose; or the plan's
            documents are not there.
        BenchctlError: preparation failed, results cannot be written, or the run was interrupted.
    """
    if until_steady:
        check_lengthening(plan)
    environment = describe_host()
    clean_scratch(bench.home)
    if any(spec.target is None for spec in plan.variants):
        check_memory(plan, environment.memory_bytes)
    bench.store.open()
    clock = time.monotonic()
    if needs_documents(plan.variants):
        corpus = find_corpus(plan, track, files or FileOptions(), bench.home, bench.observer)
        plan = msgspec.structs.replace(plan, corpus=corpus)
    check_work(plan, track, bench.home)
    plan, subjects = _prepare(bench, plan, track)
    timings = {"prepare-s": time.monotonic() - clock}
    if left_s is not None:
        plan = msgspec.structs.replace(plan, stop=within(plan.stop, left_s()))
    pilot = None
    if until_steady:
        clock = time.monotonic()
        pilots = PilotBench(bench.home, bench.observer, bench.stop, tags)
        plan, pilot = run_pilot(pilots, plan, track, subjects)
        timings["pilot-s"] = time.monotonic() - clock
    announce(bench.store, plan, environment.fingerprint, bench.observer)
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
        indices={one.spec.name: one.index_facts for one in subjects if one.index_facts is not None},
        builds={subject.spec.name: subject.builds for subject in subjects if len(subject.builds) > 1},
        caveats=(
            *host_caveats(environment),
            *load_caveats(plan, calibration),
            *data_caveats(plan),
            *pin_caveats(plan, cores_of(allowed_cpus())),
            *target_caveats(
                [subject for subject in subjects if isinstance(subject, TargetSubject)], plan.corpus.documents
            ),
        ),
        calibration=calibration,
        tags=tags,
        pilot=pilot,
    )
    folder.save(record)
    return folder, _Run(bench, folder, record, track, subjects, ask_anew=ask_anew).execute(timings)


def resume_run(bench: Bench, folder: RunFolder, track: Track, *, ask_anew: bool = False) -> RunRecord:
    """Run the forks that a record is missing; none of a run that ended early by its own rule.

    Of one that was cut off before its answers were known they are asked, with `ask_anew` as in `start_run`.

    Raises:
        NotResumable: what is measured, or where, is not what it was.
        BenchctlError: as of `start_run`.
    """
    record = folder.load()
    if record.stopped and not record.missing():
        bench.observer.note(f"run {record.id} is complete: it {record.stopped}; nothing is measured")
        return record
    # First what costs nothing to find out: preparing may take long.
    changes = environment_changes(record.environment, describe_host())
    changes += pin_changes(record.plan, allowed_cpus())
    _refuse_changes(record, [*changes, *track_changes(record.plan, track)])
    clean_scratch(bench.home)
    check_files(record.plan, bench.home)
    plan, subjects = _prepare(bench, record.plan, track)
    _refuse_changes(record, [*corpus_changes(record.plan, plan), *engine_changes(record, subjects)])
    return _Run(bench, folder, record, track, subjects, ask_anew=ask_anew).execute({})


class NotResumable(BenchctlError):  # noqa: N818 - what is so, not a mistake of anybody
    """What is measured, or where, is not what it was when the run began."""


def _refuse_changes(record: RunRecord, changes: Sequence[str]) -> None:
    if changes:
        raise NotResumable(
            f"run {record.id} cannot be resumed, because this is no longer what it was measured on: "
            + "; ".join(changes),
            hint="start a new run; the finished forks of the old one stay readable",
        )


def clean_scratch(home: Home) -> None:
    """Remove what a killed benchctl left half-done; call it with the host lock held."""
    for leftover in home.scratch.iterdir():
        shutil.rmtree(leftover, ignore_errors=True)


def _prepare(bench: Bench, plan: Plan, track: Track) -> tuple[Plan, list[AnySubject]]:
    """Everything that forks need: running clusters first, since what is wrong with them is found at once."""

    @cache
    def corpus() -> tuple[CorpusSpec, Sequence[Parcel]]:
        spec = plan.corpus
        if is_generated(plan):
            made = prepare_corpus(bench.home, spec.documents, spec.seed, bench.observer)
            spec = msgspec.structs.replace(spec, digest=made.digest, generator_version=made.generator_version)
        return spec, parcels(msgspec.structs.replace(plan, corpus=spec), track, bench.home)

    targets = {
        spec.name: prepare_target(spec, bench.endpoints[spec.name], plan, track, corpus, bench.observer)
        for spec in plan.variants
        if spec.target is not None
    }
    if len(targets) == len(plan.variants) and not any(one.index_facts.key for one in targets.values()):
        return corpus_of_targets(plan, targets), list(targets.values())
    if plan.origin == "empty":
        bench.observer.note(
            f"challenge {plan.schedules[0].name} makes its own data: every fork begins on an empty node"
        )
    documents, found = corpus()
    plan = msgspec.structs.replace(plan, corpus=documents)
    subjects = [
        targets.get(spec.name) or prepare_subject(spec, plan, track, found, bench.home, bench.observer)
        for spec in plan.variants
    ]
    return plan, subjects


class _Run:
    """The part of a run that repeats: forks, each saved before the next."""

    def __init__(
        self,
        bench: Bench,
        folder: RunFolder,
        record: RunRecord,
        track: Track,
        subjects: Sequence[AnySubject],
        *,
        ask_anew: bool = False,
    ) -> None:
        self._bench = bench
        self._ask_anew = ask_anew
        self._folder = folder
        self._record = record
        self._track = track
        self._subjects = {subject.spec.name: subject for subject in subjects}
        self._seconds: list[float] = []
        self._failures_in_a_row: dict[str, int] = {}

    def execute(self, timings: dict[str, float]) -> RunRecord:
        """Check the answers, run what is missing, and say how it ended."""
        status: RunStatus = "failed"
        try:
            self._answers(timings)
            clock = time.monotonic()
            with ExitStack() as stack:
                stack.enter_context(pinned(self._record.plan.pin))
                size = self._record.plan.workers
                workers = stack.enter_context(WorkerPool(size)) if size > 1 else None
                self._forks(workers)
            timings["forks-s"] = time.monotonic() - clock
            self._say_shortfall()
            status = "failed" if self._record.missing() else "complete"
        except KeyboardInterrupt as err:
            status = "interrupted"
            raise BenchctlError(
                f"interrupted; {self._summary()}",
                hint=f"go on with: {self._resume}",
                exit_code=ExitCode.INTERRUPTED,
            ) from err
        finally:
            # A bug must not leave a run that looks as if it were still going on, either.
            self._finish(status, timings)
        return self._record

    def _answers(self, timings: dict[str, float]) -> None:
        # Where every fork makes its own data there is none to ask beforehand.
        if self._record.answers is not None or self._record.plan.origin == "empty":
            return
        clock = time.monotonic()
        bench, subjects = self._bench, list(self._subjects.values())
        answered = check_answers(
            subjects, self._record.plan, self._track, bench.home, bench.observer, ask_anew=self._ask_anew
        )
        timings["answers-s"] = time.monotonic() - clock
        # Before the record says that there are any: a run that ends in between asks again.
        for kept in answered.kept:
            self._folder.write_answers(kept)
        self._update(answers=answered.check)

    def _forks(self, workers: WorkerPool | None) -> None:
        bench = self._bench
        runner = ForkRunner(
            self._record.plan,
            self._track,
            self._folder,
            bench.home,
            bench.observer,
            bench.stop,
            workers=workers,
        )
        plan = self._record.plan
        missing = set(self._record.missing())
        total = self._record.total
        jobs = [
            ForkJob(self._subjects[spec.name], block, position)
            for block in range(self._record.blocks)
            for position, spec in enumerate(block_order(plan, block))
            if (block, spec.name) in missing
        ]
        for number, job in enumerate(jobs, total - len(jobs) + 1):
            reason = reason_to_stop(self._record, job.block)
            if reason:
                self._bench.observer.note(reason)
                self._update(stopped=reason, caveats=(*self._record.caveats, reason))
                return
            self._fork(runner, job, number, total)

    def _fork(self, runner: ForkRunner, job: ForkJob, number: int, total: int) -> None:
        name = job.subject.spec.name
        scratch = self._bench.home.scratch
        needed = FREE_BYTES_PER_FORK
        if self._record.plan.origin == "empty":
            corpus = self._record.plan.corpus
            needed += round(corpus.documents * bytes_per_document(corpus))
        require_space(
            scratch,
            needed,
            "run a fork",
            available=free_bytes(scratch),
            hint=f"free some space, then: {self._resume}",
        )
        expected = statistics.median(self._seconds) * (total - number + 1) if self._seconds else None
        self._bench.observer.fork_started(name, number, total, remaining_s(self._record, expected))
        fork, facts = runner.run(job)
        self._seconds.append(fork.wall_s)
        self._keep(fork, facts)
        self._bench.observer.fork_done(fork)
        self._give_up_when_hopeless(fork)

    def _say_shortfall(self) -> None:
        """That a run ended is not to be read as that it reached what it was asked for."""
        if not self._record.missing():
            lacking = shortfall(self._record)
            if lacking:
                self._bench.observer.note(lacking)
                self._update(caveats=tuple(dict.fromkeys((*self._record.caveats, lacking))))

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
            for boot in stray_boots(fork)
        ]
        return tuple(dict.fromkeys((*self._record.caveats, *strays, *stand_in_caveats(fork))))

    def _give_up_when_hopeless(self, fork: ForkRecord) -> None:
        failures = self._failures_in_a_row.get(fork.variant, 0) + 1 if fork.status == "failed" else 0
        self._failures_in_a_row[fork.variant] = failures
        if failures >= MAX_FAILURES_IN_A_ROW:
            raise BenchctlError(
                f"{failures} forks of {fork.variant} failed one after the other; {self._summary()}\n"
                f"  the last: {fork.reason}",
                hint=f"mend the cause, then: {self._resume}",
            )

    def _update(self, **changes: object) -> None:
        self._record = msgspec.structs.replace(self._record, **changes)
        self._folder.save(self._record)

    def _finish(self, status: RunStatus, timings: dict[str, float]) -> None:
        merged = dict(self._record.timings)
        for name, seconds in timings.items():
            merged[name] = merged.get(name, 0.0) + seconds
        self._update(status=status, timings=merged)

    @property
    def _resume(self) -> str:
        """The command that goes on with this run."""
        return f"benchctl run --resume {reference(self._folder, self._bench.home.runs)}"

    def _summary(self) -> str:
        total = self._record.total
        return f"{total - len(self._record.missing())} of {total} forks are kept in {self._folder.path}"
