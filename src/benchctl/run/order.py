"""The order of forks in a block, and the node starts of a fork with their steps: random, and reproducible."""

import random

from benchctl.results.plan import (
    Place,
    Plan,
    VariantSpec,
)
from benchctl.track.model import Challenge

Step = tuple[Place, ...]
"""Tasks that run concurrently: one, or those of a parallel element."""


def block_order(plan: Plan, block: int, run: int = 0) -> tuple[VariantSpec, ...]:
    """The order of variants in one block: random, but reproducible; `run` is its number in a study."""
    return tuple(sorted(plan.variants, key=lambda spec: place_in_block(plan.seed, block, run, spec.name)))


def place_in_block(seed: int, block: int, run: int, variant: str) -> float:
    """Return the sort key of a fork in its block, of the run of that number among those of the block."""
    return random.Random(f"{seed}/{block}/{run}/{variant}").random()  # noqa: S311 - reproducible, not secret


def boots(plan: Plan, block: int = 0) -> tuple[tuple[Step, ...], ...]:
    """Group the steps by node start, in order, by the restart policy; `task` restarts per step.

    The points of a sweep come in random order, the same for all variants of a block; so do tasks that only
    differ in their clients, and the steps of a challenge that asks for it.
    """
    dice = random.Random(f"{plan.seed}/{block}/points")  # noqa: S311 - reproducible, not secret
    order = list(range(len(plan.schedules)))
    if plan.swept is not None:
        rounds = list(plan.swept.rounds())
        dice.shuffle(rounds)
        order = [schedule for round_ in rounds for schedule in round_]
    by_schedule = [
        tuple(
            tuple((schedule, task) for task in step)
            for step in _shuffled_steps(plan.schedules[schedule], dice)
        )
        for schedule in order
    ]
    steps = tuple(step for own in by_schedule for step in own)
    if plan.restart == "never":
        return (steps,)
    if plan.restart == "task" or plan.micro is not None:
        return tuple((step,) for step in steps)
    return tuple(by_schedule)


def _shuffled_steps(challenge: Challenge, dice: random.Random) -> list[tuple[int, ...]]:
    """The steps of a challenge, the points of each of its curves in random order among their places."""
    steps = list(challenge.steps)
    if challenge.order == "random":
        dice.shuffle(steps)
        return steps
    tasks = challenge.schedule
    for curve in dict.fromkeys(task.swept for task in tasks if task.swept):
        places = [place for place, step in enumerate(steps) if tasks[step[0]].swept == curve]
        points = [steps[place] for place in places]
        dice.shuffle(points)
        for place, point in zip(places, points, strict=True):
            steps[place] = point
    return steps
