"""A challenge written to a file is the same challenge when it is loaded again."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchctl.errors import UsageError
from benchctl.track.library import challenge_names
from benchctl.track.load import load_challenge, load_track
from benchctl.track.model import Challenge, Task
from benchctl.track.operations.catalogue import PluginOperation
from benchctl.track.schedule import challenge_json, challenge_text


def again(challenge: Challenge, tmp_path: Path) -> Challenge:
    path = tmp_path / "written.json"
    path.write_text(challenge_text(challenge), encoding="utf-8")
    track, _ = load_track("big5", {})
    return load_challenge(str(path), track, {})[0]


def made(tmp_path: Path, *schedule: Any, **keys: Any) -> Challenge:
    path = tmp_path / "given.json"
    path.write_text(json.dumps({"name": "given", "schedule": schedule, **keys}), encoding="utf-8")
    track, _ = load_track("big5", {})
    return load_challenge(str(path), track, {})[0]


@pytest.mark.parametrize("name", challenge_names())
def test_what_is_shipped_comes_back_as_it_was(name: str, tmp_path: Path) -> None:
    track, _ = load_track("big5", {})
    challenge, _ = load_challenge(name, track, {})
    assert again(challenge, tmp_path) == challenge


def test_every_key_of_tasks_and_challenges_comes_back(tmp_path: Path) -> None:
    challenge = made(
        tmp_path,
        {
            "operation": "range",
            "name": "first",
            "clients": 2,
            "warmup-time-period": 3,
            "time-period": 4.5,
            "ramp-up-time-period": 2,
            "target-interval": "250 ms",
            "schedule": "poisson",
            "ignore-response-error-level": "non-fatal",
            "tags": ["a", "b"],
            "meta": {"why": "because"},
        },
        description="many keys",
        **{"user-info": "hello", "meta": {"m": 1}, "cluster-settings": {"indices.queries.cache.size": "1%"}},
    )
    assert again(challenge, tmp_path) == challenge


def test_operations_of_its_own_stand_where_they_are_first_used(tmp_path: Path) -> None:
    own = {"name": "mine", "operation-type": "search", "body": {"size": 3, "query": {"match_all": {}}}}
    bulk = {"name": "send", "operation-type": "bulk", "bulk-size": 500}
    challenge = made(
        tmp_path,
        {"operation": own, "iterations": 3},
        {"operation": "mine", "name": "once more", "iterations": 4},
        {"operation": bulk, "target-throughput": "1000 docs/s"},
    )
    assert again(challenge, tmp_path) == challenge
    written = challenge_json(challenge)["schedule"]
    assert written[0]["operation"]["name"] == "mine"
    assert written[1]["operation"] == "mine"
    assert written[2]["target-throughput"] == "1000 docs/s"
    assert "operations" not in challenge_json(challenge)


@pytest.mark.parametrize("completed", [{}, {"completed-by": "range"}, {"completed-by": "any"}])
def test_parallel_elements_stay_together(completed: dict[str, str], tmp_path: Path) -> None:
    tasks = [{"operation": "range", "iterations": 3}, {"operation": "term", "iterations": 4}]
    challenge = made(
        tmp_path,
        {"operation": "default", "iterations": 1},
        {"parallel": {"clients": 2, **completed, "tasks": tasks}},
        {"parallel": {"tasks": tasks}},
        {"parallel": {"clients": 3, "mix": True, "tasks": tasks}},
        {"operation": "scroll", "iterations": 2},
    )
    found = again(challenge, tmp_path)
    assert found == challenge
    assert found.steps == ((0,), (1, 2), (3, 4), (5, 6), (7,))
    assert [task.clients for task in found.schedule if task.mixed] == [3, 3]


def test_what_only_a_plug_in_knows_cannot_stand_in_a_file_of_its_own() -> None:
    operation = PluginOperation(name="odd", type="odd")
    with pytest.raises(UsageError, match="operation type 'odd'"):
        challenge_text(Challenge("c", (Task("odd"),), operations={"odd": operation}))
    with pytest.raises(UsageError, match="scheduler 'bursty'"):
        challenge_text(Challenge("c", (Task("range", scheduler="bursty"),)))
    # One that the track defines has its name there.
    assert msgspec.json.decode(challenge_text(Challenge("c", (Task("odd"),))))["schedule"] == [
        {"operation": "odd"}
    ]
