"""The alternative transport: the same requests through the engines' official clients, as applications do.

It measures engine and client together: encoding the body, the client's own work and decoding the answer
are part of the service time.
"""

import contextlib
import logging
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import elasticsearch
import elasticsearch.helpers
import msgspec
import opensearchpy
import opensearchpy.helpers
from urllib3.connectionpool import HTTPConnectionPool

from benchctl.endpoint import Endpoint
from benchctl.errors import BenchctlError
from benchctl.load.client import Wire
from benchctl.load.request import Exchange, Request, judge_plain
from benchctl.load.transport import decisive
from benchctl.official import header_items, tls_options
from benchctl.results.plan import EngineName
from benchctl.results.samples import Outcome

UNKNOWN_BYTES = -1
_GREETING = Request("GET", "/_cluster/health?local=true", b"", (), 10.0, judge_plain)
_REFUSED = ("Connection refused", "NewConnectionError")
_JSON = "application/json"
# They log every failure, which is in the samples.
_CHATTY = ("opensearch", "elastic_transport")


Action = tuple[Any, Any]
"""What to do with a document, and the document."""


def _as_it_is(pair: Action) -> Action:
    return pair


class _Unanswered(Exception):  # noqa: N818 - it says what happened
    """A request got no answer; the client's own description of why."""

    def __init__(self, outcome: Outcome, detail: str) -> None:
        super().__init__(detail)
        self.outcome = outcome
        self.detail = detail


class _Library(Protocol):
    """The part of an official client that is used."""

    def ask(
        self, method: str, path: str, headers: Mapping[str, str], body: object, timeout_s: float
    ) -> tuple[int, object]:
        """Status and decoded body of any answer; raises _Unanswered when there is none."""
        ...

    def index(self, pairs: Sequence[Action], target: str | None, timeout_s: float) -> None:
        """Have the bulk helper send actions and documents as one request; raises the library's errors."""
        ...

    def pools(self) -> list[HTTPConnectionPool]:
        """Its connection pools, one per host."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class _Elasticsearch:
    def __init__(self, endpoint: Endpoint) -> None:
        self._client = elasticsearch.Elasticsearch(
            list(endpoint.hosts),
            headers=header_items(endpoint),
            max_retries=0,
            retry_on_timeout=False,
            **tls_options(endpoint),
        )
        self._by_timeout: dict[float, Any] = {}

    def ask(
        self, method: str, path: str, headers: Mapping[str, str], body: object, timeout_s: float
    ) -> tuple[int, object]:
        client = self._by_timeout.get(timeout_s)
        if client is None:
            client = self._by_timeout[timeout_s] = self._client.options(request_timeout=timeout_s)
        try:
            answer = client.perform_request(method, path, headers=headers, body=body)
        except elasticsearch.ApiError as err:
            return err.meta.status, err.body
        except elasticsearch.ConnectionTimeout as err:
            raise _Unanswered(Outcome.TIMEOUT, str(err)) from err
        except elasticsearch.SerializationError as err:
            raise _Unanswered(Outcome.BAD_BODY, str(err)) from err
        except elasticsearch.TransportError as err:
            detail = str(err.__cause__ or err)
            raise _Unanswered(_lost(detail), detail) from err
        return answer.meta.status, answer.body

    def index(self, pairs: Sequence[Action], target: str | None, timeout_s: float) -> None:
        # Declared for what the usual callback takes.
        taken: Any = pairs
        elasticsearch.helpers.bulk(
            self._client.options(request_timeout=timeout_s),
            taken,
            expand_action_callback=_as_it_is,
            chunk_size=len(pairs),
            index=target,
        )

    def pools(self) -> list[HTTPConnectionPool]:
        nodes: list[Any] = self._client.transport.node_pool.all()
        return [node.pool for node in nodes]

    def close(self) -> None:
        self._client.close()


class _OpenSearch:
    def __init__(self, endpoint: Endpoint) -> None:
        self._client = opensearchpy.OpenSearch(
            list(endpoint.hosts),
            headers=header_items(endpoint),
            max_retries=0,
            retry_on_timeout=False,
            **tls_options(endpoint),
        )

    def ask(
        self, method: str, path: str, headers: Mapping[str, str], body: object, timeout_s: float
    ) -> tuple[int, object]:
        try:
            answer = self._client.transport.perform_request(
                method, path, body=body, timeout=timeout_s, headers=dict(headers)
            )
        except opensearchpy.ConnectionTimeout as err:
            raise _Unanswered(Outcome.TIMEOUT, str(err.info)) from err
        except opensearchpy.TransportError as err:
            if isinstance(err.status_code, int):
                return err.status_code, err.info
            raise _Unanswered(_lost(str(err.info)), str(err.info)) from err
        except opensearchpy.SerializationError as err:
            raise _Unanswered(Outcome.BAD_BODY, str(err)) from err
        return 200, answer

    def index(self, pairs: Sequence[Action], target: str | None, timeout_s: float) -> None:
        opensearchpy.helpers.bulk(
            self._client,
            pairs,
            expand_action_callback=_as_it_is,
            chunk_size=len(pairs),
            index=target,
            request_timeout=timeout_s,
        )

    def pools(self) -> list[HTTPConnectionPool]:
        return [connection.pool for connection in self._client.transport.connection_pool.connections]

    def close(self) -> None:
        self._client.close()


_HELPER_ERRORS = (
    elasticsearch.ApiError,
    elasticsearch.TransportError,
    elasticsearch.SerializationError,
    elasticsearch.helpers.BulkIndexError,
    opensearchpy.OpenSearchException,
)

_LIBRARIES: Mapping[EngineName, Callable[[Endpoint], _Library]] = {
    "elasticsearch": _Elasticsearch,
    "opensearch": _OpenSearch,
}


@dataclass(frozen=True)
class LibraryOpener:
    """Makes a client's wire, in this process or another."""

    engine: EngineName
    endpoint: Endpoint

    def __call__(self, _client: int) -> Wire:
        """Make one; nothing is sent yet."""
        return LibraryWire(self.engine, self.endpoint)


@dataclass(frozen=True)
class Helped:
    """Seconds of a request of a bulk helper.

    Attributes:
        took_s: the engine's own.
        answered_s: from sending the request to the last byte of its answer.
        client_s: all others: the library encodes documents and decodes the answer.
    """

    took_s: float
    answered_s: float
    client_s: float


class _Took(msgspec.Struct, frozen=True):
    took: int = 0


class LibraryWire:
    """One official client with its own connections, for one thread at a time.

    Connect time, time to first byte and response size are unknown. With several hosts the client takes them
    in turn, as it does by default.
    """

    def __init__(self, engine: EngineName, endpoint: Endpoint) -> None:
        for name in _CHATTY:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._library = _LIBRARIES[engine](endpoint)
        self._lossy = endpoint.lossy
        self._sockets: list[socket.socket] = []
        self._interrupted = False
        self._loaded: Request | None = None
        self._headers: dict[str, str] = {}
        self._body: object = None
        self._answers: list[tuple[int, bytes]] | None = None
        for pool in self._library.pools():
            pool.ConnectionCls = _tracked(pool.ConnectionCls, self._sockets)

    @property
    def interrupted(self) -> bool:
        """Whether `interrupt` was called: a failure after that is not the node's."""
        return self._interrupted

    def connect(self) -> Exchange:
        """Open the connections with requests that are not searches."""
        greetings = (self.send(_GREETING) for _ in self._library.pools())
        return decisive(greetings, lossy=self._lossy)

    def send(self, request: Request) -> Exchange:
        """Send a request and wait for the decoded answer; failures are part of the result."""
        if request is not self._loaded:
            self._load(request)
        status, answer, failure, detail = 0, None, None, ""
        start_ns = time.monotonic_ns()
        try:
            status, answer = self._library.ask(
                request.method, request.path, self._headers, self._body, request.timeout_s
            )
        except _Unanswered as err:
            failure, detail = err.outcome, err.detail
        end_ns = time.monotonic_ns()
        # The request's clock has stopped; the judges read bytes.
        # Elasticsearch's client wraps what it decoded.
        plain = getattr(answer, "body", answer)
        body = answer.encode() if isinstance(answer, str) else msgspec.json.encode(plain)
        return Exchange(start_ns, 0, 0, end_ns, status, body, UNKNOWN_BYTES, failure, detail)

    def index(self, pairs: Sequence[Action], target: str | None, timeout_s: float) -> "Helped":
        """Have the client's bulk helper send documents as one request, as an application does.

        Raises:
            BenchctlError: the node refused some of them, or gave no whole answer.
        """
        if self._answers is None:
            self._answers = []
            for pool in self._library.pools():
                setattr(pool, "urlopen", _timed(pool.urlopen, self._answers))  # noqa: B010 - not declared so
        self._answers.clear()
        start_ns = time.monotonic_ns()
        try:
            self._library.index(pairs, target, timeout_s)
        except _HELPER_ERRORS as err:
            raise BenchctlError(
                f"a bulk request of the ingest failed: {str(err)[:300]}", hint="the node's log says why"
            ) from err
        whole_ns = time.monotonic_ns() - start_ns
        answered_ns = sum(spent_ns for spent_ns, _ in self._answers)
        took_ms = sum(msgspec.json.decode(body, type=_Took).took for _, body in self._answers)
        return Helped(took_ms / 1e3, answered_ns / 1e9, (whole_ns - answered_ns) / 1e9)

    def interrupt(self) -> None:
        """End a request in flight from another thread; the wire is of no use afterwards."""
        self._interrupted = True
        for one in self._sockets:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                # It was closed meanwhile: there is nothing left to end.
                continue

    def close(self) -> None:
        """Close the connections; harmless when repeated."""
        self._library.close()

    def _load(self, request: Request) -> None:
        """Decode a JSON body, since applications pass objects; NDJSON and plain text stay as they are."""
        pairs = (line.partition(":") for line in request.headers)
        self._headers = {"accept": _JSON} | {name.lower(): value.strip() for name, _, value in pairs}
        self._body = None
        if request.body:
            self._body = request.body.decode()
            if self._headers.get("content-type") == _JSON:
                with contextlib.suppress(msgspec.DecodeError):
                    self._body = msgspec.json.decode(request.body)
        self._loaded = request


def _timed(send: Callable[..., Any], answers: list[tuple[int, bytes]]) -> Callable[..., Any]:
    """A pool's `urlopen` that notes nanoseconds and bodies: what is left is the client's own time."""

    def urlopen(*args: Any, **keywords: Any) -> Any:
        start_ns = time.monotonic_ns()
        answer = send(*args, **keywords)
        body = answer.data
        answers.append((time.monotonic_ns() - start_ns, body))
        return answer

    return urlopen


def _tracked(kind: Any, sockets: list[socket.socket]) -> Any:
    """A connection class that records the sockets it opens."""

    class Tracked(kind):  # type: ignore[misc]
        def connect(self) -> None:
            super().connect()
            if self.sock is not None:
                sockets.append(self.sock)

    return Tracked


def _lost(detail: str) -> Outcome:
    return Outcome.REFUSED if any(text in detail for text in _REFUSED) else Outcome.RESET
