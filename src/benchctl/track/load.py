"""Track and challenge files into typed models; every error names the file and the place in it."""

import difflib
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from benchctl.errors import UsageError
from benchctl.track.catalogue import AnyOperation
from benchctl.track.library import find_challenge, find_track
from benchctl.track.model import Challenge, IndexBody, Task, Track
from benchctl.track.operation import MOST_WAIT_S, Operation
from benchctl.track.schedule import read_challenge, read_operation, refused
from benchctl.track.template import Renderer

T = TypeVar("T")

# Parameters that every challenge understands even where its file is no template: they set the tasks' key of
# the same name.
TASK_PARAMETERS = ("iterations", "warmup_iterations", "target_throughput", "clients")


# A client is a thread and a connection.
MOST_CLIENTS = 4096
MOST_REQUESTS = 10**12
# One a nanosecond, the grain of all clocks here.
MOST_PER_S = 10**9


class _IndexEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    body: str


class _TrackFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    operations: tuple[dict[str, Any], ...]
    indices: tuple[_IndexEntry, ...]
    version: int = 2
    description: str = ""


def load_track(name: str, params: Mapping[str, Any]) -> tuple[Track, set[str]]:
    """Load a track by shipped name or path.

    Args:
        name: a shipped track's name, or the path of a folder or file.
        params: template parameters.

    Returns:
        The track, and the names of the parameters that its files used.

    Raises:
        UsageError: something is missing or wrong; the message names file and JSON path.
    """
    path = find_track(name)
    renderer = Renderer(path.parent, params)
    text = renderer.render(path)
    parsed = _decode(text, _TrackFile, path)
    if len(parsed.indices) != 1:
        raise UsageError(f"{path}: exactly one index is needed at $.indices, found {len(parsed.indices)}")
    index = parsed.indices[0]
    body_path = path.parent / index.body
    if not body_path.resolve().is_relative_to(path.parent.resolve()):
        raise UsageError(f"{path}: $.indices[0].body: '{index.body}' lies outside the track")
    body_text = renderer.render(body_path)
    body = _decode(body_text, IndexBody, body_path)
    operations = _by_name(
        (
            read_operation(raw, str(path), f"$.operations[{place}]")
            for place, raw in enumerate(parsed.operations)
        ),
        path,
    )
    # Over the meaning, not the files: white space and comments make no difference to what is measured.
    digest = hashlib.sha256(
        msgspec.json.encode((index.name, body, sorted(operations.items())), order="sorted")
    )
    return Track(path.parent.name, index.name, body, operations, digest.hexdigest()), renderer.used


def _by_name(operations: Iterable[AnyOperation], path: Path) -> dict[str, AnyOperation]:
    found: dict[str, AnyOperation] = {}
    for operation in operations:
        if operation.name in found:
            raise UsageError(f"{path}: two operations are called '{operation.name}'")
        found[operation.name] = operation
    return found


def load_challenge(name: str, track: Track, params: Mapping[str, Any]) -> tuple[Challenge, set[str]]:
    """Load a challenge by shipped name or path, set its parameters and check it against the track.

    A parameter called like a key of TASK_PARAMETERS sets that key of every task, unless the file uses a
    template variable of that name itself.

    Returns:
        The challenge, and the names of the parameters that it used.

    Raises:
        UsageError: something is missing or wrong; the message names file and JSON path.
    """
    path = find_challenge(name)
    renderer = Renderer(path.parent, params)
    challenge = read_challenge(_decode(renderer.render(path), dict[str, Any], path), track, str(path))
    overrides = {
        key: value for key, value in params.items() if key in TASK_PARAMETERS and key not in renderer.used
    }
    known = track.operations | challenge.operations
    tasks = tuple(
        _override(task, _fitting(overrides, task, known[task.operation]), path, place)
        for place, task in enumerate(challenge.schedule)
    )
    challenge = msgspec.structs.replace(challenge, schedule=tasks)
    _check(challenge, known, path)
    used = renderer.used | {key for key in params if key in TASK_PARAMETERS}
    return challenge, used


def _fitting(overrides: Mapping[str, Any], task: Task, operation: Operation) -> Mapping[str, Any]:
    """Those of the parameters that mean something for a task.

    Nobody who asks for 300 iterations wants 300 force-merges, or a corpus cut to 300 bodies.
    """
    if not operation.reported:
        return {}
    if operation.shares_work and task.iterations is None:
        return {name: value for name, value in overrides.items() if "iterations" not in name}
    return overrides


def _override(task: Task, overrides: Mapping[str, Any], path: Path, place: int) -> Task:
    """The task with these keys replaced; 0 as a rate takes the rate away."""
    if not overrides:
        return task
    fields = {field.name: field for field in msgspec.structs.fields(Task)}
    converted: dict[str, Any] = {}
    for key, value in overrides.items():
        try:
            converted[key] = msgspec.convert(value, fields[key].type)
        except msgspec.ValidationError as err:
            raise UsageError(f"{path}: parameter {key} of task {place}: {err}") from err
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


def reject_unused(params: Mapping[str, Any], used: set[str]) -> None:
    """A parameter that nothing uses is a typing mistake, and the run would not be what was asked for.

    Raises:
        UsageError: names the parameter and the nearest one that would be used.
    """
    for name in params:
        if name not in used:
            near = difflib.get_close_matches(name, [*used, *TASK_PARAMETERS], n=1)
            guess = f"did you mean '{near[0]}'? " if near else ""
            raise UsageError(
                f"--param {name}: no challenge or track uses it",
                hint=f"{guess}every challenge understands {', '.join(TASK_PARAMETERS)}",
            )


def _check(challenge: Challenge, operations: Mapping[str, Operation], path: Path) -> None:
    if not challenge.schedule:
        raise UsageError(f"{path}: $.schedule is empty")
    for element, places in enumerate(challenge.steps):
        for inner, task in enumerate(challenge.schedule[place] for place in places):
            where = f"$.schedule[{element}]" + (f".parallel.tasks[{inner}]" if task.group is not None else "")
            problem = _task_problem(task, ends=operations[task.operation].ends) or _rate_problem(task)
            if problem:
                raise UsageError(f"{path}: {where}: {problem}")


def _rate_problem(task: Task) -> str:
    """A rate at which no clock could tell requests apart, or nobody would wait for the second one."""
    least = 1 / MOST_WAIT_S
    if task.rate_per_s is None or least <= task.rate_per_s <= MOST_PER_S:
        return ""
    return f"the target is {task.rate_per_s:g} requests a second: not from {least:g} to {MOST_PER_S:,}"


def _task_problem(task: Task, *, ends: bool) -> str:
    """What is wrong with a task, in Rally's rules; empty when nothing is.

    Args:
        task: the task.
        ends: whether its operation ends by itself, without iterations or a time period.
    """
    counts = (task.iterations, task.warmup_iterations)
    periods = (task.time_period, task.warmup_time_period)
    throttled = task.target_throughput is not None or task.target_interval is not None
    rules = (
        (not 1 <= task.clients <= MOST_CLIENTS, f"clients must be at least 1, at most {MOST_CLIENTS:,}"),
        (task.iterations is not None and task.iterations < 1, "iterations must be at least 1"),
        (any((count or 0) > MOST_REQUESTS for count in counts), f"more than {MOST_REQUESTS:,} iterations"),
        (task.warmup_iterations is not None and task.warmup_iterations < 0, "warmup-iterations is negative"),
        (task.time_period is not None and task.time_period <= 0, "time-period must be above 0"),
        (
            task.warmup_time_period is not None and task.warmup_time_period < 0,
            "warmup-time-period is negative",
        ),
        (
            task.warmup_time_period is not None and task.time_period is None and not ends,
            "a warmup-time-period needs a time-period",
        ),
        (any((period or 0) > MOST_WAIT_S for period in periods), f"more than {MOST_WAIT_S:,} seconds"),
        (
            any(count is not None for count in counts) and any(period is not None for period in periods),
            "iterations and time periods do not mix",
        ),
        (
            task.target_throughput is not None and task.target_interval is not None,
            "target-throughput and target-interval say the same thing: give one",
        ),
        (
            task.target_throughput is not None and task.target_throughput <= 0,
            "target-throughput must be above 0",
        ),
        (task.target_interval is not None and task.target_interval <= 0, "target-interval must be above 0"),
        (
            task.schedule == "poisson" and not throttled,
            "a poisson schedule needs target-throughput or target-interval",
        ),
        (
            task.schedule == "unthrottled" and throttled,
            "an unthrottled schedule has no target-throughput and no target-interval",
        ),
        (
            (task.ramp_up_time_period or 0) < 0,
            "ramp-up-time-period is negative",
        ),
        (
            (task.ramp_up_time_period or 0) > (task.warmup_time_period or 0),
            "a ramp-up-time-period needs a warmup-time-period that is at least as long",
        ),
    )
    return next((text for broken, text in rules if broken), "")


def _decode(text: str, kind: type[T], path: Path) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as err:
        raise refused(err, str(path), "$") from err
    except msgspec.DecodeError as err:
        raise UsageError(f"{path} is not JSON once its template is rendered: {err}") from err
