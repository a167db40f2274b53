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


BESIDE = Challenge("beside", (SORT, *(msgspec.structs.replace(task, group=1) for task in (HISTOGRAM, RANGE))))
THROTTLED = Challenge("slow", (SORT, msgspec.structs.replace(RANGE, target_throughput=2.0)))


@pytest.mark.parametrize(
    "challenges",
    [
        (FRESH_RANGE, FRESH_RANGE),
        (DEBUG, DEBUG),
        (FRESH_RANGE, BESIDE),
        (FRESH_RANGE, msgspec.structs.replace(DEBUG, order="random")),
        (FRESH_RANGE, THROTTLED),
    ],
    ids=["both fresh", "after the same", "beside others", "random order", "another load"],
)
def test_places_that_differ_in_nothing_or_in_more_are_not_compared(challenges: tuple[Challenge, ...]):
    plan = plan_of(*challenges)
    done = {"es": [fork_of(plan, "es", block, {}) for block in range(3)]}
    assert order_effects(THROUGHPUT, done, plan, every_place(plan)) == []


@pytest.mark.parametrize(
    ("plan", "place", "names"),
    [
        (plan_of(FRESH_RANGE, DEBUG, restart="never"), (0, 0), ()),
        (
            plan_of(FRESH_RANGE, DEBUG, FRESH_RANGE, restart="never"),
            (2, 0),
            ("range", "sort", "histogram", "range"),
        ),
        (
            plan_of(DEBUG, restart="task", warmup_challenges=(Challenge("w", (HISTOGRAM,)),)),
            (0, 2),
            ("histogram",),
        ),
        (plan_of(BESIDE), (0, 2), ("sort",)),
    ],
)
def test_what_a_node_had_run_before(plan: Plan, place: Place, names: tuple[str, ...]):
    assert ran_before(plan, place) == names


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
