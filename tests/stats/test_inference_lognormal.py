import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.stats.inference import cv_of, sd_of


@given(st.floats(0, 9))
def test_either_gives_the_other_back(sd: float):
    assert sd_of(cv_of(sd)) == pytest.approx(sd, abs=1e-9)


def test_they_are_those_of_log_normal_values():
    values = np.exp(np.random.default_rng(1).normal(0, 0.3, 1_000_000))
    assert cv_of(0.3) == pytest.approx(values.std() / values.mean(), rel=0.01)


def test_hardly_different_logarithms_have_their_sd_as_cv():
    assert cv_of(0.02) == pytest.approx(0.02, rel=0.001)
