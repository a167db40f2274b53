import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.stats.arrays import StartOrder, start_counts
from benchctl.stats.summary import Thirds


def drift(values: list[int], last: int | None = None) -> float | None:
    starts = np.arange(len(values))
    counts = start_counts()
    counts.add(starts)
    thirds = Thirds(StartOrder(counts), len(values) if last is None else last)
    thirds.add(np.asarray(values), starts)
    return thirds.drift()


def test_drift_is_the_log_ratio_of_the_outer_thirds():
    assert drift([200, 200, 150, 150, 100, 100]) == pytest.approx(math.log(0.5))
    assert drift([1, 2, 3, 4, 5]) is None
    assert drift([0, 2, 3, 4, 5, 6]) is None


def test_a_warm_up_of_few_requests_is_in_the_drift():
    assert drift([300] * 12 + [100] * 88) == pytest.approx(-12 / 33 * math.log(3))


def test_only_the_last_values_are_in_the_drift():
    assert drift([900] * 50 + [200, 200, 150, 150, 100, 100], 6) == pytest.approx(math.log(0.5))


@settings(deadline=None)
@given(st.lists(st.integers(1, 10**9), min_size=6, max_size=50))
def test_drift_of_reversed_time_is_its_negative(values: list[int]):
    assert drift(values[::-1]) == pytest.approx(-drift(values))
