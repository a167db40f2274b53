"""Tasks of several runs: which are the same, and the places of all of them in one plan."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from benchctl.results.figures import TaskSummary
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import Place, Plan
from benchctl.results.reading import ForkSource
from benchctl.results.samples import Columns
from benchctl.track.model import Challenge, Task

Key = tuple[str, int, str, int]
"""Challenge and task by name, each with a number from 1 for those of one name."""


def task_keys(plan: Plan, *, by_label: bool = False) -> dict[Key, Place]:
    """Return the place of every task by its key, the same in other plans that have that task.

    `by_label` ignores the challenge of a label that the plan has once: files of other tools know no more.
    """
    labels = Counter(task.label for challenge in plan.schedules for task in challenge.schedule)
    challenges: Counter[str] = Counter()
    keys: dict[Key, Place] = {}
    for schedule, challenge in enumerate(plan.schedules):
        challenges[challenge.name] += 1
        tasks: Counter[str] = Counter()
        for place, task in enumerate(challenge.schedule):
            tasks[task.label] += 1
            if by_label and labels[task.label] == 1:
                key = ("", 1, task.label, 1)
            else:
                key = (challenge.name, challenges[challenge.name], task.label, tasks[task.label])
            keys[key] = schedule, place
    return keys


def common_schedules(plans: tuple[Plan, Plan]) -> tuple[tuple[Challenge, ...], ...]:
    """Return the challenges of each of two plans with the tasks that both have, in the order of the first."""
    keys = [task_keys(plan) for plan in plans]
    common = [key for key in keys[0] if key in keys[1]]
    return tuple(
        tuple(
            _reduced(plan.schedules[schedule], [place for of, place in chosen if of == schedule])
            for schedule in dict.fromkeys(of for of, _ in chosen)
        )
        for plan, own in zip(plans, keys, strict=True)
        for chosen in [[own[key] for key in common]]
    )


def _reduced(challenge: Challenge, places: Sequence[int]) -> Challenge:
    tasks = [challenge.schedule[place] for place in places]
    used = {task.operation for task in tasks}
    return msgspec.structs.replace(
        challenge,
        # Numbers of parallel elements shift with the tasks before them.
        schedule=tuple(msgspec.structs.replace(task, group=None) for task in tasks),
        operations={name: body for name, body in challenge.operations.items() if name in used},
    )


def company(plan: Plan, place: Place) -> frozenset[str]:
    """Return the labels of the tasks that run at the same time as one."""
    schedule, task = place
    challenge = plan.schedules[schedule]
    step = next(step for step in challenge.steps if task in step)
    return frozenset(challenge.schedule[other].label for other in step if other != task)


def joined(plans: Sequence[Plan], *, by_label: bool) -> tuple[Plan, list[dict[Place, Place]]]:
    """Return the first plan with what only others have behind its own tasks, and where each plan's are there.

    Args:
        plans: of runs with different tasks.
        by_label: as in `task_keys`.
    """
    first = plans[0]
    challenges: list[Challenge] = list(first.schedules)
    tasks: list[list[Task]] = [list(challenge.schedule) for challenge in challenges]
    places = task_keys(first, by_label=by_label)
    maps = []
    for plan in plans:
        own = task_keys(plan, by_label=by_label)
        targets: dict[int, int] = {}
        for key, (schedule, task) in own.items():
            if key not in places:
                challenge = plan.schedules[schedule]
                if schedule not in targets:
                    targets[schedule] = _target(challenges, plan, schedule)
                target = targets[schedule]
                if target == len(challenges):
                    challenges.append(challenge)
                    tasks.append([])
                places[key] = target, len(tasks[target])
                tasks[target].append(challenge.schedule[task])
        maps.append({place: places[key] for key, place in own.items()})
    schedules = (
        msgspec.structs.replace(challenge, schedule=tuple(own))
        for challenge, own in zip(challenges, tasks, strict=True)
    )
    return msgspec.structs.replace(first, schedules=tuple(schedules)), maps


def joined_runs(runs: Mapping[str, RunRecord]) -> tuple[Plan, dict[str, dict[Place, Place]]]:
    """Return a plan with the tasks of all runs, and where those of each label's run are in it.

    A plan of ours comes first where there is one: other tools' files know names only.
    """
    ordered = sorted(runs, key=lambda label: runs[label].imported is not None)
    by_label = any(run.imported for run in runs.values())
    plan, maps = joined([runs[label].plan for label in ordered], by_label=by_label)
    return plan, dict(zip(ordered, maps, strict=True))


def _target(challenges: Sequence[Challenge], plan: Plan, schedule: int) -> int:
    """The position of the challenge of that name and number; a new one if there is none."""
    name = plan.schedules[schedule].name
    number = [challenge.name for challenge in plan.schedules[: schedule + 1]].count(name)
    same = [place for place, challenge in enumerate(challenges) if challenge.name == name]
    return same[number - 1] if number <= len(same) else len(challenges)


@dataclass(frozen=True)
class _MovedSamples:
    """Samples with every task at its other place; read anew by every iteration."""

    samples: Iterable[Columns]
    places: Mapping[Place, Place]

    def __iter__(self) -> Iterator[Columns]:
        for chunk in self.samples:
            schedules, tasks = chunk["schedule"].copy(), chunk["task"].copy()
            for (schedule, task), target in self.places.items():
                own = (chunk["schedule"] == schedule) & (chunk["task"] == task)
                schedules[own], tasks[own] = target
            yield {**chunk, "schedule": schedules, "task": tasks}


def moved(forks: Iterable[ForkRecord], places: Mapping[Place, Place]) -> tuple[ForkRecord, ...]:
    """Return forks with the figures of every task at its other place."""
    return tuple(
        msgspec.structs.replace(fork, summaries=_at_places(fork.summaries, places)) for fork in forks
    )


def moved_source(source: ForkSource, places: Mapping[Place, Place]) -> ForkSource:
    """Return the files of a fork with every task at its other place."""
    samples = None if source.samples is None else _MovedSamples(source.samples, places)
    return replace(source, samples=samples, summaries=_at_places(source.summaries, places))


def _at_places(summaries: Iterable[TaskSummary], places: Mapping[Place, Place]) -> tuple[TaskSummary, ...]:
    targets = ((one, places[one.schedule, one.task]) for one in summaries)
    return tuple(
        msgspec.structs.replace(one, schedule=schedule, task=task) for one, (schedule, task) in targets
    )
