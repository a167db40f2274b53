"""Points without numbers: each against the first, and whether variants differ in that."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest

from benchctl.results.model import ForkRecord
from benchctl.results.plan import Place, Plan
from benchctl.stats.analyse import analyse, analyse_run
from benchctl.stats.analysis import Analysis, SweepAxis, SweepCurve
from benchctl.stats.caveat import Caveat
from benchctl.stats.compare import Comparison
from benchctl.sweep.curve import ByBlock, judged_curves
from benchctl.track.model import Challenge, Task
from builders import make_fork, make_plan, make_summary
from sweeps import forks, make_curve, swept_record, timed_record

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
    es, os = curve.lines
    assert verdicts(es.changes) == ["equivalent", "slower"]
    assert verdicts(os.changes) == ["slower", "slower"]
    assert [(change.baseline, change.contender) for change in es.changes] == [
        ("fresh", "scheduled"),
        ("fresh", "polluted"),
    ]


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


def test_numbers_have_growth_and_no_interactions():
    (pair,) = judged(
        {"es": forks(lambda x: x), "os": forks(lambda x: 2 * x, seed=2)},
        SweepAxis("clients", ("1", "2", "4", "8"), (1, 2, 4, 8)),
    ).pairs
    assert pair.interactions == ()
    assert pair.growth.exponent is not None


def test_what_may_be_0_changes_but_has_no_ratio_of_ratios():
    values = {"es": points(0, 10, 20), "os": points(1, 10, 20, seed=2)}
    curve = judged(values, metric="gc")
    assert curve.pairs[0].interactions == ()
    assert curve.lines[1].changes[0].difference == pytest.approx(9, abs=1)


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
    weak = msgspec.structs.replace(firm.lines[1], remarks=((), ("not warmed up",), ()))
    (curve,) = judged_curves([msgspec.structs.replace(firm, lines=(firm.lines[0], weak))])
    assert [one.provisional for one in curve.pairs[0].interactions] == [True, False]
    assert [one.provisional for one in curve.lines[0].changes] == [False, False]
    assert [one.provisional for one in curve.lines[1].changes] == [True, False]


@pytest.mark.parametrize(("code", "verdict"), [("saturated", "n/a"), ("too-few-samples", "insufficient")])
def test_a_doubt_that_withholds_the_verdict_at_a_point_withholds_those_against_it(code: Any, verdict: str):
    values = {"es": points(10, 10, 10), "os": points(10, 15, 15, seed=2)}
    curve = judged(values, caveats=[(), (Caveat(code, "x"),), ()])
    assert verdicts(curve.pairs[0].interactions) == [verdict, "slower"]
    assert verdicts(curve.lines[1].changes) == [verdict, "slower"]


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
    assert by_margin.curves[0].lines[0].changes[0].margin_percent == 50


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
    assert {(curve.axis.name, curve.axis.fixed) for curve in curves} == {
        ("history", "clients 1"),
        ("history", "clients 2"),
    }
    assert all(curve.pairs[0].interactions for curve in curves)


# What ran before, without a sweep.

SORT, RANGE = Task("sort", iterations=9), Task("range", iterations=9)
PLAN = make_plan(schedules=(Challenge("debug", (SORT, RANGE)), Challenge("fresh", (RANGE,))))


def analysed(plan: Plan, milliseconds: Mapping[tuple[str, Place], float], blocks: int = 6) -> Analysis:
    """1 ms but for these, by variant and place."""
    luck = np.random.default_rng(5)

    def fork(variant: str, block: int) -> ForkRecord:
        summaries = [
            msgspec.structs.replace(
                make_summary(
                    task.label,
                    milliseconds.get((variant, (schedule, place)), 1.0) * float(np.exp(luck.normal(0, 0.01))),
                ),
                schedule=schedule,
                task=place,
            )
            for schedule, challenge in enumerate(plan.schedules)
            for place, task in enumerate(challenge.schedule)
        ]
        return make_fork(variant, block, *summaries)

    return analyse({name: [fork(name, block) for block in range(blocks)] for name in ("es", "os")}, plan)


def test_an_operation_after_different_tasks_is_a_curve_without_a_sweep():
    found = analysed(PLAN, {("os", (0, 1)): 1.3})
    assert [(curve.task, curve.metric) for curve in found.curves] == [
        ("range", "throughput"),
        ("range", "service_time_p90"),
    ]
    curve = found.curves[1]
    assert curve.axis == SweepAxis("history", ("on a fresh node", "after sort"), derived=True)
    assert [[one.verdict for one in point] for point in curve.comparisons] == [["equivalent"], ["slower"]]
    assert verdicts(curve.pairs[0].interactions) == ["slower"]
    assert [verdicts(line.changes) for line in curve.lines] == [["equivalent"], ["slower"]]
    # Its rows are in the tables of tasks as those of any run are.
    assert not any(row.swept for row in found.rows)


def test_places_that_ask_unequally_often_say_so():
    longer = Challenge("longer", (SORT, msgspec.structs.replace(RANGE, iterations=90)))
    plan = make_plan(schedules=(Challenge("fresh", (RANGE,)), longer))
    curve = analysed(plan, {}).curves[0]
    assert [line.remarks for line in curve.lines] == [((), ("not as often asked",))] * 2


def test_operations_under_several_loads_have_a_curve_each():
    many = msgspec.structs.replace(RANGE, clients=4)
    plan = make_plan(schedules=(Challenge("fresh", (RANGE,)), Challenge("more", (many, SORT, RANGE, many))))
    names = [curve.task for curve in analysed(plan, {}).curves if curve.metric == "throughput"]
    assert names == ["range, 1 clients", "range, 4 clients"]
