"""A bisection as it is kept: its points, its answers, and its folder with the runs behind them."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from benchctl.results.store import RunStore
from benchctl.results.versioned import read_versioned, write_versioned
from benchctl.revisions.search import Asked, Question
from benchctl.stats.sequential import Verdict, estimate

RECORD_VERSION: Final = 1
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
        write_versioned(self.path / RECORD_NAME, record)

    def load(self) -> Bisection | None:
        """The record; None if there is none yet.

        Raises:
            BenchctlError: it is broken, or of another version.
        """
        return read_versioned(self.path / RECORD_NAME, Bisection, "record", RECORD_VERSION)
