"""Pages: every document once, no request too many, and what was opened is closed."""

import json
from itertools import count
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.load.transport import Answer, Request
from benchctl.results.samples import Outcome
from load.playing import Node, found, outcome, play, play_operation, request_of, scripted, workload

ERROR = {"error": {"type": "search_phase_execution_exception", "reason": "no"}, "status": 500}

PAGES = st.integers(1, 8) | st.just("all")


class ShelfNode:
    """Holds numbered documents and pages through them as the engines do."""

    def __init__(self, documents: int) -> None:
        self.documents = documents
        self.given: list[int] = []
        self.scrolled = 0
        self.size = 0
        self.open_scrolls: set[str] = set()

    def search_after(self, request: Request) -> tuple[int, Any]:
        body = json.loads(request.body)
        first = body["search_after"][0] + 1 if "search_after" in body else 0
        return 200, found(self._hits(first, body.get("size", 10)), self.documents)

    def composite(self, request: Request) -> tuple[int, Any]:
        body = json.loads(request.body)
        composite = body["aggs"]["outer"]["aggs"]["inner"]["composite"]
        first = composite["after"]["n"] + 1 if "after" in composite else 0
        keys = self._numbers(first, composite.get("size", 10))
        inner = {"buckets": [{"key": {"n": key}, "doc_count": 1} for key in keys]}
        if keys:
            inner = {"after_key": {"n": keys[-1]}, **inner}
        outer = {"doc_count": self.documents, "inner": inner}
        return 200, found([], self.documents, aggregations={"outer": outer})

    def scroll(self, request: Request) -> tuple[int, Any]:
        body = json.loads(request.body)
        if request.method == "DELETE":
            self.open_scrolls -= set(body["scroll_id"])
            return 200, {"succeeded": True, "num_freed": 1}
        if request.path.startswith("/big5/_search?"):
            self.open_scrolls.add("first")
            self.size, self.scrolled = body.get("size", 10), 0
        else:
            assert body["scroll_id"] in self.open_scrolls
        hits = self._hits(self.scrolled, self.size)
        self.scrolled += len(hits)
        return 200, found(hits, self.documents, _scroll_id="first")

    def _hits(self, first: int, size: int) -> list[dict[str, Any]]:
        return [{"_id": str(number), "sort": [number]} for number in self._numbers(first, size)]

    def _numbers(self, first: int, size: int) -> list[int]:
        numbers = list(range(first, min(first + size, self.documents)))
        self.given += numbers
        return numbers


def expected(documents: int, size: int, pages: int | str) -> tuple[list[int], int]:
    """The documents seen, and the pages it takes: the last one is the first that is not full."""
    most = pages if isinstance(pages, int) else documents + 1
    return list(range(min(documents, most * size))), min(most, documents // size + 1)


COMPOSITE = {
    "size": 0,
    "aggs": {
        "outer": {
            "filter": {"match_all": {}},
            "aggs": {"inner": {"composite": {"sources": [{"n": {"terms": {"field": "n"}}}]}}},
        }
    },
}
KINDS: dict[str, dict[str, Any]] = {
    "search_after": {"operation_type": "paginated-search", "body": {"sort": [{"n": "asc"}]}},
    "composite": {"operation_type": "composite-agg", "body": COMPOSITE},
    "scroll": {"operation_type": "scroll-search", "body": {"query": {"match_all": {}}}},
}


@pytest.mark.parametrize("kind", sorted(KINDS))
@given(documents=st.integers(0, 40), size=st.integers(1, 12), pages=PAGES)
def test_every_document_is_read_once_up_to_the_last_page(
    kind: str, documents: int, size: int, pages: int | str
):
    node = ShelfNode(documents)
    played = play_operation(getattr(node, kind), pages=pages, results_per_page=size, **KINDS[kind])
    numbers, requests = expected(documents, size, pages)
    assert node.given == numbers
    asked = [request for request in played.requests if request.method == "POST"]
    assert len(asked) == requests
    assert all(request.searches == 1 for request in asked)
    assert node.open_scrolls == set()
    assert played.answer == Answer(Outcome.OK, took_ms=2 * requests, hits=documents, hits_exact=True)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_ten_a_page_is_the_engines_own(kind: str):
    node = ShelfNode(25)
    play_operation(getattr(node, kind), **KINDS[kind])
    assert node.given == list(range(25))


def test_a_page_begins_behind_the_last_hit_of_the_one_before():
    node = ShelfNode(5)
    played = play_operation(node.search_after, results_per_page=2, cache=False, **KINDS["search_after"])
    assert played.lines == ["POST /big5/_search?request_cache=false"] * 3
    assert played.bodies == [
        {"sort": [{"n": "asc"}], "size": 2},
        {"sort": [{"n": "asc"}], "size": 2, "search_after": [1]},
        {"sort": [{"n": "asc"}], "size": 2, "search_after": [3]},
    ]


def test_sort_values_come_back_as_the_node_wrote_them():
    sort = '[1.10,"a\\u00e9\\"",null,9007199254740993]'
    hit = msgspec.Raw(f'{{"_id":"1","sort":{sort}}}'.encode())
    answers = [found([hit], 2), found([], 2)]
    played = play_operation(lambda _: (200, answers.pop(0)), results_per_page=1, **KINDS["search_after"])
    assert sort.encode() in played.requests[1].body


def test_the_after_key_goes_where_the_composite_aggregation_stands():
    played = play_operation(ShelfNode(3).composite, results_per_page=2, **KINDS["composite"])
    inner = [body["aggs"]["outer"]["aggs"]["inner"]["composite"] for body in played.bodies]
    sources = COMPOSITE["aggs"]["outer"]["aggs"]["inner"]["composite"]["sources"]
    assert inner == [
        {"sources": sources, "size": 2},
        {"sources": sources, "size": 2, "after": {"n": 1}},
    ]


def test_a_scroll_is_opened_read_and_cleared():
    node = ShelfNode(3)
    played = play_operation(node.scroll, body={}, pages=7, results_per_page=2)
    assert played.lines == [
        "POST /big5/_search?scroll=10s&sort=_doc",
        "POST /_search/scroll",
        "DELETE /_search/scroll",
    ]
    assert played.bodies == [
        {"size": 2},
        {"scroll_id": "first", "scroll": "10s"},
        {"scroll_id": ["first"]},
    ]
    assert [request.searches for request in played.requests] == [1, 1, 0]


def test_a_sort_and_a_keep_alive_of_ones_own_are_kept():
    node = ShelfNode(1)
    played = play_operation(
        node.scroll, body={"sort": ["n"]}, pages=2, request_params={"scroll": "5m", "size": 3}
    )
    assert played.lines[0] == "POST /big5/_search?scroll=5m&size=3"


def test_the_size_in_the_url_decides_what_a_full_page_is():
    answers = [found([{"sort": [number]} for number in range(3)], 4), found([{"sort": [3]}], 4)]
    params = {"size": 3}
    played = play_operation(lambda _: (200, answers.pop(0)), request_params=params, **KINDS["search_after"])
    assert len(played.requests) == 2


def failing(node: Node, at: int, answer: tuple[int, Any] = (500, ERROR)) -> Node:
    """A node whose answer number `at` is another one."""
    numbers = count()
    return lambda request: answer if next(numbers) == at else node(request)


@pytest.mark.parametrize("kind", ["search_after", "composite"])
def test_a_page_that_fails_ends_it(kind: str):
    node = failing(getattr(ShelfNode(9), kind), 1)
    played = play_operation(node, results_per_page=2, **KINDS[kind])
    assert len(played.requests) == 2
    assert outcome(played) is Outcome.HTTP_ERROR


@pytest.mark.parametrize("at", [1, 2])
def test_a_scroll_is_cleared_after_a_page_that_failed(at: int):
    shelf = ShelfNode(9)
    played = play_operation(failing(shelf.scroll, at), results_per_page=2, **KINDS["scroll"])
    assert played.requests[-1].method == "DELETE"
    assert shelf.open_scrolls == set()
    assert outcome(played) is Outcome.HTTP_ERROR


def test_a_scroll_whose_first_page_lost_shards_is_cleared_all_the_same():
    page = found([], 1, _scroll_id="first", _shards={"total": 2, "failed": 1})
    played = play_operation(failing(ShelfNode(9).scroll, 0, (200, page)), **KINDS["scroll"])
    assert [request.method for request in played.requests] == ["POST", "DELETE"]
    assert outcome(played) is Outcome.PARTIAL


@pytest.mark.parametrize(
    ("total", "relation", "expected"),
    [(2, "eq", Outcome.OK), (5, "eq", Outcome.PARTIAL), (5, "gte", Outcome.OK)],
)
def test_a_scroll_that_ends_before_all_hits_came_is_partial(total: int, relation: str, expected: Outcome):
    hit = msgspec.Raw(b'{"_id":"1"}')
    pages = [found([hit, hit], total, _scroll_id="s"), found([], total, _scroll_id="s")]
    pages[0]["hits"]["total"]["relation"] = relation

    def node(request: Request) -> tuple[int, Any]:
        return 200, pages.pop(0) if request.method == "POST" else {"succeeded": True}

    played = play_operation(node, results_per_page=2, **KINDS["scroll"])
    assert (outcome(played), played.lines[-1]) == (expected, "DELETE /_search/scroll")


def test_a_full_page_of_buckets_without_a_key_for_the_next_one_is_a_bad_body():
    inner = {"composite": {"sources": []}}
    page = found([], 9, aggregations={"a": {"buckets": [{"key": {}}, {"key": {}}]}})
    played = play_operation(
        lambda _: (200, page), operation_type="composite-agg", body={"aggs": {"a": inner}}, results_per_page=2
    )
    assert (len(played.requests), outcome(played)) == (1, Outcome.BAD_BODY)


def test_nothing_is_cleared_when_no_scroll_was_opened():
    played = play_operation(failing(ShelfNode(9).scroll, 0), **KINDS["scroll"])
    assert [request.method for request in played.requests] == ["POST"]
    assert outcome(played) is Outcome.HTTP_ERROR


def test_a_scroll_that_cannot_be_cleared_is_a_failure_and_one_that_is_gone_is_none():
    def node(status: int) -> Node:
        shelf = ShelfNode(1)
        return lambda request: (status, ERROR) if request.method == "DELETE" else shelf.scroll(request)

    assert outcome(play_operation(node(500), **KINDS["scroll"])) is Outcome.HTTP_ERROR
    assert outcome(play_operation(node(404), **KINDS["scroll"])) is Outcome.OK


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        ("search_after", found([{"_id": "1"}], 5)),
        ("composite", found([], 5)),
        ("composite", found([], 5, aggregations={"other": {}})),
        ("composite", found([], 5, aggregations={"outer": {"inner": {"value": 1}}})),
        ("composite", found([], 5, aggregations={"outer": 1})),
        ("scroll", found([], 5)),
    ],
)
def test_a_page_that_does_not_say_how_to_go_on_is_a_bad_body(kind: str, answer: dict[str, Any]):
    played = play_operation(lambda _: (200, answer), results_per_page=1, **KINDS[kind])
    assert outcome(played) is Outcome.BAD_BODY
    assert played.answer is not None
    assert "no position of the next page" in played.answer.reason


def test_all_pages_of_an_operation_have_the_values_of_its_number():
    shared = workload(
        clients=2,
        operation_type="paginated-search",
        results_per_page=1,
        body={"query": {"term": {"n": "${n}"}}, "sort": ["n"]},
        values={"n": {"kind": "list", "items": [10, 11, 12, 13]}},
    )
    programs = [shared.program(client) for client in (0, 1)]

    def terms(client: int) -> list[int]:
        answers = [found([{"sort": [1]}], 2), found([], 2)]
        played = play(scripted(programs[client]()), lambda _: (200, answers.pop(0)))
        return [body["query"]["term"]["n"] for body in played.bodies]

    assert [terms(0), terms(1), terms(1), terms(0)] == [[10, 10], [11, 11], [13, 13], [12, 12]]


def test_a_search_without_pages_is_asked_once_with_its_size():
    request = request_of(body={"size": 3}, results_per_page=50)
    assert request.body == b'{"size":50}'
    assert request.path == "/big5/_search"


def test_compressed_answers_are_asked_for_only_on_demand():
    plain, asked = request_of(), request_of(response_compression_enabled=True)
    assert not any("Encoding" in header for header in plain.headers)
    assert "Accept-Encoding: gzip" in asked.headers
