import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.stats.arrays import StartOrder, start_counts
from benchctl.stats.disturbed import FarBeyond
from benchctl.stats.summary import Neighbours, Thirds, effective_samples

NONE_FAR = FarBeyond(1e18, 10.0)


def lag1(values: list[float], clients: list[int] | None = None) -> float | None:
    found = Neighbours(float(np.mean(values)), NONE_FAR)
    found.add(np.asarray(values), np.asarray(clients or [0] * len(values), dtype=np.int16))
    return found.lag1


def drift(values: list[int], last: int | None = None) -> float | None:
    starts = np.arange(len(values))
    counts = start_counts()
    counts.add(starts)
    thirds = Thirds(StartOrder(counts), len(values) if last is None else last)
    thirds.add(np.asarray(values), starts)
    return thirds.drift()


def test_lag1_of_a_known_process():
    generator = np.random.default_rng(1)
    values = np.zeros(50_000)
    for place, shock in enumerate(generator.normal(size=values.size - 1), 1):
        values[place] = 0.5 * values[place - 1] + shock
    assert lag1(values.tolist()) == pytest.approx(0.5, abs=0.02)


def test_lag1_does_not_reach_across_clients():
    values = [1.0, 1.0, 1.0, 9.0, 9.0, 9.0]
    assert lag1(values, [0, 0, 0, 1, 1, 1]) > lag1(values)


def test_lag1_of_too_little_or_constant_data_is_unknown():
    assert lag1([1, 2]) is None
    assert lag1([4, 4, 4]) is None


@given(values=st.lists(st.integers(1, 10**6), min_size=3, max_size=40), cuts=st.lists(st.integers(0, 40)))
def test_lag1_reaches_across_chunks_and_clients_may_stand_in_any_order(values: list[int], cuts: list[int]):
    clients = [place % 3 for place in range(len(values))]
    found = Neighbours(float(np.mean(values)), NONE_FAR)
    borders = sorted({0, len(values), *(cut for cut in cuts if cut < len(values))})
    for low, high in pairwise(borders):
        found.add(np.asarray(values[low:high]), np.asarray(clients[low:high], dtype=np.int16))
    order = np.argsort(clients, kind="stable")
    expected = lag1(np.asarray(values)[order].tolist(), np.asarray(clients)[order].tolist())
    assert found.lag1 == (None if expected is None else pytest.approx(expected, abs=1e-12))


def test_effective_samples_shrink_with_correlation_and_never_grow():
    assert effective_samples(100, 0.5) == pytest.approx(100 / 3)
    assert effective_samples(100, -0.5) == 100
    assert effective_samples(100, None) == 100


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
