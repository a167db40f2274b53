"""The smallest schedule that still shows an effect: delta debugging, a question for every removal."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import msgspec

from benchctl.errors import BenchctlError, UsageError
from benchctl.report.numbers import counted, duration, interval, percent, signed_percent
from benchctl.results.model import RunRecord
from benchctl.results.plan import Plan
from benchctl.search.answers import MIN_PAIRS, Answer, Pairs, Rule, Values, Verdict, answer
from benchctl.search.candidates import (
    Candidates,
    Subset,
    candidates_of,
    most_questions,
    smallest,
    usual_questions,
)
from benchctl.search.record import (
    Effect,
    MinimizeSpec,
    Phase,
    Question,
    SearchRecord,
    Strategy,
    others_of,
    signed,
)
from benchctl.stats.forecast import Rule as ForecastRule
from benchctl.stats.forecast import Spread, least_effect
from benchctl.stats.history import History
from benchctl.stats.inference import cv_of
from benchctl.stats.metrics import Metric, block_values, collect, metric_of, task_at
from benchctl.track.model import Challenge, Task, Track
from benchctl.track.schedule import challenge_text

BETA: Final = 0.05
"""Chance that one question says `absent` where the effect is there: the result is then larger than needed."""

_LEAST_FORKS: Final = 5
_MOST_OF_NAME: Final = 60
"""Of each name in that of a file; file systems take 255 bytes in all."""


def default_metric(target: Task) -> str:
    """The figure that shows an effect by default: not the throughput of an offered rate."""
    return "service_time_p50" if target.throttled else "throughput"


def check_search(plan: Plan, track: Track, record: SearchRecord) -> Candidates:
    """Check that a search makes sense, and return what it can try.

    The plan is of a run of the whole schedule; an empty metric means the usual one.

    Raises:
        UsageError: If the search makes no sense; nothing has been started.
    """
    spec = minimize_spec(record)
    if len(plan.schedules) != 1:
        raise UsageError(
            f"tasks are removed from one challenge, and {len(plan.schedules)} are given",
            hint="name one with --challenge",
        )
    challenge = plan.schedules[0]
    if plan.origin == "empty":
        raise UsageError(
            f"challenge '{challenge.name}' makes its own data, which its tasks cannot be without",
            hint="give a challenge that runs on data that benchctl prepares",
        )
    if record.most < _LEAST_FORKS:
        raise UsageError(
            f"--forks must be at least {_LEAST_FORKS}", hint="fewer pairs confirm no effect, however large"
        )
    if spec.by is not None and spec.by <= 0:
        raise UsageError("--by must be more than 0%")
    if record.budget_s is not None and record.budget_s <= 0:
        raise UsageError("--budget must be more than 0s")
    operations = track.with_challenges(challenge).operations
    candidates = candidates_of(challenge, spec.effect.task, operations, spec.prefix_iterations)
    target = operations[candidates.target.operation]
    if not target.reported:
        raise UsageError(
            f"--effect: '{spec.effect.task}' is a {target.type_name}, which has no figures to show it",
            hint="name a task that asks or indexes something",
        )
    if record.metric and metric_of(record.metric).kind.loop == "closed" and candidates.target.throttled:
        raise UsageError(
            f"--metric {record.metric}: that of '{spec.effect.task}' is asked for, and shows no effect",
            hint="use --metric service_time_p50, or --param target_throughput=0",
        )
    # What comes out has to be a file.
    challenge_text(challenge)
    return candidates


def minimize_spec(record: SearchRecord) -> MinimizeSpec:
    """Return what is searched for."""
    assert isinstance(record.spec, MinimizeSpec)  # noqa: S101 - the record's kind chose this module
    return record.spec


def start_forecast(
    record: SearchRecord, candidates: Candidates, plan: Plan, history: History
) -> Iterator[str]:
    """Lines before the first fork: number of questions, duration of a block, precision of the first one."""
    spec = minimize_spec(record)
    count = len(candidates.front)
    usual = 2 + usual_questions(count, needs_some=not spec.effect.against)
    yield (
        f"{counted(count, 'step')} before {candidates.target.label}: about {usual} questions where two of "
        f"them matter, at most {2 + most_questions(count)}; each takes from {MIN_PAIRS} to "
        f"{record.most} pairs of forks"
    )
    whole_s = history.block_s(plan)
    least = candidates.least_s(candidates.every)
    if whole_s is not None:
        yield f"forks of the whole schedule took {duration(whole_s)} here"
    if least:
        yield (
            f"the schedule's own rates make a fork of the whole last at least {duration(least)}: cut counts "
            "(--prefix-iterations, or --param target_throughput=0) if that is too long"
        )
    task = candidates.challenge.schedule.index(candidates.target)
    noise = history.noise((0, task), metric_of(record.metric), plan.variants[0])
    if noise is not None:
        spread = Spread(noise.sd * 2**0.5, noise.df).of_coming_run
        rule = ForecastRule(math.log1p(spec.by or 0.0), paired=True, sequential=True)
        seen = math.expm1(least_effect(spread, rule, record.most))
        yield (
            f"forks of {candidates.target.label} had a CV of {percent(100 * cv_of(noise.sd))} here: "
            f"effects from {percent(100 * seen)} would probably be confirmed"
        )


# How far a search has come, from its answers alone.


class Progress(msgspec.Struct, frozen=True):
    """The effect to keep, the smallest schedule with it so far, and what to try next."""

    begun: Question  # the one that found the effect
    kept: Subset
    untried: Subset | None  # None where nothing is left to try

    @property
    def is_short(self) -> bool:
        """True if preceding tasks have their counts cut."""
        return self.begun.phase == "shorten"


class _UntriedError(Exception):
    """No answer about these steps is known."""


def begun_of(record: SearchRecord) -> Question | None:
    """Return the question that found the effect."""
    return next(
        (
            question
            for question in record.questions
            if question.phase != "remove" and question.verdict == "present"
        ),
        None,
    )


def progress(record: SearchRecord) -> Progress | None:
    """Return how far a search has come; None while the effect is not found."""
    begun = begun_of(record)
    if begun is None:
        return None
    answers: dict[Subset, Answer] = {
        question.about: question.verdict
        for question in record.answered
        if question.phase == "remove" and question.verdict != "measuring"
    }
    kept = begun.about

    def judge(subset: Subset) -> Answer:
        nonlocal kept
        if subset not in answers:
            raise _UntriedError(subset)
        if answers[subset] == "present":
            kept = subset
        return answers[subset]

    try:
        smallest(len(begun.about), judge, needs_some=not minimize_spec(record).effect.against)
    except _UntriedError as err:
        return Progress(begun, kept, err.args[0])
    return Progress(begun, kept, None)


def rule_of(record: SearchRecord, phase: Phase, number: int) -> Rule:
    """Return when the question of that number is answered.

    The first ones, two at most, ask whether there is more than the least effect that counts. Later ones tell
    that, or by default no effect, from the whole effect that an earlier question found. It is not known how
    many these are going to be: the k-th gets 6 / (pi k)^2 of alpha, which adds up to all of it.
    """
    spec = minimize_spec(record)
    least = math.log1p(spec.by or 0.0)
    begun = begun_of(record)
    if phase != "remove" or begun is None:
        return Rule(least, least, least, spec.alpha / 2, spec.alpha / 2, record.most)
    pairs = signed(begun.pairs, direction_of(spec.effect, metric_of(record.metric)))
    whole = sum(pairs) / len(pairs)
    # Half of it persists, or as much as was asked for.
    middle = whole / 2 if spec.by is None else least
    removal = 1 + sum(
        question.phase == "remove" and question.number < number for question in record.questions
    )
    alpha = spec.alpha * 6 / (math.pi * removal) ** 2
    return Rule(least, whole, middle, alpha, BETA, record.most)


def direction_of(effect: Effect, metric: Metric) -> float:
    """Return the sign of log ratios, contender / reference, with the effect."""
    return -1.0 if (effect.direction == "slower") == metric.higher_is_better else 1.0


def values_of(records: Sequence[RunRecord], effect: Effect, metric: Metric) -> Values:
    """Read them from runs: the schedule's, and after it the fresh node's, unless variants are compared."""
    whole = records[0]
    place = (0, len(whole.plan.schedules[0].schedule) - 1)
    task = task_at(whole.plan, place)
    contender = collect({"": whole.compared(effect.variant)}, place, task)[""]
    if effect.against:
        reference = collect({"": whole.compared(effect.against)}, place, task)[""]
    else:
        reference = collect({"": records[1].compared(effect.variant)}, (0, 0), task)[""]
    return block_values(metric, contender, reference)


@dataclass(frozen=True)
class Minimizing(Strategy):
    """Asks for the effect, and then without which steps it persists."""

    candidates: Candidates

    @cached_property
    def _first(self) -> tuple[Phase, ...]:
        """Question for the effect; counts are cut first, which saves hours."""
        return ("shorten", "whole") if self.candidates.can_shorten else ("whole",)

    def following(self, record: SearchRecord) -> Question | None:
        """Return the question that comes next."""
        state = progress(record)
        if state is not None:
            return None if state.untried is None else self._question(record, "remove", state.untried, state)
        answered = {question.phase for question in record.answered}
        every = self.candidates.every
        return next(
            (self._question(record, phase, every) for phase in self._first if phase not in answered), None
        )

    def _question(
        self, record: SearchRecord, phase: Phase, steps: Subset, known: Progress | None = None
    ) -> Question:
        removed = tuple(step for step in known.kept if step not in steps) if known else ()
        labels = self.candidates.labels
        return record.question(phase, steps) or Question(
            phase=phase, about=steps, subject=labels(steps), against=labels(removed)
        )

    def plans(self, record: SearchRecord, question: Question) -> tuple[Plan, ...]:
        """Return the run of the schedule, and of the target alone unless variants are compared."""
        short = self._is_short(record, question)
        name = f"{self.candidates.challenge.name}-{question.number}"
        names = {name: question.about}
        if not minimize_spec(record).effect.against:
            names[f"{name}-fresh"] = ()
        return tuple(
            msgspec.structs.replace(record.plan, schedules=(self.candidates.build(steps, side, short=short),))
            for side, steps in names.items()
        )

    def values(self, record: SearchRecord, runs: Sequence[RunRecord]) -> Values:
        """Read the values of both sides."""
        return values_of(runs, minimize_spec(record).effect, metric_of(record.metric))

    def verdict(self, record: SearchRecord, question: Question, pairs: Pairs) -> tuple[Verdict, float]:
        """Answer it by its pairs."""
        rule = rule_of(record, question.phase, question.number)
        direction = direction_of(minimize_spec(record).effect, metric_of(record.metric))
        return answer(signed(pairs, direction), others_of(record, question), rule), rule.alpha

    def require_measured(self, record: SearchRecord, question: Question, reason: str) -> None:
        """Refuse a target that was never answered."""
        if question.phase != "remove" and not question.pairs:
            why = reason or "its requests failed, or it is unsupported"
            raise BenchctlError(
                f"task '{minimize_spec(record).effect.task}' has no figure in any block: {why}",
                hint="try it first with: benchctl run",
            )

    def least_s(self, record: SearchRecord, question: Question) -> float:
        """Return what a fork takes by the rates of its schedule."""
        return self.candidates.least_s(question.about, short=self._is_short(record, question))

    def title(self, question: Question) -> str:
        """Return what it asks, in words."""
        tasks = " > ".join((*question.subject, self.candidates.target.label))
        cut = ", counts cut" if question.phase == "shorten" else ""
        without = f", without {', '.join(question.against)}" if question.against else ""
        return f"question {question.number}{cut}{without}: is it there in {tasks}?"

    def _is_short(self, record: SearchRecord, question: Question) -> bool:
        begun = begun_of(record)
        return "shorten" in (question.phase, begun.phase if begun else "")

    def schedules(self, record: SearchRecord) -> tuple[Challenge, ...]:
        """Return the smallest schedule so far, and the target alone if that is the reference."""
        state = progress(record)
        if state is None:
            return ()
        candidates, effect = self.candidates, minimize_spec(record).effect
        name = f"{_safe(candidates.challenge.name)}-minimal-{_safe(effect.task)}"
        whole = len(state.kept) == len(candidates.front) and not state.is_short
        about = f"'{effect}': {'the whole of' if whole else 'reduced from'} {candidates.challenge.name}"
        challenge = candidates.build(state.kept, name, short=state.is_short)
        challenge = msgspec.structs.replace(challenge, description=about)
        if effect.against:
            return (challenge,)
        return challenge, candidates.build((), f"{name}-alone", short=state.is_short)


def _safe(name: str) -> str:
    """A challenge's name or a task's label as part of a file's name."""
    plain = (char if char.isascii() and (char.isalnum() or char in "-_.") else "-" for char in name)
    return "".join(plain)[:_MOST_OF_NAME]


# What it found, for readers.


def found_labels(record: SearchRecord) -> tuple[str, ...]:
    """Return the tasks of the smallest schedule so far; none without an effect."""
    state = progress(record)
    if state is None:
        return ()
    left = record.question("remove", state.kept) or state.begun
    return (*left.subject, minimize_spec(record).effect.task)


def inconclusive(record: SearchRecord) -> str:
    """Return why there is no smaller schedule; empty if there is."""
    if begun_of(record) is not None:
        return ""
    if record.status != "complete":
        return "the time was up before the effect was found"
    return f"the effect is not confirmed: {record.spec.label}"


def conclusion(record: SearchRecord) -> Iterator[str]:
    """Yield what was found, in sentences."""
    effect, state = f"'{record.spec.label}'", progress(record)
    if state is None:
        seen = f" ({_size(record.questions[-1])})" if record.questions else ""
        ended = "" if record.status == "complete" else f"; {record.stopped}"
        yield f"{effect} is not confirmed{seen}: there is nothing to keep while tasks go{ended}."
        return
    left = record.question("remove", state.kept) or state.begun
    names = ", ".join(left.subject) or "nothing"
    count = len(state.begun.about)
    yield f"{effect} persists with {len(left.about)} of {count} steps before it: {names}."
    yield f"There it is {_size(left)}; at the beginning it was {_size(state.begun)}."
    if state.is_short:
        iterations = minimize_spec(record).prefix_iterations
        yield f"Counts in front were cut to at most {iterations} requests, without warm-up and rates."
    if state.untried is None:
        yield _minimal(record, left)
    else:
        yield f"It may get smaller: the search ended before every step was tried: {record.stopped}."


def _minimal(record: SearchRecord, left: Question) -> str:
    names = ", ".join(
        name
        for question in record.questions
        if question.phase == "remove"
        and question.verdict == "undecided"
        and len(question.about) == len(left.about) - 1
        and {*question.about} < {*left.about}
        for name in question.against
    )
    if not left.about:
        return "Nothing in front of it is needed."
    if not names:
        return "None of them can go: without any single one, the effect was found gone."
    return (
        f"Without any other one, the effect was found gone. Whether it takes {names} is inconclusive after "
        f"{record.most} pairs of forks, so it is kept: more --forks may decide."
    )


def explanation(record: SearchRecord) -> Iterator[str]:
    """Yield how to read the table."""
    spec = minimize_spec(record)
    counts = "half of what the first question found" if spec.by is None else percent(100 * spec.by)
    gone = "0" if spec.by is None else "that"
    yield (
        f"An effect counts from {counts}. It is present when its interval excludes {gone}, and absent when "
        "the interval excludes the whole effect; inconclusive steps are kept. Intervals hold after any "
        "number of pairs; questions share their error, so each takes a wider one than the 95% shown. With a "
        f"chance of {percent(100 * spec.alpha)} at most, over all questions, a needed step was removed."
    )
    yield f"Its forks took {duration(record.spent_s)}."


def _size(question: Question) -> str:
    if question.effect_percent is None:
        return "not measured"
    return (
        f"{signed_percent(question.effect_percent)}% "
        f"({interval(question.low_percent, question.high_percent)})"
    )
