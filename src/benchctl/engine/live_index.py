"""An index of a live cluster for a track: settings, mappings, documents, suitable searches."""

import math
import random
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import quote

import msgspec

from benchctl.engine.client import NodeRequestError, SearchClient
from benchctl.errors import BenchctlError, UsageError
from benchctl.track.template_source import cut

_MOST_NAMED = 5

# Reported by an index, but not accepted on creation; irrelevant.
_OWN = ("uuid", "creation_date", "creation_date_string", "provided_name", "version", "history", "resize",
        "verified_before_close", "hidden", "routing.allocation", "store.snapshot", "upgraded")  # fmt: skip
# Tied to its cluster: policies, pipelines and the like, which others lack.
_FOREIGN = ("lifecycle", "plugins", "opendistro", "opensearch", "default_pipeline", "final_pipeline",
            "search.default_pipeline", "blocks", "frozen", "xpack", "remote_store", "store.type")  # fmt: skip

_ROUTED_TYPES = frozenset({"join"})


class _Described(msgspec.Struct):
    """A cluster's description of an index; a running cluster may be anything."""

    settings: dict[str, Any] = {}
    mappings: dict[str, Any] = {}
    aliases: dict[str, Any] = {}


@dataclass(frozen=True)
class LiveIndex:
    """Settings, mappings and size of an index."""

    name: str  # as it was asked for, which may be an alias or a data stream
    settings: Mapping[str, Any]  # those that it can be created with, flat: `index.codec` and so on
    mappings: Mapping[str, Any]  # as they are
    aliases: Mapping[str, Any]  # without one of its own name
    left_out: tuple[str, ...]  # settings that depend on something another cluster may lack

    @property
    def is_routed(self) -> bool:
        """True if its documents need a routing value."""
        required = self.mappings.get("_routing", {}).get("required") in {True, "true"}
        return required or any(kind in _ROUTED_TYPES for _, kind, _ in fields_of(self.mappings))

    @property
    def largest_page(self) -> int | None:
        """Largest page of hits, if the index has its own bound."""
        limit = self.settings.get("index.max_result_window")
        return None if limit is None else integer_setting(limit)


def read_live_index(client: SearchClient, name: str) -> LiveIndex:
    """Read an index from a cluster.

    Raises:
        UsageError: If there is no such index, the name matches several, or documents are not kept.
        NodeRequestError: If the cluster refuses or does not answer.
    """
    try:
        indices = client.request("GET", f"/{quote(name, safe=',*')}", params={"flat_settings": "true"})
    except NodeRequestError as err:
        if err.status == HTTPStatus.NOT_FOUND:
            raise UsageError(f"the cluster has no index '{name}'") from err
        raise
    if not isinstance(indices, dict) or not indices:
        raise UsageError(f"the cluster has no index '{name}'")
    if len(indices) > 1:
        names = ", ".join(sorted(indices)[:_MOST_NAMED])
        raise UsageError(f"'{name}' matches {len(indices)} indices: {names}", hint="name one of them")
    try:
        described = msgspec.convert(next(iter(indices.values())), _Described)
    except msgspec.ValidationError as err:
        raise BenchctlError(f"the cluster describes the index '{name}' in an unknown form: {err}") from err
    mappings = described.mappings
    source = mappings.get("_source", {})
    if source.get("enabled") in {False, "false"}:
        raise UsageError(f"the index '{name}' does not keep its documents (`_source` is disabled)")
    if source.get("includes") or source.get("excludes"):
        raise UsageError(
            f"the index '{name}' keeps parts of its documents only (`_source` includes or excludes fields)"
        )
    settings, left_out = _creatable(described.settings)
    aliases = {key: value for key, value in described.aliases.items() if key != name}
    return LiveIndex(name, settings, mappings, aliases, left_out)


def _creatable(settings: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Settings that an index can be created with, and the names of others that matter."""
    kept: dict[str, Any] = {}
    left_out = []
    for key, value in sorted(settings.items()):
        bare = key.removeprefix("index.")
        if _within(bare, _FOREIGN):
            left_out.append(key)
        elif not _within(bare, _OWN):
            kept[key] = value
    return kept, tuple(left_out)


def integer_setting(value: object) -> int:
    """Return an integer setting, which engines write as text.

    Raises:
        BenchctlError: If the value is not an integer.
    """
    try:
        return int(str(value))
    except ValueError as err:
        raise BenchctlError(f"a setting of the index is not a whole number: '{cut(str(value))}'") from err


def _within(key: str, families: tuple[str, ...]) -> bool:
    return any(key == family or key.startswith(f"{family}.") for family in families)


def fields_of(mappings: Mapping[str, Any]) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Return fields that searches reach by path, in order: path, type and definition.

    Those of nested objects are excluded: they need nested queries.

    Raises:
        BenchctlError: If the mappings are nested too deeply, or malformed.
    """
    fields: list[tuple[str, str, Mapping[str, Any]]] = []
    try:
        _collect(mappings.get("properties", {}), "", fields)
    except RecursionError as err:
        raise BenchctlError("the mappings are nested too deeply") from err
    except (AttributeError, TypeError) as err:
        raise BenchctlError("the mappings are not of the form that engines give them") from err
    return fields


def _collect(
    properties: Mapping[str, Any], prefix: str, found: list[tuple[str, str, Mapping[str, Any]]]
) -> None:
    for name, definition in properties.items():
        path = f"{prefix}{name}"
        kind = definition.get("type", "object")
        if definition.get("enabled") in {False, "false"} or kind in {"nested", "alias"}:
            continue
        if kind != "object":
            found.append((path, kind, definition))
        _collect(definition.get("properties", {}), f"{path}.", found)
        _collect(definition.get("fields", {}), f"{path}.", found)


# Documents of a live index: all of them, or a uniform random sample, page by page.
PAGE_BYTES = 8 * 2**20
"""Target size of a page, the memory in use at a time."""

_MOST_HITS = 2000
_LEAST_HITS = 10
_KEEP_ALIVE = "5m"
_SAMPLING_TIMEOUT_S = 600.0
_GRAIN = 2**24  # random scores are whole multiples of 1 / 2^24
_SPARE = 4.0  # standard deviations by which a draw is larger than the sample

Hit = Mapping[str, Any]
"""A document from a search: `_id`, `_source`, and `_routing` where it has one."""


class _Total(msgspec.Struct):
    value: Annotated[int, msgspec.Meta(ge=0)]


class _Hits(msgspec.Struct):
    total: _Total
    hits: list[dict[str, Any]]


class _Shards(msgspec.Struct):
    failed: int = 0


class Page(msgspec.Struct):
    """The part of a search's answer that is used; a running cluster may be anything."""

    hits: _Hits
    shards: _Shards = msgspec.field(default_factory=_Shards, name="_shards")
    timed_out: bool = False
    scroll: str | None = msgspec.field(default=None, name="_scroll_id")


def read_page(answer: object) -> Page:
    """Parse an answer.

    Raises:
        BenchctlError: If the answer is not that of a search.
    """
    try:
        return msgspec.convert(answer, Page)
    except msgspec.ValidationError as err:
        raise BenchctlError(
            f"the cluster answers a search with something else: {err}",
            hint="see whether it is Elasticsearch from version 7 on, or OpenSearch",
        ) from err


@dataclass(frozen=True)
class Draw:
    """The documents to read."""

    held: int  # documents in the index
    wanted: int  # size of the sample
    body: Mapping[str, Any]  # of the search that finds the sample, or slightly more
    seed: int  # of the choice


def plan_draw(client: SearchClient, index: str, *, docs: int | None, seed: int) -> Draw:
    """Plan the search for a sample: documents get random scores, and those above a bound are candidates.

    So a sample takes one pass over the index, whatever its size. `docs` None takes all documents; the same
    seed chooses the same ones as long as the index does not change.

    Raises:
        UsageError: If the index has no documents.
        NodeRequestError: If the cluster refuses.
    """
    every: dict[str, Any] = {"query": {"match_all": {}}}
    held = _count(client, index, every)
    if held == 0:
        raise UsageError(f"the index '{index}' has no documents")
    if docs is None or docs >= held:
        return Draw(held, held, every, seed)
    share = (docs + _SPARE * math.sqrt(docs) + 1) / held
    while True:
        steps = min(_GRAIN, math.ceil(share * _GRAIN))
        body = {
            "query": {
                "function_score": {
                    "query": {"match_all": {}},
                    "random_score": {"seed": seed, "field": "_seq_no"},
                    "boost_mode": "replace",
                }
            },
            "min_score": (_GRAIN - steps) / _GRAIN,
        }
        if steps == _GRAIN or _count(client, index, body) >= docs:
            return Draw(held, docs, body, seed)
        share *= 2


def read_hits(client: SearchClient, index: str, draw: Draw, *, page: int) -> Iterator[list[Hit]]:
    """Iterate over the documents of a draw in index order, page by page, as of the first page.

    Raises:
        BenchctlError: If a page is incomplete, or a document cannot be read.
        NodeRequestError: If the cluster refuses.
    """
    body = {**draw.body, "size": page, "sort": ["_doc"], "track_total_hits": True}
    path = f"/{quote(index, safe='')}/_search"
    answer = read_page(
        client.request("POST", path, params={"scroll": _KEEP_ALIVE}, body=body, timeout_s=_SAMPLING_TIMEOUT_S)
    )
    scroll = answer.scroll
    try:
        left = answer.hits.total.value
        needed = min(draw.wanted, left)
        choice = random.Random(draw.seed)  # noqa: S311 - reproducible, not secret
        while needed:
            _check(answer, left)
            chosen: list[Hit] = []
            for hit in answer.hits.hits:
                # Knuth's algorithm S: exactly the wanted number, each document with equal probability.
                if choice.random() * left < needed:
                    if not isinstance(hit.get("_source"), dict):
                        raise BenchctlError(f"document {hit.get('_id')} comes without its `_source`")
                    chosen.append(hit)
                    needed -= 1
                left -= 1
            yield chosen
            if needed:
                again = {"scroll": _KEEP_ALIVE, "scroll_id": scroll}
                answer = read_page(
                    client.request("POST", "/_search/scroll", body=again, timeout_s=_SAMPLING_TIMEOUT_S)
                )
                scroll = answer.scroll or scroll
    finally:
        with suppress(NodeRequestError):  # it ends by itself, a little later
            client.request("DELETE", "/_search/scroll", body={"scroll_id": [scroll]})


def page_size(document_bytes: float, largest: int | None) -> int:
    """Return the number of hits of a page that takes about PAGE_BYTES.

    Args:
        document_bytes: mean size of a document in the index.
        largest: the index's own bound; None for none.
    """
    size = round(PAGE_BYTES / max(document_bytes, 1.0))
    bound = _MOST_HITS if largest is None else min(_MOST_HITS, largest)
    return max(1, min(bound, max(_LEAST_HITS, size)))


def _count(client: SearchClient, index: str, body: Mapping[str, Any]) -> int:
    counting = {**body, "size": 0, "track_total_hits": True}
    answer = read_page(client.search(index, counting, timeout_s=_SAMPLING_TIMEOUT_S))
    _check(answer, None)
    return answer.hits.total.value


def _check(answer: Page, left: int | None) -> None:
    """Refuse an incomplete page; `left` is the number of documents still to come, None where none are."""
    failed = answer.shards.failed
    if failed or answer.timed_out:
        raise BenchctlError(
            f"the cluster gave an incomplete page: {failed} shards failed",
            hint="see whether all shards of the index are available",
        )
    if left is not None and not answer.hits.hits:
        raise BenchctlError(f"the cluster stopped giving documents while {left:,} were still to come")


_KEYWORDS = frozenset({"keyword", "ip"})
_DATES = frozenset({"date", "date_nanos"})
_NUMBERS = frozenset(
    {"long", "integer", "short", "byte", "double", "float", "half_float", "scaled_float", "unsigned_long"}
)
_TRIED = 8  # fields of a kind
_SUGGESTION_TIMEOUT_S = 120.0

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
    """Suggest searches with hits: all, a term, a range, a sort, an aggregation, as fields allow.

    Each was tried once, and found something.

    Raises:
        NodeRequestError: If the cluster does not even answer a search for everything.
    """
    everything = _search("default", {"query": {"match_all": {}}})
    client.search(index.name, everything["body"], timeout_s=_SUGGESTION_TIMEOUT_S)
    further = (*_by_keyword(client, index), *_by_order(client, index))
    return (everything, *(operation for operation in further if _finds(client, index.name, operation)))


def _by_keyword(client: SearchClient, index: LiveIndex) -> Iterator[Operation]:
    """A search for the most frequent value of a keyword, and a count of its values."""
    best: tuple[int, str, Any] | None = None
    for path in _paths(index, _KEYWORDS):
        result = _aggregated(client, index.name, {"terms": {"field": path, "size": 1}})
        if result.buckets and (best is None or result.buckets[0].doc_count > best[0]):
            best = (result.buckets[0].doc_count, path, result.buckets[0].key)
    if best is not None:
        _, path, value = best
        yield _search(f"term-{path}", {"query": {"term": {path: {"value": value}}}})
        counting = {"size": 0, "aggs": {"values": {"terms": {"field": path, "size": 10}}}}
        yield {**_search(f"terms-{path}", counting), "cache": False}


def _by_order(client: SearchClient, index: LiveIndex) -> Iterator[Operation]:
    """A range over the middle half of a date or number, and a sort by it, descending."""
    for path in (*_paths(index, _DATES), *_paths(index, _NUMBERS)):
        result = _aggregated(client, index.name, {"percentiles": {"field": path, "percents": [25, 75]}})
        bounds = [bound for bound in result.values.values() if isinstance(bound, int | float)]
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
    """The result of an aggregation over everything; empty if the node cannot do it."""
    try:
        answer = client.search(
            index, {"size": 0, "aggs": {"found": aggregation}}, timeout_s=_SUGGESTION_TIMEOUT_S
        )
    except NodeRequestError:
        return _Found()
    try:
        return msgspec.convert(answer, _Aggregated).aggregations["found"]
    except (msgspec.ValidationError, KeyError):
        return _Found()


def _finds(client: SearchClient, index: str, operation: Operation) -> bool:
    try:
        answer = client.search(index, operation["body"], timeout_s=_SUGGESTION_TIMEOUT_S)
    except NodeRequestError:
        return False
    page = read_page(answer)
    return bool(page.hits.total.value) and not page.shards.failed
