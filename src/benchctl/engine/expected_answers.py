"""What an operation must find in the generated corpus, according to the generator: both engines can be wrong.

Covers the queries, aggregations and sorts of the shipped tracks; anything else has no expected answer.
"""

import datetime as dt
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import msgspec
import numpy as np

from benchctl.corpus.big5 import FIRST_MS, LONGEST_MS
from benchctl.corpus.generators import GENERATORS, Columns, Generator
from benchctl.corpus.rows import Flags, Numbers, Slice
from benchctl.engine.answers import Answer, AnswerBook, first_page
from benchctl.track.operations.common import Operation
from benchctl.track.operations.search import CompositeAgg, PaginatedSearch, ScrollSearch, Search

DATE = "@timestamp"
DEFAULT_SIZE = 10

_MOST_KEYS = 1 << 62  # of several sources in one number
_MINUTE_MS = 60_000
_CALENDAR_MS = {
    "minute": _MINUTE_MS,
    "1m": _MINUTE_MS,
    "hour": 60 * _MINUTE_MS,
    "1h": 60 * _MINUTE_MS,
    "day": 1440 * _MINUTE_MS,
    "1d": 1440 * _MINUTE_MS,
}


class UnknownError(Exception):
    """Beyond what the generator knows, or what is covered of the query language."""


NOT_UNDERSTOOD = (UnknownError, AttributeError, KeyError, TypeError, ValueError)
"""A body may be JSON of any shape; only the engines tell whether it is valid."""


def only(found: object) -> tuple[str, Any]:
    """The only entry of an object.

    Raises:
        UnknownError: it is not an object, or has several.
    """
    if not isinstance(found, Mapping) or len(found) != 1:
        raise UnknownError
    ((key, value),) = found.items()
    return key, value


class Buckets(Protocol):
    """The buckets of one aggregation, filled block by block."""

    def add(self, block: Columns, found: Flags) -> None:
        """Count those documents of a block that the query matches."""

    def listed(self) -> list[dict[str, Any]]:
        """What is known of every bucket, in the order of an answer."""


def _known_aggregations(aggregations: Mapping[str, Any], known: Generator) -> Iterable[tuple[str, Buckets]]:
    """The understood top-level aggregations of a body, by name."""
    for name, aggregation in aggregations.items():
        kinds = aggregation.keys() - {"aggs"}
        try:
            if len(kinds) == 1:
                (kind,) = kinds
                yield name, _aggregation(kind, aggregation[kind], known)
        except NOT_UNDERSTOOD:
            continue


def _aggregation(kind: str, body: Mapping[str, Any], known: Generator) -> Buckets:
    match kind:
        case "date_histogram":
            return _Histogram(_Source("", {kind: body}, known))
        case "terms" if body.keys() <= {"field", "size"}:
            return _Terms(
                [_Source("", {kind: {"field": body["field"]}}, known)], body.get("size", DEFAULT_SIZE)
            )
        case "multi_terms" if body.keys() <= {"terms", "size"}:
            sources = [_Source("", {"terms": one}, known) for one in body["terms"]]
            return _Terms(sources, body.get("size", DEFAULT_SIZE))
        case "composite" if body.keys() <= {"sources", "size"}:
            sources = [_Source(*only(one), known) for one in body["sources"]]
            return _Composite(sources, body.get("size", DEFAULT_SIZE))
        case "range" if body.keys() <= {"field", "ranges"} and body["field"] in known.numbers:
            return _Ranges(body["field"], body["ranges"])
    raise UnknownError


class _Source:
    """One part of a bucket's key: a keyword, or a date cut to minutes, hours or days."""

    def __init__(self, name: str, definition: Mapping[str, Any], known: Generator) -> None:
        kind, body = only(definition)
        keys = {"terms": {"field", "order"}, "date_histogram": {"field", "calendar_interval", "order"}}
        self.name = name
        self._field = body["field"]
        self.step_ms = _CALENDAR_MS.get(body.get("calendar_interval", ""), 0)
        self.falling = body.get("order", "asc") == "desc"
        if kind == "terms":
            fits = self._field in known.keywords
        else:
            fits = self._field == DATE and DATE in known.numbers and self.step_ms > 0
        if not fits or not body.keys() <= keys.get(kind, set()):
            raise UnknownError
        self._texts = () if self.step_ms else known.keyword_texts(self._field)

    @property
    def radix(self) -> int:
        """One more than the greatest place."""
        return LONGEST_MS // self.step_ms + 1 if self.step_ms else len(self._texts)

    def places(self, block: Columns) -> Numbers:
        if self.step_ms:
            return (block.numbers(self._field) - FIRST_MS) // self.step_ms
        return block.keywords(self._field)

    def key(self, place: int) -> Any:
        return FIRST_MS + place * self.step_ms if self.step_ms else self._texts[place]


class _Counted:
    """Documents by key, from one source or several."""

    def __init__(self, sources: list[_Source], size: int) -> None:
        self._sources = sources
        self._size = int(size)
        self._counts: Counter[tuple[Any, ...]] = Counter()
        if not sources or math.prod(source.radix for source in sources) > _MOST_KEYS:
            raise UnknownError

    def add(self, block: Columns, found: Flags) -> None:
        codes = np.zeros(np.count_nonzero(found), dtype=np.int64)
        for source in self._sources:
            codes = codes * source.radix + source.places(block)[found]
        unlike, counts = np.unique(codes, return_counts=True)
        for code, count in zip(unlike.tolist(), counts.tolist(), strict=True):
            # By the texts: two places of a table may have the same.
            self._counts[self._key(code)] += count

    def _key(self, code: int) -> tuple[Any, ...]:
        parts: list[Any] = []
        for source in reversed(self._sources):
            code, place = divmod(code, source.radix)
            parts.insert(0, source.key(place))
        return tuple(parts)


class _Histogram(_Counted):
    """Dates, including the steps between them without documents."""

    def __init__(self, source: _Source) -> None:
        super().__init__([source], 0)
        self._step_ms = source.step_ms

    def listed(self) -> list[dict[str, Any]]:
        keys = [key for (key,) in self._counts]
        steps = range(min(keys), max(keys) + 1, self._step_ms) if keys else ()
        return [{"key": key, "doc_count": self._counts[key,]} for key in steps]


class _Terms(_Counted):
    """The most frequent keys; ties in key order."""

    def listed(self) -> list[dict[str, Any]]:
        ordered = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))
        several = len(self._sources) > 1
        return [
            {"key": list(key) if several else key[0], "doc_count": count}
            for key, count in ordered[: self._size]
        ]


class _Composite(_Counted):
    """The first page of keys."""

    def add(self, block: Columns, found: Flags) -> None:
        super().add(block, found)
        # Keys beyond the page stay beyond it, and there may be millions.
        self._counts = Counter({key: self._counts[key] for key in self._page()})

    def _page(self) -> list[tuple[Any, ...]]:
        keys = list(self._counts)
        for place in reversed(range(len(self._sources))):
            # Sorting is stable: the last source first, the first one last.
            keys.sort(key=lambda key: key[place], reverse=self._sources[place].falling)
        return keys[: self._size]

    def listed(self) -> list[dict[str, Any]]:
        names = [source.name for source in self._sources]
        return [
            {"key": dict(zip(names, key, strict=True)), "doc_count": self._counts[key]}
            for key in self._page()
        ]


class _Ranges:
    """Ranges of one number, in order, each without its end."""

    def __init__(self, field: str, ranges: list[Mapping[str, float]]) -> None:
        self._field = field
        self._ranges = sorted(
            (float(one.get("from", -np.inf)), float(one.get("to", np.inf)))
            for one in ranges
            if one.keys() <= {"from", "to"}
        )
        if len(self._ranges) < len(ranges):
            raise UnknownError
        self._counts = [0] * len(ranges)

    def add(self, block: Columns, found: Flags) -> None:
        values = block.numbers(self._field)[found]
        for place, (first, stop) in enumerate(self._ranges):
            self._counts[place] += int(np.count_nonzero((values >= first) & (values < stop)))

    def listed(self) -> list[dict[str, Any]]:
        return [{"doc_count": count} for count in self._counts]


EXPECTED_VERSION = 1
"""Of kept answers: to be raised when an operation's expected answer changes."""
# Including keys that do not change the answer; any other key may.
_BODY_KEYS = frozenset({"query", "aggs", "sort", "size", "search_after", "track_total_hits"})
_PARAMS = frozenset({"pre_filter_shard_size", "request_cache", "rest_total_hits_as_int", "scroll"})

_Mask = Callable[[Columns], Flags]


def expect_answers(
    operations: Iterable[Operation], corpus: Slice, book: AnswerBook, *, known: Generator = GENERATORS["big5"]
) -> None:
    """Add to a book what must be found in a corpus; operations that are not understood are skipped.

    Of aggregations, the book has what is known: names, and the keys and counts of their buckets. The corpus
    is read
    once, unless the book, which belongs to it and to this `EXPECTED_VERSION`, is complete.
    """
    questions: list[tuple[Operation, _Question]] = []
    for operation in book.missing(operations):
        try:
            questions.append((operation, _question(operation, known)))
        except NOT_UNDERSTOOD:
            continue
    if questions:
        for block in known.blocks(corpus):
            # Operations share queries, and some take long.
            matched: dict[bytes, Flags] = {}
            for _, question in questions:
                question.add(block, matched)
    for operation, question in questions:
        book.add(operation, question.answer())


def _question(operation: Operation, known: Generator) -> "_Question":
    if not isinstance(operation, Search | ScrollSearch | PaginatedSearch | CompositeAgg):
        raise UnknownError
    body = first_page(operation)
    # Another index holds other documents.
    if operation.target is not None or not operation.request_params.keys() <= _PARAMS:
        raise UnknownError
    if not body.keys() <= _BODY_KEYS:
        raise UnknownError
    return _Question(body, known)


class _Question:
    """One search, answered block by block."""

    def __init__(self, body: Mapping[str, Any], known: Generator) -> None:
        query = body.get("query", {"match_all": {}})
        self._matches = _query(query, known)
        self._query_key = msgspec.json.encode(query)
        self._size = int(body.get("size", DEFAULT_SIZE))
        sort, after = body.get("sort"), body.get("search_after")
        self._top = _Top(sort, after, self._size, known) if "sort" in body else None
        self._buckets = dict(_known_aggregations(body.get("aggs", {}), known))
        self._aggregates = "aggs" in body
        self._total = 0

    def add(self, block: Columns, matched: dict[bytes, Flags]) -> None:
        if self._query_key not in matched:
            matched[self._query_key] = self._matches(block)
        found = matched[self._query_key]
        self._total += int(np.count_nonzero(found))
        for buckets in self._buckets.values():
            buckets.add(block, found)
        if self._top is not None:
            self._top.add(block, found)

    def answer(self) -> Answer:
        values = [] if self._top is None else self._top.values()
        known = {name: {"buckets": buckets.listed()} for name, buckets in self._buckets.items()}
        return Answer(
            total=self._total,
            returned=min(self._size, self._total) if self._top is None else len(values),
            sort_values=values,
            aggregations=known if self._aggregates else None,
        )


def _query(query: Mapping[str, Any], known: Generator) -> _Mask:
    kind, inner = only(query)
    match kind:
        case "match_all":
            return lambda block: np.ones(block.documents, dtype=np.bool_)
        case "range":
            return _range(*only(inner), known)
        case "term" | "match":
            return _term(*only(inner), known)
        case "bool":
            return _bool(*only(inner), known)
        case "query_string":
            return _words(*only(inner), known)
    raise UnknownError


def _range(field: str, bounds: Mapping[str, Any], known: Generator) -> _Mask:
    # The other two bounds of a date may be rounded up.
    if field not in known.numbers or not bounds.keys() <= (
        {"gte", "lt"} if field == DATE else {"gte", "lte"}
    ):
        raise UnknownError
    least = _number(field, bounds["gte"]) if "gte" in bounds else None
    stop = _number(field, bounds["lt"]) if "lt" in bounds else None
    if "lte" in bounds:
        stop = _number(field, bounds["lte"]) + 1

    def matches(block: Columns) -> Flags:
        values = block.numbers(field)
        found = np.ones(block.documents, dtype=np.bool_)
        if least is not None:
            found &= values >= least
        if stop is not None:
            found &= values < stop
        return found

    return matches


def _number(field: str, value: object) -> int:
    """A value of a query in the unit of its column."""
    if field == DATE and isinstance(value, str):
        try:
            stamp = dt.datetime.fromisoformat(value)
        except ValueError as err:
            raise UnknownError from err
        if stamp.tzinfo is None:
            stamp = stamp.replace(tzinfo=dt.UTC)
        return round(stamp.timestamp() * 1000)
    if field == DATE or not isinstance(value, int):
        raise UnknownError
    return value


def _term(field: str, value: object, known: Generator) -> _Mask:
    named, wanted = only(value) if isinstance(value, Mapping) else ("value", value)
    if named not in {"value", "query"}:
        raise UnknownError
    if field in known.numbers and field != DATE and isinstance(wanted, int):
        return lambda block: block.numbers(field) == wanted
    if field not in known.keywords or not isinstance(wanted, str):
        raise UnknownError
    places = [place for place, text in enumerate(known.keyword_texts(field)) if text == wanted]
    return lambda block: np.isin(block.keywords(field), places)


def _bool(how: str, clauses: object, known: Generator) -> _Mask:
    join = {"must": np.logical_and, "filter": np.logical_and, "should": np.logical_or}.get(how)
    if join is None or not isinstance(clauses, list) or not clauses:
        raise UnknownError
    parts = [_query(clause, known) for clause in clauses]
    return lambda block: join.reduce([part(block) for part in parts])


def _words(key: str, text: str, known: Generator) -> _Mask:
    """`message: one two`: the first word is searched in the message, the others in all fields.

    No other field holds a word that `knows_word` accepts.
    """
    field, _, rest = text.partition(":")
    words = tuple(rest.split())
    if key != "query" or field != "message" or not words or not all(map(known.knows_word, words)):
        raise UnknownError
    return lambda block: block.with_words(words)


class _Top:
    def __init__(self, sort: object, after: object, size: int, known: Generator) -> None:
        if not isinstance(sort, list) or len(sort) != 1:
            raise UnknownError
        self._field, order = only(sort[0])
        self._sign = {"asc": 1, "desc": -1}[order["order"] if isinstance(order, Mapping) else order]
        self._is_number = self._field in known.numbers
        # The places of these texts are in their order.
        if not self._is_number and not (self._field == "meta.file" and self._field in known.keywords):
            raise UnknownError
        self._texts = () if self._is_number else known.keyword_texts(self._field)
        self._after = None
        if after is not None:
            if not isinstance(after, list) or len(after) != 1:
                raise UnknownError
            self._after = _number(self._field, after[0])
        self._size = size
        self._best: Numbers = np.empty(0, dtype=np.int64)

    def add(self, block: Columns, found: Flags) -> None:
        column = block.numbers if self._is_number else block.keywords
        values = column(self._field)[found] * self._sign
        if self._after is not None:
            values = values[values > self._after * self._sign]
        if len(values) > self._size:
            values = np.partition(values, self._size)[: self._size]
        self._best = np.sort(np.concatenate([self._best, values]))[: self._size]

    def values(self) -> list[list[Any]]:
        numbers = (self._best * self._sign).tolist()
        if self._is_number:
            return [[number] for number in numbers]
        return [[self._texts[place]] for place in numbers]
