"""Operations with a query: searches, batches, pages, SQL, and raw requests."""

import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import msgspec

from benchctl.load.request import (
    UNDECODABLE,
    Answer,
    Judge,
    Request,
    judge_multi_search,
    judge_of,
    judge_profiled,
    shorten,
)
from benchctl.load.work.vectors import open_data_set
from benchctl.load.workload import (
    JSON,
    NDJSON,
    Bodies,
    Envelope,
    Reply,
    Script,
    WorkContext,
    Workload,
    WorkOrder,
    ask,
    numbered,
    repeated,
    scripted,
    with_body,
)
from benchctl.results.plan import EngineName
from benchctl.results.samples import Outcome
from benchctl.track.operations import Asking, Varying, url_param
from benchctl.track.operations.search import (
    CompositeAgg,
    MultiSearch,
    PaginatedSearch,
    RawRequest,
    ScrollSearch,
    Search,
    Sql,
    VectorSearch,
    change_composite,
    composite_at,
    composites,
)

# Allowed in a path besides letters and digits; `%` since it may be encoded already.
PATH_SAFE = "/%?&=,*:+;@!$'()~<>{}"
_COUNTS_NEIGHBOURS = (9, 2)
_IDS = ("hits.hits._id", "hits.hits.fields")


def open_search(operation: Search, order: WorkOrder) -> Workload:
    """Open a single search; as in Rally, `pages` makes it a scroll."""
    if operation.pages is not None:
        return open_scroll(operation, order)
    body = dict(operation.body)
    if operation.results_per_page is not None:
        body["size"] = operation.results_per_page
    if operation.profile_query:
        body["profile"] = True
    return _single_search(operation, order, _search_path(operation, order), body)


def open_vector_search(operation: VectorSearch, order: WorkOrder) -> Workload:
    """Open searches for the nearest vectors: of a data set, or of the body as given."""
    path = f"/{order.index(operation.index)}/_search"
    if operation.reads_data_set:
        return open_data_set(operation, order, lambda body: _request(operation, order, path, body, _IDS))
    body = {**operation.body, "profile": True} if operation.profile_query else operation.body
    return _single_search(operation, order, path, body)


def _single_search(
    operation: Search | VectorSearch, order: WorkOrder, path: str, body: Mapping[str, Any]
) -> Workload:
    request = _request(operation, order, path, body)
    return filled(request, order.bodies(operation, body), operation, order)


def _request(
    operation: Search | VectorSearch,
    order: WorkOrder,
    path: str,
    body: Mapping[str, Any],
    reads: Collection[str] = (),
) -> Request:
    return _envelope(operation).request(
        "POST",
        path,
        params={**operation.url_params, **_cache_param(operation.cache)},
        judge=judge_profiled if body.get("profile") else None,
        reads=reads,
        searches=searches_of(body, order.context),
    )


def _search_path(operation: Asking, order: WorkOrder) -> str:
    """The search path; nodes too new for types reject one."""
    kind = "" if operation.type is None else f"/{quote(operation.type, safe='')}"
    return f"/{order.index(operation.target)}{kind}/_search"


def _cache_param(cache: bool | None) -> dict[str, str]:  # noqa: FBT001 - three values, by a key of the track
    return {} if cache is None else {"request_cache": url_param(cache)}


def open_multi_search(operation: MultiSearch, order: WorkOrder) -> Workload:
    """Open a batch: a header line and a body line for each search."""
    request = Envelope(operation, content_type=NDJSON).request(
        "POST",
        f"/{order.index(operation.target)}/_msearch",
        params=operation.url_params,
        judge=_of_batch(len(operation.searches)),
        searches=sum(searches_of(search.body, order.context) for search in operation.searches),
        weight=len(operation.searches),
    )
    lines: list[Bodies] = []
    for place, search in enumerate(operation.searches):
        named = {} if search.index is None else {"index": search.index}
        # With equal values, the searches of a batch would hit each other's cache entries.
        part = f"/{place}"
        lines.append(order.bodies(operation, {**search.header, **named}, part=part))
        lines.append(order.bodies(operation, search.body, part=part))
    return filled(request, _Lines(lines), operation, order)


def open_raw_request(operation: RawRequest, order: WorkOrder) -> Workload:
    """Open any request, judged by what its path says it is."""
    path = order.bodies(operation, operation.path)
    content: _Content
    if isinstance(operation.body, list):
        content = _Lines([order.bodies(operation, line) for line in operation.body])
    elif isinstance(operation.body, str):
        content = _Text(order.bodies(operation, operation.body))
    else:
        content = order.bodies(operation, operation.body) if operation.body else _Lines([])
    has_lines = isinstance(operation.body, list) or str(operation.body).endswith("\n")
    envelope = Envelope(operation, content_type=NDJSON if has_lines else JSON)

    def make(number: int) -> Request:
        text = path.text(number)
        body = content.encode(number)
        return envelope.request(
            operation.method,
            quote(text, safe=PATH_SAFE),
            body,
            params=operation.url_params,
            judge=_of_batch(len(_batch(body)))
            if judge_of(operation.method, text) is judge_multi_search
            else None,
            searches=searches_in(operation.method, text, body, order.context),
        )

    return numbered(make, order.clients) if operation.values else repeated(make(0))


def searches_of(body: Mapping[str, Any], context: WorkContext) -> int:
    """Return by how much the engine's count of searches grows with a search of this body.

    For a top-level `knn`, Elasticsearch looks for the neighbours of all its clauses before the query, and
    counts that as a query of its own since 9.2. A `knn` within the query is part of it in both engines.
    """
    retriever = body.get("retriever")
    asks_first = "knn" in body or (isinstance(retriever, Mapping) and "knn" in retriever)
    return 2 if asks_first and _counts_neighbours(context) else 1


def searches_in(method: str, path: str, body: bytes, context: WorkContext) -> int:
    """Return the same for any request, as observed in both engines: pages of a scroll count like searches."""
    if method not in {"GET", "POST"}:
        return 0
    parts = path.partition("?")[0].strip("/").split("/")
    if parts[-1] in {"_search", "_count"} or parts[-2:] in (["_search", "scroll"], ["_search", "template"]):
        return _searches_of_text(body, context)
    if parts[-1] == "_msearch":
        return sum(_searches_of_text(line, context) for line in _batch(body))
    return 0


def _batch(body: bytes) -> list[bytes]:
    """Return the searches of a batch, without their headers."""
    return [line for line in body.splitlines() if line.strip()][1::2]


def _of_batch(searches: int) -> Judge:
    """Return a judge of a response to that many searches."""

    def judge(status: int, body: bytes) -> Answer:
        answer = judge_multi_search(status, body)
        if answer.outcome is Outcome.OK and len(answer.tooks_ms) != searches:
            reason = f"{len(answer.tooks_ms)} responses to {searches} searches"
            return Answer(Outcome.BAD_BODY, reason=reason)
        return answer

    return judge


def _searches_of_text(body: bytes, context: WorkContext) -> int:
    # Nearly no body is worth decoding beside a measurement.
    if b'"knn"' not in body or not _counts_neighbours(context):
        return 1
    try:
        decoded = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return 1
    return searches_of(decoded, context) if isinstance(decoded, dict) else 1


def _counts_neighbours(context: WorkContext) -> bool:
    numbers = re.match(r"(\d+)\.(\d+)", context.version)
    version = (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)
    return context.engine == "elasticsearch" and version >= _COUNTS_NEIGHBOURS


class _Lines:
    def __init__(self, lines: list[Bodies]) -> None:
        self._lines = lines

    def encode(self, number: int) -> bytes:
        """Return the body of a request: all lines, each with its newline."""
        return b"".join([line.encode(number) + b"\n" for line in self._lines])


class _Text:
    """A plain text body."""

    def __init__(self, text: Bodies) -> None:
        self._text = text

    def encode(self, number: int) -> bytes:
        """Return the body of a request."""
        return self._text.text(number).encode()


_Content = Bodies | _Lines | _Text


def filled(request: Request, content: _Content, operation: Varying, order: WorkOrder) -> Workload:
    """Return the request with its body; a single one if no value changes in it."""
    if not operation.values:
        return repeated(with_body(request, content.encode(0)))
    return numbered(lambda number: with_body(request, content.encode(number)), order.clients)


_Pages = Search | ScrollSearch | PaginatedSearch | CompositeAgg

_HITS = 10  # both engines' default number of hits, and of buckets of a composite aggregation
_KEEP_ALIVE = "10s"
# Marks the place of the after_key in the template; unlikely to occur in a user's JSON.
_AFTER_MARK = "benchctl puts the after_key of the page before here"
_AFTER = b',"after":' + msgspec.json.encode(_AFTER_MARK)


class _Hit(msgspec.Struct, gc=False):
    sort: msgspec.Raw


class _SortedHits(msgspec.Struct, gc=False):
    hits: list[_Hit] = []


class _SortedPage(msgspec.Struct, gc=False):
    hits: _SortedHits = msgspec.field(default_factory=_SortedHits)


class _Hits(msgspec.Struct, gc=False):
    hits: list[msgspec.Raw] = []


class _ScrollPage(msgspec.Struct, gc=False):
    scroll_id: str = msgspec.field(name="_scroll_id")
    hits: _Hits = msgspec.field(default_factory=_Hits)


class _Aggregations(msgspec.Struct, gc=False):
    aggregations: msgspec.Raw


class _Composite(msgspec.Struct, gc=False):
    buckets: list[msgspec.Raw]
    after_key: msgspec.Raw = msgspec.Raw()  # an empty page has none


_decode_sorted = msgspec.json.Decoder(_SortedPage).decode
_decode_scroll = msgspec.json.Decoder(_ScrollPage).decode
_decode_aggregations = msgspec.json.Decoder(_Aggregations).decode
_decode_named = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_composite = msgspec.json.Decoder(_Composite).decode


@dataclass
class _Total:
    """The operation's answer: the hits of its first page, the engine's time of all pages."""

    first: Answer | None = None
    took_ms: int = 0

    def add(self, answer: Answer) -> None:
        self.first = self.first or answer
        self.took_ms += max(answer.took_ms, 0)

    def lacking(self, hits: int) -> Answer | None:
        """Return the failure of pages that end before all hits came; None if that many are all."""
        first = self.first
        if first is None or not first.hits_exact or hits >= first.hits:
            return None
        return Answer(Outcome.PARTIAL, reason=f"the pages ended after {hits:,} of {first.hits:,} hits")

    def answer(self) -> Answer:
        """Return the answer of all pages so far, every one of them OK."""
        first = self.first or Answer(Outcome.OK)
        return Answer(Outcome.OK, self.took_ms, first.hits, first.hits_exact)


@dataclass(frozen=True)
class _Paged:
    """An operation that reads its pages one after the other, with no clean-up."""

    request: Request  # what all pages have in common
    bodies: Bodies  # of the first page, perhaps with marks for what later pages need
    pages: int
    begin: Callable[[bytes], bytes]  # body -> that of the first page
    proceed: Callable[[bytes, bytes], bytes]  # body, what `find_next` found -> that of the next page
    # Body of an answer -> where the next page begins; None when this one was not full.
    find_next: Callable[[bytes], bytes | None]

    def script(self, number: int) -> Script:
        """Ask page after page, until one is not full or there are enough."""
        template = self.bodies.encode(number)
        body = self.begin(template)
        total = _Total()
        for _ in range(self.pages):
            reply = yield from ask(with_body(self.request, body))
            if reply.answer.outcome is not Outcome.OK:
                return reply.answer
            total.add(reply.answer)
            try:
                after = self.find_next(reply.exchange.body)
            except UNDECODABLE as err:
                return _unreadable(err)
            if after is None:
                break
            body = self.proceed(template, after)
        return total.answer()


def open_paginated_search(operation: PaginatedSearch, order: WorkOrder) -> Workload:
    """Open pages by `search_after`: the next one begins at the sort values of the last hit."""
    body, size = _sized(operation)

    def find_next(answer: bytes) -> bytes | None:
        hits = _decode_sorted(answer).hits.hits
        return bytes(hits[-1].sort) if len(hits) >= size > 0 else None

    paged = _Paged(
        request=_page_request(operation, order, _cache_param(operation.cache), reads=("hits.hits.sort",)),
        bodies=order.bodies(operation, body),
        pages=_most(operation.pages),
        begin=lambda template: template,
        # The body is a non-empty object: another key goes before its end.
        proceed=lambda template, after: template[:-1] + b',"search_after":' + after + b"}",
        find_next=find_next,
    )
    return numbered(paged.script, order.clients)


def open_composite_agg(operation: CompositeAgg, order: WorkOrder) -> Workload:
    """Open pages of buckets: the next one begins at the `after_key` of the last."""
    (path,) = composites(operation.body)
    names = path[1::2]
    changes = {} if operation.results_per_page is None else {"size": operation.results_per_page}
    body = change_composite(operation.body, path, changes)
    size = composite_at(body, path).get("size", _HITS)
    inner = ".".join(("aggregations", *names))
    paged = _Paged(
        request=_page_request(
            operation,
            order,
            _cache_param(operation.cache),
            reads=(f"{inner}.after_key", f"{inner}.buckets.key"),
        ),
        bodies=order.bodies(operation, change_composite(body, path, {"after": _AFTER_MARK})),
        pages=_most(operation.pages),
        begin=lambda template: template.replace(_AFTER, b""),
        proceed=lambda template, after: template.replace(_AFTER, b',"after":' + after),
        find_next=lambda answer: _after_key(answer, names, size),
    )
    return numbered(paged.script, order.clients)


def _after_key(answer: bytes, names: Sequence[str], size: object) -> bytes | None:
    """The `after_key` of a full page.

    Raises:
        msgspec.ValidationError: If the aggregation is missing.
    """
    raw = _decode_aggregations(answer).aggregations
    for name in names:
        inner = _decode_named(raw)
        if name not in inner:
            raise msgspec.ValidationError(f"it has no aggregation '{name}'")
        raw = inner[name]
    composite = _decode_composite(raw)
    full = not isinstance(size, int) or len(composite.buckets) >= size > 0
    if full and composite.buckets and not bytes(composite.after_key):
        raise msgspec.ValidationError("a full page has no after_key")
    return bytes(composite.after_key) or None if full else None


def open_scroll(operation: Search | ScrollSearch, order: WorkOrder) -> Workload:
    """Open pages by a scroll, which is cleared whatever happens."""
    body, size = _sized(operation)
    params = {"scroll": _KEEP_ALIVE, **operation.url_params, **_cache_param(operation.cache)}
    if "sort" not in body and "sort" not in params:
        params["sort"] = "_doc"
    envelope = _envelope(operation)
    scroll = _Scroll(
        first=_page_request(operation, order, params, envelope, reads=("_scroll_id", "hits.hits._id")),
        more=envelope.request("POST", "/_search/scroll", searches=1),
        # An exhausted scroll is gone already.
        clear=envelope.request("DELETE", "/_search/scroll", accepted={HTTPStatus.NOT_FOUND}),
        bodies=order.bodies(operation, body),
        keep_alive=params["scroll"],
        size=size,
        pages=_most(operation.pages),
    )
    return numbered(scroll.script, order.clients)


@dataclass(frozen=True)
class _Scroll:
    """The requests of a scroll."""

    first: Request  # alone has a body
    more: Request
    clear: Request
    bodies: Bodies  # of the first page
    keep_alive: str  # how long the node keeps the scroll between pages
    size: int  # hits of a full page
    pages: int

    def script(self, number: int) -> Script:
        """Ask page after page, then clear the scroll."""
        total, hits = _Total(), 0
        request = with_body(self.first, self.bodies.encode(number))
        scroll_id = ""
        failed: Answer | None = None
        for _ in range(self.pages):
            reply = yield from ask(request)
            total.add(reply.answer)
            failed = _failure(reply)
            try:
                page = _decode_scroll(reply.exchange.body)
            except UNDECODABLE as err:
                failed = failed or _unreadable(err)
                break
            # Even a page with failed shards has an open scroll.
            scroll_id = page.scroll_id
            hits += len(page.hits.hits)
            if failed is not None:
                break
            if len(page.hits.hits) < self.size:
                failed = total.lacking(hits)
                break
            request = with_body(
                self.more, msgspec.json.encode({"scroll_id": scroll_id, "scroll": self.keep_alive})
            )
        if scroll_id:
            cleared = yield from ask(with_body(self.clear, msgspec.json.encode({"scroll_id": [scroll_id]})))
            failed = failed or _failure(cleared)
        return failed or total.answer()


def _failure(reply: Reply) -> Answer | None:
    return None if reply.answer.outcome is Outcome.OK else reply.answer


def _unreadable(err: Exception) -> Answer:
    return Answer(Outcome.BAD_BODY, reason=shorten(f"no position of the next page in the response: {err}"))


def _most(pages: int | str | None) -> int:
    return pages if isinstance(pages, int) else sys.maxsize


def _sized(operation: Search | ScrollSearch | PaginatedSearch) -> tuple[dict[str, Any], int]:
    """The body with its page size, and the size that the node applies."""
    size = operation.results_per_page
    body = dict(operation.body) if size is None else {**operation.body, "size": size}
    # The query of the URL outranks the body.
    chosen = operation.request_params.get("size", body.get("size", _HITS))
    return body, chosen if isinstance(chosen, int) else _HITS


def _envelope(operation: _Pages | VectorSearch) -> Envelope:
    return Envelope(
        operation, headers={"Accept-Encoding": "gzip"} if operation.response_compression_enabled else {}
    )


def _page_request(
    operation: _Pages,
    order: WorkOrder,
    params: Mapping[str, str],
    envelope: Envelope | None = None,
    *,
    reads: Collection[str],
) -> Request:
    return (envelope or _envelope(operation)).request(
        "POST",
        _search_path(operation, order),
        params={**operation.url_params, **params},
        reads=reads,
        searches=searches_of(operation.body, order.context),
    )


_SQL_PATHS: Mapping[EngineName, str] = {"elasticsearch": "/_sql", "opensearch": "/_plugins/_sql"}


class _SqlPage(msgspec.Struct, gc=False):
    cursor: str = ""


_decode_page = msgspec.json.Decoder(_SqlPage).decode


def open_sql(operation: Sql, order: WorkOrder) -> Workload:
    """Open a query and its further pages, which come by a cursor; one that is left over is closed.

    The engines run these queries as searches; how often they count them depends on the query.
    """
    envelope = Envelope(operation)
    path = _SQL_PATHS[order.context.engine]
    query = envelope.request(
        "POST",
        path,
        msgspec.json.encode(operation.body),
        params=operation.url_params,
        reads=("cursor",),
        searches=1,
    )
    if operation.pages == 1 and "fetch_size" not in operation.body:
        return repeated(query)
    more = envelope.request("POST", path, params=operation.url_params, reads=("cursor",), searches=1)
    close = envelope.request("POST", f"{path}/close")

    def script() -> Script:
        request, cursor = query, b""
        answer = Answer(Outcome.OK)
        for _ in range(operation.pages):
            reply = yield from ask(request)
            answer = reply.answer
            if answer.outcome is not Outcome.OK:
                break
            try:
                next_cursor = _decode_page(reply.exchange.body).cursor
            except UNDECODABLE as err:
                answer = Answer(Outcome.BAD_BODY, reason=shorten(f"not a page of rows: {err}"))
                break
            cursor = msgspec.json.encode({"cursor": next_cursor}) if next_cursor else b""
            if not cursor:
                break
            request = with_body(more, cursor)
        if cursor:
            closed = yield from ask(with_body(close, cursor))
            answer = answer if answer.outcome is not Outcome.OK else closed.answer
        return answer

    return scripted(script)
