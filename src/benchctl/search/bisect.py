"""A bisection as it is carried out: question after question on nodes, each kept on disk, until it is known.

Whoever asks for the same again goes on where it ended: its folder is named by what was asked for.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from benchctl.errors import BenchctlError, ExitCode
from benchctl.report.numbers import counted, duration, signed_percent
from benchctl.results.model import RunRecord
from benchctl.results.plan import Plan, VariantSpec
from benchctl.run.bench import Observer
from benchctl.run.questions import Inquiry, Measurer, all_begun, ask, failure
from benchctl.search.bisection import (
    ANSWERS,
    Answer,
    Bisection,
    BisectionFolder,
    Phase,
    Question,
    answer_question,
    next_question,
)
from benchctl.stats.answers import Values
from benchctl.stats.metrics import block_values, collect, metric_of, task_at

_CAN_BE_SKIPPED: tuple[Phase, ...] = ("halve", "before", "after")


@dataclass(frozen=True)
class BisectContext:
    """Surroundings of a bisection."""

    folder: BisectionFolder
    variant: Callable[[int], VariantSpec]  # by the point's number; may have to build it
    # Of a run of two variants: the other point's and the point's.
    plan: Callable[[tuple[VariantSpec, ...]], Plan]
    measurer: Measurer
    observer: Observer
    budget_s: float | None = None  # for this session; None for no limit
    clock: Callable[[], float] = field(default=time.monotonic)  # seconds, monotonic


def bisect(context: BisectContext, record: Bisection) -> Bisection:
    """Ask what is left to be asked, until nothing is or the time is up.

    Returns:
        The record as it is on disk.

    Raises:
        BenchctlError: If interrupted, or an end of the history cannot be built or measured; what is
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
        while question := next_question(len(self._record.points), self._record.asked, self._record.skipped):
            shortest_s = min((one.seconds for one in self._record.answers), default=0.0)
            if self._context.budget_s is not None and self._left_s() < shortest_s:
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

        def keep(changed: Answer) -> Answer:
            seconds = before_s + self._context.clock() - begun
            changed = msgspec.structs.replace(changed, seconds=seconds)
            others = (one for one in self._record.answers if one.question != question)
            self._save(answers=(*others, changed))
            return changed

        asked, record = self._record.asked, self._record
        inquiry = Inquiry(
            plans=(self._context.plan(specs),),
            values=self._values,
            answer=lambda pairs: answer_question(len(points), question, pairs, asked, record.most),
            others=[one.pairs for one in asked],
            left_s=None if self._context.budget_s is None else self._left_s,
        )
        answer, records = ask(self._context.measurer, inquiry, answer, keep)
        if answer.verdict == "measuring":
            self._check(answer, records)
            if all_begun(records):
                answer = keep(msgspec.structs.replace(answer, verdict="undecided"))
        if answer.verdict != "measuring":
            effect, pairs = signed_percent(answer.effect_percent), counted(len(answer.pairs), "pair")
            told = f"{effect} % after {pairs} of forks, {duration(answer.seconds)}"
            note(f"question {number}: {ANSWERS[answer.verdict]}, {told}")
        return answer

    def _check(self, answer: Answer, records: Sequence[RunRecord]) -> None:
        """Raise the reason for no answer, unless it is time or luck; `_SkippedError` if the point's."""
        (record,) = records
        reason, other = failure(records), record.plan.variants[0].name
        if reason and answer.question.phase in _CAN_BE_SKIPPED:
            if not any(fork.status == "failed" and fork.variant == other for fork in record.forks):
                raise _SkippedError(reason)
        elif not reason and all_begun(records) and not answer.pairs:
            reason = "its requests failed, or it is unsupported"
        if reason:
            raise BenchctlError(
                f"task '{self._record.task}' cannot be compared: {reason}",
                hint="try it first with: benchctl run",
            )

    def _values(self, records: Sequence[RunRecord]) -> Values:
        (record,), place = records, self._record.place
        done = {spec.name: record.compared(spec.name) for spec in record.plan.variants}
        other, point = collect(done, place, task_at(record.plan, place)).values()
        return block_values(metric_of(self._record.metric), point, other)

    def _left_s(self) -> float:
        return (self._context.budget_s or 0.0) - (self._context.clock() - self._began)

    def _save(self, **changes: object) -> None:
        self._record = msgspec.structs.replace(self._record, **changes)
        self._context.folder.save(self._record)
