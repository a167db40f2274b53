"""Which client works on which connection, and when a parallel element is complete."""

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

from benchctl.track.model import Task


class Lane(NamedTuple):
    """What one connection is used for.

    Attributes:
        number: which lane, from 0.
        of: how many there are.
        posts: (task of the step, client of the task), one after the other.
    """

    number: int
    of: int
    posts: tuple[tuple[int, int], ...]


class Completion:
    """Counts the clients that are done, and knows when that ends the step.

    Args:
        tasks: of the step.
        finish: called once, when a task that completes the step has ended.
    """

    def __init__(self, tasks: Sequence[Task], finish: Callable[[], None]) -> None:
        self._tasks = tasks
        self._left = [task.clients for task in tasks]
        self._finish = finish
        self._lock = threading.Lock()

    def client_done(self, task: int) -> None:
        """One client of that task has ended."""
        with self._lock:
            self._left[task] -= 1
            ended = self._left[task] == 0
        if ended and self._tasks[task].completes:
            self._finish()

    def unsupported(self, task: int) -> None:
        """The node cannot do that task's operation; its clients end by themselves."""


def lanes_of(tasks: Sequence[Task]) -> tuple[Lane, ...]:
    """Who works where: client after client to lane after lane, and from the first again when all are taken.

    Each client has a lane of its own, unless a parallel element has fewer clients than its tasks together:
    then a lane works for several, one after the other, as in Rally.
    """
    posts = [(place, number) for place, task in enumerate(tasks) for number in range(task.clients)]
    of = min((task.lanes for task in tasks if task.lanes is not None), default=len(posts))
    of = min(of, len(posts))
    return tuple(Lane(number, of, tuple(posts[number::of])) for number in range(of))
