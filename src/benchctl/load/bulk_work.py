"""Bulk requests out of a corpus: read, cut and framed while the clients send."""

import hashlib
import math
import threading
from collections.abc import Callable, Iterator

from benchctl.corpus.bits import key as mix_key
from benchctl.corpus.bulk import batches, frame, frame_with_ids
from benchctl.corpus.conflicts import ConflictingIds, ConflictPlan
from benchctl.errors import BenchctlError
from benchctl.load.envelope import NDJSON, Envelope
from benchctl.load.judge import judge_bulk
from benchctl.load.request import Request
from benchctl.load.workload import Program, Workload, WorkOrder
from benchctl.track.operation import Bulk, url_param

Frame = Callable[[list[bytes]], bytes]


def open_bulk(operation: Bulk, order: WorkOrder) -> Workload:
    """Documents of the corpus, shared out among the clients.

    Raises:
        BenchctlError: there is no corpus where it runs.
    """
    context = order.context
    if context.documents is None:
        raise BenchctlError(
            f"operation '{operation.name}' sends documents, and there is no corpus to take them from"
        )
    params = {
        "pipeline": operation.pipeline,
        "refresh": operation.refresh,
        "timeout": operation.timeout,
    }
    request = Envelope(operation, content_type=NDJSON).request(
        "POST",
        f"/{order.index(operation.index)}/_bulk",
        params={
            **{name: url_param(value) for name, value in params.items() if value is not None},
            **operation.url_params,
        },
        judge=judge_bulk,
    )
    bodies = math.ceil(context.document_count / operation.bulk_size)
    most = math.ceil(bodies * operation.ingest_percentage / 100)
    reader = _Reader(context.documents, operation.bulk_size, most, looped=operation.looped)
    return BulkWork(request, reader, lambda client: _framing(operation, order, client))


def _framing(operation: Bulk, order: WorkOrder, client: int) -> Frame:
    """How a client's bodies are framed.

    Every client repeats ids of its own only: one that another client's request still has in flight could be
    updated before it is there.
    """
    if operation.conflicts is None:
        return frame
    plan = ConflictPlan(
        documents=order.context.document_count,
        probability=operation.conflict_probability / 100,
        shuffled=operation.conflicts == "random",
        recency=operation.recency,
    )
    digest = hashlib.blake2b(order.key.encode(), digest_size=8).digest()
    ids = ConflictingIds(plan, mix_key(order.context.seed, int.from_bytes(digest), client))

    def frame_numbered(documents: list[bytes]) -> bytes:
        numbers, repeated = ids.take(len(documents))
        own = numbers * order.clients + client
        return frame_with_ids(documents, own.tolist(), repeated.tolist(), operation.on_conflict)

    return frame_numbered


class BulkWork:
    """Whoever is free takes the next documents of the corpus, in its order.

    Args:
        request: what all have in common.
        reader: gives out the documents.
        framing: client -> how it frames its bodies.
    """

    def __init__(self, request: Request, reader: "_Reader", framing: Callable[[int], Frame]) -> None:
        self.endless = reader.looped
        self._request = request
        self._reader = reader
        self._framing = framing

    def program(self, client: int) -> Program:
        """What one client sends."""
        take, frame_body, request = self._reader.take, self._framing(client), self._request

        def next_body() -> Request | None:
            documents = take()
            if documents is None:
                return None
            return Request(
                request.method,
                request.path,
                frame_body(documents),
                request.headers,
                request.timeout_s,
                request.judge,
                request.searches,
                len(documents),
                request.retries,
            )

        return next_body

    def close(self) -> None:
        """Close the corpus; nobody gets any more of it."""
        self._reader.close()


class _Reader:
    """Hands out documents to several threads.

    Args:
        open_documents: opens the corpus.
        size: documents at a time.
        most: how many times until the end.
        looped: begin again there.
    """

    def __init__(
        self, open_documents: Callable[[], Iterator[bytes]], size: int, most: int, *, looped: bool
    ) -> None:
        self.looped = looped
        self._open = open_documents
        self._size = size
        self._most = most
        self._lock = threading.Lock()
        self._left = most
        self._batches: Iterator[list[bytes]] | None = None
        self._closed = False

    def take(self) -> list[bytes] | None:
        """The next documents; None at the end."""
        with self._lock:
            if self._closed:
                return None
            found = self._next()
            if found is None and self.looped:
                self._batches = None
                self._left = self._most
                found = self._next()
            return found

    def _next(self) -> list[bytes] | None:
        if not self._left:
            return None
        if self._batches is None:
            self._batches = batches(self._open(), self._size)
        self._left -= 1
        return next(self._batches, None)

    def close(self) -> None:
        """Let go of the corpus: its files close with the last reference to what reads them."""
        with self._lock:
            self._closed = True
            self._batches = None
