"""The chart of requests: medians over forks and their range by the number of the request."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from benchctl.errors import BenchctlError
from benchctl.report.charts import Chart
from benchctl.report.charts.requests import request_charts
from benchctl.results.figures import TaskSummary
from benchctl.results.model import RunRecord
from benchctl.results.samples import Columns, concatenate
from benchctl.results.store import ForkSource
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import Analysis
from builders import make_fork, make_plan, make_record, make_summary
from figures import drawn
from sampled import make_samples, make_source

FAILED = 3


def analysis_of() -> Analysis:
    forks = tuple(make_fork(name, 0, make_summary("range", 5.0)) for name in ("es", "os"))
    return analyse_run(make_record(plan=make_plan(), forks=forks))


def chart_of(*sources: ForkSource) -> Chart:
    (chart,), absent = request_charts(sources, analysis_of())
    assert absent == ()
    return chart


def requests(
    service_ms: list[float], label: str = "es", block: int = 0, *, warmup: int = 0, **columns: Any
) -> ForkSource:
    """Requests one after the other, the first of them warm-up, in chunks of three."""
    rows = make_samples(service_ms, warmup=np.arange(len(service_ms)) < warmup, **columns)
    starts = range(0, len(service_ms), 3)
    return make_source(
        [{name: values[at : at + 3] for name, values in rows.items()} for at in starts], label, block
    )


def traces(chart: Chart) -> list[tuple[str, list[float], list[float]]]:
    return [(trace["name"], trace["x"], trace["y"]) for trace in drawn(chart)["data"]]


def test_a_point_is_the_median_over_forks_and_the_band_goes_from_the_least_to_the_greatest():
    chart = chart_of(
        requests([9.0, 3.0, 1.0, 1.0, 1.0, 1.0], block=0, warmup=2),
        requests([8.0, 4.0, 2.0, 2.0, 2.0, 2.0], block=1, warmup=2),
        requests([1.0, 5.0, 6.0, 6.0, 6.0, 7.0], block=2, warmup=2),
        requests([5.0, 5.0, 5.0, 5.0, 5.0, 5.0], "os", warmup=2),
    )
    x = [-1.0, 0.0, 1.0, 2.0, 3.0, 4.0]
    highest, lowest = [9.0, 5.0, 6.0, 6.0, 6.0, 7.0], [1.0, 3.0, 1.0, 1.0, 1.0, 1.0]
    assert traces(chart) == [
        ("es", x + x[::-1], highest + lowest[::-1]),
        ("es", x, [8.0, 4.0, 2.0, 2.0, 2.0, 2.0]),
        ("os", x, [5.0] * 6),
    ]
    layout = drawn(chart)["layout"]
    assert [(shape["type"], shape["x0"], shape["x1"]) for shape in layout["shapes"]] == [
        ("rect", -1.5, 0.5),
        ("line", 0.5, 0.5),
    ]
    assert layout["yaxis"]["type"] == "log"
    assert layout["xaxis"]["title"]["text"] == "Request, from the first measured one"
    assert "What is shaded is warm-up" in chart.about
    assert "differ in length" not in chart.about
    assert chart.table is not None
    assert chart.table.texts == (
        ("es", "3", "2", "4", "0", "2.000", "2.000"),
        ("os", "1", "2", "4", "0", "5.000", "5.000"),
    )


def test_requests_that_failed_keep_their_number_and_have_no_point():
    outcome = [0, 0, FAILED, FAILED, 0, 0, 0, 0]
    chart = chart_of(requests([5.0, 5.0, 0.1, 0.1, 5.0, 5.0, 5.0, 6.0], outcome=outcome))
    assert traces(chart) == [
        ("es", [1.0, 2.0], [5.0, 5.0]),
        ("es", [5.0, 6.0, 7.0, 8.0], [5.0, 5.0, 5.0, 6.0]),
    ]
    layout = drawn(chart)["layout"]
    assert layout["xaxis"]["title"]["text"].endswith("; 2 failed or cut off, not drawn")
    assert "shapes" not in layout
    assert [trace["showlegend"] for trace in drawn(chart)["data"]] == [True, False]
    assert chart.table is not None
    assert chart.table.texts[0][4] == "2"


def test_a_variant_whose_requests_all_failed_is_in_the_table():
    chart = chart_of(requests([5.0] * 6), requests([0.1] * 6, "os", outcome=FAILED))
    assert {name for name, _, _ in traces(chart)} == {"es"}
    assert chart.table is not None
    assert chart.table.texts[1] == ("os", "1", "0", "6", "6", "n/a", "n/a")


def test_many_requests_share_a_point_and_warm_up_shares_none_with_measured_ones():
    warm, measured = [9.0] * 7, [1.0, 2.0, 3.0, 4.0, 5.0] * 200
    chart = chart_of(requests(warm + measured, warmup=7))
    ((_, x, y),) = traces(chart)
    assert (x[:4], y[:4]) == ([-6.0, -2.5, 3.5, 9.5], [9.0, 9.0, 2.5, 2.5])
    assert (len(x), x[-1], y[-1]) == (2 + 167, 998.5, 3.5)
    assert drawn(chart)["layout"]["xaxis"]["title"]["text"].endswith("; a point is up to 6")
    assert "of the median of up to 6 successive requests" in chart.about


def test_where_short_forks_have_ended_points_are_of_the_others():
    chart = chart_of(requests([1.0] * 6), requests([3.0] * 9, block=1))
    *_, (_, x, y) = traces(chart)
    assert (x, y) == ([float(n) for n in range(1, 10)], [2.0] * 6 + [3.0] * 3)
    assert "Forks differ in length" in chart.about
    assert drawn(chart)["data"][1]["text"][-1] == "3.000 to 3.000, 1 of 2 forks"


def test_the_order_is_that_of_starts_and_parts_of_an_operation_are_none():
    rows = make_samples([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    parts = make_samples([100.0] * 6, part=1)
    mixed = concatenate([rows, parts])
    order = np.random.default_rng(2).permutation(12)
    chart = chart_of(make_source([{name: values[order] for name, values in mixed.items()}]))
    assert traces(chart) == [("es", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])]


def test_few_points_are_no_chart():
    assert request_charts([requests([5.0] * 4)], analysis_of()) == ([], ())
    assert request_charts([requests([5.0] * 9, outcome=FAILED)], analysis_of()) == ([], ())


def test_forks_without_samples_and_damaged_ones_are_named():
    class Damaged:
        def __iter__(self) -> Any:
            yield make_samples([5.0] * 6)
            raise BenchctlError("damaged")

    charts, absent = request_charts(
        [
            requests([5.0] * 6),
            make_source(None, "es", 1, absent="no samples were kept"),
            make_source(Damaged(), "os", 2),
        ],
        analysis_of(),
    )
    assert absent == ("es, fork 1: no samples were kept", "os, fork 2: its samples cannot be read")
    assert {name for name, _, _ in traces(charts[0])} == {"es"}


def sources(record: RunRecord, count: int = 30) -> list[ForkSource]:
    """Every fork of a record with samples of all its tasks."""
    random = np.random.default_rng(1)

    def task(place: int) -> Columns:
        times = random.lognormal(1, 0.3, count)
        return make_samples(times, start_ms=1_000.0 * place, task=place, warmup=np.arange(count) < count // 5)

    return [
        make_source([concatenate([task(n) for n in range(len(fork.summaries))])], fork.variant, fork.block)
        for fork in record.forks
    ]


def test_every_task_has_its_chart_in_the_order_of_the_tables(record: RunRecord):
    charts, _ = request_charts(sources(record), analyse_run(record))
    assert [chart.key for chart in charts] == [
        "requests-0-0-desc-sort-timestamp",
        "requests-0-1-composite-date-histogram-daily",
        "requests-0-2-range",
    ]
    for chart in charts:
        assert json.loads(json.dumps(drawn(chart), allow_nan=False)) == drawn(chart)
        assert chart.table is not None
        assert all(len(line) == len(chart.table.titles) for line in chart.table.lines)


def test_tasks_that_tables_do_not_show_have_no_charts(build: Callable[..., RunRecord]):
    def hidden(summary: TaskSummary, *_: object) -> TaskSummary:
        return msgspec.structs.replace(summary, reported=summary.label == "range")

    record = build(edit=hidden)
    charts, _ = request_charts(sources(record), analyse_run(record))
    assert {chart.group for chart in charts} == {"range"}


def test_figures_of_a_usual_page_stay_small(build: Callable[..., RunRecord]):
    record = build(forks=10)
    charts, _ = request_charts(sources(record, 4_000), analyse_run(record))
    assert sum(len(json.dumps(drawn(chart), separators=(",", ":"))) for chart in charts) < 200_000


def test_names_cannot_bring_tags():
    analysis = msgspec.structs.replace(analysis_of(), variants=("<b>es",))
    (chart,), _ = request_charts([requests([5.0] * 6, "<b>es")], analysis)
    assert traces(chart)[0][0] == "&lt;b&gt;es"
