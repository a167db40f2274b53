"""Answers of engines to each operation: asked on an unmeasured node start, and compared."""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from benchctl.disk import disk_errors, replacing, stored
from benchctl.engine.client import NodeRequestError, SearchClient
from benchctl.results.model import AnswerCheck, AnswerFinding
from benchctl.track.operations import Asking, Operation, Varying, names_unknown
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

Hit = Mapping[str, Any]


def _settled_columns(body: Mapping[str, Any]) -> int | None:
    """Return how many of a hit's sort values depend on its content; None for all of them.

    From `_doc` on, they depend on how the index was built.
    """
    names = _sort_names(body.get("sort"))
    return next((place for place, name in enumerate(names) if name in _PLACES_IN_INDEX), None)


def sort_values(body: Mapping[str, Any], hits: Sequence[Hit]) -> list[Any]:
    """Return sort values of the hits, in order, without positions in the index."""
    columns = _settled_columns(body)
    if columns == 0:
        return []
    return [hit["sort"][:columns] for hit in hits if "sort" in hit]


def _sort_names(sort: object) -> list[str]:
    if isinstance(sort, list):
        return [name for key in sort for name in _sort_names(key)]
    if isinstance(sort, Mapping):
        return list(sort)
    return [sort] if isinstance(sort, str) else []


# Exact counting visits every match, and the first request finds cold caches.
ANSWER_TIMEOUT_S = 600.0


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An engine's answer to one operation, without what may legitimately differ."""

    total: int | None = None  # documents matched, counted exactly; None when the engine gave none
    returned: int = 0  # number of hits in the answer
    # of the returned hits, in order. Ids are left out: documents with equal sort values may come in any
    # order.
    sort_values: list[Any] = []
    aggregations: Any = None
    unsupported: str | None = None  # the node's reason when it cannot do the operation
    failed: str | None = None  # the node's reason when it refuses the request for another cause


def _operation_digest(operation: Operation) -> str:
    return hashlib.sha256(msgspec.json.encode(operation.meaning, order="sorted")).hexdigest()


Compared = Search | ScrollSearch | PaginatedSearch | CompositeAgg | MultiSearch
"""Operations whose answers are known well enough to be compared."""


def ask(client: SearchClient, operation: Asking, index_name: str) -> Answer:
    """Send one operation, counting hits exactly: the first page of several, but all searches of a batch.

    Raises:
        BenchctlError: If the node failed for another reason than not knowing the operation or its index.
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
    """Return the body of the operation's search: that of its first page if it has several."""
    size = operation.results_per_page
    if size is None:
        return operation.body
    if isinstance(operation, CompositeAgg):
        (names,) = composites(operation.body)
        return change_composite(operation.body, names, {"size": size})
    return {**operation.body, "size": size}


def _together(answers: list[Answer]) -> Answer:
    """The answers of a batch concatenated."""
    refused = next(
        (answer for answer in answers if answer.unsupported is not None or answer.failed is not None), None
    )
    if refused is not None:
        return refused
    totals = [answer.total for answer in answers if answer.total is not None]
    return Answer(
        total=sum(totals) if len(totals) == len(answers) else None,
        returned=sum(answer.returned for answer in answers),
        sort_values=[values for answer in answers for values in answer.sort_values],
        aggregations=[answer.aggregations for answer in answers],
    )


class _Total(msgspec.Struct):
    value: int


class _Hit(msgspec.Struct):
    sort: list[Any] = []


class _Hits(msgspec.Struct):
    # A bare number where the operation asks for `rest_total_hits_as_int`.
    total: _Total | int | None = None
    hits: list[_Hit] = []


class _Found(msgspec.Struct):
    """The parts of a search's answer that are read; a running cluster may be anything."""

    hits: _Hits = msgspec.field(default_factory=_Hits)


def _search(client: SearchClient, operation: Asking, index: str, asked: Mapping[str, Any]) -> Answer:
    body = {**asked, "track_total_hits": True}
    # Not a parameter of a plain search.
    params = {name: value for name, value in operation.url_params.items() if name != "scroll"}
    timeout_s = ANSWER_TIMEOUT_S if operation.request_timeout is None else operation.request_timeout
    try:
        found = client.search(index, body, params, timeout_s)
    except NodeRequestError as err:
        # 404: an index that another task creates does not exist yet.
        if err.status not in {400, 404}:
            raise
        if names_unknown(err.reason):
            return Answer(unsupported=err.reason)
        return Answer(failed=err.reason)
    try:
        hits = msgspec.convert(found, _Found).hits
    except msgspec.ValidationError as err:
        return Answer(failed=f"the answer has another form than an engine's: {err}")
    rows: list[Hit] = found["hits"]["hits"] if hits.hits else []
    matched = hits.total.value if isinstance(hits.total, _Total) else hits.total
    return Answer(
        total=matched,
        returned=len(rows),
        sort_values=sort_values(asked, rows),
        aggregations=found.get("aggregations"),
    )


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
        return self._answers.get(_operation_digest(operation))

    def missing(self, operations: Iterable[Asking]) -> list[Asking]:
        """Return the operations without an answer."""
        return [operation for operation in operations if self.get(operation) is None]

    def fill(self, client: SearchClient, operations: Iterable[Asking], target: str) -> None:
        """Ask a node the operations, and write the answers.

        Raises:
            BenchctlError: If the node failed for another reason than not knowing an operation or its index.
        """
        for operation in operations:
            self.add(operation, ask(client, operation, target))
        self.save()

    def add(self, operation: Operation, answer: Answer) -> None:
        """Add an answer; `save` writes."""
        self._answers[_operation_digest(operation)] = answer

    def save(self) -> None:
        """Write the book, atomically; without a file, do nothing.

        Raises:
            BenchctlError: If the disk is full or cannot be written.
        """
        if self._path is None:
            return
        with disk_errors(f"write {self._path}"), replacing(self._path) as partial:
            partial.write_bytes(msgspec.json.encode(self._answers))


_SUB_AGGREGATIONS = ("aggs", "aggregations")

# Sketches depend on the order of the documents, and on chance.
_SKETCHES = frozenset(
    {"percentiles", "percentile_ranks", "median_absolute_deviation", "boxplot", "random_sampler"}
)
# Ids differ from one index build to the next, and documents that sort alike come in any order.
_ALWAYS = _SKETCHES | {"top_hits"}
# Every shard proposes its own best, and the engine decides which documents it holds.
_OVER_SHARDS = frozenset(
    {"significant_terms", "significant_text", "rare_terms", "sampler", "diversified_sampler"}
)

_ERROR_BOUND = "doc_count_error_upper_bound"


def estimates(asked: Any, shards: int) -> frozenset[str]:
    """Return names of aggregations that only estimate on that many shards, at any depth of the bodies."""
    kinds = _ALWAYS | _OVER_SHARDS if shards > 1 else _ALWAYS
    return frozenset(name for name, definition in _aggregations(asked) if kinds & definition.keys())


def _aggregations(asked: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for key, value in _pairs(asked):
        if key in _SUB_AGGREGATIONS and isinstance(value, dict):
            yield from ((name, one) for name, one in value.items() if isinstance(one, dict))


def without(names: frozenset[str], found: Any) -> Any:
    """Return results of aggregations without those of these names."""
    if not names:
        return found
    if isinstance(found, dict):
        return {key: without(names, value) for key, value in found.items() if key not in names}
    if isinstance(found, list):
        return [without(names, one) for one in found]
    return found


def _says_estimated(result: dict[str, Any]) -> bool:
    """Return whether the engine itself states an error bound for term counts; -1 is an unknown one."""
    bound: object = result.get(_ERROR_BOUND, 0)
    return bound != 0


# Comparison. Sums of doubles depend on the order of the documents, and shards may be added in any order.
RELATIVE_TOLERANCE = 1e-9
_DETAIL_LENGTH = 160


def compare_answers(
    operations: Iterable[Operation],
    books: Mapping[str, AnswerBook],
    baseline: str,
    shards: int = 1,
) -> AnswerCheck:
    """Compare every variant's answers with the baseline's.

    Args:
        operations: what was asked.
        books: variant name -> its book, complete for the operations.
        baseline: name of the variant to compare with.
        shards: of the index; with several, some aggregations are estimates, which are not compared.
    """
    names: list[str] = []
    exact: dict[str, dict[str, int]] = {}
    findings: list[AnswerFinding] = []
    for operation in operations:
        names.append(operation.name)
        asked = operation.templates if isinstance(operation, Varying) else {}
        left_out = estimates(asked, shards)
        answers = {
            variant: _exact(book.get(operation) or Answer(), left_out) for variant, book in books.items()
        }
        exact[operation.name] = {
            variant: answer.total for variant, answer in answers.items() if answer.total is not None
        }
        for variant, answer in answers.items():
            findings += _judge(operation.name, variant, answer, baseline, answers[baseline])
    return AnswerCheck(tuple(names), exact, tuple(findings))


def _exact(answer: Answer, left_out: frozenset[str]) -> Answer:
    return msgspec.structs.replace(answer, aggregations=without(left_out, answer.aggregations))


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


@dataclass(frozen=True)
class Unlike:
    """The first difference between two pieces of answers."""

    where: str  # its path, such as `aggregations.days.buckets[3].doc_count`
    expected: str  # what is there, as text; for different keys, those that only one side has
    found: str
    how: Literal["values", "entries", "keys"] = "values"  # whether values, numbers of entries, or keys differ

    @property
    def text(self) -> str:
        """The difference in one line."""
        match self.how:
            case "values":
                detail = f"{self.expected} against {self.found}"
            case "entries":
                detail = f"{self.expected} entries against {self.found}"
            case "keys":
                detail = "only one side has " + ", ".join(filter(None, (self.expected, self.found)))
        return f"{self.where}: {detail}"[:_DETAIL_LENGTH]


def difference(expected: Answer, found: Answer) -> str:
    """Return the first difference between two answers, as text; empty when they agree."""
    if expected.total != found.total:
        return f"total hits {expected.total} against {found.total}"
    if expected.returned != found.returned:
        return f"{expected.returned} hits returned against {found.returned}"
    part = unlike(expected.sort_values, found.sort_values, "sort values")
    part = part or unlike(expected.aggregations, found.aggregations, "aggregations")
    return part.text if part else ""


def unlike(expected: Any, found: Any, where: str) -> Unlike | None:
    """Return the first difference between two pieces of answers, named `where`; None when they agree."""
    if isinstance(expected, dict) and isinstance(found, dict):
        if _says_estimated(expected) or _says_estimated(found):
            return None
        if expected.keys() != found.keys():
            lost, new = expected.keys() - found.keys(), found.keys() - expected.keys()
            return Unlike(where, ", ".join(sorted(lost)), ", ".join(sorted(new)), how="keys")
        pairs = [(f"{where}.{key}", value, found[key]) for key, value in expected.items()]
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            return Unlike(where, str(len(expected)), str(len(found)), how="entries")
        expected, found = _without_ties(expected), _without_ties(found)
        pairs = [(f"{where}[{place}]", one, found[place]) for place, one in enumerate(expected)]
    else:
        return None if same(expected, found) else Unlike(where, repr(expected), repr(found))
    return next((part for place, one, other in pairs if (part := unlike(one, other, place))), None)


def _without_ties(entries: list[Any]) -> list[Any]:
    """Scored buckets in a canonical order; other lists unchanged.

    Significant terms of equal scores come in any order, and which of them make it into the size is arbitrary:
    of those that score like the last one, only numbers are kept.
    """
    if not entries or not all(isinstance(entry, dict) and "score" in entry for entry in entries):
        return entries
    last = entries[-1]["score"]
    settled = sorted(entries, key=lambda entry: (-entry["score"], str(entry.get("key"))))
    numbers = ("score", "doc_count", "bg_count")
    return [
        {name: entry.get(name) for name in numbers} if entry["score"] == last else entry for entry in settled
    ]


def same(expected: object, found: object, tolerance: float = RELATIVE_TOLERANCE) -> bool:
    """Return whether two scalars are equal, numbers within a relative tolerance."""
    numbers = (int, float)
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    if isinstance(expected, numbers) and isinstance(found, numbers):
        return math.isclose(expected, found, rel_tol=tolerance)
    return expected == found


def _pairs(asked: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(asked, list):
        for one in asked:
            yield from _pairs(one)
    elif isinstance(asked, dict):
        for key, value in asked.items():
            yield key, value
            yield from _pairs(value)
