"""The conduct of an experiment: all measurements opened, then interleaved; or the remainder of both."""

import dataclasses
import math
import re
import statistics
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import msgspec

from benchctl.errors import BenchctlError, ExitCode, UsageError
from benchctl.experiment.execution import runs_of, tags_of
from benchctl.experiment.judge import analyse_experiment
from benchctl.experiment.plan import DECIDED, Plans, cut, plan_measurement
from benchctl.experiment.record import ExperimentFolder, ExperimentRecord, ExperimentStatus
from benchctl.home import Home
from benchctl.report.numbers import counted, duration
from benchctl.results.figures import Calibration
from benchctl.results.model import MOST_FORKS, ForkRecord, RunRecord
from benchctl.results.plan import Plan
from benchctl.results.store import RunFolder
from benchctl.run.bench import Bench, Observer
from benchctl.run.calibrate import calibrate
from benchctl.run.open_run import MAX_FAILURES_IN_A_ROW, TIME_UP, OpenRun, interleave
from benchctl.run.orchestrate import Extras, NotResumable, open_run, reopen_run
from benchctl.run.plan import reload_track

_RESUME_RUN: Final = re.compile(r"benchctl run --resume \S+")


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

    def fork_started(self, variant: str, number: int, total: int, remaining_s: float | None) -> None:
        """Pass it on; several measurements may have a variant of that name."""
        self._observer.fork_started(f"{self._name}/{variant}", number, total, remaining_s)

    def fork_done(self, record: ForkRecord) -> None:
        """Pass it on, as for a fork's beginning."""
        named = msgspec.structs.replace(record, variant=f"{self._name}/{record.variant}")
        self._observer.fork_done(named)


# An experiment from plans to record.


@dataclass(frozen=True)
class Laboratory:
    """What runs are measured with."""

    open: Callable[..., tuple[OpenRun, dict[str, float]]] = open_run  # makes a run of a plan; see `open_run`
    reopen: Callable[..., OpenRun] = reopen_run  # goes on with one; see `reopen_run`
    interleave: Callable[..., str] = interleave
    calibrate: Callable[..., Calibration] = calibrate


@dataclass(frozen=True)
class More:
    """The forks that an execution gets beyond those that it has."""

    # Of every side, except where the experiment says that fewer are enough; the most of a side with
    # `until_decided`.
    forks: int
    until_decided: bool


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
                hint="start the experiment anew, or put the files back",
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
        with self._ending():
            self._reopen_all(more)
            self._open_all()
            if more is not None:
                self._extend(more)
            runs = list(self._open.values())
            before = _spent_s(runs)
            if self._reopened and self._record.spec.until_decided:
                self._bench.observer.note(self._bound_text())

            def left_s() -> float:
                return math.inf if budget_s is None else budget_s - (_spent_s(runs) - before)

            stopped = self._measure(list(self._open), left_s)
            if stopped.startswith(TIME_UP):
                for run in runs:
                    _end_early(run, stopped)
            elif self._record.spec.until_decided:
                stopped = self._decide(left_s) or stopped
            if stopped:
                self._bench.observer.note(stopped)
        missing = any(run.missing() for run in self._runs().values())
        self._end("failed" if missing else "complete", stopped)
        return self._record

    def _measure(self, names: Collection[str], left_s: Callable[[], float]) -> str:
        """Measure what is missing of some measurements; return why not all of it, if so."""
        # The order within blocks depends on these numbers: it is the same when some are complete.
        numbers = [number for number, one in enumerate(self._record.spec.measurements) if one.name in names]
        runs = [self._open[self._record.spec.measurements[number].name] for number in numbers]
        prepared = [self._prepared.pop(run.record.id, {}) for run in runs]
        return self._laboratory.interleave(
            runs,
            seed=self._record.spec.seed,
            observer=self._bench.observer,
            numbers=numbers,
            left_s=left_s,
            prepared=prepared,
        )

    def _decide(self, left_s: Callable[[], float]) -> str:
        """Measure blocks of all sides that open expectations rest on; return why it ends."""
        while True:
            runs = {name: run.record for name, run in self._open.items()}
            expectations = analyse_experiment(self._record, runs).expectations
            still = [one for one in expectations if one.outcome == "inconclusive"]
            able = [one for one in still if one.undecided and all(map(self._can_grow, one.undecided))]
            open_now = counted(len(still), "expectation")
            if not able:
                if any(self._full(side) for one in still for side in one.undecided):
                    return f"ended at {self._most} forks of a side, with {open_now} still open"
                return f"{open_now} still open that no forks decide" if still else ""
            sides = dict.fromkeys(side for one in able for side in one.undecided)
            if sum(map(self._fork_s, sides)) > left_s():
                return f"{TIME_UP} after {_blocks(runs.values())} blocks, with {open_now} still open"
            self._bench.observer.stage(f"deciding {open_now}")
            self._measure(self._add_block(sides), left_s)

    def _run_of(self, side: str) -> tuple[RunRecord, str]:
        """Return the run and the variant of `MEASUREMENT/VARIANT`."""
        measurement, _, variant = side.partition("/")
        return self._open[measurement].record, variant

    def _can_grow(self, side: str) -> bool:
        """Return whether more forks are possible: not of a side that fails, or has as many as it may."""
        run, variant = self._run_of(side)
        # What is missing was tried again with every block since.
        failing = sum(name == variant for _, name in run.missing()) >= MAX_FAILURES_IN_A_ROW
        return not failing and not self._full(side)

    def _full(self, side: str) -> bool:
        run, variant = self._run_of(side)
        return len(run.compared(variant)) >= self._most

    def _fork_s(self, side: str) -> float:
        run, variant = self._run_of(side)
        return statistics.median(fork.wall_s for fork in run.compared(variant))

    @property
    def _most(self) -> int:
        return self._record.spec.most_forks or MOST_FORKS

    def _bound_text(self) -> str:
        longest_s = 0.0
        for side in self._record.spec.expected_sides:
            run, variant = self._run_of(side)
            further = self._most - len(run.compared(variant))
            longest_s += max(0, further) * self._fork_s(side) if run.compared(variant) else 0.0
        return f"until decided: up to {self._most} forks of a side, which may take {duration(longest_s)}"

    def _add_block(self, sides: Iterable[str]) -> dict[str, set[str]]:
        """Have runs miss a block of these sides, under a number that no run has yet: so sides stay pairs."""
        variants: dict[str, set[str]] = {}
        for side in sides:
            measurement, _, variant = side.partition("/")
            variants.setdefault(measurement, set()).add(variant)
        block = _blocks(run.record for run in self._open.values())
        for name, names in variants.items():
            run = self._open[name]
            run.extend(run.record.with_blocks([block], run.record.plan.stop, names))
        return variants

    def _extend(self, more: More) -> None:
        spec = self._record.spec
        first = _blocks(run.record for run in self._open.values())
        everywhere = 0 if more.until_decided else more.forks
        added = range(first, first + everywhere)
        most = first + more.forks if more.until_decided else spec.most_forks and spec.most_forks + everywhere
        for one in spec.measurements:
            run = self._open[one.name]
            stop = run.record.plan.stop
            if more.until_decided or (stop is not None and stop.decided):
                stop = DECIDED
            if one.ingest:
                continue
            found = run.record.with_blocks(added if one.forks is None else (), stop)
            run.extend(msgspec.structs.replace(found, looks=found.looks + 1))
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
            told = self._record.spec.of(measurement)
            bench = self._named(name)
            bench.observer.stage("preparing")
            extras = Extras(
                calibration=self._calibration(planned.plan) if told.calibrate else None,
                tags=(*tags_of(self._record.id, name), *told.tags),
                files=planned.files,
                forecast=False,
            )
            run, timings = self._laboratory.open(bench, planned.plan, planned.track, extras)
            self._open[name] = run
            self._prepared[run.record.id] = timings
            self._update(runs={**self._record.runs, name: run.record.id})

    def _calibration(self, plan: Plan) -> Calibration:
        """Return the calibration for all measurements: it is about the machines that load comes from."""
        if self._calibrated is None:
            self._calibrated = self._laboratory.calibrate(self._bench.observer, self._bench.stop, plan)
        return self._calibrated

    def _named(self, name: str) -> Bench:
        return dataclasses.replace(self._bench, observer=Named(self._bench.observer, name))

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """Record how the execution ended, and put into the error how to resume it."""
        before = self._record
        try:
            yield
        except NotResumable as err:
            for run_folder, record in self._reopened:
                run_folder.save(record)
            self._folder.save(before)
            raise NotResumable(
                err.message,
                hint=f"start the experiment anew; what was measured: benchctl experiment report {before.id}",
            ) from err
        except KeyboardInterrupt as err:
            self._end("interrupted", "")
            raise self._interrupted() from err
        except BenchctlError as err:
            if err.exit_code == ExitCode.INTERRUPTED:
                self._end("interrupted", "")
                raise self._interrupted() from err
            self._end("failed", err.message)
            raise BenchctlError(err.message, hint=self._advice(err.hint), exit_code=err.exit_code) from err
        except BaseException:
            # A bug must not leave an experiment that looks as if it were still going on, either.
            self._end("failed", "")
            raise

    def _interrupted(self) -> BenchctlError:
        runs = self._runs()
        spec = self._record.spec
        done = sum(run.total - len(run.missing()) for run in runs.values())
        total = sum(
            runs[one.name].total if one.name in runs else spec.planned(one) for one in spec.measurements
        )
        return BenchctlError(
            f"the experiment is interrupted; {done} of {total} forks are kept",
            hint=f"go on with: {self._resume}",
            exit_code=ExitCode.INTERRUPTED,
        )

    def _advice(self, hint: str) -> str:
        """Return advice to resume the experiment: a run's own would resume that run alone."""
        advice = _RESUME_RUN.sub(self._resume, hint)
        if self._resume in advice:
            return advice
        return "; ".join(filter(None, (advice, f"then: {self._resume}")))

    @property
    def _resume(self) -> str:
        return f"benchctl experiment run --resume {self._record.id}"

    def _end(self, status: ExperimentStatus, stopped: str) -> None:
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


def _blocks(runs: Iterable[RunRecord]) -> int:
    """Return the first number after all blocks."""
    return 1 + max((block for run in runs for block in run.block_numbers), default=-1)


def _spent_s(runs: Sequence[OpenRun]) -> float:
    return sum(fork.wall_s for run in runs for fork in run.record.forks)


def _end_early(run: OpenRun, reason: str) -> None:
    """Have a run's record say that blocks which were not begun do not belong to it."""
    record = run.record
    if not record.missing():
        return
    ended = msgspec.structs.replace(record, stopped=reason, caveats=(*record.caveats, reason))
    status = "failed" if ended.missing() else "complete"
    run.folder.save(msgspec.structs.replace(ended, status=status))
