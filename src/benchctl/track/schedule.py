"""A challenge as it stands in a file, with parallel elements and inline operations, into typed tasks."""

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from benchctl.errors import UsageError
from benchctl.track.catalogue import OPERATION_KEYS, OPERATION_TYPES, AnyOperation, decode_operation
from benchctl.track.model import Challenge, ErrorLevel, ScheduleName, Task, Track
from benchctl.track.operation import Bulk, Varying
from benchctl.track.values import check_values

T = TypeVar("T")

_UNKNOWN_FIELD = re.compile(r"unknown field `(?P<field>[^`]*)`")
_PLACE = re.compile(r" - at `\$(?P<place>[^`]*)`")
_TARGET = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?:(?P<unit>[a-z]+)/s)?")
_INTERVAL = re.compile(r"(?P<number>\d{1,15}(?:\.\d+)?)\s*(?P<unit>ms|s|m|h)", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
# What one request of any type is; `docs` is more than one only in a bulk request.
_REQUEST_UNITS = frozenset({"ops", "requests", "queries", "searches", "pages"})
_ANY = "any"


class _TaskEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A task in a file; what it means stands at `Task`."""

    operation: str | dict[str, Any]
    name: str = ""
    clients: int = 1
    warmup_iterations: int | None = None
    iterations: int | None = None
    warmup_time_period: float | None = None
    time_period: float | None = None
    target_throughput: float | str | None = None
    target_interval: float | str | None = None
    schedule: ScheduleName = "deterministic"
    ramp_up_time_period: float | None = None
    ignore_response_error_level: ErrorLevel | None = None
    tags: tuple[str, ...] | str = ()
    meta: dict[str, Any] = {}


class _Parallel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Tasks that run at the same time; what stands here holds for those that do not say otherwise."""

    tasks: tuple[dict[str, Any], ...]
    clients: int | None = None
    warmup_iterations: int | None = None
    iterations: int | None = None
    warmup_time_period: float | None = None
    time_period: float | None = None
    ramp_up_time_period: float | None = None
    completed_by: str | None = None


class _ChallengeEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    name: str
    schedule: tuple[dict[str, Any], ...]
    default: bool = False
    description: str = ""
    cluster_settings: dict[str, Any] = {}
    user_info: str = ""
    meta: dict[str, Any] = {}


@dataclass(frozen=True)
class _Entry:
    """A task's object in the file, and where it stands."""

    raw: dict[str, Any]
    where: str
    group: int | None = None
    lanes: int | None = None
    completes: bool = False


def read_challenge(raw: Any, track: Track, path: str) -> Challenge:  # noqa: ANN401 - JSON of any shape
    """Read a challenge.

    Args:
        raw: the decoded JSON.
        track: whose operations its tasks name.
        path: of the file, for messages.

    Raises:
        UsageError: something is wrong in it; the message names file and JSON path.
    """
    entry = convert(raw, _ChallengeEntry, path, "$")
    operations: dict[str, AnyOperation] = {}
    tasks = tuple(_task(found, track, operations, path) for found in _entries(entry.schedule, path))
    return Challenge(
        name=entry.name,
        schedule=tasks,
        default=entry.default,
        description=entry.description,
        operations=operations,
        cluster_settings=entry.cluster_settings,
        user_info=entry.user_info,
        meta=entry.meta,
    )


def _entries(schedule: tuple[dict[str, Any], ...], path: str) -> Iterator[_Entry]:
    """The tasks in order, those of parallel elements with what they inherit."""
    for place, element in enumerate(schedule):
        where = f"$.schedule[{place}]"
        if "parallel" not in element:
            yield _Entry(element, where)
            continue
        if len(element) > 1:
            other = next(key for key in element if key != "parallel")
            raise UsageError(f"{path}: {where}: '{other}' cannot stand beside 'parallel'")
        yield from _parallel(element["parallel"], f"{where}.parallel", place, path)


def _parallel(raw: Any, where: str, group: int, path: str) -> Iterator[_Entry]:  # noqa: ANN401 - any JSON
    element = convert(raw, _Parallel, path, where)
    if not element.tasks:
        raise UsageError(f"{path}: {where}.tasks is empty")
    if element.clients is not None and element.clients < 1:
        raise UsageError(f"{path}: {where}.clients must be at least 1")
    inherited = {
        name.replace("_", "-"): value
        for name in (
            "warmup_iterations",
            "iterations",
            "warmup_time_period",
            "time_period",
            "ramp_up_time_period",
        )
        if (value := getattr(element, name)) is not None
    }
    completing = 0
    for place, task in enumerate(element.tasks):
        if "parallel" in task:
            raise UsageError(f"{path}: {where}.tasks[{place}]: parallel elements cannot be nested")
        completes = element.completed_by == _ANY or element.completed_by in _names(task)
        completing += completes
        yield _Entry({**inherited, **task}, f"{where}.tasks[{place}]", group, element.clients, completes)
    if element.completed_by is not None and not completing:
        names = [name for task in element.tasks for name in _names(task)[:1]]
        raise UsageError(
            f"{path}: {where}.completed-by: no task of it is called '{element.completed_by}'",
            hint=f"its tasks: {', '.join(names)}; or 'any'",
        )


def _names(task: Mapping[str, Any]) -> list[str]:
    """What a task may be called: its own name, else its operation's."""
    operation = task.get("operation")
    if isinstance(operation, dict):
        operation = operation.get("name", operation.get("operation-type"))
    return [str(name) for name in (task.get("name") or operation,) if name]


def _task(found: _Entry, track: Track, operations: dict[str, AnyOperation], path: str) -> Task:
    entry = convert(found.raw, _TaskEntry, path, found.where)
    operation = _operation(entry.operation, track, operations, path, f"{found.where}.operation")
    target, per_request = _target(entry.target_throughput, operation, path, found.where)
    return Task(
        operation=operation.name,
        name=entry.name,
        clients=entry.clients,
        warmup_iterations=entry.warmup_iterations,
        iterations=entry.iterations,
        warmup_time_period=entry.warmup_time_period,
        time_period=entry.time_period,
        target_throughput=target,
        target_interval=_interval(entry.target_interval, path, found.where),
        schedule=entry.schedule,
        ramp_up_time_period=entry.ramp_up_time_period,
        ignore_response_error_level=entry.ignore_response_error_level,
        per_request=per_request,
        group=found.group,
        lanes=found.lanes,
        completes=found.completes,
        tags=(entry.tags,) if isinstance(entry.tags, str) else entry.tags,
        meta=entry.meta,
    )


def _operation(
    named: str | dict[str, Any], track: Track, operations: dict[str, AnyOperation], path: str, where: str
) -> AnyOperation:
    """The operation that a task means: one of the track's, one defined in place, or a bare type."""
    if isinstance(named, str) and named in track.operations:
        return track.operations[named]
    if isinstance(named, str) and named in operations:
        return operations[named]
    if isinstance(named, str):
        if named not in OPERATION_TYPES:
            raise _unknown_operation(named, track, path, where)
        named = {"operation-type": named}
    raw = dict(named)
    raw.setdefault("name", raw.get("operation-type", ""))
    operation = read_operation(raw, path, where)
    known = operations.get(operation.name, track.operations.get(operation.name))
    if known is not None and known != operation:
        raise UsageError(
            f"{path}: {where}: another operation is called '{operation.name}'",
            hint="give it a name of its own",
        )
    operations[operation.name] = operation
    return operation


def read_operation(raw: dict[str, Any], path: str, where: str) -> AnyOperation:
    """Read one operation.

    Raises:
        UsageError: its type or a key is unknown, or a value is wrong.
    """
    kind = raw.get("operation-type", "search")
    if not isinstance(kind, str) or kind not in OPERATION_TYPES:
        near = difflib.get_close_matches(str(kind), OPERATION_TYPES, n=1)
        guess = f"did you mean '{near[0]}'? " if near else ""
        raise UsageError(
            f"{path}: {where}.operation-type: benchctl has no operation type '{kind}'",
            hint=f"{guess}known: {', '.join(sorted(OPERATION_TYPES))}",
        )
    try:
        operation = decode_operation(raw)
    except msgspec.ValidationError as err:
        raise refused(err, path, where) from err
    if isinstance(operation, Varying) and (wrong := check_values(operation.values, operation.templates)):
        raise UsageError(f"{path}: {where}: {wrong}")
    return operation


def _unknown_operation(name: str, track: Track, path: str, where: str) -> UsageError:
    near = difflib.get_close_matches(name, [*track.operations, *OPERATION_TYPES], n=1)
    known = near or sorted(track.operations)
    return UsageError(
        f"{path}: {where}: track '{track.name}' has no operation '{name}'",
        hint=f"{'did you mean' if near else 'known:'} {', '.join(known)}{'?' if near else ''}",
    )


def _target(
    value: float | str | None, operation: AnyOperation, path: str, where: str
) -> tuple[float | None, float]:
    """A target in its unit, and how many of the unit are in one request."""
    if value is None or not isinstance(value, str):
        return value, 1.0
    match = _TARGET.fullmatch(value.strip())
    if match is None:
        raise UsageError(
            f"{path}: {where}.target-throughput: cannot read '{value}'",
            hint="write a number of requests a second, or one with a unit such as '5000 docs/s'",
        )
    unit = match["unit"] or "ops"
    if unit == "docs" and isinstance(operation, Bulk):
        return float(match["number"]), float(operation.bulk_size)
    if unit not in _REQUEST_UNITS:
        raise UsageError(
            f"{path}: {where}.target-throughput: '{unit}/s' is no unit of a {operation.type_name} operation",
            hint="bulk operations count docs/s or ops/s, all others ops/s",
        )
    return float(match["number"]), 1.0


def _interval(value: float | str | None, path: str, where: str) -> float | None:
    """An interval in seconds, from a number of them or a text with a unit."""
    if not isinstance(value, str):
        return value
    match = _INTERVAL.fullmatch(value.strip())
    if match is None:
        raise UsageError(
            f"{path}: {where}.target-interval: cannot read '{value}'",
            hint="write a number of seconds, or one with a unit such as '250 ms', '5 s' or '1 m'",
        )
    return float(match["number"]) * _SECONDS[match["unit"]]


def convert(raw: Any, kind: type[T], path: str, where: str) -> T:  # noqa: ANN401 - JSON of any shape
    """JSON into a typed form.

    Raises:
        UsageError: it does not fit; the message names file and JSON path.
    """
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as err:
        raise refused(err, path, where) from err


def refused(err: msgspec.ValidationError, path: str, where: str) -> UsageError:
    """What msgspec found, said with the place in the file."""
    text = str(err)
    place = _PLACE.search(text)
    inner = place["place"] if place else ""
    message = _PLACE.sub("", text)
    return UsageError(f"{path}: {where}{inner}: {message}", hint=_nearest_key(text))


_KNOWN_KEYS = sorted(
    {
        field.encode_name
        for kind in (_TaskEntry, _Parallel, _ChallengeEntry)
        for field in msgspec.structs.fields(kind)
    }
    | set(OPERATION_KEYS)
)


def _nearest_key(message: str) -> str:
    """For an unknown key, the key that was probably meant."""
    match = _UNKNOWN_FIELD.search(message)
    if match is None:
        return ""
    if match["field"] in _KNOWN_KEYS:
        return f"'{match['field']}' is a key of another kind of object"
    near = difflib.get_close_matches(match["field"], _KNOWN_KEYS, n=1)
    return f"did you mean '{near[0]}'?" if near else f"known keys: {', '.join(_KNOWN_KEYS)}"
