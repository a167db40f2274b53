import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats.mstats import hdquantiles

from benchctl.results.figures import Quantiles
from benchctl.stats.arrays import ValueCounts
from benchctl.stats.quantiles import quantiles
from stats.plain_summary import plain_quantiles


def quantiles_of(*values: int) -> Quantiles | None:
    samples = ValueCounts()
    samples.add(np.asarray(values, dtype=np.int64))
    return quantiles(samples)


@pytest.mark.parametrize("n", [2, 3, 10, 99, 1000, 50_000])
def test_harrell_davis_is_the_one_of_scipy(n: int):
    values = (np.random.default_rng(n).lognormal(0, 0.5, n) * 1e6).astype(np.int64)
    found = quantiles_of(*values)
    assert [found.p50, found.p90, found.p99] == pytest.approx(
        list(hdquantiles(values, [0.5, 0.9, 0.99])), rel=1e-12
    )


def test_linear_quantiles_interpolate():
    found = quantiles_of(*range(11))
    assert (found.linear_p50, found.linear_p90, found.linear_p99) == pytest.approx((5.0, 9.0, 9.9))


def test_one_sample_is_every_quantile():
    found = quantiles_of(7)
    assert (found.p50, found.p90, found.p99, found.linear_p90) == (7.0, 7.0, 7.0, 7.0)


def test_no_samples_have_no_quantiles():
    assert quantiles_of() is None


@settings(deadline=None)
@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=200))
def test_quantiles_rise_and_stay_inside_the_data(values: list[int]):
    found = quantiles_of(*values)
    slack = max(values) * 1e-9
    assert min(values) - slack <= found.p50 <= found.p90 + slack
    assert found.p90 <= found.p99 + slack <= max(values) + 2 * slack


@settings(deadline=None)
@given(st.lists(st.integers(1, 20) | st.integers(1, 10**12), min_size=1, max_size=200))
def test_counts_of_equal_samples_give_what_every_sample_gives(values: list[int]):
    found, plain = quantiles_of(*values), plain_quantiles(np.asarray(values))
    # scipy's weights of the far tail have lost digits to cancellation.
    slack = 1e-14 * max(values)
    for name in Quantiles.__struct_fields__:
        assert getattr(found, name) == pytest.approx(getattr(plain, name), rel=1e-10, abs=slack)


def test_quantiles_of_a_hundred_million_samples_take_no_memory_for_each():
    samples = ValueCounts()
    samples._values, samples._counts = np.arange(1, 101) * 1_000, np.full(100, 1_000_000)
    samples.size = 100_000_000
    found = quantiles(samples)
    assert (found.linear_p50, found.linear_p90) == pytest.approx((50_500, 90_100))
    assert found.p50 == pytest.approx(50_500, rel=1e-3)
    assert found.p99 == pytest.approx(99_500, rel=1e-3)
