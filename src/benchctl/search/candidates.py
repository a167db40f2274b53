"""The options of a search: the effect to keep, schedules of fewer tasks, and which to ask for next."""

import itertools
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import msgspec

from benchctl.errors import UsageError, suggestion
from benchctl.search.answers import Answer
from benchctl.search.record import Direction, Effect
from benchctl.track.model import Challenge, Task, TrackOperation

# The effect that is to stay, in a sentence: `range slower than fresh`, `range slower on os than on es`.


_SENTENCE = re.compile(
    r"(?P<task>\S.*?)\s+(?P<direction>slower|faster)\s+"
    r"(?:than\s+(?P<fresh>fresh)|on\s+(?P<variant>\S+)\s+than\s+on\s+(?P<against>\S+))"
)
_FORMS = "write 'TASK slower than fresh', or 'TASK slower on VARIANT than on VARIANT' (or faster)"


def compares_variants(sentence: str) -> bool:
    """Return whether the effect compares two variants.

    Raises:
        UsageError: If the text is not such a sentence.
    """
    return _match(sentence)["fresh"] is None


def parse_effect(sentence: str, variants: Sequence[str]) -> Effect:
    """Read the sentence about measured variants.

    Raises:
        UsageError: If the text is not such a sentence, or the variants are not the ones that it takes.
    """
    match = _match(sentence)
    direction: Direction = "slower" if match["direction"] == "slower" else "faster"
    if match["fresh"]:
        if len(variants) != 1:
            raise UsageError(
                f"--effect '{sentence}' is about one variant, and {len(variants)} are given",
                hint="name one with --variant",
            )
        return Effect(match["task"], direction, variants[0])
    named = (match["variant"], match["against"])
    for name in named:
        if name not in variants:
            raise UsageError(
                f"--effect names variant '{name}', which is not among {', '.join(variants)}",
                hint=f"{suggestion(name, variants)}; or name it with --variant".lstrip("; "),
            )
    if sorted(named) != sorted(variants):
        raise UsageError(
            f"--effect is about {named[0]} and {named[1]}; measured would be {', '.join(variants)}",
            hint="name these two with --variant",
        )
    return Effect(match["task"], direction, *named)


def _match(sentence: str) -> re.Match[str]:
    match = _SENTENCE.fullmatch(sentence.strip())
    if match is None:
        raise UsageError(f"--effect: cannot read '{sentence}'", hint=_FORMS)
    return match


# Schedules: a target with some of the steps in front of it, and it alone.


_NO_RATE: Mapping[str, Any] = MappingProxyType(
    {"target_throughput": None, "target_interval": None, "schedule": "deterministic"}
)


@dataclass(frozen=True)
class Candidates:
    """The schedules that a search can try of a challenge."""

    challenge: Challenge
    front: tuple[tuple[Task, ...], ...]  # steps before the target: one task, or those of a parallel element
    target: Task  # shows the effect; what comes after it cannot matter to it, and goes
    operations: Mapping[str, TrackOperation]  # the challenge's own included
    iterations: int | None  # counts in short candidates, which have no target rates either; None for no such

    @property
    def every(self) -> tuple[int, ...]:
        """Positions of all steps in front."""
        return tuple(range(len(self.front)))

    def labels(self, steps: Sequence[int]) -> tuple[str, ...]:
        """Labels of these steps in tables; tasks of a parallel element are joined."""
        return tuple(" | ".join(task.label for task in self.front[step]) for step in steps)

    @property
    def can_shorten(self) -> bool:
        """True if counts of the tasks before the target can be cut."""
        cut = any(self._shortened(task) != task for step in self.front for task in step)
        return cut or self._target(short=True) != self.target

    def build(self, steps: Sequence[int], name: str, *, short: bool = False) -> Challenge:
        """A challenge of these steps, by ascending positions, in front of the target.

        `short` cuts the counts of tasks in front, and removes their rates.
        """
        chosen = [task for step in steps for task in self.front[step]]
        front = [self._shortened(task) for task in chosen] if short else chosen
        tasks = [*front, self._target(short=short)]
        used = {task.operation for task in tasks}
        own = {key: value for key, value in self.challenge.operations.items() if key in used}
        return msgspec.structs.replace(
            self.challenge, name=name, default=False, schedule=tuple(tasks), operations=own
        )

    def least_s(self, steps: Sequence[int], *, short: bool = False) -> float:
        """Seconds that such a schedule takes by its rates and time periods alone."""
        return sum(task.planned_s or 0.0 for task in self.build(steps, "", short=short).schedule)

    def _target(self, *, short: bool) -> Task:
        """The target with all its requests: they are what is measured, the same on fresh nodes and others."""
        if not short or self.iterations is None or self.target.scheduler is not None:
            return self.target
        return msgspec.structs.replace(self.target, **_NO_RATE)

    def _shortened(self, task: Task) -> Task:
        """Return a task with few requests, no warm-up and no waits, unless others depend on it."""
        operation = self.operations[task.operation]
        if (
            self.iterations is None
            or not operation.reported
            or operation.shares_work
            or task.scheduler is not None
        ):
            return task
        return msgspec.structs.replace(
            task,
            iterations=min(task.iterations or self.iterations, self.iterations)
            if task.time_period is None
            else self.iterations,
            warmup_iterations=None,
            time_period=None,
            warmup_time_period=None,
            ramp_up_time_period=None,
            **_NO_RATE,
        )


def candidates_of(
    challenge: Challenge, target: str, operations: Mapping[str, TrackOperation], iterations: int | None
) -> Candidates:
    """Find the target, by its label, in a challenge.

    Raises:
        UsageError: If the target is missing, part of a parallel element, or there is
            nothing in front of it.
    """
    labels = [task.label for task in challenge.schedule]
    if target not in labels:
        raise UsageError(
            f"--effect: challenge '{challenge.name}' has no task '{target}'", hint=suggestion(target, labels)
        )
    place = labels.index(target)
    if challenge.schedule[place].group is not None:
        raise UsageError(
            f"--effect: '{target}' runs in parallel with other tasks, which cannot be removed",
            hint="name a task that runs alone",
        )
    if place == 0:
        raise UsageError(
            f"--effect: '{target}' is the first task of '{challenge.name}': there is nothing to remove",
            hint="give a challenge in which something runs before it",
        )
    front = tuple(
        tuple(challenge.schedule[number] for number in places)
        for places in challenge.steps
        if places[-1] < place
    )
    return Candidates(challenge, front, challenge.schedule[place], operations, iterations)


# Delta debugging over the tasks in front of a target: which of them does the effect need?


Subset = tuple[int, ...]
"""Positions of the tasks that are left, ascending."""

_MOST_TRIED = 200


def smallest(count: int, judge: Callable[[Subset], Answer], *, needs_some: bool) -> Subset:
    """Remove tasks while the effect persists, until none can go any more.

    This is ddmin (Zeller and Hildebrandt 2002, IEEE TSE 28) that tries complements only (Hodovan and Kiss
    2016, "Practical Improvements to the Minimizing Delta Debugging Algorithm"): whoever removes half of the
    tasks tries the other half as well, and smaller parts alone rarely keep an effect that takes several
    tasks. Parts are removed from the front, and halve when none of their size can go. What comes out is
    1-minimal as far as the judge knows: the effect was seen with it, and was not with any single task less.

    Args:
        count: tasks, in order; the effect is there with all of them.
        judge: asked once for every subset; an exception of it ends the search. What it cannot decide is kept.
        needs_some: the effect is known to be gone without any task; else that is asked first.

    Returns:
        The tasks that are left, in order.
    """
    judged: dict[Subset, Answer] = {(): "absent"} if needs_some else {}
    judged[tuple(range(count))] = "present"

    def persists(subset: Subset) -> bool:
        if subset not in judged:
            judged[subset] = judge(subset)
        return judged[subset] == "present"

    if persists(()):
        return ()
    kept = tuple(range(count))
    size = _half(count)
    while True:
        before = kept
        kept = _swept(kept, size, persists)
        if size == 1 and kept == before:
            return kept
        size = min(_half(size), _half(len(kept)))


def most_questions(count: int) -> int:
    """A bound of how often a judge is asked.

    A sweep over parts of size s asks once a part, and removes a part with every yes: all sweeps over
    larger parts ask less than 2 count together, and those over single tasks at most once for every pair
    of one that is left and one that went.
    """
    return 2 * count + count * (count + 1) // 2 + 1


def usual_questions(count: int, *, needs_some: bool, needed: int = 2) -> int:
    """Number of questions if so many tasks are needed, the median over their positions."""

    def asked(wanted: frozenset[int]) -> int:
        questions = 0

        def judge(subset: Subset) -> Answer:
            nonlocal questions
            questions += 1
            return "present" if wanted <= set(subset) else "absent"

        smallest(count, judge, needs_some=needs_some)
        return questions

    choices = list(itertools.combinations(range(count), min(needed, count)))
    step = max(1, len(choices) // _MOST_TRIED)
    return round(statistics.median(asked(frozenset(choice)) for choice in choices[::step]))


def _swept(kept: Subset, size: int, persists: Callable[[Subset], bool]) -> Subset:
    """Return what is left after trying to remove every part of that size, from the front."""
    start = 0
    while start < len(kept):
        rest = kept[:start] + kept[start + size :]
        if persists(rest):
            kept = rest
        else:
            start += size
    return kept


def _half(number: int) -> int:
    return max(1, (number + 1) // 2)
