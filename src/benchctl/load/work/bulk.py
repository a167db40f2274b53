"""Bulk requests from a corpus: read, cut and framed while the clients send."""

import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from benchctl.corpus.bulk import (
    ConflictingIds,
    ConflictPlan,
    Frame,
    batches,
    frame,
    frame_created,
    frame_lines,
    frame_with_ids,
)
from benchctl.corpus.tables import key as mix_key
from benchctl.errors import BenchctlError
from benchctl.load.transport import Request
from benchctl.load.work import (
    NDJSON,
    Envelope,
    Program,
    Source,
    WorkContext,
    Workload,
    WorkOrder,
    digest,
    with_body,
)
from benchctl.track.operations import url_param
from benchctl.track.operations.admin import names_of
from benchctl.track.operations.search import Bulk


@dataclass(frozen=True)
class Portion:
    """`documents` of a file, from number `start` on."""

    source: Source
    documents: int
    start: int = 0


# Keys by which an operation chooses among files -> what they say of one.
_CHOICES = {"corpora": "corpus", "indices": "index", "data_streams": "data_stream"}


def _sources_of(operation: Bulk, context: WorkContext) -> list[Source]:
    """The files that an operation takes documents from, in order."""
    chosen = {key: names_of(getattr(operation, key)) for key in _CHOICES}
    sources = [
        source
        for source in context.sources
        if all(not names or getattr(source, _CHOICES[key]) in names for key, names in chosen.items())
    ]
    if not context.sources and context.documents is not None and operation.corpora is None:
        sources = [Source(context.documents, context.document_count)]
    if not sources:
        criteria = [f"{key.replace('_', '-')} {', '.join(names)}" for key, names in chosen.items() if names]
        selection = f" of {' and '.join(criteria)}" if criteria else ""
        raise BenchctlError(
            f"operation '{operation.name}' sends documents{selection}, but no corpus provides any"
        )
    return sources


def portions(operation: Bulk, sources: Sequence[Source]) -> list[Portion]:
    """Choose documents of each file: a share in whole requests, or the first N of all.

    Shares are rounded up at both ends, so that those which follow each other have every document once.

    Raises:
        BenchctlError: If more are requested than there are.
    """
    wanted = operation.ingest_doc_count
    if wanted is None:
        return [_share(operation, source) for source in sources]
    total = sum(source.document_count for source in sources)
    if wanted > total:
        raise BenchctlError(
            f"operation '{operation.name}': ingest-doc-count is {wanted:,}, and there are {total:,} documents"
        )
    parts = []
    for source in sources:
        taken = min(wanted, source.document_count)
        parts.append(Portion(source, taken))
        wanted -= taken
    return parts


def _share(operation: Bulk, source: Source) -> Portion:
    bodies = math.ceil(source.document_count / operation.bulk_size)
    skipped = operation.ingest_from_percentage
    first, last = (
        math.ceil(bodies * percent / 100) * operation.bulk_size
        for percent in (skipped, skipped + operation.ingest_percentage)
    )
    return Portion(source, last - first, first)


def open_bulk(operation: Bulk, order: WorkOrder) -> Workload:
    """Open the sending of the corpora's documents, shared among the clients.

    Raises:
        BenchctlError: If there is no corpus, or none of those that it names.
    """
    return open_sources(operation, order, _sources_of(operation, order.context))


def open_sources(operation: Bulk, order: WorkOrder, sources: Sequence[Source]) -> Workload:
    """Open the sending of these documents, shared among the clients.

    Raises:
        BenchctlError: If they cannot have the conflicts that it makes, or are fewer than it asks for.
    """
    if operation.conflicts is not None and any(
        source.has_actions or source.data_stream for source in sources
    ):
        raise BenchctlError(
            f"operation '{operation.name}' makes conflicts, and some of its documents cannot have any",
            hint="documents that bring their own actions have their own ids, and those of data streams none",
        )
    reader = _Reader(portions(operation, sources), operation.bulk_size, looped=operation.looped)
    # Of each source, what its requests have in common, how they are framed, and the lines of a document.
    kinds = [_kind(operation, order, source) for source in sources]
    documents = sum(source.document_count for source in sources)

    def program(client: int) -> Program:
        take, own = reader.take, _framing(operation, order, documents, client)
        chosen = [(request, framing or own, lines) for request, framing, lines in kinds]

        def next_body() -> Request | None:
            taken = take()
            if taken is None:
                return None
            source, lines = taken
            request, frame_body, lines_each = chosen[source]
            return with_body(request, frame_body(lines), len(lines) // lines_each)

        return next_body

    return Workload(program, endless=reader.looped, close=reader.close)


def bulk_request(operation: Bulk, path: str) -> Request:
    """Return what all requests to a path have in common: all but the body and its weight."""
    own = {name: getattr(operation, name) for name in ("pipeline", "refresh", "timeout")}
    params = {name: url_param(value) for name, value in own.items() if value is not None}
    return Envelope(operation, content_type=NDJSON).request(
        "POST", path, params={**params, **operation.url_params}
    )


def _kind(operation: Bulk, order: WorkOrder, source: Source) -> tuple[Request, Frame | None, int]:
    request = bulk_request(operation, _path(operation, order, source))
    if source.has_actions:
        return request, frame_lines, 2
    if source.data_stream or (operation.data_stream and not source.index):
        return request, frame_created, 1
    return request, frame if operation.conflicts is None else None, 1


def _path(operation: Bulk, order: WorkOrder, source: Source) -> str:
    """The path for documents without action lines of their own."""
    target = source.data_stream or source.index or operation.data_stream or operation.index
    if source.has_actions and target is None:
        return "/_bulk"
    kind = operation.type or source.type
    typed = f"/{quote(kind, safe='')}" if kind else ""
    return f"/{order.index(target)}{typed}/_bulk"


def _framing(operation: Bulk, order: WorkOrder, document_count: int, client: int) -> Frame:
    """Return how a client's bodies are framed.

    Every client repeats only its own ids: one that another client still has in flight could be updated before
    it is indexed.
    """
    if operation.conflicts is None:
        return frame
    plan = ConflictPlan(
        documents=document_count,
        probability=operation.conflict_probability / 100,
        shuffled=operation.conflicts == "random",
        recency=operation.recency,
    )
    ids = ConflictingIds(plan, mix_key(order.context.seed, digest(order.key), client))

    def frame_numbered(documents: Sequence[bytes]) -> bytes:
        numbers, repeated = ids.take(len(documents))
        own = numbers * order.clients + client
        return frame_with_ids(documents, own.tolist(), repeated.tolist(), operation.on_conflict)

    return frame_numbered


class _Reader:
    """Hands out `size` documents at a time to several threads; starts again at the end when looped."""

    def __init__(self, portions: Sequence[Portion], size: int, *, looped: bool) -> None:
        self.looped = looped
        self._portions = portions
        self._size = size
        self._lock = threading.Lock()
        # None once it is closed.
        self._batches: Iterator[tuple[int, list[bytes]]] | None = self._read()

    def take(self) -> tuple[int, list[bytes]] | None:
        """Return the number of a source and its next lines; None at the end."""
        with self._lock:
            if self._batches is None:
                return None
            batch = next(self._batches, None)
            if batch is None and self.looped:
                self._batches = self._read()
                batch = next(self._batches, None)
            return batch

    def _read(self) -> Iterator[tuple[int, list[bytes]]]:
        for number, portion in enumerate(self._portions):
            lines_each = 2 if portion.source.has_actions else 1
            left = portion.documents * lines_each
            if not left:
                continue
            blocks = portion.source.open(portion.start) if portion.start else portion.source.open()
            for lines in batches(blocks, self._size * lines_each):
                yield number, lines[:left]
                left -= len(lines)
                if left <= 0:
                    break

    def close(self) -> None:
        """Release the corpora: their files close with the last reference to their readers."""
        with self._lock:
            self._batches = None
