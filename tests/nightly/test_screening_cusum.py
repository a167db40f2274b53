import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.nightly.screening import LIMIT, SLACK, rise


def plainly(steps: list[float]) -> tuple[float, int | None]:
    height, first = 0.0, None
    for place, step in enumerate(steps):
        grown = max(0.0, height + step)
        if grown == 0:
            first = None
        elif first is None:
            first = place
        height = grown
    return height, first


@given(st.lists(st.integers(-4, 4).map(float), max_size=40))
def test_the_sum_is_the_recursion_of_page(steps: list[float]):
    assert rise(np.array(steps, np.float64)) == plainly(steps)


def test_nothing_is_no_rise():
    assert rise(np.empty(0)) == (0.0, None)


def test_an_unchanged_series_passes_the_limit_in_a_direction_about_once_in_113_000_nights():
    scores = np.random.default_rng(1).normal(size=(400_000, 20)) - SLACK
    height, passed = np.zeros(400_000), 0
    for column in scores.T:
        height = np.maximum(0, height + column)
        passed += int((height > LIMIT).sum())
        height[height > LIMIT] = 0
    # One direction: Siegmund's approximation of the mean run is 113,000, less a start from 0.
    assert passed / scores.size == pytest.approx(1 / 113_000, rel=0.4)
