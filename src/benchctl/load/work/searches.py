"""Operations with a query: searches, batches, pages, SQL, and raw requests."""

import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from benchctl.corpus.queries import QUERIES, query_log
from benchctl.load.transport import Answer, Judge, Request
from benchctl.load.work import (
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
from benchctl.load.work.judges import (
    UNDECODABLE,
    judge_multi_search,
    judge_of,
    judge_profiled,
    shorten,
)
from benchctl.load.work.vectors import open_data_set
from benchctl.results.plan import EngineName
from benchctl.results.samples import Outcome
from benchctl.track.operations import Asking, Varying, url_param
from benchctl.track.operations.search import (
    CompositeAgg,
    LoggedSearch,
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

_Asking = Search | VectorSearch | ScrollSearch | PaginatedSearch | CompositeAgg

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
    path = f"/{order.index(operation.target)}/_search"
    if operation.reads_data_set:
        return open_data_set(
            operation, order, lambda body: _request(operation, order, path, body, reads=_IDS)
        )
    body = {**operation.body, "profile": True} if operation.profile_query else operation.body
    return _single_search(operation, order, path, body)


def open_logged(operation: LoggedSearch, order: WorkOrder) -> Workload:
    """Open searches of the track's log, for as many requests as the task has: at its end it starts again."""
    log = query_log(order.context.data_sets[operation.log, QUERIES])
    places = log.places(operation.shape)
    index, envelope = order.index(operation.target), _envelope(operation)
    own = {} if operation.cache is None else {"request_cache": url_param(operation.cache)}

    def make(number: int) -> Request:
        path, body = log.sent(int(places[number % places.size]), index)
        params = {**operation.url_params, **own}
        searches = searches_in("POST", path, body, order.context)
        return envelope.request("POST", path, body, params=params, searches=searches)

    return replace(numbered(make, order.clients), due_ns=log.since_ns(places), make=make)


def _single_search(
    operation: Search | VectorSearch, order: WorkOrder, path: str, body: Mapping[str, Any]
) -> Workload:
    request = _request(operation, order, path, body)
    return filled(request, order.bodies(operation, body), operation, order)


def _request(
    operation: _Asking,
    order: WorkOrder,
    path: str,
    body: Mapping[str, Any],
    *,
    params: Mapping[str, str] | None = None,
    reads: Collection[str] = (),
) -> Request:
    """Return a request of a search, all but its body."""
    own = {} if operation.cache is None else {"request_cache": url_param(operation.cache)}
    return _envelope(operation).request(
        "POST",
        path,
        params={**(params or {}), **operation.url_params, **own},
        judge=judge_profiled if body.get("profile") else None,
        reads=reads,
        searches=searches_of(body, order.context),
    )


def _envelope(operation: _Asking | LoggedSearch) -> Envelope:
    compressed = getattr(operation, "response_compression_enabled", False)
    headers = {"Accept-Encoding": "gzip"} if compressed else {}
    return Envelope(operation, headers=headers)


def _search_path(operation: Asking, order: WorkOrder) -> str:
    """The search path; nodes too new for types reject one."""
    kind = "" if operation.type is None else f"/{quote(operation.type, safe='')}"
    return f"/{order.index(operation.target)}{kind}/_search"


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
    path = order.bodies(operation, operation.path, plain=True)
    content: Bodies | _Lines
    if isinstance(operation.body, list):
        content = _Lines([order.bodies(operation, line) for line in operation.body])
    elif operation.body:
        content = order.bodies(operation, operation.body, plain=isinstance(operation.body, str))
    else:
        content = _Lines([])
    has_lines = isinstance(operation.body, list) or str(operation.body).endswith("\n")
    envelope = Envelope(operation, content_type=NDJSON if has_lines else JSON)

    def make(number: int) -> Request:
        text = path.encode(number).decode()
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


def filled(request: Request, content: Bodies | _Lines, operation: Varying, order: WorkOrder) -> Workload:
    """Return the request with its body; a single one if no value changes in it."""
    if not operation.values:
        return repeated(with_body(request, content.encode(0)))
    return numbered(lambda number: with_body(request, content.encode(number)), order.clients)


# Operations that read page after page; what tells a page where it begins, the response to the one before has.

_HITS = 10  # both engines' default number of hits, and of buckets of a composite aggregation
_KEEP_ALIVE = "10s"
# Marks the place of the after_key in the template; unlikely to occur in a user's JSON.
_AFTER_MARK = "benchctl puts the after_key of the page before here"
_AFTER = b',"after":' + msgspec.json.encode(_AFTER_MARK)
_NOTHING = (b"", b"null", b'""')


class _Hit(msgspec.Struct, gc=False):
    sort: msgspec.Raw


class _SortedHits(msgspec.Struct, gc=False):
    hits: list[_Hit] = []


class _SortedPage(msgspec.Struct, gc=False):
    hits: _SortedHits = msgspec.field(default_factory=_SortedHits)


class _Hits(msgspec.Struct, gc=False):
    hits: list[msgspec.Raw] = []


class _ScrollPage(msgspec.Struct, gc=False):
    scroll_id: msgspec.Raw = msgspec.field(name="_scroll_id")
    hits: _Hits = msgspec.field(default_factory=_Hits)


class _Aggregations(msgspec.Struct, gc=False):
    aggregations: msgspec.Raw


class _Composite(msgspec.Struct, gc=False):
    buckets: list[msgspec.Raw]
    after_key: msgspec.Raw = msgspec.Raw()  # an empty page has none


class _SqlPage(msgspec.Struct, gc=False):
    cursor: msgspec.Raw = msgspec.Raw()


_decode_sorted = msgspec.json.Decoder(_SortedPage).decode
_decode_scroll = msgspec.json.Decoder(_ScrollPage).decode
_decode_aggregations = msgspec.json.Decoder(_Aggregations).decode
_decode_named = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_composite = msgspec.json.Decoder(_Composite).decode
_decode_rows = msgspec.json.Decoder(_SqlPage).decode


class _Page(NamedTuple):
    """A response's place among the pages."""

    position: bytes  # JSON of what the next page needs; empty for none
    hits: int = 0  # on it, where all of them are to come
    full: bool = True  # False: no page follows, and all hits should have come


@dataclass(frozen=True)
class _Pages:
    """The pages of an operation, and what has to be closed behind them."""

    most: int
    read: Callable[[bytes], _Page]
    close: Callable[[bytes], Request] | None = None  # position -> what lets go of it

    def script(self, first: Request, proceed: Callable[[bytes], Request]) -> Script:
        """Ask page after page, until one is not full or there are enough.

        The answer has the hits of the first page, and the engine's time of all.
        """
        request, position, hits = first, b"", 0
        answers: list[Answer] = []
        failed: Answer | None = None
        for _ in range(self.most):
            reply = yield from ask(request)
            answers.append(reply.answer)
            failed = _failure(reply)
            try:
                page = self.read(reply.exchange.body)
            except UNDECODABLE as err:
                reason = shorten(f"no position of the next page in the response: {err}")
                failed = failed or Answer(Outcome.BAD_BODY, reason=reason)
                break
            # Even a page with failed shards has an open scroll; an error has no position.
            position = page.position or (position if failed is not None else b"")
            hits += page.hits
            if failed is None and not page.full and answers[0].hits_exact and hits < answers[0].hits:
                reason = f"the pages ended after {hits:,} of {answers[0].hits:,} hits"
                failed = Answer(Outcome.PARTIAL, reason=reason)
            if failed is not None or not page.full or not position:
                break
            request = proceed(position)
        if position and self.close is not None:
            closed = yield from ask(self.close(position))
            failed = failed or _failure(closed)
        if failed is not None:
            return failed
        took_ms = sum(answer.took_ms for answer in answers) if answers[0].took_ms >= 0 else -1
        return Answer(Outcome.OK, took_ms, answers[0].hits, answers[0].hits_exact)


def _failure(reply: Reply) -> Answer | None:
    return None if reply.answer.outcome is Outcome.OK else reply.answer


def _raw(value: msgspec.Raw) -> bytes:
    return b"" if bytes(value) in _NOTHING else bytes(value)


def _most(pages: int | str | None) -> int:
    return pages if isinstance(pages, int) else sys.maxsize


def _sized(operation: Search | ScrollSearch | PaginatedSearch) -> tuple[dict[str, Any], int]:
    """The body with its page size, and the size that the node applies."""
    size = operation.results_per_page
    body = dict(operation.body) if size is None else {**operation.body, "size": size}
    # The query of the URL outranks the body.
    chosen = operation.request_params.get("size", body.get("size", _HITS))
    return body, chosen if isinstance(chosen, int) else _HITS


def open_paginated_search(operation: PaginatedSearch, order: WorkOrder) -> Workload:
    """Open pages by `search_after`: the next one begins at the sort values of the last hit."""
    body, size = _sized(operation)
    request = _request(operation, order, _search_path(operation, order), body, reads=("hits.hits.sort",))
    bodies = order.bodies(operation, body)

    def read(answer: bytes) -> _Page:
        hits = _decode_sorted(answer).hits.hits
        return _Page(bytes(hits[-1].sort) if len(hits) >= size > 0 else b"")

    pages = _Pages(_most(operation.pages), read)

    def script(number: int) -> Script:
        # The body is a non-empty object: another key goes before its end.
        template = bodies.encode(number)
        begun = template[:-1] + b',"search_after":'
        return pages.script(
            with_body(request, template), lambda after: with_body(request, begun + after + b"}")
        )

    return numbered(script, order.clients)


def open_composite_agg(operation: CompositeAgg, order: WorkOrder) -> Workload:
    """Open pages of buckets: the next one begins at the `after_key` of the last."""
    (path,) = composites(operation.body)
    names = path[1::2]
    changes = {} if operation.results_per_page is None else {"size": operation.results_per_page}
    body = change_composite(operation.body, path, changes)
    size = composite_at(body, path).get("size", _HITS)
    inner = ".".join(("aggregations", *names))
    reads = (f"{inner}.after_key", f"{inner}.buckets.key")
    request = _request(operation, order, _search_path(operation, order), body, reads=reads)
    bodies = order.bodies(operation, change_composite(body, path, {"after": _AFTER_MARK}))
    pages = _Pages(_most(operation.pages), lambda answer: _Page(_after_key(answer, names, size)))

    def script(number: int) -> Script:
        template = bodies.encode(number)
        return pages.script(
            with_body(request, template.replace(_AFTER, b"")),
            lambda after: with_body(request, template.replace(_AFTER, b',"after":' + after)),
        )

    return numbered(script, order.clients)


def _after_key(answer: bytes, names: Sequence[str], size: object) -> bytes:
    """The `after_key` of a full page; empty for any other.

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
    return bytes(composite.after_key) if full else b""


def open_scroll(operation: Search | ScrollSearch, order: WorkOrder) -> Workload:
    """Open pages by a scroll, which is cleared whatever happens."""
    body, size = _sized(operation)
    params = {"scroll": _KEEP_ALIVE, **operation.url_params}
    if "sort" not in body and "sort" not in params:
        params["sort"] = "_doc"
    path, reads = _search_path(operation, order), ("_scroll_id", "hits.hits._id")
    first = _request(operation, order, path, body, params=params, reads=reads)
    bodies = order.bodies(operation, body)
    more = _envelope(operation).request("POST", "/_search/scroll", searches=1)
    # An exhausted scroll is gone already.
    clear = _envelope(operation).request("DELETE", "/_search/scroll", accepted={HTTPStatus.NOT_FOUND})
    kept = msgspec.json.encode(params["scroll"])

    def read(answer: bytes) -> _Page:
        page = _decode_scroll(answer)
        hits = len(page.hits.hits)
        return _Page(_raw(page.scroll_id), hits, full=hits >= size)

    pages = _Pages(
        _most(operation.pages),
        read,
        lambda scroll_id: with_body(clear, b'{"scroll_id":[%b]}' % scroll_id),
    )

    def script(number: int) -> Script:
        return pages.script(
            with_body(first, bodies.encode(number)),
            lambda scroll_id: with_body(more, b'{"scroll_id":%b,"scroll":%b}' % (scroll_id, kept)),
        )

    return numbered(script, order.clients)


_SQL_PATHS: Mapping[EngineName, str] = {"elasticsearch": "/_sql", "opensearch": "/_plugins/_sql"}


def open_sql(operation: Sql, order: WorkOrder) -> Workload:
    """Open a query and its further pages, which come by a cursor; one that is left over is closed.

    The engines run these queries as searches; how often they count them depends on the query.
    """
    envelope, path = Envelope(operation), _SQL_PATHS[order.context.engine]
    more = envelope.request("POST", path, params=operation.url_params, reads=("cursor",), searches=1)
    query = with_body(more, msgspec.json.encode(operation.body))
    if operation.pages == 1 and "fetch_size" not in operation.body:
        return repeated(query)
    close = envelope.request("POST", f"{path}/close")

    def at(request: Request) -> Callable[[bytes], Request]:
        return lambda cursor: with_body(request, b'{"cursor":%b}' % cursor)

    pages = _Pages(operation.pages, lambda answer: _Page(_raw(_decode_rows(answer).cursor)), at(close))
    return scripted(lambda: pages.script(query, at(more)))
