"""Indexes a corpus: concurrent bulk requests by the wire client or the official bulk helpers."""

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, NamedTuple
from urllib.parse import quote

import elasticsearch
import elasticsearch.helpers
import msgspec
import opensearchpy
import opensearchpy.helpers

from benchctl.endpoint import Endpoint
from benchctl.errors import BenchctlError
from benchctl.load.transport import MeasuredClient, Request, open_client
from benchctl.load.work.judges import judge_bulk
from benchctl.network import Answer, Courier
from benchctl.official import elasticsearch_over, header_items, opensearch_over
from benchctl.results.plan import EngineName
from benchctl.results.samples import Outcome

Stream = tuple[str, Iterator[tuple[int, bytes]]]
"""Target, empty when the documents' action lines name it, and bodies: (documents, body)."""

# Bodies framed ahead of the senders: enough to hide the reader, few enough to bound memory.
BODIES_AHEAD = 4
BULK_TIMEOUT_S = 300.0
# A full response lists every document, adding a fifth to the bytes; only the refused ones matter here.
_ANSWERED = "took,errors,items.*.error"


@dataclass(frozen=True)
class Body:
    """A bulk body."""

    target: str  # index or data stream; empty when the action lines name it
    documents: int
    payload: bytes


class Spent(NamedTuple):
    """Seconds that a body took."""

    took_s: float  # the engine's own time; 0 where it says none
    answered_s: float  # from sending it to the end of the answer
    client_s: float  # what the client itself spent beyond that: on framing it, or on encoding and decoding


# Bulk requests by the helpers of elasticsearch-py and opensearch-py, as applications send them.

# They log every failure, which is raised anyway.
_CHATTY = ("opensearch", "elastic_transport")
_ERRORS = (
    elasticsearch.ApiError,
    elasticsearch.TransportError,
    elasticsearch.SerializationError,
    elasticsearch.helpers.BulkIndexError,
    opensearchpy.OpenSearchException,
)

Action = tuple[Any, Any]
"""Action line of a document, and the document."""


class _Took(msgspec.Struct, frozen=True):
    took: int = 0


class BulkHelper:
    """An official client with its own connections, for one thread at a time."""

    def __init__(self, engine: EngineName, endpoint: Endpoint) -> None:
        for name in _CHATTY:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._engine = engine
        self._courier = Courier.to(endpoint)
        self._hosts = itertools.cycle(endpoint.hosts)
        self._headers = header_items(endpoint)
        self._client = (elasticsearch_over if engine == "elasticsearch" else opensearch_over)(self._carry)
        self._answers: list[tuple[int, bytes]] = []

    def index(self, body: Body) -> Spent:
        """Send a body as one request.

        The library gets documents as objects, as an application has them: decoding them is nobody's time.

        Raises:
            BenchctlError: If the node refuses some of them or gives no whole answer.
        """
        lines = [msgspec.json.decode(line) for line in body.payload.splitlines()]
        pairs: list[Action] = list(zip(lines[::2], lines[1::2], strict=True))
        self._answers.clear()
        start_ns = time.monotonic_ns()
        try:
            keys: dict[str, Any] = {"expand_action_callback": _as_it_is, "chunk_size": len(pairs)}
            keys["index"] = body.target or None
            if self._engine == "elasticsearch":
                client = self._client.options(request_timeout=BULK_TIMEOUT_S)
                elasticsearch.helpers.bulk(client, pairs, **keys)  # type: ignore[arg-type]  # of the callback
            else:
                opensearchpy.helpers.bulk(self._client, pairs, **keys, request_timeout=BULK_TIMEOUT_S)
        except _ERRORS as err:
            raise BenchctlError(
                f"a bulk request of the ingest failed: {str(err)[:300]}", hint="see the node's log"
            ) from err
        whole_ns = time.monotonic_ns() - start_ns
        answered_ns = sum(spent_ns for spent_ns, _ in self._answers)
        took_ms = sum(msgspec.json.decode(body, type=_Took).took for _, body in self._answers)
        return Spent(took_ms / 1e3, answered_ns / 1e9, (whole_ns - answered_ns) / 1e9)

    def interrupt(self) -> None:
        """End a request in flight from another thread."""
        self._courier.interrupt()

    def close(self) -> None:
        """Close the connections; harmless when repeated."""
        self._courier.close()

    def _carry(
        self, method: str, target: str, body: bytes, headers: Mapping[str, str], timeout_s: float | None
    ) -> Answer:
        """Send a request, and note nanoseconds and body: what is left is the client's own time."""
        start_ns = time.monotonic_ns()
        answer = self._courier.ask(
            method,
            next(self._hosts) + target,
            headers={**headers, **self._headers},
            body=body,
            deadline_s=timeout_s,
        )
        self._answers.append((time.monotonic_ns() - start_ns, answer.body))
        return answer


def _as_it_is(pair: Action) -> Action:
    return pair


IngestWire = MeasuredClient | BulkHelper


def _send(client: IngestWire, body: Body) -> Spent:
    """Send a body.

    Raises:
        BenchctlError: If the node refuses documents or gives no whole answer.
    """
    if isinstance(client, BulkHelper):
        return client.index(body)
    target = f"/{quote(body.target)}" if body.target else ""
    request = Request(
        method="POST",
        path=f"{target}/_bulk?filter_path={_ANSWERED}",
        body=body.payload,
        headers=("Content-Type: application/x-ndjson",),
        timeout_s=BULK_TIMEOUT_S,
        judge=judge_bulk,
    )
    exchange = client.send(request)
    if exchange.failure is not None:
        raise BenchctlError(
            f"a bulk request of the ingest got no complete response "
            f"({exchange.failure.name.lower()}): {exchange.detail}",
            hint="see the node's log",
        )
    answer = request.judge(exchange.status, exchange.body)
    if answer.outcome is not Outcome.OK:
        raise BenchctlError(f"the node refused a bulk request: {answer.reason}")
    return Spent(max(answer.took_ms, 0) / 1e3, (exchange.end_ns - exchange.start_ns) / 1e9, 0.0)


@dataclass
class Ingested:
    """Documents sent and acknowledged, with times."""

    documents: int = 0
    body_bytes: int = 0  # of the bulk requests
    seconds: float = 0.0  # from the first request to the last answer
    took_s: float = 0.0  # this and the next two are sums over bodies, as in `Spent`
    answered_s: float = 0.0
    client_s: float = 0.0

    def add(self, body: Body, spent: Spent) -> None:
        """Count an acknowledged body."""
        self.documents += body.documents
        self.body_bytes += len(body.payload)
        self.took_s += spent.took_s
        self.answered_s += spent.answered_s
        self.client_s += spent.client_s


class _Senders:
    """Sends bodies by the next free connection and counts them; the first failure ends it; thread-safe."""

    def __init__(self, wires: Sequence[IngestWire], on_progress: Callable[[int], None]) -> None:
        self.done = Ingested()
        self.failures: list[BaseException] = []
        self._on_progress = on_progress
        self._most = len(wires) + BODIES_AHEAD
        self._room = threading.Semaphore(self._most)
        self._counting = threading.Lock()
        self._free: SimpleQueue[IngestWire] = SimpleQueue()
        for wire in wires:
            self._free.put(wire)

    def send(self, body: Body, framing_s: float) -> None:
        """Send a body, unless one has failed; every call needs room."""
        wire = self._free.get()
        try:
            if not self.failures:
                spent = _send(wire, body)
                with self._counting:
                    self.done.add(body, spent._replace(client_s=spent.client_s + framing_s))
                    self._on_progress(self.done.documents)
        except BaseException as err:  # noqa: BLE001 - whatever it is, who waits raises it
            self.failures.append(err)
        finally:
            self._free.put(wire)
            self._room.release()

    def wait_for_room(self) -> None:
        """Wait until another body may be framed ahead.

        Raises:
            BaseException: If a body failed: its error.
        """
        self._room.acquire()
        if self.failures:
            raise self.failures[0]

    def wait_answered(self) -> None:
        """Wait until every body is answered; raises as `wait_for_room` does."""
        for _ in range(self._most):
            self.wait_for_room()


def ingest(
    streams: Iterable[Stream],
    *,
    endpoint: Endpoint | str,
    clients: int,
    helper: EngineName | None = None,
    on_progress: Callable[[int], None],
) -> Ingested:
    """Send bulk bodies, in order, each by the next free client.

    An index has the corpus's order only within a body: the engine decides when it cuts segments, and merges
    them by size, so that even a single sender produces a different index each time.

    One reader feeds all clients, which start at once: it frames several times as fast as an engine indexes,
    and one reader per client, each in another part of the corpus, would fill the index in a different order.

    Args:
        streams: sent one after the other.
        endpoint: the cluster, or its URL.
        clients: concurrent senders, one connection each.
        helper: of which official client the bulk helper sends; None for benchctl's own wire.
        on_progress: called with the number of documents acknowledged so far.

    Raises:
        BenchctlError: If the node refuses documents or goes away; nothing is sent after that.
    """
    endpoint = Endpoint.of(endpoint)
    wires: list[IngestWire] = [
        open_client(endpoint, number) if helper is None else BulkHelper(helper, endpoint)
        for number in range(clients)
    ]
    senders, started = _Senders(wires, on_progress), time.monotonic()
    with ExitStack() as stack, ThreadPoolExecutor(clients, thread_name_prefix="ingest") as pool:
        for wire in wires:
            stack.callback(wire.close)
        try:
            for target, bodies in streams:
                begun = time.monotonic()
                for documents, payload in bodies:
                    framing_s = time.monotonic() - begun
                    senders.wait_for_room()
                    pool.submit(senders.send, Body(target, documents, payload), framing_s)
                    begun = time.monotonic()
            senders.wait_answered()
        except BaseException as err:
            # Whoever pressed Ctrl-C does not wait for the answer of a node that hangs.
            senders.failures.append(err)
            for wire in wires:
                wire.interrupt()
            raise
        senders.done.seconds = time.monotonic() - started
    return senders.done
