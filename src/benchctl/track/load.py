"""Tracks and challenges by name or path into typed models, with the parameters of the command line."""

from collections.abc import Mapping
from typing import Any

import msgspec

from benchctl.errors import UsageError
from benchctl.nearest import guess
from benchctl.track.foreign import read_track
from benchctl.track.library import find_challenge, find_track
from benchctl.track.model import Challenge, Task, Track
from benchctl.track.operations.search import Operation
from benchctl.track.rules import MOST_CLIENTS, MOST_PER_S, check_challenge
from benchctl.track.schedule import Context, read_challenge
from benchctl.track.template.document import Document, read_document
from benchctl.track.template.renderer import Renderer

__all__ = [
    "MOST_CLIENTS",
    "MOST_PER_S",
    "TASK_PARAMETERS",
    "load_challenge",
    "load_track",
    "reject_lacking",
    "reject_unused",
]

# Parameters that every challenge understands even where its file is no template: they set the tasks' key of
# the same name.
TASK_PARAMETERS = ("iterations", "warmup_iterations", "target_throughput", "clients")


def load_track(name: str, params: Mapping[str, Any]) -> tuple[Track, set[str]]:
    """Load a track by shipped name or path.

    Args:
        name: a shipped track's name, or the path of a folder or file: a `track.json` of Rally's, or a
            `workload.json` of OpenSearch Benchmark's.
        params: template parameters.

    Returns:
        The track, and the names of all parameters that its files know.

    Raises:
        UsageError: something is missing or wrong; the message names file and JSON path.
    """
    path = find_track(name)
    renderer = Renderer(path.parent, params, lenient=True)
    return read_track(path, renderer), renderer.known


def load_challenge(name: str, track: Track, params: Mapping[str, Any]) -> tuple[Challenge, set[str]]:
    """Load a challenge, set its parameters and check it against the track.

    A parameter called like a key of TASK_PARAMETERS sets that key of every task, unless the file uses a
    template variable of that name itself.

    Args:
        name: of one of the track's own challenges, or of a shipped one, or the path of a file.
        track: whose operations its tasks name.
        params: template parameters.

    Returns:
        The challenge, and the names of the parameters that it knows.

    Raises:
        UsageError: something is missing or wrong; the message names file and JSON path.
    """
    fault = track.fault_of(name)
    if fault is not None:
        raise fault.error
    if name in track.challenges:
        challenge, known, document = track.challenges[name], set(track.known), Document(f"challenge {name}")
    else:
        path = find_challenge(name, also=tuple(track.challenges))
        renderer = Renderer(path.parent, params)
        document, raw = read_document(renderer.render(path))
        unusable = {fault.operation: fault.error for fault in track.faults if fault.operation}
        context = Context(document, track.name, track.operations, unusable=unusable)
        try:
            challenge, known = read_challenge(raw, context), renderer.known
        except RecursionError as err:
            raise UsageError(f"{path}: something in it is nested too deeply") from err
    overrides = {key: value for key, value in params.items() if key in TASK_PARAMETERS and key not in known}
    operations = track.operations | challenge.operations
    tasks = tuple(
        _override(task, _fitting(overrides, task, operations[task.operation]), document, place)
        for place, task in enumerate(challenge.schedule)
    )
    challenge = msgspec.structs.replace(challenge, schedule=tasks)
    check_challenge(challenge, operations, document)
    return challenge, known | {key for key in params if key in TASK_PARAMETERS}


def _fitting(overrides: Mapping[str, Any], task: Task, operation: Operation) -> Mapping[str, Any]:
    """Those of the parameters that mean something for a task.

    Nobody who asks for 300 iterations wants 300 force-merges, or a corpus cut to 300 bodies.
    """
    if not operation.reported:
        return {}
    if operation.shares_work and task.iterations is None:
        return {name: value for name, value in overrides.items() if "iterations" not in name}
    return overrides


def _override(task: Task, overrides: Mapping[str, Any], document: Document, place: int) -> Task:
    """The task with these keys replaced; 0 as a rate takes the rate away."""
    if not overrides:
        return task
    fields = {field.name: field for field in msgspec.structs.fields(Task)}
    converted: dict[str, Any] = {}
    for key, value in overrides.items():
        try:
            converted[key] = msgspec.convert(value, fields[key].type)
        except msgspec.ValidationError as err:
            raise UsageError(f"{document.name}: parameter {key} of task {place}: {err}") from err
    if converted.get("target_throughput") == 0:
        converted["target_throughput"] = None
        if task.schedule == "poisson":
            # Without a rate there are no arrivals to space.
            converted["schedule"] = "deterministic"
    if "target_throughput" in converted:
        converted["target_interval"] = None
    if converted.get("iterations") is not None:
        converted["time_period"] = None
        # Both hold for periods only.
        converted["warmup_time_period"] = None
        converted["ramp_up_time_period"] = None
    return msgspec.structs.replace(task, **converted)


def reject_lacking(track: Track, challenge: Challenge) -> None:
    """A challenge that needs what only the track's plug-in has cannot be run without it.

    Raises:
        UsageError: names all that would be missing.
    """
    lacking = track.lacking(challenge)
    if lacking:
        there = f"in {track.plugin}" if track.plugin else "which is not beside the track"
        raise UsageError(
            f"challenge '{challenge.name}' of track '{track.name}' needs a Python plug-in, {there}: "
            f"{'; '.join(lacking)}"
        )


class UnusedParameter(UsageError):  # noqa: N818 - what is so; whether it is a mistake depends on who gave it
    """Nothing uses a parameter.

    Attributes:
        name: of the parameter.
    """

    def __init__(self, name: str, hint: str) -> None:
        super().__init__(f"--param {name}: no challenge or track uses it", hint=hint)
        self.name = name


def reject_unused(params: Mapping[str, Any], known: set[str]) -> None:
    """A parameter that nothing uses is a typing mistake, and the run would not be what was asked for.

    Args:
        params: as given.
        known: what the files of track and challenges know.

    Raises:
        UnusedParameter: names the parameter and the nearest one that would be used.
    """
    for name in params:
        if name not in known:
            meant = guess(name, [*sorted(known), *TASK_PARAMETERS])
            raise UnusedParameter(
                name, f"{meant} every challenge understands {', '.join(TASK_PARAMETERS)}".lstrip()
            )
