"""Assertions: off unless the run turns them on, and a failure where they do not hold."""

from typing import Any

import pytest

from benchctl.errors import BenchctlError
from benchctl.load.request import Request
from benchctl.load.workload import WorkContext
from benchctl.results.samples import Outcome
from load.playing import found, outcome, play_operation, request_of, workload

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
    with pytest.raises(BenchctlError, match="something of 'pages'"):
        workload(ON, operation_type="search", **asserting("pages", ">", 0))
