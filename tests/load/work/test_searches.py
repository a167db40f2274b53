"""Requests of a single query: what goes into their path, headers and body."""

import json
from typing import Any

import msgspec
import pytest

from benchctl.load.transport import Request
from benchctl.load.work import WorkContext
from benchctl.results.plan import EngineName
from benchctl.results.samples import Outcome
from load.playing import found, outcome, play, play_operation, request_of, workload

NUMBERS = {"kind": "list", "items": [1, 2, 3, 4, 5, 6]}


def test_a_search_is_encoded_once_with_its_parameters_in_the_url():
    keys: dict[str, Any] = {
        "body": {"size": 0, "query": {"match_all": {}}},
        "request_params": {"request_cache": False, "preference": "a b", "stats": ["x", "y"]},
        "request_timeout": 2.5,
        "retry_on_429": 3,
    }
    request = request_of(**keys)
    assert request.method == "POST"
    assert request.path == "/big5/_search?request_cache=false&preference=a+b&stats=x%2Cy"
    assert request.body == b'{"size":0,"query":{"match_all":{}}}'
    assert "Content-Type: application/json" in request.headers
    assert (request.timeout_s, request.retries, request.searches, request.weight) == (2.5, 3, 1, 1)


def test_all_clients_ask_with_the_same_object_when_nothing_changes():
    shared = workload(clients=2, body={"size": 1})
    first, second = shared.program(0), shared.program(1)
    assert first() is first() is second()
    assert shared.endless
    shared.close()


def test_an_operation_may_name_its_own_indices():
    request = request_of(index="logs-*,<day-{now/d}>")
    assert request.path == "/logs-*,%3Cday-%7Bnow%2Fd%7D%3E/_search"
    assert request.timeout_s == 60


def test_cache_is_the_request_cache_of_the_node():
    assert request_of(cache=True, request_params={"request_cache": False}).path.endswith("request_cache=true")
    assert request_of(cache=False).path.endswith("?request_cache=false")


def test_headers_of_the_operation_replace_those_of_the_same_name():
    headers = {"content-type": "application/vnd.x+json", "X-Mine": "1"}
    request = request_of(headers=headers, opaque_id="me")
    assert set(request.headers) == {
        "Accept: application/json",
        "X-Opaque-Id: me",
        "content-type: application/vnd.x+json",
        "X-Mine: 1",
    }


def test_clients_share_out_the_numbers_of_requests():
    shared = workload(clients=3, body={"query": {"term": {"n": "${n}"}}}, values={"n": NUMBERS})
    programs = [shared.program(client) for client in range(3)]

    def term(client: int) -> int:
        request = programs[client]()
        return json.loads(request.body)["query"]["term"]["n"]

    # Whoever is faster: the second request of client 2 is number 5 in any case.
    assert [term(2), term(2), term(0), term(1), term(0), term(1)] == [3, 6, 1, 2, 4, 5]


def test_a_batch_has_a_header_line_and_a_body_line_for_each_search():
    searches = [
        {"body": {"size": 0}},
        {"body": {"size": 1}, "index": "other", "header": {"preference": "p"}},
    ]
    request = request_of(operation_type="multi-search", searches=searches, request_params={"a": 1})
    assert request.path == "/big5/_msearch?a=1"
    assert request.body == b'{}\n{"size":0}\n{"preference":"p","index":"other"}\n{"size":1}\n'
    assert "Content-Type: application/x-ndjson" in request.headers
    assert (request.searches, request.weight) == (2, 2)


def test_searches_of_a_batch_have_values_of_their_own():
    request = request_of(
        operation_type="multi-search",
        searches=[{"body": {"n": "${n}"}}, {"body": {"n": "${n}"}}],
        values={"n": {"kind": "integer", "min": 0, "max": 10**12}},
    )
    first, second = request.body.splitlines()[1::2]
    assert first != second


def raw(path: str = "/_cat/indices", **keys: Any) -> Any:
    return request_of(operation_type="raw-request", path=path, **keys)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/big5/_search?size=0", b'{"took":1,"_shards":{"total":2,"failed":1},"hits":{}}'),
        ("/_msearch", b'{"took":3,"responses":[{"took":1,"_shards":{"total":2,"failed":1}}]}'),
        ("/_bulk", b'{"took":3,"errors":true,"items":[{"index":{"error":{"type":"x"}}}]}'),
    ],
)
def test_a_raw_request_is_judged_like_the_operation_that_it_is(path: str, body: bytes):
    for filtered in ({}, {"request_params": {"filter_path": "took"}}):
        request = raw(path, method="POST", body=[{}, {}], **filtered)
        assert request.judge(200, body).outcome is Outcome.PARTIAL
        assert ("filter_path=took" in request.path) == bool(filtered)
    step = {"operation-type": "raw-request", "name": "r", "path": path, "method": "POST", "body": [{}, {}]}
    played = play_operation(lambda _request: (200, body), operation_type="composite", requests=[step])
    assert outcome(played) is Outcome.PARTIAL


@pytest.mark.parametrize(
    ("responses", "expected"), [(0, Outcome.BAD_BODY), (1, Outcome.BAD_BODY), (2, Outcome.OK)]
)
def test_a_batch_needs_a_response_to_each_of_its_searches(responses: int, expected: Outcome):
    one = b'{"took":1,"_shards":{"total":1,"failed":0},"hits":{"total":{"value":1,"relation":"eq"}}}'
    body = b'{"took":3,"responses":[%s]}' % b",".join([one] * responses)
    for request in (
        request_of(operation_type="multi-search", searches=[{"body": {}}, {"body": {}}]),
        raw("/_msearch", method="POST", body=[{}, {}, {}, {}]),
    ):
        assert request.judge(200, body).outcome is expected


@pytest.mark.parametrize(
    ("kind", "keys", "reads"),
    [
        ("paginated-search", {"body": {"sort": ["a"]}, "pages": 2}, "hits.hits.sort"),
        ("scroll-search", {"body": {}, "pages": 2}, "_scroll_id"),
        (
            "composite-agg",
            {"body": {"aggs": {"a": {"composite": {"sources": []}}}}, "pages": 2},
            "aggregations.a.after_key",
        ),
        ("sql", {"body": {"query": "select 1", "fetch_size": 1}, "pages": 2}, "cursor"),
    ],
)
def test_pages_are_asked_for_what_says_where_the_next_one_begins(kind: str, keys: Any, reads: str):
    played = play_operation(
        lambda _request: (503, b""), operation_type=kind, request_params={"filter_path": "took"}, **keys
    )
    assert reads in played.requests[0].path


def test_a_raw_request_goes_out_as_it_is_written():
    request = raw("/_cat/indices?format=json", request_params={"v": True})
    assert (request.method, request.path) == ("GET", "/_cat/indices?format=json&v=true")
    assert request.body == b""
    request = raw("/a b/ü/%2F", method="PUT", body={"a": [1]})
    assert (request.method, request.path) == ("PUT", "/a%20b/%C3%BC/%2F")
    assert request.body == b'{"a":[1]}'


def test_a_list_is_sent_as_lines_and_a_text_as_it_is():
    lines = raw("/_bulk", method="POST", body=[{"index": {}}, {"a": 1}])
    assert lines.body == b'{"index":{}}\n{"a":1}\n'
    assert "Content-Type: application/x-ndjson" in lines.headers
    text = raw("/_bulk", method="POST", body='{"index":{}}\n{"a":1}\n')
    assert (text.body, text.headers) == (lines.body, lines.headers)
    assert "Content-Type: application/json" in raw("/x", method="POST", body='{"a": 1}').headers


def test_statuses_may_be_ignored():
    judge = raw("/x", ignore=[404, 409]).judge
    assert [judge(status, b"").outcome for status in (200, 404, 409, 400)] == [
        Outcome.OK,
        Outcome.OK,
        Outcome.OK,
        Outcome.HTTP_ERROR,
    ]
    assert raw("/x", ignore=404).judge(404, b"").outcome is Outcome.OK


def test_path_and_body_of_a_raw_request_agree_on_values():
    request = raw(
        "/big5/_doc/${id}",
        method="PUT",
        body={"id": "${id}"},
        values={"id": {"kind": "integer", "min": 0, "max": 10**9}},
    )
    assert request.path == f"/big5/_doc/{json.loads(request.body)['id']}"


@pytest.mark.parametrize(
    ("method", "path", "body", "searches"),
    [
        ("GET", "/_search", {}, 1),
        ("POST", "/a,b/_search?size=1", {"size": 1}, 1),
        ("POST", "/_search/scroll", {"scroll_id": "x"}, 1),
        ("DELETE", "/_search/scroll", {"scroll_id": "x"}, 0),
        ("GET", "/big5/_count", {}, 1),
        ("POST", "/_msearch", [{}, {"size": 0}, {}, {"size": 0}], 2),
        ("GET", "/_cat/indices", {}, 0),
        ("PUT", "/_search", {"settings": {}}, 0),
        ("GET", "/_nodes/stats/indices/search", {}, 0),
    ],
)
def test_raw_requests_that_search_are_counted_as_the_node_counts_them(
    method: str, path: str, body: Any, searches: int
):
    assert raw(path, method=method, body=body).searches == searches


KNN = {"field": "v", "query_vector": [1, 2], "k": 3, "num_candidates": 5}
CLAUSES = {"bool": {"should": [{"knn": KNN}, {"match_all": {}}]}}


@pytest.mark.parametrize(
    ("engine", "version", "apart"),
    [
        ("elasticsearch", "8.11.0", 0),
        ("elasticsearch", "9.1.5", 0),
        ("elasticsearch", "9.2.0", 1),
        ("elasticsearch", "10.0.0-SNAPSHOT", 1),
        ("elasticsearch", "", 0),
        ("opensearch", "9.2.0", 0),
    ],
)
def test_nearest_neighbours_are_counted_as_the_engine_counts_them(
    engine: EngineName, version: str, apart: int
):
    context = WorkContext("big5", engine=engine, version=version)

    def counted(kind: str, **keys: Any) -> int:
        made = workload(context, operation_type=kind, **keys).program(0)()
        if made is None or isinstance(made, Request):
            return made.searches if made else 0
        return play(made, lambda _request: (200, found([], 0))).requests[0].searches

    bodies: list[tuple[dict[str, Any], int]] = [
        ({"knn": KNN}, 1 + apart),
        ({"knn": [KNN, KNN], "query": {"match_all": {}}}, 1 + apart),
        ({"retriever": {"knn": KNN}}, 1 + apart),
        ({"retriever": {"standard": {"query": {"match_all": {}}}}}, 1),
        ({"query": CLAUSES}, 1),
        ({"query": {"term": {"k": "knn"}}}, 1),
    ]
    for body, searches in bodies:
        for kind in ("search", "vector-search", "scroll-search"):
            assert counted(kind, body=body) == searches, (kind, body)
        assert counted("raw-request", path="/a/_search", method="POST", body=body) == searches, body
    together = sum(searches for _, searches in bodies)
    assert counted("multi-search", searches=[{"body": body} for body, _ in bodies]) == together
    lines = [line for body, _ in bodies for line in ({}, body)]
    assert counted("raw-request", path="/_msearch", method="POST", body=lines) == together


def test_document_types_and_data_streams_stand_in_the_path():
    assert request_of(operation_type="search", type="doc").path == "/big5/doc/_search"
    assert request_of(operation_type="search", data_stream="logs").path == "/logs/_search"


def test_opensearchs_word_for_a_profile_is_one_of_the_body():
    for kind in ("search", "vector-search"):
        request = request_of(operation_type=kind, body={"size": 1}, profile_query=True)
        assert msgspec.json.decode(request.body) == {"size": 1, "profile": True}
        assert (request.path, request.searches) == ("/big5/_search", 1)
