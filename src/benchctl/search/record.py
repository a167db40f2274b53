"""Searches as they are kept: what is looked for, questions with their answers, and the runs behind them."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from benchctl.errors import UsageError
from benchctl.home import Home
from benchctl.results.folders import Shelf, read_versioned, readable, write_versioned
from benchctl.results.model import RunRecord, RunStatus
from benchctl.results.plan import Plan, VariantSpec
from benchctl.results.store import RunStore
from benchctl.search.answers import Pairs, Reply, Values, Verdict
from benchctl.track.model import Challenge

SEARCH_VERSION = 5

Direction = Literal["slower", "faster"]
# Of minimize: is the effect there with cut counts, in the whole schedule, or still without some steps? Of
# bisect: do the ends differ; does a point between them differ from the first; do the neighbours of the change
# differ from each other; one of them again if they do not; and points midway on either side.
Phase = Literal["shorten", "whole", "remove", "ends", "halve", "step", "again", "before", "after"]


class Effect(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The effect that must persist while tasks are removed."""

    task: str  # label
    direction: Direction  # of the task after the rest of the schedule, or on the variant
    variant: str
    against: str = ""  # the variant to compare with; empty for the task alone on a fresh node

    def __str__(self) -> str:
        if self.against:
            return f"{self.task} {self.direction} on {self.variant} than on {self.against}"
        return f"{self.task} {self.direction} than fresh"


class MinimizeSpec(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True, tag="minimize"
):
    """The effect that is searched for, and the required certainty."""

    effect: Effect
    # Least effect that counts, as a ratio - 1; None for half of what the first question finds.
    by: float | None = None
    prefix_iterations: int | None = None  # counts of tasks in front are cut to this before any goes
    alpha: float = 0.05  # chance, over all questions, that a task is removed which the effect needs
    output: str = ""  # where the challenge goes that is found; empty for the search's directory

    @property
    def label(self) -> str:
        """Subject in lists."""
        return str(self.effect)


class Point(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A point of a history: the name of its variant, and what more is known of it, such as a subject."""

    name: str
    about: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.about})" if self.about else self.name


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The way from commits to builds."""

    repository: str  # a directory, or the URL of a git repository
    command: str  # for the shell, in a checkout of the commit
    artifact: str  # pattern of files, relative to the checkout
    timeout_s: float
    shas: tuple[str, ...] = ()  # of the points


class BisectSpec(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True, tag="bisect"
):
    """The history whose change is searched for."""

    points: tuple[Point, ...]  # the reference first
    variants: tuple[VariantSpec, ...]  # of the points; of commits, the engine that they are built into
    place: tuple[int, int] = (0, 0)  # schedule and number of `task`, which shows the difference
    task: str = ""
    source: Source | None = None
    key: str = ""  # of what was asked for: whoever asks for the same again continues

    @property
    def label(self) -> str:
        """Subject in lists."""
        return f"{self.task} from {self.points[0].name} to {self.points[-1].name}"


class Files(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Documents of the user's own, as `FileOptions` has them."""

    local: str = ""
    folders: tuple[str, ...] = ()
    docs: int | None = None
    local_index: str = ""


class Question(Reply, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A question to the nodes, and what came of it so far; `seconds` hold builds, too."""

    number: int = 0  # from 1
    phase: Phase
    # Of minimize: positions of the steps left before the target; of bisect: numbers of the point and of the
    # one that it is compared with.
    about: tuple[int, ...]
    subject: tuple[str, ...] = ()  # labels of the tasks that are left; of the point
    against: tuple[str, ...] = ()  # labels of those it tried to do without; of the other point
    most: int = 0  # pairs after which it was, or is to be, left open
    alpha: float = 0.0  # spent: chance of calling it present wrongly

    @property
    def is_answered(self) -> bool:
        """True if it ended, conclusively or not."""
        return self.verdict != "measuring"


class SearchRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A search, as far as it has come."""

    record_version: int = SEARCH_VERSION
    id: str
    created: str = ""  # ISO 8601, a label only
    status: RunStatus = "running"  # one that ran out of time is `interrupted`, and can be resumed
    stopped: str = ""  # why it ended before it was complete
    spec: MinimizeSpec | BisectSpec
    metric: str
    most: int  # pairs of forks per question
    budget_s: float | None = None  # of all its questions; None for no limit
    plan: Plan  # of a run of the whole schedule, or of all points
    files: Files = Files()
    questions: tuple[Question, ...] = ()
    skipped: dict[int, str] = {}  # point -> why it cannot be measured; tried again on resuming

    @property
    def answered(self) -> list[Question]:
        """The questions that have an answer; one that stayed open may take more pairs by now."""
        return [
            question
            for question in self.questions
            if question.is_answered and (question.verdict != "undecided" or question.most >= self.most)
        ]

    @property
    def spent_s(self) -> float:
        """Seconds that it took so far."""
        return sum(question.seconds for question in self.questions)

    def question(self, phase: Phase, about: tuple[int, ...]) -> Question | None:
        """Return a question that was begun."""
        return next(
            (question for question in self.questions if (question.phase, question.about) == (phase, about)),
            None,
        )

    def with_question(self, question: Question) -> "SearchRecord":
        """Return the record with a question as it is now."""
        others = (other for other in self.questions if other.number != question.number)
        questions = sorted((*others, question), key=lambda question: question.number)
        return msgspec.structs.replace(self, questions=tuple(questions))


class Strategy:
    """Kind of search: its next question or reason to end, and its answers."""

    counts_preparing: bool = False
    """True if times and the budget include the preparation, such as builds."""

    def following(self, record: SearchRecord) -> Question | None:
        """Return the question that comes next, new or begun before; None when nothing is left to ask."""
        raise NotImplementedError

    def plans(self, record: SearchRecord, question: Question) -> tuple[Plan, ...]:
        """Return the runs whose forks answer it, side by side; may have to build what they measure.

        Raises:
            BenchctlError: If that fails.
        """
        raise NotImplementedError

    def values(self, record: SearchRecord, runs: Sequence[RunRecord]) -> Values:
        """Read the values of both sides from the runs."""
        raise NotImplementedError

    def verdict(self, record: SearchRecord, question: Question, pairs: Pairs) -> tuple[Verdict, float]:
        """Answer it by its pairs, at least one; also the alpha that it spends."""
        raise NotImplementedError

    def require_measured(self, record: SearchRecord, question: Question, reason: str) -> None:
        """Refuse to go on without an answer to it; else it stays open.

        Args:
            record: of the search.
            question: without an answer.
            reason: why its runs get no further, if they failed.

        Raises:
            BenchctlError: If the search makes no sense without it.
        """
        raise NotImplementedError

    def can_skip(self, question: Question) -> bool:
        """Return whether the search goes on without the point if it cannot be measured."""
        del question
        return False

    def least_s(self, record: SearchRecord, question: Question) -> float:
        """Return the seconds that a block of it takes at least."""
        del record, question
        return 0.0

    def title(self, question: Question) -> str:
        """Return what it asks, in words."""
        raise NotImplementedError

    def schedules(self, record: SearchRecord) -> tuple[Challenge, ...]:
        """Return the challenges that it found, to be written as files."""
        del record
        return ()


def others_of(record: SearchRecord, question: Question) -> list[Pairs]:
    """Return the pairs of all other answered questions, which show how much pairs differ."""
    return [
        other.pairs for other in record.questions if other.is_answered and other.number != question.number
    ]


def signed(pairs: Pairs, direction: float) -> list[float]:
    """Return pairs with the sign that makes the direction positive."""
    return [math.copysign(1.0, direction) * pair for pair in pairs]


# Searches on disk: `search.json`, what was found, and the runs behind every answer.


_RECORD_NAME = "search.json"


@dataclass(frozen=True)
class SearchFolder:
    """The directory of one search."""

    path: Path

    @property
    def runs(self) -> RunStore:
        """The runs that answers rest on: apart from others, since nobody compares with them."""
        return RunStore(self.path / "runs")

    def save(self, record: SearchRecord) -> None:
        """Replace the record; see `write_versioned`.

        Raises:
            BenchctlError: If the disk is full or cannot be written.
        """
        write_versioned(self.path / _RECORD_NAME, record)

    def load(self) -> SearchRecord:
        """Read the record.

        Raises:
            UsageError: If there is no record.
            BenchctlError: If the record is broken, or of another version.
        """
        record = read_versioned(self.path / _RECORD_NAME, SearchRecord, "record", SEARCH_VERSION)
        if record is None:
            raise UsageError(f"no search in {self.path}")
        return record


def shelf(home: Home) -> Shelf:
    """Return the place of all searches, which need not exist."""
    return Shelf(home.root / "searches", _RECORD_NAME, "search", "searches", "see: benchctl list searches")


def find_search(home: Home, name: str) -> SearchFolder:
    """Return a search by id, by a beginning of it that only one has, or by path; `latest` for the newest.

    Raises:
        UsageError: If no search or several match.
        BenchctlError: If records cannot be read.
    """
    return SearchFolder(shelf(home).find(name))


def all_searches(
    home: Home, unreadable: Callable[[str], None]
) -> Iterator[tuple[SearchFolder, SearchRecord]]:
    """Yield all readable searches, oldest first.

    `unreadable` is called with the reason for each that is skipped.

    Raises:
        BenchctlError: If records cannot be read.
    """
    return readable(map(SearchFolder, shelf(home).folders()), SearchFolder.load, unreadable)


def references(home: Home, unread: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    """Yield the runs that searches rest on, which lie in their directories."""
    del unread
    for run in shelf(home).root.glob("*/runs/*"):
        yield str(run.resolve()), f"search {run.parents[1].name}"
