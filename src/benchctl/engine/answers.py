"""Answers of engines to each operation: asked on an unmeasured node start, and compared.

Two answers agree if they have as many hits, counted exactly, and the same digests of their top hits and of
their aggregations.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from benchctl.disk import disk_errors, replacing, stored
from benchctl.engine.client import NodeRequestError, SearchClient
from benchctl.results.model import AnswerCheck, AnswerFinding
from benchctl.track.operations import Asking, Operation, names_unknown
from benchctl.track.operations.catalogue import Composite, OpenPointInTime, parts_of
from benchctl.track.operations.search import (
    CompositeAgg,
    MultiSearch,
    PaginatedSearch,
    ScrollSearch,
    Search,
    change_composite,
    composites,
)

# Sort fields that tell where a document is in the index, not what it holds.
_PLACES_IN_INDEX = frozenset({"_doc", "_shard_doc"})
# Exact counting visits every match, and the first request finds cold caches.
ANSWER_TIMEOUT_S = 600.0
_SUB_AGGREGATIONS = ("aggs", "aggregations")
# Not compared: sketches depend on the order of the documents, and on chance; what scores alike comes in any
# order, and which of it makes it into the size is arbitrary.
_ESTIMATES = frozenset(
    {"percentiles", "percentile_ranks", "median_absolute_deviation", "boxplot", "random_sampler", "top_hits"}
    | {"significant_terms", "significant_text", "rare_terms", "sampler", "diversified_sampler"}
)
# Every shard proposes its own best, and the engine decides which documents it holds.
_ESTIMATES_OVER_SHARDS = _ESTIMATES | {"terms", "multi_terms"}
# Sums of doubles depend on the order of the documents in their last digits; integers up to here are exact.
_DIGITS = 9
_EXACT = 2.0**53

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
        elif isinstance(part, _Compared) and not part.values:
            point = getattr(part, "with_point_in_time_from", None)
            at_point = {} if point is None else {"index": points.get(point), "data_stream": None}
            searches.append(msgspec.structs.replace(part, **at_point))
    return tuple(searches)


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An engine's answer to one operation, without what may legitimately differ."""

    total: int | None = None  # documents matched, counted exactly; None when the engine gave none
    returned: int = 0  # number of hits in the answer
    # Digest of the sort values of the returned hits, in order. Ids are left out: documents with equal sort
    # values may come in any order.
    top_hits: str = ""
    aggregations: str = ""  # digest of the results of aggregations, without estimates
    unsupported: str | None = None  # the node's reason when it cannot do the operation
    failed: str | None = None  # the node's reason when it refuses the request for another cause


def ask(client: SearchClient, operation: Operation, index_name: str) -> Answer:
    """Send one operation, counting hits exactly: the first page of several, but all searches of a batch.

    A composite's searches are a batch.

    Raises:
        BenchctlError: If the node failed for another reason than not knowing the operation or its index.
    """
    if isinstance(operation, Composite):
        return _together([ask(client, search, index_name) for search in compared(operation)])
    index = operation.target or index_name
    if isinstance(operation, MultiSearch):
        return _together(
            [_search(client, operation, search.index or index, search.body) for search in operation.searches]
        )
    if isinstance(operation, Search | ScrollSearch | PaginatedSearch | CompositeAgg):
        return _search(client, operation, index, first_page(operation))
    raise TypeError(f"answers of {type(operation).__name__} are not compared")


def first_page(operation: Search | ScrollSearch | PaginatedSearch | CompositeAgg) -> dict[str, Any]:
    """Return the body of the operation's search: that of its first page if it has several."""
    size = operation.results_per_page
    if size is None:
        return operation.body
    if isinstance(operation, CompositeAgg):
        (names,) = composites(operation.body)
        return change_composite(operation.body, names, {"size": size})
    return {**operation.body, "size": size}


def _together(answers: list[Answer]) -> Answer:
    """The answers of a batch as one."""
    refused = next(
        (answer for answer in answers if answer.unsupported is not None or answer.failed is not None), None
    )
    if refused is not None:
        return refused
    totals = [answer.total for answer in answers if answer.total is not None]
    return Answer(
        total=sum(totals) if len(totals) == len(answers) else None,
        returned=sum(answer.returned for answer in answers),
        top_hits=_digest([answer.top_hits for answer in answers]),
        aggregations=_digest([answer.aggregations for answer in answers]),
    )


class _Total(msgspec.Struct):
    value: int


class _Hit(msgspec.Struct):
    sort: list[Any] = []


class _Hits(msgspec.Struct):
    # A bare number where the operation asks for `rest_total_hits_as_int`.
    total: _Total | int | None = None
    hits: list[_Hit] = []


class _Shards(msgspec.Struct):
    total: int = 1


class _Found(msgspec.Struct):
    """The parts of a search's answer that are read; a running cluster may be anything."""

    hits: _Hits = msgspec.field(default_factory=_Hits)
    aggregations: Any = None
    shards: _Shards = msgspec.field(default_factory=_Shards, name="_shards")


def _search(client: SearchClient, operation: Asking, index: str, asked: Mapping[str, Any]) -> Answer:
    body = {**asked, "track_total_hits": True}
    # Not a parameter of a plain search.
    params = {name: value for name, value in operation.url_params.items() if name != "scroll"}
    timeout_s = ANSWER_TIMEOUT_S if operation.request_timeout is None else operation.request_timeout
    try:
        found = msgspec.convert(client.search(index, body, params, timeout_s), _Found)
    except NodeRequestError as err:
        # 404: an index that another task creates does not exist yet.
        if err.status not in {400, 404}:
            raise
        if names_unknown(err.reason):
            return Answer(unsupported=err.reason)
        return Answer(failed=err.reason)
    except msgspec.ValidationError as err:
        return Answer(failed=f"the answer has another form than an engine's: {err}")
    hits = found.hits
    names = _sort_names(asked.get("sort"))
    columns = next((place for place, name in enumerate(names) if name in _PLACES_IN_INDEX), None)
    estimated = _ESTIMATES if found.shards.total == 1 else _ESTIMATES_OVER_SHARDS
    left_out = frozenset(_aggregations(asked, estimated))
    return Answer(
        total=hits.total.value if isinstance(hits.total, _Total) else hits.total,
        returned=len(hits.hits),
        top_hits=_digest([hit.sort[:columns] for hit in hits.hits]),
        aggregations=_digest(_without(left_out, found.aggregations)),
    )


def _sort_names(sort: object) -> list[str]:
    if isinstance(sort, list):
        return [name for key in sort for name in _sort_names(key)]
    if isinstance(sort, Mapping):
        return list(sort)
    return [sort] if isinstance(sort, str) else []


def _aggregations(asked: Any, kinds: frozenset[str]) -> Iterator[str]:
    """Yield the names of aggregations of these kinds, at any depth of a body."""
    for key, value in asked.items() if isinstance(asked, dict) else ():
        if key in _SUB_AGGREGATIONS and isinstance(value, dict):
            yield from (name for name, one in value.items() if isinstance(one, dict) and kinds & one.keys())
        yield from _aggregations(value, kinds)
    for value in asked if isinstance(asked, list) else ():
        yield from _aggregations(value, kinds)


def _without(names: frozenset[str], found: Any) -> Any:
    """Return results of aggregations without those of these names."""
    if isinstance(found, dict):
        return {key: _without(names, value) for key, value in found.items() if key not in names}
    if isinstance(found, list):
        return [_without(names, value) for value in found]
    return found


def _digest(found: Any) -> str:
    """Return the digest of a part of an answer; empty for one that has nothing in it."""
    is_empty = not found or (isinstance(found, list) and not any(found))
    return "" if is_empty else hashlib.sha256(repr(_rounded(found)).encode()).hexdigest()[:16]


def _rounded(value: Any) -> Any:
    """Return a value whose text is the same wherever it is equal but for the last digits of doubles."""
    if isinstance(value, dict):
        return {key: _rounded(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_rounded(inner) for inner in value]
    if not isinstance(value, float):
        return value
    if not (value.is_integer() and abs(value) < _EXACT):
        value = float(f"{value:.{_DIGITS}g}")
    return int(value) if value.is_integer() else value


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
    operations: Iterable[Operation], books: Mapping[str, AnswerBook], baseline: str
) -> AnswerCheck:
    """Compare every variant's answers with the baseline's.

    Args:
        operations: what was asked.
        books: variant name -> its book, complete for the operations.
        baseline: name of the variant to compare with.
    """
    names: list[str] = []
    exact: dict[str, dict[str, int]] = {}
    findings: list[AnswerFinding] = []
    for operation in operations:
        names.append(operation.name)
        answers = {variant: book.get(operation) or Answer() for variant, book in books.items()}
        exact[operation.name] = {
            variant: answer.total for variant, answer in answers.items() if answer.total is not None
        }
        for variant, answer in answers.items():
            findings += _judge(operation.name, variant, answer, baseline, answers[baseline])
    return AnswerCheck(tuple(names), exact, tuple(findings))


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


def difference(expected: Answer, found: Answer) -> str:
    """Return the first difference between two answers, as text; empty when they agree."""
    if expected.total != found.total:
        return f"total hits {expected.total} against {found.total}"
    if expected.returned != found.returned:
        return f"{expected.returned} hits returned against {found.returned}"
    if expected.top_hits != found.top_hits:
        return "sort values of the top hits"
    return "results of aggregations" if expected.aggregations != found.aggregations else ""
