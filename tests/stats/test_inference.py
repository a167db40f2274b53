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
    found = contrast([np.array(left), np.array(right)], [-1, 1])
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
    found = contrast([right - left], [1])
    expected = ttest_rel(right, left)
    assert found.p == pytest.approx(expected.pvalue, abs=1e-12)
    assert found.df == pytest.approx(expected.df)


@given(GROUP, GROUP, st.floats(0.1, 10), st.floats(-5, 5))
def test_scaling_the_weights_scales_the_estimate_and_shifting_a_group_shifts_it(
    left: list[float], right: list[float], factor: float, shift: float
):
    varied(left, right)
    plain = contrast([np.array(left), np.array(right)], [-1, 1])
    changed = contrast([np.array(left), np.array(right) + shift], [-factor, factor])
    assert changed.estimate == pytest.approx(factor * (plain.estimate + shift), abs=1e-9)
    assert changed.error == pytest.approx(factor * plain.error)
    assert changed.df == pytest.approx(plain.df, rel=1e-5)


def test_degrees_of_freedom_of_four_alike_groups_are_those_of_all_values():
    groups = [np.array([0.0, 1.0, 2.0]) + shift for shift in range(4)]
    found = contrast(groups, [1, -1, -1, 1])
    assert found.df == pytest.approx(8)
    assert found.estimate == pytest.approx(0)
    assert found.error == pytest.approx(np.sqrt(4 / 3))


def test_a_group_without_weight_does_not_count():
    groups = [np.array([0.0, 1.0, 2.0]), np.array([1.0, 2.0, 4.0]), np.array([9.0])]
    assert contrast(groups, [-1, 1, 0]) == contrast(groups[:2], [-1, 1])


@pytest.mark.parametrize("groups", [[], [[1.0], [1.0, 2.0]], [[1.0, 1.0], [2.0, 2.0]]])
def test_without_a_spread_there_is_nothing_to_test(groups: list[list[float]]):
    assert contrast([np.array(group) for group in groups], [1.0] * len(groups)) is None


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
