"""Operations of a track's Python plug-in: its parameter sources and its runners, as work for clients."""

import random
import threading
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from multiprocessing import current_process
from types import FunctionType
from typing import Any, Protocol

import msgspec
import numpy as np

from benchctl.errors import BenchctlError
from benchctl.load.plugin.params import OwnOperations, own_operation
from benchctl.load.request import Answer, Request
from benchctl.load.work.elsewhere import cannot, lacking
from benchctl.load.workload import OpenWorkload, Script, WorkContext, Workload, WorkOrder
from benchctl.plugin.code import Code
from benchctl.plugin.rally_classes import BulkIndexParamSource, DelegatingParamSource
from benchctl.plugin.rally_track import task_of
from benchctl.plugin.session import Loaded, PluginError, PluginNeedsError, blaming, loaded_plugin
from benchctl.track.operations.catalogue import OPERATION_TYPES, PluginOperation
from benchctl.track.operations.common import Operation

# A composite's streams share the connections of their client; how many it has, only its parameters say.
_COMPOSITE_CONNECTIONS = 8


class _Runs(Protocol):
    """What makes scripts of parameters, for one client."""

    @property
    def completed(self) -> bool: ...

    @property
    def last(self) -> Answer | None: ...

    def script(self, params: Mapping[str, Any]) -> Script: ...

    def close(self) -> None: ...


def open_plugin(operation: PluginOperation, order: WorkOrder, open_workload: OpenWorkload) -> Workload:
    """An operation that only the plug-in knows how to do, or for which it makes the parameters.

    Args:
        operation: the operation.
        order: for whom.
        open_workload: makes the work of operations of benchctl's own.

    Raises:
        BenchctlError: no plug-in may be executed here, it does not have what is needed, or its code failed.
    """
    loaded = plugin_of(order.context, f"operation '{operation.name}'")
    runner = loaded.registry.runners.get(operation.type)
    if runner is None and operation.type not in OPERATION_TYPES:
        raise PluginError(f"the plug-in {loaded.code.path} registers no runner for '{operation.type}'")
    _seed(f"{order.context.seed}/{order.key}/{current_process().name}")
    try:
        source = _source(operation, order, loaded)
    except PluginNeedsError as err:
        return cannot(err.message, order)
    if runner is None and isinstance(source, BulkIndexParamSource) and source.is_plain():
        return open_workload(own_operation(operation.type, operation.name, source.bulk_params), order)
    return PluginWork(operation, order, loaded, source, runner, open_workload)


def plugin_of(context: WorkContext, what: str) -> Loaded:
    """The plug-in of a context, loaded.

    Args:
        context: where something runs.
        what: needs it, for the message.

    Raises:
        BenchctlError: no plug-in may be executed, or its code failed.
    """
    if context.plugin is None:
        raise BenchctlError(f"{what} needs the track's Python plug-in, which may not be executed here")
    return loaded_plugin(context.plugin)


def as_processed(operation: Operation, order: WorkOrder) -> Operation:
    """An operation as the plug-in's track processors leave it.

    Args:
        operation: as the track has it.
        order: for whom; its key is the task's name.

    Raises:
        PluginNeedsError: they make of its task what benchctl does not do.
        BenchctlError: the plug-in's code failed.
    """
    use = order.context.plugin
    if use is None or use.challenge is None:
        return operation
    loaded = loaded_plugin(use)
    task = next((one for one in use.challenge.schedule if one.label == order.key), None)
    if not loaded.registry.processors or task is None:
        return operation
    asked = task_of(task, operation)
    found = loaded.track(use.track, use.challenge).selected_challenge
    left = [] if found is None else [one for one in found.schedule if one.name == asked.name]
    if asked in left:
        return operation
    if len(left) != 1 or replace(left[0], operation=asked.operation) != asked:
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


def _seed(text: str) -> None:
    """Plug-ins draw from the global generators: every variant and fork is asked the same."""
    random.seed(text)
    np.random.seed(random.getrandbits(32))  # noqa: NPY002 - the generator that plug-ins draw from


def _source(operation: PluginOperation, order: WorkOrder, loaded: Loaded) -> Any:  # noqa: ANN401 - foreign
    """The task's parameter source, before clients have their parts of it; None without one of its own."""
    name = operation.param_source
    if name is None:
        return None
    made = loaded.registry.param_sources.get(name)
    if made is None:
        raise PluginError(f"the plug-in {loaded.code.path} registers no param source '{name}'")
    use = order.context.plugin
    track = None if use is None else loaded.track(use.track, use.challenge)
    params = deepcopy(operation.params)
    if isinstance(made, FunctionType):
        return DelegatingParamSource(track, params, made)
    with blaming(loaded.code, f"param source '{name}'"):
        return made(track, params, task_name=order.key, operation_name=operation.name)


class PluginWork:
    """The work of a task.

    Args:
        operation: the operation.
        order: for whom.
        loaded: the plug-in.
        source: of parameters; None for those of the track as they are.
        runner: what does the operation; None for benchctl's own way.
        open_workload: makes the work of operations of benchctl's own.
    """

    def __init__(
        self,
        operation: PluginOperation,
        order: WorkOrder,
        loaded: Loaded,
        source: Any,  # noqa: ANN401 - foreign
        runner: Any,  # noqa: ANN401 - foreign
        open_workload: OpenWorkload,
    ) -> None:
        self._operation = operation
        self._order = order
        self._code = loaded.code
        self._source = source
        self._runner = runner
        self._open = open_workload
        # Rally's clients of a process take turns; here they are threads, and may share a source.
        self._lock = threading.Lock()
        self._programs: list[PluginProgram] = []
        with blaming(self._code, f"param source '{operation.param_source}'"):
            infinite = bool(getattr(source, "infinite", True))
        self.endless = infinite and not _knows_its_end(runner)
        composite = runner is None and operation.type == "composite"
        self.connections = _COMPOSITE_CONNECTIONS if composite else 1

    def program(self, client: int) -> "PluginProgram":
        """What one client does, with its own part of the source."""
        with self._lock:
            source = self._source
            if source is not None and hasattr(source, "partition"):
                with blaming(self._code, f"param source '{self._operation.param_source}'"):
                    source = source.partition(client, self._order.clients)
            made = PluginProgram(
                self._operation, self._code, source, self._lock, self._make(client), self._runs(client)
            )
            self._programs.append(made)
            return made

    def close(self) -> None:
        """Close the event loops."""
        for program in self._programs:
            program.close()

    def _make(self, client: int) -> OwnOperations | None:
        if self._runner is not None:
            return None
        operation = self._operation
        return OwnOperations(operation.type, operation.name, self._order, client, self._open)

    def _runs(self, client: int) -> "_Runs | None":
        if self._runner is None:
            return None
        # Both official clients take a while to load, which parameter sources need not wait for.
        from benchctl.load.plugin.runner import RunnerWork  # noqa: PLC0415 - see above

        operation = self._operation
        return RunnerWork(
            self._runner,
            operation.type,
            operation.name,
            self._code,
            self._order,
            client=client,
            open_workload=self._open,
        )


class PluginProgram:
    """What one client does, one operation after the other.

    Attributes:
        source: of its parameters, the plug-in's object; schedulers look at it.
    """

    def __init__(
        self,
        operation: PluginOperation,
        code: Code,
        source: Any,  # noqa: ANN401 - foreign
        lock: threading.Lock,
        own: OwnOperations | None,
        runs: _Runs | None,
    ) -> None:
        self.source = source
        self._operation = operation
        self._code = code
        self._lock = lock
        self._own = own
        self._runs = runs
        self._fixed = deepcopy(operation.params)
        self._doing = f"param source '{operation.param_source}'"

    def __call__(self) -> Request | Script | None:
        """The next operation; None when the source or the runner has come to its end."""
        if self._runs is not None and self._runs.completed:
            return None
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
        """What the last operation came to, where a runner did it."""
        return None if self._runs is None else self._runs.last

    def close(self) -> None:
        """Close what the runner needs."""
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


def _knows_its_end(runner: object) -> bool:
    return hasattr(runner, "completed") and hasattr(runner, "percent_completed")
