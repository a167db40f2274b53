"""Buckets of aggregations counted from the generator's own columns: dates, terms, composites, ranges."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from benchctl.corpus.big5 import FIRST_MS, KEYWORDS, LONGEST_MS, NUMBERS, Block, Flags, Numbers, keyword_texts

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
    """The generator's knowledge, or what is read of the query language here, does not reach that far."""


NOT_UNDERSTOOD = (UnknownError, AttributeError, KeyError, TypeError, ValueError)
"""A body may be JSON of any shape, and whether it is right, the engines say."""


def only(found: object) -> tuple[str, Any]:
    """The one entry of an object.

    Raises:
        UnknownError: it is none, or has several.
    """
    if not isinstance(found, Mapping) or len(found) != 1:
        raise UnknownError
    ((key, value),) = found.items()
    return key, value


class Buckets(Protocol):
    """The buckets of one aggregation, filled block by block."""

    def add(self, block: Block, found: Flags) -> None:
        """Count those documents of a block that the query matches."""

    def listed(self) -> list[dict[str, Any]]:
        """What is known of every bucket, in the order of an answer."""


def known_aggregations(aggregations: Mapping[str, Any]) -> Iterable[tuple[str, Buckets]]:
    """The aggregations of a body that are understood, by name; those inside of them are not gone into."""
    for name, aggregation in aggregations.items():
        kinds = aggregation.keys() - {"aggs"}
        try:
            if len(kinds) == 1:
                (kind,) = kinds
                yield name, _aggregation(kind, aggregation[kind])
        except NOT_UNDERSTOOD:
            continue


def _aggregation(kind: str, body: Mapping[str, Any]) -> Buckets:
    match kind:
        case "date_histogram":
            return _Histogram(_Source("", {kind: body}))
        case "terms" if body.keys() <= {"field", "size"}:
            return _Terms([_Source("", {kind: {"field": body["field"]}})], body.get("size", DEFAULT_SIZE))
        case "multi_terms" if body.keys() <= {"terms", "size"}:
            sources = [_Source("", {"terms": one}) for one in body["terms"]]
            return _Terms(sources, body.get("size", DEFAULT_SIZE))
        case "composite" if body.keys() <= {"sources", "size"}:
            sources = [_Source(*only(one)) for one in body["sources"]]
            return _Composite(sources, body.get("size", DEFAULT_SIZE))
        case "range" if body.keys() <= {"field", "ranges"} and body["field"] in NUMBERS:
            return _Ranges(body["field"], body["ranges"])
    raise UnknownError


class _Source:
    """One part of a bucket's key: a keyword, or a date cut to minutes, hours or days."""

    def __init__(self, name: str, definition: Mapping[str, Any]) -> None:
        kind, body = only(definition)
        known = {"terms": {"field", "order"}, "date_histogram": {"field", "calendar_interval", "order"}}
        self.name = name
        self._field = body["field"]
        self.step_ms = _CALENDAR_MS.get(body.get("calendar_interval", ""), 0)
        self.falling = body.get("order", "asc") == "desc"
        fits = self._field in KEYWORDS if kind == "terms" else self._field == DATE and self.step_ms > 0
        if not fits or not body.keys() <= known.get(kind, set()):
            raise UnknownError

    @property
    def radix(self) -> int:
        """One more than the greatest place."""
        return LONGEST_MS // self.step_ms + 1 if self.step_ms else len(keyword_texts(self._field))

    def places(self, block: Block) -> Numbers:
        if self.step_ms:
            return (block.numbers(self._field) - FIRST_MS) // self.step_ms
        return block.keywords(self._field)

    def key(self, place: int) -> Any:  # noqa: ANN401 - text or number, as JSON has it
        return FIRST_MS + place * self.step_ms if self.step_ms else keyword_texts(self._field)[place]


class _Counted:
    """Documents by key, of one source or several."""

    def __init__(self, sources: list[_Source], size: int) -> None:
        self._sources = sources
        self._size = int(size)
        self._counts: Counter[tuple[Any, ...]] = Counter()
        if not sources or math.prod(source.radix for source in sources) > _MOST_KEYS:
            raise UnknownError

    def add(self, block: Block, found: Flags) -> None:
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
    """Dates, the steps between them without documents included."""

    def __init__(self, source: _Source) -> None:
        super().__init__([source], 0)
        self._step_ms = source.step_ms

    def listed(self) -> list[dict[str, Any]]:
        keys = [key for (key,) in self._counts]
        steps = range(min(keys), max(keys) + 1, self._step_ms) if keys else ()
        return [{"key": key, "doc_count": self._counts[key,]} for key in steps]


class _Terms(_Counted):
    """The most frequent keys, those of equal frequency in order."""

    def listed(self) -> list[dict[str, Any]]:
        ordered = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))
        several = len(self._sources) > 1
        return [
            {"key": list(key) if several else key[0], "doc_count": count}
            for key, count in ordered[: self._size]
        ]


class _Composite(_Counted):
    """The first page of keys."""

    def add(self, block: Block, found: Flags) -> None:
        super().add(block, found)
        # What is behind the page now stays there; there may be millions of it.
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
    """Ranges of one number, in order; one that begins where another ends does not share its document."""

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

    def add(self, block: Block, found: Flags) -> None:
        values = block.numbers(self._field)[found]
        for place, (first, stop) in enumerate(self._ranges):
            self._counts[place] += int(np.count_nonzero((values >= first) & (values < stop)))

    def listed(self) -> list[dict[str, Any]]:
        return [{"doc_count": count} for count in self._counts]
