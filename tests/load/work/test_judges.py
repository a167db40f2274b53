"""Answers as judged, with errors as real nodes word them."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.load.transport import Answer, Judge
from benchctl.load.work.judges import (
    accepting,
    is_unsupported,
    judge_bulk,
    judge_health,
    judge_multi_search,
    judge_of,
    judge_plain,
    judge_profiled,
    judge_search,
)
from benchctl.results.samples import Outcome
from golden import Cases
from load.playing import request_of

judge_shards = judge_of("POST", "/_refresh")
judge_snapshot = judge_of("PUT", "/_snapshot/r/s")
judge_by_query = judge_of("POST", "/a/_update_by_query")


def search_body(**changes: object) -> bytes:
    body = {
        "took": 12,
        "timed_out": False,
        "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
        "hits": {"total": {"value": 10000, "relation": "gte"}, "max_score": None, "hits": []},
        "aggregations": {"by_day": {"buckets": [{"key": 1, "doc_count": 2}]}},
    }
    return json.dumps({**body, **changes}).encode()


def error_body(error: object) -> bytes:
    return json.dumps({"error": error, "status": 400}).encode()


def test_a_search_response_gives_took_and_hits():
    assert judge_search(200, search_body()) == Answer(Outcome.OK, took_ms=12, hits=10000, hits_exact=False)
    exact = search_body(hits={"total": {"value": 7, "relation": "eq"}})
    assert judge_search(200, exact) == Answer(Outcome.OK, took_ms=12, hits=7, hits_exact=True)


def test_uncounted_hits_are_unknown():
    assert judge_search(200, search_body(hits={"max_score": None, "hits": []})).hits == -1
    assert judge_search(200, search_body(hits={"total": 5, "hits": []})).hits == 5


def test_a_200_that_timed_out_or_lost_shards_is_a_failure():
    assert judge_search(200, search_body(timed_out=True)).outcome is Outcome.TIMEOUT
    partial = judge_search(200, search_body(_shards={"total": 5, "failed": 2}))
    assert (partial.outcome, partial.failed_shards) == (Outcome.PARTIAL, 2)
    assert partial.reason == "2 shards failed"


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (429, Outcome.REJECTED),
        (400, Outcome.HTTP_ERROR),
        (404, Outcome.HTTP_ERROR),
        (503, Outcome.HTTP_ERROR),
        (302, Outcome.HTTP_ERROR),
        (0, Outcome.HTTP_ERROR),
    ],
)
def test_http_errors_carry_the_engines_reason(status: int, outcome: Outcome):
    answer = judge_search(status, error_body({"type": "some_exception", "reason": "queue\n is  full"}))
    assert answer == Answer(outcome, reason=f"HTTP {status}: some_exception: queue is full")


def test_the_reason_is_the_root_cause_where_there_is_one():
    error = {
        "root_cause": [{"type": "number_format_exception", "reason": "no long"}],
        "type": "search_phase_execution_exception",
        "reason": "all shards failed",
    }
    assert judge_search(400, error_body(error)).reason == "HTTP 400: number_format_exception: no long"


def test_an_error_page_that_is_not_json_is_quoted_and_shortened():
    assert judge_search(502, b"<html>bad gateway</html>").reason == "HTTP 502: <html>bad gateway</html>"
    assert judge_search(502, b"").reason == "HTTP 502"
    assert len(judge_search(502, b"x" * 10_000).reason) == 300


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"{",
        search_body()[:-20],
        search_body(took="12"),
        search_body(took=-1),
        search_body(took=2**40),
        search_body(hits={"total": {"value": 2**70, "relation": "eq"}}),
        search_body(_shards={"failed": 2**20}),
        b'{"took":1,"hits":' + b"[" * 100_000,
        b'{"took":1,"hits":{"total":{"relation":"\xff"}}}',
    ],
)
def test_a_200_that_is_not_a_search_response_is_a_bad_body(body: bytes):
    assert judge_search(200, body).outcome is Outcome.BAD_BODY


@settings(deadline=None)
@given(
    took=st.integers(0, 3),
    value=st.integers(0, 3),
    relation=st.sampled_from(["eq", "gte"]),
    timed_out=st.booleans(),
    failed=st.integers(0, 1),
)
def test_an_answer_is_its_own_however_many_like_it_came_before(
    *, took: int, value: int, relation: str, timed_out: bool, failed: int
):
    total = {"value": value, "relation": relation}
    body = search_body(
        took=took,
        timed_out=timed_out,
        _shards={"total": 1, "failed": failed},
        hits={"total": total, "max_score": None, "hits": []},
    )
    bad = Outcome.TIMEOUT if timed_out else Outcome.PARTIAL if failed else Outcome.OK
    for _ in range(2):
        answer = judge_search(200, body)
        assert answer.outcome is bad
        assert (answer.took_ms, answer.hits, answer.hits_exact) == (took, value, relation == "eq")
        assert answer.failed_shards == failed
        assert judge_search(200, body[:-20]).outcome is Outcome.BAD_BODY
        assert judge_search(500, body).outcome is Outcome.HTTP_ERROR


@pytest.mark.parametrize("hits", [1, 40])
def test_an_answer_cut_off_anywhere_is_a_bad_body_however_many_whole_ones_came_before(hits: int):
    hit = {"_id": "a", "_source": {"when": {"from": 1}, "tags": ["}", "]}"], "n": 1}}
    body = search_body(
        hits={"total": {"value": 9, "relation": "eq"}, "max_score": None, "hits": [hit] * hits}
    )
    assert judge_search(200, body).outcome is Outcome.OK
    for cut in range(1, len(body)):
        assert judge_search(200, body[:-cut]).outcome is Outcome.BAD_BODY, body[-cut - 20 : -cut]


READING = [judge_search, judge_multi_search, judge_bulk, judge_shards, judge_health, judge_snapshot]


@pytest.mark.parametrize("judge", READING)
@settings(deadline=None)
@given(status=st.integers(0, 999), body=st.binary())
def test_any_bytes_are_judged(judge: Judge, status: int, body: bytes):
    assert judge(status, body).outcome is not Outcome.OK
    is_unsupported(status, body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=8,
)


KEYS = ("took", "timed_out", "_shards", "hits", "error", "errors", "items", "responses", "status", "snapshot")


@pytest.mark.parametrize("judge", [*READING, judge_plain])
@settings(deadline=None)
@given(
    response=st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, JSON)),
    status=st.sampled_from([200, 400, 405, 408, 429]),
)
def test_any_json_is_judged(judge: Judge, response: dict[str, Any], status: int):
    body = json.dumps(response).encode()
    judge(status, body)
    reason = is_unsupported(status, body)
    assert reason is None or status in (400, 405)


AGGREGATION = {
    "type": "parsing_exception",
    "reason": "Unknown aggregation type [auto_date_histogram] did you mean [histogram]?",
    "line": 1,
    "col": 52,
}
NAMED = {"type": "named_object_not_found_exception", "reason": "[1:52] unknown field [auto_date_histogram]"}
QUERY = {"type": "parsing_exception", "reason": "unknown query [distance_feature]", "line": 1, "col": 31}


def test_an_operation_that_a_node_does_not_know_is_unsupported(cases: Cases):
    cases("unsupported", lambda error: is_unsupported(400, error_body(json.loads(error))))


@pytest.mark.parametrize(
    "parts",
    [
        {"responses": [{"took": 1}, {"error": {"root_cause": [QUERY], **QUERY}, "status": 400}]},
        {"items": [{"update": {"status": 400, "error": QUERY}}]},
        {"_shards": {"total": 2, "failed": 1, "failures": [{"shard": 0, "reason": QUERY}]}},
        {"is_running": False, "error": QUERY},
    ],
)
def test_a_part_that_a_node_does_not_know_makes_the_operation_unsupported(parts: dict[str, Any]):
    reason = "parsing_exception: unknown query [distance_feature]"
    assert is_unsupported(200, json.dumps(parts).encode()) == reason
    assert is_unsupported(500, json.dumps(parts).encode()) is None


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"type": "illegal_argument_exception", "reason": "Result window is too large"}),
        (400, {"type": "parsing_exception", "reason": "[range] query does not support [gt3]"}),
        (404, {"type": "index_not_found_exception", "reason": "no such index [big5]"}),
        (500, {"root_cause": [AGGREGATION], **AGGREGATION}),
        (400, {"type": None, "reason": None, "root_cause": []}),
    ],
)
def test_other_errors_are_not_unsupported(status: int, error: object):
    assert is_unsupported(status, error_body(error)) is None


@pytest.mark.parametrize(
    "path", ["/_sql", "/_reindex", "/_query", "/_query?pretty=true", "/_data_stream/logs", "/_transform/t"]
)
def test_a_node_that_takes_an_endpoint_for_an_index_lacks_it(path: str):
    error = f"Incorrect HTTP method for uri [{path}] and method [POST], allowed: [GET, HEAD, PUT, DELETE]"
    assert is_unsupported(405, error_body(error)) == error
    assert is_unsupported(404, error_body(error)) is None


def test_a_wrong_method_is_not_an_endpoint_that_is_missing():
    error = "Incorrect HTTP method for uri [/_cluster/health] and method [POST], allowed: [GET]"
    assert is_unsupported(405, error_body(error)) is None
    assert is_unsupported(405, error_body("Incorrect HTTP method for uri [/big5/_query]")) is None


def test_a_setting_of_searches_on_several_segments_that_a_node_lacks_is_unsupported():
    name = "search.concurrent_segment_search.enabled"
    error = {"type": "illegal_argument_exception", "reason": f"persistent setting [{name}], not recognized"}
    assert name in (is_unsupported(400, error_body(error)) or "")
    mistaken = {**error, "reason": "persistent setting [search.max_bucket], not recognized"}
    assert is_unsupported(400, error_body(mistaken)) is None


def profiled_body(**profile: Any) -> bytes:
    whole = {**json.loads(search_body()), "profile": profile}
    return json.dumps(whole).encode()


def test_a_profile_is_kept_of_the_query_and_every_aggregation_of_all_shards():
    query = {"type": "BooleanQuery", "time_in_nanos": 5, "children": [{"type": "x", "time_in_nanos": 4}]}
    aggregations: list[dict[str, Any]] = [
        {"type": "SumAggregator", "description": name, "time_in_nanos": 10 + place}
        for place, name in enumerate(("cpu", "mem"))
    ]
    aggregations.append({"type": "Nameless", "time_in_nanos": 12})
    shard = {"searches": [{"query": [query], "collector": []}], "aggregations": aggregations}
    plain = judge_search(200, search_body())
    assert judge_profiled(200, profiled_body(shards=2 * [shard])) == msgspec.structs.replace(
        plain, profile_ns={"query": 10, "aggs": 66, "aggs.cpu": 20, "aggs.mem": 22}
    )
    assert judge_profiled(200, profiled_body(shards=7)) == plain
    assert judge_profiled(503, b"").outcome is judge_search(503, b"").outcome
    assert request_of(operation_type="search", body={"profile": True}).judge is judge_profiled
    assert request_of(operation_type="search", body={}).judge is judge_search


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (b'{"acknowledged":true,"shards_acknowledged":true,"index":"a"}', Outcome.OK),
        (b'{"acknowledged":false,"shards_acknowledged":false,"index":"a"}', Outcome.TIMEOUT),
        (b'{"error":{"type":"x","reason":"y"},"status":500}', Outcome.BAD_BODY),
        (b"\r\n<!doctype html><h1>Sign in</h1>", Outcome.BAD_BODY),
        (b'{"completed":true,"error":{"type":"x"}}', Outcome.OK),
        (b"green open big5", Outcome.OK),
        (b"", Outcome.OK),
    ],
)
def test_a_body_may_contradict_its_status(body: bytes, outcome: Outcome):
    assert judge_plain(200, body).outcome is outcome


@pytest.mark.parametrize(
    ("item", "refused"),
    [(b'{"error":{"type":"x"}}', 1), (b'{"status":429}', 1), (b'{"_id":"1"}', 0), (b'{"status":201}', 0)],
)
def test_items_of_a_filtered_bulk_response_are_refused_by_error_or_status(item: bytes, refused: int):
    answer = judge_bulk(200, b'{"errors":true,"items":[{"index":%s},{"index":{"error":{}}}]}' % item)
    assert answer.reason.startswith(f"{1 + refused} documents were refused")


def batch_body(*responses: bytes) -> bytes:
    return b'{"took":9,"responses":[' + b",".join(responses) + b"]}"


def test_a_batch_has_the_hits_of_all_its_searches():
    exact = search_body(hits={"total": {"value": 7, "relation": "eq"}})
    other = search_body(hits={"total": {"value": 5, "relation": "eq"}}, status=200)
    expected = Answer(Outcome.OK, 9, 12, hits_exact=True, tooks_ms=(12, 12))
    assert judge_multi_search(200, batch_body(exact, other)) == expected
    assert judge_multi_search(200, batch_body(exact, search_body())).hits_exact is False
    uncounted = search_body(hits={"hits": []})
    assert judge_multi_search(200, batch_body(exact, uncounted)).hits == -1


def test_a_batch_fails_with_the_first_search_that_does():
    failed = json.dumps({"error": NAMED, "status": 404}).encode()
    answer = judge_multi_search(200, batch_body(search_body(), failed, search_body(timed_out=True)))
    assert answer.outcome is Outcome.HTTP_ERROR
    assert "unknown field" in answer.reason
    assert judge_multi_search(200, batch_body(search_body(timed_out=True))).outcome is Outcome.TIMEOUT
    assert judge_multi_search(200, batch_body(b"7")).outcome is Outcome.BAD_BODY
    assert judge_multi_search(429, b"").outcome is Outcome.REJECTED


def test_a_bulk_request_is_partial_when_documents_were_refused():
    assert judge_bulk(200, b'{"took":3,"errors":false,"items":[{}]}') == Answer(Outcome.OK, 3)
    assert judge_bulk(200, b'{"took":3,"errors":false}') == Answer(Outcome.OK, 3)
    assert judge_bulk(200, b'{"took":3,"errors":false,"items":[]}').outcome is Outcome.BAD_BODY
    items = [
        {"index": {"status": 201}},
        {"index": {"status": 429, "error": {"type": "es_rejected_execution_exception"}}},
        {"update": {"status": 404, "error": {"type": "document_missing_exception"}}},
    ]
    answer = judge_bulk(200, json.dumps({"took": 3, "errors": True, "items": items}).encode())
    assert (answer.outcome, answer.took_ms) == (Outcome.PARTIAL, 3)
    assert answer.reason.startswith("2 documents were refused, the first with")
    assert "es_rejected_execution" in answer.reason
    assert judge_bulk(200, b'{"errors":true}').outcome is Outcome.BAD_BODY
    assert "no item has an error" in judge_bulk(200, b'{"errors":true,"items":[]}').reason


def test_requests_to_all_shards_fail_with_one_of_them():
    assert judge_shards(200, b'{"_shards":{"total":2,"failed":0}}') == Answer(Outcome.OK)
    failed = judge_shards(200, b'{"_shards":{"total":2,"failed":1}}')
    assert (failed.outcome, failed.failed_shards, failed.reason) == (Outcome.PARTIAL, 1, "1 shards failed")
    assert judge_shards(200, b'{"task":"node:1"}') == Answer(Outcome.OK)
    assert judge_shards(200, b"{}").outcome is Outcome.BAD_BODY


@pytest.mark.parametrize("status", [200, 408])
def test_a_state_of_health_that_did_not_come_is_a_timeout(status: int):
    answer = judge_health(status, b'{"status":"yellow","timed_out":true}')
    assert answer.outcome is Outcome.TIMEOUT
    assert "yellow" in answer.reason
    assert judge_health(200, b'{"status":"yellow","timed_out":false}') == Answer(Outcome.OK)
    assert judge_health(503, b"").outcome is Outcome.HTTP_ERROR


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ({"accepted": True}, Outcome.OK),
        ({}, Outcome.BAD_BODY),
        ({"snapshot": {"state": "SUCCESS", "shards": {"failed": 0}}}, Outcome.OK),
        ({"snapshot": {"state": "PARTIAL", "shards": {"failed": 1}}}, Outcome.PARTIAL),
        ({"snapshot": {"state": "FAILED", "shards": {"failed": 0}}}, Outcome.PARTIAL),
        ({"snapshot": {"snapshot": "s", "shards": {"failed": 0}}}, Outcome.OK),
        ({"snapshot": {"snapshot": "s", "shards": {"failed": 3}}}, Outcome.PARTIAL),
    ],
)
def test_a_snapshot_is_taken_or_restored_whole_or_not_at_all(body: dict[str, Any], outcome: Outcome):
    assert judge_snapshot(200, json.dumps(body).encode()).outcome is outcome


def test_a_judge_may_be_told_to_accept_a_status():
    assert accepting(judge_plain, ()) is judge_plain
    lenient = accepting(judge_shards, {404})
    assert lenient(404, b"") == Answer(Outcome.OK)
    assert lenient(200, b"").outcome is Outcome.BAD_BODY


def test_what_was_cancelled_on_the_node_is_not_all_done():
    answer = judge_by_query(200, b'{"took":3,"timed_out":false,"canceled":"by user request","failures":[]}')
    assert (answer.outcome, answer.took_ms) == (Outcome.PARTIAL, 3)
    assert "by user request" in answer.reason
