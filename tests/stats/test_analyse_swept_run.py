"""A sweep analysed: variants compared at each point, and every task and metric as a curve."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchctl.errors import UsageError
from benchctl.report.formats import render
from benchctl.report.numbers import signed_figure
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import VariantSpec, boots
from benchctl.run.plan import RunSpec, plan_run
from benchctl.stats.analyse import analyse, analyse_run
from benchctl.stats.analysis import Analysis
from benchctl.sweep.report import sweep_answer
from builders import CORPUS, ES, OS, make_fork, make_summary
from foreign_tracks import write_files
from sweeps import swept_record


def compared(analysis: Analysis) -> set[tuple[str, str]]:
    return {(one.baseline, one.contender) for row in analysis.rows for one in row.comparisons}


def test_variants_are_compared_at_the_same_point():
    found = analyse_run(swept_record(sweep=("docs=1k,2k",)))
    assert compared(found) == {("es.1k", "os.1k"), ("es.2k", "os.2k")}
    assert all(row.swept for row in found.rows)
    one = {one.contender: one for row in found.rows if row.schedule == 0 for one in row.comparisons}
    assert one["os.1k"].verdict == "slower"


def test_every_task_and_metric_is_a_curve_along_the_axis():
    found = analyse_run(swept_record())
    assert [(one.metric, one.axis.name) for one in found.curves] == [
        ("throughput", "clients"),
        ("service_time_p90", "clients"),
    ]
    curve = found.curves[1]
    assert (curve.challenge, curve.task) == ("range-only-short", "range")
    assert [line.variant for line in curve.lines] == ["es", "os"]
    (pair,) = curve.pairs
    assert [one.verdict for one in pair.interactions] == ["faster", "faster"]


def test_a_second_axis_is_refused():
    with pytest.raises(UsageError, match="--sweep docs=1k,2k: a run sweeps one setting"):
        swept_record(sweep=("clients=1,2", "docs=1k,2k"))


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
    (answer,) = sweep_answer([curve])
    assert signed_figure(one.difference) in answer


def test_some_variants_of_a_sweep_are_compared_as_any_others():
    record = swept_record(sweep=("docs=1k,2k",))
    forks = {name: record.compared(name) for name in ("es.1k", "es.2k")}
    found = analyse(forks, record.plan, runs=("sweep",))
    assert compared(found) == {("es.1k", "es.2k")}
    assert found.curves == ()
    assert not any(row.swept for row in found.rows)


def test_points_that_are_names_are_a_curve():
    found = analyse_run(swept_record(sweep=("jdk=21,17",)))
    assert (found.curves[0].axis.labels, found.curves[0].axis.numbers) == (("21", "17"), ())


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


def test_numbers_of_a_clients_list_are_rows_as_other_tasks_are(listed: RunRecord):
    found = analyse_run(listed)
    assert found.curves == ()
    labels = [row.label for row in found.rows if row.metric == "throughput"]
    assert labels == ["once", "find_1_clients", "find_4_clients", "find_2_clients"]
    assert not any(row.swept for row in found.rows)


def test_the_points_of_a_clients_list_come_in_random_order_where_they_stand(listed: RunRecord):
    def order(block: int) -> Sequence[int]:
        (steps,) = boots(listed.plan, block)
        return [step[0][1] for step in steps]

    orders = [order(block) for block in range(12)]
    assert {tuple(sorted(one)) for one in orders} == {(0, 1, 2, 3)}
    assert {one[0] for one in orders} == {0}
    assert len({tuple(one) for one in orders}) > 1
