import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchctl.stats.arrays import ValueCounts
from benchctl.stats.disturbed import FarBeyond
from benchctl.stats.summary import START_BINS, Groups, Neighbours, Thirds, effective_samples

NONE_FAR = FarBeyond(1e18, 10.0)


def lag1(values: list[float], clients: list[int] | None = None) -> float | None:
    found = Neighbours(float(np.mean(values)), NONE_FAR)
    found.add(np.asarray(values), np.asarray(clients or [0] * len(values), dtype=np.int16))
    return found.lag1


def drift(values: list[int]) -> float | None:
    starts = np.arange(len(values))
    counts = ValueCounts()
    counts.add(starts)
    thirds = Thirds(counts)
    thirds.add(np.asarray(values), starts, np.zeros(len(values), np.int16))
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


@settings(deadline=None)
@given(st.lists(st.integers(1, 10**9), min_size=6, max_size=50))
def test_drift_of_reversed_time_is_its_negative(values: list[int]):
    assert drift(values[::-1]) == pytest.approx(-drift(values))


@settings(deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 10**4), st.integers(1, 10**6)), min_size=6, max_size=60),
    bins=st.integers(1, 60),
)
@example(rows=[(0, 1), (0, 1), (0, 1), (500, 1), (4500, 1), (4500, 1)], bins=2)
def test_thirds_are_exact_however_coarsely_the_starts_were_counted(rows: list[tuple[int, int]], bins: int):
    starts, values = (np.asarray(column) for column in zip(*rows, strict=True))
    clients = (np.arange(starts.size) % 4).astype(np.int16)
    counts = ValueCounts(bins)
    counts.add(starts)
    thirds = Thirds(counts)
    for part in (slice(0, 4), slice(4, None)):
        thirds.add(values[part], starts[part], clients[part])
    ordered, third = values[np.lexsort((clients, starts))], values.size // 3
    expected = np.log(ordered[-third:]).mean() - np.log(ordered[:third]).mean()
    assert thirds.drift() == pytest.approx(expected, rel=1e-12, abs=1e-12)


def grouped(values: np.ndarray, chunk: int = 10**6, bins: int = START_BINS):
    """Requests of three clients in turn, handed over client by client, as files of samples are."""
    starts, clients = np.arange(values.size) * 1000, (np.arange(values.size) % 3).astype(np.int16)
    counts = ValueCounts(bins)
    counts.add(starts)
    groups = Groups(counts, values.min(initial=10**9), values.max(initial=1))
    for client in range(3):
        mine = np.flatnonzero(clients == client)
        for low in range(0, mine.size, chunk):
            part = mine[low : low + chunk]
            groups.add(values[part], starts[part], clients[part])
    return groups.medians()


def test_few_requests_stand_for_themselves_in_order_of_their_starts():
    values = np.arange(1, 513)
    medians, begins = grouped(values, chunk=7)
    assert medians.tolist() == values.tolist()
    assert begins.tolist() == list(range(512))


def test_more_are_stood_for_by_medians_of_equal_groups():
    values = np.random.default_rng(1).integers(1, 10**6, 1027)
    medians, begins = grouped(values)
    assert begins.tolist() == list(range(0, 1027, 3))
    assert medians[:342].tolist() == np.median(values[:1026].reshape(342, 3), axis=1).tolist()
    assert medians[342] == values[1026]


def test_medians_of_very_many_are_close_and_know_their_places():
    size = START_BINS * 2 + 5
    levels = np.where(np.arange(size) < 30_000, 2e6, 1e6)
    values = (levels * np.exp(np.random.default_rng(1).normal(0, 0.3, size))).astype(np.int64)
    medians, begins = grouped(values, chunk=10_000)
    assert medians.size == begins.size <= 512
    sizes = np.diff([*begins, size])
    assert sizes[:-1].max() - sizes[:-1].min() <= 10
    exact = [np.median(values[low:high]) for low, high in pairwise([*begins, size])]
    assert medians == pytest.approx(exact, rel=0.005)


def test_equal_values_and_none_at_all():
    medians, _ = grouped(np.full(START_BINS + 1, 5000))
    assert medians == pytest.approx(5000)
    medians, begins = grouped(np.zeros(0, np.int64))
    assert (medians.size, begins.size) == (0, 0)
