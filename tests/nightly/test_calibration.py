"""The screen and its confirmation over made-up nights; `nightly.simulation` prints the table at any size."""

import math

import numpy as np
import pytest

from nightly.simulation import CELLS, FIVE, TEN, Process, replay, share_screened, shares_confirmed

SERIES = 100


def test_eighty_unchanged_series_are_rarely_screened_and_hardly_ever_alarmed():
    process, rng = Process(), np.random.default_rng(1)
    found = [status for one in process.draw(80, rng) for _, status in replay(one, process, rng)]
    assert 0 < len(found) <= 0.15 * 80
    assert found.count("confirmed") <= 1


@pytest.mark.parametrize("at", [10, 60])
@pytest.mark.parametrize(("step", "least"), [(TEN, 0.95), (-TEN, 0.95), (FIVE, 0.6), (-FIVE, 0.6)])
def test_a_step_is_screened_within_six_nights(at: int, step: float, least: float):
    assert share_screened(Process(nights=at + 5, step=step, at=at), SERIES, 2) >= least


@pytest.mark.parametrize(
    ("cell", "least", "most"),
    [
        ("no change, t3", 0.0, 0.4),
        ("no change, AR .3", 0.0, 0.4),
        ("+10% at night 5", 0.7, 1.0),
        ("+10% at night 60, t3", 0.95, 1.0),
        ("+10% at night 60, AR .3", 0.95, 1.0),
        ("+1% a night from night 30 on", 0.95, 1.0),
    ],
)
def test_other_noise_early_steps_and_drifts_do_what_the_documentation_reports(
    cell: str, least: float, most: float
):
    assert least <= share_screened(CELLS[cell], SERIES, 3) <= most


def test_a_change_of_twice_the_margin_is_confirmed_and_none_is_refuted():
    shares = shares_confirmed(TEN, SERIES, 4)
    assert shares["confirmed"] >= 0.8
    assert shares["refuted"] <= 0.02
    shares = shares_confirmed(0.0, SERIES, 5)
    assert shares["refuted"] >= 0.8
    assert shares["confirmed"] <= 0.05


def test_a_short_budget_leaves_a_change_unconfirmed_and_does_not_refute_it():
    shares = shares_confirmed(FIVE, SERIES, 6, most=6)
    assert shares["unconfirmed"] >= 0.8
    assert shares["refuted"] <= 0.05


def test_a_step_raises_one_alarm_since_about_its_first_night():
    process, rng = Process(nights=40, step=TEN, at=20), np.random.default_rng(7)
    alarms = []
    for one in process.draw(60, rng):
        nights = [night for night, status in replay(one, process, rng) if status == "confirmed"]
        alarms.append(len(nights))
        assert all(night >= 20 for night in nights)
    assert np.mean([count == 1 for count in alarms]) >= 0.9


def test_a_step_and_its_end_are_two_alarms_where_nobody_takes_the_second_for_a_recovery():
    process, rng = Process(nights=60, step=math.log(1.2), at=20, until=40), np.random.default_rng(8)
    ways = [
        [night for night, status in replay(one, process, rng) if status == "confirmed"]
        for one in process.draw(40, rng)
    ]
    assert np.mean([len(one) == 2 and one[0] < 26 and 40 <= one[1] < 46 for one in ways]) >= 0.9
