"""Searches for the smallest schedule with an effect, as they are kept: the record, and its folder on disk."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from benchctl.errors import BenchctlError, UsageError
from benchctl.results.folders import Shelf, read_versioned, readable, write_versioned
from benchctl.results.model import RunRecord
from benchctl.results.plan import Plan
from benchctl.results.store import RunStore
from benchctl.stats.answers import Pairs, Reply, Rule, Values
from benchctl.stats.metrics import Metric, block_values, collect, metric_of, task_at
from benchctl.track.model import Challenge

MINIMIZE_VERSION = 3

Direction = Literal["slower", "faster"]
Phase = Literal["whole", "shorten", "remove"]
MinimizeStatus = Literal["running", "complete", "interrupted", "failed"]


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


class Decision(Reply, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A question to the nodes: does the effect persist with these tasks before the target?"""

    number: int  # from 1
    phase: Phase  # `whole` and `shorten` ask for an effect to begin with, `remove` whether it persists
    short: bool  # tasks in front have their counts cut
    steps: tuple[int, ...]  # positions in the whole schedule of the steps left in front
    tasks: tuple[str, ...]  # labels of these
    removed: tuple[str, ...] = ()  # labels of those that it tried to do without
    alpha: float = 0.0  # spent: chance of calling it present wrongly


class MinimizeSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """The effect that is searched for, and the required certainty."""

    effect: Effect
    metric: str
    # Least effect that counts, as a ratio - 1; None for half of what the first question finds.
    by: float | None
    most_forks: int  # pairs per question
    prefix_iterations: int | None  # counts of tasks in front are cut to this before any goes
    budget_s: float | None
    alpha: float  # chance, over all questions, that a task is removed which the effect needs


class MinimizeRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """A search, as far as it has come."""

    record_version: int = MINIMIZE_VERSION
    id: str
    created: str  # ISO 8601, a label only
    status: MinimizeStatus  # one that ran out of time is `interrupted`, and can be resumed
    spec: MinimizeSpec
    plan: Plan  # of a run of the whole schedule
    decisions: tuple[Decision, ...] = ()
    found: Challenge | None = None  # the smallest schedule that is known to show the effect
    minimal: bool = False  # no single task of it can go
    stopped: str = ""  # why it ended before that

    @property
    def spent_s(self) -> float:
        """Seconds that forks took so far."""
        return sum(decision.seconds for decision in self.decisions)


# Searches on disk: `minimize.json`, the schedule found, and the runs behind every decision.


_RECORD_NAME = "minimize.json"


@dataclass(frozen=True)
class MinimizeFolder:
    """The directory of one search."""

    path: Path

    @property
    def runs(self) -> RunStore:
        """The runs that decisions rest on: apart from others, since nobody compares with them."""
        return RunStore(self.path / "runs")

    @property
    def record_path(self) -> Path:
        """Path of the record."""
        return self.path / _RECORD_NAME

    def save(self, record: MinimizeRecord) -> None:
        """Replace the record; see `write_versioned`.

        Raises:
            BenchctlError: If the disk is full or cannot be written.
        """
        write_versioned(self.record_path, record)

    def load(self) -> MinimizeRecord:
        """Read the record.

        Raises:
            UsageError: If there is no record.
            BenchctlError: If the record is broken, or of another version.
        """
        record = read_versioned(self.record_path, MinimizeRecord, "record", MINIMIZE_VERSION)
        if record is None:
            raise UsageError(f"there is no search in {self.path}")
        return record


def find_search(root: Path, name: str) -> MinimizeFolder:
    """A search in `root` by id, by a beginning of it that only one has, or by path; `latest` for the newest.

    Raises:
        UsageError: If no search or several match.
        BenchctlError: If records cannot be read.
    """
    return MinimizeFolder(_shelf(root).find(name))


def all_searches(root: Path, unreadable: Callable[[str], None]) -> Iterator[MinimizeRecord]:
    """The records of all readable searches in `root`, if it exists, oldest first.

    `unreadable` is called with the reason for each that is skipped.

    Raises:
        BenchctlError: If records cannot be read.
    """
    folders = map(MinimizeFolder, _shelf(root).folders())
    return (record for _, record in readable(folders, MinimizeFolder.load, unreadable))


def _shelf(root: Path) -> Shelf:
    return Shelf(root, _RECORD_NAME, "search", "searches", "see: benchctl list searches")


# What runs say about an effect: values block by block, and their log ratios, which grow with it.


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


def signed(pairs: Pairs, effect: Effect, metric: Metric) -> list[float]:
    """Return log ratios, contender / reference, with the sign of the effect: more of it is more."""
    sign = -1.0 if (effect.direction == "slower") == metric.higher_is_better else 1.0
    return [sign * pair for pair in pairs]


def require_values(decision: Decision, task: str) -> None:
    """Refuse a target that was never answered.

    Raises:
        BenchctlError: If no block has a value.
    """
    if not decision.pairs:
        raise BenchctlError(
            f"task '{task}' has no figure in any block: its requests failed, or it is unsupported",
            hint="try it first with: benchctl run",
        )


# The questions of a search, from its decisions so far.


BETA = 0.05
"""Chance that one question says `absent` where the effect is there: the result is then larger than needed."""
ALPHA = 0.05
"""Chance that a search begins without an effect; and that one with an effect loses a task that it needs."""


def rule_of(spec: MinimizeSpec, decisions: Sequence[Decision], phase: Phase) -> Rule:
    """Return when the question after these decisions is answered.

    The first ones, two at most, ask whether there is more than the least effect that counts. Later ones tell
    that, or by default no effect, from the whole effect that an earlier decision found. It is not known how
    many these are going to be: the k-th gets 6 / (pi k)^2 of alpha, which adds up to all of it.
    """
    least = math.log1p(spec.by or 0.0)
    if phase != "remove":
        return Rule(least, least, least, spec.alpha / 2, spec.alpha / 2, spec.most_forks)
    begun = next(one for one in decisions if one.phase != "remove" and one.verdict == "present")
    pairs = signed(begun.pairs, spec.effect, metric_of(spec.metric))
    whole = sum(pairs) / len(pairs)
    # Half of it persists, or as much as was asked for.
    middle = whole / 2 if spec.by is None else least
    number = 1 + sum(one.phase == "remove" for one in decisions)
    alpha = spec.alpha * 6 / (math.pi * number) ** 2
    return Rule(least, whole, middle, alpha, BETA, spec.most_forks)
