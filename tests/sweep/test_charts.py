import pytest

from benchctl.report.charts import variant_style
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import SweepAxis
from benchctl.sweep.charts import page, recall_chart, sweep_chart
from figures import drawn
from sweeps import (
    AXIS,
    CANDIDATES,
    forks,
    make_curve,
    recall_curve,
    recall_record,
    recalls,
    tasks_record,
    two_laws,
)


def test_every_variant_is_a_line_with_a_band_at_the_numbers_of_its_points():
    chart = sweep_chart(two_laws(), "range-p90")
    bands, lines = drawn(chart)["data"][::2], drawn(chart)["data"][1::2]
    assert [line["name"] for line in lines] == ["es", "os"]
    for place, (band, line) in enumerate(zip(bands, lines, strict=True)):
        assert line["x"] == list(AXIS.numbers)
        assert band["x"] == [*AXIS.numbers, *AXIS.numbers[::-1]]
        low, high = band["y"][4:][::-1], band["y"][:4]
        assert all(below < value < above for below, value, above in zip(low, line["y"], high, strict=True))
        assert line["line"]["color"] == variant_style(place).colour
    layout = drawn(chart)["layout"]
    assert layout["xaxis"]["title"]["text"] == "clients"
    assert layout["yaxis"]["title"]["text"] == "p90 service time, ms"
    assert (layout["xaxis"]["type"], layout["yaxis"]["type"]) == ("log", "log")
    assert layout["xaxis"]["ticktext"] == ["1", "2", "4", "8"]
    assert chart.key == "sweep-range-p90"


def test_points_that_are_no_numbers_stand_side_by_side():
    axis = SweepAxis("collector", ("G1", "ZGC"), fixed="docs 1m")
    values = {"es": forks(lambda x: x, axis), "os": forks(lambda x: x, axis, seed=2)}
    chart = sweep_chart(make_curve(values, axis), "k")
    es, os = drawn(chart)["data"]
    assert (es["mode"], os["mode"]) == ("markers", "markers")
    assert all(left < place < right for left, place, right in zip(es["x"], (0, 1), os["x"], strict=True))
    assert all(end > 0 for end in (*es["error_y"]["array"], *es["error_y"]["arrayminus"]))
    layout = drawn(chart)["layout"]
    assert layout["xaxis"]["ticktext"] == ["G1", "ZGC"]
    assert layout["xaxis"]["title"]["text"] == "collector (docs 1m)"


def test_what_may_be_0_is_drawn_on_a_plain_axis():
    values = {"es": forks(lambda x: x - 1), "os": forks(lambda x: x, seed=2)}
    layout = drawn(sweep_chart(make_curve(values, metric="gc"), "k"))["layout"]
    assert "type" not in layout["yaxis"]
    axis = SweepAxis("replicas", ("0", "1", "2"), (0.0, 1.0, 2.0))
    values = {"es": forks(lambda x: x + 1, axis)}
    assert (
        drawn(sweep_chart(make_curve(values, axis, comparisons=()), "k"))["layout"]["xaxis"]["type"]
        == "linear"
    )


def test_labels_that_have_no_room_are_left_out():
    numbers = tuple(float(number) for number in range(100, 116))
    axis = SweepAxis("rate", tuple(f"{number:g}/s" for number in numbers), numbers)
    chart = sweep_chart(make_curve({"es": forks(lambda x: x, axis)}, axis, comparisons=()), "k")
    shown = drawn(chart)["layout"]["xaxis"]["ticktext"]
    assert shown[0] == "100/s"
    assert len(shown) < len(numbers)


def test_a_point_without_an_interval_or_a_value_does_no_harm():
    values = {"es": [{0: 1.0}, {0: 2.0}, {}, {0: 4.0}]}
    band, line = drawn(sweep_chart(make_curve(values, comparisons=()), "k"))["data"]
    assert line["x"] == [1.0, 2.0, 8.0]
    assert band["y"] == pytest.approx([1.0, 2.0, 4.0, 4.0, 2.0, 1.0])
    drawn(sweep_chart(make_curve({"es": [{}, {}, {}, {}]}, comparisons=()), "k"))


def test_of_many_tasks_those_are_drawn_whose_difference_depends_most_on_the_history():
    charts, tables = page(analyse_run(tasks_record()))
    assert tables == []
    assert len({chart.key for chart in charts}) == len(charts) == 8
    depends = ["the difference depends on what ran before" in chart.about for chart in charts]
    assert depends == [True] * 7 + [False]


def test_long_names_of_points_are_folded_and_all_of_them_are_there():
    long = "after desc_sort_timestamp, composite-date_histogram-daily"
    axis = SweepAxis("history", ("on a fresh node", long), derived=True)
    values = {"es": forks(lambda x: x, axis), "os": forks(lambda x: x, axis, seed=2)}
    labels = drawn(sweep_chart(make_curve(values, axis), "k"))["layout"]["xaxis"]["ticktext"]
    assert labels[1].replace("<br>", "").replace(" ", "") == long.replace(" ", "")
    assert max(map(len, labels[1].split("<br>"))) < len(long)


def test_points_are_drawn_by_their_recall_with_intervals_both_ways():
    curve = recall_curve({"es": 1.5, "os": 1.8})
    chart = recall_chart(curve, "k")
    es, os = drawn(chart)["data"]
    assert es["x"] == [mean.value for mean in curve.lines[0].recall]
    assert os["y"] == [mean.value for mean in curve.lines[1].means]
    assert es["text"] == list(CANDIDATES.labels)
    for bars, means in ((es["error_x"], curve.lines[0].recall), (es["error_y"], curve.lines[0].means)):
        assert bars["array"] == [mean.high - mean.value for mean in means]
        assert bars["arrayminus"] == [mean.value - mean.low for mean in means]
    layout = drawn(chart)["layout"]
    assert [shape["x0"] for shape in layout["shapes"]] == [0.9, 0.95, 0.99]
    assert layout["yaxis"]["type"] == "log"
    analysis = analyse_run(recall_record())
    charts, _ = page(analysis)
    by_recall = [f"recall-{number}" for number, curve in enumerate(analysis.curves) if curve.at_recall]
    assert [chart.key for chart in charts] == [*by_recall, "sweep-0", "sweep-1", "sweep-2"]


def test_points_without_a_recall_are_not_drawn_by_it():
    found = {"es": [{}, *recalls(1.5)[1:]]}
    (line,) = drawn(recall_chart(recall_curve({"es": 1.5}, recalls=found), "k"))["data"]
    assert line["text"] == list(CANDIDATES.labels[1:])
