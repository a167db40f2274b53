"""Requests as encoded and answers as judged, with errors as real nodes word them."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.load.operations import Answer, is_unsupported, judge, prepare
from benchctl.results.samples import Outcome
from benchctl.track.model import Operation


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


def test_a_search_is_encoded_once_with_its_parameters_in_the_url():
    operation = Operation(
        name="x",
        body={"size": 0, "query": {"match_all": {}}},
        request_params={"request_cache": False, "preference": "a b", "stats": ["x", "y"]},
        request_timeout=2.5,
    )
    request = prepare(operation, "big5")
    assert request.method == "POST"
    assert request.path == "/big5/_search?request_cache=false&preference=a+b&stats=x%2Cy"
    assert request.body == b'{"size":0,"query":{"match_all":{}}}'
    assert "Content-Type: application/json" in request.headers
    assert request.timeout_s == 2.5


def test_an_operation_may_name_its_own_indices():
    request = prepare(Operation(name="x", index="logs-*,<day-{now/d}>"), "big5")
    assert request.path == "/logs-*,%3Cday-%7Bnow%2Fd%7D%3E/_search"
    assert request.timeout_s == 60


def test_a_search_response_gives_took_and_hits():
    assert judge(200, search_body()) == Answer(Outcome.OK, took_ms=12, hits=10000, hits_exact=False)
    exact = search_body(hits={"total": {"value": 7, "relation": "eq"}})
    assert judge(200, exact) == Answer(Outcome.OK, took_ms=12, hits=7, hits_exact=True)


def test_uncounted_hits_are_unknown():
    assert judge(200, search_body(hits={"max_score": None, "hits": []})).hits == -1
    assert judge(200, search_body(hits={"total": 5, "hits": []})).hits == 5


def test_a_200_that_timed_out_or_lost_shards_is_a_failure():
    assert judge(200, search_body(timed_out=True)).outcome is Outcome.TIMEOUT
    partial = judge(200, search_body(_shards={"total": 5, "failed": 2}))
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
    answer = judge(status, error_body({"type": "some_exception", "reason": "queue\n is  full"}))
    assert answer == Answer(outcome, reason=f"HTTP {status}: some_exception: queue is full")


def test_the_reason_is_the_root_cause_where_there_is_one():
    error = {
        "root_cause": [{"type": "number_format_exception", "reason": "no long"}],
        "type": "search_phase_execution_exception",
        "reason": "all shards failed",
    }
    assert judge(400, error_body(error)).reason == "HTTP 400: number_format_exception: no long"


def test_an_error_page_that_is_not_json_is_quoted_and_shortened():
    assert judge(502, b"<html>bad gateway</html>").reason == "HTTP 502: <html>bad gateway</html>"
    assert judge(502, b"").reason == "HTTP 502"
    assert len(judge(502, b"x" * 10_000).reason) == 300


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"{",
        search_body()[:-1],
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
    assert judge(200, body).outcome is Outcome.BAD_BODY


@settings(deadline=None)
@given(status=st.integers(0, 999), body=st.binary())
def test_any_bytes_are_judged(status: int, body: bytes):
    assert judge(status, body).outcome is not Outcome.OK
    is_unsupported(status, body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(
    response=st.fixed_dictionaries(
        {}, optional={"took": JSON, "timed_out": JSON, "_shards": JSON, "hits": JSON, "error": JSON}
    ),
    status=st.sampled_from([200, 400, 429]),
)
def test_any_json_is_judged(response: dict[str, Any], status: int):
    body = json.dumps(response).encode()
    judge(status, body)
    reason = is_unsupported(status, body)
    assert reason is None or status == 400


AGGREGATION = {
    "type": "parsing_exception",
    "reason": "Unknown aggregation type [auto_date_histogram] did you mean [histogram]?",
    "line": 1,
    "col": 52,
}
NAMED = {"type": "named_object_not_found_exception", "reason": "[1:52] unknown field [auto_date_histogram]"}
QUERY = {"type": "parsing_exception", "reason": "unknown query [distance_feature]", "line": 1, "col": 31}


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            {"root_cause": [AGGREGATION], **AGGREGATION, "caused_by": NAMED},
            "parsing_exception: Unknown aggregation type [auto_date_histogram] did you mean [histogram]?",
        ),
        (
            {
                "root_cause": [QUERY],
                "type": "x_content_parse_exception",
                "reason": "[1:31] [bool] failed to parse field [filter]",
                "caused_by": {**QUERY, "caused_by": NAMED},
            },
            "parsing_exception: unknown query [distance_feature]",
        ),
        (
            {"type": "x_content_parse_exception", "reason": "[1:9] failed", "caused_by": NAMED},
            "named_object_not_found_exception: [1:52] unknown field [auto_date_histogram]",
        ),
        (
            {"type": "illegal_argument_exception", "reason": "script_lang not supported [painless]"},
            "illegal_argument_exception: script_lang not supported [painless]",
        ),
        (
            {"type": "parsing_exception", "reason": "Unknown key for a START_OBJECT in [runtime_mappings]."},
            "parsing_exception: Unknown key for a START_OBJECT in [runtime_mappings].",
        ),
        (
            {
                "root_cause": [{"type": "query_shard_exception", "reason": "failed to create query"}],
                "type": "search_phase_execution_exception",
                "reason": "all shards failed",
                "caused_by": {"type": "x", "reason": "script_lang not supported [painless]"},
            },
            "x: script_lang not supported [painless]",
        ),
        (
            "no handler found for uri [/_query] and method [POST]",
            "no handler found for uri [/_query] and method [POST]",
        ),
    ],
)
def test_an_operation_that_a_node_does_not_know_is_unsupported(error: object, reason: str):
    assert is_unsupported(400, error_body(error)) == reason


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
