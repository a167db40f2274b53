from typing import Any

import pytest

from benchctl.report.charts import Chart, Frame, variant_style
from benchctl.report.charts.requests import flow_chart
from benchctl.results.reading import ForkSource, Telemetry
from builders import make_summary
from figures import drawn
from sampled import make_samples, make_source, make_task_shapes, make_telemetry

FRAME = Frame("0-0-range", "range", ("es", "os"))


def draw(*sources: ForkSource) -> Chart:
    chart = flow_chart(make_task_shapes(*sources), FRAME)
    assert chart is not None
    return chart


def fork(
    label: str = "es",
    block: int = 0,
    *,
    service_ms: float = 100.0,
    telemetry: Telemetry | None = None,
    **columns: Any,
) -> ForkSource:
    """60 requests one after the other, the first 20 of them warm-up."""
    rows = make_samples([service_ms] * 60, warmup=[True] * 20 + [False] * 40, **columns)
    summaries = (make_summary("range", service_ms, unit="docs"),)
    return make_source([rows], label, block, summaries=summaries, telemetry=telemetry)


def test_rates_are_over_time_from_the_beginning_of_the_measured_window():
    chart = draw(fork(weight=5))
    line = drawn(chart)["data"][-1]
    assert line["y"] == pytest.approx([50.0] * len(line["y"]), rel=0.25)
    assert -2 < line["x"][0] < 0 < line["x"][-1] < 4
    assert drawn(chart)["layout"]["yaxis"]["title"]["text"] == "Docs/s"
    (window,) = drawn(chart)["layout"]["shapes"]
    assert (window["x0"], window["x1"]) == (0, 4)


def test_nothing_is_shaded_where_everything_was_measured():
    chart = draw(make_source([make_samples([100.0] * 20)]))
    assert "shapes" not in drawn(chart)["layout"]
    assert "warm-up" not in chart.about


def test_every_fork_is_a_line_and_every_variant_one_entry_of_the_legend():
    data = drawn(draw(fork("es"), fork("os"), fork("os", 1)))["data"]
    assert [trace["name"] for trace in data] == ["es", "os", "es, fork 0", "os, fork 0", "os, fork 1"]
    assert [trace.get("showlegend", True) for trace in data] == [True, True, False, False, False]
    assert [trace["legendgroup"] for trace in data] == ["es", "os", "es", "os", "os"]
    assert [trace["line"]["dash"] for trace in data[2:]] == [variant_style(place).dash for place in (0, 1, 1)]


def test_without_telemetry_it_says_so():
    chart = draw(fork())
    assert chart.about.endswith("No telemetry was kept.")
    assert "yaxis2" not in drawn(chart)["layout"]
    assert chart.table is not None
    assert chart.table.texts[0][:4] == ("es, fork 0", "2.000", "4.000", "40")
    assert set(chart.table.texts[0][4:]) == {"n/a"}


def test_telemetry_stands_below_on_the_same_clock():
    telemetry = make_telemetry(18, [(5.5, 7.0), (6.5, 9.0)], node_cpu_percent=150.0, driver_cpu_percent=8.0)
    chart = draw(fork(service_ms=200.0, telemetry=telemetry))
    layout, panels = drawn(chart)["layout"], {trace["yaxis"]: trace for trace in drawn(chart)["data"][2:]}
    titles = [layout[f"yaxis{number}"]["title"]["text"] for number in (2, 3, 4)]
    assert titles == ["Node CPU, %", "Driver CPU, %", "GC pauses, ms"]
    assert "yaxis5" not in layout
    assert panels["y2"]["x"] == list(range(-3, 9))
    assert panels["y2"]["y"] == [150.0] * 12
    assert (panels["y4"]["x"], panels["y4"]["y"]) == ([1.5, 2.5], [7.0, 9.0])
    assert all(trace.get("xaxis", "x") == "x" for trace in drawn(chart)["data"])
    assert chart.table is not None
    assert chart.table.texts[0][4:] == ("150.0", "8.000", "2", "16.00", "9.000", "pause at 6.5")


def test_merges_have_a_panel_where_somebody_asked_for_them():
    layout = drawn(draw(fork(service_ms=200.0, telemetry=make_telemetry(18, merges_current=2.0))))["layout"]
    assert layout["yaxis2"]["title"]["text"] == "Merges"


def test_forks_without_telemetry_among_others_are_named():
    chart = draw(fork(service_ms=200.0, telemetry=make_telemetry(18, node_cpu_percent=1.0)), fork("os", 1))
    assert "No telemetry was kept of os, fork 1." in chart.about


def test_many_pauses_and_readings_are_joined_and_it_is_said():
    telemetry = make_telemetry(600, [(number * 0.5, 5.0) for number in range(1_200)], node_cpu_percent=9.0)
    chart = draw(fork(service_ms=10_000.0, telemetry=telemetry))
    assert "Each point is the mean of up to 4 readings." in chart.about
    assert "a mark is the longest of several" in chart.about
    pauses = drawn(chart)["data"][-1]
    assert len(pauses["x"]) == 150
    assert sum(int(text.removeprefix("the longest of ")) for text in pauses["text"]) == 1_200


def test_a_fork_that_only_failed_has_a_line_of_nothing():
    line = drawn(draw(fork(outcome=3)))["data"][-1]
    assert set(line["y"]) == {0.0}


def test_the_mean_of_a_fork_is_over_readings_not_over_points():
    telemetry = make_telemetry(151, node_cpu_percent=0.0)
    telemetry.series["node_cpu_percent"][-1] = 151.0  # alone in its point: all others are of two
    chart = draw(fork(service_ms=151_000 / 60, telemetry=telemetry))
    assert chart.table is not None
    assert chart.table.texts[0][4] == "1.000"


@pytest.mark.parametrize(("start_ms", "seconds"), [(20_000, 9), (0, 9)])
def test_telemetry_of_few_readings_is_left_out(start_ms: int, seconds: int):
    chart = draw(fork(start_ms=start_ms, telemetry=make_telemetry(seconds, node_cpu_percent=150.0)))
    assert chart.about.endswith("Telemetry has fewer than 10 readings of it.")
    assert "yaxis2" not in drawn(chart)["layout"]
