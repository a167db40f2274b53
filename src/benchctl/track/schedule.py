"""Challenges in Rally's JSON, with parallel elements and inline operations: read, checked, written."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Annotated, Any, get_args

import msgspec

from benchctl.errors import Mistakes, UsageError, guess, nearest, suggestion
from benchctl.track.model import MOST_CLIENTS, Challenge, ScheduleName, Task, TrackOperation
from benchctl.track.operations import MOST_WAIT_S, Cannot, Count, Operation, Varying
from benchctl.track.operations.catalogue import (
    BUILT_IN_PARAM_SOURCES,
    MEANINGLESS,
    OPERATION_TYPES,
    PluginOperation,
    as_declared,
    decode_operation,
    operation_keys,
)
from benchctl.track.operations.search import AllTogether, Bulk, BulkVectors
from benchctl.track.template import (
    LIKE,
    Document,
    check_fields,
    convert,
    encoded_names,
    known_keys,
    refused,
)
from benchctl.track.values import check_values

_TYPE = "operation-type"
_SOURCE = "param-source"
# More similar to a built-in type means a typo. Plug-ins have types such as `eql` and `create-pipeline`, which
# are only slightly less similar.
_LIKE = 0.87
# Keys of a plug-in's operation with their usual meaning.
_COMMON = ("name", "include-in-reporting", "meta", "tags")
_TRUNCATED = "bulk-size"  # a number of documents that Rally cuts to a whole one


def read_operation(raw: Any, document: Document, where: str, *, plugin: str | None = None) -> TrackOperation:
    """Parse one operation; the name defaults to the type, and the type to a search.

    In a lenient document, an operation whose type or parameter source is not built in becomes a
    PluginOperation, unless its type looks like a typo and there is no plug-in.

    Args:
        raw: its JSON.
        document: that it is part of.
        where: its JSON path.
        plugin: file of the Python plug-in beside the track.

    Raises:
        UsageError: If its type or a key is unknown, or a value is wrong.
    """
    if not isinstance(raw, Mapping):
        raise document.refuse(where, "an operation is an object")
    kind = raw.get(_TYPE, "search")
    own = isinstance(kind, str) and kind in OPERATION_TYPES
    if document.lenient and isinstance(kind, str):
        sourced = raw.get(_SOURCE) not in (None, kind, *BUILT_IN_PARAM_SOURCES)
        if sourced or (not own and (plugin or nearest(kind, OPERATION_TYPES, alike=_LIKE) is None)):
            return _plugin_operation(raw, kind, document, where)
    if not own:
        raise document.refuse(
            f"{where}.{_TYPE}",
            f"benchctl has no operation type '{kind}'",
            hint=suggestion(str(kind), sorted(OPERATION_TYPES)),
        )
    keys = {"name": kind, **raw}
    size = keys.get(_TRUNCATED)
    if document.lenient and isinstance(size, float) and not size.is_integer():
        document.note(where, f"{_TRUNCATED} is {size:g}: {int(size):,} counts")
        keys[_TRUNCATED] = int(size)
    if document.lenient:
        keys.pop(_SOURCE, None)
    mistakes = Mistakes()
    if not issubclass(OPERATION_TYPES[kind], Cannot):
        with mistakes.part():
            keys = known_keys(keys, operation_keys(kind), document, where)
            _pass_over(keys, document, where)
    try:
        operation = decode_operation(keys)
    except msgspec.ValidationError as err:
        check_fields(as_declared(keys), OPERATION_TYPES[kind], document, where, mistakes)
        mistakes.settle()
        raise refused(err, document, where) from err
    mistakes.settle()
    if isinstance(operation, Varying) and (wrong := check_values(operation.values, operation.templates)):
        raise document.refuse(where, wrong)
    return operation


def _pass_over(raw: Any, document: Document, where: str) -> None:
    """Remark on keys that have no effect, of an operation and of its steps."""
    if isinstance(raw, Mapping):
        for key in sorted(MEANINGLESS & raw.keys()):
            document.pass_over(where, key)
        raw = [raw.get("requests"), raw.get("stream")]
    for step in raw if isinstance(raw, list) else ():
        _pass_over(step, document, where)


def _plugin_operation(raw: Mapping[str, Any], kind: str, document: Document, where: str) -> PluginOperation:
    """An operation whose keys only the plug-in understands."""
    common = {key: raw[key] for key in _COMMON if key in raw}
    plain = {"name": kind, **common, "type": kind, _SOURCE: raw.get(_SOURCE), "params": dict(raw)}
    try:
        return msgspec.convert(plain, PluginOperation)
    except msgspec.ValidationError as err:
        raise refused(err, document, where) from err


_TARGET = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?:(?P<unit>[a-z]+)/s)?")
_NO_RATE = re.compile(r"\s*(none|0*\.?0*)\s*", re.IGNORECASE)  # texts of tracks for an unthrottled task
# Units of which every request is one; a bulk request may be several `docs`.
_REQUEST_UNITS = frozenset({"ops", "requests", "queries"})
_ANY = "any"
_SCHEDULES = get_args(ScheduleName)


# What a file cannot say of a task.
_INTERNAL = {
    "per-request", "group", "lanes", "completes", "mixed", "scheduler", "scheduler-params", "swept",
    "least-time",
}  # fmt: skip
_TASK_KEYS = tuple(name for name in encoded_names(Task) if name not in _INTERNAL)
_CHALLENGE_KEYS = tuple(name for name in encoded_names(Challenge) if name not in ("operations", "remarks"))


# Keys that a parallel element may have for all of its tasks.
_INHERITED = (
    "warmup-iterations", "iterations", "warmup-time-period", "time-period", "ramp-up-time-period",
)  # fmt: skip


class _Parallel(msgspec.Struct, frozen=True, rename="kebab"):
    """Concurrent tasks."""

    tasks: Annotated[tuple[dict[str, Any], ...], msgspec.Meta(min_length=1)]
    clients: Count | None = None
    completed_by: str | None = None
    mix: bool = False


@dataclass(frozen=True)
class Context:
    """The things that a challenge refers to."""

    document: Document
    track: str  # name of the track, for messages
    operations: Mapping[str, TrackOperation]  # the track's, by name
    plugin: str | None = None  # file of the Python plug-in beside the track
    # Errors of operations, which only matter to tasks that refer to them.
    unusable: Mapping[str, UsageError] = field(default_factory=dict)


_Entry = tuple[dict[str, Any], str, dict[str, Any]]
"""A task's object in the file, its JSON path, and what its element gives the task."""


def read_challenge(raw: Any, context: Context, where: str = "$") -> Challenge:
    """Parse a challenge, given its JSON path `where`.

    Raises:
        UsageError: If something is wrong in it, or in its tasks together; messages name file and JSON path.
    """
    document = context.document
    if not isinstance(raw, Mapping):
        raise document.refuse(where, "a challenge is an object")
    mistakes = Mistakes()
    keys = dict(raw)
    with mistakes.part():
        keys = known_keys(raw, _CHALLENGE_KEYS, document, where)
    with mistakes.part():
        own = {key: keys[key] for key in keys if key in _CHALLENGE_KEYS}
        challenge = convert({**own, "schedule": ()}, Challenge, document, where)
    if "schedule" not in keys:
        mistakes.add(document.refuse(where, "'schedule' is missing"))
        mistakes.settle()
    schedule = convert(keys["schedule"], tuple[Any, ...], document, f"{where}.schedule")
    reader = _Reader(context)
    tasks = []
    for entry in _entries(schedule, document, f"{where}.schedule", mistakes):
        with mistakes.part():
            tasks.append(reader.task(*entry))
    mistakes.settle()
    return msgspec.structs.replace(challenge, schedule=_numbered(tasks), operations=reader.operations)


def _numbered(tasks: Sequence[Task]) -> tuple[Task, ...]:
    """Tasks of which each has a name of its own: of two `range`, one is `range#1`, the other `range#2`."""
    taken = Counter(task.label for task in tasks)
    numbers: Counter[str] = Counter()
    numbered = []
    for task in tasks:
        name = task.label
        while name in taken and taken[task.label] > 1:
            numbers[task.label] += 1
            name = f"{task.label}#{numbers[task.label]}"
        numbered.append(task if name == task.label else msgspec.structs.replace(task, name=name))
    return tuple(numbered)


def _entries(
    schedule: tuple[Any, ...], document: Document, where: str, mistakes: Mistakes
) -> Iterator[_Entry]:
    """The tasks in order, but for those of a wrong element; those of parallel ones with what they inherit."""
    for place, element in enumerate(schedule):
        here = f"{where}[{place}]"
        if not isinstance(element, dict):
            mistakes.add(document.refuse(here, "an entry of a schedule is an object"))
        elif "parallel" in element:
            with mistakes.part():
                known_keys(element, ["parallel"], document, here)
            with mistakes.part():
                yield from _parallel(element["parallel"], f"{here}.parallel", place, document, mistakes)
        elif isinstance(element.get("clients_list"), list):
            # OpenSearch Benchmark's way to run a task with several numbers of clients in turn.
            plain = {key: value for key, value in element.items() if key != "clients_list"}
            label = _name(element)
            for clients in element["clients_list"]:
                named = {"clients": clients, "name": f"{label}_{clients}_clients"}
                yield {**plain, **named}, here, {"swept": label}
        else:
            yield element, here, {}


def _parallel(raw: Any, where: str, group: int, document: Document, mistakes: Mistakes) -> Iterator[_Entry]:
    if not isinstance(raw, Mapping):
        raise document.refuse(where, "a parallel element is an object")
    raw = known_keys(raw, (*_INHERITED, *encoded_names(_Parallel)), document, where)
    inherited = {key: raw[key] for key in _INHERITED if key in raw}
    element = convert({key: raw[key] for key in raw if key not in inherited}, _Parallel, document, where)
    if element.mix and element.completed_by is not None:
        raise document.refuse(f"{where}.completed-by", "a mix ends with the last request of its last task")
    shared: dict[str, Any] = {"group": group, "lanes": element.clients}
    if element.mix:
        inherited["clients"] = element.clients or 1
        shared |= {"lanes": inherited["clients"], "mixed": True}
    names = [_name(task) for task in element.tasks]
    if element.completed_by not in (None, _ANY, *names):
        unknown = document.refuse(
            f"{where}.completed-by",
            f"no task of it is called '{element.completed_by}'",
            hint=f"its tasks: {', '.join(names)}; or 'any'",
        )
        mistakes.add(unknown)
    for place, (name, task) in enumerate(zip(names, element.tasks, strict=True)):
        here = f"{where}.tasks[{place}]"
        if "parallel" in task:
            raise document.refuse(here, "parallel elements cannot be nested")
        if element.mix and "clients" in task:
            hint = "give `parallel` the clients"
            raise document.refuse(here, "the tasks of a mix share its clients", hint=hint)
        completes = element.completed_by in (_ANY, name)
        yield {**inherited, **task}, here, {**shared, "completes": completes}


def _name(task: Mapping[str, Any]) -> str:
    """A task's own name, else its operation's."""
    operation = task.get("operation")
    if isinstance(operation, dict):
        operation = operation.get("name", operation.get("operation-type"))
    return str(task.get("name") or operation or "task")


class _Reader:
    """Parses the tasks of one challenge, and collects their inline operations."""

    def __init__(self, context: Context) -> None:
        self.operations: dict[str, TrackOperation] = {}
        self._context = context
        self._document = context.document

    def task(self, raw: dict[str, Any], where: str, shared: dict[str, Any]) -> Task:
        document = self._document
        schedule = raw.get("schedule")
        if document.lenient and isinstance(schedule, str) and schedule not in _SCHEDULES:
            # A plug-in's scheduler, which has the other keys for parameters.
            params = {key: value for key, value in raw.items() if key not in _TASK_KEYS}
            shared = {**shared, "scheduler": schedule, "scheduler-params": params}
            raw = {key: value for key, value in raw.items() if key in _TASK_KEYS and key != "schedule"}
        mistakes = Mistakes()
        with mistakes.part():
            raw = known_keys(raw, _TASK_KEYS, document, where)
        operation: TrackOperation = PluginOperation(name="", type="")  # until it is known
        called, target, per_request = "", None, 1.0
        with mistakes.part():
            operation, called = self._operation(raw.get("operation"), f"{where}.operation")
            target, per_request = self._target(raw.get("target-throughput"), operation, where)
        interval, tags = raw.get("target-interval"), raw.get("tags", ())
        made = {
            "operation": operation.name,
            "name": raw.get("name") or called,
            "target-throughput": target,
            "target-interval": None if self._is_unthrottled(interval) else interval,
            "per-request": per_request,
            "tags": (tags,) if isinstance(tags, str) else tags,
        }
        if isinstance(operation, AllTogether):
            shared = {**shared, "mixed": False}
        keys = {**{key: raw[key] for key in raw if key in _TASK_KEYS}, **made, **shared}
        try:
            task = msgspec.convert(keys, Task, strict=False)
        except msgspec.ValidationError as err:
            check_fields(keys, Task, document, where, mistakes)
            mistakes.settle()
            raise refused(err, document, where) from err
        mistakes.settle()
        return self._of_one_kind(task, where) if document.lenient else task

    def _of_one_kind(self, task: Task, where: str) -> Task:
        """A task without what contradicts the rest of it, which is often its element's: as in Rally."""
        if task.schedule == "poisson" and not task.throttled:
            self._document.note(where, "has no rate: it is unthrottled, not poisson")
            task = msgspec.structs.replace(task, schedule="deterministic")
        counts = (task.iterations, task.warmup_iterations)
        periods = (task.time_period, task.warmup_time_period)
        # Rally also refuses a warm-up of a different kind than the measured part.
        crossed = None not in (counts[0], periods[1]) or None not in (periods[0], counts[1])
        both = counts != (None, None) and periods != (None, None)
        if not both or (crossed and task.group is None):
            return task
        if task.time_period is None:
            self._document.note(where, "has iterations and a warm-up in seconds: the iterations count")
            return msgspec.structs.replace(task, warmup_time_period=None, ramp_up_time_period=None)
        self._document.note(where, "has iterations and a time period: the time period counts")
        return msgspec.structs.replace(task, warmup_iterations=None, iterations=None)

    def _operation(self, named: Any, where: str) -> tuple[TrackOperation, str]:
        """The operation of a task, and the track's name for it if that differs."""
        context = self._context
        if named is None:
            raise self._document.refuse(
                where.removesuffix(".operation"),
                "'operation' is missing",
                hint="an entry of a schedule has an `operation`, or is a `parallel` element",
            )
        if isinstance(named, str):
            for operations in (context.operations, self.operations):
                if named in operations:
                    return operations[named], ""
            if named in context.unusable:
                raise context.unusable[named]
            if named not in OPERATION_TYPES and not self._may_be_custom(named):
                raise self._unknown_operation(named, where)
            named = {"operation-type": named}
        operation = read_operation(named, self._document, where, plugin=context.plugin)
        earlier = self.operations.get(operation.name, context.operations.get(operation.name))
        called = ""
        if earlier is not None and earlier != operation:
            # Some tracks define different operations of one name; reports show that name.
            called = operation.name
            if not self._document.lenient:
                hint = "give it a unique name"
                raise self._document.refuse(where, f"another operation is called '{called}'", hint=hint)
            names = (f"{called} ({number})" for number in count(2))
            taken = self.operations.keys() | context.operations.keys()
            operation = msgspec.structs.replace(
                operation, name=next(name for name in names if name not in taken)
            )
        self.operations[operation.name] = operation
        return operation, called

    def _may_be_custom(self, name: str) -> bool:
        """Return whether a bare name is a plug-in's type, as in Rally, and no typo."""
        names = (*self._context.operations, *OPERATION_TYPES)
        is_typo = self._context.plugin is None and nearest(name, names, alike=LIKE) is not None
        return self._document.lenient and not is_typo

    def _unknown_operation(self, name: str, where: str) -> UsageError:
        known = sorted(self._context.operations) or sorted(OPERATION_TYPES)
        hint = guess(name, [*known, *OPERATION_TYPES]) or f"known: {', '.join(known)}"
        message = f"track '{self._context.track}' has no operation '{name}'"
        return self._document.refuse(where, message, hint=hint)

    def _target(self, value: Any, operation: TrackOperation, where: str) -> tuple[Any, float]:
        """A target in its unit, and how many of that unit a request has."""
        if self._is_unthrottled(value) or not isinstance(value, str):
            return (None if self._is_unthrottled(value) else value), 1.0
        where = f"{where}.target-throughput"
        match = _TARGET.fullmatch(value.strip())
        if match is None:
            hint = "write a number of requests a second, or one with a unit such as '5000 docs/s'"
            raise self._document.refuse(where, f"cannot read '{value}'", hint=hint)
        unit, number = match["unit"] or "ops", float(match["number"])
        if self._is_unthrottled(number):
            return None, 1.0
        is_foreign = isinstance(operation, Cannot | PluginOperation)
        if unit == "docs" and (is_foreign or isinstance(operation, Bulk | BulkVectors)):
            return number, self._documents(operation, where)
        if unit not in _REQUEST_UNITS and not is_foreign:
            message = f"'{unit}/s' is not a unit of a {operation.type_name} operation"
            hint = "bulk operations count docs/s or ops/s, all others ops/s"
            raise self._document.refuse(where, message, hint=hint)
        return number, 1.0

    def _documents(self, operation: TrackOperation, where: str) -> float:
        if isinstance(operation, Bulk | BulkVectors):
            return float(operation.bulk_size)
        size = operation.params.get("bulk-size") if isinstance(operation, PluginOperation) else 1
        if isinstance(size, int | float) and size >= 1:
            return float(int(size))
        self._document.note(where, "docs/s are as many requests a second: it has no bulk-size")
        return 1.0

    def _is_unthrottled(self, value: Any) -> bool:
        """Return whether a target means none: to Rally, so do 0 and an empty text."""
        is_none = isinstance(value, str) and _NO_RATE.fullmatch(value) is not None
        return self._document.lenient and (is_none or value in (0, None))


# Rally's rules for schedules, which files and parameters can break.
MOST_PER_S = 10**9
"""Requests a second at most: one per nanosecond, the resolution of all clocks here."""


def check_challenge(
    challenge: Challenge, operations: Mapping[str, Operation], document: Document, where: str = "$"
) -> None:
    """Check every task of a challenge, with parameters set, given its JSON path.

    `operations` are the track's and its own.

    Raises:
        UsageError: If tasks break a rule; messages name the first that each breaks.
    """
    if not challenge.schedule:
        raise document.refuse(f"{where}.schedule", "is empty")
    mistakes = Mistakes()
    for element, places in enumerate(challenge.steps):
        tasks = [challenge.schedule[place] for place in places]
        together = sum(task.clients for task in tasks)
        clients = min([together, *(task.lanes for task in tasks if task.lanes is not None)])
        if clients > MOST_CLIENTS and tasks[0].group is not None:
            crowded = document.refuse(
                f"{where}.schedule[{element}].parallel",
                f"{clients:,} clients at the same time, at most {MOST_CLIENTS:,}",
                hint="give the parallel element `clients`: its tasks then take turns on that many",
            )
            mistakes.add(crowded)
        sent = [task for task in tasks if not isinstance(operations[task.operation], AllTogether)]
        if len({task.schedule == "logged" for task in sent}) > 1 or any(
            task.schedule == "logged" and not task.mixed for task in sent
        ):
            unmixed = "a logged schedule is that of all tasks of a parallel element with `mix`, or of none"
            mistakes.add(document.refuse(f"{where}.schedule[{element}]", unmixed))
        if not sent:
            lone = f"{tasks[0].operation}: all-together requires other tasks in its parallel element"
            mistakes.add(document.refuse(f"{where}.schedule[{element}]", lone, hint="add some, or remove it"))
        completing = sum(task.completes for task in tasks)
        for inner, task in enumerate(tasks):
            # Besides a task that completes them all, a task may be endless.
            ends = completing > task.completes or operations[task.operation].ends
            problem = next((text for broken, text in _rules(task, ends=ends) if broken), "")
            if problem:
                inside = f".parallel.tasks[{inner}]" if task.group is not None else ""
                mistakes.add(document.refuse(f"{where}.schedule[{element}]{inside}", problem))
    mistakes.settle()


def _rules(task: Task, *, ends: bool) -> Iterator[tuple[bool, str]]:
    """Yield Rally's rules for several keys of a task: true if broken, and the text.

    `ends` tells whether the task ends even without iterations or a time period.
    """
    counted = task.iterations is not None or task.warmup_iterations is not None
    timed = task.time_period is not None or task.warmup_time_period is not None
    is_open = task.warmup_time_period is not None and task.time_period is None and not ends
    yield is_open, "a warmup-time-period needs a time-period"
    yield counted and timed, "iterations and time periods cannot be combined"
    both = task.target_throughput is not None and task.target_interval is not None
    yield both, "target-throughput and target-interval exclude each other: give one"
    rated = task.rate_per_s is not None
    lacks_rate = task.schedule == "poisson" and not rated
    yield lacks_rate, "a poisson schedule needs target-throughput or target-interval"
    has_rate = task.schedule == "unthrottled" and rated
    yield has_rate, "an unthrottled schedule has no target-throughput and no target-interval"
    is_steep = (task.ramp_up_time_period or 0) > (task.warmup_time_period or 0)
    yield is_steep, "a ramp-up-time-period needs a warmup-time-period that is at least as long"
    logged = task.schedule == "logged"
    unmixable = task.mixed and not logged and (task.iterations is None or task.throttled)
    yield unmixable, "a task of a mix needs iterations, and has no rate: requests take their turns at random"
    yield (
        logged and (rated or task.time_period is None),
        "a logged schedule needs a time-period, and has no rate",
    )
    offset = bool(task.log_start) or task.log_speed != 1
    yield offset and not logged, "log-start and log-speed need a logged schedule"
    # Too high for any clock, or too low to wait for the second request.
    least, rate = 1 / MOST_WAIT_S, task.rate_per_s or 1
    yield (
        not least <= rate <= MOST_PER_S,
        f"the target is {rate:g} requests a second: not from {least:g} to {MOST_PER_S:,}",
    )
