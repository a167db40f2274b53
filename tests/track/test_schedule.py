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
