"""The record of a search: what runs show of an effect, and what a question may spend."""

import math
from typing import Any

import msgspec
import pytest

from benchctl.errors import BenchctlError
from benchctl.results.model import RunRecord
from benchctl.run.questions import all_begun, failure
from benchctl.search.record import (
    Decision,
    Effect,
    MinimizeSpec,
    require_values,
    rule_of,
    signed,
    values_of,
)
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


BEGUN = decision(1, 1.4, 1.5, 1.45, 1.42, 1.48)
WHOLE = sum(math.log(ratio) for ratio in (1.4, 1.5, 1.45, 1.42, 1.48)) / 5


def test_a_removal_is_told_from_no_effect_by_half_of_the_whole_one() -> None:
    rule = rule_of(SPEC, [BEGUN], "remove")
    assert (rule.gone, rule.there, rule.middle) == pytest.approx((0, WHOLE, WHOLE / 2))
    assert rule.beta == 0.05


def test_the_least_effect_that_counts_takes_the_place_of_none() -> None:
    spec = msgspec.structs.replace(SPEC, by=0.3)
    rule = rule_of(spec, [BEGUN], "remove")
    assert (rule.gone, rule.there, rule.middle) == pytest.approx((math.log(1.3), WHOLE, math.log(1.3)))
    first = rule_of(spec, [], "whole")
    assert (first.gone, first.there, first.middle) == pytest.approx((math.log(1.3),) * 3)


def test_all_removals_together_spend_no_more_than_alpha() -> None:
    removals = [decision(2, 1.0, phase="remove", verdict="absent")] * 1000
    spent = [rule_of(SPEC, [BEGUN, *removals[:number]], "remove").alpha for number in range(1000)]
    assert rule_of(SPEC, [], "whole").alpha == rule_of(SPEC, [], "shorten").alpha == 0.025
    assert 0.0499 < sum(spent) < SPEC.alpha
    assert spent == sorted(spent, reverse=True)


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
    assert values_of([whole, alone], SLOWER, THROUGHPUT) == ([50.0, 25.0], [100.0, 100.0])


def test_the_effect_gives_pairs_their_sign() -> None:
    assert signed([0.3], SLOWER, SERVICE_TIME) == signed([0.3], FASTER, THROUGHPUT) == [0.3]
    assert signed([0.3], SLOWER, THROUGHPUT) == signed([0.3], FASTER, SERVICE_TIME) == [-0.3]


def test_variants_are_taken_from_the_same_run() -> None:
    forks = {("es", 0): 10.0, ("os", 0): 30.0, ("es", 1): 10.0, ("os", 1): None}
    effect = Effect("range", "slower", "os", "es")
    assert values_of([run("sort", "range", forks=forks)], effect, THROUGHPUT) == ([1000 / 30.0], [100.0])


def test_one_failed_fork_may_be_bad_luck_and_two_are_not() -> None:
    once = run("range", forks=es(1.0, None, 1.0))
    assert failure([once]) == ""
    assert all_begun([once])
    assert not all_begun([once, run("range", forks=es(1.0, 1.0))])
    assert failure([once, run("range", forks=es(None, None))]) == "2 forks failed, the last: no node"


def test_a_target_without_any_figure_shows_nothing() -> None:
    with pytest.raises(BenchctlError, match="no figure in any block"):
        require_values(decision(1), "range")
