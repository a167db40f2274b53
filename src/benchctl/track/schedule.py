"""A challenge as it stands in a file, with parallel elements and inline operations, into typed tasks."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

import msgspec

from benchctl.errors import UsageError
from benchctl.nearest import guess, nearest
from benchctl.track.model import Challenge, ErrorLevel, ScheduleName, Task, TrackOperation
from benchctl.track.operations.catalogue import OPERATION_TYPES
from benchctl.track.operations.reading import read_operation
from benchctl.track.operations.search import Bulk
from benchctl.track.plugin import Plugin, PluginOperation
from benchctl.track.template.document import (
    LIKE,
    Document,
    convert,
    encoded_names,
    fitting_key,
    know,
)

_TARGET = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?:(?P<unit>[a-z]+)/s)?")
_INTERVAL = re.compile(r"(?P<number>\d{1,15}(?:\.\d+)?)\s*(?P<unit>ms|s|m|h)", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
# What one request of any type is; `docs` is more than one only in a bulk request.
_REQUEST_UNITS = frozenset({"ops", "requests", "queries", "searches", "pages"})
_ANY = "any"
_SCHEDULES = get_args(ScheduleName)


class _TaskEntry(msgspec.Struct, frozen=True, rename="kebab"):
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
    schedule: ScheduleName | None = None
    ramp_up_time_period: float | None = None
    ignore_response_error_level: ErrorLevel | None = None
    tags: tuple[str, ...] | str | None = None
    meta: dict[str, Any] | None = None


class _Parallel(msgspec.Struct, frozen=True, rename="kebab"):
    """Tasks that run at the same time; what stands here holds for those that do not say otherwise."""

    tasks: tuple[dict[str, Any], ...]
    clients: int | None = None
    warmup_iterations: int | None = None
    iterations: int | None = None
    warmup_time_period: float | None = None
    time_period: float | None = None
    ramp_up_time_period: float | None = None
    completed_by: str | None = None


_INHERITED = (
    "warmup_iterations",
    "iterations",
    "warmup_time_period",
    "time_period",
    "ramp_up_time_period",
)


class _ChallengeEntry(msgspec.Struct, frozen=True, rename="kebab"):
    name: str
    schedule: tuple[dict[str, Any], ...]
    default: bool | None = None
    description: str | None = None
    cluster_settings: dict[str, Any] | None = None
    user_info: str | None = None
    meta: dict[str, Any] | None = None
    parameters: dict[str, Any] | None = None


_TASK_KEYS = encoded_names(_TaskEntry)
know([*_TASK_KEYS, *encoded_names(_Parallel), *encoded_names(_ChallengeEntry)])
# OpenSearch Benchmark's: it is noted, since the clients of a task here all go on to its end.
know(["ramp-down-time-period"])


@dataclass(frozen=True)
class Context:
    """What a challenge is read against.

    Attributes:
        document: that it stands in.
        track: name of the track, for messages.
        operations: the track's, by name.
        plugin: the Python plug-in beside the track.
        unusable: what is wrong with operations, which only matters to those who name them.
    """

    document: Document
    track: str
    operations: Mapping[str, TrackOperation]
    plugin: Plugin | None = None
    unusable: Mapping[str, UsageError] = field(default_factory=dict)


@dataclass(frozen=True)
class _Entry:
    """A task's object in the file, and where it stands."""

    raw: dict[str, Any]
    where: str
    group: int | None = None
    lanes: int | None = None
    completes: bool = False


def read_challenge(raw: Any, context: Context, where: str = "$") -> Challenge:  # noqa: ANN401 - JSON of any shape
    """Read a challenge.

    Args:
        raw: the decoded JSON.
        context: the document that it stands in, and the operations that its tasks name.
        where: JSON path of the challenge.

    Raises:
        UsageError: something is wrong in it; the message names file and JSON path.
    """
    entry = convert(raw, _ChallengeEntry, context.document, where)
    reader = _Reader(context)
    tasks = tuple(
        reader.task(found) for found in _entries(entry.schedule, context.document, f"{where}.schedule")
    )
    return Challenge(
        name=entry.name,
        schedule=tasks,
        default=entry.default or False,
        description=entry.description or "",
        operations=reader.operations,
        cluster_settings=entry.cluster_settings or {},
        user_info=entry.user_info or "",
        meta=entry.meta or {},
        parameters=entry.parameters or {},
    )


def _entries(schedule: tuple[dict[str, Any], ...], document: Document, where: str) -> Iterator[_Entry]:
    """The tasks in order, those of parallel elements with what they inherit."""
    for place, element in enumerate(schedule):
        here = f"{where}[{place}]"
        if "parallel" in element:
            for key in element.keys() - {"parallel"}:
                if not document.lenient:
                    raise document.refuse(here, f"'{key}' cannot stand beside 'parallel'", key=key)
                fitting_key(key, ["parallel"], document, here)
            yield from _parallel(element["parallel"], f"{here}.parallel", place, document)
        elif isinstance(element.get("clients_list"), list):
            yield from _client_counts(element, here)
        else:
            yield _Entry(element, here)


def _client_counts(element: dict[str, Any], where: str) -> Iterator[_Entry]:
    """OpenSearch Benchmark's way to say that a task is to run with several numbers of clients in turn."""
    plain = {key: value for key, value in element.items() if key != "clients_list"}
    label = next(iter(_names(element)), "task")
    for clients in element["clients_list"]:
        yield _Entry({**plain, "clients": clients, "name": f"{label}_{clients}_clients"}, where)


def _parallel(raw: Any, where: str, group: int, document: Document) -> Iterator[_Entry]:  # noqa: ANN401 - any JSON
    element = convert(raw, _Parallel, document, where)
    if not element.tasks:
        raise document.refuse(f"{where}.tasks", "is empty")
    if element.clients is not None and element.clients < 1:
        raise document.refuse(f"{where}.clients", "must be at least 1")
    inherited = {
        name.replace("_", "-"): value for name in _INHERITED if (value := getattr(element, name)) is not None
    }
    completing = 0
    for place, task in enumerate(element.tasks):
        here = f"{where}.tasks[{place}]"
        if "parallel" in task:
            raise document.refuse(here, "parallel elements cannot be nested")
        completes = element.completed_by == _ANY or element.completed_by in _names(task)
        completing += completes
        yield _Entry({**inherited, **task}, here, group, element.clients, completes)
    if element.completed_by is not None and not completing:
        names = [name for task in element.tasks for name in _names(task)[:1]]
        raise document.refuse(
            f"{where}.completed-by",
            f"no task of it is called '{element.completed_by}'",
            hint=f"its tasks: {', '.join(names)}; or 'any'",
        )


def _names(task: Mapping[str, Any]) -> list[str]:
    """What a task may be called: its own name, else its operation's."""
    operation = task.get("operation")
    if isinstance(operation, dict):
        operation = operation.get("name", operation.get("operation-type"))
    return [str(name) for name in (task.get("name") or operation,) if name]


class _Reader:
    """Reads the tasks of one challenge, and collects the operations that they define in place."""

    def __init__(self, context: Context) -> None:
        self.operations: dict[str, TrackOperation] = {}
        self._copies: dict[str, int] = {}
        self._context = context
        self._document = context.document

    def task(self, found: _Entry) -> Task:
        """One task."""
        raw, scheduler, params = self._without_scheduler(found.raw)
        if self._context.plugin is not None:
            raw = self._without_others(raw, found.where)
        entry = self._of_one_kind(convert(raw, _TaskEntry, self._document, found.where), found)
        operation, called = self._operation(entry.operation, f"{found.where}.operation")
        target, per_request = self._target(entry.target_throughput, operation, found.where)
        return Task(
            operation=operation.name,
            name=entry.name or called,
            clients=entry.clients,
            warmup_iterations=entry.warmup_iterations,
            iterations=entry.iterations,
            warmup_time_period=entry.warmup_time_period,
            time_period=entry.time_period,
            target_throughput=target,
            target_interval=self._interval(entry.target_interval, found.where),
            schedule=entry.schedule or "deterministic",
            ramp_up_time_period=entry.ramp_up_time_period,
            ignore_response_error_level=entry.ignore_response_error_level,
            per_request=per_request,
            group=found.group,
            lanes=found.lanes,
            completes=found.completes,
            tags=(entry.tags,) if isinstance(entry.tags, str) else entry.tags or (),
            meta=entry.meta or {},
            scheduler=scheduler,
            scheduler_params=params,
        )

    def _of_one_kind(self, entry: _TaskEntry, found: _Entry) -> _TaskEntry:
        """A task that has both iterations and a time period: as in Rally, the time period counts.

        Within a parallel element, one of them is often the element's, and meant for the other tasks.
        """
        counts = (entry.iterations, entry.warmup_iterations)
        periods = (entry.time_period, entry.warmup_time_period)
        # A warm-up of the other kind than what is measured is refused by Rally, too.
        crossed = None not in (counts[0], periods[1]) or None not in (periods[0], counts[1])
        both = counts != (None, None) and periods != (None, None)
        if not self._document.lenient or not both or (crossed and found.group is None):
            return entry
        if entry.time_period is None:
            self._document.note(found.where, "has iterations and a warm-up in seconds: the iterations count")
            return msgspec.structs.replace(entry, warmup_time_period=None, ramp_up_time_period=None)
        self._document.note(found.where, "has iterations and a time period: the time period counts")
        return msgspec.structs.replace(entry, warmup_iterations=None, iterations=None)

    def _without_scheduler(self, raw: dict[str, Any]) -> tuple[dict[str, Any], str | None, dict[str, Any]]:
        """A task's object without a plug-in's scheduler, its name, and what the task says to it."""
        schedule = raw.get("schedule")
        if not self._document.lenient or not isinstance(schedule, str) or schedule in _SCHEDULES:
            return raw, None, {}
        plain = {key: value for key, value in raw.items() if key in _TASK_KEYS and key != "schedule"}
        return plain, schedule, {key: value for key, value in raw.items() if key not in _TASK_KEYS}

    def _without_others(self, raw: dict[str, Any], where: str) -> dict[str, Any]:
        """A task's object without keys of which only a plug-in's authors know what they mean."""
        for key in raw:
            if key not in _TASK_KEYS:
                fitting_key(key, _TASK_KEYS, self._document, where, others=True)
        return {key: value for key, value in raw.items() if key in _TASK_KEYS}

    def _operation(self, named: str | dict[str, Any], where: str) -> tuple[TrackOperation, str]:
        """The operation that a task means: one of the track's, one defined in place, or a bare type.

        Returns:
            The operation, and what the track calls it where that is another name.
        """
        context = self._context
        if isinstance(named, str) and named in context.operations:
            return context.operations[named], ""
        if isinstance(named, str) and named in self.operations:
            return self.operations[named], ""
        if isinstance(named, str) and named in context.unusable:
            raise context.unusable[named]
        if isinstance(named, str):
            if named not in OPERATION_TYPES and not self._may_be_custom(named):
                raise self._unknown_operation(named, where)
            named = {"operation-type": named}
        operation = read_operation(named, self._document, where, plugin=context.plugin)
        known = self.operations.get(operation.name, context.operations.get(operation.name))
        called = ""
        if known is not None and known != operation:
            called = operation.name
            operation = self._renamed(operation, where)
        self.operations[operation.name] = operation
        return operation, called

    def _renamed(self, operation: TrackOperation, where: str) -> TrackOperation:
        """Another operation of a name that is taken: tracks do that, and tables need not know."""
        if not self._document.lenient:
            raise self._document.refuse(
                where, f"another operation is called '{operation.name}'", hint="give it a name of its own"
            )
        number = self._copies.get(operation.name, 1) + 1
        while any(
            f"{operation.name} ({number})" in some for some in (self.operations, self._context.operations)
        ):
            number += 1
        self._copies[operation.name] = number
        return msgspec.structs.replace(operation, name=f"{operation.name} ({number})")

    def _may_be_custom(self, name: str) -> bool:
        """Whether a bare name is a type that a plug-in would have to bring, as in Rally, and no slip."""
        if not self._document.lenient:
            return False
        plugin, known = self._context.plugin, (*self._context.operations, *OPERATION_TYPES)
        return (plugin is not None and plugin.mentions(name)) or nearest(name, known, alike=LIKE) is None

    def _unknown_operation(self, name: str, where: str) -> UsageError:
        operations = self._context.operations
        known = sorted(operations) or sorted(OPERATION_TYPES)
        return self._document.refuse(
            where,
            f"track '{self._context.track}' has no operation '{name}'",
            hint=guess(name, [*operations, *OPERATION_TYPES]) or f"known: {', '.join(known)}",
        )

    def _target(
        self, value: float | str | None, operation: TrackOperation, where: str
    ) -> tuple[float | None, float]:
        """A target in its unit, and how many of the unit are in one request."""
        if not value and self._document.lenient:
            return None, 1.0  # Rally takes 0 and an empty text for no target
        if value is None or not isinstance(value, str):
            return value, 1.0
        where = f"{where}.target-throughput"
        match = _TARGET.fullmatch(value.strip())
        if match is None:
            raise self._document.refuse(
                where,
                f"cannot read '{value}'",
                hint="write a number of requests a second, or one with a unit such as '5000 docs/s'",
            )
        unit = match["unit"] or "ops"
        if unit == "docs" and isinstance(operation, Bulk | PluginOperation):
            return float(match["number"]), _documents(operation)
        if unit not in _REQUEST_UNITS and not isinstance(operation, PluginOperation):
            raise self._document.refuse(
                where,
                f"'{unit}/s' is no unit of a {operation.type_name} operation",
                hint="bulk operations count docs/s or ops/s, all others ops/s",
            )
        return float(match["number"]), 1.0

    def _interval(self, value: float | str | None, where: str) -> float | None:
        """An interval in seconds, from a number of them or a text with a unit."""
        if not value and self._document.lenient:
            return None
        if not isinstance(value, str):
            return value
        match = _INTERVAL.fullmatch(value.strip())
        if match is None:
            raise self._document.refuse(
                f"{where}.target-interval",
                f"cannot read '{value}'",
                hint="write a number of seconds, or one with a unit such as '250 ms', '5 s' or '1 m'",
            )
        return float(match["number"]) * _SECONDS[match["unit"]]


def _documents(operation: Bulk | PluginOperation) -> float:
    """Documents in one request, as far as the track says."""
    if isinstance(operation, Bulk):
        return float(operation.bulk_size)
    size = operation.params.get("bulk-size")
    return float(size) if isinstance(size, int) and size > 0 else 1.0
