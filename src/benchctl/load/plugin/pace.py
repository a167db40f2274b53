"""Schedulers of a track's plug-in: each request of a client is due when its scheduler's `next` says so."""

import inspect
import time
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from benchctl.load.arrivals import NS_PER_S, Extent
from benchctl.load.pace import Timer, Turn
from benchctl.load.plugin.work import plugin_of
from benchctl.load.request import Answer, Request
from benchctl.load.workload import Program, Script, WorkContext
from benchctl.plugin.code import Code
from benchctl.plugin.rally_track import task_of
from benchctl.plugin.session import PluginError, blaming
from benchctl.results.samples import Outcome
from benchctl.track.model import Task
from benchctl.track.operations.common import Operation

NewPace = Callable[[Program], "PluginPace"]
"""Makes the pace of a client that does this."""

Clock = Callable[[], int]

_MOST_S = 1e9  # of the time that a scheduler gives: no task lasts for 30 years


def plugin_paces(task: Task, operation: Operation, context: WorkContext) -> NewPace | None:
    """Makes the paces of a task's clients; None when no plug-in's scheduler spaces its requests.

    Raises:
        BenchctlError: no plug-in may be executed here, or it has no such scheduler.
    """
    name = task.scheduler
    if name is None:
        return None
    loaded = plugin_of(context, f"scheduler '{name}'")
    made = loaded.registry.schedulers.get(name)
    if made is None:
        raise PluginError(f"the plug-in {loaded.code.path} registers no scheduler '{name}'")

    def new(program: Program) -> PluginPace:
        with blaming(loaded.code, f"scheduler '{name}'"):
            scheduler = _scheduler(made, task, operation)
            if hasattr(scheduler, "parameter_source"):
                scheduler.parameter_source = getattr(program, "source", None)
        return PluginPace(name, scheduler, loaded.code, operation.unit)

    return new


class _Function:
    """A function as a scheduler."""

    def __init__(self, function: Callable[[float], float]) -> None:
        self.next = function


def _scheduler(made: Any, task: Task, operation: Operation) -> Any:  # noqa: ANN401 - foreign
    """A client's scheduler, by what its constructor asks for: Rally's three ages of them."""
    if isinstance(made, FunctionType):
        return _Function(made)
    subject = task_of(task, operation)
    names = inspect.signature(made).parameters
    if "params" in names:
        return made(subject.params)
    if "target_throughput" in names:
        return made(subject, (task.rate_per_s or 1.0) / task.clients)
    return made(subject)


class PluginPace:
    """When one client sends.

    A scheduler is asked before the parameters of the request are made, and is told of the one before then, as
    in Rally: schedulers and parameter sources look at each other.

    Args:
        name: of the scheduler, for messages.
        scheduler: the plug-in's object.
        code: of the plug-in.
        unit: of the operation, where it does not say by itself.
        clock: nanoseconds, monotonic.
    """

    def __init__(
        self,
        name: str,
        scheduler: Any,  # noqa: ANN401 - foreign
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
        """The same program, before each of whose operations the scheduler is asked."""

        def next_one() -> Request | Script | None:
            if self._last is not None:
                # An operation of a runner says by itself what it was worth.
                self._tell_of(getattr(program, "last", None) or self._last)
            self._ask()
            made = program()
            self._last = Answer(Outcome.OK, weight=made.weight if isinstance(made, Request) else 1)
            return made

        return next_one

    def turns(self, bounds: Extent, start_ns: int, timer: Timer) -> Iterator[Turn]:
        """As those of `pace.turns`, when the scheduler says; where it says 0 or less, at once.

        Args:
            bounds: how long the client goes on.
            start_ns: when it starts.
            timer: its clock.
        """
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
            if not timer.wait_until(timer.now_ns() if due_ns is None else due_ns):
                return
            self._tell("before_request", self._clock() / NS_PER_S)
            yield due_ns, bounds.is_warmup(position, offset_ns)
            position += 1

    def _tell_of(self, answer: Answer) -> None:
        facts = {"success": answer.outcome is Outcome.OK}
        unit = answer.unit or self._unit
        self._tell("after_request", self._clock() / NS_PER_S, answer.weight, unit, facts)

    def _ask(self) -> None:
        with blaming(self._code, f"scheduler '{self._name}'"):
            found = self._scheduler.next(self._current_s)
        if not isinstance(found, int | float) or not -_MOST_S < found < _MOST_S:  # NaN, too
            raise PluginError(
                f"{self._code.path}: scheduler '{self._name}' gave {found!r}, and not a number of seconds"
            )
        self._current_s = float(found)

    def _tell(self, method: str, *facts: Any) -> None:  # noqa: ANN401 - foreign
        told = getattr(self._scheduler, method, None)
        if told is not None:
            with blaming(self._code, f"scheduler '{self._name}'"):
                told(*facts)
