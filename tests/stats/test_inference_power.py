import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import nct, t, ttest_ind, ttest_rel

from benchctl.stats.inference import (
    forks_for_width,
    forks_needed,
    interval_half_width,
    mde,
    mde_paired,
)


def power(ncp: float, df: int) -> float:
    """Chance that a two-sided t-test at 5 % rejects, by the noncentral t distribution."""
    critical = t.isf(0.025, df)
    return float(nct.sf(critical, df, ncp) + nct.sf(critical, df, -ncp))


@pytest.mark.parametrize(
    ("forks", "expected"), [(3, 3.07), (5, 2.02), (7, 1.63), (10, 1.32), (15, 1.06), (20, 0.91)]
)
def test_minimum_detectable_effect_in_units_of_the_fork_sd(forks: int, expected: float):
    assert mde(forks, forks, 1.0) == pytest.approx(expected, abs=0.006)


def test_two_percent_forks_see_what_the_planning_table_says():
    assert mde(5, 5, 2.0) == pytest.approx(4.0, abs=0.06)
    assert mde(10, 10, 2.0) == pytest.approx(2.6, abs=0.06)


def test_power_at_the_detectable_effect_is_the_wanted_one():
    ncp = mde(7, 4, 3.0, power=0.9) / (3.0 * math.sqrt(1 / 7 + 1 / 4))
    assert power(ncp, 9) == pytest.approx(0.9)


def test_paired_effect_satisfies_its_own_power():
    ncp = mde_paired(6, 0.5) / (0.5 / math.sqrt(6))
    assert power(ncp, 5) == pytest.approx(0.8)
    assert mde_paired(1, 0.5) == math.inf


def test_too_few_forks_see_nothing():
    assert mde(1, 1, 1.0) == math.inf
    assert mde(0, 5, 1.0) == math.inf


def test_noisy_forks_need_many():
    assert forks_needed(0.10, 0.15) in range(35, 41)
    assert forks_needed(0.05, 0.15) in range(140, 151)


def test_no_effect_cannot_be_planned_for():
    with pytest.raises(ValueError, match="positive"):
        forks_needed(0.0, 1.0)


@settings(deadline=None)
@given(st.floats(0.05, 5), st.floats(0.05, 2))
def test_forks_needed_is_the_least_number_that_suffices(effect: float, sd: float):
    forks = forks_needed(effect, sd)
    assert mde(forks, forks, sd) <= effect
    assert forks == 3 or mde(forks - 1, forks - 1, sd) > effect
    pairs = forks_needed(effect, sd, paired=True)
    assert mde_paired(pairs, sd) <= effect
    assert pairs == 3 or mde_paired(pairs - 1, sd) > effect


@settings(deadline=None)
@given(st.integers(2, 30), st.floats(0.01, 10))
def test_detectable_effect_lies_above_the_critical_value(forks: int, sd: float):
    assert mde(forks, forks, sd) > float(t.isf(0.025, 2 * forks - 2)) * sd * math.sqrt(2 / forks)


def test_interval_widths_are_those_of_the_t_tests():
    rng = np.random.default_rng(3)
    one, other = rng.normal(size=(2, 12))
    other = other / other.std(ddof=1) * one.std(ddof=1)
    found = ttest_ind(one, other).confidence_interval(0.95)
    assert interval_half_width(12, one.std(ddof=1)) == pytest.approx((found.high - found.low) / 2)
    pairs = ttest_rel(one, other).confidence_interval(0.95)
    sd = (one - other).std(ddof=1)
    assert interval_half_width(12, sd, paired=True) == pytest.approx((pairs.high - pairs.low) / 2)


@settings(deadline=None)
@given(st.floats(0.02, 5), st.floats(0.05, 2), st.booleans())
def test_forks_for_a_width_are_the_least_that_suffice(width: float, sd: float, paired: bool):  # noqa: FBT001 - hypothesis passes it by position
    forks = forks_for_width(width, sd, paired=paired)
    assert interval_half_width(forks, sd, paired=paired) <= width
    assert forks == 3 or interval_half_width(forks - 1, sd, paired=paired) > width
    assert forks_for_width(width, sd, paired=paired, least=8) == max(8, forks)


def test_no_interval_has_no_width():
    with pytest.raises(ValueError, match="positive"):
        forks_for_width(0.0, 1.0)
