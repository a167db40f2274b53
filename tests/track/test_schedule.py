"""Schedules as Rally writes them: parallel elements, inline operations, targets with units."""

import json
from typing import Any

import pytest

from benchctl.errors import UsageError
from benchctl.track.load import load_track
from benchctl.track.model import Challenge, Track
from benchctl.track.operations.catalogue import OPERATION_TYPES, decode_operation
from benchctl.track.schedule import MOST_CLIENTS, Context, check_challenge, read_challenge
from benchctl.track.template import Document
from golden import Cases


@pytest.fixture(scope="module")
def track() -> Track:
    return load_track("big5", {})[0]


def read(track: Track, *schedule: dict[str, Any], **keys: Any) -> Challenge:
    context = Context(Document("c.json"), track.name, track.operations)
    return read_challenge({"name": "c", "schedule": list(schedule), **keys}, context)


def parallel(*tasks: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return {"parallel": {"tasks": list(tasks), **keys}}


RANGE = {"operation": "range"}
SORT = {"operation": "desc_sort_timestamp"}


def test_a_parallel_element_becomes_tasks_of_one_step(track: Track):
    challenge = read(track, RANGE, parallel(RANGE, SORT), SORT, SORT)
    assert [task.operation for task in challenge.schedule] == [
        "range",
        "range",
        "desc_sort_timestamp",
        "desc_sort_timestamp",
        "desc_sort_timestamp",
    ]
    assert challenge.steps == ((0,), (1, 2), (3,), (4,))


def test_two_parallel_elements_in_a_row_stay_two_steps(track: Track):
    assert read(track, parallel(RANGE, SORT), parallel(RANGE, SORT)).steps == ((0, 1), (2, 3))


def test_tasks_inherit_bounds_and_keep_their_own(track: Track):
    own = {**SORT, "iterations": 7}
    first, second = read(track, parallel(RANGE, own, iterations=3, **{"warmup-iterations": 2})).schedule
    assert (first.iterations, first.warmup_iterations) == (3, 2)
    assert (second.iterations, second.warmup_iterations) == (7, 2)


def test_clients_of_a_parallel_element_are_its_lanes_and_not_inherited(track: Track):
    first, second = read(track, parallel(RANGE, {**SORT, "clients": 4}, clients=2)).schedule
    assert (first.clients, second.clients) == (1, 4)
    assert first.lanes == second.lanes == 2


def test_a_step_with_more_clients_than_can_work_is_refused(track: Track):
    tasks = [RANGE, {**SORT, "clients": MOST_CLIENTS}]
    with pytest.raises(UsageError) as caught:
        check_challenge(read(track, SORT, parallel(*tasks)), track.operations, Document("c.json"))
    assert "$.schedule[1].parallel: 4,097 clients at the same time, at most 4,096" in caught.value.message
    check_challenge(read(track, parallel(*tasks, clients=2)), track.operations, Document("c.json"))


@pytest.mark.timeout(60)  # looking at all tasks for each of them took minutes
def test_a_huge_parallel_element_is_checked_in_time(track: Track):
    challenge = read(track, parallel(*[RANGE] * 50_000, clients=4))
    check_challenge(challenge, track.operations, Document("c.json"))
    assert len(challenge.steps[0]) == 50_000


@pytest.mark.parametrize(
    ("completed_by", "completing"),
    [(None, [False, False]), ("any", [True, True]), ("range", [True, False]), ("slow", [False, True])],
)
def test_completed_by_names_a_task_or_any(track: Track, completed_by: str | None, completing: list[bool]):
    keys = {"completed-by": completed_by} if completed_by else {}
    tasks = read(track, parallel(RANGE, {**SORT, "name": "slow"}, **keys)).schedule
    assert [task.completes for task in tasks] == completing


def test_a_bare_type_and_an_inline_operation_become_operations_of_the_challenge(track: Track):
    merge = {"name": "merge", "operation-type": "force-merge", "max-num-segments": 1}
    challenge = read(track, {"operation": "refresh"}, {"operation": merge}, {"operation": "merge"})
    assert [task.operation for task in challenge.schedule] == ["refresh", "merge", "merge"]
    assert set(challenge.operations) == {"refresh", "merge"}
    assert set(track.with_challenges(challenge).operations) > {"refresh", "merge", "range"}


def test_a_target_in_documents_counts_the_documents_of_a_body(track: Track):
    bulk = {"name": "send", "operation-type": "bulk", "bulk-size": 500}
    (task,) = read(track, {"operation": bulk, "target-throughput": "5000 docs/s"}).schedule
    assert task.rate_per_s == 10
    assert task.target_throughput == 5000


def test_what_cannot_be_done_is_read_whatever_it_says(track: Track):
    sent = {"name": "send", "operation-type": "proto-bulk", "bulk-size": 500, "no-key-of-ours": {}}
    (task,) = read(track, {"operation": sent, "target-throughput": "5000 docs/s"}).schedule
    assert task.target_throughput == 5000


@pytest.mark.parametrize(("target", "rate"), [(20, 20), ("20", 20), ("20 ops/s", 20), ("0.5 queries/s", 0.5)])
def test_a_target_in_requests(track: Track, target: Any, rate: float):
    assert read(track, {**RANGE, "target-throughput": target}).schedule[0].rate_per_s == rate


@pytest.mark.parametrize(("interval", "seconds"), [(0.25, 0.25), ("0.25", 0.25), ("5", 5)])
def test_an_interval_in_seconds(track: Track, interval: Any, seconds: float):
    (task,) = read(track, {**RANGE, "target-interval": interval}).schedule
    assert task.target_interval == seconds
    assert task.rate_per_s == 1 / seconds


def test_mistakes_are_named_by_file_and_place(cases: Cases, track: Track):
    cases("schedule", lambda schedule: read(track, *json.loads(schedule)))


def test_keys_of_a_challenge(track: Track):
    challenge = read(track, RANGE, **{"cluster-settings": {"a.b": 1}, "user-info": "slow", "meta": {"k": 2}})
    assert challenge.cluster_settings == {"a.b": 1}
    assert challenge.user_info == "slow"


def test_every_type_has_one_name_and_searches_and_bulk_are_reported():
    assert len(OPERATION_TYPES) > 30
    assert decode_operation({"name": "x"}).type_name == "search"
    assert decode_operation({"name": "x", "operation-type": "bulk", "bulk-size": 5}).unit == "docs"
    assert decode_operation({"name": "x"}).reported
    refresh = {"name": "x", "operation-type": "refresh"}
    assert not decode_operation(refresh).reported
    assert decode_operation({**refresh, "include-in-reporting": True}).reported


def test_challenges_of_a_run_cannot_mean_different_operations_by_one_name(track: Track):
    one, same, other = (
        read(track, {"operation": {"operation-type": "force-merge", "max-num-segments": segments}})
        for segments in (1, 1, 5)
    )
    assert track.with_challenges(one, same).operations["force-merge"] == one.operations["force-merge"]
    with pytest.raises(UsageError, match="different operations 'force-merge'"):
        track.with_challenges(one, other)
