"""Sending a corpus to its indices: concurrent bulk bodies over the measured wire client, with checkpoints."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from queue import Queue
from types import TracebackType
from typing import Self
from urllib.parse import quote

from benchctl.corpus.documents import Numbering, Range, merged
from benchctl.endpoint import Endpoint
from benchctl.errors import BenchctlError
from benchctl.load.request import Request, judge_bulk
from benchctl.load.transport import MeasuredClient, open_client
from benchctl.results.samples import Outcome

# An ingest that is stopped and worth keeping waits that long for answers: bodies take a tenth of a second.
PATIENCE_S = 10.0
# Acknowledged ranges are put together from time to time, so that a long ingest keeps few of them.
_MOST_RANGES = 256

Stream = tuple[str, Iterator[tuple[int, bytes]]]
"""Where documents go, empty when their own lines say so, and their bodies: (documents, body)."""


# Threads that send bulk bodies, a connection each: one body after the other, stopped at once or in peace.

# Bodies framed ahead of the senders: enough to hide the reader, few enough to bound memory.
BODIES_AHEAD = 4
BULK_TIMEOUT_S = 300.0
# An answer names every document, a fifth as many bytes again; only those that were refused matter here.
_ANSWERED = "took,errors,items.*.error"


@dataclass(frozen=True)
class Body:
    """Documents to send.

    Attributes:
        target: the index or data stream that they go to; empty when their own lines say so.
        documents: how many.
        payload: what is sent.
        ranges: their numbers, where somebody wants to know them.
    """

    target: str
    documents: int
    payload: bytes
    ranges: tuple[Range, ...] = ()


class Senders:
    """As many threads as there are connections; a context manager that leaves none of them behind.

    Args:
        wires: one for each thread, which closes it.
        on_acknowledged: told of every body that the node took, in any order, by its sender.
    """

    def __init__(self, wires: Sequence[MeasuredClient], on_acknowledged: Callable[[Body], None]) -> None:
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._in_flight:
            # Whoever pressed Ctrl-C does not wait for the answer of a node that hangs.
            for wire in self._wires:
                wire.interrupt()
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()

    def put(self, body: Body) -> None:
        """Give the next body to the next free sender, as soon as there is room for it.

        Raises:
            BaseException: what an earlier body failed of.
        """
        with self._changed:
            self._raise_failure()
            self._unanswered += 1
        self._waiting.put(body)

    def wait_answered(self) -> None:
        """Wait until every body that was put is answered.

        Raises:
            BaseException: what one of them failed of.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._unanswered == 0 or self._failure is not None)
            self._raise_failure()

    def stop(self, reason: BaseException) -> None:
        """Send nothing more; what is in flight goes on."""
        with self._changed:
            self._failure = self._failure or reason

    def wait_stopped(self, timeout_s: float) -> bool:
        """After `stop`, wait until nothing is in flight; False when that takes longer.

        Bodies that wait are not counted: an interrupt may have come between counting and queueing one.
        """
        with self._changed:
            return self._changed.wait_for(lambda: self._in_flight == 0, timeout_s)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _send_all(self, client: MeasuredClient) -> None:
        """Take bodies until the end mark; after a failure keep taking, so that the reader never blocks."""
        with client:
            while (body := self._waiting.get()) is not None:
                if not self._begin():
                    continue
                failure: Exception | None = None
                try:
                    _send(client, body)
                    self._on_acknowledged(body)
                except Exception as err:  # noqa: BLE001 - whatever it is, the caller raises it
                    failure = err
                self._end(failure)

    def _begin(self) -> bool:
        with self._changed:
            if self._failure is None:
                self._in_flight += 1
            return self._failure is None

    def _end(self, failure: Exception | None) -> None:
        with self._changed:
            self._failure = self._failure or failure
            self._in_flight -= 1
            self._unanswered -= 1
            self._changed.notify_all()


def _send(client: MeasuredClient, body: Body) -> None:
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
            hint="the node's log says why",
        )
    answer = request.judge(exchange.status, exchange.body)
    if answer.outcome is not Outcome.OK:
        raise BenchctlError(f"the node refused a bulk request: {answer.reason}")


# Sending a corpus to its indices.


@dataclass(frozen=True)
class Ingested:
    """What was sent and acknowledged, and how long it took from the first request to the last answer.

    Attributes:
        documents: how many.
        body_bytes: of the bulk requests.
        seconds: without those that checkpoints took.
        checkpoint_s: what they took.
        ranges: which documents, by their numbers; empty without checkpoints.
    """

    documents: int
    body_bytes: int
    seconds: float
    checkpoint_s: float = 0.0
    ranges: tuple[Range, ...] = ()


@dataclass(frozen=True)
class Checkpoints:
    """How what was acknowledged is put by, so that another ingest can go on from there.

    Attributes:
        save: puts by what is acknowledged so far, while nothing is in flight. Whether all of that is in the
            index, and only that, is for it to find out: a body that failed may have got there all the same.
            Must not raise but for an interrupt.
        missing: the documents that this ingest sends, by their numbers, in order.
        every_bytes: of bodies, between two.
        after_s: an ingest that is stopped earlier is not put by.
        patience_s: how long one that is stopped waits for what is in flight.
    """

    save: Callable[[Ingested], None]
    missing: Sequence[Range]
    every_bytes: int
    after_s: float
    patience_s: float = PATIENCE_S


def ingest(
    streams: Iterable[Stream],
    *,
    endpoint: Endpoint | str,
    clients: int,
    on_progress: Callable[[int], None],
    checkpoints: Checkpoints | None = None,
) -> Ingested:
    """Send bulk bodies, in order, each by the next free client.

    The order in an index is the corpus's own only within a body: the engine decides when it cuts segments,
    and by size in which order it merges them, so that even one sender gives another index each time.

    One reader feeds all clients, which start at once: it frames several times as fast as an engine indexes,
    and readers of their own, each in another part of the corpus, would fill the index in another order.

    Args:
        streams: one after the other.
        endpoint: the node or cluster, or its address.
        clients: concurrent senders, a connection each.
        on_progress: told the number of documents acknowledged so far.
        checkpoints: how to put by what is acknowledged; None where an interrupted ingest is lost.

    Raises:
        BenchctlError: the node refused documents or went away; nothing is sent after that.
    """
    tally = _Tally(on_progress)
    wires = [open_client(endpoint, number) for number in range(clients)]
    with Senders(wires, tally.add) as senders:
        try:
            _feed(streams, senders, tally, checkpoints)
        except BaseException as err:
            senders.stop(err)
            if checkpoints is not None and tally.seconds >= checkpoints.after_s:
                # What is in flight may get into the index: only its answer tells.
                stopped = senders.wait_stopped(checkpoints.patience_s)
                if stopped and tally.sum().documents:
                    tally.save(checkpoints)
            raise
        return tally.sum()


def _feed(
    streams: Iterable[Stream], senders: Senders, tally: "_Tally", checkpoints: Checkpoints | None
) -> None:
    """Give the senders all bodies, and put by what they sent every so many bytes."""
    numbering = None if checkpoints is None else Numbering(checkpoints.missing)
    unsaved = 0
    for target, bodies in streams:
        for documents, payload in bodies:
            ranges = () if numbering is None else numbering.take(documents)
            senders.put(Body(target, documents, payload, ranges))
            unsaved += len(payload)
            if checkpoints is not None and unsaved >= checkpoints.every_bytes:
                senders.wait_answered()
                tally.save(checkpoints)
                unsaved = 0
    senders.wait_answered()


class _Tally:
    """What the senders have done together."""

    def __init__(self, on_progress: Callable[[int], None]) -> None:
        self._documents = 0
        self._body_bytes = 0
        self._ranges: list[Range] = []
        self._checkpoint_s = 0.0
        self._start = time.monotonic()
        self._on_progress = on_progress
        self._lock = threading.Lock()

    @property
    def seconds(self) -> float:
        """Since the beginning, without checkpoints."""
        return time.monotonic() - self._start - self._checkpoint_s

    def add(self, body: Body) -> None:
        """A body was acknowledged."""
        with self._lock:
            self._documents += body.documents
            self._body_bytes += len(body.payload)
            self._ranges += body.ranges
            if len(self._ranges) > _MOST_RANGES:
                self._ranges = list(merged(self._ranges))
            self._on_progress(self._documents)

    def sum(self) -> Ingested:
        """Of all that was acknowledged so far."""
        with self._lock:
            return Ingested(
                self._documents, self._body_bytes, self.seconds, self._checkpoint_s, merged(self._ranges)
            )

    def save(self, checkpoints: Checkpoints) -> None:
        """Put by what was acknowledged so far; the time is not the ingest's."""
        begun = time.monotonic()
        try:
            checkpoints.save(self.sum())
        finally:
            self._checkpoint_s += time.monotonic() - begun
