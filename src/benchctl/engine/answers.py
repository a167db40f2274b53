"""What engines answer to each operation: asked on a node start that is never measured, compared, and kept."""

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from benchctl.disk import disk_errors, read_file, replacing
from benchctl.engine.client import NodeRequestError, SearchClient
from benchctl.results.answers import ANSWERS_VERSION, Cut, KeptAnswer, TopHits, VariantAnswers
from benchctl.results.model import AnswerCheck, AnswerFinding
from benchctl.track.operations.common import Asking, Operation, Varying, names_unknown
from benchctl.track.operations.search import (
    CompositeAgg,
    MultiSearch,
    PaginatedSearch,
    ScrollSearch,
    Search,
    change_composite,
    composites,
)

TOP_HITS = 10
DIGEST_LENGTH = 16
BEGINNING_LENGTH = 120

# Scores are 32-bit floats, and a sum of a few of them may differ in its last bits.
SCORE_TOLERANCE = 1e-6

_DEFAULT_SIZE = 10
_CONTENT = ("_source", "fields")
# Where a document is in the index, not what it holds.
_PLACES_IN_INDEX = frozenset({"_doc", "_shard_doc"})
# Which documents these bring to the top is chance, or up to how the index was built.
_UNSETTLING = frozenset({"collapse", "knn", "rank", "rescore", "retriever", "terminate_after", "timeout"})

Hit = Mapping[str, Any]


def _settled_columns(body: Mapping[str, Any]) -> int | None:
    """How many of a hit's sort values speak of its content; None for all of them.

    Those from `_doc` on follow from how the index was built.
    """
    names = _sort_names(body.get("sort"))
    return next((place for place, name in enumerate(names) if name in _PLACES_IN_INDEX), None)


def sort_values(body: Mapping[str, Any], hits: Sequence[Hit]) -> list[Any]:
    """Sort values of the hits, in order, without places in the index."""
    columns = _settled_columns(body)
    if columns == 0:
        return []
    return [hit["sort"][:columns] for hit in hits if "sort" in hit]


def scores(hits: Sequence[Hit]) -> tuple[float, ...]:
    """Scores of the first hits; empty where something else sorts them."""
    found = [hit.get("_score") for hit in hits[:TOP_HITS] if "sort" not in hit]
    return tuple(float(score) for score in found if score is not None)


def top_hits(
    body: Mapping[str, Any], params: Mapping[str, str], total: int | None, hits: Sequence[Hit]
) -> tuple[TopHits, ...]:
    """The first hits in groups that sort alike, without those of which the answer shows only some.

    Args:
        body: as asked.
        params: of the URL, as asked.
        total: documents matched, as far as it was counted.
        hits: as answered.

    Returns:
        Groups that begin among the first ten hits. None at all where the order of hits means nothing, or
        hits come without their content.
    """
    if _unsettled(body, params) or not all(any(key in hit for key in _CONTENT) for hit in hits):
        return ()
    groups = list(_groups(body, hits))
    page = {"size": _DEFAULT_SIZE, **body, **params}
    if groups and len(hits) >= int(page["size"]) and total != len(hits):
        # Behind the last hit there may be others that sort like it.
        groups.pop()
    if groups and page.get("from"):
        groups.pop(0)
    return tuple(
        TopHits(
            first=first + 1,
            documents=len(group),
            by=_key(body, group[0]),
            digest=_digest(group),
            begins=_beginning(group[0]) if first == 0 and len(group) == 1 else "",
        )
        for first, group in groups
        if first < TOP_HITS
    )


def _unsettled(body: Mapping[str, Any], params: Mapping[str, str]) -> bool:
    """Whether which documents are at the top is no matter of what they hold."""
    if _settled_columns(body) == 0 or not _UNSETTLING.isdisjoint({*body, *params}):
        return True
    return "knn" in _keys(body.get("query")) or "sort" in params


def _keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _keys(one)


def _sort_names(sort: object) -> list[str]:
    if isinstance(sort, list):
        return [name for one in sort for name in _sort_names(one)]
    if isinstance(sort, Mapping):
        return list(sort)
    return [sort] if isinstance(sort, str) else []


def _key(body: Mapping[str, Any], hit: Hit) -> Any:  # noqa: ANN401 - sort values may be of any type
    """What places a hit."""
    return hit["sort"][: _settled_columns(body)] if "sort" in hit else hit.get("_score")


def _groups(body: Mapping[str, Any], hits: Sequence[Hit]) -> Iterator[tuple[int, list[Hit]]]:
    """Neighbours that sort alike, each group with the place of its first hit."""
    first = 0
    for place in range(1, len(hits) + 1):
        if place == len(hits) or not _alike(_key(body, hits[place - 1]), _key(body, hits[place])):
            yield first, list(hits[first:place])
            first = place


def _alike(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=SCORE_TOLERANCE)
    return one == other


def _content(hit: Hit) -> bytes:
    return msgspec.json.encode({key: hit[key] for key in _CONTENT if key in hit}, order="sorted")


def _digest(group: Sequence[Hit]) -> str:
    parts = sorted(hashlib.sha256(_content(hit)).digest() for hit in group)
    return hashlib.sha256(b"".join(parts)).hexdigest()[:DIGEST_LENGTH]


def _beginning(hit: Hit) -> str:
    shown = next(hit[key] for key in _CONTENT if key in hit)
    return msgspec.json.encode(shown).decode()[:BEGINNING_LENGTH]


# What an engine answers to each operation: asked on a node start that is never measured, and kept.

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


def _operation_digest(operation: Operation) -> str:
    """SHA-256 over what is asked."""
    return hashlib.sha256(msgspec.json.encode(operation.meaning, order="sorted")).hexdigest()


Compared = Search | ScrollSearch | PaginatedSearch | CompositeAgg | MultiSearch
"""Operations whose answers are known well enough to be compared."""


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
    # What belongs to a scroll is not part of a search.
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
        return self._answers.get(_operation_digest(operation))

    def missing(self, operations: Iterable[Operation]) -> list[Operation]:
        """Those not asked yet."""
        return [operation for operation in operations if self.get(operation) is None]

    def add(self, operation: Operation, answer: Answer) -> None:
        """Keep an answer; `save` writes."""
        self._answers[_operation_digest(operation)] = answer

    def save(self) -> None:
        """Write the book, atomically; nothing happens where no file keeps it.

        Raises:
            BenchctlError: the disk is full or cannot be written.
        """
        if self._path is None:
            return
        with disk_errors(f"write {self._path}"), replacing(self._path) as partial:
            partial.write_bytes(msgspec.json.encode(self._answers))


# Aggregations that estimate: two engines that both work need not say the same.

_SUB_AGGREGATIONS = ("aggs", "aggregations")

# Sketches that depend on the order in which documents come, and on chance.
_SKETCHES = frozenset(
    {"percentiles", "percentile_ranks", "median_absolute_deviation", "boxplot", "random_sampler"}
)
# Ids differ from one index build to the next, and documents that sort alike come in any order.
_ALWAYS = _SKETCHES | {"top_hits"}
# Every shard proposes its own best, and which documents are on it is up to the engine.
_OVER_SHARDS = frozenset(
    {"significant_terms", "significant_text", "rare_terms", "sampler", "diversified_sampler"}
)

_ERROR_BOUND = "doc_count_error_upper_bound"


def estimates(asked: Any, shards: int) -> frozenset[str]:  # noqa: ANN401 - JSON of any shape
    """Names of those aggregations, at any depth, whose results are not to be compared.

    Args:
        asked: one body, or several.
        shards: of what is searched.
    """
    kinds = _ALWAYS | _OVER_SHARDS if shards > 1 else _ALWAYS
    return frozenset(name for name, definition in _aggregations(asked) if kinds & definition.keys())


def _aggregations(asked: Any) -> Iterator[tuple[str, dict[str, Any]]]:  # noqa: ANN401 - JSON of any shape
    if isinstance(asked, list):
        for one in asked:
            yield from _aggregations(one)
    elif isinstance(asked, dict):
        for key, value in asked.items():
            if key in _SUB_AGGREGATIONS and isinstance(value, dict):
                yield from ((name, one) for name, one in value.items() if isinstance(one, dict))
            yield from _aggregations(value)


def without(names: frozenset[str], found: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """Results of aggregations without those of some names."""
    if not names:
        return found
    if isinstance(found, dict):
        return {key: without(names, value) for key, value in found.items() if key not in names}
    if isinstance(found, list):
        return [without(names, one) for one in found]
    return found


def _says_estimated(result: dict[str, Any]) -> bool:
    """Whether the engine itself gives an error for the counts of frequent terms; -1 is an unknown one."""
    bound: object = result.get(_ERROR_BOUND, 0)
    return bound != 0


# Do engines answer alike, and rightly? What counts as a difference, and what does not.

# Sums of doubles depend on the order of the documents, and shards may add in any order.
RELATIVE_TOLERANCE = 1e-9
_DETAIL_LENGTH = 160


def compare_answers(
    operations: Iterable[Operation],
    books: Mapping[str, AnswerBook],
    baseline: str,
    expected: Mapping[str, AnswerBook] = MappingProxyType({}),
    shards: int = 1,
) -> AnswerCheck:
    """Hold every variant's answers against the baseline's, and against what is known to be right.

    Args:
        operations: what was asked.
        books: variant name -> its book, complete for the operations.
        baseline: the variant to hold the others against.
        expected: variant name -> what its documents make the only right answers, as far as that is known.
        shards: of the index; over several, some aggregations are estimates, which are not compared.
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
            known = expected[variant].get(operation) if variant in expected else None
            if known is not None and (detail := contradiction(known, answer)):
                findings.append(AnswerFinding(operation.name, variant, "", "wrong", detail))
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
    """Where two pieces of answers part, and what each of them has there.

    Attributes:
        where: the way there, such as `aggregations.days.buckets[3].doc_count`.
        expected, found: what is there, in words; where objects have other keys, those that only one has.
        how: of the two: other values, another number of entries, or other keys.
    """

    where: str
    expected: str
    found: str
    how: Literal["values", "entries", "keys"] = "values"

    @property
    def text(self) -> str:
        """All of it in one line."""
        match self.how:
            case "values":
                detail = f"{self.expected} against {self.found}"
            case "entries":
                detail = f"{self.expected} entries against {self.found}"
            case "keys":
                detail = "only one side has " + ", ".join(filter(None, (self.expected, self.found)))
        return f"{self.where}: {detail}"[:_DETAIL_LENGTH]


def difference(expected: Answer, found: Answer) -> str:
    """The first way in which two answers differ, in words; empty when they agree."""
    if expected.total != found.total:
        return f"total hits {expected.total} against {found.total}"
    if expected.returned != found.returned:
        return f"{expected.returned} hits returned against {found.returned}"
    part = unlike(expected.sort_values, found.sort_values, "sort values")
    part = part or unlike(expected.aggregations, found.aggregations, "aggregations")
    return part.text if part else ""


def contradiction(expected: Answer, found: Answer) -> str:
    """The first way in which an answer is wrong, in words; empty when it is right, or there is none.

    Args:
        expected: what must be found; of its aggregations, objects need not have all keys.
        found: what an engine says.
    """
    if found.unsupported is not None or found.failed is not None:
        return ""
    known = _within(expected.aggregations, found.aggregations)
    return difference(expected, msgspec.structs.replace(found, aggregations=known))


def _within(shape: Any, found: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """What is found, without the keys of objects that the shape does not have."""
    if isinstance(shape, dict) and isinstance(found, dict):
        return {key: _within(shape[key], value) for key, value in found.items() if key in shape}
    if isinstance(shape, list) and isinstance(found, list) and len(shape) == len(found):
        return [_within(one, other) for one, other in zip(shape, found, strict=True)]
    return found


def unlike(expected: Any, found: Any, where: str) -> Unlike | None:  # noqa: ANN401 - JSON of any shape
    """The first place where two pieces of answers differ; None when they agree.

    Args:
        expected: sort values or aggregations.
        found: the same of another answer.
        where: how to call the whole.
    """
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
    """Buckets with scores in an order of their own; other lists as they are.

    Significant terms of equal scores come in any order, and which of them are within the size is open: of
    those that score like the last one, only numbers are left.
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
    """Whether two plain values are alike, numbers within a relative tolerance."""
    numbers = (int, float)
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    if isinstance(expected, numbers) and isinstance(found, numbers):
        return math.isclose(expected, found, rel_tol=tolerance)
    return expected == found


# Answers in the form that a run keeps: small, and without what two right answers may differ in.

WHOLE_BYTES = 32 * 1024
"""Sort values and aggregations of up to so many bytes are kept whole."""

# What agrees must have one digest: numbers go in by their place on a logarithmic scale of such steps, wide
# beside the tolerance of comparisons. The offset keeps round numbers off the edges between two steps.
_STEP = 1e-6
_OFFSET = 0.4142135

_SCORES = "scores"
_BOUNDS = frozenset({"gte", "gt", "lte", "lt", "from", "to"})
_NOW = re.compile(r"now([-+/|]|$)")
_NOW_IN_WORDS = re.compile(r"(?:[\[{]|\bTO )now\b")


def keep_answers(
    variant: str, operations: Iterable[Operation], book: AnswerBook, *, shards: int, anew: bool
) -> VariantAnswers:
    """What a run keeps of a variant's answers.

    Args:
        variant: its label.
        operations: what it was asked, in order.
        book: complete for them.
        shards: of the index; over several, scores and some aggregations depend on which document is where.
        anew: whether it was asked for this run.
    """
    kept = [keep(operation, book.get(operation) or Answer(), shards) for operation in operations]
    return VariantAnswers(ANSWERS_VERSION, variant, anew, tuple(kept))


def keep(operation: Operation, answer: Answer, shards: int) -> KeptAnswer:
    """One answer in the form that is kept; see `keep_answers`."""
    asked = operation.templates if isinstance(operation, Varying) else {}
    estimated = estimates(asked, shards)
    # Every shard reckons by how rare a word is on itself.
    unlike_scores = shards > 1 and bool(answer.scores)
    aggregations = without(estimated, answer.aggregations)
    sort_values_cut = cut(answer.sort_values)
    aggregations_cut = cut(aggregations)
    return KeptAnswer(
        operation=operation.name,
        question=_operation_digest(operation),
        total=answer.total,
        returned=answer.returned,
        sort_values=[] if sort_values_cut else answer.sort_values,
        sort_values_cut=sort_values_cut,
        aggregations=None if aggregations_cut else aggregations,
        aggregations_cut=aggregations_cut,
        scores=() if unlike_scores else answer.scores,
        top=() if unlike_scores else answer.top,
        left_out=(*sorted(estimated), *([_SCORES] if unlike_scores else [])),
        unsteady=unsteady(asked),
        unsupported=answer.unsupported,
        failed=answer.failed,
    )


def cut(found: Any) -> Cut | None:  # noqa: ANN401 - JSON of any shape
    """What is left of something large; None for what is kept whole."""
    encoded = msgspec.json.encode(found)
    if len(encoded) <= WHOLE_BYTES:
        return None
    return digested(found)


def digested(found: Any) -> Cut:  # noqa: ANN401 - JSON of any shape
    """Sort values or aggregations as if they were too large to keep."""
    encoded = msgspec.json.encode(found)
    settled = msgspec.json.encode(_settled(found), order="sorted")
    return Cut(
        size_bytes=len(encoded),
        entries=len(found) if isinstance(found, list) else entries(found),
        digest=hashlib.sha256(settled).hexdigest()[:DIGEST_LENGTH],
        begins=encoded[:BEGINNING_LENGTH].decode(errors="ignore"),
    )


def entries(aggregations: Any) -> int:  # noqa: ANN401 - JSON of any shape
    """How many buckets there are, at all depths."""
    if isinstance(aggregations, list):
        return sum(entries(one) for one in aggregations)
    if not isinstance(aggregations, dict):
        return 0
    buckets = aggregations.get("buckets")
    own = len(buckets) if isinstance(buckets, dict | list) else 0
    return own + sum(entries(one) for one in aggregations.values())


def _settled(found: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """The same for two answers that agree."""
    if isinstance(found, dict):
        return None if _says_estimated(found) else {key: _settled(value) for key, value in found.items()}
    if isinstance(found, list):
        return [_settled(one) for one in _without_ties(found)]
    if isinstance(found, float) and found:
        return [found > 0, math.floor(math.log(abs(found)) / _STEP + _OFFSET)]
    return found


def unsteady(asked: Any) -> str:  # noqa: ANN401 - JSON of any shape
    """Why an answer may change although documents and engine do not; empty when it may not.

    Args:
        asked: one body, or several.
    """
    for key, value in _pairs(asked):
        if key == "random_score":
            return "random scores"
        if isinstance(value, str) and (
            (key in _BOUNDS and _NOW.match(value)) or _NOW_IN_WORDS.search(value) is not None
        ):
            return "asks for what is relative to now"
    return ""


def _pairs(asked: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - JSON of any shape
    if isinstance(asked, list):
        for one in asked:
            yield from _pairs(one)
    elif isinstance(asked, dict):
        for key, value in asked.items():
            yield key, value
            yield from _pairs(value)
