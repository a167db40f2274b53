"""Which task of a plan a comparison means: `TASK`, `CHALLENGE/TASK`, or `CHALLENGE#N/TASK`."""

import re

from benchctl.errors import UsageError
from benchctl.nearest import suggestion
from benchctl.results.experiment.model import TaskRef
from benchctl.results.plan import Place, Plan
from benchctl.stats.values import places, task_at

_NUMBERED = re.compile(r"(?P<name>.+)#(?P<number>[1-9][0-9]*)")


def place_of(plan: Plan, reference: TaskRef) -> Place:
    """Find the one task that a reference means.

    Args:
        plan: of its measurement.
        reference: to a task of it.

    Raises:
        UsageError: there is none, or there are several.
    """
    within = _schedules(plan, reference)
    found = [place for place in places(plan) if place[0] in within]
    labels = {place: task_at(plan, place).label for place in found}
    named = [place for place, label in labels.items() if label == reference.task]
    if not named:
        raise UsageError(
            f"'{reference}': no task '{reference.task}'", hint=suggestion(reference.task, labels.values())
        )
    if len(named) > 1:
        ways = ", ".join(f"{_numbered(plan, place[0])}/{reference.task}" for place in named)
        raise UsageError(f"'{reference}' is {len(named)} tasks", hint=f"say which: {ways}")
    return named[0]


def _schedules(plan: Plan, reference: TaskRef) -> list[int]:
    """Positions of the challenges that are meant."""
    names = [challenge.name for challenge in plan.schedules]
    wanted = reference.challenge
    if not wanted:
        return list(range(len(names)))
    found = [place for place, name in enumerate(names) if wanted in (name, _numbered(plan, place))]
    # A first one may be numbered, too, where there is no other.
    numbered = _NUMBERED.fullmatch(wanted)
    if not found and numbered and numbered["number"] == "1":
        found = [place for place, name in enumerate(names) if name == numbered["name"]]
    if not found:
        raise UsageError(f"'{reference}': no challenge '{wanted}'", hint=suggestion(wanted, names))
    return found


def _numbered(plan: Plan, schedule: int) -> str:
    """A challenge's name; of one that runs several times, with its number from 1."""
    names = [challenge.name for challenge in plan.schedules]
    name = names[schedule]
    return name if names.count(name) == 1 else f"{name}#{names[: schedule + 1].count(name)}"
