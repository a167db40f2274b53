"""Operations of a track's Python plug-in (parameter sources, runners, schedulers) as work for clients."""

import inspect
import math
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from functools import cache
from multiprocessing import current_process
from types import FunctionType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from benchctl.errors import BenchctlError
from benchctl.load.client import NS_PER_S, Clock, Cue, Extent, Waiter
from benchctl.load.transport import Answer, Request
from benchctl.load.work import (
    Program,
    Script,
    WorkContext,
    Workload,
    WorkOrder,
    cannot,
    follow,
    lacking,
    with_body,
)
from benchctl.load.work.bulk import bulk_request
from benchctl.plugin.code import Code
from benchctl.plugin.rally_classes import BulkIndexParamSource, DelegatingParamSource
from benchctl.plugin.rally_track import task_of
from benchctl.plugin.session import Loaded, PluginError, PluginNeedsError, blaming, loaded_plugin
from benchctl.results.samples import Outcome
from benchctl.track.model import Task
from benchctl.track.operations import Operation
from benchctl.track.operations.catalogue import OPERATION_TYPES, PluginOperation, decode_operation
from benchctl.track.operations.search import Bulk
from benchctl.track.template import encoded_names

if TYPE_CHECKING:
    from benchctl.load.plugin_runner import RunnerWork

# Keys that identify the operation; all others come from the plug-in.
_OURS = frozenset({"name", "operation-type"})
# Types for which a changed body changes nothing else in the request.
_BODY_AS_IT_IS = frozenset({"search"})
_LISTS = frozenset({"index", "data-stream"})
_TEMPLATES = ("index", "composable", "component")


class OwnOperations:
    """Builds requests of a built-in operation type from dictionaries, for one client.

    As in Rally, keys that the type does not know are ignored, and None counts as absent. A dictionary equal
    to the previous one yields the same request object, which the wire need not load again; one that differs
    only in its body yields the same request with that body.

    Raises:
        PluginError: If there is no such type.
    """

    def __init__(self, kind: str, name: str, order: WorkOrder, client: int) -> None:
        if kind not in OPERATION_TYPES:
            raise PluginError(f"no runner is available for operation type '{kind}'")
        self._kind = kind
        self._name = name
        self._order = order
        self._client = client
        self._before = b""
        self._content = b""
        self._program: Program | None = None
        self._template: Request | None = None

    def make(self, params: Mapping[str, Any]) -> Request | Script | None:
        """Return the next request or script for a source's parameters.

        Raises:
            PluginError: If they are invalid for the type.
        """
        if self._kind == "bulk" and params.get("body") is not None:
            return self._bulk(params)
        body = params.get("body")
        rest = {key: value for key, value in params.items() if key != "body"}
        encoded, content = _encoded(rest), _encoded(body)
        if encoded == self._before and self._program is not None:
            if content == self._content:
                return self._program()
            if self._template is not None and isinstance(body, dict):
                return with_body(self._template, content)
        # A round trip leaves plain JSON, and a copy: the plug-in may go on changing its own.
        given = msgspec.json.decode(encoded) | (
            {} if body is None else {"body": msgspec.json.decode(content)}
        )
        self._program = self._program_for(given)
        self._before, self._content, self._template = encoded, content, None
        work = self._program()
        if isinstance(work, Request) and work.body == content and self._kind in _BODY_AS_IT_IS:
            self._template = work
        return work

    def _program_for(self, params: Mapping[str, Any]) -> Program:
        """Requests of an operation, or of each that the parameters list, in order."""
        parts = _listed(params, self._kind)
        programs = [
            self._order.open(_own_operation(self._kind, self._name, part)).program(self._client)
            for part in ([params] if parts is None else parts)
        ]
        return programs[0] if parts is None else lambda: _in_turn(programs)

    def _bulk(self, params: Mapping[str, Any]) -> Request:
        """A body that the source made itself."""
        body, documents = bulk_body(params["body"])
        rest = {key: value for key, value in params.items() if key not in {"body", "bulk-size"}}
        encoded = _encoded(rest)
        if encoded != self._before or self._template is None:
            self._template = self._bulk_template(msgspec.json.decode(encoded))
            self._before = encoded
        template = self._template
        size = params.get("bulk-size")
        lines_each = 2 if params.get("action-metadata-present", True) else 1
        given = int(size) if isinstance(size, int | float) and size > 0 else 0
        return with_body(template, body, given or max(documents // lines_each, 1))

    def _bulk_template(self, params: Mapping[str, Any]) -> Request:
        operation = _own_operation(self._kind, self._name, {**params, "bulk-size": 1})
        if not isinstance(operation, Bulk):
            raise TypeError(f"{self._kind} is not a bulk operation")
        # Action lines name the index themselves, as in Rally.
        index = None if params.get("action-metadata-present", True) else operation.index
        return bulk_request(operation, f"/{self._order.index(index)}/_bulk" if index else "/_bulk")


def _own_operation(kind: str, name: str, params: Mapping[str, Any]) -> Operation:
    """An operation of a built-in type from a source's parameters."""
    try:
        return decode_operation({**_kept(params, kind), "name": name, "operation-type": kind})
    except msgspec.ValidationError as err:
        raise PluginError(
            f"the parameter source of operation '{name}' gave what no {kind} operation can have: {err}"
        ) from err


_MATCHING = ("template", "delete-matching-indices", "index-pattern")
_LISTED = {
    "create-index": ("indices", ("index", "body")),
    "delete-index": ("indices", ("index",)),
    **dict.fromkeys(("create-data-stream", "delete-data-stream"), ("data-streams", ("data-stream",))),
    **{f"create-{kind}-template": ("templates", ("template", "body")) for kind in _TEMPLATES},
    **{f"delete-{kind}-template": ("templates", _MATCHING) for kind in _TEMPLATES},
}
"""Operation type -> what Rally's own sources list for it, and the keys that each entry stands for."""


def _listed(params: Mapping[str, Any], kind: str) -> list[dict[str, Any]] | None:
    """The parameters of each thing that Rally does in one operation; None where nothing is listed."""
    key, names = _LISTED.get(kind, ("", ()))
    if not isinstance(params.get(key), list):
        return None
    rest = {name: value for name, value in params.items() if name != key}
    entries = [param if isinstance(param, list) else [param] for param in params[key]]
    return [{**rest, **dict(zip(names, entry, strict=False))} for entry in entries]


def _in_turn(programs: Iterable[Program]) -> Script:
    """Several operations as one; the first failure ends it."""
    answer = Answer(Outcome.OK)
    for program in programs:
        work = program()
        if work is not None:
            answer = (yield from follow(work)) or answer
        if answer.outcome is not Outcome.OK:
            break
    return answer


def _kept(params: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The parameters that a type knows, in the form that tracks give them."""
    keys = _known_keys(kind)
    kept = {
        key: ",".join(map(str, value)) if key in _LISTS and isinstance(value, list) else value
        for key, value in params.items()
        if key in keys and value is not None and value != ""
    }
    if isinstance(kept.get("requests"), list):
        kept["requests"] = [_kept_step(step) for step in kept["requests"]]
    return kept


def _kept_step(step: Any) -> Any:
    """A part of a composite: a stream of such parts, or an operation."""
    if not isinstance(step, dict):
        return step
    if isinstance(step.get("stream"), list):
        return {"stream": [_kept_step(inner) for inner in step["stream"]]}
    kind = step.get("operation-type")
    if not isinstance(kind, str) or kind not in OPERATION_TYPES:
        return step
    return {**_kept(step, kind), **{key: step[key] for key in _OURS if key in step}}


@cache
def _known_keys(kind: str) -> frozenset[str]:
    return frozenset(encoded_names(OPERATION_TYPES[kind])) - _OURS


def bulk_body(body: object) -> tuple[bytes, int]:
    """Return an encoded bulk body, and its number of lines."""
    if isinstance(body, bytes | str):
        raw = body.encode() if isinstance(body, str) else body
        body = raw if raw.endswith(b"\n") else raw + b"\n"
        return body, body.count(b"\n")
    if not isinstance(body, Iterable) or isinstance(body, Mapping):
        raise PluginError(f"a bulk body of {type(body).__name__}: text, bytes or a list of lines is needed")
    lines = [_line(line) for line in body]
    return b"\n".join(lines) + b"\n", len(lines)


def _line(line: object) -> bytes:
    if isinstance(line, str):
        return line.rstrip("\n").encode()
    return line.rstrip(b"\n") if isinstance(line, bytes) else _encoded(line)


def _encoded(value: object) -> bytes:
    try:
        encoded = msgspec.json.encode(value, enc_hook=_plain)
    except (TypeError, ValueError, RecursionError) as err:
        raise PluginError(f"a parameter source gave what is not JSON: {err}") from err
    # msgspec writes NaN and infinities as null, which would change the request.
    if b"null" in encoded and not _is_finite(value):
        raise PluginError("a parameter source gave what is not JSON: a number that is not finite")
    return encoded


def _is_finite(value: object) -> bool:
    if isinstance(value, float | np.floating):
        return math.isfinite(value)
    if isinstance(value, np.ndarray):
        return value.dtype.kind != "f" or bool(np.isfinite(value).all())
    if isinstance(value, Mapping):
        return all(map(_is_finite, value.values()))
    return not isinstance(value, list | tuple | set | frozenset) or all(map(_is_finite, value))


def _plain(value: object) -> object:
    """Converts the numpy values that plug-ins compute with."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"an object of type {type(value).__name__}")


# A composite's streams share their client's connections; only its parameters tell how many streams there are.
_COMPOSITE_CONNECTIONS = 8


def open_plugin(operation: PluginOperation, order: WorkOrder) -> Workload:
    """Open an operation whose parameters, or whose requests, come from the track's plug-in.

    Raises:
        BenchctlError: If no plug-in may be executed here, it lacks what is needed, or its code fails.
    """
    loaded = _plugin_of(order.context, f"operation '{operation.name}'")
    runner = loaded.registry.runners.get(operation.type)
    if runner is None and operation.type not in OPERATION_TYPES:
        raise PluginError(f"the plug-in {loaded.code.path} registers no runner for '{operation.type}'")
    # Plug-ins draw from the global generators: every variant and fork gets the same numbers.
    random.seed(f"{order.context.seed}/{order.key}/{current_process().name}")
    np.random.seed(random.getrandbits(32))  # noqa: NPY002 - the generator that plug-ins draw from
    try:
        source = _source(operation, order, loaded)
    except PluginNeedsError as err:
        return cannot(err.message)
    if runner is None and isinstance(source, BulkIndexParamSource) and source.is_plain():
        return order.open(_own_operation(operation.type, operation.name, source.bulk_params))
    return _plugin_work(operation, order, loaded, source, runner)


def _plugin_of(context: WorkContext, what: str) -> Loaded:
    if context.plugin is None:
        raise BenchctlError(f"{what} needs the track's Python plug-in, which may not be executed here")
    return loaded_plugin(context.plugin)


def as_processed(operation: Operation, order: WorkOrder) -> Operation:
    """Return an operation as the plug-in's track processors leave it; the order's key is the task's name.

    Raises:
        PluginNeedsError: If they change the task in ways benchctl does not support.
        BenchctlError: If the plug-in's code fails.
    """
    use = order.context.plugin
    if use is None or use.challenge is None:
        return operation
    loaded = loaded_plugin(use)
    task = next((task for task in use.challenge.schedule if task.label == order.key), None)
    if not loaded.registry.processors or task is None:
        return operation
    selected = task_of(task, operation)
    challenge = loaded.track(use.track, use.challenge).selected_challenge
    left = [] if challenge is None else [task for task in challenge.schedule if task.name == selected.name]
    if selected in left:
        return operation
    if len(left) != 1 or replace(left[0], operation=selected.operation) != selected:
        raise PluginNeedsError("a track processor changes how this task is run, which benchctl does not do")
    changed = left[0].operation
    if isinstance(operation, PluginOperation):
        return msgspec.structs.replace(operation, params=changed.params, param_source=changed.param_source)
    try:
        return _own_operation(operation.type_name, operation.name, changed.params)
    except PluginError as err:
        raise PluginNeedsError(
            f"a track processor changes this operation to what benchctl cannot do: {err.message}"
        ) from err


def _source(operation: PluginOperation, order: WorkOrder, loaded: Loaded) -> Any:
    """The task's parameter source, before it is partitioned; None if the operation names none."""
    name = operation.param_source
    if name is None:
        return None
    factory = loaded.registry.param_sources.get(name)
    if factory is None:
        raise PluginError(f"the plug-in {loaded.code.path} registers no param source '{name}'")
    use = order.context.plugin
    track = None if use is None else loaded.track(use.track, use.challenge)
    params = deepcopy(operation.params)
    if isinstance(factory, FunctionType):
        return DelegatingParamSource(track, params, factory)
    with blaming(loaded.code, f"param source '{name}'"):
        return factory(track, params, task_name=order.key, operation_name=operation.name)


def _plugin_work(
    operation: PluginOperation, order: WorkOrder, loaded: Loaded, source: Any, runner: Any
) -> Workload:
    """Without a `source`, parameters are the track's; without a `runner`, the operation is built in."""
    # Rally's clients of a process take turns; here they are threads, and may share a source.
    lock = threading.Lock()
    programs: list[PluginProgram] = []
    doing = f"param source '{operation.param_source}'"
    with blaming(loaded.code, doing):
        infinite = bool(getattr(source, "infinite", _size(source) is None))
    ends_itself = infinite and hasattr(runner, "completed") and hasattr(runner, "percent_completed")

    def program(client: int) -> PluginProgram:
        """Program of a client, with its partition of the source."""
        with lock:
            own = source
            if own is not None and hasattr(own, "partition"):
                with blaming(loaded.code, doing):
                    own = own.partition(client, order.clients)
            if runner is None:
                built_in = OwnOperations(operation.type, operation.name, order, client)
                made = PluginProgram(operation, loaded.code, own, lock, built_in, None)
            else:
                # Both official clients are slow to import, and parameter sources do not need them.
                from benchctl.load.plugin_runner import RunnerWork  # noqa: PLC0415 - see above

                runs = RunnerWork(runner, operation.type, operation.name, loaded.code, order, client=client)
                made = PluginProgram(operation, loaded.code, own, lock, None, runs)
            programs.append(made)
            return made

    def close() -> None:
        for made in programs:
            made.close()

    composite = runner is None and operation.type == "composite"
    return Workload(
        program,
        endless=infinite and not ends_itself,
        connections=_COMPOSITE_CONNECTIONS if composite else 1,
        close=close,
    )


class PluginProgram:
    """A client's operations; schedulers look at `source`, the plug-in's object."""

    def __init__(
        self,
        operation: PluginOperation,
        code: Code,
        source: Any,
        lock: threading.Lock,
        own: OwnOperations | None,
        runs: "RunnerWork | None",
    ) -> None:
        self.source = source
        self._code = code
        self._lock = lock
        self._own = own
        self._runs = runs
        self._fixed = deepcopy(operation.params)
        self._doing = f"param source '{operation.param_source}'"
        with blaming(code, self._doing):
            self._left = _size(source)  # operations that it still has parameters for; None for no end

    def __call__(self) -> Request | Script | None:
        """The next operation; None when the source or the runner is exhausted."""
        if self._left == 0 or (self._runs is not None and self._runs.completed):
            return None
        if self._left is not None:
            self._left -= 1
        try:
            params = self._params()
        except StopIteration:
            return None
        except PluginNeedsError as err:
            return lacking(err.message)
        if self._runs is not None:
            return self._runs.script(params)
        return None if self._own is None else self._own.make(params)

    @property
    def last(self) -> Answer | None:
        """The answer of the last operation, if a runner did it."""
        return None if self._runs is None else self._runs.last

    def close(self) -> None:
        """Close the runner's event loop."""
        if self._runs is not None:
            self._runs.close()

    def _params(self) -> dict[str, Any]:
        if self.source is None:
            return self._fixed
        with self._lock, blaming(self._code, self._doing, may_end=True):
            params = self.source.params()
        if not isinstance(params, dict):
            raise PluginError(
                f"{self._code.path}: {self._doing} gave {type(params).__name__}, and not a dictionary"
            )
        return params


def _size(source: Any) -> int | None:
    """Return the number of parameters that a source has for a client; None if it does not say."""
    size = source.size() if callable(getattr(source, "size", None)) else None
    return max(size, 0) if isinstance(size, int) else None


# Schedulers: each request of a client is due when its scheduler's `next` says so.
NewPace = Callable[[Program], "PluginPace"]
"""Makes the pace of a client with this program."""

_MOST_S = 1e9  # of the time that a scheduler gives: no task lasts for 30 years


def plugin_paces(task: Task, operation: Operation, context: WorkContext) -> NewPace | None:
    """Return a factory of the paces of a task's clients; None when no plug-in scheduler spaces its requests.

    Raises:
        BenchctlError: If no plug-in may be executed here, or it has no such scheduler.
    """
    name = task.scheduler
    if name is None:
        return None
    loaded = _plugin_of(context, f"scheduler '{name}'")
    factory = loaded.registry.schedulers.get(name)
    if factory is None:
        raise PluginError(f"the plug-in {loaded.code.path} registers no scheduler '{name}'")

    def new(program: Program) -> PluginPace:
        with blaming(loaded.code, f"scheduler '{name}'"):
            scheduler = _scheduler(factory, task, operation)
            if hasattr(scheduler, "parameter_source"):
                scheduler.parameter_source = getattr(program, "source", None)
        return PluginPace(name, scheduler, loaded.code, operation.unit)

    return new


def _scheduler(factory: Any, task: Task, operation: Operation) -> Any:
    """A client's scheduler; its constructor's parameters tell which of Rally's three interfaces it has."""
    if isinstance(factory, FunctionType):
        return SimpleNamespace(next=factory)
    subject = task_of(task, operation)
    names = inspect.signature(factory).parameters
    if "params" in names:
        return factory(subject.params)
    if "target_throughput" in names:
        return factory(subject, (task.rate_per_s or 1.0) / task.clients)
    return factory(subject)


class PluginPace:
    """The pace of one client.

    A scheduler is asked before the parameters of a request are made, and is notified of the request before
    that one, as in Rally: schedulers and parameter sources look at each other. `unit` is the operation's, for
    answers that name none.
    """

    def __init__(
        self,
        name: str,
        scheduler: Any,
        code: Code,
        unit: str,
        clock: Clock = time.monotonic_ns,
    ) -> None:
        self._name = name
        self._scheduler = scheduler
        self._code = code
        self._unit = unit
        self._clock = clock
        self._current_s = 0.0
        self._last: Answer | None = None

    def paced(self, program: Program) -> Program:
        """Return the same program, asking the scheduler before each operation."""

        def next_one() -> Request | Script | None:
            if self._last is not None:
                # A runner's operation knows its own weight.
                self._notify_after(getattr(program, "last", None) or self._last)
            self._ask()
            work = program()
            self._last = Answer(Outcome.OK, weight=work.weight if isinstance(work, Request) else 1)
            return work

        return next_one

    def cues(self, bounds: Extent, start_ns: int, timer: Waiter) -> Iterator[Cue]:
        """Like `pace.cues`, at the scheduler's times; immediately where it says 0 or less."""
        if not timer.wait_until(start_ns):
            return
        position = 0
        while bounds.requests is None or position < bounds.requests:
            due_ns: int | None = None
            offset_ns = timer.now_ns() - start_ns
            if self._current_s > 0:
                offset_ns = round(self._current_s * NS_PER_S)
                due_ns = start_ns + offset_ns
            if bounds.period_ns is not None and offset_ns >= bounds.period_ns:
                return
            cue = timer.cue(due_ns, warmup=bounds.is_warmup(position, offset_ns))
            if cue is None:
                return
            self._notify("before_request", self._clock() / NS_PER_S)
            yield cue
            position += 1

    def _notify_after(self, answer: Answer) -> None:
        facts = {"success": answer.outcome is Outcome.OK}
        unit = answer.unit or self._unit
        self._notify("after_request", self._clock() / NS_PER_S, answer.weight, unit, facts)

    def _ask(self) -> None:
        with blaming(self._code, f"scheduler '{self._name}'"):
            delay_s = self._scheduler.next(self._current_s)
        if not isinstance(delay_s, int | float) or not -_MOST_S < delay_s < _MOST_S:  # NaN, too
            raise PluginError(
                f"{self._code.path}: scheduler '{self._name}' gave {delay_s!r}, and not a number of seconds"
            )
        self._current_s = float(delay_s)

    def _notify(self, method: str, *facts: Any) -> None:
        hook = getattr(self._scheduler, method, None)
        if hook is not None:
            with blaming(self._code, f"scheduler '{self._name}'"):
                hook(*facts)
