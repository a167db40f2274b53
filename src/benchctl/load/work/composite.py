"""Composites, measured as one, and the point-in-time and asynchronous searches that their parts share."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from itertools import count
from typing import Any, TypeAlias
from urllib.parse import quote

import msgspec

from benchctl.load.transport import Answer, Request
from benchctl.load.work import (
    Envelope,
    Item,
    Program,
    Reply,
    Script,
    Together,
    Workload,
    WorkOrder,
    ask,
    follow,
    poll,
    scripted,
    with_body,
)
from benchctl.load.work.judges import RUNNING, UNDECODABLE
from benchctl.load.work.searches import searches_of
from benchctl.results.plan import EngineName
from benchctl.results.samples import Outcome
from benchctl.track.operations import Operation
from benchctl.track.operations.catalogue import (
    ClosePointInTime,
    Composite,
    CreatePointInTime,
    DeleteAsyncSearch,
    DeletePointInTime,
    GetAsyncSearch,
    OpenPointInTime,
    Phase,
    Step,
    Stream,
    SubmitAsyncSearch,
    walk,
)

_ASYNC: Mapping[EngineName, str] = {
    "elasticsearch": "/_async_search",
    "opensearch": "/_plugins/_asynchronous_search",
}
_POINTS: Mapping[EngineName, str] = {"elasticsearch": "/_pit", "opensearch": "/_search/point_in_time"}
_PIT_KEEP_ALIVE = "1m"  # Rally's, from page to page
_OK = Answer(Outcome.OK)


class _OpenResponse(msgspec.Struct, gc=False):
    id: str = ""  # Elasticsearch's word
    pit_id: str = ""  # OpenSearch's


class _Progress(msgspec.Struct, gc=False):
    is_running: bool = False
    state: str = ""


_decode_open = msgspec.json.Decoder(_OpenResponse).decode
_decode_progress = msgspec.json.Decoder(_Progress).decode


@dataclass
class Held:
    """Points in time and searches that a composite has opened and not closed yet."""

    # Operation name -> id of its point in time, as of the last answer.
    points: dict[str, str] = field(default_factory=dict)
    # Operation name -> id of its asynchronous search; empty when it was answered at once.
    searches: dict[str, str] = field(default_factory=dict)


Use = Callable[[Held], Script]
"""Open contexts -> the script of one operation."""


def _open_point(operation: OpenPointInTime, order: WorkOrder) -> Use:
    path = f"/{order.index(operation.target)}{_POINTS[order.context.engine]}"
    params = {"keep_alive": operation.keep_alive, **operation.url_params}
    request = Envelope(operation).request("POST", path, params=params)

    def use(held: Held) -> Script:
        reply = yield from ask(request)
        if reply.answer.outcome is not Outcome.OK:
            return reply.answer
        point = _opened_id(reply)
        if not point:
            return Answer(Outcome.BAD_BODY, reason="no point-in-time id in the response")
        held.points[operation.name] = point
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
        accepted={HTTPStatus.NOT_FOUND},
    )

    def use(held: Held) -> Script:
        if name is None:
            held.points.clear()
            return (yield from ask(everything)).answer
        point_id = held.points.pop(name, "")
        if not point_id:
            return _not_there(name)
        return (yield from ask(closing(point_id))).answer

    return use


def _close_request(
    envelope: Envelope, engine: EngineName, params: Mapping[str, str] | None = None
) -> Callable[[str], Request]:
    """Id of a point in time -> the request that closes it."""
    accepted = {HTTPStatus.NOT_FOUND}
    request = envelope.request("DELETE", _POINTS[engine], params=params, accepted=accepted)
    if engine == "elasticsearch":
        return lambda point: with_body(request, msgspec.json.encode({"id": point}))
    return lambda point: with_body(request, msgspec.json.encode({"pit_id": [point]}))


def within_point(work: Request | Script, name: str, held: Held) -> Script:
    """Run a search, or a script of pages, in the point in time that operation `name` opened.

    Paths lose their index, bodies get the point in time, and the id of each answer is kept for the next
    request.
    """
    if name not in held.points:
        return _not_there(name)
    return (yield from follow(work, lambda request: _ask_within(request, name, held)))


def _ask_within(request: Request, name: str, held: Held) -> Generator[Item, Reply | None, Reply]:
    point = msgspec.json.encode({"id": held.points[name], "keep_alive": _PIT_KEEP_ALIVE})
    # A search's body is an object: a key more goes before its end.
    before = request.body[:-1] if len(request.body) > len(b"{}") else b"{"
    body = before + (b"," if len(before) > 1 else b"") + b'"pit":' + point + b"}"
    _, slash, query = request.path.partition("/_search")
    changed = msgspec.structs.replace(request, path=f"{slash}{query}", body=body)
    reply = yield from ask(changed)
    if reply.answer.outcome is Outcome.OK:
        held.points[name] = _opened_id(reply) or held.points[name]
    return reply


def _submit_search(operation: SubmitAsyncSearch, order: WorkOrder) -> Use:
    engine, index = order.context.engine, order.index(operation.index)
    # As in Rally, even a fast search is not to be answered at once.
    params = {"wait_for_completion_timeout": "0", **operation.url_params}
    path = f"/{index}{_ASYNC[engine]}"
    if engine == "opensearch":
        path, params = _ASYNC[engine], {"index": index, **params}
    body, searches = msgspec.json.encode(operation.body), searches_of(operation.body, order.context)
    request = Envelope(operation).request("POST", path, body, params=params, searches=searches)

    def use(held: Held) -> Script:
        reply = yield from ask(request)
        if reply.answer.outcome is Outcome.OK:
            held.searches[operation.name] = _opened_id(reply)
        return reply.answer

    return use


def _get_searches(operation: GetAsyncSearch, order: WorkOrder) -> Use:
    """Fetch the answers, polling until each is there."""
    envelope, path = Envelope(operation), _ASYNC[order.context.engine]
    tries = None if operation.retry_until_success else operation.retries + 1
    late = Answer(Outcome.BAD_BODY, reason="the search is still running")

    def fetch(search: str) -> Script:
        request = envelope.request("GET", f"{path}/{search}", params=operation.url_params)
        return poll(request, _fetched, operation.retry_wait_period, tries, late)

    return lambda held: _each_search(operation.retrieve_results_for, held, fetch)


def _fetched(reply: Reply) -> Answer | None:
    progress = _decode_progress(reply.exchange.body)
    return None if progress.is_running or progress.state in RUNNING else reply.answer


def _delete_searches(operation: DeleteAsyncSearch, order: WorkOrder) -> Use:
    envelope, path = Envelope(operation), _ASYNC[order.context.engine]

    def delete(search: str) -> Script:
        return follow(envelope.request("DELETE", f"{path}/{search}", params=operation.url_params))

    return lambda held: _each_search(operation.delete_results_for, held, delete)


def _each_search(names: str | tuple[str, ...], held: Held, do: Callable[[str], Script]) -> Script:
    """Do something with the encoded ids of searches, but not of those that were answered at once."""
    last = _OK
    for name in (names,) if isinstance(names, str) else names:
        if name not in held.searches:
            return _not_there(name)
        if held.searches[name]:
            last = (yield from do(quote(held.searches[name], safe=""))) or _OK
            if last.outcome is not Outcome.OK:
                break
    return last


def _opened_id(reply: Reply) -> str:
    """The id in an answer; empty when there is none."""
    try:
        response = _decode_open(reply.exchange.body)
    except UNDECODABLE:
        return ""
    return response.pit_id or response.id


def _not_there(name: str) -> Answer:
    return Answer(Outcome.BAD_BODY, reason=f"what '{name}' would have opened does not exist")


_USES: Mapping[type[Operation], Callable[[Any, WorkOrder], Use]] = {
    OpenPointInTime: _open_point,
    CreatePointInTime: _open_point,
    ClosePointInTime: _close_point,
    DeletePointInTime: _close_point,
    SubmitAsyncSearch: _submit_search,
    GetAsyncSearch: _get_searches,
    DeleteAsyncSearch: _delete_searches,
}


def open_standalone(operation: DeletePointInTime, order: WorkOrder) -> Workload:
    """Open an operation on points in time outside of a composite."""
    use = _close_point(operation, order)
    return scripted(lambda: use(Held()))


def open_composite(operation: Composite, order: WorkOrder) -> Workload:
    """Open a composite: operations one after the other, neighbouring streams concurrently.

    Without streams, the engine's times are kept.
    """
    numbers = count()
    is_timed = not any(isinstance(step, Stream) for step in walk(operation.requests))
    steps = [_open_step(step, order, numbers) for step in operation.requests]
    close = _close_request(Envelope(operation), order.context.engine)
    connections = _widest(operation.requests)
    if operation.max_connections is not None:
        connections = min(connections, operation.max_connections)

    def program(client: int) -> Program:
        own = [bind(client) for bind in steps]
        return lambda: _script(own, close, is_timed=is_timed)

    return Workload(program, connections=connections)


_Bound: TypeAlias = "Use | tuple[_Bound, ...]"
"""A step as one client runs it; a stream is a tuple of such."""


def _script(steps: Sequence[_Bound], close: Callable[[str], Request], *, is_timed: bool) -> Script:
    held = Held()
    answer = yield from _run(steps, held)
    if answer.outcome is not Outcome.OK:
        # The failed operation left its points in time open, which would slow down what comes next.
        for point in held.points.values():
            yield from ask(close(point))
        return answer
    return answer if is_timed else _OK


def _open_step(step: Step, order: WorkOrder, numbers: Iterator[int]) -> Callable[[int], _Bound]:
    """Return what makes a client's part of it."""
    if isinstance(step, Stream):
        steps = [_open_step(inner, order, numbers) for inner in step.stream]
        return lambda client: tuple(bind(client) for bind in steps)
    if isinstance(step, Phase):
        inner = [_open_step(inner, order, numbers) for inner in step.requests]
        return lambda client: partial(_run, [bind(client) for bind in inner])
    # Each operation draws its own values.
    own = replace(order, key=f"{order.key}/{next(numbers)}")
    if type(step) in _USES:
        use = _USES[type(step)](step, own)
        return lambda _client: use
    workload, point = own.open(step), getattr(step, "with_point_in_time_from", None)
    return lambda client: _plain(workload.program(client), point)


def _plain(program: Program, point: str | None) -> Use:
    """An operation that shares nothing with the others but perhaps a point in time."""

    def use(held: Held) -> Script:
        work = program()
        if work is None:
            return _OK
        return (yield from follow(work) if point is None else within_point(work, point, held))

    return use


def _run(steps: Sequence[_Bound], held: Held) -> Generator[Item, Reply | None, Answer]:
    """Run steps in order, neighbouring streams concurrently; the engine's times are those of the rest."""
    beside: list[tuple[_Bound, ...]] = []
    tooks_ms: list[int] = []
    for step in (*steps, None):
        if isinstance(step, tuple):
            beside.append(step)
            continue
        if beside:
            reply = yield Together(tuple(_run(stream, held) for stream in beside))
            beside = []
            if reply is not None and reply.answer.outcome is not Outcome.OK:
                return reply.answer
        if step is None:
            break
        answer = yield from step(held)
        if answer is None:
            continue
        if answer.outcome is not Outcome.OK:
            return answer
        if answer.took_ms >= 0:
            tooks_ms += answer.tooks_ms or (answer.took_ms,)
    if not tooks_ms:
        return _OK
    return msgspec.structs.replace(_OK, took_ms=sum(tooks_ms), tooks_ms=tuple(tooks_ms))


def _widest(steps: Sequence[Step]) -> int:
    """Return how many requests of these steps can be in flight at once."""
    widest, beside = 1, 0
    for step in steps:
        beside = beside + _widest(step.stream) if isinstance(step, Stream) else 0
        widest = max(widest, beside, _widest(step.requests) if isinstance(step, Phase) else 0)
    return widest
