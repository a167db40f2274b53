"""Operations that read an answer page by page: scroll, `search_after` and composite aggregations."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import msgspec

from benchctl.load.judge import UNDECODABLE, accepting, judge_plain, judge_search, shorten
from benchctl.load.request import Answer, Request
from benchctl.load.values import Bodies
from benchctl.load.work.envelope import Envelope, with_body
from benchctl.load.work.searches import cache_param, search_path, searches_of
from benchctl.load.workload import Numbered, Reply, Script, Workload, WorkOrder, ask
from benchctl.results.samples import Outcome
from benchctl.track.operations.search import (
    CompositeAgg,
    Names,
    PaginatedSearch,
    ScrollSearch,
    Search,
    change_composite,
    composite_at,
    composites,
)

_Pages = Search | ScrollSearch | PaginatedSearch | CompositeAgg

_HITS = 10  # both engines' default number of hits, and of buckets of a composite aggregation
_KEEP_ALIVE = "10s"
# Stands in the template where the key after which a page begins goes; quoted it is no JSON of a user's.
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
    """The answer of the whole: the hits of its first page, the engine's time of all."""

    first: Answer | None = None
    took_ms: int = 0

    def add(self, answer: Answer) -> None:
        """One more page."""
        self.first = self.first or answer
        self.took_ms += max(answer.took_ms, 0)

    def answer(self) -> Answer:
        """All pages so far, every one of which was well."""
        first = self.first or Answer(Outcome.OK)
        return Answer(Outcome.OK, self.took_ms, first.hits, first.hits_exact)


@dataclass(frozen=True)
class _Paged:
    """How an operation reads its pages, one after the other, without anything to clear up.

    Attributes:
        request: what all pages have in common.
        bodies: of the first page, perhaps with marks for what later pages need.
        pages: how many at most.
        begin: body -> that of the first page.
        proceed: body, what `find_next` found -> that of the next page.
        find_next: body of an answer -> where the next page begins; None when this one was not full.
    """

    request: Request
    bodies: Bodies
    pages: int
    begin: Callable[[bytes], bytes]
    proceed: Callable[[bytes, bytes], bytes]
    find_next: Callable[[bytes], bytes | None]

    def script(self, number: int) -> Script:
        """Page after page, until one is not full or there are enough."""
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
    """Pages by `search_after`: the sort values of the last hit are where the next one begins."""
    body, size = _sized(operation)

    def find_next(answer: bytes) -> bytes | None:
        hits = _decode_sorted(answer).hits.hits
        return bytes(hits[-1].sort) if len(hits) >= size > 0 else None

    paged = _Paged(
        request=_page_request(operation, order, cache_param(operation.cache)),
        bodies=order.bodies(operation, body),
        pages=_most(operation.pages),
        begin=lambda template: template,
        # The body is an object with a sort: a key more goes before its end.
        proceed=lambda template, after: template[:-1] + b',"search_after":' + after + b"}",
        find_next=find_next,
    )
    return Numbered(paged.script, order.clients)


def open_composite_agg(operation: CompositeAgg, order: WorkOrder) -> Workload:
    """Pages of buckets: the `after_key` of one is where the next one begins."""
    (names,) = composites(operation.body)
    changes = {} if operation.results_per_page is None else {"size": operation.results_per_page}
    body = change_composite(operation.body, names, changes)
    size = composite_at(body, names).get("size", _HITS)
    paged = _Paged(
        request=_page_request(operation, order, cache_param(operation.cache)),
        bodies=order.bodies(operation, change_composite(body, names, {"after": _AFTER_MARK})),
        pages=_most(operation.pages),
        begin=lambda template: template.replace(_AFTER, b""),
        proceed=lambda template, after: template.replace(_AFTER, b',"after":' + after),
        find_next=lambda answer: _after_key(answer, names, size),
    )
    return Numbered(paged.script, order.clients)


def _after_key(answer: bytes, names: Names, size: object) -> bytes | None:
    """The `after_key` of a full page.

    Raises:
        msgspec.ValidationError: the aggregation is not there.
    """
    found = _decode_aggregations(answer).aggregations
    for name in names:
        inner = _decode_named(found)
        if name not in inner:
            raise msgspec.ValidationError(f"it has no aggregation '{name}'")
        found = inner[name]
    composite = _decode_composite(found)
    full = not isinstance(size, int) or len(composite.buckets) >= size
    return bytes(composite.after_key) or None if full else None


def open_scroll(operation: Search | ScrollSearch, order: WorkOrder) -> Workload:
    """Pages by a scroll, which is cleared whatever happens."""
    body, size = _sized(operation)
    params = {"scroll": _KEEP_ALIVE, **operation.url_params, **cache_param(operation.cache)}
    if "sort" not in body and "sort" not in params:
        params["sort"] = "_doc"
    envelope = _envelope(operation)
    scroll = _Scroll(
        first=_page_request(operation, order, params, envelope),
        more=envelope.request("POST", "/_search/scroll", judge=judge_search, searches=1),
        # A scroll that has run out by itself is gone, too.
        clear=envelope.request(
            "DELETE", "/_search/scroll", judge=accepting(judge_plain, {HTTPStatus.NOT_FOUND})
        ),
        bodies=order.bodies(operation, body),
        keep_alive=params["scroll"],
        size=size,
        pages=_most(operation.pages),
    )
    return Numbered(scroll.script, order.clients)


@dataclass(frozen=True)
class _Scroll:
    """How an operation scrolls.

    Attributes:
        first, more, clear: its three kinds of requests, without bodies but for the first.
        bodies: of the first page.
        keep_alive: how long the node keeps the scroll from page to page.
        size: hits of a full page.
        pages: how many at most.
    """

    first: Request
    more: Request
    clear: Request
    bodies: Bodies
    keep_alive: str
    size: int
    pages: int

    def script(self, number: int) -> Script:
        """Page after page, then the end of the scroll."""
        total = _Total()
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
            # A page that some shards failed to give has an open scroll all the same.
            scroll_id = page.scroll_id
            if failed is not None or len(page.hits.hits) < self.size:
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
    return Answer(Outcome.BAD_BODY, reason=shorten(f"the page does not say where the next one begins: {err}"))


def _most(pages: int | str | None) -> int:
    return pages if isinstance(pages, int) else sys.maxsize


def _sized(operation: Search | ScrollSearch | PaginatedSearch) -> tuple[dict[str, Any], int]:
    """The body with its page size, and the size that the node goes by."""
    size = operation.results_per_page
    body = dict(operation.body) if size is None else {**operation.body, "size": size}
    # The query of the URL outranks the body.
    chosen = operation.request_params.get("size", body.get("size", _HITS))
    return body, chosen if isinstance(chosen, int) else _HITS


def _envelope(operation: _Pages) -> Envelope:
    return Envelope(
        operation, headers={"Accept-Encoding": "gzip"} if operation.response_compression_enabled else {}
    )


def _page_request(
    operation: _Pages, order: WorkOrder, params: Mapping[str, str], envelope: Envelope | None = None
) -> Request:
    return (envelope or _envelope(operation)).request(
        "POST",
        search_path(operation, order),
        params={**operation.url_params, **params},
        judge=judge_search,
        searches=searches_of(operation.body, order.context),
    )
