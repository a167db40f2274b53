"""Candidates of a search, and the sentence of its effect."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchctl.errors import UsageError
from benchctl.search.candidates import Candidates, candidates_of, compares_variants, parse_effect
from benchctl.track.load import load_challenge, load_track
from golden import Cases


def made(tmp_path: Path, target: str, *schedule: Any, iterations: int | None = 10) -> Candidates:
    path = tmp_path / "given.json"
    path.write_text(json.dumps({"name": "given", "schedule": schedule}), encoding="utf-8")
    track, _ = load_track("big5", {})
    challenge, _ = load_challenge(str(path), track, {})
    operations = track.with_challenges(challenge).operations
    return candidates_of(challenge, target, operations, iterations)


def task(operation: str, **keys: Any) -> dict[str, Any]:
    return {"operation": operation, "iterations": 20, **{key.replace("_", "-"): keys[key] for key in keys}}


def test_what_comes_behind_the_target_goes_and_parallel_elements_stay_whole(tmp_path: Path) -> None:
    both = {"parallel": {"tasks": [task("term"), task("scroll")]}}
    found = made(tmp_path, "range", task("default"), both, task("range"), task("range-numeric"))
    assert found.every == (0, 1)
    assert found.labels(found.every) == ("default", "term | scroll")
    built = found.build((1,), "smaller")
    assert [one.label for one in built.schedule] == ["term", "scroll", "range"]
    assert built.steps == ((0, 1), (2,))
    assert [one.label for one in found.build((), "alone").schedule] == ["range"]


def test_counts_in_front_are_cut_and_the_target_s_are_not(tmp_path: Path) -> None:
    found = made(
        tmp_path,
        "range",
        task("default", warmup_iterations=200, iterations=100, target_throughput=2, schedule="poisson"),
        task("term", iterations=3),
        {"operation": "scroll", "warmup-time-period": 5, "time-period": 60},
        task("range", warmup_iterations=200, iterations=100, target_throughput=2),
    )
    assert found.can_shorten
    built = found.build(found.every, "short", short=True)
    assert [(one.iterations, one.warmup_iterations, one.time_period) for one in built.schedule] == [
        (10, None, None),
        (3, None, None),
        (10, None, None),
        (100, 200, None),
    ]
    assert [one.throttled for one in built.schedule] == [False, False, False, False]
    assert built.schedule[0].schedule == "deterministic"
    assert found.least_s(found.every) == pytest.approx(150 + 65 + 150)
    assert found.least_s(found.every, short=True) == 0


def test_what_prepares_the_others_is_not_cut(tmp_path: Path) -> None:
    merge = {"operation": {"operation-type": "force-merge"}, "iterations": 20}
    bulk = {"operation": {"operation-type": "bulk", "bulk-size": 10}}
    found = made(tmp_path, "range", merge, bulk, task("range"))
    assert not found.can_shorten
    assert found.build(found.every, "x", short=True).schedule == found.challenge.schedule
    assert not made(tmp_path, "range", task("term"), task("range"), iterations=None).can_shorten
    assert not made(tmp_path, "range", task("term"), task("range"), iterations=20).can_shorten
    offered = task("range", target_throughput=2)
    assert made(tmp_path, "range", task("term"), offered, iterations=20).can_shorten
    assert not made(tmp_path, "range", task("term"), offered, iterations=None).can_shorten


def test_only_operations_that_are_used_go_along(tmp_path: Path) -> None:
    own = {"name": "mine", "operation-type": "search", "body": {"query": {"match_all": {}}}}
    found = made(tmp_path, "range", task("term"), {"operation": own, "iterations": 2}, task("range"))
    assert set(found.build((0, 1), "x").operations) == {"mine"}
    assert not found.build((0,), "x").operations


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ([task("term"), task("default")], "has no task 'range'"),
        ([task("range"), task("term")], "nothing to remove"),
        ([task("term"), task("range"), task("range")], "has no task 'range'"),
        (
            [task("term"), {"parallel": {"tasks": [task("range"), task("scroll")]}}],
            "in parallel with other tasks",
        ),
    ],
)
def test_a_target_has_to_stand_alone_behind_something(
    schedule: list[Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=words):
        made(tmp_path, "range", *schedule)


@pytest.mark.parametrize("direction", ["slower", "faster"])
def test_a_task_against_itself_on_a_fresh_node(direction: str) -> None:
    found = parse_effect(f" range-numeric  {direction} than fresh", ["es"])
    assert (found.task, found.direction) == ("range-numeric", direction)
    assert (found.variant, found.against) == ("es", "")
    assert str(found) == f"range-numeric {direction} than fresh"
    assert not compares_variants("range slower than fresh")


def test_a_task_on_two_variants() -> None:
    found = parse_effect("my task slower on os@2.12.0 than on os", ["os", "os@2.12.0"])
    assert (found.task, found.variant, found.against) == ("my task", "os@2.12.0", "os")
    assert parse_effect(str(found), ["os", "os@2.12.0"]) == found
    assert compares_variants(str(found))


def test_what_is_no_such_sentence_or_about_others_is_refused(cases: Cases):
    cases("effects", lambda sentence, variants: parse_effect(sentence, json.loads(variants)))
