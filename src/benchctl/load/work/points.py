"""Points in time and asynchronous searches: opened by one operation, used by others of the same composite."""

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import quote

import msgspec

from benchctl.load.judge import UNDECODABLE, accepting, judge_plain, judge_search, shorten
from benchctl.load.request import Answer, Request
from benchctl.load.work.envelope import Envelope, with_body
from benchctl.load.work.searches import searches_of
from benchctl.load.workload import Item, Reply, Script, WorkOrder, ask
from benchctl.results.plan import EngineName
from benchctl.results.samples import Outcome
from benchctl.track.operations.composite import (
    ClosePointInTime,
    DeleteAsyncSearch,
    DeletePointInTime,
    GetAsyncSearch,
    ListAllPointInTime,
    OpenPointInTime,
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


def open_point(operation: OpenPointInTime, order: WorkOrder) -> Use:
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


def close_point(operation: ClosePointInTime | DeletePointInTime, order: WorkOrder) -> Use:
    """Close a point in time, or all of them."""
    name = operation.with_point_in_time_from
    closing = close_request(Envelope(operation), order.context.engine, operation.url_params)
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


def close_request(
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


def list_points(operation: ListAllPointInTime, _order: WorkOrder) -> Use:
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


def submit_search(operation: SubmitAsyncSearch, order: WorkOrder) -> Use:
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


def get_searches(operation: GetAsyncSearch, order: WorkOrder) -> Use:
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


def delete_searches(operation: DeleteAsyncSearch, order: WorkOrder) -> Use:
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
