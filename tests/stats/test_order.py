"""Order effects: which places are compared, against what, and with which pairs."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.results.model import ForkRecord
from benchctl.results.plan import Plan
from benchctl.stats.analyse import analyse
from benchctl.stats.metrics import SERVICE_TIME, THROUGHPUT, Place
from benchctl.stats.order import FRESH, describe_before, order_effects, ran_before
from benchctl.track.model import Challenge, Task
from builders import make_fork, make_plan, make_summary

SORT, HISTOGRAM, RANGE = (
    Task("sort", iterations=9),
    Task("histogram", iterations=9),
    Task("range", iterations=9),
)
FRESH_RANGE = Challenge("fresh", (RANGE,))
DEBUG = Challenge("debug", (SORT, HISTOGRAM, RANGE))


def plan_of(*challenges: Challenge, **changes: Any) -> Plan:
    return make_plan(schedules=challenges, **changes)


def fork_of(plan: Plan, variant: str, block: int, milliseconds: dict[Place, float]) -> ForkRecord:
    """One fork: `milliseconds` by (schedule, task); 1 ms everywhere else."""
    summaries = [
        msgspec.structs.replace(
            make_summary(task.label, milliseconds.get((schedule, place), 1.0)), schedule=schedule, task=place
        )
        for schedule, challenge in enumerate(plan.schedules)
        for place, task in enumerate(challenge.schedule)
    ]
    return make_fork(variant, block, *summaries)


def every_place(plan: Plan) -> list[Place]:
    return [
        (schedule, task)
        for schedule, challenge in enumerate(plan.schedules)
        for task in range(len(challenge.schedule))
    ]


def test_a_slowdown_that_follows_other_operations_is_an_order_effect():
    plan = plan_of(FRESH_RANGE, DEBUG)
    slow = (2.0, 2.1, 1.9, 2.05, 1.95)
    done = {"es": [fork_of(plan, "es", block, {(1, 2): time}) for block, time in enumerate(slow)]}
    (effect,) = order_effects(SERVICE_TIME, done, plan, every_place(plan))
    assert (effect.baseline_place, effect.contender_place) == ((0, 0), (1, 2))
    assert effect.baseline_after == ()
    assert effect.contender_after == ("sort", "histogram")
    comparison = effect.comparison
    assert comparison.paired
    assert comparison.verdict == "slower"
    assert comparison.effect_percent == pytest.approx(100 * (math.prod(slow) ** 0.2 - 1))


def test_the_place_where_least_ran_before_is_the_baseline_wherever_it_stands():
    plan = plan_of(DEBUG, FRESH_RANGE)
    done = {"es": [fork_of(plan, "es", block, {}) for block in range(3)]}
    (effect,) = order_effects(THROUGHPUT, done, plan, every_place(plan))
    assert effect.baseline_place == (1, 0)


def test_two_fresh_places_have_no_order_effect():
    plan = plan_of(FRESH_RANGE, FRESH_RANGE)
    done = {"es": [fork_of(plan, "es", block, {}) for block in range(3)]}
    assert order_effects(THROUGHPUT, done, plan, every_place(plan)) == []


def test_equal_places_after_the_same_tasks_have_no_order_effect():
    plan = plan_of(DEBUG, DEBUG)
    done = {"es": [fork_of(plan, "es", block, {}) for block in range(3)]}
    assert order_effects(THROUGHPUT, done, plan, every_place(plan)) == []


def test_what_runs_beside_others_is_not_compared():
    beside = Challenge(
        "beside", (SORT, *(msgspec.structs.replace(task, group=1) for task in (HISTOGRAM, RANGE)))
    )
    plan = plan_of(FRESH_RANGE, beside)
    done = {"es": [fork_of(plan, "es", block, {}) for block in range(3)]}
    assert order_effects(THROUGHPUT, done, plan, every_place(plan)) == []


def test_without_restarts_earlier_challenges_come_before():
    plan = plan_of(FRESH_RANGE, DEBUG, FRESH_RANGE, restart="never")
    assert ran_before(plan, (0, 0)) == ()
    assert ran_before(plan, (2, 0)) == ("range", "sort", "histogram", "range")


def test_a_restart_for_every_task_leaves_only_the_warmup_challenge_before():
    plan = plan_of(DEBUG, restart="task", warmup_challenges=(Challenge("w", (HISTOGRAM,)),))
    assert ran_before(plan, (0, 2)) == ("histogram",)


def test_what_runs_beside_a_task_is_not_before_it():
    together = Challenge(
        "together", (SORT, *(msgspec.structs.replace(task, group=1) for task in (HISTOGRAM, RANGE)))
    )
    assert ran_before(plan_of(together), (0, 2)) == ("sort",)


def test_what_ran_before_is_no_effect_where_that_differs_from_block_to_block():
    shuffled = plan_of(FRESH_RANGE, msgspec.structs.replace(DEBUG, order="random"))
    done = {"es": [fork_of(shuffled, "es", block, {}) for block in range(3)]}
    assert order_effects(SERVICE_TIME, done, shuffled, every_place(shuffled)) == []


def test_other_loads_of_an_operation_are_not_compared():
    throttled = Challenge("slow", (SORT, msgspec.structs.replace(RANGE, target_throughput=2.0)))
    plan = plan_of(FRESH_RANGE, throttled)
    done = {"es": [fork_of(plan, "es", block, {}) for block in range(3)]}
    assert order_effects(THROUGHPUT, done, plan, every_place(plan)) == []


def test_places_that_ask_unequally_often_say_so():
    longer = Challenge("longer", (SORT, msgspec.structs.replace(RANGE, iterations=90)))
    plan = plan_of(FRESH_RANGE, longer)
    done = {"es": [fork_of(plan, "es", block, {}) for block in range(3)]}
    (effect,) = order_effects(THROUGHPUT, done, plan, every_place(plan))
    assert effect.unequal_requests


def test_pairs_are_forks_that_have_both_values():
    plan = plan_of(FRESH_RANGE, DEBUG)
    forks = [fork_of(plan, "es", block, {(1, 2): 2 + block / 10}) for block in range(4)]
    # This fork failed before the second place.
    forks[1] = msgspec.structs.replace(forks[1], summaries=forks[1].summaries[:1])
    (effect,) = order_effects(SERVICE_TIME, {"es": forks}, plan, every_place(plan))
    assert effect.comparison.n_baseline == effect.comparison.n_contender == 3


def test_an_analysis_has_the_order_effects_of_every_variant():
    plan = plan_of(FRESH_RANGE, DEBUG)
    done = {
        name: [fork_of(plan, name, block, {(1, 2): 2 + block / 9}) for block in range(3)]
        for name in ("es", "os")
    }
    found = analyse(done, plan).order_effects
    assert {(effect.variant, effect.metric) for effect in found} == {
        (variant, metric) for variant in ("es", "os") for metric in ("throughput", "service_time_p90")
    }


@given(st.lists(st.sampled_from(["a", "b", "c", "d", "e", "f"]), max_size=30))
def test_every_task_before_is_named_or_counted(names: list[str]):
    text = describe_before(names)
    distinct = len(set(names))
    if not names:
        assert text == FRESH
    elif distinct <= 4:
        assert all(name in text for name in names)
    else:
        assert text.endswith(f"{distinct - 3} others")
