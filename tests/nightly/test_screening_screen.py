import math
from collections.abc import Collection

import numpy as np
import pytest
from scipy.stats import kstest, norm, t

from benchctl.nightly.model import Series
from benchctl.nightly.screening import PRIOR_NIGHTS, PRIOR_SD, Screened, _scores, nights_of, screen
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
        higher_is_better=found.higher_is_better,
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
        assert screen(nights, night, usual=[1, 2], margin=0.05, higher_is_better=False) is None


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
    assert (found.since, found.last_good, found.baseline_nights) == (21, 20, 20)
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
    assert (found.since, found.baseline_nights, found.last_good) == (21, 20, 20)
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
