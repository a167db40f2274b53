"""Forecasts of comparisons, and of plans from earlier forks."""

import math
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import pytest
from scipy.stats import nct, t, ttest_ind

from benchctl.results.model import ForkRecord
from benchctl.results.plan import StopSpec
from benchctl.stats.compare import Comparison, compare
from benchctl.stats.forecast import Rule, Spread, forks_to_find, forks_to_verdict, least_effect
from benchctl.stats.history import History, Match, Noise, kind_of
from benchctl.stats.metrics import SERVICE_TIME, THROUGHPUT
from benchctl.stats.outlook import (
    EFFECT,
    Prospect,
    VerdictCost,
    estimate_of,
    expected_forks,
    family_weight,
    further_forks,
    interaction_power,
    prospects,
    rule_of,
    spread_of,
    unknown_tasks,
    verdict_costs,
    visible,
    with_least_effects,
)
from benchctl.track.model import Challenge, Task
from builders import ES, OS, make_fork, make_plan
from sweeps import swept_record

BASE = (1.0, 1.03, 0.98, 1.01, 1.0)
DONE = {
    "es": [make_fork("es", block, wall_s=wall_s) for block, wall_s in enumerate((10.0, 12.0, 90.0))],
    "os": [make_fork("os", block, wall_s=18.0) for block in range(3)],
}

PLAN = make_plan(schedules=(Challenge("c", (Task("range"), Task("terms"))),), forks=10)


def history(
    sds: Sequence[tuple[float, float]], df: int = 9, fork_s: float | None = 6.0, match: Match = "same"
) -> History:
    """One pair of fork SDs (es, os) a task of PLAN, alike in both metrics."""
    noises = {
        ((0, task), metric.key, (kind_of(spec),)): Noise(sd, df, df + 1, match)
        for task, pair in enumerate(sds)
        for metric in (THROUGHPUT, SERVICE_TIME)
        for spec, sd in zip((ES, OS), pair, strict=True)
    }
    seconds = {} if fork_s is None else {kind_of(ES): fork_s, kind_of(OS): 2 * fork_s}
    return History(noises, seconds, frozenset(), 2 * (df + 1), ("a",))


def prospect(sd: float, df: float = 9) -> Prospect:
    return Prospect(0, 0, "range", "throughput", "es", "os", sd, df, "same")


def compared(*, paired: bool = False, **changes: object) -> Comparison:
    found = compare(
        BASE,
        [1.02 * value for value in (*BASE[2:], *BASE[:2])],
        higher_is_better=True,
        margin=0.03,
        paired=paired,
        metric="throughput",
        baseline="es",
        contender="os",
    )
    return msgspec.structs.replace(found, **changes)


def costs(*comparisons: Comparison, done: Mapping[str, Sequence[ForkRecord]] = DONE) -> list[VerdictCost]:
    return list(verdict_costs([((0, 1), "range", one) for one in comparisons], done))


@pytest.mark.parametrize("paired", [False, True])
def test_forks_for_ten_percent_take_the_median_fork_of_each(*, paired: bool):
    comparison = compared(paired=paired)
    (found,) = costs(comparison)
    spread = spread_of(comparison)
    assert found.forks == forks_to_find(math.log(1.1), spread, rule_of(comparison))
    assert found.pair_s == 30.0
    assert found.minutes == pytest.approx(found.forks.forks / 2)
    assert (found.task, found.label, found.metric, found.effect_percent) == (1, "range", "throughput", 10.0)
    assert found.spread_percent == pytest.approx(100 * math.sqrt(math.expm1(spread.sd**2)))


def test_the_spread_is_that_behind_the_error_of_the_effect():
    logs = np.log(BASE)
    assert spread_of(compared()) == Spread(pytest.approx(logs.std(ddof=1)), pytest.approx(8))
    differences = np.roll(logs, -2) - logs
    assert spread_of(compared(paired=True)) == Spread(pytest.approx(differences.std(ddof=1)), 4)
    assert spread_of(compared(error=None)) is None


def test_what_is_not_judged_or_not_timed_costs_nothing_that_could_be_told():
    assert costs(compared(judged=False)) == []
    assert costs(compared(error=None)) == []
    assert costs(compared(replicate="build", units_baseline=3, units_contender=3)) == []
    assert costs(compared(), done={"es": [], "os": []}) == []
    assert costs(compared()) != []


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize(("looks", "then"), [(1, 2), (2, 3), (None, None)])
def test_an_open_row_lacks_further_blocks_by_the_rule_for_one_more_look(
    looks: int | None, then: int | None, *, paired: bool
):
    comparison = compared(paired=paired, looks=looks)
    assert comparison.verdict == "inconclusive"
    (found,) = costs(comparison)
    rule = msgspec.structs.replace(rule_of(comparison), looks=then)
    estimate = estimate_of(comparison)
    assert estimate is not None
    assert found.further == forks_to_verdict(estimate, rule, 50)
    middle, low, high = found.further_minutes
    assert middle is not None
    assert low <= middle == found.further.forks / 2
    assert high is None or high >= middle


def test_an_interaction_is_found_as_often_as_the_difference_of_two_pairs():
    plan = msgspec.structs.replace(swept_record(sweep=("history=fresh,polluted",)).plan, forks=6)
    (found,) = interaction_power([prospect(0.09)], 6, plan)
    spread = prospect(0.09).spread
    exact = nct.sf(t.isf(0.025, 5), 5, math.log1p(EFFECT) / (math.sqrt(2 / 6) * spread.sd))
    assert found == pytest.approx(exact, abs=0.03)
    assert interaction_power([prospect(0.03)], 6, plan)[0] > 2 * found


def test_a_row_with_a_verdict_lacks_nothing():
    (found,) = costs(compared(verdict="slower"))
    assert found.further is None
    assert found.further_minutes == (None, None, None)
    assert further_forks(compared(error=None, verdict="inconclusive")) is None


def test_the_next_row_of_a_family_is_weighed_by_its_rank():
    family = [compared(p_adjusted=p) for p in (0.01, 0.04, 0.3, 0.6, 0.9)]
    left_out = compared(p_adjusted=None)
    assert family_weight([*family, left_out]) == pytest.approx(5 / 3)
    assert family_weight(family, "holm") == 3
    assert family_weight(family[:2]) == 1
    alone, among_five = (further_forks(compared(), weight) for weight in (1, 5))
    assert among_five.sort_key > alone.sort_key


def test_the_least_effect_of_a_row_is_that_of_its_adjusted_p():
    family = [compared(p_adjusted=0.5, margin_percent=0.1)] * 4
    (alone,), together = (with_least_effects(rows, "benjamini-hochberg") for rows in (family[:1], family))
    spread = spread_of(alone)
    # Exactly that of the two-sided t-test, by the noncentral t distribution.
    ncp = math.log1p(alone.mde_percent / 100) / (spread.sd * math.sqrt(2 / 5))
    assert nct.sf(t.isf(0.025, 8), 8, ncp) == pytest.approx(0.8, abs=0.005)
    assert together[0].mde_percent > 1.2 * alone.mde_percent
    assert with_least_effects([compared(error=None)], "holm")[0].mde_percent is None
    early = compared(looks=None, n_baseline=2, n_contender=2)
    assert with_least_effects([early], "holm")[0].mde_percent is None


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
    alike = compare(*(np.exp(side) for side in typical), higher_is_better=True, margin=1e-6)
    (alone,) = with_least_effects([alike], "holm")
    effect = math.log1p(alone.mde_percent / 100)
    found = (ttest_ind(right + effect, left, axis=1, equal_var=False).pvalue <= 0.05).mean()
    assert found == pytest.approx(0.8, abs=0.06)


def test_both_sides_together_have_the_sum_of_their_variances():
    found = prospects(history([(0.10, 0.20)]), PLAN)
    assert [one.metric for one in found] == ["throughput", "service_time_p90"]
    assert found[0].sd == pytest.approx(math.sqrt(0.01 + 0.04))
    # Satterthwaite: between the degrees of freedom of one side and those of both.
    assert 9 < found[0].df < 18
    assert prospects(history([(0.1, 0.1)]), PLAN)[0].df == pytest.approx(18)


def test_a_task_without_earlier_forks_is_named_not_guessed():
    found = history([(0.1, 0.1)])
    assert {one.label for one in prospects(found, PLAN)} == {"range"}
    assert unknown_tasks(found, PLAN) == ("c: terms",)
    hidden = msgspec.structs.replace(found, hidden=frozenset({(0, 1)}))
    assert unknown_tasks(hidden, PLAN) == ()


def test_pairs_have_the_spread_of_earlier_differences_or_that_of_both_sides():
    known = history([(0.15, 0.15)])
    assert prospects(known, PLAN)[0].sd == pytest.approx(0.15 * math.sqrt(2))
    pairs = {((0, 0), "throughput", (kind_of(ES), kind_of(OS))): Noise(0.04, 7, 8, "same")}
    known = msgspec.structs.replace(known, noises={**known.noises, **pairs})
    assert (prospects(known, PLAN)[0].sd, prospects(known, PLAN)[0].df) == (0.04, 7)
    # Values that are equal to the last digit are no measurement of how much they differ.
    pairs = {key: msgspec.structs.replace(noise, sd=0.0) for key, noise in pairs.items()}
    known = msgspec.structs.replace(known, noises={**known.noises, **pairs})
    assert prospects(known, PLAN)[0].sd == pytest.approx(0.15 * math.sqrt(2))


def test_a_plan_sees_what_its_forks_can_see():
    (seen,) = visible([prospect(0.02)], 5, PLAN)
    expected = least_effect(Spread(0.02, 9).of_coming_run, Rule(math.log(1.03), paired=True), 5)
    assert seen == pytest.approx(math.expm1(expected))
    seen = list(visible([prospect(0.02), prospect(0.02)], 5, PLAN))
    assert seen[0] == seen[1] > math.expm1(expected)


@pytest.mark.parametrize(
    ("stop", "block_s", "forks"),
    [
        (None, 10.0, 50),
        (StopSpec(budget_s=100), 10.0, 10),
        (StopSpec(budget_s=5), 10.0, 1),
        (StopSpec(decided=True), 10.0, 50),
    ],
)
def test_a_stop_rule_decides_how_many_forks_are_expected(stop: StopSpec | None, block_s: float, forks: int):
    plan = msgspec.structs.replace(PLAN, forks=50, stop=stop)
    assert expected_forks(plan, block_s) == forks
