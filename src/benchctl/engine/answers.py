"""Answers of engines to each operation: asked on an unmeasured node start, and compared."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from benchctl.disk import disk_errors, replacing, stored
from benchctl.engine.client import NodeRequestError, SearchClient
from benchctl.results.answers import Answer, Found, answer_of, difference, of_log, together
from benchctl.results.model import AnswerCheck, AnswerFinding
from benchctl.track.operations import Asking, Operation, names_unknown
from benchctl.track.operations.catalogue import Composite, OpenPointInTime, parts_of
from benchctl.track.operations.search import (
    CompositeAgg,
    LoggedSearch,
    MultiSearch,
    PaginatedSearch,
    ScrollSearch,
    Search,
    change_composite,
    composites,
)

# Exact counting visits every match, and the first request finds cold caches.
ANSWER_TIMEOUT_S = 600.0

_Compared = Search | ScrollSearch | PaginatedSearch | CompositeAgg | MultiSearch


def compared(operation: Operation) -> tuple[Asking, ...]:
    """Return the searches of an operation whose answers are known well enough to be compared.

    Only those without values, since others have no single answer; those of a point in time have its index.
    """
    points: dict[str, str | None] = {}
    searches: list[Asking] = []
    for part in parts_of(operation):
        if isinstance(part, OpenPointInTime):
            points[part.name] = part.target
        elif isinstance(part, LoggedSearch) and part.searches:
            searches.append(part)
        elif isinstance(part, _Compared) and not part.values:
            point = getattr(part, "with_point_in_time_from", None)
            at_point = {} if point is None else {"index": points.get(point), "data_stream": None}
            searches.append(msgspec.structs.replace(part, **at_point))
    return tuple(searches)


def ask(client: SearchClient, operation: Operation, index_name: str) -> Answer:
    """Send one operation, counting hits exactly: the first page of several, but all searches of a batch.

    A composite's searches are a batch.

    Raises:
        BenchctlError: If the node failed for another reason than not knowing the operation or its index.
    """
    if isinstance(operation, Composite):
        return together([ask(client, search, index_name) for search in compared(operation)])
    index = operation.target or index_name
    if isinstance(operation, LoggedSearch):
        return of_log(
            [
                _search(client, operation, search.index or index, search.body, search.header, any_error=True)
                for search in operation.searches
            ]
        )
    if isinstance(operation, MultiSearch):
        return together(
            [_search(client, operation, search.index or index, search.body) for search in operation.searches]
        )
    if isinstance(operation, Search | ScrollSearch | PaginatedSearch | CompositeAgg):
        return _search(client, operation, index, first_page(operation))
    raise TypeError(f"results of {type(operation).__name__} are not compared")


def first_page(operation: Search | ScrollSearch | PaginatedSearch | CompositeAgg) -> dict[str, Any]:
    """Return the body of the operation's search: that of its first page if it has several."""
    size = operation.results_per_page
    if size is None:
        return operation.body
    if isinstance(operation, CompositeAgg):
        (names,) = composites(operation.body)
        return change_composite(operation.body, names, {"size": size})
    return {**operation.body, "size": size}


def _search(
    client: SearchClient,
    operation: Asking,
    index: str,
    asked: Mapping[str, Any],
    own: Mapping[str, str] = MappingProxyType({}),
    *,
    any_error: bool = False,
) -> Answer:
    """Send a search with URL parameters of its own; a failure of any kind may be its answer."""
    body = {**asked, "track_total_hits": True}
    # Not a parameter of a plain search.
    params = {name: value for name, value in {**operation.url_params, **own}.items() if name != "scroll"}
    timeout_s = ANSWER_TIMEOUT_S if operation.request_timeout is None else operation.request_timeout
    try:
        found = msgspec.convert(client.search(index, body, params, timeout_s), Found)
    except NodeRequestError as err:
        # 404: an index that another task creates does not exist yet.
        if err.status not in {400, 404} and not (any_error and err.status):
            raise
        if names_unknown(err.reason):
            return Answer(unsupported=err.reason)
        return Answer(failed=err.reason)
    except msgspec.ValidationError as err:
        return Answer(failed=f"the response does not have the expected form: {err}")
    return answer_of(asked, found)


class AnswerBook:
    """The answers of one variant.

    Args:
        path: the file that keeps them, which need not exist; None keeps them in memory only.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        # A half-written book is no loss: everything in it can be asked again.
        self._answers = (None if path is None else stored(path, dict[str, Answer])) or {}

    def get(self, operation: Operation) -> Answer | None:
        """Return the stored answer, or None."""
        return self._answers.get(_key(operation))

    def missing(self, operations: Iterable[Operation]) -> list[Operation]:
        """Return the operations without an answer."""
        return [operation for operation in operations if self.get(operation) is None]

    def fill(self, client: SearchClient, operations: Iterable[Operation], target: str) -> None:
        """Ask a node the operations, and write the answers.

        Raises:
            BenchctlError: If the node failed for another reason than not knowing an operation or its index.
        """
        for operation in operations:
            self.add(operation, ask(client, operation, target))
        self.save()

    def add(self, operation: Operation, answer: Answer) -> None:
        """Add an answer; `save` writes."""
        self._answers[_key(operation)] = answer

    def save(self) -> None:
        """Write the book, atomically; without a file, do nothing.

        Raises:
            BenchctlError: If the disk is full or cannot be written.
        """
        if self._path is None:
            return
        with disk_errors(f"write {self._path}"), replacing(self._path) as partial:
            partial.write_bytes(msgspec.json.encode(self._answers))


def _key(operation: Operation) -> str:
    return hashlib.sha256(msgspec.json.encode(operation.meaning, order="sorted")).hexdigest()


def compare_answers(
    operations: Iterable[Operation],
    books: Mapping[str, AnswerBook],
    baseline: str,
    own: Mapping[str, Mapping[str, Operation]] = MappingProxyType({}),
) -> AnswerCheck:
    """Compare every variant's answers with the baseline's.

    Args:
        operations: what was asked.
        books: variant name -> its book, complete for the operations.
        baseline: name of the variant to compare with.
        own: variant name -> operations of variants that have others, by name.
    """
    names: list[str] = []
    returned: dict[str, dict[str, Answer]] = {}
    findings: list[AnswerFinding] = []
    for operation in operations:
        names.append(operation.name)
        answers = {
            variant: book.get(own.get(variant, {}).get(operation.name, operation)) or Answer()
            for variant, book in books.items()
        }
        returned[operation.name] = answers
        for variant, answer in answers.items():
            findings += _judge(operation.name, variant, answer, baseline, answers[baseline])
    return AnswerCheck(tuple(names), returned, tuple(findings))


def _judge(
    operation: str, variant: str, answer: Answer, baseline: str, expected: Answer
) -> list[AnswerFinding]:
    if answer.unsupported is not None:
        return [AnswerFinding(operation, variant, baseline, "unsupported", answer.unsupported)]
    if answer.failed is not None:
        return [AnswerFinding(operation, variant, baseline, "failed", answer.failed)]
    if variant == baseline or expected.unsupported is not None or expected.failed is not None:
        return []
    detail = difference(expected, answer)
    return [AnswerFinding(operation, variant, baseline, "different", detail)] if detail else []
