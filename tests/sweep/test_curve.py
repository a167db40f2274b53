"""Sweeps: what is fitted to lines whose shape is known, and what is refused."""

import math
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import linregress, ttest_1samp

from benchctl.stats.analysis import SweepAxis, SweepCurve
from benchctl.sweep.curve import ByBlock, sweep_curve
from sweeps import AXIS, BLOCKS, forks, two_laws

LOGS = st.lists(st.lists(st.floats(-2, 2, allow_nan=False), min_size=4, max_size=4), min_size=3, max_size=7)


def by_point(logs: Sequence[Sequence[float]]) -> list[ByBlock]:
    """From a row a block of logarithms."""
    return [dict(enumerate(point)) for point in np.exp(np.array(logs)).T.tolist()]


def fitted(*sides: Sequence[ByBlock], axis: SweepAxis = AXIS, **more: object) -> SweepCurve:
    names = ("es", "os", "lucene")
    return sweep_curve(
        dict(zip(names, sides, strict=False)), axis, task="range", **{"metric": "service_time_p90", **more}
    )


def slopes(points: Sequence[ByBlock]) -> list[float]:
    x = np.log(AXIS.numbers)
    return [
        linregress(x, np.log([point[block] for point in points])).slope for block in range(len(points[0]))
    ]


def test_an_exponent_is_the_t_interval_of_the_slopes_of_blocks():
    points = forks(lambda x: 3 * x**0.8, sd=0.1)
    law = fitted(points).lines[0].growth
    expected = ttest_1samp(slopes(points), 0).confidence_interval(0.95)
    assert law.exponent.value == pytest.approx(np.mean(slopes(points)))
    assert (law.exponent.low, law.exponent.high) == pytest.approx((expected.low, expected.high))
    assert (law.blocks, law.left_out, law.without, law.reason) == (BLOCKS, 0, (), "")
    assert [(low, high) for low, high, _ in law.steps] == [("1", "2"), ("2", "4"), ("4", "8")]
    ratios = np.log([points[1][block] / points[0][block] for block in range(BLOCKS)]) / math.log(2)
    assert law.steps[0][2].value == pytest.approx(ratios.mean())


def test_means_have_the_interval_that_they_have_everywhere():
    curve = fitted(forks(lambda x: x, sd=0.1))
    logs = np.log(list(forks(lambda x: x, sd=0.1)[2].values()))
    interval = ttest_1samp(logs, 0).confidence_interval(0.95)
    mean = curve.lines[0].means[2]
    assert (mean.value, mean.low, mean.high) == pytest.approx(
        (math.exp(logs.mean()), math.exp(interval.low), math.exp(interval.high))
    )
    assert curve.lines[0].forks == (BLOCKS,) * 4


def test_exponents_are_compared_within_blocks():
    es, os = forks(lambda x: x**0.9, sd=0.1), forks(lambda x: x**0.5, seed=2, sd=0.03)
    paired = fitted(es, os).pairs[0].growth
    within = ttest_1samp(np.subtract(slopes(os), slopes(es)), 0).confidence_interval(0.95)
    assert (paired.exponent.low, paired.exponent.high) == pytest.approx((within.low, within.high))


@given(LOGS, LOGS, st.lists(st.floats(-3, 3), min_size=7, max_size=7))
def test_what_the_host_does_to_a_whole_block_changes_nothing(
    left: list[list[float]], right: list[list[float]], drift: list[float]
):
    blocks = min(len(left), len(right))
    sides = [np.array(side[:blocks]) for side in (left, right)]
    assume(all(np.std(side, axis=0).min() > 1e-3 for side in (*sides, sides[0] - sides[1])))
    host = np.array(drift[:blocks])[:, None]
    still, moved = (fitted(*(by_point(side + by) for side in sides)) for by in (np.zeros_like(host), host))
    for one, other in zip(
        (*(line.growth for line in still.lines), still.pairs[0].growth),
        (*(line.growth for line in moved.lines), moved.pairs[0].growth),
        strict=True,
    ):
        assert one.exponent.value == pytest.approx(other.exponent.value, abs=1e-9)
        assert one.exponent.low == pytest.approx(other.exponent.low, rel=1e-5, abs=1e-7)


@given(LOGS, LOGS)
def test_the_other_way_round_says_the_same(left: list[list[float]], right: list[list[float]]):
    blocks = min(len(left), len(right))
    sides = [np.array(side[:blocks]) for side in (left, right)]
    assume(np.std(sides[0] - sides[1], axis=0).min() > 1e-3)
    points = [by_point(side) for side in sides]
    one, other = (fitted(*way).pairs[0] for way in (points, points[::-1]))
    assert one.growth.exponent.value == pytest.approx(-other.growth.exponent.value, abs=1e-9)
    assert one.growth.exponent.low == pytest.approx(-other.growth.exponent.high, abs=1e-9)


def test_saturation_is_no_power_law_and_a_power_law_is_one():
    saturating = fitted(forks(lambda x: 100 * x / (x + 3))).lines[0].growth
    assert (saturating.misfit, saturating.misfit_p < 0.01) == ("falls", True)
    assert saturating.steps[0][2].value > saturating.steps[-1][2].value
    steepening = fitted(forks(lambda x: 100 + x**3)).lines[0].growth
    assert steepening.misfit == "rises"
    wavering = fitted(forks(lambda x: {1: 1, 2: 3, 4: 3, 8: 9}[x])).lines[0].growth
    assert wavering.misfit == "changes"
    law = fitted(forks(lambda x: x**0.5)).lines[0].growth
    assert (law.misfit, law.misfit_p > 0.05) == ("", True)


def test_looks_widen_intervals_which_take_more_blocks():
    points = forks(lambda x: x**0.5)
    once, often = (fitted(points, looks=looks).lines[0].growth.exponent for looks in (1, None))
    assert often.low < once.low
    few = fitted(forks(lambda x: x**0.5, blocks=3), looks=None).lines[0].growth
    assert (few.exponent.low, few.reason) == (None, "fewer than 5 blocks, or nothing varies between blocks")


def test_a_block_with_a_failed_fork_does_not_count_and_is_counted():
    points = forks(lambda x: x)
    points[2] = {block: (None if block == 4 else value) for block, value in points[2].items()}
    law = fitted(points).lines[0].growth
    assert (law.blocks, law.left_out, law.without) == (BLOCKS - 1, 1, ())
    assert fitted(points).lines[0].forks == (6, 6, 5, 6)
    pair = fitted(forks(lambda x: 2 * x, seed=3), points).pairs[0]
    assert (pair.growth.blocks, pair.growth.left_out) == (BLOCKS - 1, 1)


def test_a_point_that_most_blocks_lack_is_left_out_and_named():
    points = forks(lambda x: x)
    points[3] = {0: 8.0}
    curve = fitted(forks(lambda x: 2 * x, seed=3), points)
    law = curve.lines[1].growth
    assert (law.without, law.blocks, law.steps[-1][1]) == (("8",), BLOCKS, "4")
    assert curve.pairs[0].growth.without == ("8",)
    assert curve.lines[1].means[3].low is None


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        ([{0: 1.0}, {0: 2.0}, {0: 4.0}, {0: 8.0}], "only one block has all points"),
        ([{}, {}, {}, {}], "fewer than two points have values"),
        ([{0: 1.0, 1: 1.0}, {2: 2.0, 3: 3.0}, {0: 4.0, 2: 2.0}, {1: 1.0, 3: 2.0}], "no block has all points"),
        (forks(lambda x: x, sd=0), "nothing varies between blocks"),
    ],
)
def test_an_exponent_without_an_interval_says_why(points: list[ByBlock], reason: str):
    law = fitted(points).lines[0].growth
    assert law.reason == reason
    assert law.exponent is None or law.exponent.low is None
    assert law.misfit == ""


def test_what_may_be_0_has_no_exponent():
    low, high = forks(lambda x: x - 1, sd=0.01), forks(2, seed=2, sd=0.01)
    curve = fitted(low, high, metric="gc")
    law = curve.lines[0].growth
    assert (law.exponent, law.reason) == (None, "values may be 0, and nothing is a multiple of 0")
    assert curve.lines[0].means[0].value == 0


def test_an_axis_that_begins_at_0_has_no_exponent():
    axis = SweepAxis("replicas", ("0", "1", "2"), (0.0, 1.0, 2.0))
    curve = fitted(forks(lambda x: 1 + x, axis), forks(2.5, axis, seed=2), axis=axis)
    assert curve.lines[0].growth.reason == "replicas 0 has no logarithm"


def test_names_do_not_grow():
    axis = SweepAxis("collector", ("G1", "ZGC"))
    curve = fitted(forks(lambda x: x, axis), forks(lambda x: 3 - x, axis), axis=axis)
    assert (
        curve.lines[0].growth.reason == curve.pairs[0].growth.reason == "points of collector are not numbers"
    )


def test_values_have_as_many_points_as_the_axis_which_ascends():
    with pytest.raises(ValueError, match="4 points"):
        fitted(forks(lambda x: x)[:3])
    with pytest.raises(ValueError, match="ascend"):
        fitted(forks(lambda x: x), axis=SweepAxis("clients", ("1", "4", "2", "8"), (1, 4, 2, 8)))


def test_a_curve_survives_its_json():
    curve = two_laws()
    assert msgspec.json.decode(msgspec.json.encode(curve), type=SweepCurve) == curve
