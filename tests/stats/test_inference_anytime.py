"""The mixture t-test against numbers worked out by other means, and against repeated looks."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import nct, t

from benchctl.stats.inference import log_evidence, p_of_signs, sequential_critical, sequential_p


@pytest.mark.parametrize(("pairs", "observed"), [(5, 0.0), (5, 4.0), (12, -2.5), (40, 3.1)])
def test_evidence_is_the_mixture_of_noncentral_t(pairs: int, observed: float) -> None:
    def weighed(effect: float) -> float:
        density = float(nct.pdf(observed, pairs - 1, effect * math.sqrt(pairs)))
        return density * math.exp(-effect * effect / 2) / math.sqrt(2 * math.pi)

    mixture = quad(weighed, -8, 8, limit=200)[0]
    expected = math.log(mixture / float(t.pdf(observed, pairs - 1)))
    assert log_evidence(observed, pairs - 1, pairs) == pytest.approx(expected, abs=1e-6)


@given(st.floats(0.5, 0.999), st.integers(2, 400))
def test_the_interval_ends_where_p_is_the_level(confidence: float, pairs: int) -> None:
    edge = sequential_critical(confidence, pairs - 1, pairs)
    if math.isinf(edge):
        assert sequential_p(1e9, pairs - 1, pairs) > 1 - confidence
    else:
        assert sequential_p(edge, pairs - 1, pairs) == pytest.approx(1 - confidence)


def test_four_pairs_have_no_interval_at_95_percent() -> None:
    assert math.isinf(sequential_critical(0.95, 3, 4))
    assert math.isfinite(sequential_critical(0.90, 3, 4))
    assert sequential_critical(0.95, 4, 5) == pytest.approx(8.4532, abs=1e-4)


def test_signs_hold_at_all_looks_together() -> None:
    above = (np.random.default_rng(2).random((2_000, 50)) < 0.5).cumsum(axis=1)
    found = [any(p_of_signs(k, n - k) <= 0.05 for n, k in enumerate(map(int, row), 1)) for row in above]
    assert np.mean(found) < 0.05
    assert p_of_signs(8, 0) == pytest.approx(9 / 256)
