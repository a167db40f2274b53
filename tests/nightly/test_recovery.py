import math

import pytest

from benchctl.nightly.screening import recovered
from nightly.made import series

OLD = math.log(10)


def back(values: list[float], *, raised: float = 20.0, nights: int = 3) -> bool:
    found = series([[value] if value else [] for value in values])
    return recovered(
        found, len(values), baseline_log=OLD, raised_effect_percent=raised, margin=0.05, nights=nights
    )


def test_three_nights_at_the_old_level_are_a_recovery():
    assert back([12.0, 12.0, 10.1, 9.9, 10.0])


def test_two_nights_may_be_chance():
    assert not back([12.0, 12.0, 10.1, 9.9])
    assert back([12.0, 12.0, 10.1], nights=1)


def test_fewer_nights_than_are_asked_for_show_nothing():
    assert not back([10.0, 10.0])
    assert back([10.0, 10.0], nights=2)


def test_a_missing_night_between_them_does_not_matter():
    assert back([12.0, 10.1, 0, 9.9, 10.0])


def test_a_night_without_a_value_shows_nothing():
    assert not back([10.0, 10.0, 0])


@pytest.mark.parametrize("value", [10.6, 9.4, 11.0])
def test_outside_the_margin_of_the_old_level_is_not_back(value: float):
    assert not back([12.0, value, value, value])


def test_nearer_to_the_level_of_the_alarm_is_not_back():
    assert not back([10.6, 10.4, 10.4, 10.4], raised=6.0)
    assert back([10.6, 10.2, 10.2, 10.2], raised=6.0)


def test_what_got_faster_recovers_by_getting_slower():
    assert back([8.0, 9.8, 10.1, 10.0], raised=-20.0)
    assert not back([8.0, 8.1, 8.0, 8.1], raised=-20.0)
