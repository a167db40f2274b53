"""A sweep analysed: variants compared at each point, and every task and metric as a curve."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchctl.micro.conduct import MICRO_METRICS
from benchctl.report.formats import render
from benchctl.report.numbers import signed_figure
from benchctl.results.figures import OPERATIONS
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import MicroSpec, VariantSpec, boots
from benchctl.run.plan import RunSpec, plan_run
from benchctl.stats.analyse import analyse, analyse_run
from benchctl.stats.analysis import Analysis
from benchctl.sweep.report import sweep_answer
from benchctl.track.model import Challenge, Task
from builders import CORPUS, ES, OS, make_fork, make_summary
from foreign_tracks import write_files
from sweeps import swept_record


def curves_of(analysis: Analysis) -> list[tuple[str, str, str]]:
    return [(one.metric, one.axis.name, one.axis.fixed) for one in analysis.curves]


def compared(analysis: Analysis) -> set[tuple[str, str]]:
    return {(one.baseline, one.contender) for row in analysis.rows for one in row.comparisons}


def test_variants_are_compared_at_the_same_point():
    found = analyse_run(swept_record())
    assert compared(found) == {("es.1k", "os.1k"), ("es.2k", "os.2k")}
    assert all(row.swept for row in found.rows)
    one = {one.contender: one for row in found.rows if row.schedule == 0 for one in row.comparisons}
    assert one["os.1k"].verdict == "slower"


def test_every_metric_is_a_curve_along_the_first_axis_at_each_point_of_the_others():
    found = analyse_run(swept_record())
    assert curves_of(found) == [
        (metric, "clients", f"docs {docs}")
        for metric in ("throughput", "service_time_p90")
        for docs in ("1k", "2k")
    ]
    curve = found.curves[2]
    assert (curve.challenge, curve.task) == ("range-only-short", "range")
    assert [line.variant for line in curve.lines] == ["es", "os"]
    exponents = [line.growth.exponent for line in curve.lines]
    assert [one and round(one.value, 1) for one in exponents] == [1.0, 0.5]
    (pair,) = curve.pairs
    assert pair.growth.exponent is not None
    assert round(pair.growth.exponent.value, 1) == -0.5


def test_the_other_order_of_axes_draws_the_other_curves():
    found = analyse_run(swept_record(sweep=("docs=1k,2k", "clients=1,2,4")))
    assert {one.axis.fixed for one in found.curves} == {"clients 1", "clients 2", "clients 4"}
    exponents = [one.lines[0].growth.exponent for one in found.curves]
    assert {one and round(one.value, 1) for one in exponents} == {-0.8, 0.8}


def test_points_of_a_single_variant_are_compared_with_the_first():
    found = analyse_run(swept_record(sweep=("docs=1k,2k",), variants=(OS,)))
    assert compared(found) == {("os.1k", "os.2k")}
    assert [len(one.lines) for one in found.curves] == [1, 1]
    # Rows tell them, a line alone has nothing beside it.
    assert found.curves[0].comparisons == ()
    assert not any(row.swept for row in found.rows)


def test_a_curve_has_the_points_at_which_a_task_is_of_the_metric():
    """Closed loops have no latency of their own: it was an IndexError."""
    found = analyse_run(swept_record(sweep=("target_throughput=0,50,100",)))
    throughput, *_, latency = found.curves
    assert (throughput.metric, throughput.axis.labels) == ("throughput", ("0", "50", "100"))
    assert (latency.metric, latency.axis.labels) == ("latency_p90", ("50", "100"))
    assert [len(point) for point in latency.comparisons] == [1, 1]
    assert "100" in render(found)


def weakened(record: RunRecord, place: int) -> RunRecord:
    """With failed requests and a cluster that did not keep up, at one of the points."""

    def weak(fork: ForkRecord) -> ForkRecord:
        summaries = [
            msgspec.structs.replace(one, failures={"http-error": 3})
            if one.schedule == place and fork.variant == "os"
            else one
            for one in fork.summaries
        ]
        return msgspec.structs.replace(fork, summaries=tuple(summaries))

    return msgspec.structs.replace(record, forks=tuple(map(weak, record.forks)))


@pytest.mark.parametrize("variants", [(ES, OS), (OS,)])
def test_what_must_be_said_of_a_point_stands_beside_it(variants: tuple[VariantSpec, ...]):
    found = analyse_run(weakened(swept_record(sweep=("clients=1,2,4",), variants=variants), 1))
    curve = found.curves[0]
    assert [[doubt.code for doubt in point] for point in curve.caveats] == [[], ["failures"], []]
    assert [line.remarks for line in curve.lines] == [((), ("requests failed",), ())] * len(variants)
    assert render(found).count("requests failed") >= len(found.curves)


def test_means_are_those_that_the_difference_is_of():
    found = analyse_run(swept_record(sweep=("clients=1,2,4",), diff="absolute"))
    curve = found.curves[0]
    means = [line.means[0] for line in curve.lines]
    (one,) = curve.comparisons[0]
    assert [mean and mean.value for mean in means] == [one.baseline_value, one.contender_value]
    assert f"slower from 1 to 2 ({signed_figure(one.difference)} to" in sweep_answer(curve)[0]


def test_some_variants_of_a_sweep_are_compared_as_any_others():
    record = swept_record()
    forks = {name: record.compared(name) for name in ("es.1k", "es.2k")}
    found = analyse(forks, record.plan, runs=("sweep",))
    assert compared(found) == {("es.1k", "es.2k")}
    assert found.curves == ()
    assert not any(row.swept for row in found.rows)


def test_points_that_are_names_are_a_curve_without_growth():
    found = analyse_run(swept_record(sweep=("jdk=21,17",)))
    assert found.curves[0].axis.labels == ("21", "17")
    assert found.curves[0].lines[0].growth.exponent is None


def test_what_ran_before_a_point_of_a_sweep_is_no_axis():
    for restart in ("never", "challenge", "task"):
        found = analyse_run(swept_record(restart=restart))
        assert {curve.axis.name for curve in found.curves} == {"clients"}
        assert {section.preceded_by for section in found.sections} == {()}


LISTED = """{"indices": [{"name": "logs"}],
"operations": [{"name": "find", "operation-type": "search", "body": {"query": {"match_all": {}}}},
               {"name": "once", "operation-type": "search", "body": {"query": {"match_all": {}}}}],
"challenges": [{"name": "ask", "default": true, "schedule": [
  {"operation": "once", "iterations": 5},
  {"operation": "find", "clients_list": [1, 4, 2], "iterations": 5}]}]}"""


@pytest.fixture
def listed(tmp_path: Path) -> RunRecord:
    """A run of a challenge of OpenSearch Benchmark with a clients_list."""
    folder = write_files(tmp_path / "listed", {"track.json": LISTED})
    options: dict[str, Any] = {
        "variants": (ES, OS), "forks": 5, "seed": 1, "heap_mb": 512, "track": str(folder), "corpus": CORPUS,
        "params": {},
    }  # fmt: skip
    plan, _ = plan_run(RunSpec(**options))
    forks = [
        make_fork(
            spec.name,
            block,
            *(
                msgspec.structs.replace(
                    make_summary(task.operation, task.clients * (1 + block / 100)),
                    task=place,
                    label=task.label,
                )
                for place, task in enumerate(plan.schedules[0].schedule)
            ),
        )
        for spec in plan.variants
        for block in range(5)
    ]
    record = swept_record()
    return msgspec.structs.replace(record, plan=plan, forks=tuple(forks))


def test_a_clients_list_is_a_curve_over_clients(listed: RunRecord):
    found = analyse_run(listed)
    assert curves_of(found) == [("throughput", "clients", ""), ("service_time_p90", "clients", "")]
    assert {(one.challenge, one.task) for one in found.curves} == {("ask", "find")}
    assert found.curves[0].axis.numbers == (1, 2, 4)
    assert {row.label: row.swept for row in found.rows} == {
        "once": False,
        "find_1_clients": True,
        "find_4_clients": True,
        "find_2_clients": True,
    }
    growth = found.curves[1].lines[0].growth.exponent
    assert growth is not None
    assert growth.value == pytest.approx(1)


def test_a_microbenchmarks_parameter_of_three_numbers_is_a_curve(listed: RunRecord):
    metas = [
        {"benchmark": "a.B.find", "params": {"how": how, "at": at}, "threads": 0}
        for how in ("dense", "sparse")
        for at in ("0.5", "0.25", "1")
    ]
    tasks = tuple(
        Task(f"find:at={one['params']['at']},how={one['params']['how']}", meta=one) for one in metas
    )
    forks = [
        make_fork(
            name,
            block,
            *(
                msgspec.structs.replace(
                    make_summary(task.label, 1),
                    task=place,
                    label=task.label,
                    unit=OPERATIONS,
                    mean_ns=1000.0 * float(task.meta["params"]["at"]) * (1 + block / 100),
                )
                for place, task in enumerate(tasks)
            ),
        )
        for name in ("es", "os")
        for block in range(5)
    ]
    plan = msgspec.structs.replace(
        listed.plan,
        schedules=(Challenge("B", tasks),),
        micro=MicroSpec("/B.java", ""),
        metrics=MICRO_METRICS,
    )
    found = analyse_run(msgspec.structs.replace(listed, plan=plan, forks=tuple(forks)))
    curves = [one for one in found.curves if one.metric == "op_time"]
    assert [(one.task, one.axis.name, one.axis.numbers) for one in curves] == [
        ("find:how=dense", "at", (0.25, 0.5, 1)),
        ("find:how=sparse", "at", (0.25, 0.5, 1)),
    ]
    growth = curves[0].lines[0].growth.exponent
    assert growth is not None
    assert growth.value == pytest.approx(1)
    assert len(found.rows) >= len(tasks)


def test_the_points_of_a_clients_list_come_in_random_order_where_they_stand(listed: RunRecord):
    def order(block: int) -> Sequence[int]:
        (steps,) = boots(listed.plan, block)
        return [step[0][1] for step in steps]

    orders = [order(block) for block in range(12)]
    assert {tuple(sorted(one)) for one in orders} == {(0, 1, 2, 3)}
    assert {one[0] for one in orders} == {0}
    assert len({tuple(one) for one in orders}) > 1
