"""The conduct of an experiment: all measurements opened, then interleaved; or the remainder of both."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from benchctl.errors import BenchctlError, UsageError
from benchctl.evidence.call_sites import RunLog, logs_of, read_called
from benchctl.evidence.inlining_log import InliningLog
from benchctl.experiment.file import Experiment, Plans
from benchctl.experiment.record import (
    CallSite,
    ExperimentFolder,
    ExperimentRecord,
    ExperimentSpec,
    ExperimentStore,
    SeenCall,
    tags_of,
)
from benchctl.results.figures import Calibration
from benchctl.results.model import ForkRecord, RunRecord, RunStatus
from benchctl.results.plan import Plan, boot_of
from benchctl.results.store import RunStore
from benchctl.run.bench import Bench, Observer
from benchctl.run.fitness import calibration_of
from benchctl.run.orchestrate import Extras, More, open_run, reopen_run
from benchctl.run.plan import reload_track
from benchctl.run.study import NotResumable, OpenRun, Study, ending

# Executions, from their records and runs.


def begin(store: ExperimentStore, experiment: Experiment, now: datetime) -> ExperimentFolder:
    """Create the folder and record of a new execution; nothing is measured yet. `now` has a time zone.

    Raises:
        BenchctlError: If it cannot be written.
    """
    folder = store.new(experiment.spec.name, now.strftime("%Y%m%d-%H%M%S"))
    folder.save(
        ExperimentRecord(
            id=folder.path.name,
            created=now.isoformat(timespec="seconds"),
            status="running",
            spec=experiment.spec,
            on_busy=experiment.on_busy,
        )
    )
    return folder


def runs_of(
    record: ExperimentRecord, store: RunStore, unreadable: Callable[[str], None]
) -> dict[str, RunRecord]:
    """Return measurement -> record of its run, if readable; `unreadable` gets the others, with the reason."""
    runs = {}
    for name, run_id in record.runs.items():
        try:
            runs[name] = store.find(run_id).load()
        except BenchctlError as err:
            unreadable(f"measurement {name}: {err.message}")
    return runs


def seen_calls(spec: ExperimentSpec, runs: Mapping[str, RunRecord], store: RunStore) -> tuple[SeenCall, ...]:
    """Look at every call site in every finished fork that was to keep a log.

    Raises:
        BenchctlError: If a run cannot be found, or its tasks are not those that the experiment names.
    """
    measured = {site.measurement for site in spec.call_sites} & runs.keys()
    logs = {name: logs_of(store.find(runs[name].id), runs[name]) for name in measured}
    return tuple(
        call
        for site in spec.call_sites
        if site.measurement in runs
        for call in _of_site(site, runs[site.measurement], logs[site.measurement])
    )


def _of_site(site: CallSite, run: RunRecord, logs: Sequence[RunLog]) -> Iterator[SeenCall]:
    by_boot = {(log.variant, log.block, log.boot): log for log in logs}
    for variant in site.variants:
        place = site.task_of(variant).place_in(run.plan)
        for fork in run.done(variant):
            if "inlining" in run.plan.evidence_in(fork.block):
                which = (variant, fork.block, boot_of(run.plan, fork.block, place))
                seen = SeenCall(site=site.name, variant=variant, block=fork.block, found=None)
                yield _looked_at(seen, site, by_boot.get(which))


def _looked_at(seen: SeenCall, site: CallSite, log: RunLog | None) -> SeenCall:
    if log is None:
        return msgspec.structs.replace(seen, words="it does not exist")
    try:
        called = read_called(InliningLog(log.path), site.method, site.callee)
    except BenchctlError as err:
        return msgspec.structs.replace(seen, words=err.message)
    return msgspec.structs.replace(
        seen,
        found=called.found,
        words=called.words,
        receivers={receiver.name: receiver.count for receiver in called.receivers},
        calls=called.calls,
        given_up=called.given_up_ms is not None,
    )


# An experiment from plans to record.


class Named(Observer):
    """An observer of one measurement among several: it forwards to another, with the measurement's name."""

    def __init__(self, observer: Observer, name: str) -> None:
        self._observer = observer
        self._name = name

    def note(self, text: str) -> None:
        """Pass it on, named."""
        self._observer.note(f"{self._name}: {text}")

    def stage(self, text: str) -> None:
        """Pass it on, named."""
        self._observer.stage(f"{self._name}: {text}")

    def progress(self, what: str, done: int, total: int) -> None:
        """Pass it on."""
        self._observer.progress(what, done, total)

    def fork_started(self, variant: str, number: int, total: int | None, remaining_s: float | None) -> None:
        """Pass it on; several measurements may have a variant of that name."""
        self._observer.fork_started(f"{self._name}/{variant}", number, total, remaining_s)

    def fork_done(self, record: ForkRecord, remaining_s: float | None) -> None:
        """Pass it on, as for a fork's beginning."""
        named = msgspec.structs.replace(record, variant=f"{self._name}/{record.variant}")
        self._observer.fork_done(named, remaining_s)


@dataclass(frozen=True)
class Laboratory:
    """Environment of the measurements."""

    open: Callable[..., OpenRun] = open_run  # makes a run of a plan; see `open_run`
    reopen: Callable[..., OpenRun] = reopen_run  # goes on with one; see `reopen_run`
    calibration: Callable[[Bench, Plan], Calibration | None] = calibration_of


def conduct(
    folder: ExperimentFolder,
    bench: Bench,
    plans: Plans | None = None,
    *,
    budget_s: float | None = None,
    more: More | None = None,
    laboratory: Laboratory | None = None,
) -> ExperimentRecord:
    """Open the measurements or go on with them, measure what is missing, and record how it ended.

    Args:
        folder: of the execution, with its record.
        bench: what runs have in common.
        plans: of the measurements of a new execution; None for one that goes on.
        budget_s: for the forks from now on; None for as long as they take.
        more: forks that are added to a complete execution; None for none.
        laboratory: what runs are measured with.

    Returns:
        The record. What failed is in it, and in those of the runs.

    Raises:
        NotResumable: If what is measured, or where, has changed; all records stay as they are.
        BenchctlError: If it was interrupted, or cannot go on; the record says so.
    """
    one = _Conduct(folder, bench, laboratory or Laboratory())
    if plans is None:
        one.reopen(more)
    else:
        one.open(plans)
    return one.all(budget_s)


class _Conduct:
    def __init__(self, folder: ExperimentFolder, bench: Bench, laboratory: Laboratory) -> None:
        self._folder = folder
        self._bench = bench
        self._laboratory = laboratory
        self._record = folder.load()
        self._open: dict[str, OpenRun] = {}

    def open(self, plans: Plans) -> None:
        """Prepare all measurements and open their runs, before anything is measured."""
        calibration: Calibration | None = None
        with ending(self._end, lambda: "nothing was measured; what is prepared is kept", "the same command"):
            for name, planned in plans.items():
                bench = self._named(name)
                bench.observer.stage("preparing")
                # It is about the machines that load comes from, and so the same for all measurements.
                calibration = calibration or self._laboratory.calibration(self._bench, planned.plan)
                extras = Extras(
                    calibration=calibration,
                    tags=(*tags_of(self._record.id, name), *planned.tags),
                    files=planned.files,
                    forecast=False,
                )
                run = self._laboratory.open(bench, planned.plan, planned.track, extras)
                self._open[name] = run
                self._update(runs={**self._record.runs, name: run.record.id})

    def reopen(self, more: More | None) -> None:
        """Reopen the runs that something is missing of; no record is changed until all are open."""
        spec, again = self._record.spec, "start the experiment again"
        if self._record.runs.keys() < spec.measurements.keys():
            raise NotResumable("the experiment ended before anything was measured", hint=again)
        for name in spec.measurements:
            try:
                run_folder = self._bench.store.find(self._record.runs[name])
            except UsageError as err:
                gone = f"the run of measurement '{name}' is missing: {err.message}"
                raise NotResumable(gone, hint=again) from err
            record = run_folder.load()
            if more or record.missing() or record.stopped or record.unfinished:
                bench = self._named(name)
                bench.observer.stage("preparing")
                self._open[name] = self._laboratory.reopen(bench, run_folder, reload_track(record.plan))
        self._update(status="running", stopped="")
        if more is not None:
            self._extend(more)
            return
        for run in self._open.values():
            # The blocks that there was no time for are added again.
            caveats = tuple(text for text in run.record.caveats if text != run.record.stopped)
            run.extend(msgspec.structs.replace(run.record, stopped="", caveats=caveats))

    def all(self, budget_s: float | None) -> ExperimentRecord:
        """Measure what is missing."""
        with ending(self._end, self._kept, f"benchctl resume {self._record.id}"):
            stopped = self._measure(budget_s)
            if stopped:
                self._bench.observer.note(stopped)
        missing = any(run.missing() for run in self._runs().values())
        self._end("failed" if missing else "complete", stopped)
        return self._record

    def _measure(self, budget_s: float | None) -> str:
        """Measure what is missing; return why not all of it, if so."""
        # The order within blocks depends on these numbers: it is the same when some are complete.
        names = [*self._record.spec.measurements]
        numbers = [number for number, name in enumerate(names) if name in self._open]
        runs = [self._open[names[number]] for number in numbers]
        before = _spent_s(runs)
        study = Study(
            runs,
            self._bench.observer,
            seed=self._record.spec.seed,
            numbers=numbers,
            left_s=None if budget_s is None else lambda: budget_s - (_spent_s(runs) - before),
        )
        return study.measure()

    def _extend(self, more: More) -> None:
        records = [run.record for run in self._open.values()]
        first = 1 + max((block for record in records for block in record.block_numbers), default=-1)
        added = range(first, first + more.further(first))
        for name, measurement in self._record.spec.measurements.items():
            run = self._open[name]
            # Of index builds there are no forks.
            if run.record.plan.schedules:
                record = run.record.with_blocks(added if measurement.grows else (), run.record.plan.stop)
                run.extend(msgspec.structs.replace(record, looks=record.looks and record.looks + 1))

    def _named(self, name: str) -> Bench:
        observer = Named(self._bench.observer, name)
        return dataclasses.replace(self._bench, observer=observer, whole=self._record.id)

    def _kept(self) -> str:
        runs = self._runs().values()
        total = sum(run.total for run in runs)
        return f"{total - sum(len(run.missing()) for run in runs)} of {total} forks are kept"

    def _end(self, status: RunStatus, stopped: str) -> None:
        for run in self._open.values():
            if run.record.status == "running":
                # It was opened, and nothing of it measured.
                ended = "interrupted" if status == "interrupted" else "failed"
                run.folder.save(msgspec.structs.replace(run.record, status=ended))
            run.release()
        spent_s = sum(fork.wall_s for run in self._runs().values() for fork in run.forks)
        self._update(status=status, stopped=stopped, spent_s=spent_s)

    def _runs(self) -> dict[str, RunRecord]:
        return runs_of(self._record, self._bench.store, lambda _message: None)

    def _update(self, **changes: object) -> None:
        self._record = msgspec.structs.replace(self._record, **changes)
        self._folder.save(self._record)


def _spent_s(runs: Sequence[OpenRun]) -> float:
    return sum(fork.wall_s for run in runs for fork in run.record.forks)
