"""Searches that suit an index: by what its mappings have, and what its documents hold."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from benchctl.engine.client import SearchClient
from benchctl.engine.live.live_index import LiveIndex, fields_of
from benchctl.engine.live.sampling import read_page
from benchctl.engine.wires import NodeRequestError

_KEYWORDS = frozenset({"keyword", "ip"})
_DATES = frozenset({"date", "date_nanos"})
_NUMBERS = frozenset(
    {"long", "integer", "short", "byte", "double", "float", "half_float", "scaled_float", "unsigned_long"}
)
_TRIED = 8  # fields of a kind
_TIMEOUT_S = 120.0

Operation = dict[str, Any]
"""JSON of an operation."""


class _Bucket(msgspec.Struct):
    doc_count: int
    key: str | int | float | bool


class _Found(msgspec.Struct):
    buckets: list[_Bucket] = []
    values: dict[str, Any] = {}


class _Aggregated(msgspec.Struct):
    aggregations: dict[str, _Found]


def suggest_operations(client: SearchClient, index: LiveIndex) -> tuple[Operation, ...]:
    """Searches that find something: all, a word, a range, a sort, an aggregation, as far as there are fields.

    Each was asked once, and answered with hits.

    Raises:
        NodeRequestError: the cluster does not even answer a search for everything.
    """
    everything = _search("default", {"query": {"match_all": {}}})
    client.search(index.name, everything["body"], timeout_s=_TIMEOUT_S)
    further = (*_by_keyword(client, index), *_by_order(client, index))
    return (everything, *(operation for operation in further if _finds(client, index.name, operation)))


def _by_keyword(client: SearchClient, index: LiveIndex) -> Iterator[Operation]:
    """A search for the most frequent value of a keyword, and the values of it counted."""
    best: tuple[int, str, Any] | None = None
    for path in _paths(index, _KEYWORDS):
        found = _aggregated(client, index.name, {"terms": {"field": path, "size": 1}})
        if found.buckets and (best is None or found.buckets[0].doc_count > best[0]):
            best = (found.buckets[0].doc_count, path, found.buckets[0].key)
    if best is not None:
        _, path, value = best
        yield _search(f"term-{path}", {"query": {"term": {path: {"value": value}}}})
        counting = {"size": 0, "aggs": {"values": {"terms": {"field": path, "size": 10}}}}
        yield {**_search(f"terms-{path}", counting), "cache": False}


def _by_order(client: SearchClient, index: LiveIndex) -> Iterator[Operation]:
    """The middle half of a date or number, and the latest first."""
    for path in (*_paths(index, _DATES), *_paths(index, _NUMBERS)):
        found = _aggregated(client, index.name, {"percentiles": {"field": path, "percents": [25, 75]}})
        bounds = [bound for bound in found.values.values() if isinstance(bound, int | float)]
        if len(bounds) != 2 or bounds[0] == bounds[1]:  # noqa: PLR2004 - the quartiles
            continue
        lowest, highest = sorted(bounds)
        limits: dict[str, Any] = {"gte": lowest, "lte": highest}
        if path in _paths(index, _DATES):
            limits = {"gte": int(lowest), "lte": int(highest), "format": "epoch_millis"}
        yield _search(f"range-{path}", {"query": {"range": {path: limits}}})
        yield _search(f"sort-desc-{path}", {"query": {"match_all": {}}, "sort": [{path: "desc"}]})
        return


def _search(name: str, body: Mapping[str, Any]) -> Operation:
    return {"name": name, "operation-type": "search", "body": body}


def _paths(index: LiveIndex, kinds: frozenset[str]) -> list[str]:
    """Fields of these types that can be searched and sorted by."""
    return [
        path
        for path, kind, definition in fields_of(index.mappings)
        if kind in kinds
        and definition.get("index", True) not in {False, "false"}
        and definition.get("doc_values", True) not in {False, "false"}
    ][:_TRIED]


def _aggregated(client: SearchClient, index: str, aggregation: Mapping[str, Any]) -> _Found:
    """The result of an aggregation over everything; empty where the node cannot do it."""
    try:
        answer = client.search(index, {"size": 0, "aggs": {"found": aggregation}}, timeout_s=_TIMEOUT_S)
    except NodeRequestError:
        return _Found()
    try:
        return msgspec.convert(answer, _Aggregated).aggregations["found"]
    except (msgspec.ValidationError, KeyError):
        return _Found()


def _finds(client: SearchClient, index: str, operation: Operation) -> bool:
    try:
        answer = client.search(index, operation["body"], timeout_s=_TIMEOUT_S)
    except NodeRequestError:
        return False
    page = read_page(answer)
    return bool(page.hits.total.value) and not page.shards.failed
