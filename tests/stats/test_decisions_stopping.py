from typing import Any

import msgspec
import pytest

from benchctl.results.plan import StopSpec
from benchctl.stats.analysis import Row
from benchctl.stats.caveat import Caveat
from benchctl.stats.compare import Comparison
from benchctl.stats.decisions import decide


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


DECIDED = StopSpec(decided=True)


def decided(verdict: str, label: str = "range", **changes: Any) -> Row:
    return row(
        comparison(0.03, **{"forks": 9, "verdict": verdict, "looks": None} | changes),
        label=label,
    )


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
    found = decide([decided("faster"), hopeless], DECIDED, 9)
    assert found.enough
    assert found.text.endswith("; excluded, because no verdict is possible: throughput of sort")
    alone = decide([hopeless], DECIDED, 9)
    assert not alone.enough
    assert alone.text.startswith("there is nothing to decide; excluded")


def test_what_is_left_out_is_listed():
    apart = comparison(0.5, judged=False)
    rows = [row(apart), row(apart, label="sort"), row(apart, label="sort", metric="latency_p90")]
    assert decide(rows, DECIDED, 9).text.endswith(
        "no verdict is possible: throughput of range, throughput of sort, p90 latency of sort"
    )


def test_without_the_rule_there_is_nothing_to_decide():
    found = decide([decided("faster")], StopSpec(budget_s=60.0), 20)
    assert (found.enough, found.text) == (False, "")


@pytest.mark.parametrize("verdict", ["faster", "slower", "different", "equivalent"])
def test_a_verdict_on_every_row_is_enough(verdict: str):
    found = decide([decided(verdict), decided("equivalent", "sort")], DECIDED, 9)
    assert found.enough
    assert found.text == "2 of 2 are decided"


def test_ratios_of_arithmetic_means_go_on_until_they_can_be_reported():
    found = decide([decided("faster", difference=1.0)], DECIDED, 9)
    assert (found.enough, found.text) == (
        False,
        "1 of 1 are inconclusive: throughput of range (about 3 more forks)",
    )
    assert decide([decided("faster", difference=1.0, forks=12)], DECIDED, 12).enough


def test_rows_without_a_verdict_are_open_and_say_what_they_lack():
    rows = [
        decided("faster"),
        decided("inconclusive", "sort", further=25),
    ]
    found = decide(rows, DECIDED, 9)
    assert not found.enough
    assert found.text.startswith("1 of 2 are inconclusive: throughput of sort (about 25 more forks)")


@pytest.mark.parametrize(
    ("most", "expected"),
    [(12, "(more forks than a run may have)"), (9, "(about 25 more forks)"), (None, "(about 25 more forks)")],
)
def test_the_forecast_ends_with_the_run_and_begins_anew_where_that_has_ended(most: int | None, expected: str):
    one = decided("inconclusive", further=25)
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


def test_what_is_0_in_every_fork_has_a_verdict_to_wait_for():
    zero = {"baseline_value": 0.0, "contender_value": 0.0, "effect_percent": None}
    never = row(comparison(None, verdict="equivalent", **zero), label="pauses", metric="gc")
    undecided = row(comparison(None, verdict="inconclusive", **zero), label="pauses", metric="gc")
    assert decide([never], DECIDED, 9).enough
    assert "1 of 1 are inconclusive" in decide([undecided], DECIDED, 9).text
