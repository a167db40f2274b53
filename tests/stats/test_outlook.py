"""Forecasts keep what they promise: power, least effects, forks to go."""

import math

import msgspec
import numpy as np
import pytest
from scipy.stats import nct, t, ttest_ind

from benchctl.stats.compare import Comparison
from benchctl.stats.outlook import (
    Estimate,
    Rule,
    estimate_of,
    family_weight,
    forks_to_verdict,
    further_forks,
    least_effect,
    power,
    rule_of,
    with_outlooks,
)
from comparing import compare

BASE = (1.0, 1.03, 0.98, 1.01, 1.0)
MARGIN = math.log(1.05)
MOST = 50


def sequential(**changes: float) -> Rule:
    return Rule(MARGIN, paired=True, looks=None, **changes)


def compared(*, paired: bool = False, **changes: object) -> Comparison:
    found = compare(
        BASE,
        [1.02 * value for value in (*BASE[2:], *BASE[:2])],
        higher_is_better=True,
        margin=0.03,
        paired=paired,
        names=("es", "os"),
    )
    return msgspec.structs.replace(found, **changes)


def test_the_spread_is_that_behind_the_error_of_the_effect():
    logs = np.log(BASE)
    assert estimate_of(compared()).sd == pytest.approx(logs.std(ddof=1))
    differences = np.roll(logs, -2) - logs
    assert estimate_of(compared(paired=True)).sd == pytest.approx(differences.std(ddof=1))
    assert estimate_of(compared(error=None)) is None


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize(("looks", "then"), [(1, 2), (2, 3), (None, None)])
def test_an_open_row_lacks_further_blocks_by_the_rule_for_one_more_look(
    looks: int | None, then: int | None, *, paired: bool
):
    comparison = compared(paired=paired, looks=looks)
    assert comparison.verdict == "inconclusive"
    (found,) = with_outlooks([comparison], "holm")
    rule = msgspec.structs.replace(rule_of(comparison), looks=then)
    assert found.further == forks_to_verdict(estimate_of(comparison), rule, 50)


def test_a_row_with_a_verdict_lacks_nothing():
    assert further_forks(compared(verdict="slower")) is None
    assert further_forks(compared(error=None, verdict="inconclusive")) is None
    assert further_forks(compared(replicate="build", units_baseline=3, units_contender=3)) is None


def test_the_next_row_of_a_family_is_weighed_by_its_rank():
    family = [compared(p_adjusted=p) for p in (0.01, 0.04, 0.3, 0.6, 0.9)]
    left_out = compared(p_adjusted=None)
    assert family_weight([*family, left_out]) == pytest.approx(5 / 3)
    assert family_weight(family, "holm") == 3
    assert family_weight(family[:2]) == 1
    alone, among_five = (further_forks(compared(), weight) for weight in (1, 5))
    assert among_five > alone


def test_the_least_effect_of_a_row_is_that_of_its_adjusted_p():
    family = [compared(p_adjusted=0.5, margin_percent=0.1)] * 4
    (alone,), together = (with_outlooks(rows, "benjamini-hochberg") for rows in (family[:1], family))
    # Exactly that of the two-sided t-test, by the noncentral t distribution.
    ncp = math.log1p(alone.mde_percent / 100) / alone.error
    assert nct.sf(t.isf(0.025, 8), 8, ncp) == pytest.approx(0.8, abs=0.005)
    assert together[0].mde_percent > 1.2 * alone.mde_percent
    assert with_outlooks([compared(error=None)], "holm")[0].mde_percent is None
    early = compared(looks=None, n_baseline=2, n_contender=2)
    assert with_outlooks([early], "holm")[0].mde_percent is None


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
    (alone,) = with_outlooks([alike], "holm")
    effect = math.log1p(alone.mde_percent / 100)
    found = (ttest_ind(right + effect, left, axis=1, equal_var=False).pvalue <= 0.05).mean()
    assert found == pytest.approx(0.8, abs=0.06)


def decides(pairs: np.ndarray, count: int, rule: Rule) -> bool:
    """Whether so many pairs have a verdict, by the rules as written."""
    mean, error = pairs[:count].mean(), pairs[:count].std(ddof=1) / math.sqrt(count)
    significant = abs(mean) >= rule.critical(count) * error
    return significant or abs(mean) + rule.critical(count, 0.1) * error < MARGIN


@pytest.mark.parametrize("effect", [0.0, 0.04, 0.12])
@pytest.mark.parametrize("looks", [2, None])
def test_forks_to_go_decide_four_of_five_runs_of_the_effect_and_spread_that_were_seen(
    looks: int | None, effect: float
):
    generator, rule = np.random.default_rng(20_240_905), Rule(MARGIN, paired=True, looks=looks)
    # As if the run had been just so: the shrunk estimate is then the effect.
    seen = effect * (1 if looks else 7 / 6)
    further = forks_to_verdict(Estimate(seen, 0.07, 6), rule, 400)
    total = 6 + further
    found = [decides(effect + 0.07 * generator.standard_normal(total), total, rule) for _ in range(400)]
    assert 0.74 <= np.mean(found) <= 0.92


def test_what_no_run_can_have_is_out_of_reach():
    assert forks_to_verdict(Estimate(0.02, 0.1, 5), sequential(), MOST) is None
    assert forks_to_verdict(Estimate(0.1, 0.1, 5), sequential(), 5) is None


def test_an_effect_within_the_margin_needs_no_estimate_beyond_it():
    within, beyond = (power(effect, 0.02, Rule(0.05, paired=True), 20) for effect in (0.05, 0.0501))
    assert within > 0.99
    assert beyond == pytest.approx(0.51, abs=0.01)


def test_power_is_that_of_the_t_test_where_no_margin_matters():
    # Cohen 1988, table 2.4.1: 26 a side find d = .8 by a two-sided test at .05 with 80% power; 64 find .5.
    rule = Rule(0.0, paired=False)
    for effect, forks in ((0.8, 26), (0.5, 64)):
        assert power(effect, 1.0, rule, forks - 1) < 0.8 <= power(effect, 1.0, rule, forks)


def test_other_rows_of_the_family_take_more_forks():
    assert least_effect(0.1, sequential(weight=10), 10) > least_effect(0.1, sequential(), 10)


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize(("sd", "forks"), [(0.02, 6), (0.07, 9), (0.2, 4), (0.07, 40)])
def test_the_least_effect_is_found_with_80_percent_power(sd: float, forks: int, *, paired: bool):
    rule = Rule(MARGIN, paired=paired)
    effect = least_effect(sd, rule, forks)
    assert power(effect, sd, rule, forks) == pytest.approx(0.8, abs=0.001)
    generator, repetitions = np.random.default_rng(7), 20_000
    units, df = forks / rule.sides, rule.sides * (forks - 1)
    found = effect + sd / math.sqrt(units) * generator.standard_normal(repetitions)
    errors = sd * np.sqrt(generator.chisquare(df, repetitions) / df / units)
    beyond = found > (MARGIN if effect > MARGIN else 0.0)
    both = (beyond & (found >= rule.critical(forks) * errors)).mean()
    # Significance and the margin are seen as one where either is rarer.
    assert 0.75 <= both <= 0.81


def test_too_few_forks_find_nothing():
    assert least_effect(0.05, Rule(MARGIN, paired=True), 1) == math.inf


def test_nothing_that_varies_is_decided_at_once():
    assert forks_to_verdict(Estimate(0.1, 0.0, 5), sequential(), MOST) == 1


def test_an_estimate_that_ended_a_run_is_drawn_towards_0():
    found = Estimate(0.12, 0.05, 5)
    assert found.shrunk(sequential()) == pytest.approx(0.1)
    assert found.shrunk(Rule(MARGIN, paired=False, looks=None)) == pytest.approx(0.12 * 2.5 / 3.5)
