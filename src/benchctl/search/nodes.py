"""A question put to real nodes: the runs behind it, interleaved and resumable, until enough is known."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import Plan
from benchctl.results.store import RunFolder, RunStore
from benchctl.run.bench import Bench, Observer
from benchctl.run.documents import FileOptions
from benchctl.run.open_run import NotResumable, OpenRun
from benchctl.run.orchestrate import Extras, open_run, reopen_run
from benchctl.run.study import Policy, Side, Study
from benchctl.track.model import Track


@dataclass(frozen=True)
class Job:
    """The nodes' part of a question."""

    plans: tuple[Plan, ...]  # a block has one fork of every variant of each, in random order
    runs: tuple[str, ...]  # begun before, relative to the store; empty for new ones
    started: Callable[[tuple[str, ...]], None]  # called with the runs' names before the first fork
    enough: Callable[[Sequence[RunRecord]], str]  # called before every block: the reason to stop, or empty
    left_s: Callable[[], float] | None  # called before every block but the first; None for no limit


class Nodes:
    """Measures on nodes of this host, with the store replaced by that of the search's own runs.

    The reference is measured anew in every block of every question, beside its candidate: a host that
    gets slower over the hours of a search would otherwise create effects.
    """

    def __init__(self, bench: Bench, store: RunStore, track: Track, files: FileOptions) -> None:
        self._observer = bench.observer
        self._calm = _CalmObserver(bench.observer)
        self._bench = replace(bench, store=store, observer=self._calm)
        self._track = track
        self._files = files

    def measure(self, job: Job) -> tuple[RunRecord, ...]:
        """Measure until it is enough, all forks are there, or the time is up.

        Returns:
            The records, in the order of the plans.

        Raises:
            BenchctlError: If the measurement is interrupted, or nothing can be measured.
        """
        runs = self._again(job) if job.runs else self._new(job)
        self._calm.prepared = True
        job.started(tuple(run.folder.path.name for run in runs))
        study = Study(runs, _Until(job), self._observer, seed=job.plans[0].seed, left_s=job.left_s)
        study.measure()
        return tuple(study.records)

    def _new(self, job: Job) -> list[OpenRun]:
        extras = Extras(files=self._files)
        return [open_run(self._bench, plan, self._track, extras)[0] for plan in job.plans]

    def _again(self, job: Job) -> list[OpenRun]:
        """Return the runs begun before; new ones if any cannot be resumed."""
        root: Path = self._bench.store.root
        folders = [RunFolder(root / name) for name in job.runs]
        gone = [folder.path.name for folder in folders if not folder.record_path.is_file()]
        if gone:
            self._observer.note(f"{', '.join(gone)} is gone; its forks are measured again")
            return self._new(job)
        try:
            return [reopen_run(self._bench, folder, self._track) for folder in folders]
        except NotResumable as err:
            self._observer.note(f"{err.message}; its forks are measured again")
            return self._new(job)


class _Until(Policy):
    """Ends when it is enough; runs of a question that may take more pairs by now get further blocks."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def ends(self, records: Sequence[RunRecord], block: int) -> str:
        del block
        return self._job.enough(records)

    def further(self, records: Sequence[RunRecord]) -> Collection[Side] | str:
        most = self._job.plans[0].forks
        if all(len(record.block_numbers) >= most for record in records):
            return ""
        reason = self._job.enough(records)
        sides = (Side(run, spec.name) for run, one in enumerate(records) for spec in one.plan.variants)
        return reason or tuple(sides)


class _CalmObserver:
    """An observer without what every run reports before its first fork."""

    def __init__(self, inner: Observer) -> None:
        self._inner = inner
        self._in_fork = False
        self.prepared = False  # what runs need was fetched and built once: it is only looked up

    def note(self, text: str) -> None:
        """Ignore it: it is about runs that are read by themselves."""

    def stage(self, text: str) -> None:
        if self._in_fork or not self.prepared:
            self._inner.stage(text)

    def progress(self, what: str, done: int, total: int) -> None:
        self._inner.progress(what, done, total)

    def fork_started(self, variant: str, number: int, total: int | None, remaining_s: float | None) -> None:
        del remaining_s  # how many forks there are going to be is not known: the bound would be taken for it
        self._in_fork = True
        self._inner.fork_started(variant, number, total, None)

    def fork_done(self, record: ForkRecord) -> None:
        self._inner.fork_done(record)
        self._in_fork = False
