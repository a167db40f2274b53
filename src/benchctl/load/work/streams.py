"""A composite: its operations one after the other, its streams at the same time, measured as one."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from benchctl.load.request import Answer, Request
from benchctl.load.work.envelope import Envelope
from benchctl.load.work.points import (
    Held,
    Use,
    close_point,
    close_request,
    delete_searches,
    get_searches,
    list_points,
    open_point,
    submit_search,
    within_point,
)
from benchctl.load.workload import (
    Item,
    Numbered,
    OpenWorkload,
    Program,
    Reply,
    Script,
    Together,
    Workload,
    WorkOrder,
    ask,
)
from benchctl.results.samples import Outcome
from benchctl.track.operations.common import Operation
from benchctl.track.operations.composite import (
    ClosePointInTime,
    Composite,
    CreatePointInTime,
    DeleteAsyncSearch,
    DeletePointInTime,
    GetAsyncSearch,
    ListAllPointInTime,
    OpenPointInTime,
    Step,
    Stream,
    SubmitAsyncSearch,
)

_OK = Answer(Outcome.OK)

_USES: Mapping[type[Operation], Callable[[Any, WorkOrder], Use]] = {
    OpenPointInTime: open_point,
    CreatePointInTime: open_point,
    ClosePointInTime: close_point,
    DeletePointInTime: close_point,
    ListAllPointInTime: list_points,
    SubmitAsyncSearch: submit_search,
    GetAsyncSearch: get_searches,
    DeleteAsyncSearch: delete_searches,
}

POINTS = (DeletePointInTime, ListAllPointInTime)
"""Types of those that stand alone, too."""


def open_alone(operation: DeletePointInTime | ListAllPointInTime, order: WorkOrder) -> Workload:
    """An operation on points in time outside of a composite, where it has opened none."""
    use = _USES[type(operation)](operation, order)
    return Numbered(lambda _number: use(Held()), order.clients)


def open_composite(operation: Composite, order: WorkOrder, open_workload: OpenWorkload) -> Workload:
    """A composite.

    Args:
        operation: the composite.
        order: for whom.
        open_workload: makes the work of an operation that a task could have alone.
    """
    numbers = count()
    steps = tuple(_opened(step, order, open_workload, numbers) for step in operation.requests)
    connections = _widest(operation.requests)
    if operation.max_connections is not None:
        connections = min(connections, operation.max_connections)
    return _Composite(steps, order, close_request(Envelope(operation), order.context.engine), connections)


@dataclass(frozen=True)
class _Plain:
    """An operation that uses nothing of the others but perhaps a point in time."""

    workload: Workload
    point: str | None


@dataclass(frozen=True)
class _Stream:
    steps: "tuple[_Opened, ...]"


_Opened = _Plain | _Stream | Use


@dataclass(frozen=True)
class _Beside:
    """A stream as one client does it."""

    steps: "tuple[Use | _Beside, ...]"


class _Composite:
    def __init__(
        self,
        steps: Sequence[_Opened],
        order: WorkOrder,
        close: Callable[[str], Request],
        connections: int,
    ) -> None:
        self.endless = True
        self.connections = connections
        self._steps = steps
        self._order = order
        self._close = close

    def program(self, client: int) -> Program:
        """What one client asks."""
        steps = [_made(step, client) for step in self._steps]
        return lambda: self._script(steps)

    def close(self) -> None:
        """Nothing is held."""

    def _script(self, steps: Sequence[Use | _Beside]) -> Script:
        held = Held()
        answer = yield from _run(steps, held)
        if answer.outcome is not Outcome.OK:
            # Whoever fails closes nothing; points that are left open would weigh on what comes next.
            for point in held.points.values():
                yield from ask(self._close(point))
        return answer


def _opened(step: Step, order: WorkOrder, open_workload: OpenWorkload, numbers: Iterator[int]) -> _Opened:
    if isinstance(step, Stream):
        return _Stream(tuple(_opened(inner, order, open_workload, numbers) for inner in step.stream))
    # Values of its own for every operation.
    own = WorkOrder(order.context, order.clients, f"{order.key}/{next(numbers)}")
    if type(step) in _USES:
        return _USES[type(step)](step, own)
    return _Plain(open_workload(step, own), getattr(step, "with_point_in_time_from", None))


def _made(step: _Opened, client: int) -> Use | _Beside:
    """A step as one client does it."""
    if isinstance(step, _Stream):
        return _Beside(tuple(_made(inner, client) for inner in step.steps))
    if not isinstance(step, _Plain):
        return step
    program, point = step.workload.program(client), step.point

    def use(held: Held) -> Script:
        made = program()
        if made is None:
            return _OK
        if point is not None:
            return (yield from within_point(made, point, held))
        if isinstance(made, Request):
            return (yield from ask(made)).answer
        return (yield from made)

    return use


def _run(steps: Sequence[Use | _Beside], held: Held) -> Generator[Item, Reply | None, Answer]:
    """Steps in order; neighbouring streams together."""
    beside: list[_Beside] = []
    for step in (*steps, None):
        if isinstance(step, _Beside):
            beside.append(step)
            continue
        if beside:
            reply = yield Together(tuple(_run(stream.steps, held) for stream in beside))
            beside = []
            if reply is not None and reply.answer.outcome is not Outcome.OK:
                return reply.answer
        if step is None:
            break
        answer = yield from step(held)
        if answer is not None and answer.outcome is not Outcome.OK:
            return answer
    return _OK


def _widest(steps: Sequence[Step]) -> int:
    """How many requests of these steps can be on their way at the same time."""
    widest, beside = 1, 0
    for step in steps:
        beside = beside + _widest(step.stream) if isinstance(step, Stream) else 0
        widest = max(widest, beside)
    return widest
