"""Indexes a corpus: concurrent bulk requests by the wire client or the official bulk helpers."""

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from queue import Queue
from typing import Any, Self
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
    took_s: float = 0.0  # the engine's own time, once it is acknowledged; 0 where it says none
    answered_s: float = 0.0  # the client's
    # What the client itself spent beyond that: on framing it, or on encoding and decoding.
    client_s: float = 0.0


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

    def index(self, body: Body, timeout_s: float) -> Body:
        """Send a body as one request, and return it with its times.

        The library gets documents as objects, as an application has them: decoding them is nobody's time.

        Raises:
            BenchctlError: If the node refuses some of them or gives no whole answer.
        """
        lines = [msgspec.json.decode(line) for line in body.payload.splitlines()]
        pairs: list[Action] = list(zip(lines[::2], lines[1::2], strict=True))
        target = body.target or None
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
                f"a bulk request of the ingest failed: {str(err)[:300]}", hint="see the node's log"
            ) from err
        whole_ns = time.monotonic_ns() - start_ns
        answered_ns = sum(spent_ns for spent_ns, _ in self._answers)
        took_ms = sum(msgspec.json.decode(body, type=_Took).took for _, body in self._answers)
        return replace(
            body,
            took_s=took_ms / 1e3,
            answered_s=answered_ns / 1e9,
            client_s=(whole_ns - answered_ns) / 1e9,
        )

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


class Senders:
    """A sending thread per connection; a context manager that leaves none behind.

    Each thread closes its wire. `on_acknowledged` is called by the sender of every body the node accepted, in
    any order.
    """

    def __init__(self, wires: Sequence[IngestWire], on_acknowledged: Callable[[Body], None]) -> None:
        self._wires = wires
        self._on_acknowledged = on_acknowledged
        self._waiting: Queue[Body | None] = Queue(maxsize=len(wires) + BODIES_AHEAD)
        self._threads = [threading.Thread(target=self._send_all, args=(wire,), daemon=True) for wire in wires]
        # Guards the three below, and tells of changes to them.
        self._changed = threading.Condition()
        self._failure: BaseException | None = None
        self._unanswered = 0
        self._in_flight = 0

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._in_flight:
            # Whoever pressed Ctrl-C does not wait for the answer of a node that hangs.
            for wire in self._wires:
                wire.interrupt()
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()

    def put(self, body: Body) -> None:
        """Queue a body for the next free sender; blocks while the queue is full.

        Raises:
            BaseException: If an earlier body failed: its error.
        """
        with self._changed:
            self._raise_failure()
            self._unanswered += 1
        self._waiting.put(body)

    def wait_answered(self) -> None:
        """Wait until every queued body is answered.

        Raises:
            BaseException: If a body failed: its error.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._unanswered == 0 or self._failure is not None)
            self._raise_failure()

    def stop(self, reason: BaseException) -> None:
        """Send nothing more; requests in flight go on."""
        with self._changed:
            self._failure = self._failure or reason

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _send_all(self, client: IngestWire) -> None:
        """Take bodies until the end mark; after a failure keep taking, so that the reader never blocks."""
        with closing(client):
            while (body := self._waiting.get()) is not None:
                if not self._begin():
                    continue
                failure: BaseException | None = None
                try:
                    self._on_acknowledged(_send(client, body))
                except BaseException as err:  # noqa: BLE001 - whatever it is, an interrupt too, the caller raises it
                    failure = err
                self._end(failure)

    def _begin(self) -> bool:
        with self._changed:
            if self._failure is None:
                self._in_flight += 1
            return self._failure is None

    def _end(self, failure: BaseException | None) -> None:
        with self._changed:
            self._failure = self._failure or failure
            self._in_flight -= 1
            self._unanswered -= 1
            self._changed.notify_all()


def _send(client: IngestWire, body: Body) -> Body:
    """Send a body, and return it with its times."""
    if isinstance(client, BulkHelper):
        return client.index(body, BULK_TIMEOUT_S)
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
            f"a bulk request of the ingest got no whole answer "
            f"({exchange.failure.name.lower()}): {exchange.detail}",
            hint="see the node's log",
        )
    answer = request.judge(exchange.status, exchange.body)
    if answer.outcome is not Outcome.OK:
        raise BenchctlError(f"the node refused a bulk request: {answer.reason}")
    return replace(
        body,
        took_s=max(answer.took_ms, 0) / 1e3,
        answered_s=(exchange.end_ns - exchange.start_ns) / 1e9,
    )


@dataclass(frozen=True)
class Ingested:
    """Documents sent and acknowledged, with times."""

    documents: int
    body_bytes: int  # of the bulk requests
    seconds: float  # from the first request to the last answer
    took_s: float  # this and the next two are sums over bodies
    answered_s: float
    client_s: float


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
    tally = _Tally(on_progress)
    wires: list[IngestWire]
    if helper is None:
        wires = [open_client(endpoint, number) for number in range(clients)]
    else:
        at = endpoint if isinstance(endpoint, Endpoint) else Endpoint.of(endpoint)
        wires = [BulkHelper(helper, at) for _ in range(clients)]
    with Senders(wires, tally.add) as senders:
        try:
            for target, bodies in streams:
                for documents, payload, framing_s in _timed(bodies):
                    senders.put(Body(target, documents, payload, client_s=framing_s))
            senders.wait_answered()
        except BaseException as err:
            senders.stop(err)
            raise
        return tally.sum()


def _timed(bodies: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes, float]]:
    """Bodies with the seconds that each took."""
    begun = time.monotonic()
    for documents, payload in bodies:
        yield documents, payload, time.monotonic() - begun
        begun = time.monotonic()


class _Tally:
    """The work of all senders together."""

    def __init__(self, on_progress: Callable[[int], None]) -> None:
        self._documents = 0
        self._body_bytes = 0
        self._took_s = self._answered_s = self._client_s = 0.0
        self._start = time.monotonic()
        self._on_progress = on_progress
        self._lock = threading.Lock()

    def add(self, body: Body) -> None:
        """Count an acknowledged body."""
        with self._lock:
            self._documents += body.documents
            self._body_bytes += len(body.payload)
            self._took_s += body.took_s
            self._answered_s += body.answered_s
            self._client_s += body.client_s
            self._on_progress(self._documents)

    def sum(self) -> Ingested:
        """Return everything acknowledged so far."""
        with self._lock:
            return Ingested(
                self._documents,
                self._body_bytes,
                time.monotonic() - self._start,
                self._took_s,
                self._answered_s,
                self._client_s,
            )
