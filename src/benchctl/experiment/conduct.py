"""The conduct of an experiment: all measurements opened, then interleaved; or the remainder of both."""

import dataclasses
import statistics
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from benchctl.errors import UsageError
from benchctl.experiment.execution import runs_of, tags_of
from benchctl.experiment.judge import analyse_experiment
from benchctl.experiment.plan import DECIDED, Plans, cut, plan_measurement
from benchctl.experiment.record import ExperimentFolder, ExperimentRecord
from benchctl.home import Home
from benchctl.report.numbers import counted, duration
from benchctl.results.figures import Calibration
from benchctl.results.model import ForkRecord, RunRecord, RunStatus
from benchctl.results.plan import Plan
from benchctl.results.store import RunFolder
from benchctl.run.bench import Bench, Observer
from benchctl.run.calibrate import calibration_of
from benchctl.run.open_run import MAX_FAILURES_IN_A_ROW, NotResumable, OpenRun
from benchctl.run.orchestrate import Extras, More, open_run, reopen_run
from benchctl.run.plan import reload_track
from benchctl.run.study import TIME_UP, Policy, Side, Study, ending
from benchctl.spec import MOST_FORKS

# Progress of one measurement among several: whatever is told of it bears its name.


class Named:
    """An observer that forwards to another, with the measurement's name where there is room."""

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

    def fork_done(self, record: ForkRecord) -> None:
        """Pass it on, as for a fork's beginning."""
        named = msgspec.structs.replace(record, variant=f"{self._name}/{record.variant}")
        self._observer.fork_done(named)


# An experiment from plans to record.


@dataclass(frozen=True)
class Laboratory:
    """Environment of the measurements."""

    open: Callable[..., tuple[OpenRun, dict[str, float]]] = open_run  # makes a run of a plan; see `open_run`
    reopen: Callable[..., OpenRun] = reopen_run  # goes on with one; see `reopen_run`
    calibration: Callable[[Bench, Plan], Calibration | None] = calibration_of


def plans_to_open(record: ExperimentRecord, home: Home) -> Plans:
    """Return the plans of the measurements that an interrupted execution had not opened.

    Raises:
        UsageError: If what they need is not there any more.
        NotResumable: If one would do something else than was planned when the execution began.
    """
    plans = {}
    for measurement in record.spec.measurements:
        if measurement.name in record.runs:
            continue
        planned = cut(record.spec, plan_measurement(record.spec, measurement, home))
        if measurement.digest not in ("", planned.plan.digest):
            raise NotResumable(
                f"the experiment cannot be gone on with: files that measurement '{measurement.name}' is "
                "made from, such as its challenges, have changed since it began",
                hint="start the experiment again, or restore the files",
            )
        plans[measurement.name] = planned
    return plans


def conduct(
    folder: ExperimentFolder,
    bench: Bench,
    plans: Plans,
    *,
    budget_s: float | None = None,
    more: More | None = None,
    laboratory: Laboratory | None = None,
) -> ExperimentRecord:
    """Open what is not open yet, measure what is missing, then what is open, and record how it ended.

    Args:
        folder: of the execution, with its record.
        bench: what runs have in common.
        plans: of the measurements that have no run yet.
        budget_s: for the forks from now on; None for as long as they take.
        more: what is added to a complete execution; None for nothing.
        laboratory: what runs are measured with.

    Returns:
        The record. What failed is in it, and in those of the runs.

    Raises:
        NotResumable: If what is measured, or where, has changed; the record stays as it is.
        BenchctlError: If it was interrupted, or cannot go on; the record says so.
    """
    return _Conduct(folder, bench, plans, laboratory or Laboratory()).all(budget_s, more)


class _Conduct:
    def __init__(self, folder: ExperimentFolder, bench: Bench, plans: Plans, laboratory: Laboratory) -> None:
        self._folder = folder
        self._bench = bench
        self._plans = plans
        self._laboratory = laboratory
        self._record = folder.load()
        self._open: dict[str, OpenRun] = {}
        self._prepared: dict[str, dict[str, float]] = {}
        self._reopened: list[tuple[RunFolder, RunRecord]] = []
        self._calibrated: Calibration | None = None

    def all(self, budget_s: float | None, more: More | None) -> ExperimentRecord:
        with self._unless_changed(), ending(self._end, self._kept, f"benchctl resume {self._record.id}"):
            self._reopen_all(more)
            self._open_all()
            if more is not None:
                self._extend(more)
            stopped = self._measure(budget_s)
            if stopped:
                self._bench.observer.note(stopped)
        missing = any(run.missing() for run in self._runs().values())
        self._end("failed" if missing else "complete", stopped)
        return self._record

    def _measure(self, budget_s: float | None) -> str:
        """Measure what is missing, then what is open; return why not all of it, if so."""
        spec = self._record.spec
        # The order within blocks depends on these numbers: it is the same when some are complete.
        numbers = [
            number for number, measurement in enumerate(spec.measurements) if measurement.name in self._open
        ]
        runs = [self._open[spec.measurements[number].name] for number in numbers]
        deciding = _UntilDecided(self._record, list(self._open), self._bench.observer)
        if self._reopened and spec.until_decided:
            self._bench.observer.note(deciding.bound_text([run.record for run in runs]))
        before = _spent_s(runs)
        study = Study(
            runs,
            deciding if spec.until_decided else Policy(),
            self._bench.observer,
            seed=spec.seed,
            numbers=numbers,
            left_s=None if budget_s is None else lambda: budget_s - (_spent_s(runs) - before),
        )
        stopped = study.measure([self._prepared.get(run.record.id, {}) for run in runs])
        return f"{stopped}{deciding.still_open}" if stopped.startswith(TIME_UP) else stopped

    def _extend(self, more: More) -> None:
        spec = self._record.spec
        first = _blocks(run.record for run in self._open.values())
        forks = more.further(first)
        everywhere = 0 if more.until_decided else forks
        added = range(first, first + everywhere)
        most = first + forks if more.until_decided else spec.most_forks and spec.most_forks + everywhere
        for measurement in spec.measurements:
            run = self._open[measurement.name]
            stop = run.record.plan.stop
            if more.until_decided or (stop is not None and stop.decided):
                stop = DECIDED
            if measurement.ingest:
                continue
            record = run.record.with_blocks(added if measurement.forks is None else (), stop)
            run.extend(msgspec.structs.replace(record, looks=record.looks and record.looks + 1))
        decided = spec.until_decided or more.until_decided
        self._update(
            spec=msgspec.structs.replace(
                spec, forks=spec.forks + everywhere, until_decided=decided, most_forks=most
            )
        )

    def _reopen_all(self, more: More | None) -> None:
        """Reopen earlier runs, before opening new ones, which may take long."""
        self._update(status="running", stopped="")
        folders = {name: self._find(name, run_id) for name, run_id in self._record.runs.items()}
        growing = more is not None or self._record.spec.until_decided
        for name, run_folder in folders.items():
            record = run_folder.load()
            if not (growing or record.missing() or record.stopped or record.status == "running"):
                continue
            bench = self._named(name)
            bench.observer.stage("preparing")
            self._reopened.append((run_folder, record))
            if more is None and record.stopped:
                # The blocks that there was no time for are added again.
                caveats = tuple(text for text in record.caveats if text != record.stopped)
                run_folder.save(msgspec.structs.replace(record, stopped="", caveats=caveats, status="failed"))
            self._open[name] = self._laboratory.reopen(bench, run_folder, reload_track(record.plan))

    def _find(self, name: str, run_id: str) -> RunFolder:
        try:
            return self._bench.store.find(run_id)
        except UsageError as err:
            raise NotResumable(f"the run of measurement '{name}' is gone: {err.message}") from err

    def _open_all(self) -> None:
        for measurement in self._record.spec.measurements:
            if measurement.name in self._record.runs:
                continue
            name, planned = measurement.name, self._plans[measurement.name]
            bench = self._named(name)
            bench.observer.stage("preparing")
            extras = Extras(
                calibration=self._calibration(planned.plan),
                tags=(*tags_of(self._record.id, name), *measurement.tags),
                files=planned.files,
                forecast=False,
            )
            run, timings = self._laboratory.open(bench, planned.plan, planned.track, extras)
            self._open[name] = run
            self._prepared[run.record.id] = timings
            self._update(runs={**self._record.runs, name: run.record.id})

    def _calibration(self, plan: Plan) -> Calibration | None:
        """Return the calibration for all measurements: it is about the machines that load comes from."""
        if self._calibrated is None:
            self._calibrated = self._laboratory.calibration(self._bench, plan)
        return self._calibrated

    def _named(self, name: str) -> Bench:
        observer = Named(self._bench.observer, name)
        return dataclasses.replace(self._bench, observer=observer, whole=self._record.id)

    @contextmanager
    def _unless_changed(self) -> Iterator[None]:
        """Leave everything as it was if what is measured, or where, has changed."""
        before = self._record
        try:
            yield
        except NotResumable as err:
            for run_folder, record in self._reopened:
                run_folder.save(record)
            self._folder.save(before)
            raise NotResumable(
                err.message,
                hint=f"start the experiment again; measured so far: benchctl experiment report {before.id}",
            ) from err

    def _kept(self) -> str:
        runs, spec = self._runs(), self._record.spec
        done = sum(run.total - len(run.missing()) for run in runs.values())
        total = sum(
            runs[measurement.name].total if measurement.name in runs else spec.planned(measurement)
            for measurement in spec.measurements
        )
        return f"{done} of {total} forks are kept"

    def _end(self, status: RunStatus, stopped: str) -> None:
        for run in self._open.values():
            if run.record.status == "running":
                # It was opened, and nothing of it measured.
                ended = "interrupted" if status == "interrupted" else "failed"
                run.folder.save(msgspec.structs.replace(run.record, status=ended))
        runs = self._runs()
        spent_s = sum(fork.wall_s for run in runs.values() for fork in run.forks)
        self._update(status=status, stopped=stopped, spent_s=spent_s)

    def _runs(self) -> dict[str, RunRecord]:
        return runs_of(self._record, self._bench.store, lambda _message: None)

    def _update(self, **changes: object) -> None:
        self._record = msgspec.structs.replace(self._record, **changes)
        self._folder.save(self._record)


class _UntilDecided(Policy):
    """Gives blocks to all sides that open expectations rest on."""

    def __init__(self, record: ExperimentRecord, names: Sequence[str], observer: Observer) -> None:
        self._record = record
        self._names = names  # of the measurements, in the order of the study's runs
        self._observer = observer
        self.still_open = ""  # after a comma, for readers; empty before anybody looked

    def further(self, records: Sequence[RunRecord]) -> Collection[Side] | str:
        runs = {
            name: msgspec.structs.replace(run, status="failed" if run.missing() else "complete")
            for name, run in zip(self._names, records, strict=True)
        }
        expectations = analyse_experiment(self._record, runs).expectations
        still = [expectation for expectation in expectations if expectation.outcome == "inconclusive"]
        sides_of = [tuple(map(self._side, result.undecided)) for result in still]
        able = [sides for sides in sides_of if sides and all(self._can_grow(records, side) for side in sides)]
        open_now = counted(len(still), "expectation")
        self.still_open = f", with {open_now} still open"
        if able:
            self._observer.stage(f"deciding {open_now}")
            return list(dict.fromkeys(side for sides in able for side in sides))
        if any(self._full(records, side) for sides in sides_of for side in sides):
            return f"ended at {self._most} forks per variant{self.still_open}"
        return f"{open_now} still open that no forks decide" if still else ""

    def bound_text(self, records: Sequence[RunRecord]) -> str:
        """Tell how long it may take."""
        longest_s = 0.0
        for side in map(self._side, self._record.spec.expected_sides):
            done = records[side.run].compared(side.variant)
            usual_s = statistics.median(fork.wall_s for fork in done) if done else 0.0
            longest_s += max(0, self._most - len(done)) * usual_s
        return f"until decided: up to {self._most} forks per variant, which may take {duration(longest_s)}"

    def _side(self, name: str) -> Side:
        measurement, _, variant = name.partition("/")
        return Side(self._names.index(measurement), variant)

    def _can_grow(self, records: Sequence[RunRecord], side: Side) -> bool:
        """Return whether more forks are possible: not of a side that fails, or has as many as it may."""
        # What is missing was tried again with every block since.
        missing = sum(name == side.variant for _, name in records[side.run].missing())
        return missing < MAX_FAILURES_IN_A_ROW and not self._full(records, side)

    def _full(self, records: Sequence[RunRecord], side: Side) -> bool:
        return len(records[side.run].compared(side.variant)) >= self._most

    @property
    def _most(self) -> int:
        return self._record.spec.most_forks or MOST_FORKS


def _blocks(runs: Iterable[RunRecord]) -> int:
    """Return the first number after all blocks."""
    return 1 + max((block for run in runs for block in run.block_numbers), default=-1)


def _spent_s(runs: Sequence[OpenRun]) -> float:
    return sum(fork.wall_s for run in runs for fork in run.record.forks)
