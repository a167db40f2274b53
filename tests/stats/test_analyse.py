import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy.stats import ttest_ind, ttest_rel

from benchctl.results.figures import Quantiles
from benchctl.results.model import ForkRecord
from benchctl.stats.analyse import analyse
from benchctl.stats.decisions import gate
from benchctl.stats.metrics import metric_of
from benchctl.track.model import Challenge, Task
from builders import make_driver, make_fork, make_summary
from stats.made import fork, plan, summary

ES_MS = (10.0, 10.2, 9.9, 10.1, 10.0)
OS_MS = (13.0, 13.1, 12.8, 13.2, 13.0)


def forks(**sides: Sequence[float]) -> dict[str, list[ForkRecord]]:
    return {
        name: [fork(name, block, summary(ms)) for block, ms in enumerate(side)]
        for name, side in sides.items()
    }


def test_every_metric_of_a_closed_task_is_compared():
    found = analyse(forks(es=ES_MS, os=OS_MS), plan(Task("range", iterations=200)))
    assert [row.metric for row in found.rows] == ["throughput", "service_time_p90"]
    assert [row.comparisons[0].verdict for row in found.rows] == ["slower", "slower"]
    assert found.rows[0].figures[0].value == pytest.approx(99.6, abs=0.1)
    assert found.variants == ("es", "os")


def test_more_variants_are_each_compared_with_the_first():
    found = analyse(forks(es=ES_MS, os=OS_MS, patched=ES_MS[::-1]), plan(Task("range", iterations=200)))
    row = found.rows[0]
    assert [(one.baseline, one.contender) for one in row.comparisons] == [("es", "os"), ("es", "patched")]
    assert row.comparisons[1].effect_percent == pytest.approx(0.0)
    assert row.comparisons[0].p_adjusted == pytest.approx(2 * row.comparisons[0].p)


def test_p_is_adjusted_over_the_tasks_of_one_metric_only():
    made = {
        name: [
            fork(name, block, summary(ms, "a"), summary(other, "b", 1))
            for block, (ms, other) in enumerate(zip(side, others, strict=True))
        ]
        for name, side, others in (
            ("es", ES_MS, (5.0, 5.5, 4.6, 5.2, 5.1)),
            ("os", OS_MS, (5.1, 5.0, 5.5, 4.6, 5.2)),
        )
    }
    found = analyse(made, plan(Task("a"), Task("b")))
    clear = [row.comparisons[0] for row in found.rows if row.label == "a"]
    for comparison in clear:
        assert comparison.p_adjusted == pytest.approx(2 * comparison.p)


def test_blocks_are_pairs_only_within_runs():
    made, ran = forks(es=ES_MS, os=OS_MS), plan(Task("range"))
    assert analyse(made, ran, runs=["a"]).rows[0].comparisons[0].paired
    other = {"es": made["es"], "os": [msgspec.structs.replace(one, index_build=1) for one in made["os"]]}
    assert not analyse(other, ran, runs=["a", "b"]).paired


def in_runs(*factors: float, first: int = 0, label: str = "es") -> list[ForkRecord]:
    """Four forks in each of several runs, whose level is a factor on 10 ms."""
    return [
        make_fork(
            label,
            4 * (first + run) + fork,
            make_summary("range", 10 * factor * (1 + fork / 100)),
            index_build=first + run,
        )
        for run, factor in enumerate(factors)
        for fork in range(4)
    ]


def test_runs_are_the_units_of_several_runs():
    es, os = (1.0, 1.02, 0.99), (1.1, 1.13, 1.12)
    made = {"es": in_runs(*es), "os": in_runs(*os, first=3, label="os")}
    found = analyse(made, plan(Task("range")), runs=list("abcdef"))
    one = found.rows[0].comparisons[0]
    assert (found.replicate, one.replicate, one.replicates, one.n_baseline) == ("run", "run", (3, 3), 12)
    expected = ttest_ind(-np.log(os), -np.log(es), equal_var=False)
    assert one.p == pytest.approx(expected.pvalue)
    assert one.low_percent == pytest.approx(100 * math.expm1(expected.confidence_interval().low))
    assert (one.verdict, one.provisional) == ("slower", True)


def test_runs_that_each_have_both_sides_are_pairs():
    es, os = (1.0, 1.3, 0.7), (1.1, 1.44, 0.77)
    made = {"es": in_runs(*es), "os": in_runs(*os, label="os")}
    found = analyse(made, plan(Task("range")), runs=list("abc"))
    one = found.rows[0].comparisons[0]
    assert (one.paired, one.replicates) == (True, (3, 3))
    assert one.p == pytest.approx(ttest_rel(-np.log(os), -np.log(es)).pvalue)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("together", [True, False])
def test_one_or_two_runs_get_no_verdict(count: int, together: bool):  # noqa: FBT001 - drawn
    made = {
        "es": in_runs(*(1.0, 1.01)[:count]),
        "os": in_runs(*(1.5, 1.51)[:count], first=0 if together else count, label="os"),
    }
    found = analyse(made, plan(Task("range")), runs=list("abcd")[: max(2, count)], method="holm")
    one = found.rows[0].comparisons[0]
    assert one.verdict == "insufficient"
    assert one.effect_percent == pytest.approx(-33.3, abs=0.5)
    assert (one.p is None, one.low_percent is None) == (count == 1, count == 1)
    assert gate(found).outcome == "inconclusive"
    assert [doubt.code for doubt in one.caveats] == ["few-units"]


def test_forks_without_a_partner_are_in_no_difference():
    made = forks(es=ES_MS, os=OS_MS[:3])
    (row, *_) = analyse(made, plan(Task("range")), runs=["a"]).rows
    assert row.comparisons[0].n_baseline == 3


def test_failed_forks_are_left_out_and_counted():
    made = forks(es=ES_MS, os=OS_MS)
    made["os"].append(fork("os", 5, status="failed", reason="no"))
    found = analyse(made, plan(Task("range")))
    assert found.forks == {"es": 5, "os": 5}
    assert "failed-forks" in [doubt.code for doubt in found.caveats]


def test_what_ran_before_on_the_same_node_is_named():
    schedules = (Challenge("first", ()), Challenge("second", (Task("range"),)))
    warm = (Challenge("warmup", ()),)
    made = plan(schedules=schedules, warmup_challenges=warm, restart="never")
    assert analyse({"es": []}, made).sections[1].preceded_by == ("warmup", "first")
    fresh = msgspec.structs.replace(made, restart="challenge")
    assert analyse({"es": []}, fresh).sections[1].preceded_by == ("warmup",)


def test_first_requests_are_compared_without_regard_to_what_came_later():
    def forks(label: str, first_ms: float, **later: Any) -> list[ForkRecord]:
        factors = (1.0, 1.02, 0.98, 1.01, 0.99) if label == "es" else (0.98, 1.01, 0.99, 1.0, 1.02)
        return [
            fork(
                label,
                block,
                summary(
                    10,
                    first_ns=first_ms * factor * 1e6,
                    second_ns=5e6 * factor,
                    drift=-0.5 * factor,
                    **later,
                ),
            )
            for block, factor in enumerate(factors)
        ]

    metrics = [metric_of(name) for name in ("service_time_p90", "first", "second")]
    stall = {"driver": make_driver(window_s=2.0), "stalled": 3, "stalled_s": 1.0, "stalled_share": 0.5}
    sides = {"es": forks("es", 100.0), "os": forks("os", 150.0, **stall)}
    found = analyse(sides, plan(Task("range"), forks=5), metrics=metrics, method="holm")
    settled, first, second = found.rows
    assert settled.figures[0].steady.trend == "not warmed up"
    assert settled.figures[1].stalled == 0.5
    assert (first.unit, first.figures[0].value) == ("ms", pytest.approx(100, rel=0.01))
    assert [row.comparisons[0].verdict for row in (first, second)] == ["slower", "equivalent"]
    for row in (first, second):
        assert not row.comparisons[0].provisional
        assert {side.steady.state for side in row.figures} == {"unknown"}
        assert not {"not-steady", "stalled"} & {doubt.code for doubt in row.caveats}
    assert [(row.kind, row.p50_ms) for row in found.times if row.kind in ("first", "second")] == [
        ("first", 100.0), ("second", 5.0), ("first", 150.0), ("second", 5.0),
    ]  # fmt: skip


def test_a_fork_whose_first_request_failed_has_no_value():
    forks = [
        fork("es", block, summary(10, first_ns=None if block == 2 else 1e8 + block)) for block in range(5)
    ]
    others = [fork("os", block, summary(10, first_ns=1e8 + block)) for block in range(5)]
    found = analyse({"es": forks, "os": others}, plan(Task("range"), forks=5), metrics=[metric_of("first")])
    assert found.rows[0].figures[0].values[2] is None
    assert found.rows[0].comparisons[0].verdict == "insufficient"


def test_margins_can_be_set():
    found = analyse(forks(es=ES_MS, os=OS_MS), plan(Task("range")), margins={"throughput": 0.5})
    assert [row.comparisons[0].verdict for row in found.rows] == ["equivalent", "slower"]


def test_a_time_of_no_whole_millisecond_is_a_value():
    forks = {
        label: [
            fork(label, block, summary(5.0, took=Quantiles(*([1e6 * ms] * 3))))
            for block, ms in enumerate(values)
        ]
        for label, values in {"es": (0, 3, 0, 1), "os": (2, 4, 3, 3)}.items()
    }
    metrics = [metric_of("took_p90")]
    (row,) = analyse(forks, plan(Task("range", iterations=200)), metrics=metrics).rows
    assert [side.value for side in row.figures] == [1.0, 3.0]
    assert not row.comparisons[0].gapped
