"""Drives a plug-in's runner: a coroutine in its client's thread, whose requests are one operation."""

import asyncio
import io
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import cached_property
from http import HTTPStatus
from typing import Any

import elasticsearch
import msgspec
import opensearchpy
from urllib3 import HTTPConnectionPool
from urllib3.exceptions import ProtocolError, ReadTimeoutError

from benchctl import network
from benchctl.load.plugin_work import OwnOperations, bulk_body
from benchctl.load.transport import Answer, Exchange, Request
from benchctl.load.work import (
    CANCELLED,
    Driven,
    Reply,
    Script,
    Send,
    Together,
    WorkOrder,
)
from benchctl.load.work.judges import answerable, judge_of, shorten
from benchctl.load.work.searches import searches_in
from benchctl.official import JSON, Carry, elasticsearch_over, opensearch_over
from benchctl.plugin.code import Code
from benchctl.plugin.rally_classes import Unsupported
from benchctl.plugin.session import PluginError, blamed
from benchctl.results.plan import EngineName
from benchctl.results.samples import Outcome

_TIMEOUT_S = 60.0
_PRODUCT = {"x-elastic-product": "Elasticsearch"}
_CHATTY = ("opensearch", "elastic_transport")
# What they say of themselves and of the connection is the wire's business.
_OWN_HEADERS = frozenset({"user-agent", "connection", "x-elastic-client-meta", "accept-encoding"})

ENGINE_ERRORS = (
    elasticsearch.ApiError,
    elasticsearch.TransportError,
    opensearchpy.OpenSearchException,
)
"""Errors that the clients raise about a request."""


class Cancelled(BaseException):
    """The client of the task is to end; no plug-in is meant to catch it."""


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
        # What all parts of a client derive from, such as the one for indices.
        self._part: type = type(self.client.indices).__bases__[0]

    def is_part(self, value: object) -> bool:
        """Return whether a value is a part of the client with methods of its own."""
        return isinstance(value, self._part)

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

_NOT_DONE = Answer(Outcome.OK)
_NOTHING = Exchange(0, 0, 0, 0, b"", 0)


# What a plug-in's runner gets: an engine's official client, whose methods can be awaited.

_OPTIONS = frozenset({"request_timeout", "ignore", "headers", "opaque_id"})


class ClientLacksError(AttributeError):
    """A runner wants a method that this engine's client does not have."""


class ClientRefusesError(TypeError):
    """A runner gives a method of this engine's client what that does not take."""


LACKING = (ClientLacksError, ClientRefusesError)
"""Attributes that only the other engine's client has: its operations are unsupported on this one."""


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
        try:
            value = _at(self._work.engine.client, (*self._path, name))
        except AttributeError as err:
            where = ".".join((*self._path, name))
            raise ClientLacksError(f"{self._work.engine.title} has no '{where}'") from err
        if self._work.engine.is_part(value):
            return RunnerClient(self._work, (*self._path, name), self._options)
        return self._method(name) if callable(value) else value

    def options(self, **options: Any) -> "RunnerClient":
        """Return the same client with options for its requests."""
        return RunnerClient(self._work, self._path, {**self._options, **options})

    def return_raw_response(self) -> None:
        """Return further responses of this operation undecoded."""
        self._work.raw = True

    @property
    def transport(self) -> "_Transport":
        """The transport that OpenSearch's plug-ins send requests with."""
        return _Transport(self)

    async def perform_request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        body: object = None,
    ) -> Any:
        """Send any request."""
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
            engine.ask(client, method, path, query | more, headers=sent_headers, body=body)
        )

    async def perform_operation(self, kind: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Run an operation of a built-in type."""
        return await self._work.perform(kind, params)

    def __repr__(self) -> str:
        return f"<{' '.join((self._work.engine.title, *self._path))} of benchctl>"

    def _method(self, name: str) -> Callable[..., Awaitable[Any]]:
        work, path, options = self._work, (*self._path, name), self._options

        async def call(*args: Any, **kwargs: Any) -> Any:
            # Clients of an earlier age took these as arguments, and plug-ins still give them so.
            kwargs |= kwargs.pop("params", None) or {}
            own = {key: kwargs.pop(key) for key in _OPTIONS & kwargs.keys()}
            client, more = work.engine.options({**options, **own})
            before = work.reply
            try:
                result = _at(client, path)(*args, **{**kwargs, **more})
            except TypeError as err:
                if work.reply is not before:
                    raise
                raise ClientRefusesError(f"{work.engine.title}: {err}") from err
            return work.response(result)

        return call


class _Transport:
    """The transport of a client, as far as plug-ins use it."""

    def __init__(self, client: RunnerClient) -> None:
        self._client = client

    async def perform_request(
        self,
        method: str,
        url: str,
        params: Mapping[str, Any] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        **_: object,
    ) -> Any:
        """Send any request."""
        return await self._client.perform_request(method, url, params=params, headers=headers, body=body)


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = getattr(value, name)
    return value


class Loop:
    """An event loop for the thread of one client; made when it is first needed."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, coroutine: Coroutine[Any, Any, Any], halted: Callable[[], bool]) -> Any:
        """Run a coroutine to its end, and nothing that it has begun beyond that.

        Args:
            coroutine: what to run.
            halted: whether to end it where it waits; looked at now and then.

        Raises:
            asyncio.CancelledError: If it was ended.
        """
        loop = self._loop = self._loop or asyncio.new_event_loop()
        task = loop.create_task(coroutine)
        watch = loop.call_later(_LOOK_S, self._look, task, halted)
        try:
            return loop.run_until_complete(task)
        finally:
            watch.cancel()
            if task.done() and not task.cancelled():
                # What ended it is on its way; the loop would print it once more.
                task.exception()
            left = asyncio.all_tasks(loop)
            for pending in left:
                pending.cancel()
            if left:
                loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))

    def close(self) -> None:
        """Close the loop; harmless when there is none."""
        if self._loop is not None:
            self._loop.close()
        self._loop = None

    def _look(self, task: asyncio.Task[Any], halted: Callable[[], bool]) -> None:
        if task.done() or self._loop is None:
            return
        if halted():
            task.cancel()
        self._loop.call_later(_LOOK_S, self._look, task, halted)


class RunnerWork:
    """Does the operations of one client with a runner.

    Args:
        runner: a coroutine function, or an object with `async __call__`.
        kind: the operation type that it is registered for.
        name: of the operation.
        code: of the plug-in, for messages.
        order: for whom.
        client: which client.
    """

    def __init__(
        self,
        runner: Any,
        kind: str,
        name: str,
        code: Code,
        order: WorkOrder,
        *,
        client: int,
    ) -> None:
        self._runner = runner
        self._kind = kind
        self._name = name
        self._code = code
        self._order = order
        self._client = client
        self._loop = Loop()
        self._send: Send | None = None  # sends a request; None between operations
        # Of the operation: what came back last, the first response with status 200 that is no success all the
        # same, and whether the runner wants responses undecoded.
        self.reply: Reply | None = None
        self._partial: Answer | None = None
        self.raw = False
        self._own: dict[str, OwnOperations] = {}
        self.last: Answer | None = None  # what the last operation came to

    @property
    def completed(self) -> bool:
        """Return whether the runner says that all is done; one that says nothing goes on."""
        return bool(getattr(self._runner, "completed", False))

    def script(self, params: Mapping[str, Any]) -> Script:
        """Return the script of one operation."""
        answer = _NOT_DONE

        def run(send: Send, halted: Callable[[], bool]) -> None:
            nonlocal answer
            answer = self._run({"name": self._name, "operation-type": self._kind, **params}, send, halted)

        yield Driven(run)
        self.last = answer
        return answer

    def close(self) -> None:
        """Close the event loop."""
        self._loop.close()

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
            result = self._loop.run(self._operate(params), halted)
        except (Cancelled, asyncio.CancelledError):
            return CANCELLED
        except ENGINE_ERRORS as err:
            # Its frames refer to it, and nobody collects cycles while a task is measured.
            return self._failure(err.with_traceback(None))
        except (*LACKING, Unsupported) as err:
            return Answer(Outcome.HTTP_ERROR, reason=shorten(str(err)), lacking=shorten(str(err)))
        except (KeyboardInterrupt, PluginError):
            raise
        except BaseException as err:
            raise blamed(err, self._code, f"the runner of operation '{self._name}'") from err
        finally:
            self._send = None
        answer, partial = self._judged(result), self._partial
        # Clients raise nothing about failed shards and refused documents: the runner may not have looked.
        if partial is None or (isinstance(result, dict) and "success" in result):
            return answer
        return msgspec.structs.replace(answer, outcome=partial.outcome, reason=partial.reason)

    async def _operate(self, params: dict[str, Any]) -> Any:
        try:
            return await self._call(params)
        except SystemExit as err:  # event loops let it pass, and print it
            raise blamed(err, self._code, f"the runner of operation '{self._name}'") from err

    async def _call(self, params: dict[str, Any]) -> Any:
        client: Any = RunnerClient(self)
        if getattr(self._runner, "multi_cluster", False):
            client = {"default": client}
        if hasattr(self._runner, "__aenter__") and hasattr(self._runner, "__aexit__"):
            async with self._runner:
                return await self._runner(client, params)
        return await self._runner(client, params)

    async def perform(self, kind: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Do an operation of benchctl's own within one of the runner's."""
        own = self._own.get(kind)
        if own is None:
            own = OwnOperations(kind, self._name, self._order, self._client)
            self._own[kind] = own
        made = own.make(params)
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
            raise PluginError("an operation was asked for outside of a runner")
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
                reply = Reply(_NOTHING, answer)
            elif isinstance(item, Driven):
                raise PluginError("a runner cannot call another plug-in's runner this way")
            else:
                await asyncio.sleep(item)

    def _failure(self, err: Exception) -> Answer:
        """Return what the wire saw of a request whose failure the runner did not handle."""
        last = self.reply
        if last is not None and last.answer.outcome is not Outcome.OK:
            return last.answer
        return Answer(Outcome.BAD_BODY, reason=shorten(f"{type(err).__name__}: {err}"))

    def _judged(self, result: Any) -> Answer:
        """Return what the runner says of its operation, in the forms that Rally understands."""
        if isinstance(result, tuple) and len(result) == len(("weight", "unit")):
            return Answer(Outcome.OK, weight=self._weight(result[0]), unit=str(result[1]))
        if not isinstance(result, dict):
            return Answer(Outcome.OK, unit="ops")
        weight, unit = self._weight(result.get("weight", 1)), str(result.get("unit", "ops"))
        if not result.get("success", True):
            return self._refused(result, weight, unit)
        return Answer(
            Outcome.OK,
            took_ms=_count(result.get("took"), _MOST_32_BITS),
            hits=_count(result.get("hits"), _MOST_64_BITS),
            hits_exact=result.get("hits_relation") == "eq",
            weight=weight,
            unit=unit,
        )

    def _refused(self, result: Mapping[str, Any], weight: int, unit: str) -> Answer:
        last = self.reply
        description = result.get("error-description") or result.get("error-type") or "nothing more"
        outcome, reason = Outcome.BAD_BODY, f"its runner reports a failure, and {description}"
        if last is not None and last.answer.outcome is not Outcome.OK:
            outcome, reason = last.answer.outcome, last.answer.reason
        return Answer(outcome, reason=shorten(reason), weight=weight, unit=unit)

    def _weight(self, value: object) -> int:
        """Units of throughput as a whole number; what is not a number counts as 1.

        Raises:
            PluginError: If the number is out of range.
        """
        if not isinstance(value, int | float):
            return 1
        if not -_MOST_32_BITS <= value <= _MOST_32_BITS:  # NaN, too
            raise PluginError(
                f"{self._code.path}: the runner of operation '{self._name}' gave weight {value}"
            )
        return max(round(value), 0)


def _count(value: object, most: int) -> int:
    """A number of a runner's answer that samples can hold; -1 for anything else."""
    return value if isinstance(value, int) and 0 <= value <= most else -1
