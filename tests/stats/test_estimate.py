import math

import numpy as np
import pytest
from scipy.stats import ttest_ind, ttest_rel

from benchctl.stats.estimate import spread
from benchctl.stats.power import mde, mde_paired

LEFT = np.log([10.0, 11.0, 9.5, 10.4])
RIGHT = np.log([12.0, 11.5, 13.1, 12.4])


def test_unpaired_is_welch():
    found = spread(LEFT, RIGHT[:3], paired=False)
    oracle = ttest_ind(RIGHT[:3], LEFT, equal_var=False)
    assert found.p == pytest.approx(oracle.pvalue)
    assert found.interval95 == pytest.approx(tuple(oracle.confidence_interval(0.95)))
    assert found.interval90 == pytest.approx(tuple(oracle.confidence_interval(0.90)))


def test_paired_is_the_paired_t():
    found = spread(LEFT, RIGHT, paired=True)
    oracle = ttest_rel(RIGHT, LEFT)
    assert found.p == pytest.approx(oracle.pvalue)
    assert found.interval95 == pytest.approx(tuple(oracle.confidence_interval(0.95)))


def test_detectable_effect_of_equal_spreads_is_the_planning_formula():
    shifted = LEFT + 0.3
    assert spread(LEFT, shifted, paired=False).mde == pytest.approx(mde(4, 4, float(LEFT.std(ddof=1))))
    differences = float((RIGHT - LEFT).std(ddof=1))
    assert spread(LEFT, RIGHT, paired=True).mde == pytest.approx(mde_paired(4, differences))


def test_nothing_to_test_with():
    assert spread(LEFT[:1], RIGHT, paired=False) is None
    constant = np.full(5, math.log(7.0))
    assert spread(constant, constant + 0.1, paired=False) is None
    assert spread(LEFT, LEFT + 0.1, paired=True) is None
