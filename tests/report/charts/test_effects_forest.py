import itertools
import math
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.report.charts import OVERVIEW
from benchctl.report.charts.effects import _ticks, forest_charts
from benchctl.results.figures import TaskSummary
from benchctl.results.model import RunRecord
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import Analysis
from benchctl.stats.metrics import metric
from figures import drawn


def with_comparisons(analysis: Analysis, **changes: float | None) -> Analysis:
    rows = tuple(
        msgspec.structs.replace(
            row,
            comparisons=tuple(msgspec.structs.replace(one, **changes) for one in row.comparisons),
        )
        for row in analysis.rows
    )
    return msgspec.structs.replace(analysis, rows=rows)


def test_effects_stand_in_the_order_of_the_tables_on_a_ratio_scale(record: RunRecord):
    analysis = analyse_run(record)
    throughput, service_time = forest_charts(analysis)
    assert throughput.group == OVERVIEW
    assert [line[0] for line in throughput.table.texts] == list(
        dict.fromkeys(row.label for row in analysis.rows)
    )
    (trace,) = drawn(throughput)["data"]
    effects = [row.comparisons[0] for row in analysis.rows if row.metric == "throughput"]
    assert trace["x"] == pytest.approx([math.log1p(one.effect_percent / 100) for one in effects], abs=1e-5)
    bottom, top = drawn(throughput)["layout"]["yaxis"]["range"]
    assert top < trace["y"][0] < trace["y"][1] < trace["y"][2] < bottom
    ends = [
        (x - minus, x + plus)
        for x, minus, plus in zip(
            trace["x"], trace["error_x"]["arrayminus"], trace["error_x"]["array"], strict=True
        )
    ]
    for (low, high), one in zip(ends, effects, strict=True):
        assert low == pytest.approx(math.log1p(one.low_percent / 100), abs=2e-5)
        assert high == pytest.approx(math.log1p(one.high_percent / 100), abs=2e-5)
    assert service_time.title == "Effects: p90 service time"


def test_what_work_takes_up_is_not_called_fast(build: Callable[..., RunRecord]):
    def metered(summary: TaskSummary, variant: str, block: int) -> TaskSummary:
        return msgspec.structs.replace(summary, meters={"cpu": {"es": 10.0, "os": 6.0}[variant] + block})

    record = build(edit=metered)
    cpu, time = forest_charts(analyse_run(record, metrics=[metric("cpu"), metric("service_time")]))
    for chart, worse, good in ((cpu, "more", "less"), (time, "slower", "faster")):
        said = [one["text"] for one in drawn(chart)["layout"]["annotations"][-2:]]
        assert said == [f"\u2190 {worse}", f"{good} \u2192"]
    assert "faster" not in cpu.about


def test_the_band_is_the_margin_and_as_wide_to_both_sides(record: RunRecord):
    chart = forest_charts(analyse_run(record))[0]
    band, middle = drawn(chart)["layout"]["shapes"]
    assert band["x1"] == pytest.approx(math.log(1.03), abs=1e-5)
    assert band["x0"] == -band["x1"]
    assert (middle["x0"], middle["x1"]) == (0, 0)


def test_right_is_faster_whichever_way_a_metric_counts(record: RunRecord):
    sides = []
    for chart in forest_charts(analyse_run(record)):
        ends = [one for one in drawn(chart)["layout"]["annotations"] if one["y"] == 0]
        sides.append([one["text"] for one in ends])
    assert sides == [["\u2190 slower", "faster \u2192"]] * 2
    upwards, backwards = (drawn(chart)["layout"]["xaxis"] for chart in forest_charts(analyse_run(record)))
    assert upwards["range"][0] < 0 < upwards["range"][1]
    assert backwards["range"][0] > 0 > backwards["range"][1]
    assert "lower is better" not in str(upwards["title"])
    assert "(lower is better: the axis runs from high to low)" in str(backwards["title"])


def test_every_contender_has_its_own_colour_and_mark(build: Callable[..., RunRecord]):
    chart = forest_charts(analyse_run(build(variants=("es", "os", "noinline"))))[0]
    one, other = drawn(chart)["data"]
    assert (one["name"], other["name"]) == ("os", "noinline")
    assert one["marker"]["color"] != other["marker"]["color"]
    assert one["marker"]["symbol"] != other["marker"]["symbol"]
    assert not set(one["y"]) & set(other["y"])
    assert drawn(chart)["layout"]["showlegend"]


def test_a_single_fork_has_an_effect_and_no_interval(build: Callable[..., RunRecord]):
    chart = forest_charts(analyse_run(build(forks=1)))[0]
    assert set(drawn(chart)["data"][0]["error_x"]["array"]) == {0.0}
    assert {line[3] for line in chart.table.texts} == {"n/a"}


def test_one_variant_has_no_effects(build: Callable[..., RunRecord]):
    assert forest_charts(analyse_run(build(variants=("es",)))) == []


def test_effects_that_have_no_place_on_a_ratio_scale_are_left_to_the_tables(record: RunRecord):
    analysis = analyse_run(record)
    assert forest_charts(with_comparisons(analysis, effect_percent=None)) == []
    assert forest_charts(with_comparisons(analysis, effect_percent=-100.0)) == []
    for chart in forest_charts(with_comparisons(analysis, low_percent=-100.0)):
        assert set(drawn(chart)["data"][0]["error_x"]["arrayminus"]) == {0.0}


def test_names_are_text_to_plotly(build: Callable[..., RunRecord]):
    record = build()
    analysis = analyse_run(record)
    rows = tuple(msgspec.structs.replace(row, label="<a href='x'>x</a>") for row in analysis.rows)
    chart = forest_charts(msgspec.structs.replace(analysis, rows=rows))[0]
    assert "<a" not in str(drawn(chart))


@given(st.floats(math.log(1.05), 6.0))
def test_ticks_are_inside_the_axis_apart_from_each_other_and_have_the_middle(reach: float):
    found = _ticks(reach)
    places = found["tickvals"]
    assert "0" in found["ticktext"]
    assert len(places) == len(found["ticktext"])
    assert all(abs(place) <= reach + 1e-5 for place in places)
    assert all(after - before > 0.17 * reach for before, after in itertools.pairwise(places))


def test_the_axis_reaches_as_far_to_both_sides_and_beyond_the_margin(record: RunRecord):
    for chart in forest_charts(analyse_run(record)):
        low, high = sorted(drawn(chart)["layout"]["xaxis"]["range"])
        assert low == -high
        trace = drawn(chart)["data"][0]
        furthest = [abs(x) + max(trace["error_x"]["array"]) for x in trace["x"]]
        assert high >= max(drawn(chart)["layout"]["shapes"][0]["x1"], *(abs(x) for x in trace["x"]))
        assert furthest


def test_intervals_of_many_powers_of_ten_run_off_the_plot_and_it_says_so(record: RunRecord):
    analysis = with_comparisons(analyse_run(record), low_percent=-99.9999, high_percent=1e8)
    for chart in forest_charts(analysis):
        assert max(drawn(chart)["layout"]["xaxis"]["range"]) == pytest.approx(1.06 * math.log(5))
        assert len(drawn(chart)["layout"]["xaxis"]["tickvals"]) > 4
        assert "run off the plot" in chart.about
    assert "run off" not in forest_charts(analyse_run(record))[0].about
