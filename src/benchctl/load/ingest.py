"""Sending a corpus to an index: concurrent bulk bodies over the measured wire client."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from queue import Queue

from benchctl.endpoint import Endpoint
from benchctl.errors import BenchctlError
from benchctl.load.judge import judge_bulk
from benchctl.load.request import Request
from benchctl.load.transport import MeasuredClient, open_client
from benchctl.results.samples import Outcome

# Bodies framed ahead of the senders: enough to hide the reader, few enough to bound memory.
BODIES_AHEAD = 4
BULK_TIMEOUT_S = 300.0
# An answer names every document, a fifth as many bytes again; only those that were refused matter here.
_ANSWERED = "took,errors,items.*.error"


@dataclass(frozen=True)
class Ingested:
    """What was sent and acknowledged, and how long it took from the first request to the last answer."""

    documents: int
    body_bytes: int
    seconds: float


def ingest(
    bodies: Iterator[tuple[int, bytes]],
    *,
    endpoint: Endpoint | str,
    index_name: str,
    clients: int,
    on_progress: Callable[[int], None],
) -> Ingested:
    """Send bulk bodies, in order, each by the next free client.

    The order in the index is the corpus's own only within a body: the engine decides when it cuts segments,
    and by size in which order it merges them, so that even one sender gives another index each time.

    Args:
        bodies: (documents, body) pairs.
        endpoint: the node or cluster, or its address.
        index_name: where the documents go.
        clients: concurrent senders, a connection each.
        on_progress: told the number of documents acknowledged so far.

    Raises:
        BenchctlError: the node refused documents or went away; nothing is sent after that.
    """
    waiting: Queue[tuple[int, bytes] | None] = Queue(maxsize=clients + BODIES_AHEAD)
    tally = _Tally(on_progress)
    wires = [open_client(endpoint, number) for number in range(clients)]
    senders = [
        threading.Thread(target=_send_all, args=(waiting, tally, wire, index_name), daemon=True)
        for wire in wires
    ]
    start = time.monotonic()
    for sender in senders:
        sender.start()
    try:
        for item in bodies:
            if tally.failure is not None:
                break
            waiting.put(item)
    except BaseException as err:
        tally.failure = err
        # Whoever pressed Ctrl-C does not wait for the answer of a node that hangs.
        for wire in wires:
            wire.interrupt()
        raise
    finally:
        for _ in senders:
            waiting.put(None)
        for sender in senders:
            sender.join()
    if tally.failure is not None:
        raise tally.failure
    return Ingested(tally.documents, tally.body_bytes, time.monotonic() - start)


class _Tally:
    """What the senders have done together."""

    def __init__(self, on_progress: Callable[[int], None]) -> None:
        self.documents = 0
        self.body_bytes = 0
        self.failure: BaseException | None = None
        self._on_progress = on_progress
        self._lock = threading.Lock()

    def add(self, documents: int, body_bytes: int) -> None:
        with self._lock:
            self.documents += documents
            self.body_bytes += body_bytes
            self._on_progress(self.documents)


def _send_all(
    waiting: "Queue[tuple[int, bytes] | None]", tally: _Tally, client: MeasuredClient, index_name: str
) -> None:
    """Take bodies until the end mark; after a failure keep taking, so that the reader never blocks."""
    with client:
        while (item := waiting.get()) is not None:
            if tally.failure is not None:
                continue
            documents, body = item
            try:
                _send(client, index_name, body)
                tally.add(documents, len(body))
            except Exception as err:  # noqa: BLE001 - whatever it is, the caller raises it
                tally.failure = err


def _send(client: MeasuredClient, index_name: str, body: bytes) -> None:
    request = Request(
        method="POST",
        path=f"/{index_name}/_bulk?filter_path={_ANSWERED}",
        body=body,
        headers=("Content-Type: application/x-ndjson",),
        timeout_s=BULK_TIMEOUT_S,
        judge=judge_bulk,
    )
    exchange = client.send(request)
    if exchange.failure is not None:
        raise BenchctlError(
            f"the node went away during the ingest: {exchange.detail}",
            hint="the node's log says why",
        )
    answer = request.judge(exchange.status, exchange.body)
    if answer.outcome is not Outcome.OK:
        raise BenchctlError(f"the node refused a bulk request: {answer.reason}")
