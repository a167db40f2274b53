"""Operations that wait: how often they ask, when they stop, and what they say then."""

from typing import Any

import pytest

from benchctl.results.samples import Outcome
from load.playing import Node, Played, outcome, play_operation, request_of

MERGES = {"path": "_all.total.merges.current", "expected-value": 0}


def answers(*given: Any) -> Node:
    """A node that gives these, in order; the last one for ever. A pair has its own status."""
    waiting = list(given)

    def node(_: object) -> tuple[int, Any]:
        answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        return answer if isinstance(answer, tuple) else (200, answer)

    return node


def test_a_sleep_sends_nothing():
    played = play_operation(answers({}), operation_type="sleep", duration=2.5)
    assert (played.requests, played.pauses, outcome(played)) == ([], [2.5], Outcome.OK)


HEALTHY = {"status": "green", "timed_out": False}
LATE = (408, {"status": "yellow", "timed_out": True})


def test_health_is_asked_again_until_the_wanted_state_is_there():
    played = play_operation(
        answers(LATE, {"status": "red", "timed_out": True}, HEALTHY),
        operation_type="cluster-health",
        retry_until_success=True,
        request_params={"wait_for_status": "green"},
    )
    assert played.lines == ["GET /_cluster/health?wait_for_status=green"] * 3
    assert played.pauses == [0.5, 0.5]
    assert outcome(played) is Outcome.OK


def merging(current: int) -> dict[str, Any]:
    return {"_shards": {"failed": 0}, "_all": {"total": {"merges": {"current": current}}}}


def test_statistics_are_asked_until_their_condition_holds():
    played = play_operation(
        answers(merging(3), merging(1), merging(0)),
        operation_type="index-stats",
        condition=MERGES,
        retry_until_success=True,
    )
    assert played.lines == ["GET /big5/_stats"] * 3
    assert outcome(played) is Outcome.OK


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"_all":{"total":{"merges":{"current":3}}}}', "_all.total.merges.current is 3, not 0"),
        (b'{"_all":{"total":[]}}', "_all.total.merges.current is null, not 0"),
        (b"[]", "_all.total.merges.current is null, not 0"),
        (b"{", "not JSON"),
    ],
)
def test_a_condition_that_does_not_hold_is_a_failure(body: bytes, said: str):
    judge = request_of(operation_type="index-stats", condition=MERGES).judge
    answer = judge(200, body)
    assert answer.outcome is Outcome.BAD_BODY
    assert said in answer.reason
    assert judge(404, b"").outcome is Outcome.HTTP_ERROR


def test_a_polled_merge_is_waited_for_in_one_request():
    keys = {"operation_type": "force-merge", "mode": "polling", "max_num_segments": 1, "poll_period": 3}
    assert request_of(**keys).path == "/big5/_forcemerge?max_num_segments=1"


def snapshots(*states: str) -> dict[str, Any]:
    return {"snapshots": [{"snapshot": "s", "state": state, "stats": {}} for state in states]}


SNAPSHOT: dict[str, Any] = {
    "operation_type": "wait-for-snapshot-create",
    "repository": "my/repo",
    "snapshot": "s",
    "completion_recheck_wait_period": 0.25,
}


def test_a_snapshot_is_asked_after_until_it_is_complete():
    played = play_operation(
        answers(snapshots("INIT"), snapshots("STARTED"), snapshots("SUCCESS")), **SNAPSHOT
    )
    assert played.lines == ["GET /_snapshot/my%2Frepo/s/_status?ignore_unavailable=true"] * 3
    assert (played.pauses, outcome(played)) == ([0.25, 0.25], Outcome.OK)


@pytest.mark.parametrize(("states", "expected"), [(["FAILED"], Outcome.PARTIAL), ([], Outcome.HTTP_ERROR)])
def test_a_snapshot_that_failed_or_is_not_there_is_not_waited_for(states: list[str], expected: Outcome):
    played = play_operation(answers(snapshots(*states)), **SNAPSHOT)
    assert (len(played.requests), outcome(played)) == (1, expected)


def recovering(*stages: str) -> dict[str, Any]:
    return {"big5": {"shards": [{"id": number, "stage": stage} for number, stage in enumerate(stages)]}}


def test_recovery_is_over_when_every_shard_is_done():
    played = play_operation(
        answers({}, recovering("DONE", "INDEX"), recovering("DONE", "DONE")),
        operation_type="wait-for-recovery",
    )
    assert played.lines == ["GET /big5/_recovery"] * 3
    assert (played.pauses, outcome(played)) == ([1.0, 1.0], Outcome.OK)


CURRENT: dict[str, Any] = {"operation_type": "wait-for-current-snapshots-create", "repository": "r"}


def test_snapshots_are_waited_for_until_none_is_being_taken():
    played = play_operation(
        answers(snapshots("STARTED"), {"snapshots": [{"snapshot": "s"}]}, snapshots()), **CURRENT
    )
    assert played.lines == ["GET /_snapshot/r/_current?verbose=false"] * 3
    assert (played.pauses, outcome(played)) == ([1.0, 1.0], Outcome.OK)


def until(node: Node, operator: str, value: Any = None, **raw: Any) -> Played:
    criterion = {"operator": operator} | ({} if value is None else {"value": value})
    keys = {"path": "/a b?x=1", "json_path": "a.0.n", "retry_wait_interval": 2, **raw}
    return play_operation(node, operation_type="run-until", criterion=criterion, **keys)


def at(value: Any) -> dict[str, Any]:
    return {"a": [{"n": value}]}


@pytest.mark.parametrize(
    ("operator", "value", "wrong", "right"),
    [
        ("gte", 3, 2, 3),
        ("lte", "3", 4, "3"),
        ("eq", 3, 4, 3.0),
        ("neq", 3, 3, 2),
        ("exists", None, None, 0),
        ("not_exists", None, 0, None),
        ("gte", 3, None, 3),
        ("gte", 3, True, 3),
    ],
)
def test_a_request_is_repeated_until_its_answer_meets_the_criterion(
    operator: str, value: Any, wrong: Any, right: Any
):
    played = until(answers(at(wrong), at(right)), operator, value, method="POST", body={"b": 1})
    assert played.lines == ["POST /a%20b?x=1"] * 2
    assert played.bodies == [{"b": 1}] * 2
    assert (played.pauses, outcome(played)) == ([2], Outcome.OK)


def test_a_request_that_fails_is_not_repeated_unless_its_status_is_to_be_ignored():
    error = (404, {"error": {"type": "x", "reason": "no"}})
    assert len(until(answers(error), "exists").requests) == 1
    assert len(until(answers(error, at(1)), "exists", ignore=404).requests) == 2
    assert outcome(until(answers((200, b"{")), "exists")) is Outcome.BAD_BODY


def test_searches_that_are_repeated_count_as_searches():
    played = until(answers(at(1)), "exists", path="/i/_search", method="POST", body={})
    assert [request.searches for request in played.requests] == [1]
