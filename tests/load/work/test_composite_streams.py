"""Composites: what is opened is used and closed, streams run beside each other, and the whole is one."""

import json
from typing import Any

import msgspec
import pytest

from benchctl.load.transport import Request
from benchctl.load.work import Envelope, WorkContext
from benchctl.load.work.composite import Held, within_point
from benchctl.results.samples import Outcome
from benchctl.track.operations.search import Search
from load.playing import found, outcome, play, play_operation, request_of, scripted, workload

OPENSEARCH = WorkContext("big5", seed=7, engine="opensearch")
OPEN = {"operation-type": "open-point-in-time", "name": "point", "keep-alive": "5m"}
CLOSE = {"operation-type": "close-point-in-time", "with-point-in-time-from": "point"}
SEARCH = {"operation-type": "search", "body": {"size": 1}}
WITHIN = {**SEARCH, "with-point-in-time-from": "point"}
SLEEP = {"operation-type": "sleep", "duration": 3}


class PointNode:
    """Opens points in time, and gives each a new id with every search."""

    def __init__(self, fail: str = "") -> None:
        self.number = 0
        self.fail = fail

    def __call__(self, request: Request) -> tuple[int, Any]:
        if self.fail and self.fail in request.path:
            return 500, {"error": {"type": "x", "reason": "no"}}
        self.number += 1
        if request.method == "DELETE":
            return 200, {"succeeded": True}
        if request.path.startswith("/_search"):
            return 200, found([{"sort": [1]}], 1, pit_id=f"id{self.number}")
        if "_search?" in request.path or request.path.endswith("_search"):
            return 200, found([], 0)
        key = "pit_id" if "point_in_time" in request.path else "id"
        return 200, {key: f"id{self.number}"}


def composite(node: Any, *requests: Any, context: WorkContext = WorkContext("big5"), **raw: Any) -> Any:  # noqa: B008 - frozen
    return play_operation(node, context, operation_type="composite", requests=list(requests), **raw)


def test_searches_of_a_point_in_time_name_it_and_no_index_and_pass_it_on():
    paged = {
        "operation-type": "paginated-search",
        "body": {"sort": ["a"], "size": 1},
        "pages": 2,
        "with-point-in-time-from": "point",
    }
    played = composite(PointNode(), OPEN, {**WITHIN, "cache": False}, paged, CLOSE)
    assert played.lines == [
        "POST /big5/_pit?keep_alive=5m",
        "POST /_search?request_cache=false",
        "POST /_search",
        "POST /_search",
        "DELETE /_pit",
    ]
    assert played.bodies == [
        None,
        {"size": 1, "pit": {"id": "id1", "keep_alive": "1m"}},
        {"sort": ["a"], "size": 1, "pit": {"id": "id2", "keep_alive": "1m"}},
        {"sort": ["a"], "size": 1, "search_after": [1], "pit": {"id": "id3", "keep_alive": "1m"}},
        {"id": "id4"},
    ]
    assert outcome(played) is Outcome.OK
    assert [request.searches for request in played.requests] == [0, 1, 1, 1, 0]


def test_opensearch_has_words_of_its_own():
    opened = {**OPEN, "operation-type": "create-point-in-time", "index": "a,b"}
    closed = {**CLOSE, "operation-type": "delete-point-in-time"}
    played = composite(PointNode(), opened, WITHIN, closed, context=OPENSEARCH)
    assert played.lines == [
        "POST /a,b/_search/point_in_time?keep_alive=5m",
        "POST /_search",
        "DELETE /_search/point_in_time",
    ]
    assert played.bodies[-1] == {"pit_id": ["id2"]}
    alone = play_operation(PointNode(), OPENSEARCH, operation_type="delete-point-in-time")
    assert alone.lines == ["DELETE /_search/point_in_time/_all"]
    listed = request_of(OPENSEARCH, operation_type="list-all-point-in-time")
    assert (listed.method, listed.path) == ("GET", "/_search/point_in_time/_all")


def test_a_body_without_keys_takes_the_point_in_time_all_the_same():
    request = Envelope(Search(name="x")).request("POST", "/i/_search", b"", judge=lambda *_: None)  # type: ignore[arg-type,return-value]
    for body in (b"", b"{}"):
        script = within_point(msgspec.structs.replace(request, body=body), "p", Held({"p": "1"}))
        made = script.send(None)
        assert isinstance(made, Request)
        assert json.loads(made.body) == {"pit": {"id": "1", "keep_alive": "1m"}}


def test_what_was_opened_is_closed_when_the_composite_fails():
    failing = {"operation-type": "raw-request", "path": "/fails"}
    played = composite(PointNode("/fails"), OPEN, failing, WITHIN, CLOSE)
    assert played.lines == ["POST /big5/_pit?keep_alive=5m", "GET /fails", "DELETE /_pit"]
    assert outcome(played) is Outcome.HTTP_ERROR


@pytest.mark.parametrize(
    ("answer", "expected"),
    [((404, {}), Outcome.HTTP_ERROR), ((200, {}), Outcome.BAD_BODY), ((200, b"["), Outcome.BAD_BODY)],
)
def test_a_point_in_time_that_cannot_be_opened_ends_the_composite(answer: Any, expected: Outcome):
    played = composite(lambda _: answer, OPEN, WITHIN)
    assert (len(played.requests), outcome(played)) == (1, expected)


def test_streams_that_stand_next_to_each_other_run_together_and_the_rest_waits():
    steps = [
        SEARCH,
        {"stream": [SEARCH, {"stream": [SLEEP]}, {"stream": [SEARCH]}, SEARCH]},
        {"stream": [SLEEP]},
        SLEEP,
        {"stream": [SEARCH]},
    ]
    made = workload(operation_type="composite", requests=steps)
    assert made.connections == 3
    played = play(scripted(made.program(0)()), PointNode())
    # The player runs the streams one after the other.
    assert len(played.requests) == 5
    assert played.pauses == [3, 3, 3]
    assert workload(operation_type="composite", requests=steps, max_connections=2).connections == 2


def test_searches_in_a_row_keep_their_own_times_and_those_beside_each_other_do_not():
    played = composite(PointNode(), SEARCH, SLEEP, SEARCH)
    assert played.answer is not None
    assert (played.answer.took_ms, played.answer.tooks_ms) == (4, (2, 2))
    beside = composite(PointNode(), SEARCH, {"stream": [SEARCH]}).answer
    assert beside is not None
    assert (beside.took_ms, beside.tooks_ms) == (-1, ())


def test_the_failure_of_a_stream_is_that_of_the_composite():
    failing = {"operation-type": "raw-request", "path": "/fails"}
    played = composite(PointNode("/fails"), {"stream": [SEARCH]}, {"stream": [failing, SEARCH]}, SEARCH)
    assert played.lines == ["POST /big5/_search", "GET /fails"]
    assert outcome(played) is Outcome.HTTP_ERROR


def test_values_differ_from_operation_to_operation():
    values = {"n": {"kind": "integer", "min": 0, "max": 10**9}}
    search = {"operation-type": "search", "body": {"n": "${n}"}, "values": values}
    first, second = (composite(PointNode(), search, search).bodies for _ in range(2))
    assert first == second
    assert first[0] != first[1]


ASYNC = [
    {"operation-type": "submit-async-search", "name": "a", "body": {"size": 1}},
    {"operation-type": "get-async-search", "retrieve-results-for": "a"},
    {"operation-type": "delete-async-search", "delete-results-for": ["a"]},
]


def test_an_asynchronous_search_is_asked_after_until_its_answer_is_there():
    running: list[Any] = [{"is_running": True}, {"is_running": False, "response": found([], 7)}]

    def node(request: Request) -> tuple[int, Any]:
        return 200, running.pop(0) if request.method == "GET" else {"id": "x/y", "is_running": True}

    played = composite(node, *ASYNC)
    assert played.lines == [
        "POST /big5/_async_search?wait_for_completion_timeout=0",
        "GET /_async_search/x%2Fy",
        "GET /_async_search/x%2Fy",
        "DELETE /_async_search/x%2Fy",
    ]
    assert (played.pauses, outcome(played)) == ([0.5], Outcome.OK)


def test_an_asynchronous_search_of_opensearch_says_its_state():
    states: list[Any] = [{"state": "RUNNING"}, {"state": "SUCCEEDED", "response": found([], 7)}]

    def node(request: Request) -> tuple[int, Any]:
        return 200, states.pop(0) if request.method == "GET" else {"id": "x", "state": "RUNNING"}

    played = composite(node, *ASYNC, context=OPENSEARCH)
    path = "/_plugins/_asynchronous_search"
    assert played.lines[0] == f"POST {path}?index=big5&wait_for_completion_timeout=0"
    assert played.lines[-2:] == [f"GET {path}/x", f"DELETE {path}/x"]


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        ({"response": found([], 7)}, Outcome.OK),
        ({"response": found([], 7, _shards={"total": 2, "failed": 1})}, Outcome.PARTIAL),
        ({"response": found([], 7), "is_partial": True}, Outcome.PARTIAL),
        ({"response": found([], 7), "error": {"type": "x"}}, Outcome.HTTP_ERROR),
        ({}, Outcome.BAD_BODY),
    ],
)
def test_an_asynchronous_search_that_was_answered_at_once_is_judged_and_not_asked_after(
    ended: dict[str, Any], expected: Outcome
):
    played = composite(lambda _: (200, {"is_running": False, **ended}), *ASYNC)
    assert (len(played.requests), outcome(played)) == (1, expected)


def test_a_search_that_still_runs_after_all_tries_is_a_failure():
    def node(_request: Request) -> tuple[int, Any]:
        return 200, {"is_running": True, "id": "x"}

    get = {**ASYNC[1], "retry-until-success": False, "retries": 2}
    played = composite(node, ASYNC[0], get)
    assert (len(played.requests), outcome(played)) == (4, Outcome.BAD_BODY)


def phase(*requests: Any) -> dict[str, Any]:
    return {"operation-type": "composite", "requests": [*requests]}


def test_a_composite_within_a_composite_ends_before_the_next_one_begins():
    first = phase({"stream": [SEARCH]}, {"stream": [SLEEP]})
    second = phase({"stream": [SEARCH]}, {"stream": [phase({"stream": [SEARCH]}, {"stream": [SEARCH]})]})
    steps = [{"stream": [first, second]}]
    made = workload(operation_type="composite", requests=steps)
    assert made.connections == 3
    assert len(play(scripted(made.program(0)()), PointNode()).requests) == 4
    # With all in one stream, there would be five beside each other.
    flat = [{"stream": [*first["requests"], *second["requests"]]}]
    assert workload(operation_type="composite", requests=flat).connections == 5


def test_a_point_in_time_of_a_composite_is_that_of_those_within_it():
    played = composite(PointNode(), phase(OPEN), phase(phase(WITHIN)), CLOSE)
    assert played.lines == ["POST /big5/_pit?keep_alive=5m", "POST /_search", "DELETE /_pit"]
    failed = composite(PointNode("/_search"), OPEN, phase(WITHIN), SEARCH)
    assert failed.lines == ["POST /big5/_pit?keep_alive=5m", "POST /_search", "DELETE /_pit"]


def test_searches_of_a_composite_within_a_composite_keep_their_own_times_unless_some_are_beside_others():
    answer = composite(PointNode(), SEARCH, phase(SEARCH, SEARCH)).answer
    assert answer is not None
    assert (answer.took_ms, answer.tooks_ms) == (6, (2, 2, 2))
    beside = composite(PointNode(), SEARCH, phase({"stream": [SEARCH]})).answer
    assert beside is not None
    assert (beside.took_ms, beside.tooks_ms) == (-1, ())
