"""Pilot forks that were never run: what is asked of them, and what comes of their answers."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchctl.errors import BenchctlError, UsageError
from benchctl.results.figures import Course, TaskSummary
from benchctl.results.model import ForkRecord
from benchctl.results.plan import Plan
from benchctl.run.bench import SilentObserver
from benchctl.run.pilot import MOST_ATTEMPTS, check_lengthening, choose_counts
from benchctl.run.plan import RunSpec, param_prefix, plan_run, with_params
from builders import CORPUS, ES, OS, make_fork, make_summary

SettlesAt = Callable[[str, str], int]


def make_options(*challenges: str, **changes: Any) -> RunSpec:
    base = {
        "variants": (ES, OS),
        "challenges": challenges,
        "warmup_challenges": (),
        "restart": "challenge",
        "forks": 2,
        "seed": 1,
        "heap_mb": 512,
        "track": "big5",
        "corpus": CORPUS,
        "segments": 1,
        "params": {},
    }
    return RunSpec(**{**base, **changes})


def planned(*challenges: str, **changes: Any) -> Plan:
    return plan_run(make_options(*challenges, **changes))[0]


class Notes(SilentObserver):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)


@dataclass
class Engines:
    """Tasks that settle after so many requests, and a clock that pilot forks move on.

    Attributes:
        settles_at: (variant, operation) -> requests.
        fork_s: seconds of a fork.
        asked: (variant, attempt, requests of each task) of every fork.
        now_s: what the clock says.
    """

    settles_at: SettlesAt
    fork_s: float = 1.0
    asked: list[tuple[str, int, tuple[int, ...]]] = field(default_factory=list)
    now_s: float = 0.0

    def run(self, plan: Plan, variant: str, attempt: int) -> ForkRecord:
        tasks = [
            (number, place, task)
            for number, challenge in enumerate(plan.schedules)
            for place, task in enumerate(challenge.schedule)
        ]
        assert all(not task.warmup_iterations for _, _, task in tasks if task.iterations)
        self.asked.append((variant, attempt, tuple(task.iterations or 0 for _, _, task in tasks)))
        self.now_s += self.fork_s
        summaries = [
            self.summary(variant, task.operation, task.clients * (task.iterations or 1000), number, place)
            for number, place, task in tasks
        ]
        return make_fork(variant, attempt, *summaries, wall_s=self.fork_s)

    def summary(self, variant: str, operation: str, of: int, schedule: int, place: int) -> TaskSummary:
        at = min(self.settles_at(variant, operation), of - 1)
        course = (
            Course("warm-up" if at < 0.75 * of else "no steady state", at, of, (0, at), (2e6, 1e6))
            if at
            else Course("flat", 0, of, (0,), (1e6,))
        )
        return make_summary(operation, 1.0, schedule=schedule, task=place, course=course)

    def clock(self) -> float:
        return self.now_s


def test_a_warm_up_covers_the_slowest_task_of_the_slowest_variant():
    times = {("es", "range"): 31, ("os", "range"): 122}
    engines = Engines(lambda variant, operation: times.get((variant, operation), 0))
    chosen, pilot = choose_counts(planned("big5rangedebug"), engines.run, SilentObserver(), engines.clock)
    assert pilot.params == {"big5rangedebug.warmup_iterations": 130}
    assert [(task.warmup_iterations, task.iterations) for task in chosen.schedules[0].schedule] == [
        (130, 10)
    ] * 3
    assert pilot.unsettled == ()
    assert sorted(engines.asked) == [("es", 0, (200,) * 3), ("os", 0, (200,) * 3)]


def test_the_plan_is_what_its_own_parameters_give():
    engines = Engines(lambda *_: 50)
    options = make_options("big5rangedebug", "range-only-short", params={"iterations": 20})
    chosen, pilot = choose_counts(plan_run(options)[0], engines.run, SilentObserver(), engines.clock)
    again = make_options("big5rangedebug", "range-only-short", params={"iterations": 20, **pilot.params})
    assert chosen == plan_run(again)[0]


def test_only_challenges_that_had_not_settled_are_lengthened_and_for_both_variants_alike():
    engines = Engines(
        lambda variant, operation: (
            500 if (variant, operation) == ("os", "composite-date_histogram-daily") else 10
        )
    )
    plan = planned("range-only-short", "big5rangedebug")
    chosen, pilot = choose_counts(plan, engines.run, SilentObserver(), engines.clock)
    by_attempt = {attempt: counts for _, attempt, counts in engines.asked}
    assert by_attempt == {0: (200,) * 4, 1: (200, 400, 400, 400), 2: (200, 800, 800, 800)}
    assert {variant for variant, attempt, _ in engines.asked if attempt == 2} == {"es", "os"}
    assert pilot.params == {
        "range-only-short.warmup_iterations": 10,
        "big5rangedebug.warmup_iterations": 500,
    }
    assert [fork.attempt for fork in pilot.forks] == [1, 1, 2, 2, 3, 3]
    assert chosen.params == pilot.params


def test_what_never_settles_is_told_and_the_run_goes_on():
    engines = Engines(lambda variant, _: 10**6 if variant == "os" else 20)
    notes = Notes()
    chosen, pilot = choose_counts(planned("range-only-short"), engines.run, notes, engines.clock)
    assert len(pilot.forks) == 2 * MOST_ATTEMPTS
    assert pilot.unsettled == ("range-only-short: range of os",)
    assert any("not settled within its bound: range-only-short: range of os" in text for text in notes.texts)
    assert chosen.schedules[0].schedule[0].warmup_iterations == 1600


def test_no_attempt_begins_that_would_take_too_long():
    engines = Engines(lambda *_: 10**6, fork_s=120.0)
    notes = Notes()
    _, pilot = choose_counts(planned("range-only-short"), engines.run, notes, engines.clock)
    assert {fork.attempt for fork in pilot.forks} == {1, 2}
    assert any("so this was the last" in text for text in notes.texts)


def test_a_warm_up_that_is_long_enough_stays():
    engines = Engines(lambda *_: 40)
    plan = planned("range-only-short", params={"warmup_iterations": 50, "iterations": 300})
    chosen, pilot = choose_counts(plan, engines.run, SilentObserver(), engines.clock)
    assert engines.asked[0][2] == (350,)
    assert (chosen, pilot.params) == (plan, {})


def test_requests_are_counted_by_client():
    engines = Engines(lambda *_: 600)
    plan = planned("range-only-short", params={"clients": 4})
    _, pilot = choose_counts(plan, engines.run, SilentObserver(), engines.clock)
    assert pilot.params == {"range-only-short.warmup_iterations": 150}


def test_it_prints_the_command_that_repeats_the_run_without_a_pilot():
    engines, notes = Engines(lambda *_: 95), Notes()
    choose_counts(planned("range-only-short"), engines.run, notes, engines.clock, tags=("nightly",))
    assert notes.texts[-1].startswith(
        "pilot: the same run without a pilot: benchctl run --challenge range-only"
    )
    assert "--param range-only-short.warmup_iterations=100" in notes.texts[-1]
    assert "--tag nightly" in notes.texts[-1]
    assert "--forks 2" in notes.texts[-1]


def test_a_pilot_fork_that_fails_ends_it():
    def fail(_plan: Plan, variant: str, attempt: int) -> ForkRecord:
        return make_fork(variant, attempt, status="failed", reason="out of memory")

    with pytest.raises(BenchctlError, match=r"pilot fork of (es|os) failed: out of memory"):
        choose_counts(planned("range-only-short"), fail, SilentObserver())


def without_figures(fork: ForkRecord, **changes: Any) -> ForkRecord:
    summaries = tuple(msgspec.structs.replace(one, course=None, **changes) for one in fork.summaries)
    return msgspec.structs.replace(fork, summaries=summaries)


@pytest.mark.parametrize(
    ("changes", "unsettled"),
    [
        ({"samples": 0}, ("range-only-short: range of es (only 0 answers)",)),
        ({"unsupported": "no such aggregation"}, ()),
        ({"reported": False}, ()),
    ],
)
def test_tasks_without_a_course(changes: dict[str, Any], unsettled: tuple[str, ...]):
    engines = Engines(lambda *_: 30)

    def run(plan: Plan, variant: str, attempt: int) -> ForkRecord:
        fork = engines.run(plan, variant, attempt)
        return without_figures(fork, **changes) if variant == "es" else fork

    _, pilot = choose_counts(planned("range-only-short"), run, SilentObserver(), engines.clock)
    assert pilot.unsettled == unsettled
    assert pilot.params == {"range-only-short.warmup_iterations": 30}


def write_challenge(folder: Path, name: str, **task: Any) -> str:
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"name": f"{name}-inside", "schedule": [{"operation": "range", **task}]}))
    return str(path)


def test_time_periods_are_not_lengthened_and_that_is_said(tmp_path: Path):
    task = {"operation": "desc_sort_timestamp", "warmup-time-period": 1, "time-period": 5}
    timed = write_challenge(tmp_path, "timed", **task)
    plan = planned(timed, "range-only-short")
    engines, notes = Engines(lambda _, operation: 30 if operation == "range" else 10**6), Notes()
    _, pilot = choose_counts(plan, engines.run, notes, engines.clock)
    assert pilot.params == {"range-only-short.warmup_iterations": 30}
    assert {fork.attempt for fork in pilot.forks} == {1}
    assert pilot.unsettled == tuple(
        f"timed-inside: desc_sort_timestamp of {fork.variant}" for fork in pilot.forks
    )
    assert any("timed-inside has time periods" in text for text in notes.texts)
    check_lengthening(plan)
    with pytest.raises(UsageError, match="no challenge here counts its requests"):
        check_lengthening(planned(timed))


def test_parameters_of_a_challenge_from_a_file_go_by_the_name_of_the_file(tmp_path: Path):
    path = write_challenge(tmp_path, "mine", iterations=10)
    engines = Engines(lambda *_: 30)
    chosen, pilot = choose_counts(planned(path), engines.run, SilentObserver(), engines.clock)
    assert pilot.params == {"mine.warmup_iterations": 30}
    assert chosen.schedules[0].schedule[0].warmup_iterations == 30
    assert param_prefix(path) == "mine."


def test_further_parameters_leave_the_rest_of_a_plan_alone():
    plan = planned("big5rangedebug", "range-only-short", params={"iterations": 7})
    changed = with_params(plan, {"range-only-short.iterations": 9})
    assert changed.schedules[0] == plan.schedules[0]
    assert changed.schedules[1].schedule[0].iterations == 9
    assert msgspec.structs.replace(changed, schedules=plan.schedules, params=plan.params) == plan
    with pytest.raises(UsageError):
        with_params(plan, {"range-only-short.iterations": 0})
