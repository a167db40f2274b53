import math
from collections.abc import Collection

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest, norm, t

from benchctl.nightly.series import (
    PRIOR_NIGHTS,
    PRIOR_SD,
    Screened,
    Series,
    _scores,
    is_nearer,
    nights_of,
    recovered,
    screen,
)
from nightly.made import drawn, series

SPREAD = [9.9, 10.0, 10.1, 9.95, 10.05]


def tonight(
    found: Series,
    *,
    margin: float = 0.05,
    usual: Collection[int] | None = None,
    doubtful: Collection[int] = (),
    cleared: Collection[int] = (),
) -> Screened | None:
    """The last night against all before, or those that are usual."""
    night = int(found.nights[-1])
    return screen(
        nights_of(found),
        night,
        usual=range(1, night) if usual is None else usual,
        doubtful=doubtful,
        cleared=cleared,
        margin=margin,
    )


def steady(nights: int) -> list[list[float]]:
    return [[SPREAD[place % 5]] for place in range(nights)]


def scores(values: list[float]) -> list[float]:
    nights = nights_of(series([[value] for value in values]))
    places = np.arange(len(values))
    return _scores(nights, places, np.ones(len(values), np.bool_))[0].tolist()


def test_a_night_without_a_value_is_not_screened():
    nights = nights_of(series([[10.0], [10.0], [], [20.0]]))
    for night in (3, 9):
        assert screen(nights, night, usual=[1, 2], margin=0.05) is None


def test_a_night_is_not_held_against_nothing_or_the_nights_to_come():
    found = series([[10.0, 10.1], [20.0, 20.1]])
    assert tonight(found, usual=[]) is None
    assert tonight(found, usual=[2, 3]) is None
    assert tonight(found, usual=[], doubtful=[1]) is None


def test_a_score_is_the_normal_one_of_a_night_against_those_before():
    values = [10.0, 10.2, 9.9, 10.4]
    logs = np.log(values)
    df = PRIOR_NIGHTS + 2
    squares = ((logs[:3] - logs[:3].mean()) ** 2).sum()
    sd = math.sqrt((PRIOR_NIGHTS * PRIOR_SD**2 + squares) / df)
    expected = norm.ppf(t.cdf((logs[3] - logs[:3].mean()) / (sd * math.sqrt(1 + 1 / 3)), df))
    assert scores(values)[0] == 0
    assert scores(values)[3] == pytest.approx(expected)


def test_scores_of_an_unchanged_series_are_standard_normal_and_independent():
    found = np.array(
        [scores(np.exp(row).tolist()) for row in np.random.default_rng(1).normal(0, PRIOR_SD, (500, 12))]
    )[:, 1:]
    assert kstest(found.ravel(), "norm").pvalue > 0.01
    assert np.corrcoef(found[:, :-1].ravel(), found[:, 1:].ravel())[0, 1] == pytest.approx(0, abs=0.04)


def test_the_effect_is_the_mean_since_the_change_over_that_of_the_nights_before():
    values = [*steady(20), [11.0], [11.2]]
    found = tonight(series(values))
    assert found is not None
    before = np.log([value for (value,) in values[:20]])
    effect = np.log([11.0, 11.2]).mean() - before.mean()
    assert found.effect_log == pytest.approx(effect)
    assert (found.since, found.last_good) == (21, 20)
    assert found.low_log < effect < found.high_log
    assert found.high_log - effect == pytest.approx(effect - found.low_log)


def test_nights_of_noisy_forks_have_to_stand_out_more():
    wide = [[7.0 * shift, 10.0 * shift, 14.3 * shift] for shift in (1.0, 1.005, 0.995, 1.002)]
    close = [[9.9 * shift, 10.0 * shift, 10.1 * shift] for shift in (1.0, 1.005, 0.995, 1.002)]
    assert tonight(series([*wide, [9.8, 14.0, 20.0]])) is None
    assert tonight(series([*close, [13.8, 14.0, 14.2]])) is not None


def test_a_night_of_fewer_forks_than_usual_has_to_stand_out_more():
    usual = [[8.0 * shift, 10.0 * shift, 12.5 * shift] for shift in (1.0, 1.005, 0.995, 1.002, 0.998) * 6]
    assert tonight(series([*usual, [11.2, 14.0, 17.5]])) is not None
    assert tonight(series([*usual, [14.0]])) is None


def test_a_shift_under_half_the_margin_wakes_nobody():
    values = [[10.0 + place % 2 / 1e3] for place in range(40)]
    assert tonight(series([*values, *[[10.2]] * 5])) is None
    assert tonight(series([*values, *[[10.2]] * 5]), margin=0.03) is not None


def test_a_night_that_is_back_is_not_blamed_for_those_before():
    assert tonight(series([*steady(40), [14.0], [14.0], [10.1]])) is None


@pytest.mark.parametrize(("higher_is_better", "direction"), [(True, "faster"), (False, "slower")])
def test_higher_values_are_faster_or_slower_as_the_metric_has_it(*, higher_is_better: bool, direction: str):
    found = tonight(series([*steady(10), [12.0]], higher_is_better=higher_is_better))
    assert found is not None
    assert found.direction == direction


@pytest.mark.parametrize("nights", [10, 45])
def test_identical_values_are_found_only_when_they_change(nights: int):
    same = [[10.0, 10.0]] * nights
    assert tonight(series([*same, [10.0, 10.0]])) is None
    found = tonight(series([*same, [11.2, 11.2]]))
    assert found is not None
    assert found.effect_percent == pytest.approx(12)
    assert found.last_good == nights


@pytest.mark.parametrize("factor", [1.04, 1 / 1.04])
def test_a_small_step_is_found_once_it_has_lasted_and_dated_back(factor: float):
    values = [*steady(50), *[[10.0 * factor]] * 4]
    found = tonight(series(values))
    assert found is not None
    assert (found.direction, found.since) == ("slower" if factor > 1 else "faster", 51)
    assert found.last_good <= 50
    assert tonight(series(values[:51])) is None


def test_the_sum_begins_anew_after_a_night_whose_finding_was_cleared():
    values = [*steady(50), *[[10.33]] * 4]
    assert tonight(series(values)) is not None
    assert tonight(series(values), cleared=[53]) is None


def test_a_change_that_nobody_could_confirm_stays_armed_and_never_becomes_usual():
    values = [*steady(20), *[[11.0]] * 12]
    usual = range(1, 21)
    found = tonight(series(values), usual=usual, doubtful=range(21, 32))
    assert found is not None
    assert (found.since, found.last_good) == (21, 20)
    # As few more nights as one that is far less plain by itself.
    weak = [*steady(20), *[[10.25]] * 6, [10.3]]
    assert tonight(series(weak), usual=usual, doubtful=range(21, 27)) is not None
    assert tonight(series([*steady(20), [10.3]])) is None


def test_last_good_is_before_any_night_that_counts_against_it():
    halfway = tonight(series([*steady(50), [10.4], [12.0]]))
    assert halfway is not None
    assert halfway.since == 52
    assert halfway.last_good < 51
    usual = tonight(series([*steady(50), [9.9], [12.0]]))
    assert usual is not None
    assert (usual.since, usual.last_good) == (52, 51)


def test_a_step_among_the_first_nights_is_not_absorbed():
    found = [
        tonight(drawn([0.0] * 5 + [math.log(1.15)] * nights, seed=seed))
        for seed in range(20)
        for nights in (4,)
    ]
    assert sum(one is not None for one in found) >= 17


# Nights of a series.


NIGHTS = st.lists(st.lists(st.floats(0.01, 1e6), max_size=6), max_size=12).filter(any)


@given(NIGHTS)
def test_every_night_is_the_mean_and_the_spread_of_the_logarithms_of_its_forks(nights: list[list[float]]):
    found = nights_of(series(nights))
    there = {number: np.log(values) for number, values in enumerate(nights, start=1) if values}
    assert found.numbers.tolist() == list(there)
    assert found.counts.tolist() == [logs.size for logs in there.values()]
    assert found.means == pytest.approx([logs.mean() for logs in there.values()])
    assert found.squares == pytest.approx([logs.var() * logs.size for logs in there.values()], abs=1e-7)


def test_the_fork_sd_is_pooled_within_nights_whatever_lies_between_them():
    found = nights_of(series([[1.0, 1.1, 1.2], [50.0, 55.0, 60.0], [7.0]]))
    assert found.fork_sd() == pytest.approx(np.log([1.0, 1.1, 1.2]).std(ddof=1))


# Values that may be 0, night by night: a night is the arithmetic mean of its forks.


def pauses(*nights: list[float]) -> Series:
    return series(nights, additive=True)


def test_a_night_is_the_arithmetic_mean_of_its_forks_and_its_spread_a_share_of_it():
    found = nights_of(pauses([0.0, 3.0, 3.0], [0.0, 0.0], [4.0]))
    assert found.means.tolist() == [math.log(2), -math.inf, math.log(4)]
    assert found.squares.tolist() == [1.0 + 0.25 + 0.25, 0.0, 0.0]


def test_twice_the_pauses_are_screened_with_the_ratio_of_means():
    quiet = [
        [1.0, 0.0, 2.0, 1.0],
        [0.0, 2.0, 1.1, 1.0],
        [1.0, 1.0, 0.9, 1.0],
        [2.0, 0.0, 1.0, 1.05],
        [1.0] * 4,
    ]
    found = tonight(pauses(*quiet * 6, [12.0, 9.0, 11.0, 10.0]))
    assert found is not None
    assert (found.direction, found.since) == ("slower", 31)
    assert found.effect_percent == pytest.approx(950, abs=10)


# Recovery.


MARGIN = 0.05
OLD = np.array([0.0, 0.01, -0.01, 0.005, -0.005])


def test_three_nights_at_the_old_level_are_equivalent_to_it_and_two_are_not():
    assert recovered(np.array([0.2, 0.0, 0.01, -0.01]), OLD, MARGIN)
    assert not recovered(np.array([0.2, 0.0, 0.01]), OLD, MARGIN)


def test_equivalence_is_two_one_sided_tests():
    newest = np.array([0.02, 0.03, 0.01])
    squares = ((newest - newest.mean()) ** 2).sum() + ((OLD - OLD.mean()) ** 2).sum()
    error = math.sqrt(squares / 6 * (1 / 3 + 1 / 5))
    bound = newest.mean() + t.ppf(0.95, 6) * error
    assert recovered(newest, OLD, math.expm1(bound + 1e-6))
    assert not recovered(newest, OLD, math.expm1(bound - 1e-6))


def test_noisier_nights_take_more_of_them():
    rng = np.random.default_rng(1)
    older, newer = rng.normal(0, 0.04, 30), rng.normal(0, 0.04, 20)
    assert not recovered(newer[:3], older, MARGIN)
    assert recovered(newer, older, MARGIN)


@pytest.mark.parametrize("level", [math.log(1.05), math.log(1.1)])
def test_a_figure_that_stays_off_hardly_ever_recovers(level: float):
    rng = np.random.default_rng(2)
    found = [recovered(rng.normal(level, 0.02, 10), rng.normal(0, 0.02, 20), MARGIN) for _ in range(200)]
    assert sum(found) <= 0.15 * 200


def test_a_night_is_on_its_way_back_within_the_margin_and_nearer_to_the_old_level():
    assert is_nearer(0.01, 0.0, 0.1, MARGIN)
    assert not is_nearer(0.06, 0.0, 0.3, MARGIN)
    assert not is_nearer(0.04, 0.0, 0.06, MARGIN)
