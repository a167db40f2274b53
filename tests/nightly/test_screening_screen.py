import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import t, ttest_ind

from benchctl.nightly.model import Series
from benchctl.nightly.screening import Screened, nights_of, screen, screen_nights
from nightly.made import drawn, series

SPREAD = [9.9, 10.0, 10.1, 9.95, 10.05]


def tonight(found: Series, *, margin: float = 0.05, resets: Sequence[int] = ()) -> Screened | None:
    """The last night against all before."""
    night = int(found.nights[-1])
    return screen(found, night, candidates=range(1, night), margin=margin, resets=resets)


def steady(nights: int) -> list[list[float]]:
    return [[SPREAD[place % 5]] for place in range(nights)]


def test_a_night_without_a_value_is_not_screened():
    found = series([[10.0], [10.0], [], [20.0]])
    assert screen(found, 3, candidates=[1, 2], margin=0.05) is None
    assert screen(found, 9, candidates=[1, 2], margin=0.05) is None


def test_a_night_is_not_held_against_nothing_or_the_nights_to_come():
    found = series([[10.0, 10.1], [20.0, 20.1], [10.0, 10.1]])
    assert screen(found, 2, candidates=[], margin=0.05) is None
    assert screen(found, 2, candidates=[2, 3], margin=0.05) is None


def test_a_series_without_entries_is_not_screened():
    assert screen(series([]), 1, candidates=[1], margin=0.05) is None


def test_in_the_second_night_forks_are_held_against_forks_by_welch():
    before, now = [10.0, 10.2, 9.8], [11.0, 11.3, 10.9]
    found = tonight(series([before, now]))
    test = ttest_ind(np.log(now), np.log(before), equal_var=False)
    interval = test.confidence_interval(0.95)
    assert found.rules == ("step",)
    assert (found.since, found.last_good, found.baseline_nights) == (2, 1, 1)
    assert found.low_percent == pytest.approx(100 * math.expm1(interval.low))
    assert found.high_percent == pytest.approx(100 * math.expm1(interval.high))
    assert found.effect_log == pytest.approx(np.log(now).mean() - np.log(before).mean())


def test_forks_of_all_nights_count_while_there_are_under_five():
    before = [[10.0, 10.2], [9.8, 10.1, 10.3], [10.0], [9.9, 10.0]]
    now = [11.0, 11.1]
    found = tonight(series([*before, now]))
    test = ttest_ind(np.log(now), np.log(np.concatenate(before)), equal_var=False)
    assert found.low_percent == pytest.approx(100 * math.expm1(test.confidence_interval(0.95).low))


def test_a_single_fork_is_held_against_the_spread_of_earlier_ones():
    assert tonight(series([[10.0, 10.1, 9.9, 10.0], [20.0]])).effect_percent == pytest.approx(100, rel=0.01)
    assert tonight(series([[10.0, 14.0, 7.0], [12.0]])) is None


def test_one_fork_against_one_fork_says_nothing():
    assert tonight(series([[10.0], [20.0]])) is None


def test_from_five_nights_on_the_night_is_the_unit_however_many_forks_it_has():
    moody = [[level * (1 + place / 1e4) for place in range(20)] for level in (9.5, 10.5, 10.0, 9.4, 10.6)]
    calm = [[level * (1 + place / 1e4) for place in range(20)] for level in (10.0, 10.01, 9.99, 10.02, 9.98)]
    now = [10.7] * 20
    assert tonight(series([*moody, now])) is None
    assert tonight(series([*calm, now])).rules == ("step",)


def test_a_night_is_one_new_draw_from_the_nights_before():
    before, now = [9.9, 10.0, 10.1, 9.95, 10.05, 10.2], 11.5
    found = tonight(series([*([value] for value in before), [now]]))
    logs = np.log(before)
    reach = t.ppf(0.975, 5) * logs.std(ddof=1) * math.sqrt(1 + 1 / 6)
    assert found.effect_log == pytest.approx(math.log(now) - logs.mean())
    assert found.low_percent == pytest.approx(100 * math.expm1(found.effect_log - reach))
    assert found.high_percent == pytest.approx(100 * math.expm1(found.effect_log + reach))
    assert found.baseline_log == pytest.approx(logs.mean())


def test_a_night_of_fewer_forks_than_usual_has_to_stand_out_more():
    usual = [[9.0 * shift, 10.0 * shift, 11.1 * shift] for shift in (1.0, 1.005, 0.995, 1.002, 0.998)]
    assert tonight(series([*usual, [9.9, 11.0, 12.1]])) is not None
    assert tonight(series([*usual, [11.0]])) is None
    assert tonight(series([*usual, [20.0]])) is not None


def test_a_difference_within_the_margin_is_none_however_certain():
    assert tonight(series([*steady(10), [10.45]], first=1)) is None
    assert tonight(series([*steady(10), [10.6]])).direction == "slower"


def test_the_margin_is_a_ratio_alike_in_both_directions():
    assert tonight(series([*[[10.0]] * 10, [10.0 / 1.049]])) is None
    assert tonight(series([*[[10.0]] * 10, [10.0 / 1.051]])).direction == "faster"


@pytest.mark.parametrize(("higher_is_better", "direction"), [(True, "faster"), (False, "slower")])
def test_higher_values_are_faster_or_slower_as_the_metric_has_it(*, higher_is_better: bool, direction: str):
    assert tonight(series([*steady(10), [12.0]], higher_is_better=higher_is_better)).direction == direction


@pytest.mark.parametrize("nights", [1, 3, 10, 45])
def test_identical_values_are_found_only_when_they_change(nights: int):
    same = [[10.0, 10.0]] * nights
    assert tonight(series([*same, [10.0, 10.0]])) is None
    found = tonight(series([*same, [11.0, 11.0]]))
    assert found.effect_percent == pytest.approx(10)
    assert found.last_good == nights


def test_from_forty_nights_on_a_plain_change_is_an_outlier_at_once():
    found = tonight(series([*steady(40), [12.0]]))
    assert "outlier" in found.rules
    assert (found.since, found.last_good, found.baseline_nights) == (41, 40, 40)


def test_thirty_nine_nights_are_no_baseline_yet():
    assert tonight(series([*steady(39), [12.0]])).rules == ("step",)


def test_a_drift_is_found_by_its_sum_and_dated_back():
    values = [*steady(50), *[[10.3 if place % 2 else 10.35] for place in range(4)]]
    found = tonight(series(values))
    assert found.rules == ("drift",)
    assert (found.since, found.last_good) == (51, 50)
    assert found.effect_percent == pytest.approx(3.2, abs=0.3)
    assert found.low_percent < found.effect_percent < found.high_percent


def test_a_drift_under_half_the_margin_wakes_nobody():
    values = [[10.0 + place % 2 / 1e3] for place in range(40)] + [[10.03]] * 60
    assert tonight(series(values)) is None
    assert tonight(series(values), margin=0.004).rules == ("drift",)


def test_drifts_are_found_in_both_directions():
    assert tonight(series([*steady(40), *[[9.65]] * 6])).direction == "faster"


def test_the_sum_begins_anew_after_a_refuted_finding_but_the_change_is_dated_as_before():
    values = [*steady(50), *[[10.32]] * 4]
    assert tonight(series(values), resets=[54]).rules == ("drift",)
    assert tonight(series(values), resets=[53]) is None
    again = tonight(series([*values, *[[10.32]] * 4]), resets=[54])
    assert (again.rules, again.since) == (("drift",), 51)


def test_last_good_goes_back_after_every_refuted_finding():
    values = [*steady(50), *[[11.0]] * 4]
    nights = [
        tonight(series(values), resets=resets).last_good for resets in ([], [51], [51, 52], [51, 52, 53])
    ]
    assert nights == [50, 49, 47, 43]


def test_a_changed_night_that_passed_as_usual_is_not_the_last_good_one():
    halfway = tonight(series([*steady(50), [10.6], [12.0]]))
    assert (halfway.since, halfway.last_good) == (52, 50)
    there = tonight(series([*steady(50), [11.2], [12.0]]))
    assert (there.since, there.last_good) == (51, 50)
    usual = tonight(series([*steady(50), [10.1], [12.0]]))
    assert (usual.since, usual.last_good) == (52, 51)


def test_until_forty_nights_stand_a_refuted_night_does_not_hide_the_next():
    values = [*steady(8), [11.0], [11.0]]
    assert tonight(series(values)) is None
    found = tonight(series(values), resets=[9])
    assert (found.baseline_nights, found.last_good) == (8, 7)


def test_two_nights_together_stand_out_where_each_alone_does_not():
    values = [*steady(40), [10.55], [10.55]]
    varied = [[value * (1 + 0.02 * math.sin(place * 1.7))] for place, (value,) in enumerate(values)]
    varied[-2:] = [[11.1], [11.1]]
    first = screen(series(varied), 41, candidates=range(1, 41), margin=0.05)
    assert first is None or "outlier" in first.rules
    assert "outlier" in tonight(series(varied)).rules


def test_a_night_after_a_refuted_outlier_is_not_blamed_for_it():
    assert tonight(series([*steady(44), [14.0], [10.35]]), resets=[45]) is None
    assert tonight(series([*steady(44), [14.0], [10.35]])) is not None


def test_missing_nights_are_passed_over():
    found = tonight(series([[10.0], [], [10.1], [], [9.9], [10.0], [], [9.95], [12.0]]))
    assert (found.baseline_nights, found.since, found.last_good) == (5, 9, 8)


@pytest.fixture
def repetitions(pytestconfig: pytest.Config) -> int:
    found: int = pytestconfig.getoption("--repetitions")
    return found


def delays(step: float, repetitions: int, *, seed: int, fork_sd: float = 0.0) -> list[int]:
    """Nights until a step after 45 unchanged ones is screened; the SD of a night is 2 %, forks included."""
    night_sd = math.sqrt(0.02**2 - fork_sd**2 / 5)
    found = []
    for number in range(repetitions):
        levels = [0.0] * 45 + [math.log1p(step)] * 7
        made = drawn(levels, seed=seed + number, night_sd=night_sd, fork_sd=fork_sd, forks=5)
        nights = nights_of(made)
        found.append(
            next(
                (
                    night - 45
                    for night in range(46, 53)
                    if screen_nights(
                        nights, night, candidates=range(1, night), margin=0.05, higher_is_better=False
                    )
                ),
                99,
            )
        )
    return found


@pytest.mark.parametrize("fork_sd", [0.0, 0.04])
def test_a_step_of_ten_percent_is_screened_within_two_nights(repetitions: int, fork_sd: float):
    found = delays(0.10, repetitions, seed=1, fork_sd=fork_sd)
    assert np.mean(np.array(found) <= 2) >= 0.95


def test_a_step_of_five_percent_is_screened_within_seven_nights(repetitions: int):
    assert np.mean(np.array(delays(0.05, repetitions, seed=2)) <= 7) >= 0.90


def test_an_unchanged_series_is_rarely_screened_while_its_baseline_grows():
    screened = 0
    for number in range(100):
        nights = nights_of(drawn([0.0] * 40, seed=number))
        screened += sum(
            screen_nights(nights, night, candidates=range(1, night), margin=0.0, higher_is_better=False)
            is not None
            for night in range(6, 41)
        )
    assert 0.006 <= screened / (100 * 35) <= 0.015
