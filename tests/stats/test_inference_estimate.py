import math

import numpy as np
import pytest
from scipy.stats import ttest_ind, ttest_rel

from benchctl.stats.inference import difference_of

LEFT = np.log([10.0, 11.0, 9.5, 10.4])
RIGHT = np.log([12.0, 11.5, 13.1, 12.4])


def test_unpaired_is_welch():
    found = difference_of(LEFT, RIGHT[:3], paired=False)
    oracle = ttest_ind(RIGHT[:3], LEFT, equal_var=False)
    assert found.p == pytest.approx(oracle.pvalue)
    assert found.interval(0.95) == pytest.approx(tuple(oracle.confidence_interval(0.95)))
    assert found.interval(0.90) == pytest.approx(tuple(oracle.confidence_interval(0.90)))


def test_paired_is_the_paired_t():
    found = difference_of(LEFT, RIGHT, paired=True)
    oracle = ttest_rel(RIGHT, LEFT)
    assert found.p == pytest.approx(oracle.pvalue)
    assert found.interval(0.95) == pytest.approx(tuple(oracle.confidence_interval(0.95)))


def test_nothing_to_test_with():
    assert difference_of(LEFT[:1], RIGHT, paired=False) is None
    constant = np.full(5, math.log(7.0))
    assert difference_of(constant, constant + 0.1, paired=False) is None
    assert difference_of(LEFT, LEFT + 0.1, paired=True) is None
