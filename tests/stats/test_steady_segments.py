import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import lfilter

from benchctl.results.figures import Course
from benchctl.stats.steady import autocorrelation, find_course

SIGMA = 0.1


def noise(size: int, phi: float = 0.0, seed: int = 1):
    shocks = np.random.default_rng(seed).normal(0, SIGMA * math.sqrt(1 - phi**2), size)
    shocks[0] /= math.sqrt(1 - phi**2)
    return lfilter([1.0], [1.0, -phi], shocks)


def course_of(logs: np.ndarray) -> Course:
    return find_course(np.exp(logs) * 1e6, np.arange(logs.size), logs.size)


def stepped(*levels: float, each: int = 100, seed: int = 1):
    """Noise on levels in milliseconds, of so many requests each."""
    return np.repeat(np.log(levels), each) + noise(each * len(levels), seed=seed)


def test_noise_alone_is_flat():
    found = course_of(noise(400))
    assert (found.kind, found.steady_from, found.of, found.bounds) == ("flat", 0, 400, (0,))
    assert found.levels_ns == pytest.approx((1e6,), rel=0.02)


def test_a_level_that_fell_and_stayed_is_a_warm_up():
    found = course_of(stepped(2, 1, 1, 1))
    assert found.kind == "warm-up"
    assert found.steady_from == pytest.approx(100, abs=3)
    assert found.levels_ns == pytest.approx((2e6, 1e6), rel=0.03)


def test_a_level_that_rose_and_stayed_is_a_slowdown():
    assert course_of(stepped(1, 1, 1.5, 1.5)).kind == "slowdown"
    assert course_of(stepped(2, 1, 1.5, 1.5)).kind == "slowdown"


@pytest.mark.parametrize("levels", [(2, 2, 2, 2, 1), (1, 1, 1, 1, 2)])
def test_a_level_that_began_in_the_last_quarter_may_not_last(levels: tuple[float, ...]):
    found = course_of(stepped(*levels))
    assert found.kind == "no steady state"
    assert found.steady_from == pytest.approx(400, abs=3)


def test_levels_within_one_percent_are_one():
    quiet = np.repeat(np.log([1.008, 1.0]), 200) + noise(400) / 100
    assert course_of(quiet).kind == "flat"
    louder = np.repeat(np.log([1.03, 1.0]), 200) + noise(400) / 100
    assert course_of(louder).kind == "warm-up"


def test_another_spread_on_the_same_level_is_no_other_level():
    spread = np.concatenate([noise(200) * 3, noise(200, seed=2) / 3])
    assert course_of(spread - spread.mean()).bounds in {(0,), (0, 200)}
    symmetric = np.tile([0.3, -0.3], 100)
    assert course_of(np.concatenate([symmetric, symmetric / 30])).kind == "flat"


def test_single_slow_requests_are_no_level():
    spiky = noise(300)
    spiky[[60, 61, 150, 299]] += 3.0
    assert course_of(spiky).kind == "flat"


def test_cold_first_requests_are_no_outliers():
    cold = noise(300)
    cold[:4] += [4.0, 3.0, 2.5, 2.0]
    found = course_of(cold)
    assert (found.kind, found.steady_from) == ("warm-up", 4)


def test_correlated_noise_is_not_taken_for_levels():
    kinds = [course_of(noise(1000, 0.9, seed)).kind for seed in range(20)]
    assert kinds.count("flat") >= 19


def test_under_twenty_requests_nothing_is_told():
    assert find_course(np.full(19, 5.0), np.arange(19), 19) is None


def test_a_change_between_two_candidates_leaves_no_segment_of_both_levels():
    """A cut may at first be at multiples of 4 of 500 values only."""
    for place in range(101, 161):
        logs = noise(500, seed=place) * 0.7
        logs[:place] += math.log(2)
        found = course_of(logs)
        assert (found.kind, len(found.bounds)) == ("warm-up", 2)
        assert found.steady_from == pytest.approx(place, abs=1)


def test_autocorrelation_is_that_of_the_noise_not_of_the_levels():
    for phi in (0.0, 0.3, 0.7):
        logs = noise(3000, phi)
        logs[:1000] += 1.0
        assert autocorrelation(logs) == pytest.approx(phi, abs=0.08)
    assert autocorrelation(np.zeros(30)) == 0.0


@settings(deadline=None)
@given(st.lists(st.integers(1, 10**9), min_size=20, max_size=80))
def test_any_course_is_in_order_and_inside(values: list[int]):
    found = find_course(np.asarray(values, dtype=np.float64), np.arange(len(values)) * 3, 3 * len(values))
    assert found.bounds[0] == 0
    assert all(low < high for low, high in pairwise((*found.bounds, found.of)))
    assert found.steady_from == found.bounds[-1]
    assert len(found.levels_ns) == len(found.bounds)
    assert all(min(values) * 0.999 <= level <= max(values) * 1.001 for level in found.levels_ns)
    assert all(abs(math.log(high / low)) > math.log(1.01) for low, high in pairwise(found.levels_ns))


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6), factor=st.floats(1e-3, 1e3))
def test_the_unit_of_time_makes_no_difference(seed: int, factor: float):
    logs = stepped(1.4, 1, 1, seed=seed)
    plain, scaled = course_of(logs), course_of(logs + math.log(factor))
    assert (plain.kind, plain.bounds) == (scaled.kind, scaled.bounds)
