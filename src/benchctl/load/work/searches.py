"""Operations of a single request with a query: searches, batches of them, and requests as they come."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from benchctl.load.judge import judge_multi_search, judge_plain, judge_search
from benchctl.load.request import Request
from benchctl.load.values import Bodies
from benchctl.load.work.envelope import JSON, NDJSON, Envelope, with_body
from benchctl.load.workload import Numbered, Repeated, WorkContext, Workload, WorkOrder
from benchctl.track.operations.common import Asking, Varying, url_param
from benchctl.track.operations.search import MultiSearch, RawRequest, Search, VectorSearch

# What a path may hold besides letters and digits; `%` is there already where it was encoded.
PATH_SAFE = "/%?&=,*:+;@!$'()~<>{}"
_COUNTS_NEIGHBOURS = (9, 2)


def open_search(operation: Search, order: WorkOrder) -> Workload:
    """One search, once."""
    compressed = {"Accept-Encoding": "gzip"} if operation.response_compression_enabled else {}
    body = dict(operation.body)
    if operation.results_per_page is not None:
        body["size"] = operation.results_per_page
    if operation.profile_query:
        body["profile"] = True
    request = Envelope(operation, headers=compressed).request(
        "POST",
        search_path(operation, order),
        params={**operation.url_params, **cache_param(operation.cache)},
        judge=judge_search,
        searches=searches_of(body, order.context),
    )
    return _filled(request, order.bodies(operation, body), operation, order)


def open_vector_search(operation: VectorSearch, order: WorkOrder) -> Workload:
    """A search for the nearest vectors, as its body asks for them."""
    compressed = {"Accept-Encoding": "gzip"} if operation.response_compression_enabled else {}
    body = {**operation.body, "profile": True} if operation.profile_query else operation.body
    request = Envelope(operation, headers=compressed).request(
        "POST",
        f"/{order.index(operation.index)}/_search",
        params={**operation.url_params, **cache_param(operation.cache)},
        judge=judge_search,
        searches=searches_of(body, order.context),
    )
    return _filled(request, order.bodies(operation, body), operation, order)


def search_path(operation: Asking, order: WorkOrder) -> str:
    """Where an operation searches; nodes that are too new for types say so."""
    kind = "" if operation.type is None else f"/{quote(operation.type, safe='')}"
    return f"/{order.index(operation.target)}{kind}/_search"


def cache_param(cache: bool | None) -> dict[str, str]:  # noqa: FBT001 - three values, by a key of the track
    """The query parameter for Rally's `cache`."""
    return {} if cache is None else {"request_cache": url_param(cache)}


def open_multi_search(operation: MultiSearch, order: WorkOrder) -> Workload:
    """A batch: a header line and a body line for each search."""
    request = Envelope(operation, content_type=NDJSON).request(
        "POST",
        f"/{order.index(operation.target)}/_msearch",
        params=operation.url_params,
        judge=judge_multi_search,
        searches=sum(searches_of(search.body, order.context) for search in operation.searches),
        weight=len(operation.searches),
    )
    lines: list[Bodies] = []
    for place, search in enumerate(operation.searches):
        named = {} if search.index is None else {"index": search.index}
        # With the same values, searches of a batch would be answered from one another's caches.
        part = f"/{place}"
        lines.append(order.bodies(operation, {**search.header, **named}, part=part))
        lines.append(order.bodies(operation, search.body, part=part))
    return _filled(request, _Lines(lines), operation, order)


def open_raw_request(operation: RawRequest, order: WorkOrder) -> Workload:
    """Any request; its status is all that counts."""
    path = order.bodies(operation, operation.path)
    content: _Content
    if isinstance(operation.body, list):
        content = _Lines([order.bodies(operation, line) for line in operation.body])
    elif isinstance(operation.body, str):
        content = _Text(order.bodies(operation, operation.body))
    else:
        content = order.bodies(operation, operation.body) if operation.body else _Lines([])
    envelope = Envelope(operation, content_type=NDJSON if _has_lines(operation) else JSON)

    def make(number: int) -> Request:
        text = path.text(number)
        body = content.encode(number)
        return envelope.request(
            operation.method,
            quote(text, safe=PATH_SAFE),
            body,
            params=operation.url_params,
            judge=judge_plain,
            searches=searches_in(operation.method, text, body, order.context),
        )

    return Numbered(make, order.clients) if operation.values else Repeated(make(0))


def _has_lines(operation: RawRequest) -> bool:
    body = operation.body
    return isinstance(body, list) or (isinstance(body, str) and body.endswith("\n"))


def searches_of(body: Mapping[str, Any], context: WorkContext) -> int:
    """By how much an engine's count grows with a search of this body.

    For a top-level `knn`, Elasticsearch looks for the neighbours of all its clauses before the query, and
    counts that as a query of its own since 9.2. A `knn` within the query is a part of it in both engines.
    """
    retriever = body.get("retriever")
    asks_first = "knn" in body or (isinstance(retriever, Mapping) and "knn" in retriever)
    return 2 if asks_first and _counts_neighbours(context) else 1


def searches_in(method: str, path: str, body: bytes, context: WorkContext) -> int:
    """The same for any request, as both engines were seen to count: pages of a scroll like searches."""
    if method not in {"GET", "POST"}:
        return 0
    parts = path.partition("?")[0].strip("/").split("/")
    if parts[-1] in {"_search", "_count"} or parts[-2:] in (["_search", "scroll"], ["_search", "template"]):
        return _searches_of_text(body, context)
    if parts[-1] == "_msearch":
        lines = [line for line in body.splitlines() if line.strip()]
        return sum(_searches_of_text(line, context) for line in lines[1::2])
    return 0


def _searches_of_text(body: bytes, context: WorkContext) -> int:
    # Nearly no body is worth decoding beside a measurement.
    if b'"knn"' not in body or not _counts_neighbours(context):
        return 1
    try:
        found = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return 1
    return searches_of(found, context) if isinstance(found, dict) else 1


def _counts_neighbours(context: WorkContext) -> bool:
    numbers = re.match(r"(\d+)\.(\d+)", context.version)
    found = (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)
    return context.engine == "elasticsearch" and found >= _COUNTS_NEIGHBOURS


class _Lines:
    """Several bodies, a line each."""

    def __init__(self, lines: list[Bodies]) -> None:
        self._lines = lines

    def encode(self, number: int) -> bytes:
        """All lines of a request, each with its end."""
        return b"".join([line.encode(number) + b"\n" for line in self._lines])


class _Text:
    """A body that is no JSON of ours to encode."""

    def __init__(self, text: Bodies) -> None:
        self._text = text

    def encode(self, number: int) -> bytes:
        """The body of a request."""
        return self._text.text(number).encode()


_Content = Bodies | _Lines | _Text


def _filled(request: Request, content: _Content, operation: Varying, order: WorkOrder) -> Workload:
    """The request with its body: one for all when no value changes in it."""
    if not operation.values:
        return Repeated(with_body(request, content.encode(0)))
    return Numbered(lambda number: with_body(request, content.encode(number)), order.clients)
