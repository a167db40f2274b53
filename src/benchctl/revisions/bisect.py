"""A bisection as it is carried out: question after question on nodes, each kept on disk, until it is known.

Whoever asks for the same again goes on where it ended: its folder is named by what was asked for.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from benchctl.errors import BenchctlError, ExitCode
from benchctl.report.numbers import counted, duration, signed_percent
from benchctl.results.model import RunRecord
from benchctl.results.plan import Plan, VariantSpec
from benchctl.results.store import RunStore
from benchctl.results.versioned import read_versioned, write_versioned
from benchctl.revisions.search import Asked, Phase, Question, judge_question, next_question
from benchctl.run.bench import Observer
from benchctl.run.questions import Job, Measurer, all_begun, failure
from benchctl.stats.metrics import block_values, collect, metric_of, task_at
from benchctl.stats.sequential import Verdict, estimate

RECORD_VERSION = 1
_CAN_BE_SKIPPED: tuple[Phase, ...] = ("halve", "before", "after")


class Point(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A point of a history: the name of its variant, and what more is known of it, such as a subject."""

    name: str
    about: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.about})" if self.about else self.name


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A question and what came of it so far.

    Attributes:
        runs: its run, relative to the bisection's runs; empty before there is one.
        pairs: log ratios of the metric, point / other, one a block that both finished.
        log_odds, log_odds_needed: as in `Judgement`.
        seconds: that it took, builds and preparation included.
    """

    question: Question
    verdict: Verdict = "measuring"
    runs: tuple[str, ...] = ()
    pairs: tuple[float, ...] = ()
    log_odds: float | None = None
    log_odds_needed: float | None = None
    seconds: float = 0.0

    @property
    def percent(self) -> tuple[float | None, float | None, float | None]:
        """Point / other - 1 with its ordinary 95 % interval, percent; None where it is unknown."""
        if not self.pairs:
            return None, None, None
        found = estimate(self.pairs)
        mean, low, high = (100 * math.expm1(one) for one in (found.mean, found.low, found.high))
        return (mean, low, high) if math.isfinite(high) else (mean, None, None)


class Bisection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A bisection, as far as it has come.

    Attributes:
        record_version: of this form.
        id: name of its folder.
        points: the reference first.
        place: schedule and number of the task that shows the difference, and `task` its label.
        metric: machine name of the figure that shows it.
        most: pairs of forks that a question gets at most.
        answers: in the order of the questions; the last may be unanswered.
        skipped: points that cannot be measured, and why; they are tried again when it goes on.
        complete: whether there is nothing more to ask.
    """

    record_version: int = RECORD_VERSION
    id: str
    points: tuple[Point, ...]
    place: tuple[int, int]
    task: str
    metric: str
    most: int
    answers: tuple[Answer, ...] = ()
    skipped: dict[int, str] = {}
    complete: bool = False

    @property
    def asked(self) -> list[Asked]:
        """What is answered, as the search takes it."""
        return [
            Asked(one.question, one.pairs, one.verdict) for one in self.answers if one.verdict != "measuring"
        ]

    @property
    def seconds(self) -> float:
        """That all of it took so far."""
        return sum(one.seconds for one in self.answers)


@dataclass(frozen=True)
class BisectionFolder:
    """One bisection's folder."""

    path: Path

    @property
    def runs(self) -> RunStore:
        """The runs behind its answers."""
        return RunStore(self.path / "runs")

    def save(self, record: Bisection) -> None:
        """Replace the record; see `write_versioned`."""
        write_versioned(self.path / "bisection.json", record)

    def load(self) -> Bisection | None:
        """The record; None if there is none yet.

        Raises:
            BenchctlError: it is broken, or of another version.
        """
        return read_versioned(self.path / "bisection.json", Bisection, "record", RECORD_VERSION)


@dataclass(frozen=True)
class BisectContext:
    """What a bisection works with.

    Attributes:
        variant: makes a point's variant by its number; may have to build it.
        plan: of a run of two variants, the other one and the point's.
        budget_s: seconds for this session; None for as long as it takes.
        clock: seconds, monotonic.
    """

    folder: BisectionFolder
    variant: Callable[[int], VariantSpec]
    plan: Callable[[tuple[VariantSpec, ...]], Plan]
    measurer: Measurer
    observer: Observer
    budget_s: float | None = None
    clock: Callable[[], float] = field(default=time.monotonic)


def bisect(context: BisectContext, record: Bisection) -> Bisection:
    """Ask what is left to be asked, until nothing is or the time is up.

    Returns:
        The record as it is on disk.

    Raises:
        BenchctlError: it was interrupted, or an end of the history cannot be built or measured; what is
            answered is kept.
    """
    return _Bisecting(context, msgspec.structs.replace(record, skipped={}, complete=False)).go()


class _SkippedError(Exception):
    """A point cannot be measured."""


class _Bisecting:
    def __init__(self, context: BisectContext, record: Bisection) -> None:
        self._context = context
        self._record = record
        self._began = context.clock()

    def go(self) -> Bisection:
        while question := self._next():
            if not self._time_left():
                return self._record
            try:
                answer = self._answered(question)
            except _SkippedError as err:
                self._skip(question, str(err))
            except BenchctlError as err:
                if err.exit_code == ExitCode.INTERRUPTED:
                    raise BenchctlError(
                        f"interrupted; {counted(len(self._record.asked), 'answer')} kept",
                        hint="the same command goes on from here",
                        exit_code=err.exit_code,
                    ) from err
                # A build that is broken in a way that only a node shows, most likely.
                if err.exit_code != ExitCode.FAILED or question.phase not in _CAN_BE_SKIPPED:
                    raise
                self._skip(question, err.message.splitlines()[0])
            else:
                if answer.verdict == "measuring":
                    return self._record
        self._save(complete=True)
        return self._record

    def _next(self) -> Question | None:
        return next_question(len(self._record.points), self._record.asked, self._record.skipped)

    def _skip(self, question: Question, reason: str) -> None:
        self._context.observer.note(f"{self._record.points[question.point]} is skipped: {reason}")
        answers = tuple(one for one in self._record.answers if one.verdict != "measuring")
        self._save(answers=answers, skipped={**self._record.skipped, question.point: reason})

    def _answered(self, question: Question) -> Answer:
        """Measure until it is answered, or the time is up; then it is still `measuring`."""
        note, points = self._context.observer.note, self._record.points
        answer = next(
            (one for one in self._record.answers if one.question == question), Answer(question=question)
        )
        before_s, begun = answer.seconds, self._context.clock()
        number = len(self._record.asked) + 1
        note(f"question {number}: does {points[question.point]} differ from {points[question.against]}?")
        specs = tuple(map(self._context.variant, (question.against, question.point)))

        def keep(changed: Answer) -> None:
            nonlocal answer
            seconds = before_s + self._context.clock() - begun
            answer = msgspec.structs.replace(changed, seconds=seconds)
            others = (one for one in self._record.answers if one.question != question)
            self._save(answers=(*others, answer))

        def enough(records: Sequence[RunRecord]) -> str:
            keep(self._seen(answer, records[0]))
            return failure(records) or ("" if answer.verdict == "measuring" else "answered")

        records = self._context.measurer.measure(
            Job(
                plans=(self._context.plan(specs),),
                runs=answer.runs,
                started=lambda runs: keep(msgspec.structs.replace(answer, runs=runs)),
                enough=enough,
                left_s=None if self._context.budget_s is None else self._left_s,
            )
        )
        keep(self._seen(answer, records[0]))
        if answer.verdict == "measuring":
            self._check(question, records)
            if all_begun(records):
                keep(msgspec.structs.replace(answer, verdict="undecided"))
        if answer.verdict != "measuring":
            told = (
                f"{signed_percent(answer.percent[0])} % after {counted(len(answer.pairs), 'pair')} of forks"
            )
            note(f"question {number}: {ANSWERS[answer.verdict]}, {told}, {duration(answer.seconds)}")
        return answer

    def _check(self, question: Question, records: Sequence[RunRecord]) -> None:
        """Why there is no answer, unless it is a matter of time or luck.

        Raises:
            _SkippedError: it is the point's fault.
            BenchctlError: it is the other's, or that of the task.
        """
        (record,) = records
        reason, other = failure(records), record.plan.variants[0].name
        if reason and question.phase in _CAN_BE_SKIPPED:
            if not any(fork.status == "failed" and fork.variant == other for fork in record.forks):
                raise _SkippedError(reason)
        elif not reason and all_begun(records) and not self._pairs(record):
            reason = "its requests failed, or it is unsupported"
        if reason:
            raise BenchctlError(
                f"task '{self._record.task}' cannot be compared: {reason}",
                hint="try it first with: benchctl run",
            )

    def _seen(self, answer: Answer, record: RunRecord) -> Answer:
        """An answer updated from its run."""
        pairs = self._pairs(record)
        if not pairs:
            return answer
        count, most = len(self._record.points), self._record.most
        judged = judge_question(count, answer.question, pairs, self._record.asked, most)
        return msgspec.structs.replace(
            answer,
            pairs=pairs,
            verdict=judged.verdict,
            log_odds=judged.log_odds,
            log_odds_needed=judged.log_odds_needed,
        )

    def _pairs(self, record: RunRecord) -> tuple[float, ...]:
        place, metric = self._record.place, metric_of(self._record.metric)
        done = {spec.name: record.compared(spec.name) for spec in record.plan.variants}
        other, point = collect(done, place, task_at(record.plan, place)).values()
        values = zip(*block_values(metric, other, point), strict=True)
        return tuple(math.log(right / left) for left, right in values if left > 0 and right > 0)

    def _time_left(self) -> bool:
        """Whether another question may fit, by the shortest so far."""
        if self._context.budget_s is None:
            return True
        return self._left_s() >= min((one.seconds for one in self._record.answers), default=0.0)

    def _left_s(self) -> float:
        return (self._context.budget_s or 0.0) - (self._context.clock() - self._began)

    def _save(self, **changes: object) -> None:
        self._record = msgspec.structs.replace(self._record, **changes)
        self._context.folder.save(self._record)


ANSWERS: dict[Verdict, str] = {
    "present": "it differs",
    "absent": "it does not",
    "undecided": "open",
    "measuring": "not answered yet",
}
"""Verdicts in words."""
