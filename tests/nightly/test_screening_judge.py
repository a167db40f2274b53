import math

import numpy as np
import pytest
from scipy.stats import ttest_ind

from benchctl.nightly.screening import forks_to_confirm, judge
from benchctl.stats.compare import Comparison
from nightly.made import drawn, series


def compared(p: float | None, effect: float | None = 10.0, *, forks: int = 5) -> Comparison:
    return Comparison(
        metric="service_time.p50",
        baseline="last good",
        contender="tonight",
        higher_is_better=False,
        paired=False,
        judged=True,
        n_baseline=forks,
        n_contender=forks,
        margin_percent=5.0,
        effect_percent=effect,
        p=p,
    )


def test_forks_follow_the_spread_within_nights_not_between_them():
    quiet = drawn([0.0] * 10, seed=1, night_sd=0.3, fork_sd=0.05, forks=6)
    assert 20 <= forks_to_confirm(quiet, math.log(1.05)) <= 32
    assert forks_to_confirm(quiet, math.log(1.5)) == 5
    assert forks_to_confirm(quiet, math.log(1.5), least=9) == 9


@pytest.mark.parametrize(("fork_sd", "most"), [(0.05, 0.92), (0.15, 0.85)])
def test_so_many_forks_confirm_four_of_five_true_effects(fork_sd: float, most: float):
    rng = np.random.default_rng(1)
    history = drawn([0.0] * 60, seed=1, fork_sd=fork_sd, forks=10)
    forks = forks_to_confirm(history, math.log(1.1))
    confirmed = 0
    for _ in range(300):
        good = rng.normal(0, fork_sd, forks)
        tonight = rng.normal(math.log(1.1), fork_sd, forks)
        effect = 100 * math.expm1(tonight.mean() - good.mean())
        p = float(ttest_ind(tonight, good, equal_var=False).pvalue)
        confirmed += judge([(compared(p, effect), "slower")])[0].confirmed
    assert 0.75 <= confirmed / 300 <= most


def test_faster_and_slower_take_the_same_forks():
    history = drawn([0.0] * 10, seed=1, fork_sd=0.05, forks=5)
    assert forks_to_confirm(history, 0.07) == forks_to_confirm(history, -0.07)


def test_without_two_forks_in_any_night_the_spread_between_nights_stands_in():
    assert forks_to_confirm(drawn([0.0] * 30, seed=1, night_sd=0.05), 0.05) > 10


def test_nothing_known_and_nothing_that_differs_ask_for_the_least():
    assert forks_to_confirm(series([[10.0]]), 0.05) == 5
    assert forks_to_confirm(series([[10.0, 10.0]] * 3), 0.05) == 5


def test_no_effect_cannot_be_confirmed():
    with pytest.raises(ValueError, match="no effect"):
        forks_to_confirm(series([[10.0]]), 0.0)


def test_what_goes_as_screened_is_confirmed():
    (found,) = judge([(compared(0.001), "slower")])
    assert (found.confirmed, found.p_adjusted) == (True, 0.001)
    assert found.reason == "last-good against tonight: +10.0 % over 5 + 5 forks, p 0.001 adjusted"


@pytest.mark.parametrize(
    ("p", "effect", "direction", "why"),
    [
        (0.02, 10.0, "slower", "where 0.01 is asked for"),
        (0.001, 10.0, "faster", "the other way"),
        (0.001, -10.0, "slower", "the other way"),
        (0.001, 2.0, "slower", "under half the margin of 5 %"),
        (None, 10.0, "slower", "there is no test"),
        (None, None, "slower", "one side has no value"),
    ],
)
def test_what_is_not_confirmed_says_why(p: float | None, effect: float | None, direction: str, why: str):
    (found,) = judge([(compared(p, effect), direction)])
    assert not found.confirmed
    assert why in found.reason


def test_the_p_of_a_night_are_adjusted_together_and_those_without_left_out():
    found = judge([(compared(p), "slower") for p in (0.008, None, 0.03, 0.5)])
    assert [one.p_adjusted for one in found] == [pytest.approx(0.024), None, pytest.approx(0.045), 0.5]
    assert not any(one.confirmed for one in found)


def test_a_change_of_everything_at_once_is_confirmed_on_each():
    assert all(one.confirmed for one in judge([(compared(0.009), "slower")] * 80))


def test_nothing_to_judge_is_nothing():
    assert judge([]) == []
