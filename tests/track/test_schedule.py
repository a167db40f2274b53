"""Schedules as Rally writes them: parallel elements, inline operations, targets with units."""

import json
from typing import Any

import msgspec
import pytest

from benchctl.errors import UsageError
from benchctl.track.load import load_track
from benchctl.track.model import Challenge, Track
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


def test_schedules_become_steps_of_tasks_and_mistakes_are_named(cases: Cases, track: Track):
    def told(schedule: str) -> str:
        challenge = read(track, *json.loads(schedule))
        parts = [*challenge.schedule, *challenge.operations.values()]
        rates = [task.rate_per_s for task in challenge.schedule]
        lines = (f"{type(part).__name__} {msgspec.json.encode(part).decode()}" for part in parts)
        return "\n".join([*lines, f"steps {challenge.steps}, requests a second {rates}"])

    cases("schedule", told)


def test_keys_of_a_challenge(track: Track):
    challenge = read(track, RANGE, **{"cluster-settings": {"a.b": 1}, "user-info": "slow", "meta": {"k": 2}})
    assert challenge.cluster_settings == {"a.b": 1}
    assert challenge.user_info == "slow"


def test_challenges_of_a_run_cannot_mean_different_operations_by_one_name(track: Track):
    one, same, other = (
        read(track, {"operation": {"operation-type": "force-merge", "max-num-segments": segments}})
        for segments in (1, 1, 5)
    )
    assert track.with_challenges(one, same).operations["force-merge"] == one.operations["force-merge"]
    with pytest.raises(UsageError, match="different operations 'force-merge'"):
        track.with_challenges(one, other)


LOGGED = {
    "operation": {"name": "a", "operation-type": "logged-search"},
    "schedule": "logged",
    "time-period": 5,
}
WHOLE = {"operation": {"name": "whole", "operation-type": "all-together"}, "iterations": 1}


def problem(track: Track, *schedule: dict[str, Any]) -> str:
    """What is wrong with a challenge of operations of its own; empty for nothing."""
    challenge = read(track, *schedule)
    operations = {**track.operations, **challenge.operations}
    try:
        check_challenge(challenge, operations, Document("c.json"))
    except UsageError as err:
        return err.message
    return ""


@pytest.mark.parametrize(
    ("tasks", "keys", "words"),
    [
        ([LOGGED, WHOLE], {"mix": True, "clients": 2}, ""),
        ([LOGGED, {**WHOLE, "iterations": None, "schedule": "logged", "time-period": 5}], {"mix": True}, ""),
        ([LOGGED], {}, "of all tasks of a parallel element with `mix`"),
        (
            [LOGGED, {**RANGE, "iterations": 5}],
            {"mix": True},
            "of all tasks of a parallel element with `mix`",
        ),
        ([{**LOGGED, "time-period": None}], {"mix": True}, "needs a time-period"),
        ([{**LOGGED, "target-throughput": 5}], {"mix": True}, "has no rate"),
        ([{**RANGE, "iterations": 5, "log-speed": 2}], {"mix": True}, "need a logged schedule"),
        ([WHOLE], {}, "requires other tasks"),
    ],
)
def test_a_log_is_sent_by_a_mix_and_nothing_else(
    track: Track, tasks: list[dict[str, Any]], keys: dict[str, Any], words: str
):
    told = problem(track, parallel(*tasks, **keys))
    assert (words in told) if words else told == ""


def test_what_stands_for_all_of_a_mix_is_no_part_of_it(track: Track):
    challenge = read(track, parallel({**RANGE, "iterations": 5}, WHOLE, mix=True, clients=3))
    assert [(task.mixed, task.clients) for task in challenge.schedule] == [(True, 3), (False, 3)]
    assert "requires other tasks" in problem(track, WHOLE)
