"""The base classes of schedulers, as plug-ins derive theirs from them."""

from abc import ABC, abstractmethod
from typing import Any


class Scheduler(ABC):
    """Spaces the requests of one client, and is told of every one of them."""

    parameter_source: Any = None

    def before_request(self, now: float) -> None:  # noqa: B027 - schedulers need not care
        """A request is about to be sent.

        Args:
            now: seconds of a monotonic clock.
        """

    def after_request(self, *facts: Any) -> None:  # noqa: ANN401, B027 - foreign; schedulers need not care
        """A request has been answered: now, weight, unit, what else is known."""

    @abstractmethod
    def next(self, current: float) -> float:
        """When the next request is due, in seconds from the task's start; 0 for at once.

        Args:
            current: what it said before; 0 at first.
        """
        raise NotImplementedError("abstract method")


class SimpleScheduler(ABC):
    """Spaces requests at a rate."""

    @abstractmethod
    def next(self, current: float) -> float:
        """As of `Scheduler`."""
        raise NotImplementedError("abstract method")


class DeterministicScheduler(SimpleScheduler):
    """Evenly.

    Args:
        task: the task.
        target_throughput: of one client, a second.
    """

    name = "deterministic"

    def __init__(self, task: Any, target_throughput: float) -> None:  # noqa: ANN401 - foreign
        del task
        self.wait_time = 1 / target_throughput

    def next(self, current: float) -> float:
        """One interval later."""
        return current + self.wait_time


class Unthrottled(Scheduler):
    """At once."""

    def next(self, current: float) -> float:
        """Now."""
        del current
        return 0
