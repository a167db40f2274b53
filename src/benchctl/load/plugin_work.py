"""Operations of a track's Python plug-in (parameter sources, runners, schedulers) as work for clients."""

import inspect
import random
import threading
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from multiprocessing import current_process
from types import FunctionType, SimpleNamespace
from typing import Any

import msgspec
import numpy as np

from benchctl.errors import BenchctlError
from benchctl.load.client import NS_PER_S, Clock, Cue, Extent, Waiter
from benchctl.load.plugin_runner import OwnOperations, RunnerWork, own_operation
from benchctl.load.transport import Answer, Request
from benchctl.load.work import Program, Script, WorkContext, Workload, WorkOrder, lacking
from benchctl.plugin.code import Code
from benchctl.plugin.rally_api import BulkIndexParamSource
from benchctl.plugin.rally_track import task_of
from benchctl.plugin.session import Loaded, PluginError, PluginNeedsError, blaming, loaded_plugin
from benchctl.results.samples import Outcome
from benchctl.track.model import Task
from benchctl.track.operations import Operation
from benchctl.track.operations.catalogue import OPERATION_TYPES, PluginOperation

# A composite's streams share their client's connections; only its parameters tell how many streams there are.
_COMPOSITE_CONNECTIONS = 8


def open_plugin(operation: PluginOperation, order: WorkOrder) -> Workload:
    """Open an operation whose parameters, or whose requests, come from the track's plug-in.

    Raises:
        PluginNeedsError: If its code needs something unsupported.
        BenchctlError: If no plug-in may be executed here, it lacks what is needed, or its code fails.
    """
    loaded = _plugin_of(order.context, f"operation '{operation.name}'")
    runner = loaded.registry.runners.get(operation.type)
    if runner is None and operation.type not in OPERATION_TYPES:
        raise PluginError(f"the plug-in {loaded.code.path} registers no runner for '{operation.type}'")
    # Plug-ins draw from the global generators: every variant and fork gets the same numbers.
    random.seed(f"{order.context.seed}/{order.key}/{current_process().name}")
    np.random.seed(random.getrandbits(32))  # noqa: NPY002 - the generator that plug-ins draw from
    source = _source(operation, order, loaded)
    if runner is None and isinstance(source, BulkIndexParamSource) and source.is_plain():
        return order.open(own_operation(operation.type, operation.name, source.bulk_params))
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
        return own_operation(operation.type_name, operation.name, changed.params)
    except PluginError as err:
        raise PluginNeedsError(
            f"a track processor changes this operation to what benchctl cannot do: {err.message}"
        ) from err


def _source(operation: PluginOperation, order: WorkOrder, loaded: Loaded) -> Any:
    """The task's parameter source, before it is partitioned; without any, parameters are the track's."""
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
        return SimpleNamespace(params=lambda: factory(track, params))
    with blaming(loaded.code, f"param source '{name}'"):
        return factory(track, params, task_name=order.key, operation_name=operation.name)


def _plugin_work(
    operation: PluginOperation, order: WorkOrder, loaded: Loaded, source: Any, runner: Any
) -> Workload:
    """Without a `runner`, the operation is built in."""
    # Rally's clients of a process take turns; here they are threads, and may share a source.
    lock = threading.Lock()
    programs: list[PluginProgram] = []
    doing = f"param source '{operation.param_source}'"
    with blaming(loaded.code, doing):
        infinite = bool(getattr(source, "infinite", _size(source) is None))
    ends_itself = infinite and hasattr(runner, "completed") and hasattr(runner, "percent_completed")

    def program(client: int) -> PluginProgram:
        """Program of a client, with its partition of the source."""
        work: OwnOperations | RunnerWork
        if runner is None:
            work = OwnOperations(operation.type, operation.name, order, client)
        else:
            work = RunnerWork(runner, operation, loaded.code, order, client)
        with lock, blaming(loaded.code, doing):
            own = source.partition(client, order.clients) if hasattr(source, "partition") else source
            fixed = deepcopy(operation.params)
            programs.append(PluginProgram(own, work, loaded.code, doing, fixed, lock, _size(own)))
            return programs[-1]

    def close() -> None:
        for made in programs:
            made.work.close()

    composite = runner is None and operation.type == "composite"
    return Workload(
        program,
        endless=infinite and not ends_itself,
        connections=_COMPOSITE_CONNECTIONS if composite else 1,
        close=close,
    )


@dataclass
class PluginProgram:
    """A client's operations; schedulers look at `source`, the plug-in's object."""

    source: Any
    work: OwnOperations | RunnerWork
    _code: Code
    _doing: str  # that the source is called, for messages
    _fixed: dict[str, Any]  # parameters without a source
    _lock: threading.Lock
    _left: int | None  # operations that the source still has parameters for; None for no end

    def __call__(self) -> Request | Script | None:
        """The next operation; None when the source or the runner is exhausted."""
        if self._left == 0 or self.work.completed:
            return None
        if self._left is not None:
            self._left -= 1
        try:
            return self.work.make(self._params())
        except StopIteration:
            return None
        except PluginNeedsError as err:
            return lacking(err.message)

    def _params(self) -> dict[str, Any]:
        if self.source is None:
            return self._fixed
        with self._lock, blaming(self._code, self._doing, may_end=True):
            params = self.source.params()
        if not isinstance(params, dict):
            raise PluginError(
                f"{self._code.path}: {self._doing} gave {type(params).__name__}, not a dictionary"
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
    doing = f"scheduler '{name}'"
    loaded = _plugin_of(context, doing)
    factory = loaded.registry.schedulers.get(name)
    if factory is None:
        raise PluginError(f"the plug-in {loaded.code.path} registers no {doing}")

    def new(program: Program) -> PluginPace:
        with blaming(loaded.code, doing):
            scheduler = _scheduler(factory, task, operation)
            if hasattr(scheduler, "parameter_source"):
                scheduler.parameter_source = getattr(program, "source", None)
        return PluginPace(doing, scheduler, loaded.code, operation.unit)

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


@dataclass
class PluginPace:
    """The pace of one client.

    A scheduler is asked before the parameters of a request are made, and is notified of the request before
    that one, as in Rally: schedulers and parameter sources look at each other. `unit` is the operation's, for
    answers that name none.
    """

    _doing: str  # that the scheduler is called, for messages
    _scheduler: Any
    _code: Code
    _unit: str
    _clock: Clock = time.monotonic_ns
    _current_s: float = 0.0
    _last: Answer | None = None

    def paced(self, program: Program) -> Program:
        """Return the same program, asking the scheduler before each operation."""

        def next_one() -> Request | Script | None:
            if self._last is not None:
                # A runner's operation knows its own weight.
                own = program.work.last if isinstance(program, PluginProgram) else None
                answer = own or self._last
                unit, facts = answer.unit or self._unit, {"success": answer.outcome is Outcome.OK}
                self._notify("after_request", answer.weight, unit, facts)
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
            self._notify("before_request")
            yield cue
            position += 1

    def _ask(self) -> None:
        with blaming(self._code, self._doing):
            delay_s = self._scheduler.next(self._current_s)
        if not isinstance(delay_s, int | float) or not -_MOST_S < delay_s < _MOST_S:  # NaN, too
            raise PluginError(f"{self._code.path}: {self._doing} gave {delay_s!r}, not a number of seconds")
        self._current_s = float(delay_s)

    def _notify(self, method: str, *facts: Any) -> None:
        hook = getattr(self._scheduler, method, None)
        if hook is not None:
            with blaming(self._code, self._doing):
                hook(self._clock() / NS_PER_S, *facts)
