"""Forecasts keep what they promise: power, ranges, reach."""

import math
from collections.abc import Iterator

import numpy as np
import pytest

from benchctl.stats.forecast import (
    BETWEEN_RUNS,
    Estimate,
    Forecast,
    Rule,
    Spread,
    forks_to_find,
    forks_to_verdict,
    least_effect,
    power,
)

_MARGIN = math.log(1.05)
_MOST = 50


def _sequential(**changes: float) -> Rule:
    return Rule(_MARGIN, paired=True, looks=None, **changes)


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("fork_sd", [0.02, 0.05, 0.1])
@pytest.mark.parametrize("margins", [2, 4])
def test_a_plan_from_earlier_runs_has_the_power_that_it_promises(
    margins: int, fork_sd: float, *, paired: bool
) -> None:
    rng, plans, per_plan = np.random.default_rng(20_240_901), 60, 50
    rule, effect = Rule(_MARGIN, paired=paired), math.log1p(0.05 * margins)
    sd = fork_sd * math.sqrt(2 if paired else 1)
    earlier_df = 3 * 5 * rule.sides
    promised, kept, fewest = 0.0, 0.0, math.inf
    for _ in range(plans):
        earlier, coming = sd * np.exp(BETWEEN_RUNS / math.sqrt(2) * rng.standard_normal(2))
        known = Spread(earlier * math.sqrt(rng.chisquare(earlier_df) / earlier_df), earlier_df)
        forks = forks_to_find(effect, known.of_coming_run, rule).forks
        promised += power(effect, known.of_coming_run, rule, forks) / plans
        units, df = forks / rule.sides, rule.sides * (forks - 1)
        found = effect + coming / math.sqrt(units) * rng.standard_normal(per_plan)
        errors = coming * np.sqrt(rng.chisquare(df, per_plan) / df / units)
        kept += float(((found > _MARGIN) & (found >= rule.critical(forks) * errors)).mean()) / plans
        fewest = min(fewest, forks)
    assert promised >= 0.8
    # Of three or four forks, one more or less makes much of a difference.
    assert kept == pytest.approx(promised, abs=0.07)
    assert fewest <= 4 or 0.75 <= kept <= 0.87


def test_the_range_of_a_run_under_way_holds_what_it_took() -> None:
    rng = np.random.default_rng(20_240_902)
    held: list[bool] = []
    decided_out_of_reach = out_of_reach = 0
    for margins in (0, 0.5, 1, 2, 3, 4):
        for _ in range(35):
            sd, effect = rng.choice((0.02, 0.05, 0.1)) * math.sqrt(2), math.log1p(0.05 * margins)
            pairs = effect + sd * rng.standard_normal(_MOST)
            first = next(_verdicts_from(pairs), _MOST + 1)
            if first > 5:
                found = Estimate(pairs[:5].mean(), Spread(pairs[:5].std(ddof=1), 4), 5)
                said = forks_to_verdict(found, _sequential(), _MOST)
                held.append((said.low or math.inf) <= first - 5 <= (said.high or math.inf))
                out_of_reach += not said.within_reach
                decided_out_of_reach += not said.within_reach and first <= _MOST
    assert len(held) > 130
    assert 0.7 <= np.mean(held) <= 0.9
    assert decided_out_of_reach <= max(1, out_of_reach / 5)


def _verdicts_from(pairs: np.ndarray) -> Iterator[int]:
    """Numbers of pairs with a verdict, one after the other, by the rules as written."""
    yield from (count for count in range(5, _MOST + 1) if _decides(pairs, count, _sequential()))


def _decides(pairs: np.ndarray, count: int, rule: Rule) -> bool:
    """Whether so many pairs have a verdict."""
    mean, error = pairs[:count].mean(), pairs[:count].std(ddof=1) / math.sqrt(count)
    significant = abs(mean) >= rule.critical(count) * error
    return significant or abs(mean) + rule.critical(count, 0.1) * error < _MARGIN


def test_forks_that_are_added_for_one_more_look_decide_more_than_half_of_the_runs() -> None:
    rng, sd, most = np.random.default_rng(20_240_905), 0.07, 200
    decided: list[bool] = []
    for _ in range(400):
        pairs = sd * (rng.standard_normal() + rng.standard_normal(most))
        if _decides(pairs, 6, Rule(_MARGIN, paired=True)):
            continue
        rule = Rule(_MARGIN, paired=True, looks=2)
        said = forks_to_verdict(Estimate(pairs[:6].mean(), Spread(pairs[:6].std(ddof=1), 5), 6), rule, most)
        decided.append(said.forks is not None and _decides(pairs, 6 + said.forks, rule))
    assert len(decided) > 100
    assert 0.5 <= np.mean(decided) <= 0.75


def test_a_sequential_plan_ends_as_often_as_it_promises() -> None:
    rng, rule, effect = np.random.default_rng(20_240_903), _sequential(), math.log1p(0.1)
    said = forks_to_find(effect, Spread(0.1, math.inf), rule, _MOST)
    ends = []
    for _ in range(200):
        pairs = effect + 0.1 * rng.standard_normal(_MOST)
        mean = [pairs[:count].mean() for count in range(5, _MOST + 1)]
        bounds = [
            max(rule.critical(count) * pairs[:count].std(ddof=1) / math.sqrt(count), _MARGIN)
            for count in range(5, _MOST + 1)
        ]
        ends.append(next((5 + at for at in range(len(mean)) if mean[at] >= bounds[at]), math.inf))
    assert np.mean(np.asarray(ends) <= said.forks) == pytest.approx(0.8, abs=0.07)
    held = (np.asarray(ends) >= said.low) & (np.asarray(ends) <= said.high)
    assert np.mean(held) == pytest.approx(0.8, abs=0.08)
    assert said.chance == pytest.approx(np.mean(np.isfinite(ends)), abs=0.05)


def test_a_sequential_plan_for_the_margin_counts_what_is_significant() -> None:
    said = forks_to_find(_MARGIN, Spread(0.05 * math.sqrt(2), 30), _sequential(), _MOST)
    assert 20 <= said.forks <= 45
    too_few = forks_to_find(_MARGIN, Spread(0.05 * math.sqrt(2), 30), _sequential(), 8)
    assert too_few.forks is None
    assert 0 < too_few.chance < 0.5


def test_an_effect_within_the_margin_needs_no_estimate_beyond_it() -> None:
    spread = Spread(0.02, math.inf)
    within, beyond = (power(effect, spread, Rule(0.05, paired=True), 20) for effect in (0.05, 0.0501))
    assert within > 0.99
    assert beyond == pytest.approx(0.51, abs=0.01)


def test_power_is_that_of_the_t_test_where_no_margin_matters() -> None:
    # Cohen 1988, table 2.4.1: 26 a side find d = .8 by a two-sided test at .05 with 80% power; 64 find .5.
    rule = Rule(0.0, paired=False)
    for effect, forks in ((0.8, 26), (0.5, 64)):
        assert forks_to_find(effect, Spread(1.0, math.inf), rule).forks == forks


def test_other_rows_of_the_family_take_more_forks() -> None:
    spread = Spread(0.1, 20)
    alone, among_ten = (
        forks_to_find(0.1, spread, Rule(_MARGIN, paired=True, weight=weight)).forks for weight in (1, 10)
    )
    assert among_ten > 1.4 * alone
    assert least_effect(spread, _sequential(weight=10), 10) > least_effect(spread, _sequential(), 10)


def test_the_least_effect_is_found_with_80_percent_power() -> None:
    for rule in (Rule(_MARGIN, paired=True), Rule(_MARGIN, paired=False)):
        spread = Spread(0.07, 12)
        assert power(least_effect(spread, rule, 9), spread, rule, 9) == pytest.approx(0.8, abs=0.001)
    # Within the margin it is found as `different`.
    precise = least_effect(Spread(0.001, math.inf), Rule(0.05, paired=True), 20)
    assert 0 < precise < 0.001


def test_too_few_forks_find_nothing() -> None:
    assert least_effect(Spread(0.05, 5), Rule(_MARGIN, paired=True), 1) == math.inf
    assert forks_to_verdict(Estimate(0.1, Spread(0.1, 4), 5), _sequential(), 5) == Forecast(
        None, None, None, 0, 0.0
    )


def test_nothing_that_varies_is_decided_at_once() -> None:
    assert forks_to_find(0.1, Spread(0.0, 5), Rule(_MARGIN, paired=True)).forks == 3
    assert forks_to_verdict(Estimate(0.1, Spread(0.0, 4), 5), _sequential(), _MOST).forks == 1


def test_no_number_of_forks_finds_no_effect() -> None:
    with pytest.raises(ValueError, match="positive"):
        forks_to_find(0.0, Spread(0.1, 5), Rule(_MARGIN, paired=True))


def test_an_estimate_that_ended_a_run_is_drawn_towards_0() -> None:
    found = Estimate(0.12, Spread(0.05, 4), 5)
    assert found.shrunk(_sequential()) == pytest.approx(0.1)
    assert found.shrunk(Rule(_MARGIN, paired=False, looks=None)) == pytest.approx(0.12 * 2.5 / 3.5)


def test_the_sd_of_a_coming_run_is_known_less_well() -> None:
    coming = Spread(0.05, math.inf).of_coming_run
    low, high = coming.quantiles(np.asarray((0.025, 0.975))) / 0.05
    assert low == pytest.approx(0.58, abs=0.06)
    assert high == pytest.approx(1.75, abs=0.2)
