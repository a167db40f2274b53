"""What ran before: which places of an operation differ in it, and in what order."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.results.plan import Place, Plan
from benchctl.stats.metrics import FRESH, before_text, describe_before, places_by_history, ran_before
from benchctl.track.model import Challenge, Task
from builders import make_plan

SORT, HISTOGRAM, RANGE = (
    Task("sort", iterations=9),
    Task("histogram", iterations=9),
    Task("range", iterations=9),
)
FRESH_RANGE = Challenge("fresh", (RANGE,))
DEBUG = Challenge("debug", (SORT, HISTOGRAM, RANGE))


def plan_of(*challenges: Challenge, **changes: Any) -> Plan:
    return make_plan(schedules=challenges, **changes)


def every_place(plan: Plan) -> list[Place]:
    return [
        (schedule, task)
        for schedule, challenge in enumerate(plan.schedules)
        for task in range(len(challenge.schedule))
    ]


@pytest.mark.parametrize(
    ("challenges", "first"), [((FRESH_RANGE, DEBUG), (0, 0)), ((DEBUG, FRESH_RANGE), (1, 0))]
)
def test_the_place_where_least_ran_before_is_first_wherever_it_stands(
    challenges: tuple[Challenge, ...], first: Place
):
    plan = plan_of(*challenges)
    (histories,) = places_by_history(plan, every_place(plan))
    assert list(histories) == [FRESH, "after sort, histogram"]
    assert next(iter(histories.values())) == first


BESIDE = Challenge("beside", (SORT, *(msgspec.structs.replace(task, group=1) for task in (HISTOGRAM, RANGE))))
SEVERAL_CLIENTS = Challenge("several", (SORT, msgspec.structs.replace(RANGE, swept="range")))
THROTTLED = Challenge("slow", (SORT, msgspec.structs.replace(RANGE, target_throughput=2.0)))


@pytest.mark.parametrize(
    "challenges",
    [
        (FRESH_RANGE, FRESH_RANGE),
        (DEBUG, DEBUG),
        (FRESH_RANGE, BESIDE),
        (FRESH_RANGE, msgspec.structs.replace(DEBUG, order="random")),
        (FRESH_RANGE, THROTTLED),
        (FRESH_RANGE, SEVERAL_CLIENTS),
    ],
    ids=["both fresh", "after the same", "beside others", "random order", "another load", "a curve"],
)
def test_places_that_differ_in_nothing_or_in_more_are_not_put_together(challenges: tuple[Challenge, ...]):
    plan = plan_of(*challenges)
    assert places_by_history(plan, every_place(plan)) == []


def test_histories_that_read_the_same_are_numbered():
    names = ("a", "b", "c", "d", "e")
    longer = [
        Challenge("x", (*(Task(name, iterations=9) for name in (*names, last)), RANGE)) for last in "fg"
    ]
    plan = plan_of(*longer)
    (histories,) = places_by_history(plan, every_place(plan))
    assert list(histories.values()) == [(0, 6), (1, 6)]
    assert list(histories)[1] == f"{next(iter(histories))} (2)"


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


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (plan_of(DEBUG), "after sort, histogram"),
        (plan_of(msgspec.structs.replace(DEBUG, order="random")), "in random order"),
        (plan_of(msgspec.structs.replace(DEBUG, order="random"), restart="task"), FRESH),
        (plan_of(Challenge("c", (SORT, *SEVERAL_CLIENTS.schedule))), "in random order"),
    ],
)
def test_in_random_order_nothing_is_said_to_have_run_before(plan: Plan, text: str):
    assert before_text(plan, (0, 2)) == text


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
