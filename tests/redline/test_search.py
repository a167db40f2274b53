"""The search: every rate is tried by a function that says whether it meets the objective."""

import math
import random
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.redline.search import MOST_STEPS, Found, Ladder, Phase, Search
from benchctl.results.figures import RedlineEnd, StepVerdict

LEAP = 11


class Node:
    """Meets the objective up to a rung, unless a test says otherwise for a step."""

    def __init__(self, limit: int, *, wrong: dict[int, StepVerdict] | None = None) -> None:
        self.limit = limit
        self.steps: list[tuple[int, Phase, StepVerdict]] = []
        self._wrong = wrong or {}

    def attempt(self, rung: int, phase: Phase) -> StepVerdict:
        verdict: StepVerdict = "pass" if rung <= self.limit else "fail"
        verdict = self._wrong.get(len(self.steps), verdict)
        self.steps.append((rung, phase, verdict))
        return verdict

    @property
    def rungs(self) -> list[int]:
        return [rung for rung, _, _ in self.steps]


class Noisy(Node):
    """Its limit is another one at every step and may rise as it warms up; the driver has bad moments."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)  # noqa: S311 - reproducible, not secret
        super().__init__(self._chance.randint(-2, 120))
        self._first = self.limit
        self._noise = self._chance.choice([1, 5, 20])
        self._rise = self._chance.choice([0, 0.5, 4])
        self._driver_limited = self._chance.choice([0.0, 0.05])

    def attempt(self, rung: int, phase: Phase) -> StepVerdict:
        rise = self._rise * len(self.steps)
        self.limit = round(self._first + rise + self._chance.gauss(0, self._noise))
        verdict = super().attempt(rung, phase)
        return "driver-limited" if self._chance.random() < self._driver_limited else verdict


def search(attempt: Callable[[int, Phase], StepVerdict], first: int, most: int | None = None) -> Found:
    return Search(attempt, most=most, leap=LEAP).run(first)


@given(limit=st.integers(0, 400), first=st.integers(-50, 450))
def test_an_exact_node_is_searched_to_the_rung_in_a_bounded_number_of_steps(limit: int, first: int):
    node = Node(limit)
    assert search(node.attempt, first) == Found(limit, "found", limit)
    assert len(node.steps) <= MOST_STEPS
    assert [phase for _, phase, _ in node.steps][-2:] == ["confirm", "confirm"]
    assert node.rungs[-2:] == [limit, limit]


@given(limit=st.integers(0, 400), most=st.integers(0, 400), first=st.integers(-50, 450))
def test_no_rung_above_the_highest_is_tried_and_reaching_it_is_said(limit: int, most: int, first: int):
    node = Node(limit)
    found = search(node.attempt, first, most)
    assert max(node.rungs) <= most
    assert found == (Found(most, "max-rate", most) if limit >= most else Found(limit, "found", limit))


@given(first=st.integers(0, 400))
def test_an_objective_that_no_rate_meets_ends_at_the_lowest(first: int):
    node = Node(-1)
    assert search(node.attempt, first) == Found(None, "missed", 0)
    assert node.rungs[-1] == 0


def test_a_good_guess_takes_few_steps():
    node = Node(150)
    search(node.attempt, 145)
    assert len(node.steps) <= 10


def test_the_first_strides_are_even_and_later_ones_double():
    node = Node(500)
    search(node.attempt, 100)
    steps = [upper - lower for lower, upper in pairwise(node.rungs)][:7]
    assert steps == [11, 11, 11, 22, 44, 88, 176]


def test_a_node_that_got_a_little_faster_is_not_buried_under_load():
    # A third faster than the warm-up had it: 10 rungs.
    node = Node(110)
    search(node.attempt, 90)
    assert max(node.rungs) <= 110 + LEAP


def test_the_failed_neighbour_is_tried_once_more_before_it_is_believed():
    node = Node(150)
    search(node.attempt, 145)
    assert [step for step in node.steps if step[1] == "retry"] == [(151, "retry", "fail")]


def test_a_false_failure_far_below_the_limit_does_not_hold_the_search_down():
    # The first step fails by accident: everything above it would be lost.
    node = Node(150, wrong={0: "fail"})
    assert search(node.attempt, 120).rung == 150


def test_a_node_that_gets_faster_while_it_is_searched_is_followed():
    node = Node(100)

    def warming(rung: int, phase: Phase) -> StepVerdict:
        node.limit = min(100 + 4 * len(node.steps), 140)
        return node.attempt(rung, phase)

    found = search(warming, 100)
    assert found == Found(140, "found", 140)


def test_a_node_that_never_settles_has_no_red_line():
    node = Node(100)

    def warming(rung: int, phase: Phase) -> StepVerdict:
        node.limit = 100 + 4 * len(node.steps)
        return node.attempt(rung, phase)

    found = search(warming, 100)
    assert found == Found(None, "unsettled", node.rungs[-1])
    assert len(node.steps) == MOST_STEPS


def test_a_noisy_search_is_decided_by_a_rung_that_was_tried():
    ends = Counter[str]()
    for seed in range(1200):
        node = Noisy(seed)
        found = search(node.attempt, first=60, most=80 if seed % 2 else None)
        assert len(node.steps) <= MOST_STEPS
        assert found.at in node.rungs
        assert found.rung is None or found.rung in node.rungs
        ends[found.end] += 1
    assert set(ends) == set(get_args(RedlineEnd))


def test_a_rate_that_passed_by_accident_is_not_confirmed():
    node = Node(100, wrong={0: "pass", 1: "fail"})
    found = search(node.attempt, 104)
    assert found == Found(100, "found", 100)


def test_confirmation_steps_down_until_a_rung_passes_twice_in_a_row():
    node = Node(150)
    search(node.attempt, 150)
    first_confirmation = next(place for place, step in enumerate(node.steps) if step[1] == "confirm")
    again = Node(150, wrong={first_confirmation + 1: "fail"})
    assert search(again.attempt, 150).rung == 149
    assert again.rungs[first_confirmation:] == [150, 150, 149, 149]


def test_a_search_that_steps_down_below_the_lowest_rung_misses():
    answers = iter(["pass", "fail", "fail", "fail", "fail", "fail"])

    def attempt(rung: int, phase: Phase) -> StepVerdict:
        del rung, phase
        return "pass" if next(answers, "fail") == "pass" else "fail"

    assert search(attempt, 0).end == "missed"


def test_a_driver_that_is_the_limit_twice_ends_the_search_with_what_had_passed():
    node = Node(400)

    def attempt(rung: int, phase: Phase) -> StepVerdict:
        return "driver-limited" if rung > 200 else node.attempt(rung, phase)

    found = search(attempt, 150)
    assert found.end == "driver-limited"
    assert found.rung == max(node.rungs)
    assert found.at > 200


def test_one_bad_moment_of_the_driver_ends_nothing():
    node = Node(150, wrong={0: "driver-limited", 3: "driver-limited"})
    assert search(node.attempt, 145) == Found(150, "found", 150)


def test_a_driver_that_is_the_limit_at_once_leaves_no_lower_bound():
    assert search(lambda _rung, _phase: "driver-limited", 50) == Found(None, "driver-limited", 50)


@given(answers=st.lists(st.sampled_from(["pass", "fail", "driver-limited"]), min_size=60, max_size=60))
def test_a_node_that_answers_at_random_does_not_keep_the_search_for_ever(answers: list[StepVerdict]):
    node = Node(0, wrong=dict(enumerate(answers)))
    found = search(node.attempt, 100)
    assert len(node.steps) <= MOST_STEPS
    assert (found.rung is None) or found.end in {"found", "driver-limited"}
    if found.end == "found":
        judged = [(rung, verdict) for rung, _, verdict in node.steps if verdict != "driver-limited"]
        assert judged[-2:] == [(found.rung, "pass")] * 2


@given(ratio=st.floats(1.001, 1.5), shift=st.floats(0, 0.999), rate=st.floats(1.0, 1e6))
def test_the_rung_of_a_rate_is_the_highest_that_is_not_above_it(ratio: float, shift: float, rate: float):
    ladder = Ladder(ratio, shift)
    rung = ladder.at_most(rate)
    assert ladder.rate(rung) <= rate < ladder.rate(rung + 1)


@given(ratio=st.floats(1.001, 1.5), shift=st.floats(0, 0.999), most=st.floats(1.0, 1e6))
def test_the_highest_load_is_tried_itself_whatever_the_grid(ratio: float, shift: float, most: float):
    ladder = Ladder(ratio, shift, most)
    top = ladder.top
    assert top is not None
    assert ladder.rate(top - 1) < ladder.rate(top) == most
    assert Ladder(ratio, shift).top is None


def test_rates_are_a_ratio_apart_and_a_shift_moves_all_of_them_by_less_than_that():
    plain, shifted = Ladder(1.03), Ladder(1.03, 0.5)
    rates = [plain.rate(rung) for rung in range(100, 110)]
    assert all(math.isclose(above / below, 1.03) for below, above in pairwise(rates))
    assert all(plain.rate(rung) < shifted.rate(rung) < plain.rate(rung + 1) for rung in range(200))


@pytest.mark.parametrize(("factor", "rungs"), [(1.001, 1), (1.03, 1), (1.4, 11), (2.0, 23)])
def test_a_factor_is_some_rungs(factor: float, rungs: int):
    assert Ladder(1.03).rungs(factor) == rungs
