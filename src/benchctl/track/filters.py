"""Which tasks of a challenge are left: Rally's filters by name, type and tag."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from benchctl.errors import UsageError
from benchctl.nearest import suggestion
from benchctl.track.model import Challenge, Task
from benchctl.track.operations.search import Operation
from benchctl.track.rules import check_challenge
from benchctl.track.template.document import Document

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
    challenges: Sequence[Challenge],
    operations: Mapping[str, Operation],
    *,
    include: Iterable[TaskFilter] = (),
    exclude: Iterable[TaskFilter] = (),
) -> tuple[Challenge, ...]:
    """Challenges with some of their tasks.

    Args:
        challenges: as loaded, at least one.
        operations: the track's.
        include: keep only what one of these matches; nothing given keeps all.
        exclude: take away what one of these matches.

    Raises:
        UsageError: a filter matches no task of any challenge, a challenge is left without tasks, or with one
            that has no end any more.
    """
    include, exclude = tuple(include), tuple(exclude)
    if not include and not exclude:
        return tuple(challenges)
    known = [{**operations, **challenge.operations} for challenge in challenges]
    subjects = [
        (task, own[task.operation])
        for challenge, own in zip(challenges, known, strict=True)
        for task in challenge.schedule
    ]
    for one in (*include, *exclude):
        if not any(one.matches(*subject) for subject in subjects):
            raise _matches_nothing(one, challenges, subjects)
    return tuple(
        _filtered(challenge, own, include, exclude) for challenge, own in zip(challenges, known, strict=True)
    )


def _filtered(
    challenge: Challenge,
    operations: Mapping[str, Operation],
    include: tuple[TaskFilter, ...],
    exclude: tuple[TaskFilter, ...],
) -> Challenge:
    kept = tuple(
        task
        for task in challenge.schedule
        if (not include or any(one.matches(task, operations[task.operation]) for one in include))
        and not any(one.matches(task, operations[task.operation]) for one in exclude)
    )
    if not kept:
        raise UsageError(f"the filters leave no task of challenge '{challenge.name}'")
    left = msgspec.structs.replace(challenge, schedule=kept)
    # A task may have had its end from one beside it that is gone now.
    check_challenge(left, operations, Document(f"challenge {challenge.name}, filtered"))
    return left


def _labels(task: Task, operation: Operation) -> dict[Subject, frozenset[str]]:
    """All that filters can look at."""
    own = (operation.tags,) if isinstance(operation.tags, str) else operation.tags
    return {
        "name": frozenset({task.label}),
        "type": frozenset({operation.type_name}),
        "tag": frozenset({*task.tags, *own}),
    }


def _matches_nothing(
    one: TaskFilter, challenges: Sequence[Challenge], subjects: Iterable[tuple[Task, Operation]]
) -> UsageError:
    known = {label for subject in subjects for label in _labels(*subject)[one.subject]}
    names = " or ".join(f"'{challenge.name}'" for challenge in challenges)
    prefix = "" if one.subject == "name" else f"{one.subject}:"
    return UsageError(
        f"no task of challenge {names} matches the filter '{one}'",
        hint=suggestion(one.value, sorted(known), before=prefix),
    )
