"""Schedules to try: a target with some of the steps in front of it, and it alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import msgspec

from benchctl.errors import UsageError
from benchctl.nearest import suggestion
from benchctl.track.model import Challenge, Task, TrackOperation

_NO_RATE: Mapping[str, Any] = MappingProxyType(
    {"target_throughput": None, "target_interval": None, "schedule": "deterministic"}
)


@dataclass(frozen=True)
class Candidates:
    """What can be tried of a challenge.

    Attributes:
        challenge: the whole of it.
        front: the steps in front of the target, in order: one task, or those of a parallel element.
        target: the task that shows the effect. What comes behind it cannot matter to it, and goes.
        operations: by name, the challenge's own included.
        iterations: to which counts of tasks in front are cut in short candidates, where no task has a rate,
            either; None to have no such.
    """

    challenge: Challenge
    front: tuple[tuple[Task, ...], ...]
    target: Task
    operations: Mapping[str, TrackOperation]
    iterations: int | None

    @property
    def every(self) -> tuple[int, ...]:
        """Positions of all steps in front."""
        return tuple(range(len(self.front)))

    def labels(self, steps: Sequence[int]) -> tuple[str, ...]:
        """What tables call these steps; tasks of a parallel element are joined."""
        return tuple(" | ".join(task.label for task in self.front[step]) for step in steps)

    @property
    def can_shorten(self) -> bool:
        """Whether counts in front can be cut at all."""
        cut = any(self._shortened(task) != task for step in self.front for task in step)
        return cut or self._target(short=True) != self.target

    def build(self, steps: Sequence[int], name: str, *, short: bool = False) -> Challenge:
        """A challenge of these steps in front of the target.

        Args:
            steps: their positions, ascending.
            name: of the challenge.
            short: cut the counts of tasks in front, and wait for no rate.
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
        """The target with all its requests: they are what is measured, and fresh or not they are the same."""
        if not short or self.iterations is None or self.target.scheduler is not None:
            return self.target
        return msgspec.structs.replace(self.target, **_NO_RATE)

    def _shortened(self, task: Task) -> Task:
        """A task as somebody who looks for a cause would have it: few requests, no warm-up and no waiting.

        What prepares the others, takes its work from the corpus, or asks less often already, stays as it is.
        """
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
    """Find the target in a challenge.

    Args:
        challenge: the whole of it.
        target: label of a task.
        operations: of track and challenge.
        iterations: as of `Candidates`.

    Raises:
        UsageError: it is not there, is there several times, is part of a parallel element, or there is
            nothing in front of it.
    """
    labels = [task.label for task in challenge.schedule]
    if target not in labels:
        raise UsageError(
            f"--effect: challenge '{challenge.name}' has no task '{target}'", hint=suggestion(target, labels)
        )
    if labels.count(target) > 1:
        raise UsageError(
            f"--effect: challenge '{challenge.name}' has {labels.count(target)} tasks '{target}'",
            hint="give the one that is meant a name of its own in the file",
        )
    place = labels.index(target)
    if challenge.schedule[place].group is not None:
        raise UsageError(
            f"--effect: '{target}' runs beside other tasks, which nothing can take away from it",
            hint="name a task that runs alone",
        )
    if place == 0:
        raise UsageError(
            f"--effect: '{target}' is the first task of '{challenge.name}': there is nothing to remove",
            hint="give a challenge in which something runs before it",
        )
    front = tuple(
        tuple(challenge.schedule[one] for one in places) for places in challenge.steps if places[-1] < place
    )
    return Candidates(challenge, front, challenge.schedule[place], operations, iterations)
