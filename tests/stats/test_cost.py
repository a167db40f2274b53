"""Minutes to a verdict: forks that it takes, times what they cost."""

import math

import msgspec
import pytest

from benchctl.results.model import ForkRecord
from benchctl.stats.compare import Comparison, compare
from benchctl.stats.cost import Compared, fork_sd, forks_to_verdict, verdict_costs
from benchctl.stats.inference import forks_needed
from builders import make_fork

BASE = (1.0, 1.3, 0.9, 1.1, 1.0)
DONE = {
    "es": [make_fork("es", block, wall_s=wall_s) for block, wall_s in enumerate((10.0, 12.0, 90.0))],
    "os": [make_fork("os", block, wall_s=18.0) for block in range(3)],
}


def compared(*, paired: bool = False, **changes: object) -> Comparison:
    found = compare(
        BASE,
        [1.1 * value for value in BASE[::-1]],
        higher_is_better=True,
        margin=0.03,
        paired=paired,
        metric="throughput",
        baseline="es",
        contender="os",
    )
    return msgspec.structs.replace(found, **changes)


def cost_of(comparison: Comparison, done: dict[str, list[ForkRecord]] | None = None) -> list[float]:
    found = verdict_costs([Compared((0, 0), "range", comparison)], DONE if done is None else done)
    return [one.minutes for one in found]


@pytest.mark.parametrize("paired", [False, True])
def test_forks_for_ten_percent_times_the_median_fork_of_each(paired: bool):  # noqa: FBT001 - pytest passes it by name
    comparison = compared(paired=paired)
    (found,) = verdict_costs([Compared((0, 1), "range", comparison)], DONE)
    sd = fork_sd(comparison)
    assert sd is not None
    assert found.forks == forks_needed(math.log(1.1), sd, paired=paired)
    assert found.pair_s == 30.0
    assert found.minutes == pytest.approx(found.forks / 2)
    assert (found.task, found.label, found.metric, found.effect_percent) == (1, "range", "throughput", 10.0)


def test_the_spread_is_that_behind_the_error_of_the_effect():
    logs = [math.log(value) for value in BASE]
    variance = sum((one - sum(logs) / 5) ** 2 for one in logs) / 4
    assert fork_sd(compared()) == pytest.approx(math.sqrt(variance))
    assert fork_sd(compared(error=None)) is None


def test_what_is_not_judged_or_not_timed_costs_nothing_that_could_be_told():
    assert cost_of(compared(judged=False)) == []
    assert cost_of(compared(error=None)) == []
    assert cost_of(compared(replicate="build")) == []
    assert cost_of(compared(), {"es": [], "os": []}) == []
    assert cost_of(compared()) != []


def test_rows_with_a_verdict_lack_nothing_and_some_are_out_of_reach():
    assert forks_to_verdict(compared(verdict="slower")) is None
    assert forks_to_verdict(compared(effect_percent=3.0, verdict="inconclusive")) is None
    assert forks_to_verdict(compared(error=None, verdict="inconclusive")) is None
    (found,) = verdict_costs([Compared((0, 0), "range", compared(verdict="slower"))], DONE)
    assert (found.open, found.verdict_forks, found.verdict_minutes) == (False, None, None)
