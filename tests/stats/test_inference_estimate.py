import math

import numpy as np
import pytest
from scipy.stats import ttest_ind, ttest_rel

from benchctl.stats.inference import difference_of, mde, mde_paired

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


def test_detectable_effect_of_equal_spreads_is_the_planning_formula():
    shifted = LEFT + 0.3
    assert difference_of(LEFT, shifted, paired=False).mde == pytest.approx(mde(4, 4, float(LEFT.std(ddof=1))))
    differences = float((RIGHT - LEFT).std(ddof=1))
    assert difference_of(LEFT, RIGHT, paired=True).mde == pytest.approx(mde_paired(4, differences))


@pytest.mark.parametrize(
    ("forks", "sds"),
    [((5, 5), (0.02, 0.1)), ((10, 10), (0.02, 0.1)), ((3, 10), (0.1, 0.1)), ((10, 3), (0.02, 0.1))],
)
def test_a_detectable_effect_is_found_in_four_cases_of_five_though_the_sides_are_unlike(
    forks: tuple[int, int], sds: tuple[float, float]
):
    # The same spread whichever sample is drawn: what is found of an effect as large as this sample says.
    generator = np.random.default_rng(14)
    repetitions = 4000
    left, right = (generator.normal(0, sd, (repetitions, size)) for sd, size in zip(sds, forks, strict=True))
    shapes = [np.linspace(-1, 1, size) for size in forks]
    typical = [sd * shape / shape.std(ddof=1) for sd, shape in zip(sds, shapes, strict=True)]
    effect = difference_of(*typical, paired=False).mde
    found = (ttest_ind(right + effect, left, axis=1, equal_var=False).pvalue <= 0.05).mean()
    assert found == pytest.approx(0.8, abs=0.06)


def test_nothing_to_test_with():
    assert difference_of(LEFT[:1], RIGHT, paired=False) is None
    constant = np.full(5, math.log(7.0))
    assert difference_of(constant, constant + 0.1, paired=False) is None
    assert difference_of(LEFT, LEFT + 0.1, paired=True) is None
