"""A challenge back into a file of Rally's JSON, which loads as the same challenge."""

from typing import Any

import msgspec

from benchctl.errors import UsageError
from benchctl.track.model import Challenge, Task
from benchctl.track.plugin import PluginOperation

# Of a task in memory, what a file says in another way, or not at all.
_INNER = ("operation", "group", "lanes", "completes", "per-request", "scheduler", "scheduler-params")


def challenge_text(challenge: Challenge) -> str:
    """The file of a challenge, indented, with a line break at its end.

    Operations that the challenge defines itself stand in the first task that uses them; all others are the
    track's, by name.

    Raises:
        UsageError: it needs a plug-in's operations or schedulers, which only a track's own files can name.
    """
    return msgspec.json.format(msgspec.json.encode(challenge_json(challenge)), indent=2).decode() + "\n"


def challenge_json(challenge: Challenge) -> dict[str, Any]:
    """The same as an object; see `challenge_text`."""
    plain = msgspec.to_builtins(challenge)
    kept = {key: value for key, value in plain.items() if key not in ("operations", "schedule")}
    writer = _Writer(challenge)
    return {**kept, "schedule": [writer.element(places) for places in challenge.steps]}


class _Writer:
    """Writes the tasks of one challenge, and knows which of its operations a file has defined so far."""

    def __init__(self, challenge: Challenge) -> None:
        self._challenge = challenge
        self._undefined = dict(challenge.operations)

    def element(self, places: tuple[int, ...]) -> dict[str, Any]:
        """A task, or a parallel element of several."""
        tasks = [self._challenge.schedule[place] for place in places]
        if tasks[0].group is None:
            return self._task(tasks[0])
        found: dict[str, Any] = {}
        if tasks[0].lanes is not None:
            found["clients"] = tasks[0].lanes
        completing = [task.label for task in tasks if task.completes]
        if completing:
            found["completed-by"] = completing[0] if len(completing) == 1 else "any"
        return {"parallel": {**found, "tasks": [self._task(task) for task in tasks]}}

    def _task(self, task: Task) -> dict[str, Any]:
        if task.scheduler is not None:
            raise self._needs_plugin(f"scheduler '{task.scheduler}'")
        plain = msgspec.to_builtins(task)
        own = {key: value for key, value in plain.items() if key not in _INNER}
        if task.target_throughput is not None and task.per_request != 1:
            own["target-throughput"] = f"{task.target_throughput:.15g} docs/s"
        return {"operation": self._operation(task.operation), **own}

    def _operation(self, name: str) -> Any:  # noqa: ANN401 - a name, or an object of any shape
        operation = self._undefined.pop(name, None)
        if operation is None:
            return name
        if isinstance(operation, PluginOperation):
            raise self._needs_plugin(operation.lacks)
        return msgspec.to_builtins(operation)

    def _needs_plugin(self, what: str) -> UsageError:
        return UsageError(
            f"challenge '{self._challenge.name}' cannot be a file of its own: {what} is the plug-in's",
            hint="a challenge within the track can use it",
        )
