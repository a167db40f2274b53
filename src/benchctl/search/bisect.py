"""Bisection with answers that may be wrong: the first point of a history that behaves differently.

Points are numbered from 0, which is the reference; the last is known to differ from it. Every question is put
to pairs of forks, one of the point and one of the reference, and answered as soon as they suffice: is the
difference between the ends there, or gone (`search.answers`)? The first one has a level of `ALPHA`, since it
can only be wrong where there is no change to be missed; the halvings share as much.

Then the answer is checked, by questions that cannot change it, only put it into doubt: is the difference
there between the two neighbours themselves, and do the points midway on either side behave as a single step
would have them? A history that goes back and forth between those points is not seen.

Simulated: 2,000 histories of 64 points with one step of 10% anywhere, forks with a CV of 5%, at most 24
pairs a question. The step was named in 98.3% of them, after 83 pairs (median), checks included; in 2.6% a
doubt was told besides. In the others it stayed open, and in .1% another point was named without a doubt.
Without a step, 98.1% ended with the first question.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from benchctl.errors import BenchctlError
from benchctl.report.numbers import counted, duration, interval, percent, signed_percent
from benchctl.results.model import RunRecord
from benchctl.results.plan import Plan, VariantSpec
from benchctl.search.answers import Pairs, Rule, Values, Verdict, answer, pooled
from benchctl.search.record import (
    BisectSpec,
    Phase,
    Point,
    Question,
    SearchRecord,
    Strategy,
    signed,
)
from benchctl.stats.metrics import block_values, collect, metric_of, task_at

ALPHA: Final = 0.05
"""Chance that ends seem to differ that do not; and where they do, that any halving goes the wrong way."""

CHECK_ALPHA: Final = 0.025
"""Chance that a check doubts what is right; it names no point, so it shares nothing."""

_ANSWERS: Final[dict[Verdict, str]] = {
    "present": "it differs",
    "absent": "it does not",
    "undecided": "open",
    "measuring": "not answered yet",
}


class Found(msgspec.Struct, frozen=True):
    """Between which points the change is."""

    before: int  # the last that is like the reference
    first: int  # the first that is not; if not `before` + 1, those between could not be judged


def bisect_spec(record: SearchRecord) -> BisectSpec:
    """Return the history."""
    assert isinstance(record.spec, BisectSpec)  # noqa: S101 - the record's kind chose this module
    return record.spec


def questions_at_most(count: int) -> int:
    """Return the number of questions that lead to the answer among so many points, at least 2."""
    return 1 + math.ceil(math.log2(count - 1)) if count > 2 else 1  # noqa: PLR2004 - only the ends


def narrowed(count: int, answered: Sequence[Question]) -> Found:
    """Return what the answers so far show; of a point that was asked about again, the later one counts."""
    verdicts = {question.about[0]: question.verdict for question in answered if _leads(question)}
    before = max((point for point, verdict in verdicts.items() if verdict == "absent"), default=0)
    after = (point for point, verdict in verdicts.items() if verdict == "present" and point > before)
    return Found(before, min(after, default=count - 1))


def next_question(count: int, answered: Sequence[Question], unusable: Collection[int]) -> Question | None:
    """Return the next question; None when there is none left.

    Args:
        count: points, at least 2.
        answered: in order.
        unusable: points that cannot be measured; they are passed over, as are undecided ones.
    """
    if not answered:
        return _ask("ends", count - 1)
    if answered[0].verdict != "present":
        return None
    bounds = narrowed(count, answered)
    tested = {question.about[0] for question in answered if _leads(question)} | {*unusable}
    open_ones = [point for point in range(bounds.before + 1, bounds.first) if point not in tested]
    if open_ones:
        middle = (bounds.before + bounds.first) / 2
        return _ask("halve", min(open_ones, key=lambda point: (abs(point - middle), point)))
    done = {(question.phase, question.about): question.verdict for question in answered}
    step = ("step", (bounds.first, bounds.before))
    if step not in done:
        return _ask("step", bounds.first, bounds.before)
    if done[step] != "present":
        # One of the two answers is wrong, unless there is more than one step.
        for point in (bounds.first, bounds.before):
            if 0 < point < count - 1 and ("again", (point, 0)) not in done:
                return _ask("again", point)
    return _check(count, answered, tested | {0, count - 1})


def _ask(phase: Phase, point: int, against: int = 0) -> Question:
    return Question(phase=phase, about=(point, against))


def _check(count: int, answered: Sequence[Question], known: set[int]) -> Question | None:
    """A point midway on a side that was not checked, the farthest from all that are known."""
    bounds, done = narrowed(count, answered), {question.phase for question in answered}
    sides: dict[Phase, range] = {
        "before": range(1, bounds.before),
        "after": range(bounds.first + 1, count - 1),
    }
    for phase, side in sides.items():
        points = [point for point in side if point not in known]
        if phase not in done and points:
            return _ask(phase, max(points, key=lambda point: min(abs(point - number) for number in known)))
    return None


def answer_question(
    count: int, question: Question, pairs: Pairs, answered: Sequence[Question], most: int
) -> tuple[Verdict, float]:
    """Answer a question by its pairs; also the alpha that it spends.

    Args:
        count: points.
        question: what is asked.
        pairs: at least one, log ratios.
        answered: the other questions.
        most: pairs after which it stays open.
    """
    others = [question.pairs for question in answered]
    if question.phase == "ends":
        # Which way they differ is not asked: a change for the better is found, too.
        rule = Rule(0.0, -math.inf, 0.0, ALPHA / 2, ALPHA / 2, most)
        return answer(signed(pairs, sum(pairs)), others, rule), ALPHA
    differing = [
        pair
        for question in answered
        if question.verdict == "present" and _leads(question)
        for pair in question.pairs
    ]
    whole = sum(differing) / len(differing)
    alpha = ALPHA / max(1, questions_at_most(count) - 1) if _leads(question) else CHECK_ALPHA
    rule = Rule(0.0, abs(whole), abs(whole) / 2, alpha, alpha, most)
    return answer(signed(pairs, whole), others, rule), alpha


def _leads(question: Question) -> bool:
    """Return whether an answer says on which side of the change a point is."""
    return question.about[1] == 0 and question.phase not in ("before", "after")


def doubts(count: int, answered: Sequence[Question]) -> list[Question]:
    """Return checks whose answers do not fit a single step at the place found."""
    bounds = narrowed(count, answered)
    step = ("step", (bounds.first, bounds.before))
    wanted = {"before": "absent", "after": "present"}
    return [
        question
        for question in answered
        if ((question.phase, question.about) == step and question.verdict != "present")
        or question.verdict != wanted.get(question.phase, question.verdict)
    ]


def is_part(count: int, answered: Sequence[Question]) -> bool:
    """Return whether the step found is smaller than the ends differ by: there are further ones."""
    bounds = narrowed(count, answered)
    step = [
        pair
        for question in answered
        if (question.phase, question.about) == ("step", (bounds.first, bounds.before))
        for pair in question.pairs
    ]
    whole = [pair for question in answered if question.phase in ("ends", "after") for pair in question.pairs]
    if not step:
        return False
    # What decides a question is looked at after every pair, and this once at the end.
    both = [signed(whole, sum(whole)), signed(step, sum(whole))]
    missing = pooled(both, [1.0, -1.0], sequential=False)
    return missing is not None and missing.p_at_least(0.0) <= CHECK_ALPHA


@dataclass(frozen=True)
class Bisecting(Strategy):
    """Asks whether the ends differ, halves the points between them, and checks the answer."""

    variant: Callable[[int], VariantSpec]  # by the point's number; may have to build it

    counts_preparing = True

    def following(self, record: SearchRecord) -> Question | None:
        """Return the question that comes next."""
        points = bisect_spec(record).points
        question = next_question(len(points), record.answered, record.skipped)
        if question is None:
            return None
        begun = record.question(question.phase, question.about)
        subject, against = ((points[number].name,) for number in question.about)
        return begun or msgspec.structs.replace(question, subject=subject, against=against)

    def plans(self, record: SearchRecord, question: Question) -> tuple[Plan, ...]:
        """Return the run of the other point and the point, which are built first."""
        spec, plan = bisect_spec(record), record.plan
        point, other = question.about
        variants = tuple(self.variant(number) for number in (other, point))
        # What the plan has of the engine that a commit is built into, or of a point under another name.
        names = {
            variant.name: spec.variants[min(number, len(spec.variants) - 1)].name
            for variant, number in zip(variants, (other, point), strict=True)
        }
        return (
            msgspec.structs.replace(
                plan,
                variants=variants,
                variant_warmups=_renamed(plan.variant_warmups, names),
                node_hosts=_renamed(plan.node_hosts, names),
            ),
        )

    def values(self, record: SearchRecord, runs: Sequence[RunRecord]) -> Values:
        """Read the values of both points."""
        (run,), place = runs, bisect_spec(record).place
        done = {spec.name: run.compared(spec.name) for spec in run.plan.variants}
        other, point = collect(done, place, task_at(run.plan, place)).values()
        return block_values(metric_of(record.metric), point, other)

    def verdict(self, record: SearchRecord, question: Question, pairs: Pairs) -> tuple[Verdict, float]:
        """Answer it by its pairs."""
        answered = [other for other in record.answered if other.number != question.number]
        return answer_question(len(bisect_spec(record).points), question, pairs, answered, record.most)

    def require_measured(self, record: SearchRecord, question: Question, reason: str) -> None:
        """Refuse a point that cannot be measured."""
        if reason or not question.pairs:
            why = reason or "its requests failed, or it is unsupported"
            raise BenchctlError(
                f"task '{bisect_spec(record).task}' cannot be compared: {why}",
                hint="try it first with: benchctl run",
            )

    def can_skip(self, question: Question) -> bool:
        """Return whether it is about a point that others can stand for."""
        return question.phase in ("halve", "before", "after")

    def title(self, question: Question) -> str:
        """Return what it asks, in words."""
        (point,), (other,) = question.subject, question.against
        return f"question {question.number}: does {point} differ from {other}?"


T = TypeVar("T")


def _renamed(values: Mapping[str, T], names: Mapping[str, str]) -> dict[str, T]:
    return {name: values[source] for name, source in names.items() if source in values}


# What it found, for readers.


def found_labels(record: SearchRecord) -> tuple[str, ...]:
    """Return the first point that differs; none where that is not known."""
    points = bisect_spec(record).points
    return () if inconclusive(record) else (points[narrowed(len(points), record.answered).first].name,)


def inconclusive(record: SearchRecord) -> str:
    """Return why the first point that differs is not known for sure; empty where it is."""
    questions, count = record.answered, len(bisect_spec(record).points)
    is_complete = record.status == "complete"
    if not questions or (questions[0].verdict != "present" and not is_complete):
        return "the time was up before it was known whether the ends differ"
    if questions[0].verdict != "present":
        return "it is not confirmed that the ends differ"
    if not is_complete:
        return "the time was up before all was asked"
    bounds = narrowed(count, questions)
    if bounds.first - bounds.before > 1:
        return f"{counted(bounds.first - bounds.before - 1, 'point')} could not be distinguished from it"
    if doubts(count, questions) or is_part(count, questions):
        return "one single step does not explain the answers"
    return ""


def conclusion(record: SearchRecord) -> Iterator[str]:
    """Yield what was found, in sentences."""
    spec, questions = bisect_spec(record), record.answered
    points = spec.points
    if not questions or questions[0].verdict != "present":
        matter = inconclusive(record)
        yield f"{matter[0].upper()}{matter[1:]}: {points[-1]} against {points[0]}."
        return
    bounds = narrowed(len(points), questions)
    first, before = points[bounds.first], points[bounds.before]
    shown = record.question("step", (bounds.first, bounds.before)) or questions[0]
    size = f"{metric_of(record.metric).title} of {spec.task} {signed_percent(shown.effect_percent)}%"
    size = f"{size} ({interval(shown.low_percent, shown.high_percent)})"
    if between := bounds.first - bounds.before - 1:
        yield (
            f"The change comes after {before}, and with {first} at the latest: {size}. "
            f"{counted(between, 'point')} between them could not be judged."
        )
    else:
        yield f"{first} is the first that differs: {size} against {before}."
    for doubt in doubts(len(points), questions):
        yield f"Doubt: {_doubt(points, doubt)}."
    if is_part(len(points), questions):
        whole = signed_percent(questions[0].effect_percent)
        yield f"Doubt: that is only a part of {whole}% between the ends; the rest changes elsewhere."
    if record.status != "complete":
        yield f"It is not finished: {inconclusive(record)}."


def _doubt(points: Sequence[Point], one: Question) -> str:
    point, other = (points[number] for number in one.about)
    if one.phase == "step":
        return f"whether {point} differs from {other} itself was answered with: {_ANSWERS[one.verdict]}"
    side = "before" if one.phase == "before" else "after"
    return f"{point} lies {side} the change; asked whether it differs from {other}: {_ANSWERS[one.verdict]}"


def explanation(record: SearchRecord) -> Iterator[str]:
    """Yield how to read the table, and what it took."""
    points = bisect_spec(record).points
    pairs = sum(len(question.pairs) for question in record.questions)
    leading = counted(questions_at_most(len(points)), "question")
    yield (
        f"Error bound: with a chance of {percent(100 * ALPHA)} at most, over the {leading} that lead to it, "
        "an answer is wrong. It holds for a history with one step, and pairs of forks that are independent "
        "and near normal; whether there are further steps is checked at single points only."
    )
    yield (
        "A point differs when its interval excludes 0, and does not when it excludes the ends' difference. "
        "Intervals hold after any number of pairs; questions share their error, so each takes a wider one "
        "than the 95% shown."
    )
    for number, reason in sorted(record.skipped.items()):
        yield f"Skipped: {points[number]}: {reason.splitlines()[0]}"
    yield (
        f"{counted(len(record.questions), 'question')} about {counted(len(points), 'point')}, "
        f"{counted(pairs, 'pair')} of forks, {duration(record.spent_s)}, builds included."
    )
