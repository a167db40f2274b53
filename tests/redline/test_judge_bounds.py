"""Red-lines in an analysis: compared like everything else, and never a bound taken for a rate."""

import msgspec
import numpy as np
import pytest

from benchctl.results.model import ForkRecord
from benchctl.stats.analyse import analyse
from benchctl.stats.analysis import Analysis, ScaledTask
from benchctl.track.model import Challenge, Task
from builders import make_summary
from redlines import SEARCH, make_point, redline_fork, redline_plan


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
    assert {"missing-values", "no-redline"} <= {doubt.code for doubt in row.caveats}


def test_plain_searches_have_no_doubts():
    (row,) = compared(es=forks("es", 100.0, 102.0, 98.0), os=forks("os", 80.0, 82.0, 79.0)).rows
    assert row.caveats == ()


CLIENTS = msgspec.structs.replace(SEARCH, by="clients", clients=64)


def by_clients(variant: str, *clients: float) -> list[ForkRecord]:
    return [
        redline_fork(variant, block, most, redline_unit="clients", throughput_per_s=10.0 * most + block)
        for block, most in enumerate(clients)
    ]


def test_numbers_of_clients_are_compared_with_what_they_got_done():
    sides = {"es": by_clients("es", 30, 31, 29), "os": by_clients("os", 12, 13, 12)}
    clients, throughput = analyse(sides, redline_plan(CLIENTS)).rows
    assert (clients.metric, clients.unit, throughput.metric) == ("redline", "clients", "throughput")
    assert clients.comparisons[0].verdict == "slower"
    assert clients.caveats == throughput.caveats == ()


def test_forks_that_agree_on_a_number_of_clients_may_still_differ_and_it_is_said():
    sides = {"es": by_clients("es", 30, 31, 29), "os": by_clients("os", 12, 12, 12)}
    clients, throughput = analyse(sides, redline_plan(CLIENTS)).rows
    (doubt,) = clients.caveats
    assert doubt.text == (
        "all 3 forks of os found 12 clients: what they differ by is less than a step of 1, which the "
        "interval does not include"
    )
    assert clients.comparisons[0].verdict == "slower"
    assert throughput.caveats == ()


@pytest.mark.parametrize(
    ("es", "os", "verdict"),
    [((12, 12, 12), (13, 13, 14), "n/a"), ((12, 12, 12), (14, 14, 15), "faster")],
)
def test_numbers_of_clients_less_than_two_steps_apart_get_no_verdict(
    es: tuple[int, ...], os: tuple[int, ...], verdict: str
):
    row = analyse({"es": by_clients("es", *es), "os": by_clients("os", *os)}, redline_plan(CLIENTS)).rows[0]
    assert row.comparisons[0].verdict == verdict
    assert ("coarse" in {doubt.code for doubt in row.caveats}) is (verdict == "n/a")


def test_all_forks_alike_on_both_sides_are_nothing_to_test_with():
    row = analyse(
        {"es": by_clients("es", 12, 12, 12), "os": by_clients("os", 20, 20, 20)}, redline_plan(CLIENTS)
    ).rows[0]
    codes = {doubt.code for doubt in row.caveats}
    assert {"no-spread", "whole-clients"} <= codes
    assert row.comparisons[0].verdict not in {"faster", "slower", "equivalent"}


def test_a_factor_is_one_row_under_the_challenges_name_whatever_ran_before_it():
    plan = redline_plan(
        msgspec.structs.replace(SEARCH, by="factor", operation="mixed"),
        schedules=(
            Challenge(
                "redline-mixed",
                (
                    Task("asc_sort_timestamp", iterations=3),
                    Task("range", target_throughput=20.0, group=1),
                    Task("bulk", name="send", target_throughput=500.0, per_request=100.0, group=1),
                ),
            ),
        ),
    )

    def fork(variant: str, block: int, factor: float) -> ForkRecord:
        found = redline_fork(variant, block, factor, [make_point(10, 40.0)], redline_unit="x", task=1)
        other = msgspec.structs.replace(
            make_summary("bulk", 5.0, unit="docs", reported=False), task=2, label="send"
        )
        return msgspec.structs.replace(found, summaries=(*found.summaries, other))

    sides = {
        "es": [fork("es", block, 2.0 + block / 50) for block in range(3)],
        "os": [fork("os", block, 1.5 + block / 50) for block in range(3)],
    }
    analysis = analyse(sides, plan)
    (row,) = analysis.rows
    assert (row.label, row.unit, row.task) == ("mixed", "x", 1)
    assert row.comparisons[0].verdict == "slower"
    assert analysis.redline is not None
    assert analysis.redline.tasks == (
        ScaledTask("range", "queries", 20.0), ScaledTask("send", "docs", 500.0)
    )  # fmt: skip
    assert [curve.redline for curve in analysis.redline.curves] == [
        pytest.approx(row.figures[0].value), pytest.approx(row.figures[1].value)
    ]  # fmt: skip
    # Forks that all failed leave one empty row.
    assert [one.label for one in analyse({"es": [], "os": []}, plan).rows] == ["mixed"]


def decided_by_clients(ratio: float, cv: float, runs: int = 150) -> float:
    """The share of runs with a verdict between variants whose true limits are that far apart.

    A true limit lies between whole numbers, and varies from fork to fork.
    """
    rng, found = np.random.default_rng(5), 0
    for _ in range(runs):
        limits = [rng.uniform(6, 30) * np.exp(rng.normal(0, cv, 5))]
        limits.append(limits[0].mean() * ratio * np.exp(rng.normal(0, cv, 5)))
        sides = dict(zip(("es", "os"), (by_clients("x", *np.floor(one)) for one in limits), strict=True))
        (row, _) = analyse(sides, redline_plan(CLIENTS)).rows
        found += row.comparisons[0].verdict in {"faster", "slower", "different"}
    return found / runs


@pytest.mark.parametrize(
    ("ratio", "cv"), [(1.0, 0.005), (1.0, 0.03), (1.0, 0.1), (1.03, 0.005), (1.03, 0.03)]
)
def test_whole_numbers_of_clients_make_no_verdict_of_what_may_be_the_grid(ratio: float, cv: float):
    assert decided_by_clients(ratio, cv) <= 0.025


def test_a_third_more_clients_are_found_by_five_forks():
    assert decided_by_clients(1.35, 0.03) >= 0.9


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
