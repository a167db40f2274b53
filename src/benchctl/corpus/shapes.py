"""Searches without their values: what has the same shape is the same operation; and values as other words."""

import hashlib
import ipaddress
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

# Queries whose keys are fields, whatever these are called.
_OF_FIELDS: Final = frozenset(
    {"term", "terms", "match", "match_phrase", "match_phrase_prefix", "match_bool_prefix", "range", "prefix",
     "wildcard", "regexp", "fuzzy", "geo_distance", "geo_bounding_box", "geo_polygon", "geo_shape",
     "intervals", "neural", "rank_feature", "span_term", "terms_set", "text_expansion"}
)  # fmt: skip
# Queries that name their fields, or none.
_OTHERS: Final = frozenset(
    {"query_string", "simple_query_string", "multi_match", "exists", "ids", "match_all", "match_none", "knn",
     "more_like_this", "script_score", "function_score", "nested", "has_child", "has_parent"}
)  # fmt: skip
_AGGREGATIONS: Final = ("aggs", "aggregations")
_NAMED: Final = (*_AGGREGATIONS, "suggest")
_OF_NAMED: Final = "what has a name"
# Within what has a name, queries begin here.
_FILTERS: Final = frozenset({"filter", "filters", "post_filter"})
# All of these is the user's own.
_FOREIGN: Final = frozenset({"params", "document", "documents", "doc", "contexts", "context", "ext", "meta"})
_WEIGHTED: Final = frozenset({"tokens", "query_tokens", "query_vector"})
# Keys that say what is done, where they have a scalar or a list of some: the rest are values.
_KEPT: Final = frozenset(
    {"_index", "_source", "adjust_pure_negative", "analyze_wildcard", "analyzer",
     "auto_generate_synonyms_phrase_query", "boost", "boost_mode", "boundary_scanner", "buckets_path",
     "calendar_interval", "case_insensitive", "collect_mode", "combine_script", "default_field",
     "default_operator", "distance_type", "docvalue_fields", "enable_position_increments", "encoder",
     "escape", "excludes", "execution_hint", "explain", "field", "fields", "fixed_interval", "flags",
     "format", "fragmenter", "fuzziness", "fuzzy_max_expansions", "fuzzy_prefix_length",
     "fuzzy_transpositions", "gap_policy", "ignore_unmapped", "include_lower", "include_unmapped",
     "include_upper", "includes", "index", "init_script", "interval", "k", "keyed", "lang", "lenient",
     "map_script", "max_determinized_states", "max_edits", "max_expansions", "max_gaps", "method",
     "min_doc_count", "minimum_interval", "minimum_should_match", "minimum_should_match_field",
     "missing_order", "mode", "model_id", "modifier", "num_candidates", "numeric_type", "offset",
     "operator", "order", "path", "percents", "phrase_slop", "pivot", "precision", "prefix_length",
     "profile", "reduce_script", "relation", "rewrite", "scale", "score_mode", "script",
     "seq_no_primary_term", "shard_min_doc_count", "shard_size", "show_term_doc_count_error", "size",
     "slop", "sort", "source", "stored_fields", "suggest_mode", "terminate_after", "tie_breaker",
     "time_zone", "timeout", "track_scores", "track_total_hits", "transpositions", "type", "unit",
     "unmapped_type", "validation_method", "value_type", "version", "window_size", "zero_terms_query"}
)  # fmt: skip
_BESIDE_FIELDS: Final = frozenset({"boost", "distance", "distance_type", "validation_method"})
_ORDERS: Final = ("asc", "desc", "_first", "_last")
_VALUE: Final = "?"
_LONGEST: Final = 60

Change = Callable[[Any, str], Any]
"""Makes another value of one, given the query or aggregation that it stands in."""


def changed(part: Any, change: Change, inside: str = "", *, by_field: bool = False) -> Any:
    """Return a body whose values are changed, and all else kept: keys, fields, and what is done with them.

    Args:
        part: of the body.
        change: of a value.
        inside: the key of the query or aggregation around it.
        by_field: whether the keys of this part are names: of fields, or of aggregations.
    """
    if isinstance(part, Mapping):
        lone = len(part) == 1
        return {
            key: _changed_at(key, value, change, inside, by_field=by_field, lone=lone)
            for key, value in part.items()
        }
    if isinstance(part, list):
        return [changed(item, change, inside) for item in part]
    return part if part in _ORDERS else change(part, inside)


def _changed_at(key: str, value: Any, change: Change, inside: str, *, by_field: bool, lone: bool) -> Any:
    plain = not isinstance(value, Mapping | list)
    if by_field and plain and key in _BESIDE_FIELDS and not lone:
        return value
    if by_field or inside in _FOREIGN:
        return changed(value, change, inside)
    if key == "buckets_path" or (plain and key in _KEPT):
        return value
    if isinstance(value, list) and key in _KEPT:
        return [changed(item, change, inside) if isinstance(item, Mapping | list) else item for item in value]
    if key in _WEIGHTED and isinstance(value, Mapping):
        return change(value, key)
    return changed(
        value, change, _now_inside(key, inside), by_field=key in _NAMED or _is_of_fields(key, inside)
    )


def _is_of_fields(key: str, inside: str) -> bool:
    """Return whether it is a query by fields: an aggregation of its name says its field by a key."""
    return key in _OF_FIELDS and inside != _OF_NAMED


def _now_inside(key: str, inside: str) -> str:
    if key in _NAMED:
        return _OF_NAMED
    if inside == _OF_NAMED:
        return "" if key in _FILTERS else key if key in _FOREIGN else inside
    return key if key in _OF_FIELDS or key in _OTHERS or key in _FOREIGN else inside


def shape(body: Mapping[str, Any]) -> bytes:
    """Return what searches of one shape have in common; how many values or like clauses they have is not."""
    return msgspec.json.encode(_merged(changed(body, lambda *_: _VALUE)), order="sorted")


def _merged(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _merged(value) for key, value in part.items()}
    if not isinstance(part, list):
        return part
    merged: list[Any] = []
    for item in map(_merged, part):
        if not merged or item != merged[-1]:
            merged.append(item)
    return merged


def described(body: Mapping[str, Any]) -> str:
    """Return a shape in a few words, for names: `term:process.name+date_histogram:@timestamp`."""
    words = [*dict.fromkeys(_words(body.get("query"))), *dict.fromkeys(_aggregated(body))]
    words += [f"sort:{name}" for name in _sorted_by(body.get("sort"))][:1]
    words += ["knn"] if "knn" in body else []
    text = re.sub(r"[^\w.:@+*-]", "_", "+".join(words) or "match_all")
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}~"


def _words(part: Any) -> Iterator[str]:
    if isinstance(part, list):
        for item in part:
            yield from _words(item)
    elif isinstance(part, Mapping):
        for key, value in part.items():
            if key in _OF_FIELDS and isinstance(value, Mapping):
                yield f"{key}:{next((name for name in value if name not in _KEPT), '')}"
            elif key in _OTHERS:
                fields = value.get("fields", value.get("field")) if isinstance(value, Mapping) else None
                name = next(iter(fields), "") if isinstance(fields, list | dict) else fields
                yield f"{key}:{name}" if name else key
                yield from _words(value)
            else:
                yield from _words(value)


def _aggregated(body: Mapping[str, Any]) -> Iterator[str]:
    for key in _AGGREGATIONS:
        inner = body.get(key)
        for one in inner.values() if isinstance(inner, Mapping) else ():
            for kind, asked in one.items() if isinstance(one, Mapping) else ():
                if kind not in (*_AGGREGATIONS, "meta"):
                    name = asked.get("field") if isinstance(asked, Mapping) else None
                    yield f"{kind}:{name}" if name else kind
            yield from _aggregated(one) if isinstance(one, Mapping) else ()


def _sorted_by(sort: Any) -> list[str]:
    keys = sort if isinstance(sort, list) else [sort] if sort else []
    return [next(iter(key), "") if isinstance(key, Mapping) else str(key) for key in keys]


# Values as other words. A key that nobody keeps makes them, so that no list of likely words finds them out.

_EQUAL: Final = (_OF_FIELDS | {"ids", "multi_match", "query_string", "simple_query_string"}) - {
    "range", "geo_distance", "geo_bounding_box", "geo_polygon", "geo_shape", "rank_feature",
}  # fmt: skip
_OPERATORS: Final = frozenset({"AND", "OR", "NOT", "TO"})
_DATE: Final = r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?"
_ROUNDED: Final = r"(?:[-+]\d+[yMwdhHms]|/[yMwdhHms])*"
_NOW = re.compile(f"now{_ROUNDED}")
_DATE_MATH = re.compile(rf"(?P<date>{_DATE})(?P<math>\|\|{_ROUNDED})")
_PART = re.compile(rf"(?P<date>{_DATE})|\w+")
_MILLIS = range(10**11, 7 * 10**12)  # 1973 to 2191
_MOST_DIGITS = 18
_MOST_HIDDEN = 10**_MOST_DIGITS
_DAY_MS = 86_400_000
_MOST_DAYS = 3650
_IPV6, _LOCAL = 6, b"\xfd"


class Anonymizer:
    """Makes other words of values: of the same value always the same, of dates such with the same distances.

    Numbers that are compared for equality become others of as many digits; those of ranges stay, since their
    order is what a range is about.
    """

    KEEPS: Final = (
        "names of indices, fields and aggregations", "scripts", "true and false",
        "numbers, unless they are compared for equality: bounds, coordinates, vectors, seconds since 1970",
        "when searches came, by a shifted clock, and how long they took",
    )  # fmt: skip
    """Text on what an anonymized search still shows."""
    LOSES: Final = (
        "prefixes, wildcards, fuzzy words, geohashes and dates in other forms than ISO 8601 or milliseconds "
        "match other documents than they did, regular expressions may be invalid, and different short "
        "numbers may become the same"
    )

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self.shift_ms = -_DAY_MS * (1 + secrets.randbelow(_MOST_DAYS))

    def body(self, body: Mapping[str, Any]) -> Any:
        """Return a body with other values."""
        return changed(body, self._value)

    def _value(self, value: Any, inside: str) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return {self._text(key): weight for key, weight in value.items()}
        if isinstance(value, bool) or not isinstance(value, int | float):
            return value
        if inside in _EQUAL and abs(value) < _MOST_HIDDEN:
            return (
                self._number(value)
                if isinstance(value, int)
                else float(self._number(round(value * 100))) / 100
            )
        # A range is looked through for a fraction, one number after the other.
        return value + self.shift_ms if isinstance(value, int) and value in _MILLIS else value

    def _text(self, text: str) -> str:
        if _NOW.fullmatch(text):
            return text
        if math := _DATE_MATH.fullmatch(text):
            return self._part(math) + math["math"]
        try:
            address = ipaddress.ip_interface(text)
        except ValueError:
            return _PART.sub(self._part, text)
        length = f"/{address.network.prefixlen}" if "/" in text else ""
        digits = self._digest(str(address.ip))
        if address.version == _IPV6:
            return str(ipaddress.IPv6Address(_LOCAL + digits + digits[:7])) + length
        return f"10.{digits[0]}.{digits[1]}.{digits[2]}{length}"

    def _part(self, match: re.Match[str]) -> str:
        """Return another date for a date, and another word for a word."""
        text = match["date"] or match[0]
        if text in _OPERATORS:
            return text
        if match["date"]:
            with suppress(ValueError, OverflowError):
                moved = datetime.fromisoformat(text) + timedelta(milliseconds=self.shift_ms)
                # Whole days: all but the date stays as it is written.
                return f"{moved:%Y-%m-%d}{text[10:]}"
        if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS:
            number = int(text)
            return str(number + self.shift_ms if number in _MILLIS else self._number(number))
        # Analyzed text is lower case: so is this, whatever the word was.
        return f"w{self._digest(text.lower()).hex()[:8]}"

    def _number(self, number: int) -> int:
        least = 10 ** (len(str(abs(number))) - 1)
        drawn: int = int.from_bytes(self._digest(str(abs(number)))) % (9 * least) + least
        return -drawn if number < 0 else drawn

    def _digest(self, text: str) -> bytes:
        return hashlib.blake2b(text.encode(), key=self._key, digest_size=8).digest()
