import math

import numpy as np
import pytest
from scipy.stats import t

from benchctl.nightly.screening import is_nearer, recovered

MARGIN = 0.05
OLD = np.array([0.0, 0.01, -0.01, 0.005, -0.005])


def test_three_nights_at_the_old_level_are_equivalent_to_it_and_two_are_not():
    assert recovered(np.array([0.2, 0.0, 0.01, -0.01]), OLD, MARGIN)
    assert not recovered(np.array([0.2, 0.0, 0.01]), OLD, MARGIN)


def test_equivalence_is_two_one_sided_tests():
    newest = np.array([0.02, 0.03, 0.01])
    squares = ((newest - newest.mean()) ** 2).sum() + ((OLD - OLD.mean()) ** 2).sum()
    error = math.sqrt(squares / 6 * (1 / 3 + 1 / 5))
    bound = newest.mean() + t.ppf(0.95, 6) * error
    assert recovered(newest, OLD, math.expm1(bound + 1e-6))
    assert not recovered(newest, OLD, math.expm1(bound - 1e-6))


def test_noisier_nights_take_more_of_them():
    rng = np.random.default_rng(1)
    older, newer = rng.normal(0, 0.04, 30), rng.normal(0, 0.04, 20)
    assert not recovered(newer[:3], older, MARGIN)
    assert recovered(newer, older, MARGIN)


@pytest.mark.parametrize("level", [math.log(1.05), math.log(1.1)])
def test_a_figure_that_stays_off_hardly_ever_recovers(level: float):
    rng = np.random.default_rng(2)
    found = [recovered(rng.normal(level, 0.02, 10), rng.normal(0, 0.02, 20), MARGIN) for _ in range(200)]
    assert sum(found) <= 0.15 * 200


def test_a_night_is_on_its_way_back_within_the_margin_and_nearer_to_the_old_level():
    assert is_nearer(0.01, 0.0, 0.1, MARGIN)
    assert not is_nearer(0.06, 0.0, 0.3, MARGIN)
    assert not is_nearer(0.04, 0.0, 0.06, MARGIN)
