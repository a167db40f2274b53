from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.results.plan import StopSpec
from benchctl.stats.analysis import Row
from benchctl.stats.caveat import Caveat
from benchctl.stats.compare import Comparison
from benchctl.stats.decisions import decide, half_width

FIVE_PERCENT = StopSpec(precision=0.05)


def comparison(half: float | None, forks: int = 8, **changes: Any) -> Comparison:
    """An effect of +10% whose interval reaches from 1.1 / (1 + half) to 1.1 x (1 + half)."""
    made = Comparison(
        metric="throughput",
        baseline="es",
        contender="os",
        higher_is_better=True,
        paired=False,
        judged=True,
        n_baseline=forks,
        n_contender=forks,
        margin_percent=3.0,
        effect_percent=10.0,
        low_percent=None if half is None else 100 * (1.1 / (1 + half) - 1),
        high_percent=None if half is None else 100 * (1.1 * (1 + half) - 1),
    )
    return msgspec.structs.replace(made, **changes)


def row(*comparisons: Comparison, label: str = "range", metric: str = "throughput") -> Row:
    return Row(
        schedule=0,
        challenge="c",
        task=0,
        label=label,
        operation=label,
        metric=metric,
        unit="queries/s",
        higher_is_better=True,
        figures=(),
        comparisons=comparisons,
    )


def test_the_widest_interval_decides_and_is_named():
    rows = [row(comparison(0.03)), row(comparison(0.048), label="sort", metric="service_time_p90")]
    found = decide(rows, FIVE_PERCENT, 8)
    assert found.enough
    assert found.text == "the widest interval is +-4.8% (p90 service time of sort)"


def test_one_wide_interval_is_reason_enough_to_go_on():
    found = decide([row(comparison(0.03)), row(comparison(0.07), label="sort")], FIVE_PERCENT, 8)
    assert not found.enough
    assert found.text == "the widest interval is +-7.0% (throughput of sort), +-5.0% is required"


@pytest.mark.parametrize(("forks", "done", "enough"), [(8, 8, True), (8, 7, False), (7, 8, False)])
def test_never_before_the_least_number_of_forks(forks: int, done: int, *, enough: bool):
    found = decide([row(comparison(0.001, forks))], FIVE_PERCENT, done)
    assert found.enough == enough
    assert enough or found.text == "7 of at least 8 forks per variant"


@pytest.mark.parametrize(
    "changes",
    [
        {"judged": False},
        {"effect_percent": None},
        {"caveats": (Caveat("missing-values", "1 of 8 values of os"),)},
        {"low_percent": None, "high_percent": None, "caveats": (Caveat("no-spread", "identical"),)},
    ],
)
def test_what_can_never_get_a_verdict_does_not_block_and_is_named(changes: dict[str, Any]):
    hopeless = row(comparison(0.5, **changes), label="sort")
    found = decide([row(comparison(0.04)), hopeless], FIVE_PERCENT, 8)
    assert found.enough
    assert found.text.endswith("; excluded, because no verdict is possible: throughput of sort")
    alone = decide([hopeless], FIVE_PERCENT, 8)
    assert not alone.enough
    assert alone.text.startswith("no interval is defined; excluded")


def test_what_is_left_out_is_listed_metric_by_metric():
    apart = comparison(0.5, judged=False)
    rows = [row(apart), row(apart, label="sort"), row(apart, label="sort", metric="latency_p90")]
    assert decide(rows, FIVE_PERCENT, 8).text.endswith(
        "no verdict is possible: throughput of range, sort; p90 latency of sort"
    )


def test_a_side_with_a_single_value_so_far_is_waited_for():
    found = decide([row(comparison(None))], FIVE_PERCENT, 8)
    assert (found.enough, found.text) == (False, "no interval yet (throughput of range)")


def test_with_several_contenders_the_text_says_which():
    rows = [row(comparison(0.03), comparison(0.06, contender="noinline"))]
    assert "(throughput of range (noinline))" in decide(rows, FIVE_PERCENT, 8).text


def test_without_a_precision_there_is_nothing_to_decide():
    found = decide([row(comparison(0.001))], StopSpec(budget_s=60.0), 20)
    assert (found.enough, found.text) == (False, "")


@settings(deadline=None)
@given(st.floats(0.001, 3.0), st.floats(-0.9, 10.0))
def test_the_half_width_is_a_ratio_whatever_the_effect(half: float, effect: float):
    moved = comparison(
        None,
        low_percent=100 * ((1 + effect) / (1 + half) - 1),
        high_percent=100 * ((1 + effect) * (1 + half) - 1),
    )
    assert half_width(moved) == pytest.approx(half, rel=1e-6)


DECIDED = StopSpec(least_forks=5, decided=True)


def decided(verdict: str, label: str = "range", **changes: Any) -> Row:
    return row(
        comparison(0.03, **{"forks": 9, "verdict": verdict, "sequential": True} | changes),
        label=label,
    )


@pytest.mark.parametrize("verdict", ["faster", "slower", "different", "equivalent"])
def test_a_verdict_on_every_row_is_enough(verdict: str):
    found = decide([decided(verdict), decided("equivalent", "sort")], DECIDED, 9)
    assert found.enough
    assert found.text == "2 of 2 are decided"


def test_rows_without_a_verdict_are_open_and_say_what_they_lack():
    rows = [
        decided("faster"),
        decided("inconclusive", "sort", error=0.03, effect_percent=8.0, margin_percent=3.0),
    ]
    found = decide(rows, DECIDED, 9)
    assert not found.enough
    assert found.text.startswith("1 of 2 are open: throughput of sort (7 (2 to 25) more)")


@pytest.mark.parametrize(
    ("most", "expected"),
    [(12, "(over 3 (3 or more) more)"), (9, "(7 (2 to 25) more)"), (None, "(7 (2 to 25) more)")],
)
def test_the_forecast_ends_with_the_run_and_begins_anew_where_that_has_ended(most: int | None, expected: str):
    one = decided("inconclusive", error=0.03, effect_percent=8.0, margin_percent=3.0)
    assert expected in decide([one], DECIDED, 9, most).text


def test_what_is_never_judged_does_not_keep_a_run_from_ending():
    found = decide([decided("faster"), decided("n/a", "sort", judged=False)], DECIDED, 9)
    assert found.enough
    assert "excluded, because no verdict is possible: throughput of sort" in found.text


def test_only_what_the_rule_names_has_a_say():
    rows = [decided("faster"), msgspec.structs.replace(decided("inconclusive", "sort"), task=1)]
    named = [(one.schedule, one.task, one.metric) for one in rows]
    for only, enough in ((named[:1], True), (named[1:], False), (named, False), ([], False)):
        assert decide(rows, msgspec.structs.replace(DECIDED, only=tuple(only)), 9).enough == enough


def test_nothing_is_decided_before_the_first_look():
    assert not decide([decided("faster", forks=4)], DECIDED, 4).enough


def test_what_is_0_in_every_fork_has_a_verdict_to_wait_for_and_no_width():
    zero = {"baseline_value": 0.0, "contender_value": 0.0, "effect_percent": None}
    never = row(comparison(None, verdict="equivalent", **zero), label="pauses", metric="gc")
    narrow = decide([row(comparison(0.03)), never], FIVE_PERCENT, 8)
    assert narrow.enough
    assert "excluded, because no verdict is possible: collector pauses of pauses" in narrow.text
    undecided = row(comparison(None, verdict="inconclusive", **zero), label="pauses", metric="gc")
    decided = StopSpec(decided=True)
    assert decide([never], decided, 8).enough
    assert "1 of 1 are open" in decide([undecided], decided, 8).text
