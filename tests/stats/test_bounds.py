"""Red-lines in an analysis: compared like everything else, and never a bound taken for a rate."""

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
        "the red-line of os is a lower bound, so there is no verdict: driver-limited at 123.6/s "
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
    assert {"missing-values", "no-redline"} <= {doubt.code for doubt in row.caveats}


def test_a_percentile_on_few_requests_a_step_is_doubted_with_what_to_do():
    few = forks("os", 12.0, 12.1, 12.2, samples=60)
    (row,) = compared(es=forks("es", 100.0, 102.0, 98.0), os=few).rows
    assert [doubt.text for doubt in row.caveats if doubt.code == "few-samples"] == [
        "p90 of os rests on 60 requests a step; it needs 100 to be precise: raise --step-time"
    ]


def test_plain_searches_have_no_doubts():
    (row,) = compared(es=forks("es", 100.0, 102.0, 98.0), os=forks("os", 80.0, 82.0, 79.0)).rows
    assert row.caveats == ()
