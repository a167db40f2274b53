"""Tasks that a node had run before a task, which are part of what is measured."""

from collections.abc import Iterable, Sequence

from benchctl.results.plan import Place, Plan
from benchctl.stats.metrics import task_at

FRESH = "on a fresh node"
_MOST_NAMES = 4


def places_by_history(plan: Plan, places: Iterable[Place]) -> list[dict[str, Place]]:
    """Return the places of every operation that runs after different tasks, by what ran before them.

    Only places that offer the same load with nothing beside them are put together; the one after fewest
    tasks comes first. Of places after the same tasks, only the first is there.
    """
    groups: dict[object, list[Place]] = {}
    for place in places:
        task = task_at(plan, place)
        # In random order, what ran before differs from block to block.
        if task.group is None and not task.swept and plan.schedules[place[0]].order == "written":
            groups.setdefault((task.operation, task.clients, task.rate_per_s), []).append(place)
    return [histories for group in groups.values() if len(histories := _by_history(plan, group)) > 1]


def _by_history(plan: Plan, places: Iterable[Place]) -> dict[str, Place]:
    first: dict[tuple[str, ...], Place] = {}
    for place in sorted(places, key=lambda place: (len(ran_before(plan, place)), place)):
        first.setdefault(ran_before(plan, place), place)
    texts = [describe_before(before) for before in first]
    # What is counted, and not named, may differ.
    numbers = [texts[:number].count(text) for number, text in enumerate(texts, 1)]
    return {
        f"{text} ({number})" if number > 1 else text: place
        for text, number, place in zip(texts, numbers, first.values(), strict=True)
    }


def ran_before(plan: Plan, place: Place) -> tuple[str, ...]:
    """Names of the tasks that the node had run before a place; what runs beside it is not before it."""
    schedule, task = place
    history = plan.history(schedule)
    if history == "polluted":
        return (history,)
    before = [task.label for challenge in plan.warmup_challenges for task in challenge.schedule]
    if plan.restart == "task" or history == "fresh":
        return tuple(before)
    if plan.restart == "never":
        before += [task.label for challenge in plan.schedules[:schedule] for task in challenge.schedule]
    steps = plan.schedules[schedule].steps
    own = next(step for step in steps if task in step)
    earlier = [number for step in steps[: steps.index(own)] for number in step]
    return tuple(before + [plan.schedules[schedule].schedule[number].label for number in earlier])


def before_text(plan: Plan, place: Place) -> str:
    """Return what ran before a place, for readers; in random order, it differs from block to block."""
    alone = plan.restart == "task" or plan.history(place[0]) in {"fresh", "polluted"}
    mixed = plan.schedules[place[0]].order != "written" or task_at(plan, place).swept
    if not alone and (mixed or (plan.restart == "never" and plan.swept is not None)):
        return "in random order"
    return describe_before(ran_before(plan, place))


def describe_before(after: Sequence[str]) -> str:
    """Return what ran before, for readers: repetitions are counted, and of many only some are named."""
    if not after:
        return FRESH
    counts = {name: after.count(name) for name in after}
    words = [name if count == 1 else f"{name} x {count}" for name, count in counts.items()]
    listed = (
        words
        if len(words) <= _MOST_NAMES
        else [*words[: _MOST_NAMES - 1], f"{len(words) - _MOST_NAMES + 1} others"]
    )
    return "after " + ", ".join(listed)
