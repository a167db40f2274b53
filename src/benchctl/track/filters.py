"""Which tasks of a challenge are left: Rally's filters by name, type and tag."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

import msgspec

from benchctl.errors import UsageError
from benchctl.track.model import Challenge, Task
from benchctl.track.operation import Operation

Subject = Literal["name", "type", "tag"]


class TaskFilter(NamedTuple):
    """One filter.

    Attributes:
        subject: what of a task it looks at.
        value: what that has to be.
    """

    subject: Subject
    value: str

    def __str__(self) -> str:
        return self.value if self.subject == "name" else f"{self.subject}:{self.value}"

    def matches(self, task: Task, operation: Operation) -> bool:
        """Whether it means a task."""
        return self.value in _labels(task, operation)[self.subject]


def parse_filters(text: str) -> tuple[TaskFilter, ...]:
    """Filters with commas in between: a task's name, `type:search`, `tag:setup`.

    Raises:
        UsageError: a filter is neither.
    """
    found = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        subject, colon, value = part.partition(":")
        if not colon:
            found.append(TaskFilter("name", part))
        elif subject in ("type", "tag") and value:
            found.append(TaskFilter("type" if subject == "type" else "tag", value))
        else:
            raise UsageError(f"'{part}' is no filter of tasks", hint="write a name, type:TYPE or tag:TAG")
    return tuple(found)


def filter_tasks(
    challenge: Challenge,
    operations: Mapping[str, Operation],
    *,
    include: Iterable[TaskFilter] = (),
    exclude: Iterable[TaskFilter] = (),
) -> Challenge:
    """A challenge with some of its tasks.

    Args:
        challenge: as loaded.
        operations: the track's and its own.
        include: keep only what one of these matches; nothing given keeps all.
        exclude: take away what one of these matches.

    Raises:
        UsageError: a filter matches no task, or no task is left.
    """
    include, exclude = tuple(include), tuple(exclude)
    for one in (*include, *exclude):
        if not any(one.matches(task, operations[task.operation]) for task in challenge.schedule):
            raise _matches_nothing(one, challenge, operations)
    kept = tuple(
        task
        for task in challenge.schedule
        if (not include or any(one.matches(task, operations[task.operation]) for one in include))
        and not any(one.matches(task, operations[task.operation]) for one in exclude)
    )
    if not kept:
        raise UsageError(f"the filters leave no task of challenge '{challenge.name}'")
    return msgspec.structs.replace(challenge, schedule=kept)


def _labels(task: Task, operation: Operation) -> dict[Subject, frozenset[str]]:
    """All that filters can look at."""
    own = (operation.tags,) if isinstance(operation.tags, str) else operation.tags
    return {
        "name": frozenset({task.label}),
        "type": frozenset({operation.type_name}),
        "tag": frozenset({*task.tags, *own}),
    }


def _matches_nothing(
    one: TaskFilter, challenge: Challenge, operations: Mapping[str, Operation]
) -> UsageError:
    known = {
        label
        for task in challenge.schedule
        for label in _labels(task, operations[task.operation])[one.subject]
    }
    near = difflib.get_close_matches(one.value, sorted(known), n=1)
    prefix = "" if one.subject == "name" else f"{one.subject}:"
    return UsageError(
        f"no task of challenge '{challenge.name}' matches the filter '{one}'",
        hint=f"did you mean '{prefix}{near[0]}'?" if near else f"known: {', '.join(sorted(known)) or 'none'}",
    )
