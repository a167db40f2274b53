"""Transforms by either engine's words, and indices that shrink."""

import json
from typing import Any

import pytest

from benchctl.load.request import Request
from benchctl.load.workload import WorkContext
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


SHRINK: dict[str, Any] = {
    "operation_type": "shrink-index",
    "source_index": "logs-*",
    "target_index": "small-",
    "target_body": {"settings": {"index.number_of_shards": 1}},
}


def cluster(request: Request) -> tuple[int, Any]:
    if request.path.endswith("_settings") and request.method == "GET":
        return 200, {"logs-a": {}, "logs-b": {}}
    if request.path.startswith("/_nodes"):
        return 200, {"nodes": {"n1": {}, "n2": {}}}
    return 200, {"status": "green", "timed_out": False}


def test_every_source_moves_to_one_node_and_shrinks_there():
    played = play_operation(cluster, **SHRINK)
    settled = (
        "?wait_for_events=languid&wait_for_no_initializing_shards=true"
        "&wait_for_no_relocating_shards=true&timeout=14400s"
    )
    assert played.lines == [
        "GET /logs-*/_settings",
        "GET /_nodes/data:true",
        "PUT /logs-a/_settings?preserve_existing=true",
        f"GET /_cluster/health/logs-a{settled}",
        "PUT /logs-a/_shrink/small-a",
        f"GET /_cluster/health/small-a{settled}",
        "PUT /logs-b/_settings?preserve_existing=true",
        f"GET /_cluster/health/logs-b{settled}",
        "PUT /logs-b/_shrink/small-b",
        f"GET /_cluster/health/small-b{settled}",
    ]
    where = "index.routing.allocation.require._id"
    # The seed, 7, is odd: the second node is the first to be taken.
    assert [json.loads(request.body)["settings"][where] for request in played.requests[2:7:4]] == ["n2", "n1"]
    assert json.loads(played.requests[4].body) == {
        "settings": {"index.number_of_shards": 1, where: None, "index.blocks.write": None}
    }
    assert outcome(played) is Outcome.OK


def test_a_node_that_is_named_is_not_looked_up():
    played = play_operation(cluster, **{**SHRINK, "shrink_node": "rally-0"})
    assert "GET /_nodes/data:true" not in played.lines
    body = json.loads(played.requests[1].body)
    assert body["settings"]["index.routing.allocation.require._name"] == "rally-0"


@pytest.mark.parametrize(
    ("failing", "requests", "expected"),
    [
        ("GET /logs", 1, Outcome.HTTP_ERROR),
        ("GET /_nodes", 2, Outcome.HTTP_ERROR),
        ("PUT", 3, Outcome.HTTP_ERROR),
    ],
)
def test_what_fails_ends_the_shrinking(failing: str, requests: int, expected: Outcome):
    def node(request: Request) -> tuple[int, Any]:
        fails = f"{request.method} {request.path}".startswith(failing)
        return (500, {"error": "no"}) if fails else cluster(request)

    played = play_operation(node, **SHRINK)
    assert (len(played.requests), outcome(played)) == (requests, expected)


def test_a_source_that_is_not_there_cannot_shrink():
    played = play_operation(lambda _: (200, {}), **SHRINK)
    assert (len(played.requests), outcome(played)) == (1, Outcome.HTTP_ERROR)
