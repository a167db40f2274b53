"""Transforms by either engine's words, and indices that shrink."""

import json
from typing import Any

import pytest

from benchctl.load.transport import Request
from benchctl.load.work import WorkContext
from benchctl.results.plan import EngineName
from benchctl.results.samples import Outcome
from golden import Cases
from load.playing import Node, Played, outcome, play_operation, request_of

OPENSEARCH = WorkContext("big5", seed=7, engine="opensearch")
TRANSFORM: dict[str, Any] = {"transform_id": "t"}


def test_each_engine_is_asked_in_its_own_words(cases: Cases):
    def asked(kind: str, raw: str) -> str:
        name = {"policy_name": "p"} if "policy" in kind else TRANSFORM
        contexts = (WorkContext("big5"), OPENSEARCH)
        requests = [request_of(one, operation_type=kind, **name, **json.loads(raw)) for one in contexts]
        return "\n".join(f"{request.method} {request.path}" for request in requests)

    cases("transforms", asked)


def states(engine: EngineName, *found: str) -> Node:
    waiting = list(found)

    def node(request: Request) -> tuple[int, Any]:
        if request.method == "POST":
            return 200, {}
        state = waiting.pop(0)
        if engine == "elasticsearch":
            return 200, {"transforms": [{"id": "t", "state": state, "reason": "full"}]}
        return 200, {"t": {"transform_metadata": {"status": state, "failure_reason": "full"}}}

    return node


def wait(engine: EngineName, *found: str, **raw: Any) -> Played:
    context = WorkContext("big5", engine=engine)
    return play_operation(
        states(engine, *found), context, operation_type="wait-for-transform", **TRANSFORM, **raw
    )


def test_a_transform_is_stopped_and_asked_after_until_it_has():
    played = wait("elasticsearch", "stopping", "stopping", "stopped", force=True)
    assert played.lines == [
        "POST /_transform/t/_stop?wait_for_completion=false&force=true&wait_for_checkpoint=true",
        *["GET /_transform/t/_stats"] * 3,
    ]
    assert (played.pauses, outcome(played)) == ([0.5, 0.5], Outcome.OK)
    played = wait("opensearch", "started", "finished")
    assert played.lines == ["POST /_plugins/_transform/t/_stop", *["GET /_plugins/_transform/t/_explain"] * 2]
    assert outcome(played) is Outcome.OK


@pytest.mark.parametrize("engine", ["elasticsearch", "opensearch"])
def test_a_transform_that_failed_says_why(engine: EngineName):
    played = wait(engine, "failed")
    assert outcome(played) is Outcome.PARTIAL
    assert played.answer is not None
    assert "full" in played.answer.reason


def test_a_transform_that_is_not_waited_for_is_only_stopped():
    assert len(wait("elasticsearch", wait_for_completion=False).requests) == 1
    assert outcome(wait("elasticsearch", "")) is Outcome.BAD_BODY


def test_a_transform_is_not_waited_for_for_ever():
    # Every answer of the player ends a nanosecond after the stop began.
    assert outcome(wait("elasticsearch", "started", transform_timeout=1e-10)) is Outcome.TIMEOUT


def test_a_condition_is_about_the_first_transform():
    judge = request_of(
        operation_type="transform-stats",
        condition={"path": "stats.pages_processed", "expected-value": 3},
        **TRANSFORM,
    ).judge
    assert judge(200, b'{"transforms":[{"stats":{"pages_processed":3}}]}').outcome is Outcome.OK
    assert judge(200, b'{"transforms":[]}').outcome is Outcome.BAD_BODY
