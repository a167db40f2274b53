"""Is an effect still there? The sequential test: its odds, its errors, and what it spends."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from benchctl.stats.sequential import (
    Rule,
    answer,
    cautious_log_odds,
    confirm,
    estimate,
    expected_pairs,
    log_odds,
    spent_alpha,
    standardised_gap,
)

REPEATS = 2000


def rule(**changes: float) -> Rule:
    given = {
        "threshold": 0.15,
        "gap": 0.15,
        "standardised_gap": 1.0,
        "alpha": 0.02,
        "beta": 0.05,
        "most": 40,
    } | changes
    return Rule(**given)  # type: ignore[arg-type]


def decided(mean: float, sd: float, chosen: Rule, seed: int) -> str:
    draws = np.random.default_rng(seed).normal(mean, sd, int(chosen.most)).tolist()
    for count in range(1, len(draws) + 1):
        found = answer(draws[:count], chosen)
        if found is not None:
            return found
    raise AssertionError("the bound is an answer, too")


def share(answers: list[str], wanted: str) -> float:
    return answers.count(wanted) / len(answers)


@given(
    st.lists(st.floats(-1, 1), min_size=2, max_size=12).filter(lambda pairs: np.std(pairs) > 1e-3),
    st.floats(-0.3, 0.3),
    st.floats(0.1, 2),
)
def test_odds_are_the_ratio_of_two_noncentral_t_densities(
    pairs: list[float], threshold: float, gap: float
) -> None:
    count = len(pairs)
    t = (np.mean(pairs) - threshold) / (np.std(pairs, ddof=1) / math.sqrt(count))
    centre = gap * math.sqrt(count)
    densities = [float(stats.nct.pdf(t, count - 1, sign * centre)) for sign in (1, -1)]
    if min(densities) > 1e-200 and abs(t) < 100:  # beyond them scipy's own digits end
        wanted = math.log(densities[0] / densities[1])
        assert log_odds(pairs, threshold, gap) == pytest.approx(wanted, rel=1e-3, abs=1e-3)


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=20), st.floats(0.05, 2))
def test_odds_turn_over_with_their_pairs_and_do_not_depend_on_the_unit(
    pairs: list[float], gap: float
) -> None:
    found = log_odds(pairs, 0.0, gap)
    assert math.isfinite(found)
    assert log_odds([-one for one in pairs], 0.0, gap) == pytest.approx(-found, abs=1e-9)
    if any(abs(one) > 1e-6 for one in pairs):
        assert log_odds([7 * one for one in pairs], 0.0, gap) == pytest.approx(found, rel=1e-6, abs=1e-6)


def test_pairs_on_the_threshold_say_nothing() -> None:
    assert log_odds([0.2, 0.2, 0.2], 0.2, 1.0) == 0.0


@pytest.mark.parametrize("cv", [0.05, 0.10, 0.15])
def test_an_effect_that_is_gone_is_seldom_called_present_however_often_one_looks(cv: float) -> None:
    sd = cv * math.sqrt(2)
    chosen = rule(standardised_gap=min(0.15 / sd, 2.0))
    answers = [decided(0.0, sd, chosen, seed) for seed in range(REPEATS // 4)]
    assert share(answers, "present") <= 0.02 + 0.012
    assert share(answers, "absent") > 0.9


@pytest.mark.parametrize("cv", [0.05, 0.10, 0.15])
def test_an_effect_that_is_there_is_seldom_called_absent(cv: float) -> None:
    sd = cv * math.sqrt(2)
    chosen = rule(standardised_gap=min(0.15 / sd, 2.0))
    answers = [decided(0.3, sd, chosen, seed) for seed in range(REPEATS // 4)]
    assert share(answers, "absent") <= 0.05 + 0.02
    assert share(answers, "present") > 0.85


def test_a_test_that_expects_more_spread_than_there_is_errs_less() -> None:
    answers = [decided(0.0, 0.1, rule(standardised_gap=0.8), seed) for seed in range(REPEATS // 4)]
    assert share(answers, "present") <= 0.005


def test_two_pairs_are_never_enough_and_the_bound_leaves_it_open() -> None:
    assert answer([0.9, 0.9], rule()) is None
    assert answer([0.9, 0.91, 0.9], rule(standardised_gap=2.0)) == "present"
    assert answer([-0.9, -0.91, -0.9], rule(standardised_gap=2.0)) == "absent"
    assert answer([0.1, 0.2, 0.15], rule(most=3)) == "undecided"
    assert answer([0.1, 0.2, 0.15], rule(most=4)) is None


def test_pairs_that_differ_more_than_expected_make_a_question_cautious() -> None:
    # By the spread of earlier questions these would be sure; by their own they are not.
    pairs, told = [0.0, 0.0, 0.4], rule(threshold=0.2, gap=0.2, standardised_gap=2.0)
    assert log_odds(pairs, told.threshold, told.standardised_gap) < math.log(told.beta)
    assert log_odds(pairs, told.threshold, told.standardised_gap) < cautious_log_odds(pairs, told) < 0
    assert answer(pairs, told) is None


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=10), st.floats(0.1, 2))
def test_caution_only_ever_moves_odds_towards_even(pairs: list[float], gap: float) -> None:
    told = rule(standardised_gap=gap)
    plain, cautious = log_odds(pairs, told.threshold, gap), cautious_log_odds(pairs, told)
    assert plain * cautious >= 0
    assert abs(cautious) <= abs(plain) + 1e-9


def test_all_questions_together_spend_no_more_than_alpha() -> None:
    spent = [spent_alpha(0.05, number) for number in range(1, 10_000)]
    assert 0.0499 < sum(spent) < 0.05
    assert spent == sorted(spent, reverse=True)


def confirmed(mean: float, sd: float, seed: int, *, most: int = 12, alpha: float = 0.05) -> str:
    draws = np.random.default_rng(seed).normal(mean, sd, most).tolist()
    return next(
        found
        for count in range(1, most + 1)
        if (found := confirm(draws[:count], 0.0, alpha, most)) is not None
    )


@pytest.mark.parametrize("sd", [0.02, 0.1, 0.4])
def test_no_effect_is_seldom_confirmed_whatever_the_spread(sd: float) -> None:
    answers = [confirmed(0.0, sd, seed) for seed in range(REPEATS)]
    assert share(answers, "present") <= 0.05 + 0.01
    assert share(answers, "absent") <= 0.05 + 0.01


def test_a_clear_effect_is_confirmed_with_few_pairs() -> None:
    assert share([confirmed(0.3, 0.1, seed) for seed in range(REPEATS // 4)], "present") > 0.95
    assert confirm([0.3, 0.31, 0.29, 0.3, 0.3], 0.0, 0.05, 12) == "present"
    assert confirm([0.3, 0.31, 0.29, 0.3], 0.0, 0.05, 12) is None
    assert confirm([0.3, 0.31, 0.29], 0.0, 0.05, 3) == "present"
    assert confirm([0.3, 0.31, 0.29], 0.5, 0.05, 3) == "absent"


def test_a_gap_is_counted_in_cautious_standard_deviations() -> None:
    group = [0.0, 0.1, 0.2, 0.3]
    alone = standardised_gap(0.1, [group])
    assert alone < 0.1 / float(np.std(group, ddof=1))
    # A group about another mean says as much, and more of them make it less cautious.
    assert standardised_gap(0.1, [group, [9 + one for one in group]]) > alone
    assert standardised_gap(0.1, [group, [5.0], []]) == pytest.approx(alone)
    assert standardised_gap(100.0, [group]) == 2.0
    assert standardised_gap(0.1, [[1.0, 1.0]]) == 2.0


def test_the_cautious_bound_holds_four_times_in_five() -> None:
    draws = np.random.default_rng(5).normal(0, 0.1, (REPEATS, 5))
    held = [standardised_gap(0.05, [row.tolist()]) <= 0.5 for row in draws]
    assert sum(held) / REPEATS == pytest.approx(0.8, abs=0.03)


def test_an_estimate_has_the_ordinary_interval() -> None:
    found = estimate([0.1, 0.2, 0.3])
    low, high = stats.t.interval(0.95, 2, loc=0.2, scale=0.1 / math.sqrt(3))
    assert (found.mean, found.low, found.high) == pytest.approx((0.2, low, high))
    assert estimate([0.1]).high == math.inf


def test_a_forecast_has_at_least_the_pairs_that_any_answer_takes() -> None:
    assert expected_pairs(2.0, 0.05) == 3
    assert expected_pairs(0.5, 0.001) == 14
