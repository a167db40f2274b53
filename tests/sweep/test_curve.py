"""Curves: what is at their points, and what points and variants are compared by."""

import math
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from scipy.stats import ttest_1samp

from benchctl.stats.analysis import SweepAxis, SweepCurve
from benchctl.sweep.curve import ByBlock, judged_curves
from sweeps import AXIS, BLOCKS, forks, make_curve, two_laws


def judged(*sides: Sequence[ByBlock], axis: SweepAxis = AXIS, **more: object) -> SweepCurve:
    values = dict(zip(("es", "os", "lucene"), sides, strict=False))
    more = {"comparisons": ()} | more if len(sides) == 1 else more
    (curve,) = judged_curves([make_curve(values, axis, **more)])
    return curve


def test_means_have_the_interval_that_they_have_everywhere():
    curve = judged(forks(lambda x: x, sd=0.1))
    logs = np.log(list(forks(lambda x: x, sd=0.1)[2].values()))
    interval = ttest_1samp(logs, 0).confidence_interval(0.95)
    mean = curve.lines[0].means[2]
    assert (mean.value, mean.low, mean.high) == pytest.approx(
        (math.exp(logs.mean()), math.exp(interval.low), math.exp(interval.high))
    )
    assert curve.lines[0].forks == (BLOCKS,) * 4


def test_points_of_a_single_variant_are_compared_with_the_first_within_blocks():
    points = forks(lambda x: 3 * x, sd=0.1)
    curve = judged(points)
    first, *others = curve.comparisons
    assert first == ()
    assert [(one.baseline, one.contender) for (one,) in others] == [("1", "2"), ("1", "4"), ("1", "8")]
    assert [one.verdict for one in curve.changes] == ["slower"] * 3
    ratios = np.log([points[2][block] / points[0][block] for block in range(BLOCKS)])
    assert curve.changes[1].effect_percent == pytest.approx(100 * math.expm1(ratios.mean()))
    assert curve.changes[1].p == pytest.approx(ttest_1samp(ratios, 0).pvalue)


def test_along_numbers_a_difference_may_depend_on_the_point_too():
    es, os = forks(lambda x: x**0.9), forks(lambda x: x**0.5, seed=2)
    curve = judged(es, os)
    assert curve.changes == ()
    interactions = curve.pairs[0].interactions
    assert [one.verdict for one in interactions] == ["faster"] * 3
    ratios = [math.log(os[3][block] / os[0][block] * es[0][block] / es[3][block]) for block in range(BLOCKS)]  # type: ignore[operator]
    assert interactions[2].effect_percent == pytest.approx(100 * math.expm1(np.mean(ratios)))


def test_a_failed_fork_is_counted_at_its_point_and_leaves_no_verdict_there():
    points = forks(lambda x: x)
    points[2] = {block: (None if block == 4 else value) for block, value in points[2].items()}
    curve = judged(points)
    assert curve.lines[0].forks == (6, 6, 5, 6)
    assert [one.verdict for one in curve.changes] == ["slower", "insufficient", "slower"]


def test_a_point_of_one_fork_has_no_interval_and_one_of_none_no_value():
    curve = judged([{0: 1.0}, {0: 2.0}, {0: None}, {}])
    means = curve.lines[0].means
    assert [mean and (mean.value, mean.low) for mean in means] == [(1.0, None), (2.0, None), None, None]


def test_what_may_be_0_has_no_interactions():
    low, high = forks(lambda x: x - 1, sd=0.01), forks(2, seed=2, sd=0.01)
    curve = judged(low, high, metric="gc")
    assert curve.pairs[0].interactions == ()
    assert curve.lines[0].means[0].value == 0


def test_values_have_as_many_points_as_the_axis():
    with pytest.raises(ValueError, match="4 points"):
        judged(forks(lambda x: x)[:3])


def test_a_curve_survives_its_json():
    curve = two_laws()
    assert msgspec.json.decode(msgspec.json.encode(curve), type=SweepCurve) == curve
