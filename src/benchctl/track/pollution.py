"""A warm-up derived from a track: cheap searches that bring further implementations to shared call sites."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any, Final

import yaml

from benchctl.track.model import Challenge, Task, Track, mapping_of
from benchctl.track.operations import Varying
from benchctl.track.operations.catalogue import parts_of
from benchctl.track.operations.search import POLLUTION_LOG, LoggedSearch, Search

POLLUTED: Final = "polluted"
"""Name of the challenge, which every track has."""
MOST_REQUESTS: Final = 60
_BRIEF = 5  # requests for further fields of a kind, and those of its first that come before
LEAST_ITERATIONS: Final = 2
_MOST_ITERATIONS = 50
_BUDGET_S = 10.0
_MOST_LOGGED = 5_000  # searches of a log, which is longer than the JIT needs to settle on its mix
# Measured with two cores on a node that has just started: a request, and a document that it visits.
_REQUEST_S = 0.006
_DOCUMENT_S = 50e-9

_KINDS: Final = {
    **dict.fromkeys(("date", "date_nanos"), "date"),
    **dict.fromkeys(("long", "integer", "short", "byte", "unsigned_long"), "number"),
    **dict.fromkeys(("double", "float", "half_float", "scaled_float"), "number"),
    **dict.fromkeys(("keyword", "constant_keyword", "wildcard"), "keyword"),
    **dict.fromkeys(("text", "match_only_text"), "text"),
    **{kind: kind for kind in ("ip", "boolean", "geo_point")},
}
_FIELDS: Final = {"date": 2, "number": 4, "keyword": 3, "text": 2, "ip": 1, "boolean": 1, "geo_point": 1}
"""Kind -> the most fields of it that are searched, in the order of their requests."""
_MOST_DEPTH = 20
_MOST_INDICES = 20
_LONGEST = 200
_IN_QUERY_STRING = re.compile(r"(?P<field>[\w.@-]+):\s*(?P<words>[\w ]+)")
_BOUNDS = ("query", "value", "gte", "gt", "lte", "lt", "from", "to")
_OF_TEXT = frozenset({"match", "match_phrase", "match_phrase_prefix", "query_string"})
_QUERIES = _OF_TEXT | {"term", "terms", "range", "prefix", "wildcard"}
# They tell the type of a field that no mapping has.
_OF_DATES = frozenset({"date_histogram", "auto_date_histogram", "date_range"})
_OF_NUMBERS = frozenset({"range", "histogram", "avg", "sum", "min", "max", "stats", "percentiles"})


@dataclass
class _Field:
    """A field that can be searched, and what the track's operations do with it."""

    name: str
    type: str
    indices: tuple[str, ...] = ()  # that have it; empty for the track's only one
    uses: int = 0
    literals: tuple[Any, ...] = ()

    @property
    def kind(self) -> str:
        return _KINDS[self.type]


def pollution(track: Track, documents: int) -> Challenge:
    """Return the track's log of a node's history; without one, searches derived from mappings and operations.

    The same track has the same challenge. Fields that operations use come first, and every type before a
    second field of another. Of two halves of a range, one has most documents whatever they are.

    Args:
        track: what its mappings do not have is guessed from its operations.
        documents: that are searched: the more, the fewer iterations.
    """
    if logs := [log for log in track.logs if log.name == POLLUTION_LOG]:
        name = f"{POLLUTED}:log"
        count = min(logs[0].documents[0].document_count or _MOST_LOGGED, _MOST_LOGGED)
        return Challenge(
            name=POLLUTED,
            schedule=(Task(name, iterations=count),),
            description=f"{count:,} searches of {logs[0].documents[0].source_file}",
            operations={name: LoggedSearch(name=name, log=POLLUTION_LOG)},
        )
    fields = _fields(track)
    ranks = list(zip_longest(*(_chosen(fields, kind) for kind in _FIELDS)))
    first = [field for field in ranks[0] if field] if ranks else []
    parts = [islice(_of_field(field), _BRIEF) for field in first]
    parts += [islice(_of_field(field), _BRIEF, None) for field in first]
    parts += [islice(_of_field(field), _BRIEF) for field in chain(*ranks[1:]) if field]
    requests = list(chain(_of_all(track, first), *parts))
    operations = {operation.name: operation for operation in requests[:MOST_REQUESTS]}
    cost_s = len(operations) * (_REQUEST_S + documents * _DOCUMENT_S)
    iterations = min(max(int(_BUDGET_S / cost_s), LEAST_ITERATIONS), _MOST_ITERATIONS)
    notes = ["searches of every kind of field, derived from the track"]
    notes += [f"{len(requests) - MOST_REQUESTS} more left out"] if len(requests) > MOST_REQUESTS else []
    return Challenge(
        name=POLLUTED,
        schedule=tuple(Task(name, iterations=iterations) for name in operations),
        description="; ".join(notes),
        operations=dict(operations),
    )


# Fields: those of mappings, and those that only operations name.


def _fields(track: Track) -> list[_Field]:
    """Return the fields that can be searched."""
    fields: dict[str, dict[str, _Field]] = {}  # by name and type
    names = (*(index.name for index in track.indices), *track.data_streams)
    is_open = not track.indices
    for place, mapping in _mappings(track):
        is_open |= mapping.get("dynamic", True) in (True, "true")
        for name, kind in _walk(mapping):
            # Operations that use a field do not tell its type, unless it is another name of one.
            types = fields.setdefault(name, {}) if kind != "alias" else {}
            if kind in _KINDS:
                field = types.setdefault(kind, _Field(name, kind))
                if len(names) != 1 and place and place not in field.indices:
                    field.indices = (*field.indices, place)[:_MOST_INDICES]
    everywhere = names[:_MOST_INDICES] if len(names) > 1 else ()
    for name, mentions in _mentions(track).items():
        if name not in fields and is_open:
            kind = _guessed(mentions)
            fields[name] = {kind: _Field(name, kind, indices=everywhere)}
        for field in fields.get(name, {}).values():
            field.uses += len(mentions)
            field.literals += tuple(literal for _, literal in mentions if literal is not None)
    return [field for types in fields.values() for field in types.values()]


def _chosen(fields: Iterable[_Field], kind: str) -> list[_Field]:
    """Return the fields of a kind to search: every type once before any twice, the most used first."""
    seen: Counter[str] = Counter()
    ranked = []
    for field in sorted((field for field in fields if field.kind == kind), key=lambda field: -field.uses):
        ranked.append((seen[field.type], field))
        seen[field.type] += 1
    return [field for _, field in sorted(ranked, key=lambda pair: pair[0])[: _FIELDS[kind]]]


def _mappings(track: Track) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield names or patterns of indices, and a mapping of theirs."""
    for index in track.indices:
        yield index.name, index.body.mappings
    parts = {template.name: template.body for template in track.templates if template.kind == "component"}
    for template in track.templates:
        if template.kind == "component":
            continue
        names = template.body.get("composed_of")
        composed = [parts[name] for name in _listed(names) if isinstance(name, str) and name in parts]
        for body in (*composed, template.body):
            inner = body if template.kind == "index" else mapping_of(body.get("template"))
            yield template.index_pattern or "", mapping_of(inner.get("mappings"))


def _walk(mapping: Mapping[str, Any], path: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield names and types of fields outside of nested objects; no type where they cannot be searched."""
    for key in ("properties", "fields"):
        for name, body in mapping_of(mapping.get(key)).items():
            kind = body.get("type", "object") if isinstance(body, dict) else None
            if not isinstance(kind, str) or not _is_plain(f"{path}{name}{kind}") or depth > _MOST_DEPTH:
                continue
            if any(body.get(key) in (False, "false") for key in ("enabled", "index", "doc_values")):
                yield f"{path}{name}", ""
            elif kind != "nested":
                if kind != "object":
                    yield f"{path}{name}", kind
                yield from _walk(body, f"{path}{name}.", depth + 1)


def _mentions(track: Track) -> dict[str, list[tuple[str, Any]]]:
    """Return name -> (query, aggregation or sort, literal or None) of fields in the track's operations."""
    mentions: dict[str, list[tuple[str, Any]]] = {}
    own = (challenge.operations.values() for challenge in track.challenges.values())
    for operation in chain(track.operations.values(), *own):
        for step in parts_of(operation):
            for name, word, literal in _uses(step.templates if isinstance(step, Varying) else None):
                if _is_plain(name) and not name.startswith("_") and "*" not in name:
                    mentions.setdefault(name, []).append((word, literal if _is_literal(literal) else None))
    return mentions


def _uses(part: Any, word: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yield field, query or aggregation, and literal of a part of a request."""
    if isinstance(part, list):
        for item in part:
            yield from _uses(item, word)
    elif isinstance(part, dict):
        field = part.get("field")
        if isinstance(field, str):
            bounds = [bound for item in _listed(part.get("ranges")) for bound in _literals(item)]
            yield from ((field, word, literal) for literal in bounds or [None])
        for key, inner in part.items():
            yield from _keyed(key, inner)
            yield from _uses(inner, key)


def _keyed(word: str, part: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield the same of a query or a sort whose keys are fields."""
    if word == "sort":
        keys = (name for item in _listed(part) for name in (item if isinstance(item, dict) else [item]))
        yield from ((str(name), word, None) for name in keys)
    elif word == "query_string":
        for match in _IN_QUERY_STRING.finditer(str(mapping_of(part).get("query"))):
            yield match["field"], word, match["words"]
    elif word in _QUERIES and "field" not in mapping_of(part):
        for name, asked in mapping_of(part).items():
            yield from ((name, word, literal) for literal in _literals(asked) if name != "boost")


def _literals(asked: Any) -> list[Any]:
    return [asked[key] for key in _BOUNDS if key in asked] if isinstance(asked, dict) else _listed(asked)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _is_plain(text: str) -> bool:
    """Return whether a text means itself in a challenge's file, a template whose bodies have `${values}`."""
    return 0 < len(text) <= _LONGEST and text.isprintable() and not set(text) & set("{}$")


def _is_literal(value: Any) -> bool:
    if isinstance(value, str):
        return _is_plain(value)
    return isinstance(value, int | float) and abs(value) < 2**53


def _guessed(mentions: Sequence[tuple[str, Any]]) -> str:
    """Return the type of a field that no mapping has, as engines or dynamic templates map it."""
    words = {word for word, _ in mentions}
    literals = [literal for _, literal in mentions if literal is not None]
    if words & _OF_DATES or any(
        word == "range" and isinstance(x, str) and _moment(x) for word, x in mentions
    ):
        return "date"
    if any(isinstance(literal, bool) for literal in literals):
        return "boolean"
    if any(not isinstance(literal, str) for literal in literals) or (not literals and words & _OF_NUMBERS):
        return "long"
    return "text" if words <= _OF_TEXT else "keyword"


# Requests.

_ALL: Final[Mapping[str, Any]] = {"match_all": {}}
_NUMBERS = (0, 1, 10, 100, 1000)
_MOMENTS = tuple(datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (2000, 2010, 2015, 2020, 2024))
_ADDRESSES = ("1.0.0.0", "64.0.0.0", "128.0.0.0", "192.0.0.0", "223.0.0.0")
_YEARS = tuple(datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in (1971, 2200))
_LEAST_MS = 1e11  # smaller numbers are seconds
_BOX = {"top_left": {"lat": 60, "lon": -170}, "bottom_right": {"lat": -30, "lon": 20}}


def _of_all(track: Track, fields: Sequence[_Field]) -> Iterator[Search]:
    """Yield searches of all documents, and of several fields at once."""
    names = (*(index.name for index in track.indices), *track.data_streams)
    indices = fields[0].indices if fields else names[:_MOST_INDICES] if len(names) > 1 else ()
    queries = [_values(field)["query"] for field in fields if field.indices == indices] or [_ALL]
    values = {"all": _ALL, "queries": queries[:3], "first": queries[0], "last": queries[-1]}
    yield from _searches(["plain"], values, "", indices)


def _of_field(field: _Field) -> Iterator[Search]:
    groups = ["points"] if field.kind in ("date", "number", "ip") else []
    yield from _searches([*groups, field.kind], _values(field), f"{field.type}:{field.name}:", field.indices)


def _searches(
    groups: Iterable[str], values: Mapping[str, Any], where: str, indices: Sequence[str]
) -> Iterator[Search]:
    for group in groups:
        for label, body in _bodies()[group].items():
            name = f"{POLLUTED}:{where}{label}"
            yield Search(name=name, index=",".join(indices) or None, cache=False, body=_filled(body, values))


@cache
def _bodies() -> dict[str, dict[str, Any]]:
    """Return the bodies of searches, by group and label."""
    text = Path(__file__).with_suffix(".yml").read_text(encoding="utf-8")
    bodies: dict[str, dict[str, Any]] = yaml.safe_load(text)
    return bodies


def _filled(part: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(part, dict):
        return {_filled(key, values): _filled(value, values) for key, value in part.items()}
    if isinstance(part, list):
        return [_filled(item, values) for item in part]
    return values[part[1:]] if isinstance(part, str) and part.startswith("$") else part


def _values(field: _Field) -> dict[str, Any]:
    """Return what the bodies of a field's searches are filled in with."""
    name, kind = field.name, field.kind
    words = [str(literal) for literal in field.literals if not isinstance(literal, bool)]
    order = {"unmapped_type": "long" if kind == "number" else kind}
    values: dict[str, Any] = {
        "field": name,
        "all": _ALL,
        "desc": [{name: {"order": "desc", **order}}],
        "asc": [{name: {"order": "asc", **order}}],
        "exists": {"exists": {"field": name}},
    }
    if kind == "keyword":
        words = list(dict.fromkeys(words))[:5] or ["a", "b"]
        values |= {
            "query": {"term": {name: words[0]}},
            "words": words,
            "last": words[-1],
            "start": words[0][:1],
        }
    elif kind == "text":
        # Those of no operation are common ones.
        words = re.findall(r"\w+", " ".join(words).lower())[:3] or ["the", "of", "error"]
        text = " ".join(words[:2])
        values |= {"query": {"match": {name: " ".join(words)}}, "text": text, "last": words[-1]}
        values["start"] = words[0][:2]
    elif kind == "boolean":
        values["query"] = {"term": {name: True}}
    elif kind == "geo_point":
        values["query"] = {"geo_bounding_box": {name: _BOX}}
    else:
        values |= _of_ranges(field, name)
    return values


def _of_ranges(field: _Field, name: str) -> dict[str, Any]:
    bounds: Sequence[Any] = _ADDRESSES
    keys: dict[str, Any] = {}
    if field.kind == "date":
        # A second later than the track's own: the node's query cache must not have answers for these.
        moments = [moment + 1 for moment in _five(filter(None, map(_moment, field.literals)), _MOMENTS)]
        bounds = [datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") for moment in moments]
        keys = {"format": "strict_date_optional_time"}
    elif field.kind == "number":
        bounds = _five((x for x in field.literals if not isinstance(x, str | bool)), _NUMBERS)
    low, quarter, half, most, high = bounds
    after = half if field.kind != "date" else int(moments[2]) * 10 ** (9 if field.type == "date_nanos" else 3)

    def within(**sides: Any) -> dict[str, Any]:
        return {"range": {name: {**sides, **keys}}}

    return {
        "query": within(gte=quarter),
        "wide": within(gte=low, lt=high),
        "narrow": within(gte=quarter, lt=half),
        "below": within(lt=half),
        "above": within(gte=half),
        "under": within(lt=quarter),
        "over": within(gte=most),
        "half": half,
        "after": after,
        "interval": max(1e6, 10.0 * (high - low)) if field.kind == "number" else None,
    }


def _five(literals: Iterable[float], usual: Sequence[float]) -> list[float]:
    """Return five ascending values: of literals, or of these and usual ones where there are too few."""
    values = sorted(set(literals))
    values = values if len(values) > len(usual) else sorted({*values, *usual})
    return [values[(len(values) - 1) * place // 4] for place in range(5)]


def _moment(literal: Any) -> float | None:
    """Return seconds since 1970; None for what is not a moment that every engine can hold."""
    try:
        if isinstance(literal, str):
            moment = datetime.fromisoformat(literal)
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        else:
            seconds = literal / 1000 if literal > _LEAST_MS else literal
    except (ValueError, OverflowError):
        return None
    return seconds if _YEARS[0] < seconds < _YEARS[1] else None
