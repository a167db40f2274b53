import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.nightly.screening import Nights
from benchctl.nightly.site.history import change_points, q_hat
from benchctl.stats.arrays import Floats


def nights(means: Floats, numbers: Floats | None = None) -> Nights:
    count = len(means)
    there = np.arange(1, count + 1) if numbers is None else numbers
    return Nights(there, np.asarray(means), np.zeros(count), np.ones(count, np.int64))


def noise(count: int, seed: int, sd: float = 0.02) -> Floats:
    return np.random.default_rng(seed).normal(0, sd, count)


def steps(count: int, seed: int, **at: float) -> Floats:
    made = noise(count, seed)
    for night, step in at.items():
        made[int(night[1:]) - 1 :] += step
    return made


@given(st.lists(st.integers(-20, 20).map(float), min_size=2, max_size=30))
def test_q_hat_is_the_energy_distance_of_all_pairs(values: list[float]):
    array = np.array(values)
    apart = np.abs(array[:, None] - array[None, :])
    n = array.size
    plainly = [
        t * (n - t) / n * (2 * apart[:t, t:].mean() - apart[:t, :t].mean() - apart[t:, t:].mean())
        for t in range(1, n)
    ]
    assert q_hat(array) * (apart.mean() or 1.0) == pytest.approx(np.array(plainly), abs=1e-9)


def test_a_step_is_located_with_both_levels():
    (found,) = change_points(nights(steps(120, 1, n81=0.05)))
    assert abs(found.night - 81) <= 2
    assert found.after_log - found.before_log == pytest.approx(0.05, abs=0.01)


def test_several_changes_are_located_one_within_another():
    found = change_points(nights(steps(400, 2, n101=0.08, n201=-0.08, n301=0.06)))
    assert [round(one.night / 10) for one in found] == [10, 20, 30]


def test_few_nights_are_enough_for_a_plain_change_but_not_under_twenty():
    assert change_points(nights(np.r_[noise(10, 1), 1 + noise(9, 2)])) == ()
    assert len(change_points(nights(np.r_[noise(12, 1), 1 + noise(12, 2)]))) == 1


def test_a_change_under_the_magnitude_is_not_reported_however_certain():
    made = noise(400, 4, sd=0.002)
    made[200:] += math.log(1.02)
    assert change_points(nights(made)) == ()


@pytest.mark.parametrize("count", [20, 57, 200])
def test_an_unchanged_series_rarely_has_one(count: int):
    assert sum(bool(change_points(nights(noise(count, seed, sd=0.1)))) for seed in range(1000)) <= 5


def test_eighty_unchanged_series_of_a_thousand_nights_have_no_change_point_and_take_no_time():
    started = time.process_time()
    assert not any(change_points(nights(noise(1000, seed))) for seed in range(80))
    assert time.process_time() - started < 3
