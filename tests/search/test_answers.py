"""Answers of a search: their errors, the pairs that they take, and what pooling of SDs may do."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.search.answers import Rule, answer, difference, percents, pooled

SEARCHES = 400
WHOLE = 0.3
KNOWN = np.random.default_rng(9).normal(WHOLE, 0.1, 8).tolist()


def rule(**changes: float) -> Rule:
    defaults = {"gone": 0.0, "there": WHOLE, "middle": WHOLE / 2, "alpha": 0.02, "beta": 0.05, "most": 40}
    return Rule(**(defaults | changes))  # type: ignore[arg-type]


def answered(mean: float, sd: float, seed: int, others: list[list[float]] | None = None) -> tuple[str, int]:
    draws = np.random.default_rng([seed, 4]).normal(mean, sd, 40).tolist()
    for count in range(1, len(draws) + 1):
        verdict = answer(draws[:count], others or [], rule())
        if verdict != "measuring":
            return verdict, count
    raise AssertionError("the last pair is an answer, too")


def shares(mean: float, sd: float, others: list[list[float]] | None = None) -> dict[str, float]:
    verdicts = [answered(mean, sd, seed, others)[0] for seed in range(SEARCHES)]
    return {word: verdicts.count(word) / SEARCHES for word in ("present", "absent", "undecided")}


@pytest.mark.parametrize("sd", [0.07, 0.14, 0.21])
@pytest.mark.parametrize("pooling", [False, True])
def test_answers_are_seldom_wrong_however_often_one_looks(sd: float, *, pooling: bool) -> None:
    others = [np.random.default_rng(2).normal(0, sd, 30).tolist()] if pooling else []
    gone, there = shares(0.0, sd, others), shares(WHOLE, sd, others)
    assert gone["present"] <= 0.02
    assert there["absent"] <= 0.05
    assert gone["absent"] >= 0.95
    assert there["present"] >= 0.95


def test_what_earlier_questions_know_of_the_sd_saves_pairs() -> None:
    def pairs(others: list[list[float]]) -> float:
        return float(np.mean([answered(0.0, 0.1, seed, others)[1] for seed in range(SEARCHES // 4)]))

    assert pairs([KNOWN]) < 0.8 * pairs([])


def test_pairs_that_differ_more_than_earlier_ones_count_with_their_own_sd() -> None:
    calm, wild = [0.01, -0.01, 0.0, 0.01], [0.5, -0.3, 0.7, 0.1]
    alone, guarded = difference(wild, []), difference(wild, [calm])
    assert guarded.error == pytest.approx(alone.error)
    assert guarded.df == 6


def test_two_pairs_are_never_enough_and_the_last_pair_leaves_it_open() -> None:
    assert answer([0.9, 0.9], [KNOWN], rule()) == "measuring"
    assert answer([0.9, 0.91, 0.9], [KNOWN], rule()) == "present"
    assert answer([-0.9, -0.91, -0.9], [KNOWN], rule()) == "absent"
    assert answer([0.1, 0.2, 0.15], [KNOWN], rule(most=3)) == "undecided"
    assert answer([0.1, 0.2, 0.15], [KNOWN], rule(most=4)) == "measuring"


def test_the_nearer_landmark_is_the_answer_where_both_are_excluded() -> None:
    middling = [0.16, 0.14, 0.15, 0.16, 0.14, 0.15, 0.16, 0.14]
    assert answer(middling, [], rule(middle=0.14)) == "present"
    assert answer(middling, [], rule(middle=0.16)) == "absent"


def test_a_question_without_the_other_landmark_is_never_answered_with_absent() -> None:
    gone = [-0.9, -0.91, -0.9, -0.92, -0.9, -0.91, -0.9, -0.9]
    assert answer(gone, [], rule(there=-math.inf)) == "measuring"


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=12), st.lists(st.floats(-1, 1), max_size=6))
def test_of_one_group_the_pooled_estimate_is_the_paired_one(pairs: list[float], other: list[float]) -> None:
    found = pooled([pairs, other], [1.0, 0.0])
    assert found.estimate == pytest.approx(float(np.mean(pairs)))
    assert found.units == pytest.approx(len(pairs))
    assert found.error >= float(np.std(pairs, ddof=1)) / math.sqrt(len(pairs)) * (1 - 1e-9)


def test_a_difference_of_groups_adds_their_errors() -> None:
    found = pooled([[0.3, 0.1, 0.2, 0.2], [0.1, 0.0, 0.2, 0.1]], [1.0, -1.0])
    assert found.estimate == pytest.approx(0.1)
    assert found.error == pytest.approx(np.sqrt(2 / 300 / 2))
    assert (found.units, found.df) == pytest.approx((2, 6))


def test_an_interval_in_percent_turns_over_with_its_pairs() -> None:
    pairs = [0.6, 0.7, 0.8, 0.7, 0.65, 0.75]
    mean, low, high = percents(pairs, [])
    assert low is not None
    assert mean == pytest.approx(100 * math.expm1(0.7))
    turned = percents([-pair for pair in pairs], [])
    assert turned[0] == pytest.approx(100 * math.expm1(-0.7))
    assert turned[1] == pytest.approx(100 * (1 / (1 + high / 100) - 1))
    assert percents([], []) == (None, None, None)
    assert percents([0.7], [])[1:] == (None, None)
