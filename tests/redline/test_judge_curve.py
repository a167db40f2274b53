"""Curves: the steps of forks put together, rate by rate."""

import pytest

from benchctl.redline.report import redline_curves
from benchctl.stats.analysis import RedlineCurves, Spread
from redlines import SEARCH, make_point, redline_fork


@pytest.fixture
def found() -> RedlineCurves:
    forks = [
        redline_fork("es", 0, 100.0, [make_point(155, 40.0), make_point(160, 80.0, verdict="fail", step=2)]),
        redline_fork(
            "es",
            1,
            100.0,
            [
                make_point(155, 20.0, rate_per_s=101.0),
                make_point(155, 30.0, step=2, rate_per_s=101.0),
                make_point(155, 90.0, step=3, rate_per_s=101.0, verdict="fail"),
            ],
        ),
        redline_fork("es", 2, 100.0, [make_point(155, 50.0, rate_per_s=102.0)]),
    ]
    return redline_curves({"es": forks, "os": []}, SEARCH)


def test_rows_ascend_by_rate_and_count_forks_steps_and_passes(found: RedlineCurves):
    low, high = found.curves[0].rows
    assert (low.rung, low.forks, low.steps, low.passed) == (155, 3, 5, 4)
    assert (high.rung, high.forks, high.steps, high.passed) == (160, 1, 1, 0)
    assert low.rate_per_s == 101.0


def test_a_fork_counts_once_with_the_median_of_its_steps(found: RedlineCurves):
    low = found.curves[0].rows[0]
    assert low.p90_ms == Spread(40.0, 30.0, 50.0)
    assert low.p50_ms == Spread(20.0, 15.0, 25.0)
    assert low.p99_ms == Spread(80.0, 60.0, 100.0)


def test_every_step_of_every_fork_is_kept_in_order(found: RedlineCurves):
    forks = found.curves[0].forks
    assert [fork.block for fork in forks] == [0, 1, 2]
    assert [point.step for point in forks[1].points] == [1, 2, 3]


def test_a_variant_without_steps_has_an_empty_curve(found: RedlineCurves):
    assert found.curves[1].variant == "os"
    assert found.curves[1].rows == found.curves[1].forks == ()


def test_steps_without_answers_have_a_row_without_figures():
    silent = make_point(
        155, 1.0, verdict="fail", samples=0, p50_ns=None, p90_ns=None, p99_ns=None, objective_ns=None,
        achieved_per_s=None,
    )  # fmt: skip
    spoilt = make_point(155, 70.0, verdict="driver-limited")
    alone = redline_curves({"es": [redline_fork("es", 0, None, [silent])]}, SEARCH).curves[0].rows[0]
    assert (alone.p90_ms, alone.achieved_per_s, alone.steps) == (None, None, 1)
    beside = redline_curves({"es": [redline_fork("es", 0, None, [silent, spoilt])]}, SEARCH).curves[0].rows[0]
    assert beside.p90_ms == Spread(70.0, 70.0, 70.0)
    assert beside.driver_limited == 1
