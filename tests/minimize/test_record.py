"""The record of a search: what runs show of an effect, and what a question may spend."""

import math
from typing import Any

import msgspec
import pytest

from benchctl.errors import BenchctlError
from benchctl.minimize.record import (
    Decision,
    Effect,
    FirstQuestion,
    MinimizeSpec,
    RemovalQuestion,
    interval_percent,
    log_ratios,
    percent_of,
    require_values,
    values_of,
)
from benchctl.results.model import RunRecord
from benchctl.run.questions import all_begun, failure
from benchctl.stats.metrics import SERVICE_TIME, THROUGHPUT
from benchctl.track.model import Challenge, Task
from builders import ES, OS, make_fork, make_plan, make_record, make_summary

SPEC = MinimizeSpec(
    effect=Effect("range", "slower", "es"),
    metric="service_time_p50",
    by=None,
    most_forks=12,
    prefix_iterations=None,
    budget_s=None,
    alpha=0.05,
)


def decision(number: int, *ratios: float, phase: str = "whole", verdict: str = "present") -> Decision:
    return Decision(
        number=number,
        phase=phase,  # type: ignore[arg-type]
        short=False,
        steps=(0, 1),
        tasks=("a", "b"),
        verdict=verdict,  # type: ignore[arg-type]
        contender=tuple(10 * ratio for ratio in ratios),
        reference=(10.0,) * len(ratios),
    )


def odds(decisions: list[Decision], number: int, *ratios: float) -> float:
    found = RemovalQuestion(SPEC, decisions, number).judge([math.log(ratio) for ratio in ratios]).log_odds
    assert found is not None
    return found


BEGUN = decision(1, 1.4, 1.5, 1.45, 1.42, 1.48)
PAIRS = (1.3, 1.35, 1.4)


def test_a_question_knows_those_before_it_and_none_behind_so_that_it_is_the_same_when_it_goes_on() -> None:
    wild = decision(2, 0.5, 2.0, 1.0, phase="remove", verdict="absent")
    alone = odds([BEGUN], 2, *PAIRS)
    assert odds([BEGUN, wild], 2, *PAIRS) == alone
    assert abs(odds([BEGUN, wild], 3, *PAIRS)) < abs(alone)


def test_half_of_the_effect_is_the_threshold_unless_another_is_asked_for() -> None:
    half = math.exp(sum(math.log(one) for one in (1.4, 1.5, 1.45, 1.42, 1.48)) / 10)
    assert odds([BEGUN], 2, *(half,) * 3) == pytest.approx(0, abs=1e-6)
    asked_for = RemovalQuestion(msgspec.structs.replace(SPEC, by=0.3), [BEGUN], 2)
    assert asked_for.judge([math.log(1.3)] * 3).log_odds == pytest.approx(0, abs=1e-6)


def test_later_questions_may_spend_less() -> None:
    spent = [RemovalQuestion(SPEC, [BEGUN], number).alpha for number in (2, 3, 4)]
    assert spent == sorted(spent, reverse=True)
    assert FirstQuestion(SPEC, 1).alpha + sum(spent) < SPEC.alpha


def test_few_pairs_have_no_odds() -> None:
    said = RemovalQuestion(SPEC, [BEGUN], 2).judge([0.3, 0.3])
    assert (said.verdict, said.log_odds) == ("measuring", None)
    assert said.log_odds_needed == pytest.approx(-math.log(RemovalQuestion(SPEC, [BEGUN], 2).alpha))


SLOWER = Effect("range", "slower", "es")
FASTER = Effect("range", "faster", "es")


def run(*labels: str, forks: dict[tuple[str, int], float | None], blocks: int = 3) -> RunRecord:
    """A run whose last task took so long, by variant and block; None for a fork that failed."""
    variants = (ES, OS) if any(name == "os" for name, _ in forks) else (ES,)
    challenge = Challenge("c", tuple(Task(label, iterations=1) for label in labels))
    done = []
    for (variant, block), mean_ms in forks.items():
        changes: dict[str, Any] = {"status": "failed", "reason": "no node"} if mean_ms is None else {}
        summary = make_summary(labels[-1], mean_ms or 1.0, task=len(labels) - 1)
        done.append(make_fork(variant, block, summary, **changes))
    plan = make_plan(variants=variants, schedules=(challenge,), forks=blocks)
    return make_record("r", plan=plan, forks=tuple(done))


def es(*times: float | None) -> dict[tuple[str, int], float | None]:
    return {("es", block): time for block, time in enumerate(times)}


def test_blocks_that_both_sides_finished_are_side_by_side() -> None:
    whole = run("sort", "range", forks=es(20.0, None, 40.0, 50.0))
    alone = run("range", forks=es(10.0, 10.0, 10.0))
    found = values_of([whole, alone], SLOWER, THROUGHPUT)
    assert found.contender == (50.0, 25.0)
    assert found.reference == (100.0, 100.0)
    assert log_ratios(found, SLOWER, THROUGHPUT) == pytest.approx((math.log(2), math.log(4)))
    assert log_ratios(found, FASTER, THROUGHPUT) == pytest.approx((-math.log(2), -math.log(4)))


def test_times_turn_over_what_rates_say() -> None:
    whole, alone = run("sort", "range", forks=es(20.0)), run("range", forks=es(10.0))
    found = values_of([whole, alone], SLOWER, SERVICE_TIME)
    assert log_ratios(found, SLOWER, SERVICE_TIME) == pytest.approx((math.log(2),))
    assert percent_of(math.log(2), SLOWER, SERVICE_TIME) == pytest.approx(100)
    assert percent_of(math.log(2), SLOWER, THROUGHPUT) == pytest.approx(-50)
    assert percent_of(math.log(2), FASTER, SERVICE_TIME) == pytest.approx(-50)


def test_variants_are_taken_from_the_same_run() -> None:
    forks = {("es", 0): 10.0, ("os", 0): 30.0, ("es", 1): 10.0, ("os", 1): None}
    effect = Effect("range", "slower", "os", "es")
    found = values_of([run("sort", "range", forks=forks)], effect, THROUGHPUT)
    assert log_ratios(found, effect, THROUGHPUT) == pytest.approx((math.log(3),))


def test_a_block_without_a_figure_is_no_pair() -> None:
    whole = run("sort", "range", forks=es(20.0, 20.0))
    silent = make_fork("es", 2, make_summary("range", 1.0, task=1, throughput_per_s=None))
    still = make_fork("es", 3, make_summary("range", 1.0, task=1, throughput_per_s=0.0))
    whole = make_record("r", plan=whole.plan, forks=(*whole.forks, silent, still))
    alone = run("range", forks=es(10.0, 10.0, 10.0, 10.0))
    assert len(values_of([whole, alone], SLOWER, THROUGHPUT).contender) == 2


def test_an_interval_is_in_the_metric_s_own_direction() -> None:
    mean, low, high = interval_percent([0.6, 0.7, 0.8], SLOWER, THROUGHPUT)
    assert mean == pytest.approx(100 * math.expm1(-0.7))
    assert low is not None
    assert high is not None
    assert low < mean < high < 0  # type: ignore[operator]
    assert interval_percent([], SLOWER, THROUGHPUT) == (None, None, None)
    assert interval_percent([0.7], SLOWER, THROUGHPUT)[1:] == (None, None)


def test_one_failed_fork_may_be_bad_luck_and_two_are_not() -> None:
    once = run("range", forks=es(1.0, None, 1.0))
    assert failure([once]) == ""
    assert all_begun([once])
    assert not all_begun([once, run("range", forks=es(1.0, 1.0))])
    assert failure([once, run("range", forks=es(None, None))]) == "2 forks failed, the last: no node"


def test_a_target_without_any_figure_shows_nothing() -> None:
    nothing = values_of([run("a", "range", forks=es(None)), run("range", forks=es(1.0))], SLOWER, THROUGHPUT)
    with pytest.raises(BenchctlError, match="no figure in any block"):
        require_values(nothing, "range")
