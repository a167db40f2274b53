import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from benchctl.results.figures import Quantiles
from benchctl.stats.quantiles import quantiles


def quantiles_of(*values: int, failed: int = 0) -> Quantiles | None:
    return quantiles(np.asarray(values, dtype=np.int64), failed)


def plain_quantiles(values: npt.NDArray[np.int64], failed: int = 0) -> Quantiles | None:
    """Both estimators over every single value; failed requests rank above all."""
    if values.size == 0:
        return None
    estimates = [
        (_harrell_davis(np.sort(values), failed, share), _log_error(np.sort(values), failed, share))
        for share in (0.5, 0.9, 0.99)
    ]
    return Quantiles(*(value for value, _ in estimates), *(error for _, error in estimates))


def _harrell_davis(ordered: npt.NDArray[np.int64], failed: int, share: float) -> float | None:
    n = ordered.size + failed
    up_to = beta((n + 1) * share, (n + 1) * (1 - share)).cdf(np.arange(n + 1) / n)
    weights, unknown = np.diff(up_to)[: ordered.size], 1 - up_to[ordered.size]
    weights[-1] += unknown
    return float(weights @ ordered) if unknown < 1e-3 else None


def _log_error(ordered: npt.NDArray[np.int64], failed: int, share: float) -> float | None:
    n = ordered.size + failed
    low, high = n * share - math.sqrt(n * share * (1 - share)), n * share + math.sqrt(n * share * (1 - share))
    if low <= 0 or high >= ordered.size:
        return None
    # The value of rank k stands for the ranks from k - 1 to k.
    least, most = np.interp([low, high], np.arange(ordered.size) + 0.5, ordered)
    return math.log(most / least) / 2 if least > 0 else None


@settings(deadline=None)
@given(st.lists(st.integers(1, 20) | st.integers(1, 10**12), min_size=1, max_size=200), st.integers(0, 10))
def test_those_that_carry_weight_give_what_every_sample_gives(values: list[int], failed: int):
    found, plain = quantiles_of(*values, failed=failed), plain_quantiles(np.asarray(values), failed)
    # scipy's weights of the far tail have lost digits to cancellation.
    slack = 1e-14 * max(values)
    for name in Quantiles.__struct_fields__:
        known = getattr(plain, name)
        assert getattr(found, name) == (
            None if known is None else pytest.approx(known, rel=1e-9, abs=max(slack, 1e-9))
        )


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
