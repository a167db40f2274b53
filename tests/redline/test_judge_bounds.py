"""Red-lines in an analysis: compared like everything else, and never a bound taken for a rate."""

import pytest

from benchctl.results.model import ForkRecord
from benchctl.stats.analyse import analyse
from benchctl.stats.analysis import Analysis
from redlines import make_point, redline_fork, redline_plan


def forks(variant: str, *rates: float | None, **changes: object) -> list[ForkRecord]:
    points = [make_point(155, 40.0)]
    return [redline_fork(variant, block, rate, points, **changes) for block, rate in enumerate(rates)]


def compared(**sides: list[ForkRecord]) -> Analysis:
    return analyse(sides, redline_plan())


def test_only_the_red_line_is_compared_with_the_usual_statistics():
    analysis = compared(es=forks("es", 100.0, 102.0, 98.0), os=forks("os", 80.0, 82.0, 79.0))
    (row,) = analysis.rows
    assert (row.metric, row.unit, row.higher_is_better, row.label) == ("redline", "queries/s", True, "range")
    (comparison,) = row.comparisons
    assert comparison.verdict == "slower"
    assert comparison.margin_percent == 3.0
    assert comparison.low_percent is not None
    assert [one.at_least for one in row.figures] == [False, False]
    assert analysis.redline is not None
    assert [curve.variant for curve in analysis.redline.curves] == ["es", "os"]


def test_a_run_of_challenges_has_no_curves_and_no_red_line():
    analysis = analyse({"es": [], "os": []}, redline_plan(redline=None))
    assert analysis.redline is None
    assert "redline" not in {row.metric for row in analysis.rows}


def test_a_lower_bound_is_shown_and_gets_no_verdict():
    bounded = forks(
        "os", 120.0, 121.0, 119.0, redline_end="driver-limited", redline_text="driver-limited at 123.6/s"
    )
    analysis = compared(es=forks("es", 100.0, 102.0, 98.0), os=bounded)
    (row,) = analysis.rows
    assert [one.at_least for one in row.figures] == [False, True]
    assert row.comparisons[0].verdict == "n/a"
    assert row.comparisons[0].effect_percent is not None
    (bound,) = [doubt.text for doubt in row.caveats if doubt.code == "lower-bound"]
    assert bound == (
        "the red-line of os is a lower bound, so no verdict is given: driver-limited at 123.6/s "
        "(3 of 3 forks)"
    )


def test_one_fork_that_is_a_bound_makes_the_mean_a_bound():
    mixed = [
        *forks("os", 120.0, 121.0),
        redline_fork("os", 2, 119.0, redline_end="max-rate", redline_text="met at 119/s"),
    ]
    (row,) = compared(es=forks("es", 100.0, 102.0, 98.0), os=mixed).rows
    assert row.figures[1].at_least
    assert row.comparisons[0].verdict == "n/a"


def test_an_objective_that_no_rate_meets_is_not_a_number():
    missed = forks("os", None, None, None, redline_text="p90 is 61 ms even at 1.01/s")
    (row,) = compared(es=forks("es", 100.0, 102.0, 98.0), os=missed).rows
    assert row.figures[1].value is None
    assert row.comparisons[0].verdict == "n/a"
    assert "os is n/a: p90 is 61 ms even at 1.01/s (3 of 3 forks)" in [doubt.text for doubt in row.caveats]


def test_forks_that_missed_beside_forks_that_did_not_withhold_the_verdict():
    mixed = [*forks("os", 120.0, 121.0, 119.0), redline_fork("os", 3, None, redline_text="p90 is 61 ms")]
    (row,) = compared(es=forks("es", 100.0, 102.0, 98.0, 99.0), os=mixed).rows
    assert row.comparisons[0].verdict == "insufficient"
    assert {"missing-values"} <= {doubt.code for doubt in row.caveats}


def test_plain_searches_have_no_doubts():
    (row,) = compared(es=forks("es", 100.0, 102.0, 98.0), os=forks("os", 80.0, 82.0, 79.0)).rows
    assert row.caveats == ()


def searched(variant: str, *steps: tuple[int, str], blocks: int = 2) -> list[ForkRecord]:
    """Forks that tried these rungs, with these verdicts, and found the highest that passed."""
    points = [
        make_point(rung, 40.0, verdict="pass" if verdict == "pass" else "fail", step=number)
        for number, (rung, verdict) in enumerate(steps, 1)
    ]
    found = max(point.rate_per_s for point in points if point.verdict == "pass")
    return [redline_fork(variant, block, found, points) for block in range(blocks)]


@pytest.mark.parametrize(
    ("steps", "trend", "failed"),
    [
        (((150, "fail"), (140, "fail"), (130, "pass"), (155, "pass")), "not warmed up", "62.69, 84.25,"),
        (((130, "pass"), (155, "pass"), (140, "fail")), "drifting", "62.69,"),
    ],
)
def test_a_red_line_above_loads_that_failed_is_provisional(
    steps: tuple[tuple[int, str], ...], trend: str, failed: str
):
    analysis = compared(es=forks("es", 50.0, 51.0), os=searched("os", *steps))
    (row,) = analysis.rows
    (doubt,) = [one.text for one in row.caveats if one.code == "not-steady"]
    assert doubt.startswith(f"{trend}: os failed at {failed}")
    assert row.figures[1].steady.trend == trend
    # It is found, and compared, all the same.
    assert row.figures[1].value == pytest.approx(1.03**155)


@pytest.mark.parametrize(
    "steps",
    [
        # Near the red-line a step is as likely to fail.
        ((160, "fail"), (150, "pass"), (154, "fail"), (155, "pass")),
        # One bad moment, that a second step at the same load contradicts.
        ((140, "fail"), (140, "pass"), (155, "pass")),
    ],
)
def test_steps_that_agree_with_a_red_line_are_no_doubt(steps: tuple[tuple[int, str], ...]):
    (row,) = compared(es=forks("es", 50.0, 51.0), os=searched("os", *steps)).rows
    assert "not-steady" not in {one.code for one in row.caveats}


def test_few_forks_that_contradict_themselves_do_not_make_it_provisional():
    odd = searched("os", (140, "fail"), (155, "pass"), blocks=1)
    even = [redline_fork("os", block, 1.03**155, [make_point(155, 40.0)]) for block in range(1, 4)]
    (row,) = compared(es=forks("es", 50.0, 51.0), os=[*odd, *even]).rows
    assert "not-steady" not in {one.code for one in row.caveats}
    assert row.figures[1].steady.trend is None
