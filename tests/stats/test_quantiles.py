import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.results.figures import Quantiles
from benchctl.stats.arrays import ValueCounts
from benchctl.stats.quantiles import quantiles
from stats.plain_summary import plain_quantiles


def quantiles_of(*values: int, failed: int = 0) -> Quantiles | None:
    samples = ValueCounts()
    samples.add(np.asarray(values, dtype=np.int64))
    return quantiles(samples, failed)


@settings(deadline=None)
@given(st.lists(st.integers(1, 20) | st.integers(1, 10**12), min_size=1, max_size=200), st.integers(0, 10))
def test_counts_of_equal_samples_give_what_every_sample_gives(values: list[int], failed: int):
    found, plain = quantiles_of(*values, failed=failed), plain_quantiles(np.asarray(values), failed)
    # scipy's weights of the far tail have lost digits to cancellation.
    slack = 1e-14 * max(values)
    for name in Quantiles.__struct_fields__:
        known = getattr(plain, name)
        assert getattr(found, name) == (
            None if known is None else pytest.approx(known, rel=1e-9, abs=max(slack, 1e-9))
        )


def test_quantiles_of_a_hundred_million_samples_take_no_memory_for_each():
    samples = ValueCounts()
    samples._values, samples._counts = np.arange(1, 101) * 1_000, np.full(100, 1_000_000)
    samples.size = 100_000_000
    found = quantiles(samples)
    assert found.p50 == pytest.approx(50_500, rel=1e-3)
    assert found.p99 == pytest.approx(99_500, rel=1e-3)


def test_a_task_whose_slowest_requests_time_out_does_not_get_faster():
    times = (np.random.default_rng(1).lognormal(0, 0.5, 2_000) * 1e6).astype(np.int64)
    answered = np.sort(times)[:1_900]
    whole, cut = quantiles_of(*times), quantiles_of(*answered, failed=100)
    assert quantiles_of(*answered).p99 < 0.75 * whole.p99
    assert cut.p99 is None
    assert cut.error_p99 is None
    # What failed carries next to no weight there.
    assert (cut.p50, cut.p90) == pytest.approx((whole.p50, whole.p90), rel=1e-6)
    assert (cut.error_p50, cut.error_p90) == pytest.approx((whole.error_p50, whole.error_p90))


@pytest.mark.parametrize(("failed", "known"), [(10, [True, True, False]), (100, [True, False, False])])
def test_a_quantile_that_failed_requests_decide_is_none(failed: int, known: list[bool]):
    """Of 1,000; failures of less than a tenth of 1 - q weigh nothing, of 1 - q and more everything."""
    found = quantiles_of(*range(1_000, 2_000 - failed), failed=failed)
    assert [value is not None for value in (found.p50, found.p90, found.p99)] == known


@pytest.mark.parametrize("quantile", ["p50", "p90", "p99"])
@pytest.mark.parametrize("size", [200, 1_000])
def test_a_quantile_s_own_error_is_the_spread_of_its_estimate(quantile: str, size: int):
    """Never less than the SD over forks but for chance, and at most 45% more, at two requests beyond p99."""
    generator = np.random.default_rng(20240301)
    for draw in (generator.lognormal, generator.exponential):
        found = [quantiles_of(*(1e6 * draw(size=size)).astype(np.int64) + 1) for _ in range(200)]
        logs = np.log([getattr(one, quantile) for one in found])
        errors = np.array([getattr(one, f"error_{quantile}") for one in found])
        assert 0.9 <= math.sqrt(np.mean(errors**2)) / logs.std(ddof=1) <= 1.45


@pytest.mark.parametrize(("size", "known"), [(9, [True, False]), (11, [True, True])])
def test_no_error_is_known_of_a_quantile_beyond_the_samples(size: int, known: list[bool]):
    found = quantiles_of(*range(1, size + 1))
    assert [found.error_p50 is not None, found.error_p90 is not None] == known
    assert found.error_p99 is None
