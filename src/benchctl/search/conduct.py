"""A search as it is carried out: question after question, each on disk before the next fork, resumable."""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from benchctl.errors import BenchctlError, ExitCode, UsageError
from benchctl.report.numbers import counted, duration, signed_percent
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import Plan
from benchctl.results.store import RunFolder, RunStore
from benchctl.run.bench import Bench, Observer
from benchctl.run.documents import FileOptions
from benchctl.run.open_run import NotResumable, OpenRun
from benchctl.run.orchestrate import Extras, open_run, reopen_run
from benchctl.run.study import Policy, Side, Study, ending
from benchctl.search.answers import percents
from benchctl.search.record import Question, SearchFolder, SearchRecord, Strategy, others_of
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
        sides = (Side(run, spec.name) for run, member in enumerate(records) for spec in member.plan.variants)
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


_MOST_FAILURES = 2


@dataclass(frozen=True)
class SearchContext:
    """Surroundings of a search."""

    folder: SearchFolder
    policy: Strategy
    measure: Callable[[Job], tuple[RunRecord, ...]]  # as `Nodes` does
    observer: Observer
    clock: Callable[[], float] = field(default=time.monotonic)  # seconds, monotonic


class _TimeUpError(Exception):
    """The budget is spent; what is known stays."""


def conduct(context: SearchContext, record: SearchRecord) -> SearchRecord:
    """Search, or continue, until nothing is left to ask or the time is up.

    Returns:
        The final record, which is on disk as well.

    Raises:
        BenchctlError: If interrupted, or something that it cannot do without cannot be measured; the record
            shows how far it came.
    """
    return _Search(context, record).go()


class _Search:
    def __init__(self, context: SearchContext, record: SearchRecord) -> None:
        self._context = context
        self._policy = context.policy
        self._record = msgspec.structs.replace(record, status="running", stopped="", skipped={})
        self._spent_s = record.spent_s  # before this session
        self._began = context.clock() if self._policy.counts_preparing else None

    def go(self) -> SearchRecord:
        self._save()
        with ending(
            lambda status, reason: self._save(status=status, stopped=reason),
            lambda: f"{counted(len(self._record.answered), 'answer')} kept in {self._context.folder.path}",
            f"benchctl resume {self._record.id}",
        ):
            try:
                while question := self._policy.following(self._record):
                    self._answer(question)
            except _TimeUpError:
                self._save(status="interrupted", stopped="the time was up")
            else:
                self._save(status="complete")
        return self._record

    def _answer(self, question: Question) -> None:
        """Measure a question until it is answered, stays open, or its point is skipped."""
        record, note = self._record, self._context.observer.note
        question = msgspec.structs.replace(
            question,
            number=question.number or 1 + max((question.number for question in record.questions), default=0),
            most=record.most,
            verdict="measuring",
            reason="",
        )
        self._require_time(question)
        note(self._policy.title(question))
        try:
            question = self._measured(question)
        except BenchctlError as err:
            # A build that is broken in a way that only a node shows, most likely.
            if err.exit_code != ExitCode.FAILED or not self._policy.can_skip(question):
                raise
            reason = err.message.splitlines()[0]
            note(f"{', '.join(question.subject)} is skipped: {reason}")
            questions = tuple(other for other in record.questions if other.number != question.number)
            self._save(questions=questions, skipped={**record.skipped, question.about[0]: reason})
            return
        because = f" ({question.reason})" if question.reason else ""
        effect = "" if question.effect_percent is None else f", {signed_percent(question.effect_percent)}%"
        pairs = counted(len(question.pairs), "pair")
        note(
            f"question {question.number}: {question.verdict}{because}{effect} after {pairs} of forks, "
            f"{duration(question.seconds)}"
        )

    def _measured(self, question: Question) -> Question:
        """Measure pair after pair, each kept on disk, until there is an answer or none is to be had."""
        before_s = question.seconds
        begun = self._context.clock() if self._policy.counts_preparing else None

        def keep(**changes: object) -> None:
            nonlocal question, begun
            now = self._context.clock()
            begun = now if begun is None else begun
            self._began = begun if self._began is None else self._began
            question = msgspec.structs.replace(question, seconds=before_s + now - begun, **changes)
            self._save(questions=self._record.with_question(question).questions)

        def enough(runs: Sequence[RunRecord]) -> str:
            keep(**self._seen(question, runs))
            return failure(runs) or ("answered" if question.is_answered else "")

        plans = self._policy.plans(self._record, question)
        job = Job(
            plans=tuple(msgspec.structs.replace(plan, forks=question.most) for plan in plans),
            runs=question.runs,
            started=lambda names: keep(runs=names),
            enough=enough,
            left_s=None if self._record.budget_s is None else self._left_s,
        )
        try:
            runs = self._context.measure(job)
        except BaseException:
            # The time of a block that was cut off counts, too.
            keep()
            raise
        keep(**self._seen(question, runs))
        if not question.is_answered:
            reason, most = failure(runs), self._record.most
            if not reason and any(len({fork.block for fork in run.forks}) < most for run in runs):
                raise _TimeUpError
            self._policy.require_measured(self._record, question, reason)
            keep(verdict="undecided", reason=reason or "too few values")
        return question

    def _seen(self, question: Question, runs: Sequence[RunRecord]) -> dict[str, object]:
        """Return what the runs show so far."""
        self._require_same_documents(runs[0].plan)
        values = zip(*self._policy.values(self._record, runs), strict=True)
        both = [(left, right) for left, right in values if left > 0 and right > 0]
        contender, reference = (tuple(pair[side] for pair in both) for side in (0, 1))
        seen = msgspec.structs.replace(question, contender=contender, reference=reference)
        others = others_of(self._record, question)
        mean, low, high = percents(seen.pairs, others)
        verdict, alpha = ("measuring", question.alpha)
        if both:
            verdict, alpha = self._policy.verdict(self._record, seen, seen.pairs)
        is_open = verdict == "undecided"
        return {
            "contender": contender,
            "reference": reference,
            "verdict": verdict,
            "reason": f"no answer after {counted(len(both), 'pair')} of forks" if is_open else "",
            "alpha": alpha,
            "effect_percent": mean,
            "low_percent": low,
            "high_percent": high,
        }

    def _require_same_documents(self, plan: Plan) -> None:
        """The documents are known once the first run is prepared; they are the same for all."""
        expected = self._record.plan.corpus.digest
        if not expected:
            self._save(plan=msgspec.structs.replace(self._record.plan, corpus=plan.corpus))
        elif plan.corpus.digest != expected:
            raise UsageError(
                f"these are not the documents of the search: {plan.corpus.digest[:12]}, not {expected[:12]}",
                hint="put the files back, or start a new search",
            )

    def _require_time(self, question: Question) -> None:
        """Do not begin a question whose first block will not fit."""
        if self._record.budget_s is None or (self._began is None and not self._record.answered):
            return
        blocks = [
            question.seconds / len(question.pairs) for question in self._record.answered if question.pairs
        ]
        least_s = self._policy.least_s(self._record, question)
        if self._left_s() < max(least_s, min(blocks, default=0.0)):
            raise _TimeUpError

    def _left_s(self) -> float:
        spent = 0.0 if self._began is None else self._context.clock() - self._began
        return (self._record.budget_s or 0.0) - self._spent_s - spent

    def _save(self, **changes: object) -> None:
        self._record = msgspec.structs.replace(self._record, **changes)
        self._context.folder.save(self._record)


def failure(runs: Sequence[RunRecord]) -> str:
    """Return why these runs cannot get any further; empty while they can."""
    for run in runs:
        failed = [fork for fork in run.forks if fork.status == "failed"]
        if len(failed) >= _MOST_FAILURES:
            return f"{len(failed)} forks failed, the last: {failed[-1].reason}"
    return ""
