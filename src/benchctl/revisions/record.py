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

RECORD_VERSION: Final = 2
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
    """A question and what came of it so far."""

    question: Question
    verdict: Verdict = "measuring"
    runs: tuple[str, ...] = ()  # relative to the bisection's runs; empty before there is one
    pairs: tuple[float, ...] = ()  # log ratios, point / other, one per block that both finished
    log_odds: float | None = None  # as in `Judgement`
    log_odds_needed: float | None = None
    seconds: float = 0.0  # builds and preparation included

    @property
    def percent(self) -> tuple[float | None, float | None, float | None]:
        """Point / other - 1 with its ordinary 95 % interval, percent; None where it is unknown."""
        if not self.pairs:
            return None, None, None
        found = estimate(self.pairs)
        mean, low, high = (100 * math.expm1(one) for one in (found.mean, found.low, found.high))
        return (mean, low, high) if math.isfinite(high) else (mean, None, None)


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
