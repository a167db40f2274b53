"""Which task of a plan a name means: `TASK` or `CHALLENGE/TASK`, with numbers where one occurs more often.

Numbers count from 1: `CHALLENGE#2` is the second time that the challenge runs, `TASK#2` the second task of
that label in its challenge.
"""

from collections.abc import Iterator, Sequence

from benchctl.errors import UsageError
from benchctl.nearest import suggestion
from benchctl.results.plan import Place, Plan


def task_named(plan: Plan, name: str) -> Place:
    """Find the one task that a name, `[CHALLENGE[#N]/]TASK[#N]`, means; both parts may hold slashes.

    Raises:
        UsageError: there is none, or there are several.
    """
    parts = name.split("/")
    readings = [("/".join(parts[:cut]), "/".join(parts[cut:])) for cut in range(1, len(parts))]
    found = dict.fromkeys(
        place
        for challenge, task in (("", name), *(one for one in readings if one[0]))
        for place in _fitting(plan, _schedules(plan, challenge), task)
    )
    if not found:
        ways = [way for place in _places(plan) for way in (_label(plan, place), _way(plan, place))]
        raise UsageError(f"there is no task '{name}'", hint=suggestion(name, ways))
    return _only(plan, [*found], name)


def task_of_challenge(plan: Plan, challenge: str, task: str, called: str) -> Place:
    """Find the one task by `CHALLENGE[#N]`, empty for any, and `TASK[#N]`; messages call it `called`.

    Raises:
        UsageError: there is none, or there are several.
    """
    schedules = _schedules(plan, challenge)
    if not schedules:
        names = (one.name for one in plan.schedules)
        raise UsageError(f"'{called}': no challenge '{challenge}'", hint=suggestion(challenge, names))
    found = _fitting(plan, schedules, task)
    if not found:
        labels = (_label(plan, place) for place in _places(plan) if place[0] in schedules)
        raise UsageError(f"'{called}': no task '{task}'", hint=suggestion(task, labels))
    return _only(plan, found, called)


def _only(plan: Plan, found: Sequence[Place], called: str) -> Place:
    if len(found) > 1:
        ways = ", ".join(_way(plan, place) for place in found)
        raise UsageError(f"'{called}' is {len(found)} tasks", hint=f"say which: {ways}")
    return found[0]


def _places(plan: Plan) -> Iterator[Place]:
    for schedule, challenge in enumerate(plan.schedules):
        yield from ((schedule, task) for task in range(len(challenge.schedule)))


def _schedules(plan: Plan, challenge: str) -> list[int]:
    """Positions of the challenges of this name, or all if it is empty."""
    names = [one.name for one in plan.schedules]
    return [place for place in range(len(names)) if not challenge or _means(challenge, names, place)]


def _fitting(plan: Plan, schedules: Sequence[int], task: str) -> list[Place]:
    found = []
    for schedule in schedules:
        labels = [one.label for one in plan.schedules[schedule].schedule]
        found += [(schedule, place) for place in range(len(labels)) if _means(task, labels, place)]
    return found


def _means(text: str, names: Sequence[str], place: int) -> bool:
    """Whether a text is the name at a place, or that with its number; a unique one is number 1."""
    name = names[place]
    # A name may itself end like a number.
    return text == name or (text not in names and text == f"{name}#{names[: place + 1].count(name)}")


def _way(plan: Plan, place: Place) -> str:
    """An unambiguous name of a task."""
    schedule, task = place
    labels = [one.label for one in plan.schedules[schedule].schedule]
    return f"{_numbered([one.name for one in plan.schedules], schedule)}/{_numbered(labels, task)}"


def _numbered(names: Sequence[str], place: int) -> str:
    name = names[place]
    return name if names.count(name) == 1 else f"{name}#{names[: place + 1].count(name)}"


def _label(plan: Plan, place: Place) -> str:
    return plan.schedules[place[0]].schedule[place[1]].label
