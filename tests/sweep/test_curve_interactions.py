"""Points without numbers: each against the first, and whether variants differ in that."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import SweepAxis, SweepCurve
from benchctl.stats.caveat import Caveat
from benchctl.stats.compare import Comparison
from benchctl.sweep.curve import ByBlock, judged_curves
from sweeps import make_curve, swept_record, timed_record

HISTORY = SweepAxis("history", ("fresh", "scheduled", "polluted"))
BLOCKS = 8


def points(*milliseconds: float, seed: int = 1, blocks: int = BLOCKS) -> list[ByBlock]:
    """By history, the mean over forks but for their luck."""
    luck = np.exp(np.random.default_rng(seed).normal(0, 0.02, (len(milliseconds), blocks)))
    return [
        dict(enumerate((mean * factors).tolist())) for mean, factors in zip(milliseconds, luck, strict=True)
    ]


def judged(values: Mapping[str, Sequence[ByBlock]], axis: SweepAxis = HISTORY, **more: Any) -> SweepCurve:
    (curve,) = judged_curves([make_curve(values, axis, **more)])
    return curve


def verdicts(comparisons: Sequence[Comparison]) -> list[str]:
    return [comparison.verdict for comparison in comparisons]


def test_a_difference_that_depends_on_the_point_is_an_interaction():
    curve = judged({"es": points(10, 10, 15), "os": points(10, 13, 15, seed=2)})
    (pair,) = curve.pairs
    assert verdicts(pair.interactions) == ["slower", "equivalent"]
    first = pair.interactions[0]
    assert (first.baseline, first.contender) == ("es", "os")
    assert first.baseline_value == pytest.approx(1, rel=0.03)
    assert first.contender_value == pytest.approx(1.3, rel=0.03)
    assert first.effect_percent == pytest.approx(30, abs=5)
    assert first.p_adjusted is not None
    assert first.p is not None
    assert first.p <= first.p_adjusted


def test_the_interaction_is_the_ratio_of_the_ratios_within_blocks():
    es, os = points(10, 12), points(8, 14, seed=2)
    axis = SweepAxis("jdk", ("17", "21"))
    (interaction,) = judged({"es": es, "os": os}, axis).pairs[0].interactions
    logs = [
        math.log(os[1][block] / os[0][block]) - math.log(es[1][block] / es[0][block])  # type: ignore[operator]
        for block in range(BLOCKS)
    ]
    assert interaction.effect_percent == pytest.approx(100 * math.expm1(np.mean(logs)))
    assert interaction.paired


def test_a_missing_value_leaves_no_verdict_and_a_missing_fork_only_its_block():
    es, os = points(10, 10), points(10, 20, seed=2)
    axis = SweepAxis("jdk", ("17", "21"))
    (whole,) = judged({"es": es, "os": os}, axis).pairs[0].interactions
    (lacking,) = (
        judged({"es": es, "os": [os[0], {**os[1], 3: None}]}, axis, comparisons=()).pairs[0].interactions
    )
    absent = {block: value for block, value in os[1].items() if block != 3}
    (fewer,) = judged({"es": es, "os": [os[0], absent]}, axis, comparisons=()).pairs[0].interactions
    assert (whole.verdict, lacking.verdict, fewer.verdict) == ("slower", "insufficient", "slower")
    assert fewer.replicates == (BLOCKS - 1, BLOCKS - 1)


def test_what_few_blocks_or_a_weak_point_decide_is_provisional():
    values = {"es": points(10, 10, 10), "os": points(10, 15, 15, seed=2)}
    firm = judged(values)
    assert not any(one.provisional for one in firm.pairs[0].interactions)
    few = judged({name: [dict(list(point.items())[:4]) for point in line] for name, line in values.items()})
    assert all(one.provisional for one in few.pairs[0].interactions)
    remarks = {"os": ((), ("not warmed up",), ())}
    assert [one.provisional for one in judged(values, remarks=remarks).pairs[0].interactions] == [True, False]
    (alone,) = [judged({"os": values["os"]}, comparisons=(), remarks=remarks)]
    assert [one.provisional for one in alone.changes] == [True, False]


@pytest.mark.parametrize(("code", "verdict"), [("saturated", "n/a"), ("too-few-samples", "insufficient")])
def test_a_doubt_that_withholds_the_verdict_at_a_point_withholds_those_against_it(code: Any, verdict: str):
    values = {"es": points(10, 10, 10), "os": points(10, 15, 15, seed=2)}
    curve = judged(values, caveats=[(), (Caveat(code, "x"),), ()])
    assert verdicts(curve.pairs[0].interactions) == [verdict, "slower"]


def test_p_is_adjusted_over_all_interactions_of_a_metric():
    curves = [
        make_curve(
            {"es": points(10, 10, seed=seed), "os": points(10, 10.4, seed=seed + 50)},
            SweepAxis("jdk", ("17", "21")),
        )
        for seed in range(6)
    ]
    alone = [next(judged_curves([curve])).pairs[0].interactions[0] for curve in curves]
    for method in ("benjamini-hochberg", "holm"):
        together = [curve.pairs[0].interactions[0] for curve in judged_curves(curves, method)]
        assert all(one.p == other.p for one, other in zip(alone, together, strict=True))
        assert (
            max(one.p_adjusted / other.p_adjusted for one, other in zip(together, alone, strict=True)) > 1.5
        )


def test_every_axis_without_numbers_has_them_in_an_analysis():
    record = swept_record(sweep=("jdk=21,17",))
    found = analyse_run(record)
    for curve in found.curves:
        (interaction,) = curve.pairs[0].interactions
        assert (interaction.paired, interaction.replicates) == (True, (6, 6))
        assert interaction.verdict in {"equivalent", "inconclusive"}
    by_margin = analyse_run(record, margins={"throughput": 0.5})
    assert by_margin.curves[0].pairs[0].interactions[0].margin_percent == 50


def test_index_builds_count_where_they_are_the_unit():
    curve = judged({"es": points(10, 10, 10), "os": points(10, 15, 15, seed=2)}, replicate="build")
    first = curve.pairs[0].interactions[0]
    assert (first.verdict, first.replicate, first.replicates) == ("slower", "build", (BLOCKS, BLOCKS))


def test_tasks_at_several_clients_are_asked_about_their_history():
    record = swept_record(sweep=("history=fresh,polluted",), challenges=("range-only-short",))
    tasks = tuple(
        msgspec.structs.replace(
            record.plan.schedules[0].schedule[0], name=f"range-{count}", clients=count, swept="r"
        )
        for count in (1, 2)
    )
    schedules = tuple(msgspec.structs.replace(one, schedule=tasks) for one in record.plan.schedules)
    plan = msgspec.structs.replace(record.plan, schedules=schedules)
    curves = analyse_run(timed_record(plan, lambda spec, _place: 2.0 + (spec.name == "os"))).curves
    assert {(curve.axis.name, curve.task) for curve in curves} == {
        ("history", "range-1"),
        ("history", "range-2"),
    }
    assert all(curve.pairs[0].interactions for curve in curves)
