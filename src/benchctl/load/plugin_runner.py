"""Drives a plug-in's runner: a coroutine in its client's thread, whose requests are one operation."""

import asyncio
import io
import json
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, reduce
from http import HTTPStatus
from importlib import import_module
from typing import Any

import msgspec
import numpy as np
from urllib3 import HTTPConnectionPool
from urllib3.exceptions import ProtocolError, ReadTimeoutError

from benchctl import network
from benchctl.load.transport import Answer, Exchange, Request
from benchctl.load.work import (
    CANCELLED,
    Driven,
    Program,
    Reply,
    Script,
    Send,
    Together,
    WorkOrder,
    follow,
    with_body,
)
from benchctl.load.work.bulk import bulk_request
from benchctl.load.work.judges import answerable, judge_of, shorten
from benchctl.load.work.searches import searches_in
from benchctl.official import JSON, Carry, elasticsearch_over, opensearch_over
from benchctl.plugin.code import Code
from benchctl.plugin.rally_api import Unsupported
from benchctl.plugin.session import Cancelled, PluginError, blamed
from benchctl.results.plan import EngineName
from benchctl.results.samples import Outcome
from benchctl.track.operations import Operation
from benchctl.track.operations.catalogue import OPERATION_TYPES, PluginOperation, decode_operation
from benchctl.track.operations.search import Bulk
from benchctl.track.template import encoded_names

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

    completed = False
    last: Answer | None = None  # clients judge the answers

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

    def close(self) -> None:
        """Nothing: its clients' connections are theirs."""

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
        parts = _parts(params, self._kind)
        programs = [
            self._order.open(own_operation(self._kind, self._name, part)).program(self._client)
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
        operation = own_operation(self._kind, self._name, {**params, "bulk-size": 1})
        if not isinstance(operation, Bulk):
            raise TypeError(f"{self._kind} is not a bulk operation")
        # Action lines name the index themselves, as in Rally.
        index = None if params.get("action-metadata-present", True) else operation.index
        return bulk_request(operation, f"/{self._order.index(index)}/_bulk" if index else "/_bulk")


def own_operation(kind: str, name: str, params: Mapping[str, Any]) -> Operation:
    """An operation of a built-in type from a source's parameters."""
    try:
        return decode_operation({**_kept(params, kind), "name": name, "operation-type": kind})
    except msgspec.ValidationError as err:
        raise PluginError(
            f"the parameter source of operation '{name}' returned invalid parameters of {kind}: {err}"
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


def _parts(params: Mapping[str, Any], kind: str) -> list[dict[str, Any]] | None:
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
        raise PluginError(f"a parameter source returned what is not JSON: {err}") from err
    if b"null" in encoded:  # what msgspec writes NaN and infinities as, which would change the request
        try:
            json.dumps(value, allow_nan=False, default=lambda other: _plain(other, str))
        except ValueError as err:
            raise PluginError(f"a parameter source returned what is not JSON: {err}") from err
    return encoded


def _plain(value: object, other: Callable[[object], object] | None = None) -> object:
    """Converts the numpy values that plug-ins compute with; `other` converts all else."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if other is None:
        raise TypeError(f"an object of type {type(value).__name__}")
    return list(value) if isinstance(value, set | frozenset) else other(value)


# A runner's client is an engine's official one, over the measured wire.

_TIMEOUT_S = 60.0
_PRODUCT = {"x-elastic-product": "Elasticsearch"}
_CHATTY = ("opensearch", "elastic_transport")
# What they say of themselves and of the connection is the wire's business.
_OWN_HEADERS = frozenset({"user-agent", "connection", "x-elastic-client-meta", "accept-encoding"})


def _plain_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Without what clients say of themselves, and plain JSON whatever the major version of the client."""
    given = {name.lower(): value for name, value in headers.items()}
    kept = {name: value for name, value in given.items() if name not in _OWN_HEADERS}
    for name in ("accept", "content-type"):
        if "vnd.elasticsearch+" in kept.get(name, ""):
            kept[name] = kept[name].partition(";")[0].replace("vnd.elasticsearch+", "")
    return kept


class Engine:
    """An official client that sends by a function, in what the two differ."""

    def __init__(self, engine: EngineName, carry: Carry) -> None:
        for name in _CHATTY:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._elastic = engine == "elasticsearch"
        self.title = "elasticsearch-py" if self._elastic else "opensearch-py"
        self.client: Any = (elasticsearch_over if self._elastic else opensearch_over)(carry)
        package = import_module(type(self.client).__module__.partition(".")[0])
        # What it raises about a request.
        self.errors = (
            (package.ApiError, package.TransportError) if self._elastic else (package.OpenSearchException,)
        )
        # What all parts of a client derive from, such as the one for indices.
        self.part: type = type(self.client.indices).__bases__[0]

    def options(self, given: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return the client with options for the next request, and options that must be arguments instead."""
        ours, theirs = ("ignore", "ignore_status") if self._elastic else ("ignore_status", "ignore")
        named = {
            theirs if name == ours else name: value for name, value in given.items() if value is not None
        }
        if not self._elastic:
            return self.client, named
        return (self.client.options(**named) if named else self.client), {}

    def ask(self, client: Any, method: str, path: str, params: Mapping[str, Any], **sent: Any) -> Any:
        """Send any request, with `headers` and `body`, by the client or one with other options."""
        if not self._elastic:
            target = path if path.startswith("/") else f"/{path}"
            return client.transport.perform_request(method, target, params=dict(params), **sent)
        kind = {} if sent["body"] is None else {"content-type": JSON}
        sent["headers"] = {"accept": JSON, **kind, **sent["headers"]}
        return client.perform_request(method, path, params=params or None, **sent)


def _content_type(body: bytes) -> str:
    """The wire keeps no headers of answers; engines answer in JSON, but for their tables of text."""
    return JSON if body.lstrip()[:1] in {b"{", b"["} else "text/plain"


_LOOK_S = 0.05
_MOST_32_BITS, _MOST_64_BITS = 2**31 - 1, 2**63 - 1  # what samples hold
_OPTIONS = frozenset({"request_timeout", "ignore", "headers", "opaque_id"})


class RawResponse(io.BytesIO):
    """An answer that was asked for as it came."""

    @property
    def body(self) -> "RawResponse":
        """Itself: Rally has both forms."""
        return self


class RunnerClient:
    """The official client as a runner gets it: its methods can be awaited.

    Args:
        work: whose runner it is.
        path: names of the part of the client that it is.
        options: for all of its requests.
    """

    def __init__(
        self, work: "RunnerWork", path: tuple[str, ...] = (), options: Mapping[str, Any] | None = None
    ) -> None:
        self._work = work
        self._path = path
        self._options = dict(options or {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        engine, path = self._work.engine, (*self._path, name)
        try:
            value = reduce(getattr, path, engine.client)
        except AttributeError as err:
            raise Unsupported(f"{engine.title} has no '{'.'.join(path)}'") from err
        if isinstance(value, engine.part):
            return RunnerClient(self._work, path, self._options)
        return self._method(path) if callable(value) else value

    def options(self, **options: Any) -> "RunnerClient":
        """Return the same client with options for its requests."""
        return RunnerClient(self._work, self._path, {**self._options, **options})

    def return_raw_response(self) -> None:
        """Return further responses of this operation undecoded."""
        self._work.raw = True

    @property
    def transport(self) -> "RunnerClient":
        """Itself, by whose `perform_request` OpenSearch's plug-ins send requests."""
        return self

    async def perform_request(
        self,
        method: str,
        path: str = "",
        params: Mapping[str, Any] | None = None,
        body: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        url: str = "",
        **_: object,
    ) -> Any:
        """Send any request, in the form of either client or its transport."""
        options = dict(self._options)
        sent_headers = {**(options.pop("headers", None) or {}), **(headers or {})}
        if options.get("opaque_id") is not None:
            sent_headers["x-opaque-id"] = options.pop("opaque_id")
        if isinstance(body, list) and any("ndjson" in str(value) for value in sent_headers.values()):
            # Only one of the two clients would make lines of it.
            body = bulk_body(body)[0]
        query = dict(params or {})
        if "request_timeout" in query:
            options["request_timeout"] = query.pop("request_timeout")
        engine = self._work.engine
        client, more = engine.options(options)
        return self._work.response(
            engine.ask(client, method, path or url, query | more, headers=sent_headers, body=body)
        )

    async def perform_operation(self, kind: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Run an operation of a built-in type."""
        return await self._work.perform(kind, params)

    def __repr__(self) -> str:
        return f"<{' '.join((self._work.engine.title, *self._path))} of benchctl>"

    def _method(self, path: tuple[str, ...]) -> Callable[..., Awaitable[Any]]:
        work, options = self._work, self._options

        async def call(*args: Any, **kwargs: Any) -> Any:
            # Clients of an earlier age took these as arguments, and plug-ins still give them so.
            kwargs |= kwargs.pop("params", None) or {}
            own = {key: kwargs.pop(key) for key in _OPTIONS & kwargs.keys()}
            client, more = work.engine.options({**options, **own})
            before = work.reply
            try:
                result = reduce(getattr, path, client)(*args, **{**kwargs, **more})
            except TypeError as err:
                if work.reply is not before:
                    raise
                raise Unsupported(f"{work.engine.title}: {err}") from err
            return work.response(result)

        return call


def _cancelled(tasks: Iterable[asyncio.Task[Any]]) -> list[asyncio.Task[Any]]:
    """Cancel tasks, and return them."""
    return [task for task in tasks if task.cancel()]


def _look(
    task: asyncio.Task[Any] | None, halted: Callable[[], bool], watch: list[asyncio.TimerHandle]
) -> None:
    """Cancel a task once `halted`, and look again; `watch` has the next look, which can be cancelled."""
    if task is not None and halted():
        task.cancel()
    watch[:] = [asyncio.get_running_loop().call_later(_LOOK_S, _look, task, halted, watch)]


async def _watched(coroutine: Coroutine[Any, Any, Any], halted: Callable[[], bool]) -> Any:
    """Run a coroutine to its end, or to where it waits once `halted`; what it has begun ends with it."""
    own = asyncio.current_task()
    watch: list[asyncio.TimerHandle] = []
    watch.append(asyncio.get_running_loop().call_later(_LOOK_S, _look, own, halted, watch))
    try:
        return await coroutine
    finally:
        watch[0].cancel()
        if left := _cancelled(asyncio.all_tasks() - {own}):
            await asyncio.gather(*left, return_exceptions=True)


@dataclass
class RunnerWork:
    """Does the operations of one client with a runner."""

    _runner: Any  # a coroutine function, or an object with `async __call__`
    _operation: PluginOperation
    _code: Code  # of the plug-in, for messages
    _order: WorkOrder
    _client: int
    _send: Send | None = None  # sends a request; None between operations
    # Of the operation: what came back last, the first response with status 200 that is no success all the
    # same, and whether the runner wants responses undecoded.
    reply: Reply | None = None
    _partial: Answer | None = None
    raw: bool = False
    last: Answer | None = None  # what the last operation came to
    _own: dict[str, OwnOperations] = field(default_factory=dict)

    @property
    def _doing(self) -> str:
        return f"the runner of operation '{self._operation.name}'"

    @property
    def completed(self) -> bool:
        """Return whether the runner says that all is done; one that says nothing goes on."""
        return bool(getattr(self._runner, "completed", False))

    def make(self, params: Mapping[str, Any]) -> Script:
        """Return the script of one operation."""
        answer = Answer(Outcome.OK)

        def run(send: Send, halted: Callable[[], bool]) -> None:
            nonlocal answer
            named = {"name": self._operation.name, "operation-type": self._operation.type}
            answer = self._run({**named, **params}, send, halted)

        yield Driven(run)
        self.last = answer
        return answer

    def close(self) -> None:
        """Close the event loop, with what an interrupt left in it."""
        if "_loop" not in vars(self):
            return
        if left := _cancelled(asyncio.all_tasks(self._loop)):
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.close()

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        """An event loop that prints nothing: what ends a task is on its way already."""
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda *_: None)
        return loop

    @cached_property
    def engine(self) -> Engine:
        """The official client of its engine, made when it is first needed."""
        return Engine(self._order.context.engine, self._carry)

    def response(self, decoded: Any) -> Any:
        """Return a decoded response, or the raw one."""
        return RawResponse(self.reply.exchange.body) if self.raw and self.reply is not None else decoded

    def _carry(
        self, method: str, target: str, body: bytes, headers: Mapping[str, str], timeout_s: float | None
    ) -> network.Answer:
        """Send one request of the operation for an official client.

        Raises:
            Cancelled: If the client is to end.
            urllib3.exceptions.HTTPError: If there was no whole answer, as the clients expect it.
        """
        if self._send is None:
            raise RuntimeError("a client of benchctl's was used outside of its runner")
        path = target if target.startswith("/") else f"/{target}"
        reply = self._ask(
            Request(
                method=method,
                path=answerable(method, path),
                body=body,
                headers=tuple(f"{name}: {value}" for name, value in _plain_headers(headers).items()),
                timeout_s=_TIMEOUT_S if timeout_s is None else timeout_s,
                judge=judge_of(method, path),
                searches=searches_in(method, path, body, self._order.context),
            )
        )
        exchange = reply.exchange
        if exchange.failure is Outcome.TIMEOUT:
            raise ReadTimeoutError(HTTPConnectionPool("carried"), target, exchange.detail)
        if exchange.failure is not None:
            raise ProtocolError(exchange.detail)
        if exchange.status < HTTPStatus.MULTIPLE_CHOICES and reply.answer.outcome is not Outcome.OK:
            self._partial = self._partial or reply.answer
        sent_headers = {**_PRODUCT, "content-type": _content_type(exchange.body)}
        return network.Answer(exchange.status, sent_headers, exchange.body)

    def _run(self, params: dict[str, Any], send: Send, halted: Callable[[], bool]) -> Answer:
        self._send, self.reply, self._partial, self.raw = send, None, None, False
        try:
            result = self._loop.run_until_complete(_watched(self._call(params), halted))
        except (Cancelled, asyncio.CancelledError):
            return CANCELLED
        except Unsupported as err:
            return Answer(Outcome.HTTP_ERROR, reason=shorten(str(err)), lacking=shorten(str(err)))
        except (KeyboardInterrupt, PluginError):
            raise
        except BaseException as err:
            if isinstance(err, self.engine.errors):
                # Its frames refer to it, and nobody collects cycles while a task is measured.
                return self._failed(f"{type(err).__name__}: {err.with_traceback(None)}")
            raise blamed(err, self._code, self._doing) from err
        finally:
            self._send = None
        answer, partial = self._judged(result), self._partial
        # Clients raise nothing about failed shards and refused documents: the runner may not have looked.
        if partial is None or (isinstance(result, dict) and "success" in result):
            return answer
        return msgspec.structs.replace(answer, outcome=partial.outcome, reason=partial.reason)

    async def _call(self, params: dict[str, Any]) -> Any:
        client: Any = RunnerClient(self)
        if getattr(self._runner, "multi_cluster", False):
            client = {"default": client}
        try:
            if hasattr(self._runner, "__aenter__") and hasattr(self._runner, "__aexit__"):
                async with self._runner:
                    return await self._runner(client, params)
            return await self._runner(client, params)
        except SystemExit as err:  # event loops let it pass, and print it
            raise blamed(err, self._code, self._doing) from err

    async def perform(self, kind: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Do an operation of benchctl's own within one of the runner's."""
        if kind not in self._own:
            self._own[kind] = OwnOperations(kind, self._operation.name, self._order, self._client)
        made = self._own[kind].make(params)
        if made is None:
            return {"weight": 0, "unit": "ops", "success": True}
        if isinstance(made, Request):
            answer, weight = self._ask(made).answer, made.weight
        else:
            answer, weight = await self._follow(made), 1
        result = {"weight": weight, "unit": "ops", "success": answer.outcome is Outcome.OK}
        if answer.hits >= 0:
            result |= {"hits": answer.hits, "hits_relation": "eq" if answer.hits_exact else "gte"}
        return result | ({"took": answer.took_ms} if answer.took_ms >= 0 else {})

    def _ask(self, request: Request) -> Reply:
        if self._send is None:
            raise PluginError("an operation was requested outside of a runner")
        reply = self.reply = self._send(request)
        if reply.answer.outcome is Outcome.CANCELLED:
            raise Cancelled
        return reply

    async def _follow(self, script: Script) -> Answer:
        """Several requests, and the pauses between them."""
        reply: Reply | None = None
        answer = Answer(Outcome.OK)
        while True:
            try:
                item = script.send(reply)
            except StopIteration as end:
                return end.value or answer
            reply = None
            if isinstance(item, Request):
                reply = self._ask(item)
                answer = reply.answer
            elif isinstance(item, Together):
                for branch in item.scripts:
                    answer = await self._follow(branch)
                reply = Reply(Exchange(0, 0, 0, 0, b"", 0), answer)
            elif isinstance(item, Driven):
                raise PluginError("a runner cannot call another plug-in's runner this way")
            else:
                await asyncio.sleep(item)

    def _failed(self, reason: str, weight: int = 1, unit: str = "") -> Answer:
        """Return what the wire saw of a failure that the runner reports, or did not handle."""
        last = None if self.reply is None else self.reply.answer
        if last is None or last.outcome is Outcome.OK:
            return Answer(Outcome.BAD_BODY, reason=shorten(reason), weight=weight, unit=unit)
        return msgspec.structs.replace(last, weight=weight, unit=unit)

    def _judged(self, result: Any) -> Answer:
        """Return what the runner says of its operation, in the forms that Rally understands."""
        if isinstance(result, tuple) and len(result) == len(("weight", "unit")):
            return Answer(Outcome.OK, weight=self._weight(result[0]), unit=str(result[1]))
        if not isinstance(result, dict):
            return Answer(Outcome.OK, unit="ops")
        weight, unit = self._weight(result.get("weight", 1)), str(result.get("unit", "ops"))
        if not result.get("success", True):
            description = result.get("error-description") or result.get("error-type") or "nothing more"
            return self._failed(f"its runner reports a failure, and {description}", weight, unit)
        return Answer(
            Outcome.OK,
            took_ms=_count(result.get("took"), _MOST_32_BITS),
            hits=_count(result.get("hits"), _MOST_64_BITS),
            hits_exact=result.get("hits_relation") == "eq",
            weight=weight,
            unit=unit,
        )

    def _weight(self, value: object) -> int:
        """Units of throughput as a whole number; what is not a number counts as 1.

        Raises:
            PluginError: If the number is out of range.
        """
        if not isinstance(value, int | float):
            return 1
        if not -_MOST_32_BITS <= value <= _MOST_32_BITS:  # NaN, too
            raise PluginError(f"{self._code.path}: {self._doing} gave weight {value}")
        return max(round(value), 0)


def _count(value: object, most: int) -> int:
    """A number of a runner's answer that samples can hold; -1 for anything else."""
    return value if isinstance(value, int) and 0 <= value <= most else -1
