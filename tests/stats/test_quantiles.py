import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats.mstats import hdquantiles

from benchctl.stats.quantiles import quantiles


@pytest.mark.parametrize("n", [2, 3, 10, 99, 1000, 50_000])
def test_harrell_davis_is_the_one_of_scipy(n: int):
    values = (np.random.default_rng(n).lognormal(0, 0.5, n) * 1e6).astype(np.int64)
    found = quantiles(values)
    assert [found.p50, found.p90, found.p99] == pytest.approx(
        list(hdquantiles(values, [0.5, 0.9, 0.99])), rel=1e-12
    )


def test_linear_quantiles_interpolate():
    found = quantiles(np.arange(11))
    assert (found.linear_p50, found.linear_p90, found.linear_p99) == pytest.approx((5.0, 9.0, 9.9))


def test_one_sample_is_every_quantile():
    found = quantiles(np.array([7]))
    assert (found.p50, found.p90, found.p99, found.linear_p90) == (7.0, 7.0, 7.0, 7.0)


def test_no_samples_have_no_quantiles():
    assert quantiles(np.array([], dtype=np.int64)) is None


@settings(deadline=None)
@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=200))
def test_quantiles_rise_and_stay_inside_the_data(values: list[int]):
    found = quantiles(np.asarray(values))
    slack = max(values) * 1e-9
    assert min(values) - slack <= found.p50 <= found.p90 + slack
    assert found.p90 <= found.p99 + slack <= max(values) + 2 * slack
