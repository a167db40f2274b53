"""Composites, measured as one, and the points in time and asynchronous searches that their parts hand on."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import count
from typing import Any
from urllib.parse import quote

import msgspec

from benchctl.load.request import UNDECODABLE, Answer, Request, accepting, judge_plain, judge_search, shorten
from benchctl.load.work.common import Envelope, with_body
from benchctl.load.work.searches import searches_of
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
from benchctl.results.plan import EngineName
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

_ASYNC: Mapping[EngineName, str] = {
    "elasticsearch": "/_async_search",
    "opensearch": "/_plugins/_asynchronous_search",
}
_PIT_KEEP_ALIVE = "1m"  # Rally's, from page to page
_RUNNING = frozenset({"INIT", "RUNNING"})
_OK = Answer(Outcome.OK)


class _Opened(msgspec.Struct, gc=False):
    id: str = ""  # Elasticsearch's word
    pit_id: str = ""  # OpenSearch's


class _Progress(msgspec.Struct, gc=False):
    is_running: bool = False
    state: str = ""
    response: msgspec.Raw = msgspec.Raw()


_decode_opened = msgspec.json.Decoder(_Opened).decode
_decode_progress = msgspec.json.Decoder(_Progress).decode


@dataclass
class Held:
    """What the operations of one composite have opened and not closed yet.

    Attributes:
        points: operation name -> id of its point in time, as the last answer had it.
        searches: operation name -> id of its asynchronous search; empty when its answer came at once.
    """

    points: dict[str, str] = field(default_factory=dict)
    searches: dict[str, str] = field(default_factory=dict)


Use = Callable[[Held], Script]
"""What has been opened so far -> the script of one operation."""


def _open_point(operation: OpenPointInTime, order: WorkOrder) -> Use:
    """Open a point in time."""
    index = order.index(operation.target)
    path = f"/{index}/_pit" if order.context.engine == "elasticsearch" else f"/{index}/_search/point_in_time"
    request = Envelope(operation).request(
        "POST",
        path,
        params={"keep_alive": operation.keep_alive, **operation.url_params},
        judge=judge_plain,
    )

    def use(held: Held) -> Script:
        reply = yield from ask(request)
        if reply.answer.outcome is not Outcome.OK:
            return reply.answer
        found = _opened(reply)
        if not found:
            return Answer(Outcome.BAD_BODY, reason="it does not say which point in time it opened")
        held.points[operation.name] = found
        return reply.answer

    return use


def _close_point(operation: ClosePointInTime | DeletePointInTime, order: WorkOrder) -> Use:
    """Close a point in time, or all of them."""
    name = operation.with_point_in_time_from
    closing = _close_request(Envelope(operation), order.context.engine, operation.url_params)
    everything = Envelope(operation).request(
        "DELETE",
        "/_search/point_in_time/_all",
        params=operation.url_params,
        judge=accepting(judge_plain, {HTTPStatus.NOT_FOUND}),
    )

    def use(held: Held) -> Script:
        if name is None:
            held.points.clear()
            return (yield from ask(everything)).answer
        found = held.points.pop(name, "")
        if not found:
            return _not_there(name)
        return (yield from ask(closing(found))).answer

    return use


def _close_request(
    envelope: Envelope, engine: EngineName, params: Mapping[str, str] | None = None
) -> Callable[[str], Request]:
    """Id of a point in time -> the request that closes it."""
    path = "/_pit" if engine == "elasticsearch" else "/_search/point_in_time"
    request = envelope.request(
        "DELETE", path, params=params, judge=accepting(judge_plain, {HTTPStatus.NOT_FOUND})
    )

    def made(found: str) -> Request:
        body = {"id": found} if engine == "elasticsearch" else {"pit_id": [found]}
        return with_body(request, msgspec.json.encode(body))

    return made


def _list_points(operation: ListAllPointInTime, _order: WorkOrder) -> Use:
    """Ask for all points in time."""
    request = Envelope(operation).request(
        "GET", "/_search/point_in_time/_all", params=operation.url_params, judge=judge_plain
    )

    def use(_held: Held) -> Script:
        return (yield from ask(request)).answer

    return use


def within_point(made: Request | Script, name: str, held: Held) -> Script:
    """Searches of a point in time: no index in the path, the point in the body, and the next one kept.

    Args:
        made: a search, or one of several pages.
        name: of the operation that opened it.
        held: what has been opened.
    """
    if name not in held.points:
        return _not_there(name)
    if isinstance(made, Request):
        return (yield from _ask_within(made, name, held)).answer
    reply: Reply | None = None
    while True:
        try:
            item = made.send(reply)
        except StopIteration as end:
            answer: Answer | None = end.value
            return answer
        reply = (yield from _ask_within(item, name, held)) if isinstance(item, Request) else (yield item)


def _ask_within(request: Request, name: str, held: Held) -> Generator[Item, Reply | None, Reply]:
    point = msgspec.json.encode({"id": held.points[name], "keep_alive": _PIT_KEEP_ALIVE})
    # A search's body is an object: a key more goes before its end.
    before = request.body[:-1] if len(request.body) > len(b"{}") else b"{"
    body = before + (b"," if len(before) > 1 else b"") + b'"pit":' + point + b"}"
    _, slash, query = request.path.partition("/_search")
    changed = msgspec.structs.replace(request, path=f"{slash}{query}", body=body)
    reply = yield from ask(changed)
    if reply.answer.outcome is Outcome.OK:
        held.points[name] = _opened(reply) or held.points[name]
    return reply


def _submit_search(operation: SubmitAsyncSearch, order: WorkOrder) -> Use:
    """Start an asynchronous search."""
    engine = order.context.engine
    index = order.index(operation.index)
    # As in Rally, even a fast search is not to be answered at once.
    params = {"wait_for_completion_timeout": "0", **operation.url_params}
    if engine == "opensearch":
        path, params = _ASYNC[engine], {"index": index, **params}
    else:
        path = f"/{index}{_ASYNC[engine]}"
    request = Envelope(operation).request(
        "POST",
        path,
        msgspec.json.encode(operation.body),
        params=params,
        judge=judge_plain,
        searches=searches_of(operation.body, order.context),
    )

    def use(held: Held) -> Script:
        reply = yield from ask(request)
        if reply.answer.outcome is Outcome.OK:
            held.searches[operation.name] = _opened(reply)
        return reply.answer

    return use


def _get_searches(operation: GetAsyncSearch, order: WorkOrder) -> Use:
    """Fetch answers, asking until each is there."""
    envelope, path = Envelope(operation), _ASYNC[order.context.engine]

    def use(held: Held) -> Script:
        last = _OK
        for name, found in _searches(operation.retrieve_results_for, held):
            if found is None:
                return _not_there(name)
            request = envelope.request(
                "GET", f"{path}/{quote(found, safe='')}", params=operation.url_params, judge=judge_plain
            )
            last = yield from _fetch(request, operation)
            if last.outcome is not Outcome.OK:
                return last
        return last

    return use


def _fetch(request: Request, operation: GetAsyncSearch) -> Generator[Item, Reply | None, Answer]:
    left = operation.retries
    while True:
        reply = yield from ask(request)
        if reply.answer.outcome is not Outcome.OK:
            return reply.answer
        try:
            progress = _decode_progress(reply.exchange.body)
        except UNDECODABLE as err:
            return Answer(Outcome.BAD_BODY, reason=shorten(f"it does not say how far it is: {err}"))
        if not progress.is_running and progress.state not in _RUNNING:
            return judge_search(reply.exchange.status, bytes(progress.response))
        if not operation.retry_until_success and not left:
            return Answer(Outcome.BAD_BODY, reason="the search is still running")
        left -= 1
        yield operation.retry_wait_period


def _delete_searches(operation: DeleteAsyncSearch, order: WorkOrder) -> Use:
    """Let the node forget asynchronous searches."""
    envelope, path = Envelope(operation), _ASYNC[order.context.engine]

    def use(held: Held) -> Script:
        for name, found in _searches(operation.delete_results_for, held):
            if found is None:
                return _not_there(name)
            reply = yield from ask(
                envelope.request(
                    "DELETE",
                    f"{path}/{quote(found, safe='')}",
                    params=operation.url_params,
                    judge=judge_plain,
                )
            )
            if reply.answer.outcome is not Outcome.OK:
                return reply.answer
            del held.searches[name]
        return _OK

    return use


def _searches(names: str | tuple[str, ...], held: Held) -> Iterator[tuple[str, str | None]]:
    """Names and ids, None for one that was not started; those that were answered at once are left out."""
    for name in (names,) if isinstance(names, str) else names:
        found = held.searches.get(name)
        if found != "":
            yield name, found


def _opened(reply: Reply) -> str:
    """The id that an answer has; empty when there is none."""
    try:
        found = _decode_opened(reply.exchange.body)
    except UNDECODABLE:
        return ""
    return found.pit_id or found.id


def _not_there(name: str) -> Answer:
    return Answer(Outcome.BAD_BODY, reason=f"what '{name}' would have opened is not there")


# A composite: its operations one after the other, its streams at the same time, measured as one.

_USES: Mapping[type[Operation], Callable[[Any, WorkOrder], Use]] = {
    OpenPointInTime: _open_point,
    CreatePointInTime: _open_point,
    ClosePointInTime: _close_point,
    DeletePointInTime: _close_point,
    ListAllPointInTime: _list_points,
    SubmitAsyncSearch: _submit_search,
    GetAsyncSearch: _get_searches,
    DeleteAsyncSearch: _delete_searches,
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
    steps = tuple(_open_step(step, order, open_workload, numbers) for step in operation.requests)
    connections = _widest(operation.requests)
    if operation.max_connections is not None:
        connections = min(connections, operation.max_connections)
    return _Composite(steps, order, _close_request(Envelope(operation), order.context.engine), connections)


@dataclass(frozen=True)
class _Plain:
    """An operation that uses nothing of the others but perhaps a point in time."""

    workload: Workload
    point: str | None


@dataclass(frozen=True)
class _Stream:
    steps: "tuple[_OpenedStep, ...]"


_OpenedStep = _Plain | _Stream | Use


@dataclass(frozen=True)
class _Beside:
    """A stream as one client does it."""

    steps: "tuple[Use | _Beside, ...]"


class _Composite:
    def __init__(
        self,
        steps: Sequence[_OpenedStep],
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


def _open_step(
    step: Step, order: WorkOrder, open_workload: OpenWorkload, numbers: Iterator[int]
) -> _OpenedStep:
    if isinstance(step, Stream):
        return _Stream(tuple(_open_step(inner, order, open_workload, numbers) for inner in step.stream))
    # Values of its own for every operation.
    own = WorkOrder(order.context, order.clients, f"{order.key}/{next(numbers)}")
    if type(step) in _USES:
        return _USES[type(step)](step, own)
    return _Plain(open_workload(step, own), getattr(step, "with_point_in_time_from", None))


def _made(step: _OpenedStep, client: int) -> Use | _Beside:
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
