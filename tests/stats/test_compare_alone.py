import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from benchctl.stats.compare import own_interval


@given(st.lists(st.floats(0.01, 1e6), min_size=2, max_size=30))
def test_it_is_the_t_interval_of_the_mean_logarithm(values: list[float]):
    logs = [math.log(value) for value in values]
    found = own_interval(values)
    assert found is not None
    low, high = found
    middle, error = sum(logs) / len(logs), stats.sem(logs)
    if error < 1e-12:
        assert low == pytest.approx(high)
    else:
        expected = stats.t.interval(0.95, len(logs) - 1, loc=middle, scale=error)
        assert (math.log(low), math.log(high)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    "values", [[], [3.0], [3.0, None], [None, None], [1.0, 0.0], [1.0, math.nan, math.inf]]
)
def test_one_usable_value_has_no_interval(values: list[float | None]):
    assert own_interval(values) is None


def test_forks_on_the_same_index_build_are_one_value():
    assert own_interval([2.0, 2.0, 8.0, 8.0], (0, 0, 1, 1)) == pytest.approx(own_interval([2.0, 8.0]))
    assert own_interval([2.0, 3.0], (0, 0)) == own_interval([2.0, 3.0])
