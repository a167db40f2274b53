"""A run's samples become the charts of the tasks that its tables show, and nothing that they do not."""

import json
from collections.abc import Callable

import msgspec
import numpy as np

from benchctl.report.charts.requests import sample_charts
from benchctl.results.figures import TaskSummary
from benchctl.results.model import RunRecord
from benchctl.results.reading import ForkSource
from benchctl.results.samples import concatenate
from benchctl.stats.analyse import analyse_run
from benchctl.stats.task_shape import run_shapes
from figures import drawn
from sampled import make_samples, make_source, make_telemetry


def sources(record: RunRecord, requests: int = 30) -> list[ForkSource]:
    """Every fork of a record with samples of all its tasks."""
    random = np.random.default_rng(1)
    return [
        make_source(
            [
                concatenate(
                    [
                        make_samples(
                            random.lognormal(1, 0.3, requests),
                            start_ms=1_000.0 * place,
                            task=place,
                            warmup=np.arange(requests) < requests // 5,
                            hits=random.integers(0, 10_000, requests) if place == 2 else 7,
                        )
                        for place in range(len(fork.summaries))
                    ]
                )
            ],
            fork.variant,
            fork.block,
            summaries=fork.summaries,
            telemetry=make_telemetry(60, [(second, 5.0) for second in range(60)], node_cpu_percent=99.0),
        )
        for fork in record.forks
    ]


def test_every_task_has_its_charts_in_the_order_of_the_tables(record: RunRecord):
    charts = sample_charts(run_shapes(record.plan, sources(record)), analyse_run(record))
    assert [chart.key for chart in charts] == [
        "service-time-0-0-desc-sort-timestamp",
        "course-0-0-desc-sort-timestamp",
        "throughput-0-0-desc-sort-timestamp",
        "service-time-0-1-composite-date-histogram-daily",
        "course-0-1-composite-date-histogram-daily",
        "throughput-0-1-composite-date-histogram-daily",
        "service-time-0-2-range",
        "course-0-2-range",
        "throughput-0-2-range",
    ]
    assert [chart.group for chart in charts[-3:]] == ["range"] * 3
    for chart in charts:
        assert json.loads(json.dumps(drawn(chart), allow_nan=False)) == drawn(chart)
        assert chart.table is not None
        assert all(len(line) == len(chart.table.titles) for line in chart.table.lines)


def test_throttled_tasks_have_their_latency_first(record: RunRecord):
    (challenge,) = record.plan.schedules
    tasks = tuple(msgspec.structs.replace(task, target_throughput=50.0) for task in challenge.schedule)
    plan = msgspec.structs.replace(
        record.plan, schedules=(msgspec.structs.replace(challenge, schedule=tasks),)
    )
    throttled = msgspec.structs.replace(record, plan=plan)
    charts = sample_charts(run_shapes(plan, sources(throttled)), analyse_run(throttled))
    assert [chart.title for chart in charts[:2]] == [
        "Distribution of latency",
        "Distribution of service time",
    ]


def test_tasks_that_tables_do_not_show_have_no_charts(build: Callable[..., RunRecord]):
    def hidden(summary: TaskSummary, *_: object) -> TaskSummary:
        return msgspec.structs.replace(summary, reported=summary.label == "range")

    record = build(edit=hidden)
    charts = sample_charts(run_shapes(record.plan, sources(record)), analyse_run(record))
    assert {chart.group for chart in charts} == {"range"}


def test_forks_without_samples_are_named_in_every_chart(record: RunRecord):
    found = [
        make_source(None, source.label, source.block, absent="no samples were kept")
        if source.block > 0
        else source
        for source in sources(record)
    ]
    charts = sample_charts(run_shapes(record.plan, found), analyse_run(record))
    ends = {chart.about.partition("Not drawn: ")[2] for chart in charts}
    assert len(ends) == 1
    assert ends.pop().startswith("es, fork 1: no samples were kept; os, fork 1: no samples were kept; ")
    assert charts[0].about.endswith("; and 2 more.")


def test_a_run_without_samples_has_no_charts(record: RunRecord):
    none = [make_source(None, fork.variant, fork.block, absent="gone") for fork in record.forks]
    assert sample_charts(run_shapes(record.plan, none), analyse_run(record)) == []


def test_figures_of_a_usual_page_stay_small(build: Callable[..., RunRecord]):
    record = build(forks=10)
    charts = sample_charts(run_shapes(record.plan, sources(record, requests=4_000)), analyse_run(record))
    assert sum(len(json.dumps(drawn(chart), separators=(",", ":"))) for chart in charts) < 3_000_000
