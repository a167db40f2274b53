"""What an engine answers to each operation: asked on a node start that is never measured, and kept."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from benchctl.disk import disk_errors, read_file, replacing
from benchctl.engine.answers.top import scores, sort_values, top_hits
from benchctl.engine.client import SearchClient
from benchctl.engine.wires import NodeRequestError
from benchctl.results.answers import TopHits
from benchctl.track.operations.common import Asking, Operation, names_unknown
from benchctl.track.operations.search import (
    CompositeAgg,
    MultiSearch,
    PaginatedSearch,
    ScrollSearch,
    Search,
    change_composite,
    composites,
)

# Exact counting visits every match, and the first question finds cold caches.
ANSWER_TIMEOUT_S = 600.0


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one engine says to one operation, without what may legitimately differ.

    Attributes:
        total: documents matched, counted exactly; None when the engine gave none.
        returned: number of hits in the answer.
        sort_values: of the returned hits, in order. Ids are left out: documents with equal sort values may
            come in any order.
        aggregations: as answered.
        scores: of the first hits, where nothing else sorts them. Engines score as they like, so that these
            are held against answers of the same engine only; so is `top`.
        top: the first hits by their content, as far as their order is settled.
        unsupported: the node's reason when it cannot do the operation.
        failed: the node's reason when it refuses the request for another cause.
    """

    total: int | None = None
    returned: int = 0
    sort_values: list[Any] = []
    aggregations: Any = None
    scores: tuple[float, ...] = ()
    top: tuple[TopHits, ...] = ()
    unsupported: str | None = None
    failed: str | None = None


def operation_digest(operation: Operation) -> str:
    """SHA-256 over what is asked."""
    return hashlib.sha256(msgspec.json.encode(operation.meaning, order="sorted")).hexdigest()


def ask(client: SearchClient, operation: Asking, index_name: str) -> Answer:
    """Ask one operation, with exact counting of hits: the first page of several, all searches of a batch.

    Raises:
        BenchctlError: the node failed in another way than by not knowing the operation, or what it asks.
    """
    index = operation.target or index_name
    if isinstance(operation, MultiSearch):
        return _together(
            [_search(client, operation, search.index or index, search.body) for search in operation.searches]
        )
    if isinstance(operation, Search | ScrollSearch | PaginatedSearch | CompositeAgg):
        return _search(client, operation, index, first_page(operation))
    raise TypeError(f"answers of {type(operation).__name__} are not compared")


def first_page(operation: Search | ScrollSearch | PaginatedSearch | CompositeAgg) -> dict[str, Any]:
    """The body that is asked for an operation: that of its first page where it has several."""
    size = operation.results_per_page
    if size is None:
        return operation.body
    if isinstance(operation, CompositeAgg):
        (names,) = composites(operation.body)
        return change_composite(operation.body, names, {"size": size})
    return {**operation.body, "size": size}


def _together(answers: list[Answer]) -> Answer:
    """The answers of a batch as one, one search behind the other."""
    refused = next((one for one in answers if one.unsupported is not None or one.failed is not None), None)
    if refused is not None:
        return refused
    totals = [one.total for one in answers if one.total is not None]
    return Answer(
        total=sum(totals) if len(totals) == len(answers) else None,
        returned=sum(one.returned for one in answers),
        sort_values=[values for one in answers for values in one.sort_values],
        aggregations=[one.aggregations for one in answers],
        scores=tuple(score for one in answers for score in one.scores),
        top=tuple(hits for one in answers for hits in one.top),
    )


def _search(client: SearchClient, operation: Asking, index: str, asked: Mapping[str, Any]) -> Answer:
    body = {**asked, "track_total_hits": True}
    # What belongs to a scroll is no part of a search.
    params = {name: value for name, value in operation.url_params.items() if name != "scroll"}
    timeout_s = ANSWER_TIMEOUT_S if operation.request_timeout is None else operation.request_timeout
    try:
        found = client.search(index, body, params, timeout_s)
    except NodeRequestError as err:
        # An index that another task makes is not there yet.
        if err.status not in {400, 404}:
            raise
        if names_unknown(err.reason):
            return Answer(unsupported=err.reason)
        return Answer(failed=err.reason)
    hits = found.get("hits", {})
    rows = hits.get("hits", [])
    total = hits.get("total")
    # A bare number where the operation asks for `rest_total_hits_as_int`.
    matched = total.get("value") if isinstance(total, dict) else total
    return Answer(
        total=matched,
        returned=len(rows),
        sort_values=sort_values(asked, rows),
        aggregations=found.get("aggregations"),
        scores=scores(rows),
        top=top_hits(asked, params, matched, rows),
    )


class AnswerBook:
    """The answers of one variant to what it was asked.

    Args:
        path: the file that keeps them; it need not exist. None for answers that no file keeps.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._answers: dict[str, Answer] = {}
        if path is not None and path.is_file():
            try:
                self._answers = msgspec.json.decode(read_file(path), type=dict[str, Answer])
            except msgspec.DecodeError:
                # A half-written book is no loss: everything in it can be asked again.
                self._answers = {}

    def get(self, operation: Operation) -> Answer | None:
        """The kept answer, or None."""
        return self._answers.get(operation_digest(operation))

    def missing(self, operations: Iterable[Operation]) -> list[Operation]:
        """Those not asked yet."""
        return [operation for operation in operations if self.get(operation) is None]

    def add(self, operation: Operation, answer: Answer) -> None:
        """Keep an answer; `save` writes."""
        self._answers[operation_digest(operation)] = answer

    def save(self) -> None:
        """Write the book, atomically; nothing happens where no file keeps it.

        Raises:
            BenchctlError: the disk is full or cannot be written.
        """
        if self._path is None:
            return
        with disk_errors(f"write {self._path}"), replacing(self._path) as partial:
            partial.write_bytes(msgspec.json.encode(self._answers))
