"""An experiment against its challenges: tasks, metrics and parameters that have to be there."""

import json
from pathlib import Path

import pytest

from benchctl.errors import UsageError
from benchctl.experiment.file import Changes
from experiment_files import EXPERIMENT, load
from golden import Cases


def swapped(old: str, new: str) -> str:
    assert old in EXPERIMENT
    return EXPERIMENT.replace(old, new)


def test_every_measurement_becomes_the_plan_of_a_run(tmp_path: Path):
    found = load(tmp_path)
    fresh, used = (planned.plan for planned in found.plans.values())
    assert list(found.plans) == ["fresh", "used"]
    assert [spec.name for spec in used.variants] == ["es", "es-noinline"]
    assert [one.name for one in used.schedules] == ["big5rangedebug", "range-only-short"]
    assert (fresh.restart, used.restart) == ("challenge", "never")
    for plan in (fresh, used):
        assert (plan.forks, plan.heap_mb, plan.corpus.documents, plan.track) == (3, 512, 20_000, "big5")


def test_parameters_reach_the_measurements_that_know_them(tmp_path: Path):
    text = "params: {iterations: 7, range-only-short.iterations: 9}" + swapped(
        "challenges: [range-only-short]}", "challenges: [big5rangedebug], params: {iterations: 5}}"
    ).replace("fresh/es/range", "fresh/es/big5rangedebug/range")
    plans = load(tmp_path, text).plans
    assert [task.iterations for task in plans["fresh"].plan.schedules[0].schedule] == [5, 5, 5]
    assert plans["fresh"].unused == {"range-only-short.iterations"}
    used = plans["used"].plan
    assert [one.schedule[0].iterations for one in used.schedules] == [7, 9]


def test_the_command_line_wins_over_the_file(tmp_path: Path):
    text = swapped(
        "challenges: [range-only-short]}", "challenges: [range-only-short], params: {iterations: 5}}"
    )
    changes = Changes(forks=9, docs=1000, heap="300m", seed=4, overrides={"iterations": 3})
    found = load(tmp_path, text, changes)
    for planned in found.plans.values():
        plan = planned.plan
        assert (plan.forks, plan.corpus.documents, plan.heap_mb, plan.seed) == (9, 1000, 300, 4)
        assert {task.iterations for one in plan.schedules for task in one.schedule} == {3}


def test_what_does_not_fit_is_told_with_its_line_before_anything_starts(cases: Cases, tmp_path: Path):
    cases("plan", lambda old, new: load(tmp_path, swapped(old, new)), tmp_path)


def test_a_parameter_that_only_one_measurement_is_given_and_no_track_takes_is_refused(tmp_path: Path):
    own = swapped("challenges: [range-only-short]}", "challenges: [range-only-short], params: {x: 1}}")
    with pytest.raises(UsageError, match="no challenge or track uses it"):
        load(tmp_path, "params: {x: 1}" + own)


def test_a_throttled_task_is_compared_by_its_times_only(tmp_path: Path):
    schedule = [{"operation": "range", "iterations": 10, "target-throughput": 5}]
    (tmp_path / "paced.json").write_text(json.dumps({"name": "paced", "schedule": schedule}))
    text = swapped("challenges: [range-only-short]}", "challenges: [paced.json]}")
    with pytest.raises(UsageError, match="the task is throttled"):
        load(tmp_path, text)
    rows = text[: text.index("      - name: after")].replace("throughput\n", "latency_p90\n")
    assert load(tmp_path, rows).spec.comparisons[0].metric == "latency_p90"


def test_a_parameter_of_the_command_line_that_nothing_uses_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="--param itterations: no challenge of any measurement"):
        load(tmp_path, changes=Changes(overrides={"itterations": 3}))
