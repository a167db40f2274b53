"""An experiment from plans to record: all measurements opened, then interleaved; or what is left of that."""

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import msgspec

from benchctl.errors import BenchctlError, ExitCode, UsageError
from benchctl.experiment.execution import runs_of, tags_of
from benchctl.experiment.naming import Named
from benchctl.experiment.plan import Plans, digest_of, plan_measurement
from benchctl.home import Home
from benchctl.results.experiment.folder import ExperimentFolder
from benchctl.results.experiment.model import ExperimentRecord, ExperimentStatus
from benchctl.results.model import RunRecord
from benchctl.results.store import RunFolder
from benchctl.run.bench import Bench
from benchctl.run.interleave import TIME_UP, interleave
from benchctl.run.opened import OpenRun
from benchctl.run.orchestrate import Extras, NotResumable, open_run, reopen_run
from benchctl.run.plan import reload_track

_RESUME_RUN: Final = re.compile(r"benchctl run --resume \S+")


@dataclass(frozen=True)
class Laboratory:
    """What runs are measured with.

    Attributes:
        open: makes a run of a plan; see `open_run`.
        reopen: goes on with one; see `reopen_run`.
        interleave: measures what is missing of all of them.
    """

    open: Callable[..., tuple[OpenRun, dict[str, float]]] = open_run
    reopen: Callable[..., OpenRun] = reopen_run
    interleave: Callable[..., str] = interleave


def plans_to_open(record: ExperimentRecord, home: Home) -> Plans:
    """Plans of the measurements that an execution was cut off before it opened.

    Raises:
        UsageError: what they need is not there any more.
        NotResumable: one would do something else than was planned when the execution began.
    """
    plans = {}
    for measurement in record.spec.measurements:
        if measurement.name in record.runs:
            continue
        planned = plan_measurement(record.spec, measurement, home)
        if measurement.digest not in ("", digest_of(planned.plan)):
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
    laboratory: Laboratory | None = None,
) -> ExperimentRecord:
    """Open what is not open yet, measure what is missing, and say how it ended.

    Args:
        folder: of the execution; its record is in there.
        bench: what runs have in common.
        plans: of the measurements that have no run yet.
        budget_s: for the forks from now on; None for as long as they take.
        laboratory: what runs are measured with.

    Returns:
        The record. What failed is in it, and in those of the runs.

    Raises:
        NotResumable: what is measured, or where, is not what it was; the record stays as it is.
        BenchctlError: it was interrupted, or cannot go on; the record says so.
    """
    return _Conduct(folder, bench, plans, laboratory or Laboratory()).all(budget_s)


class _Conduct:
    """One go at an execution."""

    def __init__(self, folder: ExperimentFolder, bench: Bench, plans: Plans, laboratory: Laboratory) -> None:
        self._folder = folder
        self._bench = bench
        self._plans = plans
        self._laboratory = laboratory
        self._record = folder.load()
        self._open: dict[str, OpenRun] = {}
        self._prepared: dict[str, dict[str, float]] = {}
        self._reopened: list[tuple[RunFolder, RunRecord]] = []

    def all(self, budget_s: float | None) -> ExperimentRecord:
        """Do it."""
        with self._ending():
            self._reopen_all()
            self._open_all()
            # The order within blocks depends on these numbers: it is the same when some are complete.
            numbers = {
                one.name: number
                for number, one in enumerate(self._record.spec.measurements)
                if one.name in self._open
            }
            names = list(numbers)
            runs = [self._open[name] for name in names]
            before = _spent_s(runs)
            stopped = self._laboratory.interleave(
                runs,
                seed=self._record.spec.seed,
                observer=self._bench.observer,
                numbers=list(numbers.values()),
                left_s=None if budget_s is None else lambda: budget_s - (_spent_s(runs) - before),
                prepared=[self._prepared[name] for name in names],
            )
            if stopped:
                self._bench.observer.note(stopped)
            if stopped.startswith(TIME_UP):
                for run in runs:
                    _end_early(run, stopped)
        missing = any(run.missing() for run in self._runs().values())
        self._end("failed" if missing else "complete", stopped)
        return self._record

    def _reopen_all(self) -> None:
        """What went on before; all of it before anything is opened, which may take long."""
        self._update(status="running", stopped="")
        folders = {name: self._find(name, run_id) for name, run_id in self._record.runs.items()}
        for name, run_folder in folders.items():
            record = run_folder.load()
            if not record.missing() and not record.stopped and record.status != "running":
                continue
            bench = self._named(name)
            bench.observer.stage("preparing")
            self._reopened.append((run_folder, record))
            run = self._laboratory.reopen(bench, _going_on(run_folder, record), reload_track(record.plan))
            self._open[name] = run
            self._prepared[name] = {}

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
            extras = Extras(tags=tags_of(self._record.id, name), files=planned.files, forecast=False)
            run, timings = self._laboratory.open(bench, planned.plan, planned.track, extras)
            self._open[name] = run
            self._prepared[name] = timings
            self._update(runs={**self._record.runs, name: run.record.id})

    def _named(self, name: str) -> Bench:
        return dataclasses.replace(self._bench, observer=Named(self._bench.observer, name))

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """However it ends, the records say how, and the error how to go on."""
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
        done = sum(run.total - len(run.missing()) for run in runs.values())
        return BenchctlError(
            f"the experiment is interrupted; {done} of {self._record.spec.total_forks} forks are kept",
            hint=f"go on with: {self._resume}",
            exit_code=ExitCode.INTERRUPTED,
        )

    def _advice(self, hint: str) -> str:
        """A run's own advice would go on with that run alone."""
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


def _spent_s(runs: Sequence[OpenRun]) -> float:
    return sum(fork.wall_s for run in runs for fork in run.record.forks)


def _end_early(run: OpenRun, reason: str) -> None:
    """Have a run's record say that the blocks which were not begun do not belong to it."""
    record = run.record
    if not record.missing():
        return
    ended = msgspec.structs.replace(record, stopped=reason, caveats=(*record.caveats, reason))
    status = "failed" if ended.missing() else "complete"
    run.folder.save(msgspec.structs.replace(ended, status=status))


def _going_on(folder: RunFolder, record: RunRecord) -> RunFolder:
    """A run's folder, with the blocks belonging to it again that there was no time for."""
    if record.stopped:
        caveats = tuple(one for one in record.caveats if one != record.stopped)
        folder.save(msgspec.structs.replace(record, stopped="", caveats=caveats, status="failed"))
    return folder
