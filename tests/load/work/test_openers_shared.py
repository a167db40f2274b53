"""What operations share: retries, answers that a track asserts, and that some cannot be asked."""

from typing import Any

import msgspec
import pytest

from benchctl.load.transport import Answer, Request
from benchctl.load.work import WorkContext
from benchctl.results.samples import Outcome
from benchctl.track.operations.catalogue import decode_operation
from load.playing import Node, found, outcome, play_operation, request_of, workload
from load.storm import ask_one
from load.stub_server import Serve

HEALTH: dict[str, Any] = {"operation_type": "cluster-health", "retry_wait_period": 0.25}
LATE = (408, {"status": "yellow", "timed_out": True})
WELL = (200, {"status": "green", "timed_out": False})
STATS: dict[str, Any] = {
    "operation_type": "index-stats",
    "condition": {"path": "docs", "expected-value": 1},
}
ERROR = {"error": {"type": "x", "reason": "no"}}


def node(*answers: tuple[int, Any]) -> Node:
    waiting = list(answers)
    return lambda _: waiting.pop(0)


def test_an_operation_that_says_nothing_is_asked_once_as_it_is():
    assert isinstance(workload(**HEALTH).program(0)(), Request)


def test_a_late_answer_is_asked_for_again_up_to_the_number_of_retries():
    played = play_operation(node(LATE, LATE, WELL), retries=2, **HEALTH)
    assert (len(played.requests), played.pauses, outcome(played)) == (3, [0.25, 0.25], Outcome.OK)
    played = play_operation(node(LATE, LATE, WELL), retries=1, **HEALTH)
    assert (len(played.requests), outcome(played)) == (2, Outcome.TIMEOUT)


def test_a_late_answer_stands_where_it_is_not_to_be_retried():
    played = play_operation(node(LATE, WELL), retries=2, retry_on_timeout=False, **HEALTH)
    assert (len(played.requests), outcome(played)) == (1, Outcome.TIMEOUT)


@pytest.mark.parametrize(
    ("raw", "requests", "expected"),
    [
        ({"retries": 5}, 1, Outcome.BAD_BODY),
        ({"retries": 5, "retry_on_error": True}, 3, Outcome.OK),
        ({"retries": 1, "retry_on_error": True}, 2, Outcome.BAD_BODY),
        ({"retry_until_success": True}, 3, Outcome.OK),
    ],
)
def test_a_wrong_answer_is_tried_again_where_errors_are(raw: Any, requests: int, expected: Outcome):
    played = play_operation(node((200, {"docs": 0}), (200, {}), (200, {"docs": 1})), **STATS, **raw)
    assert (len(played.requests), outcome(played)) == (requests, expected)


@pytest.mark.parametrize("status", [400, 404, 429, 503])
def test_what_a_node_refuses_is_not_asked_again(status: int):
    played = play_operation(node((status, ERROR)), retry_until_success=True, **STATS)
    assert (len(played.requests), outcome(played)) == (
        1,
        Outcome.REJECTED if status == 429 else Outcome.HTTP_ERROR,
    )


def test_a_try_that_failed_is_no_failure_by_itself():
    played = play_operation(node(LATE, WELL), retries=1, **HEALTH)
    first = played.requests[0]
    assert first.judge(408, b"{}") == Answer(Outcome.OK)


def test_an_operation_of_several_requests_is_tried_again_as_a_whole():
    names = ["a", "b"]
    played = play_operation(
        node((200, {}), (408, {}), (200, {}), (200, {})),
        operation_type="create-index",
        index=names,
        retries=1,
    )
    assert played.lines == ["PUT /a", "PUT /b", "PUT /a", "PUT /b"]
    assert outcome(played) is Outcome.OK


ON = WorkContext("big5", assertions=True)
BODY = b'{"took":3,"hits":{"total":{"value":7,"relation":"gte"}}}'


def asserting(name: str, condition: str, value: Any) -> dict[str, Any]:
    return {"assertions": [{"property": name, "condition": condition, "value": value}]}


@pytest.mark.parametrize(
    ("name", "condition", "value", "holds"),
    [
        ("hits", ">", 0, True),
        ("hits", ">", 7, False),
        ("hits", ">=", 7, True),
        ("hits", "==", 7, True),
        ("hits", "<", 7, False),
        ("hits", "<=", 6.5, False),
        ("hits", "<", "many", False),
        ("hits_relation", "==", "eq", False),
        ("took", "<", 100, True),
        ("timed_out", "==", False, True),
        ("success", "==", True, True),
    ],
)
def test_an_answer_has_to_be_as_the_track_expects(name: str, condition: str, value: Any, holds: bool):  # noqa: FBT001 - a table
    request = request_of(ON, operation_type="search", **asserting(name, condition, value))
    answer = request.judge(200, BODY)
    assert answer.outcome is (Outcome.OK if holds else Outcome.BAD_BODY)
    assert holds or f"expected {name} {condition} {value}" in answer.reason
    assert answer.took_ms == 3


def test_nothing_is_asserted_unless_the_run_says_so():
    request = request_of(operation_type="search", **asserting("hits", ">", 100))
    assert request.judge(200, BODY).outcome is Outcome.OK


def test_an_answer_that_failed_by_itself_says_why_it_did():
    request = request_of(ON, operation_type="search", **asserting("hits", ">", 100))
    assert request.judge(500, b"{}").outcome is Outcome.HTTP_ERROR


def test_the_hits_of_pages_are_asserted_of_the_whole():
    def node(_: Request) -> tuple[int, Any]:
        return 200, found([], 7)

    paged = {"operation_type": "paginated-search", "body": {"sort": ["a"]}}
    for least, expected in ((1, Outcome.OK), (8, Outcome.BAD_BODY)):
        assert outcome(play_operation(node, ON, **paged, **asserting("hits", ">=", least))) is expected


def test_a_request_that_is_the_same_every_time_stays_so():
    program = workload(ON, operation_type="search", **asserting("hits", ">", 0)).program(0)
    assert program() is program()


def test_what_is_not_known_of_answers_cannot_be_asserted():
    raw = {"name": "x", "operation-type": "search", **asserting("hit", ">", 1)}
    with pytest.raises(msgspec.ValidationError, match="'hits'") as caught:
        decode_operation(raw)
    assert "$.assertions[0]" in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"operation-type": "proto-search"}, "proto-search speaks gRPC: benchctl speaks HTTP"),
        ({"operation-type": "produce-stream-message", "bulk-size": "whatever it is"}, "a message broker"),
        (
            {"operation-type": "vector-search", "field": "v", "data_set_path": "x", "max_distance": 1.0},
            "vector-search by radius",
        ),
    ],
)
@pytest.mark.parametrize("task", [{"iterations": 5}, {}, {"warmup_time_period": 5.0}])
def test_what_cannot_be_asked_is_unsupported_and_nothing_is_sent(
    serve: Serve, raw: Any, said: str, task: dict[str, Any]
):
    server = serve()
    result = ask_one(server.url, decode_operation({"name": "x", **raw}), **task)
    assert result.unsupported is not None
    assert said in result.unsupported
    assert len(server.received) == 1  # the greeting
    assert result.columns["outcome"].tolist() == [Outcome.HTTP_ERROR]


def test_a_node_with_models_learns_that_benchctl_cannot_handle_them():
    played = play_operation(lambda _: (200, {}), operation_type="deploy-ml-model")
    assert played.lines == ["GET /_plugins/_ml/stats"]
    assert played.answer is not None
    assert "deploy-ml-model" in played.answer.lacking
