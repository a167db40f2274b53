"""Tasks of several runs: which are the same, and the places of all of them in one plan."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

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


@dataclass(frozen=True)
class JoinedRuns:
    """Runs laid side by side: a plan with the tasks of all, and their forks and files as those of one run."""

    plan: Plan  # paired where all are
    places: Mapping[str, Mapping[Place, Place]]  # run -> where each of its tasks is in that plan
    # Run -> the number of its block 0: another for each where a side has several, so that blocks differ.
    first_blocks: Mapping[str, int]

    @classmethod
    def of(cls, sides: Iterable[Sequence[RunRecord]]) -> "JoinedRuns":
        """Join the runs of sides, of which several may have the same.

        A plan of ours comes first where there is one: other tools' files know names only.
        """
        sides = list(sides)
        by_id = {run.id: run for runs in sides for run in runs}
        ordered = sorted(by_id.values(), key=lambda run: run.imported is not None)
        plan, places = joined([run.plan for run in ordered], by_label=any(run.imported for run in ordered))
        plan = msgspec.structs.replace(plan, paired=all(run.plan.paired for run in ordered))
        pooled = any(len(runs) > 1 for runs in sides)
        lengths = [
            1 + max((fork.block for fork in run.forks), default=0) if pooled else 0 for run in by_id.values()
        ]
        firsts = dict(zip(by_id, accumulate(lengths, initial=0), strict=False))
        return cls(plan, dict(zip((run.id for run in ordered), places, strict=True)), firsts)

    def moved(self, run: RunRecord, forks: Iterable[ForkRecord]) -> tuple[ForkRecord, ...]:
        """Return forks with every task at its place; of several runs, with the run as their index build.

        That is what a run is one draw of, beside host and day. A file of another tool is a run of its own.
        """
        first = self.first_blocks[run.id]
        number = list(self.first_blocks).index(run.id)
        several = len(self.first_blocks) > 1
        races = run.imported is not None and run.imported.tool != "jmh"
        return tuple(
            msgspec.structs.replace(
                fork,
                summaries=_at_places(fork.summaries, self.places[run.id]),
                block=first + fork.block,
                index_build=(first + fork.block if races else number) if several else fork.index_build,
            )
            for fork in forks
        )

    def moved_source(self, run: RunRecord, source: ForkSource) -> ForkSource:
        """Return the files of a fork with every task at its place."""
        places = self.places[run.id]
        samples = None if source.samples is None else _MovedSamples(source.samples, places)
        return replace(
            source,
            samples=samples,
            summaries=_at_places(source.summaries, places),
            block=self.first_blocks[run.id] + source.block,
        )


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


def _at_places(summaries: Iterable[TaskSummary], places: Mapping[Place, Place]) -> tuple[TaskSummary, ...]:
    targets = ((summary, places[summary.schedule, summary.task]) for summary in summaries)
    return tuple(
        msgspec.structs.replace(one, schedule=schedule, task=task) for one, (schedule, task) in targets
    )
