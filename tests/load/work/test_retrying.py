"""Further tries: as many as were asked for, and only where another one may help."""

from typing import Any

import pytest

from benchctl.load.request import Answer, Request
from benchctl.results.samples import Outcome
from load.playing import Node, outcome, play_operation, workload

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
