"""Bisection whose answers may be wrong: it names the step, and tells what a single step does not explain."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.search.bisection import (
    Asked,
    Found,
    Question,
    answer_question,
    doubts,
    is_part,
    narrowed,
    next_question,
    questions_at_most,
)

HISTORIES = 200
POINTS = 64
MOST = 24
CV = 0.05
STEP = math.log(1.1)


def searched(levels: Sequence[float], seed: int, unusable: Mapping[int, str] | None = None) -> list[Asked]:
    """The whole search on forks that are made up: logarithms of how slow points are."""
    random = np.random.default_rng(seed)
    asked: list[Asked] = []
    while (question := next_question(len(levels), asked, unusable or {})) is not None:
        pairs: list[float] = []
        verdict = "measuring"
        while verdict == "measuring":
            difference = levels[question.point] - levels[question.against]
            pairs.append(difference + random.normal(0, CV) - random.normal(0, CV))
            verdict = answer_question(len(levels), question, pairs, asked, MOST)
        asked.append(Asked(question, tuple(pairs), verdict))
    return asked


def single_step(at: int, size: float = STEP, points: int = POINTS) -> list[float]:
    return [0.0] * at + [size] * (points - at)


@pytest.mark.parametrize("size", [STEP, -STEP])
def test_a_step_of_ten_percent_among_64_points_is_named_in_95_of_100_histories(size: float) -> None:
    right = surely_wrong = doubted = 0
    for seed in range(HISTORIES):
        at = int(np.random.default_rng([seed, 1]).integers(1, POINTS))
        asked = searched(single_step(at, size), seed)
        found = narrowed(POINTS, asked)
        named = asked[0].verdict == "present" and found == Found(at - 1, at)
        right += named
        doubted += named and (is_part(POINTS, asked) or bool(doubts(POINTS, asked)))
        surely_wrong += not named and found.first - found.before == 1 and not doubts(POINTS, asked)
    assert right / HISTORIES >= 0.95
    assert surely_wrong / HISTORIES <= 0.02
    assert doubted / HISTORIES <= 0.1


def test_ends_that_do_not_differ_are_seldom_searched() -> None:
    begun = sum(len(searched([0.0] * POINTS, seed)) > 1 for seed in range(HISTORIES))
    assert begun / HISTORIES <= 0.05


def test_a_history_that_goes_back_is_told() -> None:
    told = 0
    for seed in range(40):
        # Slow from 10 to 19, and again at the very end.
        levels = [0.0] * 10 + [0.3] * 10 + [0.0] * 12 + [0.3] * 32
        told += any(one.question.phase == "before" for one in doubts(POINTS, searched(levels, seed)))
    assert told == 40


def test_a_rise_in_three_parts_is_seldom_called_a_step() -> None:
    levels = [0.0] * 16 + [0.1] * 16 + [0.2] * 16 + [0.3] * 16
    sure = 0
    for seed in range(60):
        asked = searched(levels, seed)
        found = narrowed(POINTS, asked)
        sure += found.first - found.before == 1 and not (doubts(POINTS, asked) or is_part(POINTS, asked))
    assert sure <= 6


@given(
    points=st.integers(2, 70),
    data=st.data(),
)
def test_without_noise_the_step_is_named_by_as_few_questions_as_there_may_be(
    points: int, data: st.DataObject
) -> None:
    at = data.draw(st.integers(1, points - 1))
    broken = data.draw(st.sets(st.integers(1, points - 2), max_size=6)) if points > 2 else set()
    asked: list[Asked] = []
    while (question := next_question(points, asked, dict.fromkeys(broken, "does not build"))) is not None:
        assert question.point not in broken
        assert question not in [one.question for one in asked]
        verdict = "present" if (question.point >= at) != (question.against >= at) else "absent"
        asked.append(Asked(question, (0.1,), verdict))
    found = narrowed(points, asked)
    assert found.before < at <= found.first
    assert {*range(found.before + 1, found.first)} <= broken
    assert not [one for one in doubts(POINTS, asked) if found.first - found.before == 1]
    if not broken:
        assert found == Found(at - 1, at)
        leading = [one for one in asked if one.question.phase in ("ends", "halve")]
        assert len(leading) <= questions_at_most(points)
        assert len(asked) <= questions_at_most(points) + 3


def test_what_stays_open_is_passed_over_like_what_does_not_build() -> None:
    asked = [
        Asked(Question("ends", 4), (0.1,), "present"),
        Asked(Question("halve", 2), (0.05,), "undecided"),
    ]
    assert next_question(5, asked, {}) == Question("halve", 1)
    asked.append(Asked(Question("halve", 1), (0.0,), "absent"))
    assert next_question(5, asked, {3: "does not build"}) == Question("step", 4, 1)
    assert narrowed(5, asked) == Found(1, 4)


def test_nothing_is_asked_of_ends_that_do_not_differ() -> None:
    assert next_question(5, [Asked(Question("ends", 4), (0.0,), "undecided")], {}) is None
