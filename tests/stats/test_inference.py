"""The contrast is Welch's t and the paired t where these are defined, and their generalisation elsewhere."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import ttest_ind, ttest_rel

from benchctl.stats.inference import Ratio, contrast

GROUP = st.lists(st.floats(-3, 3, allow_nan=False), min_size=2, max_size=12)


def varied(*groups: list[float]) -> None:
    assume(all(np.var(group, ddof=1) > 1e-6 for group in groups))


@given(GROUP, GROUP)
def test_two_groups_are_welchs_t(left: list[float], right: list[float]):
    varied(left, right)
    found = contrast(np.array(left), np.array(right))
    expected = ttest_ind(right, left, equal_var=False)
    assert found.p == pytest.approx(expected.pvalue, abs=1e-12)
    assert found.df == pytest.approx(expected.df)
    for confidence in (0.9, 0.95):
        interval = expected.confidence_interval(confidence)
        assert found.interval(confidence) == pytest.approx((interval.low, interval.high))


@given(st.lists(st.tuples(st.floats(-3, 3), st.floats(-3, 3)), min_size=2, max_size=12))
def test_one_group_of_differences_is_the_paired_t(pairs: list[tuple[float, float]]):
    left, right = (np.array(side) for side in zip(*pairs, strict=True))
    varied((right - left).tolist())
    found = contrast(right - left)
    expected = ttest_rel(right, left)
    assert found.p == pytest.approx(expected.pvalue, abs=1e-12)
    assert found.df == pytest.approx(expected.df)


@pytest.mark.parametrize("groups", [[[1.0], [1.0, 2.0]], [[1.0, 1.0], [2.0, 2.0]]])
def test_without_a_spread_there_is_nothing_to_test(groups: list[list[float]]):
    assert contrast(*map(np.array, groups)) is None


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=3, max_size=12),
    st.booleans(),
)
def test_a_ratio_of_means_is_told_from_1_just_where_p_says_so(pairs: list[tuple[int, int]], paired: bool):  # noqa: FBT001 - drawn
    left, right = (np.array(side, np.float64) for side in zip(*pairs, strict=True))
    assume(left.any() and right.any())
    found = Ratio.of(left, right, paired=paired)
    assume(found is not None)
    low, high = found.bounds(0.95)
    assume(abs(found.p - 0.05) > 1e-6 and math.isfinite(high))
    assert (found.p <= 0.05) == (not low <= 1 <= high)
