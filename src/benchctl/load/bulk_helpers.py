"""Bulk requests by the helpers of elasticsearch-py and opensearch-py, as applications send them.

For filling an index: what is measured goes over one wire client, the same for both engines.
"""

import logging
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import elasticsearch
import elasticsearch.helpers
import msgspec
import opensearchpy
import opensearchpy.helpers

from benchctl.endpoint import Endpoint
from benchctl.errors import BenchctlError
from benchctl.official import header_items, tls_options
from benchctl.results.plan import EngineName

# They log every failure, which is raised anyway.
_CHATTY = ("opensearch", "elastic_transport")
_ERRORS = (
    elasticsearch.ApiError,
    elasticsearch.TransportError,
    elasticsearch.SerializationError,
    elasticsearch.helpers.BulkIndexError,
    opensearchpy.OpenSearchException,
)
_CLIENTS: Mapping[EngineName, Any] = {
    "elasticsearch": elasticsearch.Elasticsearch,
    "opensearch": opensearchpy.OpenSearch,
}

Action = tuple[Any, Any]
"""What to do with a document, and the document."""


@dataclass(frozen=True)
class Helped:
    """Seconds of a request: the engine's own, from sending to the last byte, and what the client adds."""

    took_s: float
    answered_s: float
    client_s: float


class _Took(msgspec.Struct, frozen=True):
    took: int = 0


class BulkHelper:
    """One official client with its own connections, for one thread at a time."""

    def __init__(self, engine: EngineName, endpoint: Endpoint) -> None:
        for name in _CHATTY:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._engine = engine
        self._client = _CLIENTS[engine](
            list(endpoint.hosts),
            headers=header_items(endpoint),
            max_retries=0,
            retry_on_timeout=False,
            **tls_options(endpoint),
        )
        self._sockets: list[socket.socket] = []
        self._answers: list[tuple[int, bytes]] = []
        for pool in self._pools():
            pool.ConnectionCls = _tracked(pool.ConnectionCls, self._sockets)
            pool.urlopen = _timed(pool.urlopen, self._answers)

    def index(self, pairs: Sequence[Action], target: str | None, timeout_s: float) -> Helped:
        """Send documents as one request.

        Raises:
            BenchctlError: If the node refuses some of them or gives no whole answer.
        """
        self._answers.clear()
        start_ns = time.monotonic_ns()
        try:
            if self._engine == "elasticsearch":
                elasticsearch.helpers.bulk(
                    self._client.options(request_timeout=timeout_s),
                    pairs,  # type: ignore[arg-type]  # declared for what the usual callback takes
                    expand_action_callback=_as_it_is,
                    chunk_size=len(pairs),
                    index=target,
                )
            else:
                opensearchpy.helpers.bulk(
                    self._client,
                    pairs,
                    expand_action_callback=_as_it_is,
                    chunk_size=len(pairs),
                    index=target,
                    request_timeout=timeout_s,
                )
        except _ERRORS as err:
            raise BenchctlError(
                f"a bulk request of the ingest failed: {str(err)[:300]}", hint="the node's log says why"
            ) from err
        whole_ns = time.monotonic_ns() - start_ns
        answered_ns = sum(spent_ns for spent_ns, _ in self._answers)
        took_ms = sum(msgspec.json.decode(body, type=_Took).took for _, body in self._answers)
        return Helped(took_ms / 1e3, answered_ns / 1e9, (whole_ns - answered_ns) / 1e9)

    def interrupt(self) -> None:
        """End a request in flight from another thread; the client is of no use afterwards."""
        for connection in self._sockets:
            with suppress(OSError):  # it was closed: there is nothing left to end
                connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connections; harmless when repeated."""
        self._client.close()

    def _pools(self) -> list[Any]:
        """urllib3's connection pools, one per host."""
        transport = self._client.transport
        if self._engine == "elasticsearch":
            return [node.pool for node in transport.node_pool.all()]
        return [connection.pool for connection in transport.connection_pool.connections]


def _as_it_is(pair: Action) -> Action:
    return pair


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
