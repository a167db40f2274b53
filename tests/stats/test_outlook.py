"""Power calculations from earlier forks, checked against the figures of the specification."""

import math
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from benchctl.results.plan import Plan, StopSpec
from benchctl.stats.history import History, Match, Noise, kind_of
from benchctl.stats.inference import mde
from benchctl.stats.metrics import SERVICE_TIME, THROUGHPUT
from benchctl.stats.outlook import (
    Prospect,
    expected_forks,
    plan_forks,
    prospects,
    unknown_tasks,
    visible,
)
from benchctl.track.model import Challenge, Task
from builders import ES, OS, make_plan

PLAN = make_plan(schedules=(Challenge("c", (Task("range"), Task("terms"))),), forks=10)


def history(
    sds: Sequence[tuple[float, float]], df: int = 9, fork_s: float | None = 6.0, match: Match = "same"
) -> History:
    """One pair of fork SDs (es, os) a task of PLAN, alike in both metrics."""
    noises = {
        ((0, task), metric.key, kind_of(spec)): Noise(sd, df, df + 1, match)
        for task, pair in enumerate(sds)
        for metric in (THROUGHPUT, SERVICE_TIME)
        for spec, sd in zip((ES, OS), pair, strict=True)
    }
    seconds = {} if fork_s is None else {kind_of(ES): fork_s, kind_of(OS): 2 * fork_s}
    return History(noises, seconds, frozenset(), 2 * (df + 1), ("a",))


def prospect(sd: float, df: float = 9) -> Prospect:
    return Prospect(0, 0, "range", "throughput", "es", "os", sd, df, "same")


def test_both_sides_together_have_the_mean_of_their_variances():
    found = prospects(history([(0.10, 0.20)]), PLAN)
    assert [one.metric for one in found] == ["throughput", "service_time_p90"]
    assert found[0].sd == pytest.approx(math.sqrt((0.01 + 0.04) / 2))
    # Satterthwaite: between the degrees of freedom of one side and those of both.
    assert 9 < found[0].df < 18
    assert prospects(history([(0.1, 0.1)]), PLAN)[0].df == pytest.approx(18)


def test_cpu_of_the_node_is_planned_beside_what_was_asked_for():
    spreads = history([(0.1, 0.1)])
    noises = {
        **spreads.noises,
        **{((0, 0), "cpu", kind_of(spec)): Noise(0.02, 9, 10, "same") for spec in (ES, OS)},
    }
    known = msgspec.structs.replace(spreads, noises=noises)
    found = plan_forks(known, PLAN, 0.10)
    assert [(one.prospect.metric, one.likely.forks) for one in found.beside] == [("cpu", 3)]
    assert found.hardest.prospect.metric == "throughput"
    chosen = msgspec.structs.replace(PLAN, metrics="throughput")
    assert plan_forks(known, chosen, 0.10).beside == ()


def test_a_task_without_earlier_forks_is_named_not_guessed():
    found = history([(0.1, 0.1)])
    assert {one.label for one in prospects(found, PLAN)} == {"range"}
    assert unknown_tasks(found, PLAN) == ("c: terms",)
    hidden = msgspec.structs.replace(found, hidden=frozenset({(0, 1)}))
    assert unknown_tasks(hidden, PLAN) == ()


def test_forks_for_the_spreads_of_the_specification():
    found = plan_forks(History({}, {}, frozenset(), 0, ()), PLAN, 0.10)
    assert [round(one.cv_percent) for one in found.assumed] == [2, 5, 10, 15]
    assert found.assumed[-1].forks == pytest.approx(39, abs=1)
    assert found.assumed[-1].seconds is None
    assert plan_forks(History({}, {}, frozenset(), 0, ()), PLAN, 0.05).assumed[-1].forks == 148
    assert found.requirements == ()
    assert found.hardest is None


def test_forks_and_time_follow_from_the_history():
    found = plan_forks(history([(0.15, 0.15), (0.05, 0.05)]), PLAN, 0.10)
    hardest = found.hardest
    assert hardest is not None
    assert hardest.prospect.label == "range"
    assert hardest.likely.forks == pytest.approx(39, abs=1)
    assert hardest.likely.seconds == hardest.likely.forks * 18.0
    assert hardest.cautious.forks > hardest.likely.forks
    assert [one.prospect.label for one in found.requirements] == ["range", "range", "terms", "terms"]


def test_pairs_need_the_spread_of_differences():
    paired = plan_forks(history([(0.15, 0.15)]), make_plan(schedules=PLAN.schedules, paired=True), 0.10)
    unpaired = plan_forks(history([(0.15, 0.15)]), PLAN, 0.10)
    # With nothing in common a pair is worth no more than a fork of each side.
    assert paired.requirements[0].likely.forks == pytest.approx(unpaired.requirements[0].likely.forks, abs=2)


@pytest.mark.parametrize("df", [2, 9, 40])
def test_the_cautious_spread_is_the_upper_bound_of_chi_square(df: int):
    assert prospect(0.1, df).upper_sd == pytest.approx(0.1 * math.sqrt(df / chi2.ppf(0.2, df)))


def test_the_cautious_spread_covers_the_true_one_four_times_of_five():
    rng = np.random.default_rng(7)
    estimates = rng.normal(0, 0.1, (20_000, 6)).std(axis=1, ddof=1)
    factor = prospect(1.0, 5).upper_sd
    assert np.mean(estimates * factor >= 0.1) == pytest.approx(0.8, abs=0.01)


def test_a_plan_sees_what_its_forks_can_see():
    assert visible(prospect(0.02), 5, paired=False) == pytest.approx(math.expm1(mde(5, 5, 0.02)))
    assert visible(prospect(0.02), 5, paired=False) == pytest.approx(0.041, abs=0.001)


@pytest.mark.parametrize(
    ("stop", "block_s", "forks"),
    [
        (None, 10.0, 50),
        (StopSpec(budget_s=100), 10.0, 10),
        (StopSpec(budget_s=5), 10.0, 1),
        (StopSpec(budget_s=100), None, 50),
        (StopSpec(precision=1.0), 10.0, 8),
        (StopSpec(precision=0.0001), 10.0, 50),
        (StopSpec(precision=0.0001, budget_s=300), 10.0, 30),
    ],
)
def test_a_stop_rule_decides_how_many_forks_are_expected(
    stop: StopSpec | None, block_s: float | None, forks: int
):
    assert expected_forks([prospect(0.05)], 50, stop, block_s, paired=False) == forks


def test_the_widest_interval_decides_on_precision():
    noisy = [prospect(0.01), prospect(0.10)]
    stop = StopSpec(precision=0.05)
    # The least n with t(2n - 2) * 0.10 * sqrt(2 / n) <= ln 1.05.
    assert expected_forks(noisy, 50, stop, None, paired=False) == 34
    assert expected_forks(noisy[:1], 50, stop, None, paired=False) == 8


@settings(deadline=None)
@given(st.floats(0.01, 0.5), st.floats(0.01, 1.0))
def test_more_noise_never_takes_fewer_forks(sd: float, effect: float):
    def forks(of_sd: float, plan: Plan = PLAN) -> int:
        return plan_forks(history([(of_sd, of_sd)]), plan, effect).requirements[0].likely.forks

    assert forks(sd) <= forks(1.3 * sd)
