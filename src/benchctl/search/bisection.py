"""Bisection with answers that may be wrong: the first point of a history that behaves differently.

Points are numbered from 0, which is the reference; the last is known to differ from it. Every question is put
to pairs of forks, one of the point and one of the reference, and answered as soon as they suffice: is the
difference between the ends there, or gone (`stats.answers`)? The first one has a level of `ALPHA`, since it
can only be wrong where there is no change to be missed; the halvings share as much.

Then the answer is checked, by questions that cannot change it, only put it into doubt: is the difference
there between the two neighbours themselves, and do the points midway on either side behave as a single step
would have them? A history that goes back and forth between those points is not seen.

Simulated: 2,000 histories of 64 points with one step of 10 % anywhere, forks with a CV of 5 %, at most 24
pairs a question. The step was named in 98.3 % of them, after 83 pairs (median), checks included; in 2.6 % a
doubt was told besides. In the others it stayed open, and in .1 % another point was named without a doubt.
Without a step, 98.1 % ended with the first question.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import msgspec

from benchctl.results.folders import read_versioned, write_versioned
from benchctl.results.store import RunStore
from benchctl.stats.answers import Reply, Rule, Verdict, answer, pooled

ALPHA: Final = 0.05
"""Chance that ends seem to differ that do not; and where they do, that any halving goes the wrong way."""

CHECK_ALPHA: Final = 0.025
"""Chance that a check doubts what is right; it names no point, so it shares nothing."""

Phase = Literal["ends", "halve", "step", "again", "before", "after"]


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Does a point differ from another as the ends do?"""

    # `ends`: is there any difference; `halve`; `step`: do the neighbours differ; `again`: about
    # one of them if not; `before` and `after`: about points midway on either side.
    phase: Phase
    point: int  # number
    against: int = 0  # number of the other


class Asked(msgspec.Struct, frozen=True):
    """A question and what came of it."""

    question: Question
    pairs: tuple[float, ...]  # log ratios, point / other
    verdict: Verdict  # `present` if they differ as the ends do


class Found(msgspec.Struct, frozen=True):
    """Between which points the change is."""

    before: int  # the last that is like the reference
    first: int  # the first that is not; if not `before` + 1, those between could not be judged


def questions_at_most(count: int) -> int:
    """Number of questions that lead to the answer among so many points, at least 2."""
    return 1 + math.ceil(math.log2(count - 1)) if count > 2 else 1  # noqa: PLR2004 - only the ends


def narrowed(count: int, asked: Sequence[Asked]) -> Found:
    """Return what the answers so far show; of a point that was asked about again, the later one counts."""
    verdicts = {one.question.point: one.verdict for one in asked if _leads(one.question)}
    before = max((point for point, verdict in verdicts.items() if verdict == "absent"), default=0)
    after = (point for point, verdict in verdicts.items() if verdict == "present" and point > before)
    return Found(before, min(after, default=count - 1))


def next_question(count: int, asked: Sequence[Asked], unusable: Mapping[int, str]) -> Question | None:
    """Return the next question; None when there is none left.

    Args:
        count: points, at least 2.
        asked: in order, all answered.
        unusable: why points cannot be measured, by number; they are passed over, as are undecided ones.
    """
    if not asked:
        return Question("ends", count - 1)
    if asked[0].verdict != "present":
        return None
    found = narrowed(count, asked)
    known = {one.question.point for one in asked if _leads(one.question)} | {*unusable}
    open_ones = [point for point in range(found.before + 1, found.first) if point not in known]
    if open_ones:
        middle = (found.before + found.first) / 2
        return Question("halve", min(open_ones, key=lambda point: (abs(point - middle), point)))
    step = Question("step", found.first, found.before)
    questions = {one.question: one.verdict for one in asked}
    if step not in questions:
        return step
    if questions[step] != "present":
        # One of the two answers is wrong, unless there is more than one step.
        for point in (found.first, found.before):
            again = Question("again", point)
            if 0 < point < count - 1 and again not in questions:
                return again
    return _check(count, asked, known | {0, count - 1})


def _check(count: int, asked: Sequence[Asked], known: set[int]) -> Question | None:
    """A point midway on a side that was not checked, the farthest from all that are known."""
    found, done = narrowed(count, asked), {one.question.phase for one in asked}
    sides: dict[Phase, range] = {
        "before": range(1, found.before),
        "after": range(found.first + 1, count - 1),
    }
    for phase, side in sides.items():
        points = [point for point in side if point not in known]
        if phase not in done and points:
            return Question(phase, max(points, key=lambda point: min(abs(point - one) for one in known)))
    return None


def answer_question(
    count: int, question: Question, pairs: Sequence[float], asked: Sequence[Asked], most: int
) -> Verdict:
    """Answer a question by its pairs.

    Args:
        count: points.
        question: what is asked.
        pairs: at least one, log ratios.
        asked: before it.
        most: pairs after which it stays open.
    """
    others = [one.pairs for one in asked]
    if question.phase == "ends":
        # Which way they differ is not asked: a change for the better is found, too.
        turned = _turned(pairs, sum(pairs))
        return answer(turned, others, Rule(0.0, -math.inf, 0.0, ALPHA / 2, ALPHA / 2, most))
    differing = [
        pair for one in asked if one.verdict == "present" and _leads(one.question) for pair in one.pairs
    ]
    whole = sum(differing) / len(differing)
    alpha = ALPHA / max(1, questions_at_most(count) - 1) if _leads(question) else CHECK_ALPHA
    rule = Rule(0.0, abs(whole), abs(whole) / 2, alpha, alpha, most)
    return answer(_turned(pairs, whole), others, rule)


def _turned(pairs: Sequence[float], direction: float) -> list[float]:
    """Return pairs with the sign that makes the direction positive."""
    return [math.copysign(1.0, direction) * pair for pair in pairs]


def _leads(question: Question) -> bool:
    """Return whether an answer says on which side of the change a point is."""
    return question.against == 0 and question.phase not in ("before", "after")


def doubts(count: int, asked: Sequence[Asked]) -> list[Asked]:
    """Checks whose answers do not fit a single step at the place found."""
    found = narrowed(count, asked)
    step = Question("step", found.first, found.before)
    wanted = {"before": "absent", "after": "present"}
    return [
        one
        for one in asked
        if (one.question == step and one.verdict != "present")
        or one.verdict != wanted.get(one.question.phase, one.verdict)
    ]


def is_part(count: int, asked: Sequence[Asked]) -> bool:
    """Return whether the step found is smaller than the ends differ by: there are further ones."""
    found = narrowed(count, asked)
    step = [
        pair
        for one in asked
        if one.question == Question("step", found.first, found.before)
        for pair in one.pairs
    ]
    whole = [pair for one in asked if one.question.phase in ("ends", "after") for pair in one.pairs]
    if not step:
        return False
    # What decides a question is looked at after every pair, and this once at the end.
    both = [_turned(whole, sum(whole)), _turned(step, sum(whole))]
    missing = pooled(both, [1.0, -1.0], sequential=False)
    return missing is not None and missing.p_at_least(0.0) <= CHECK_ALPHA


RECORD_VERSION: Final = 3
RECORD_NAME: Final = "bisection.json"
ANSWERS: Final[dict[Verdict, str]] = {
    "present": "it differs",
    "absent": "it does not",
    "undecided": "open",
    "measuring": "not answered yet",
}
"""Verdicts in words."""


class Point(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A point of a history: the name of its variant, and what more is known of it, such as a subject."""

    name: str
    about: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.about})" if self.about else self.name


class Answer(Reply, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A question and what came of it so far: the point is the contender; seconds hold builds, too."""

    question: Question


class Bisection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A bisection, as far as it has come."""

    record_version: int = RECORD_VERSION
    id: str
    points: tuple[Point, ...]  # the reference first
    place: tuple[int, int]  # schedule and number of `task`, which shows the difference
    task: str
    metric: str
    most: int  # pairs of forks per question
    answers: tuple[Answer, ...] = ()  # the last may be unanswered
    skipped: dict[int, str] = {}  # point -> why it cannot be measured; tried again on resuming
    complete: bool = False  # nothing more to ask

    @property
    def asked(self) -> list[Asked]:
        """The answered questions, as the search takes them."""
        return [
            Asked(one.question, one.pairs, one.verdict) for one in self.answers if one.verdict != "measuring"
        ]

    @property
    def seconds(self) -> float:
        """Seconds that all of it took so far."""
        return sum(one.seconds for one in self.answers)


@dataclass(frozen=True)
class BisectionFolder:
    """The directory of one bisection."""

    path: Path

    @property
    def runs(self) -> RunStore:
        """The runs behind its answers."""
        return RunStore(self.path / "runs")

    def save(self, record: Bisection) -> None:
        """Replace the record; see `write_versioned`."""
        write_versioned(self.path / RECORD_NAME, record)

    def load(self) -> Bisection | None:
        """The record; None if there is none yet.

        Raises:
            BenchctlError: If the record is broken, or of another version.
        """
        return read_versioned(self.path / RECORD_NAME, Bisection, "record", RECORD_VERSION)
