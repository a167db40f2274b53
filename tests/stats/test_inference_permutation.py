import numpy as np
import pytest

from benchctl.stats.inference import permutation_p


@pytest.mark.parametrize(("forks", "least"), [(3, 0.10), (4, 0.029), (5, 0.0079), (7, 0.0006)])
def test_least_p_of_separated_sides(forks: int, least: float):
    values = np.arange(forks, dtype=float)
    found = permutation_p(values, values + 100, paired=False)
    assert found.p == pytest.approx(found.least)
    assert found.least == pytest.approx(least, abs=0.0005)
    assert found.exact


def test_least_p_of_pairs():
    values = np.array([1.0, 5.0, 2.0, 8.0, 3.0])
    found = permutation_p(values, values + np.array([1.0, 1.1, 0.9, 1.2, 1.3]), paired=True)
    assert found.p == pytest.approx(found.least) == pytest.approx(2 / 2**5)


def test_equal_sides_have_no_evidence():
    values = np.array([1.0, 2.0, 3.0, 4.0])
    assert permutation_p(values, values.copy(), paired=False).p == pytest.approx(1.0)


def test_many_forks_are_drawn_and_repeat():
    generator = np.random.default_rng(3)
    left, right = generator.normal(size=12), generator.normal(0.8, size=12)
    found = permutation_p(left, right, paired=False)
    assert not found.exact
    assert found.least == 2e-4
    assert found == permutation_p(left, right, paired=False)


def test_many_pairs_are_drawn():
    values = np.arange(20, dtype=float)
    found = permutation_p(values, values + np.linspace(0.5, 1, 20), paired=True)
    assert (found.exact, found.p) == (False, pytest.approx(2e-4))
