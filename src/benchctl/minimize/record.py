"""Searches for the smallest schedule with an effect, as they are kept: the record, and its folder on disk."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from benchctl.errors import UsageError
from benchctl.results.finding import Shelf, readable
from benchctl.results.plan import Plan
from benchctl.results.store import RunStore
from benchctl.results.versioned import read_versioned, write_versioned
from benchctl.stats.sequential import Verdict
from benchctl.track.model import Challenge

MINIMIZE_VERSION = 1

Direction = Literal["slower", "faster"]
Phase = Literal["whole", "shorten", "remove"]
MinimizeStatus = Literal["running", "complete", "interrupted", "failed"]


class Effect(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """The effect that must persist while tasks are removed.

    Attributes:
        task: label of the task that shows it.
        direction: what the task is, behind the rest of the schedule or on the variant.
        variant: whose task it is.
        against: the variant that it is compared with in the same schedule; empty for the task alone on a
            fresh node of its own variant.
    """

    task: str
    direction: Direction
    variant: str
    against: str = ""

    def __str__(self) -> str:
        if self.against:
            return f"{self.task} {self.direction} on {self.variant} than on {self.against}"
        return f"{self.task} {self.direction} than fresh"


class Decision(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """One question to the nodes: is the effect there with these tasks in front of the target?

    Attributes:
        number: from 1, in the order in which they were asked.
        phase: `whole` and `shorten` ask whether there is an effect to begin with, with the schedule as it is
            and with counts cut; `remove` whether it persists.
        short: the tasks in front have their counts cut.
        steps: positions of the steps in front that are left, in the whole schedule.
        tasks: their labels.
        removed: labels of those that it tried to do without.
        verdict: what came out; `measuring` while it is not known.
        reason: why it is undecided, in words; empty for the others.
        runs: paths of its runs, relative to the search's folder: first the schedule's, then the fresh node's.
        contender, reference: values of the metric, one a block that both finished.
        effect_percent, low_percent, high_percent: contender / reference - 1 with its ordinary 95 % interval
            over pairs; None without enough of them.
        log_odds: logarithm of how much likelier the pairs are if the effect is there than if it is gone;
            None of the first questions, which are decided by t-tests.
        log_odds_needed: to call it present.
        alpha: chance of calling it present wrongly that the question could spend.
        seconds: that its forks took, failed ones included.
    """

    number: int
    phase: Phase
    short: bool
    steps: tuple[int, ...]
    tasks: tuple[str, ...]
    removed: tuple[str, ...] = ()
    verdict: Verdict = "measuring"
    reason: str = ""
    runs: tuple[str, ...] = ()
    contender: tuple[float, ...] = ()
    reference: tuple[float, ...] = ()
    effect_percent: float | None = None
    low_percent: float | None = None
    high_percent: float | None = None
    log_odds: float | None = None
    log_odds_needed: float | None = None
    alpha: float = 0.0
    seconds: float = 0.0


class MinimizeSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """What is searched for, and how surely.

    Attributes:
        effect: that is to stay.
        metric: machine name of the figure that shows it.
        by: the least effect that counts, as a ratio - 1; None for half of what the first question finds.
        most_forks: pairs of forks that a question gets at most.
        prefix_iterations: to which counts of tasks in front are cut before any goes; None to leave them.
        budget_s: seconds for all forks; None for as long as it takes.
        alpha: chance that any task is removed which the effect needs, over all questions.
    """

    effect: Effect
    metric: str
    by: float | None
    most_forks: int
    prefix_iterations: int | None
    budget_s: float | None
    alpha: float


class MinimizeRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A search, as far as it has come.

    Attributes:
        record_version: of this form.
        id: name of its folder.
        created: wall clock, ISO 8601, a label only.
        status: how it ended; one that ran out of time is `interrupted`, and can go on.
        spec: what is searched for.
        plan: of a run of the whole schedule.
        decisions: in the order in which they were asked.
        found: the smallest schedule that is known to show the effect; None before there is any.
        minimal: whether no single task of it can go.
        stopped: why it ended before that; empty otherwise.
    """

    record_version: int = MINIMIZE_VERSION
    id: str
    created: str
    status: MinimizeStatus
    spec: MinimizeSpec
    plan: Plan
    decisions: tuple[Decision, ...] = ()
    found: Challenge | None = None
    minimal: bool = False
    stopped: str = ""

    @property
    def spent_s(self) -> float:
        """Seconds that forks took so far."""
        return sum(decision.seconds for decision in self.decisions)


# Searches on disk: `minimize.json`, the schedule found, and the runs behind every decision.


_RECORD_NAME = "minimize.json"


@dataclass(frozen=True)
class MinimizeFolder:
    """One search's folder."""

    path: Path

    @property
    def runs(self) -> RunStore:
        """The runs that decisions rest on: apart from others, since nobody compares with them."""
        return RunStore(self.path / "runs")

    @property
    def record_path(self) -> Path:
        """Where the record is."""
        return self.path / _RECORD_NAME

    def save(self, record: MinimizeRecord) -> None:
        """Replace the record; see `write_versioned`.

        Raises:
            BenchctlError: the disk is full or cannot be written.
        """
        write_versioned(self.record_path, record)

    def load(self) -> MinimizeRecord:
        """Read the record.

        Raises:
            UsageError: there is none.
            BenchctlError: it is broken, or of another version.
        """
        record = read_versioned(self.record_path, MinimizeRecord, "record", MINIMIZE_VERSION)
        if record is None:
            raise UsageError(f"there is no search in {self.path}")
        return record


def find_search(root: Path, name: str) -> MinimizeFolder:
    """A search in `root` by id, by a beginning of it that only one has, or by path; `latest` for the newest.

    Raises:
        UsageError: none or several fit.
        BenchctlError: they cannot be looked into.
    """
    return MinimizeFolder(_shelf(root).find(name))


def all_searches(root: Path, unreadable: Callable[[str], None]) -> Iterator[MinimizeRecord]:
    """The records of all readable searches in `root`, if it exists, oldest first.

    `unreadable` is called with the reason for each that is skipped.

    Raises:
        BenchctlError: they cannot be looked into.
    """
    folders = map(MinimizeFolder, _shelf(root).folders())
    return (record for _, record in readable(folders, MinimizeFolder.load, unreadable))


def _shelf(root: Path) -> Shelf:
    return Shelf(root, _RECORD_NAME, "search", "searches", "see: benchctl list searches")
