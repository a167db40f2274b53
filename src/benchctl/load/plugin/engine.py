"""The engines' official clients, with the measured wire as their connection."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import elasticsearch
import opensearchpy

from benchctl.load.judge import judge_bulk, judge_plain, judge_search
from benchctl.load.request import Judge, Request
from benchctl.load.work.searches import searches_in
from benchctl.load.workload import Reply, Send, WorkContext
from benchctl.network import Answer, Trouble, Unanswered
from benchctl.official import JSON, elasticsearch_over, opensearch_over
from benchctl.results.plan import EngineName
from benchctl.results.samples import Outcome

_TIMEOUT_S = 60.0
_PRODUCT = {"x-elastic-product": "Elasticsearch"}
_CHATTY = ("opensearch", "elastic_transport")
# What they say of themselves and of the connection is the wire's business.
_OWN_HEADERS = frozenset({"user-agent", "connection", "x-elastic-client-meta", "accept-encoding"})
_TO_OPTIONS = {"ignore": "ignore_status"}

ENGINE_ERRORS = (
    elasticsearch.ApiError,
    elasticsearch.TransportError,
    opensearchpy.OpenSearchException,
)
"""What the clients raise about a request."""


class Cancelled(BaseException):
    """The client of the task is to end; no plug-in is meant to catch it."""


class Channel:
    """Where the requests of one client of a task go: to whoever does its operation at the moment.

    Args:
        context: of the task.

    Attributes:
        send: sends a request; None between operations.
        last: what came back last in the operation.
    """

    def __init__(self, context: WorkContext) -> None:
        self._context = context
        self.send: Send | None = None
        self.last: Reply | None = None

    def open(self, send: Send) -> None:
        """An operation begins."""
        self.send, self.last = send, None

    def carry(
        self, method: str, target: str, body: bytes, headers: Mapping[str, str], timeout_s: float | None
    ) -> Answer:
        """Send one request of the operation.

        Raises:
            Cancelled: the client is to end.
            Unanswered: there was no whole answer.
        """
        if self.send is None:
            raise RuntimeError("a client of benchctl's was used outside of its runner")
        path = target if target.startswith("/") else f"/{target}"
        request = Request(
            method=method,
            path=path,
            body=body,
            headers=tuple(f"{name}: {value}" for name, value in _plain_headers(headers).items()),
            timeout_s=_TIMEOUT_S if timeout_s is None else timeout_s,
            judge=_judge_of(path),
            searches=searches_in(method, path, body, self._context),
        )
        self.last = self.send(request)
        if self.last.answer.outcome is Outcome.CANCELLED:
            raise Cancelled
        found = self.last.exchange
        if found.failure is not None:
            trouble = Trouble.TIMEOUT if found.failure is Outcome.TIMEOUT else Trouble.BROKEN
            raise Unanswered(trouble, found.detail)
        said = {**_PRODUCT, "content-type": _content_type(found.body)}
        return Answer(found.status, said, found.body, (found.end_ns - found.start_ns) / 1e9)


def _judge_of(path: str) -> Judge:
    last = path.partition("?")[0].rstrip("/").rpartition("/")[2]
    return {"_search": judge_search, "_bulk": judge_bulk}.get(last, judge_plain)


def _plain_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Without what clients say of themselves, and plain JSON whatever the major version of the client."""
    given = {name.lower(): value for name, value in headers.items()}
    kept = {name: value for name, value in given.items() if name not in _OWN_HEADERS}
    for name in ("accept", "content-type"):
        if "vnd.elasticsearch+" in kept.get(name, ""):
            kept[name] = kept[name].partition(";")[0].replace("vnd.elasticsearch+", "")
    return kept


class Engine(Protocol):
    """An official client, in what the two differ."""

    title: str
    client: Any

    def options(self, given: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The client with options for the next request, and what has to go into its arguments instead."""
        ...

    def ask(
        self,
        client: Any,  # noqa: ANN401 - an official one
        method: str,
        path: str,
        params: Mapping[str, Any],
        *,
        headers: Mapping[str, str],
        body: object,
    ) -> Any:  # noqa: ANN401 - JSON of any shape
        """Any request, by the client or one with other options."""
        ...

    def is_part(self, value: object) -> bool:
        """Whether something is a part of the client with methods of its own."""
        ...


class _Elasticsearch:
    title = "elasticsearch-py"

    def __init__(self, channel: Channel) -> None:
        self.client: Any = elasticsearch_over(channel.carry)
        self._part = _base_of_parts(self.client)

    def options(self, given: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        named = {_TO_OPTIONS.get(name, name): value for name, value in given.items() if value is not None}
        return (self.client.options(**named) if named else self.client), {}

    def ask(
        self,
        client: Any,  # noqa: ANN401 - an official one
        method: str,
        path: str,
        params: Mapping[str, Any],
        *,
        headers: Mapping[str, str],
        body: object,
    ) -> Any:  # noqa: ANN401 - JSON of any shape
        said = {"accept": JSON, **({} if body is None else {"content-type": JSON}), **headers}
        return client.perform_request(method, path, params=params or None, headers=said, body=body)

    def is_part(self, value: object) -> bool:
        return isinstance(value, self._part)


class _OpenSearch:
    title = "opensearch-py"

    def __init__(self, channel: Channel) -> None:
        self.client: Any = opensearch_over(channel.carry)
        self._part = _base_of_parts(self.client)

    def options(self, given: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        back = {other: name for name, other in _TO_OPTIONS.items()}
        return self.client, {
            back.get(name, name): value for name, value in given.items() if value is not None
        }

    def ask(
        self,
        client: Any,  # noqa: ANN401 - an official one
        method: str,
        path: str,
        params: Mapping[str, Any],
        *,
        headers: Mapping[str, str],
        body: object,
    ) -> Any:  # noqa: ANN401 - JSON of any shape
        target = path if path.startswith("/") else f"/{path}"
        return client.transport.perform_request(
            method, target, params=dict(params), headers=dict(headers), body=body
        )

    def is_part(self, value: object) -> bool:
        return isinstance(value, self._part)


_ENGINES: Mapping[EngineName, Callable[[Channel], Engine]] = {
    "elasticsearch": _Elasticsearch,
    "opensearch": _OpenSearch,
}


def open_engine(engine: EngineName, channel: Channel) -> Engine:
    """An engine's official client that sends over a channel."""
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return _ENGINES[engine](channel)


def _base_of_parts(client: Any) -> type:  # noqa: ANN401 - an official one
    """The class that all parts of a client derive from, such as the one for indices."""
    found: type = type(client.indices).__bases__[0]
    return found


def _content_type(body: bytes) -> str:
    """The wire keeps no headers of answers; engines answer in JSON, but for their tables of text."""
    return JSON if body.lstrip()[:1] in {b"{", b"["} else "text/plain"
