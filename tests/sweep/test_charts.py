from benchctl.report.charts import variant_style
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import SweepAxis
from benchctl.sweep.report import page, sweep_chart
from figures import drawn
from sweeps import AXIS, forks, make_curve, recall_curve, recalls, tasks_record, two_laws


def test_every_variant_is_a_line_at_the_numbers_of_its_points_with_their_intervals():
    chart = sweep_chart(two_laws(), "sweep-7")
    lines = drawn(chart)["data"]
    assert [line["name"] for line in lines] == ["es", "os"]
    for place, line in enumerate(lines):
        assert (line["mode"], line["x"]) == ("lines+markers", list(AXIS.numbers))
        assert all(end > 0 for end in (*line["error_y"]["array"], *line["error_y"]["arrayminus"]))
        assert line["line"]["color"] == variant_style(place).colour
    layout = drawn(chart)["layout"]
    assert layout["xaxis"]["title"]["text"] == "clients"
    assert layout["yaxis"]["title"]["text"] == "p90 service time, ms"
    assert (layout["xaxis"]["type"], layout["yaxis"]["type"]) == ("log", "log")
    assert layout["xaxis"]["ticktext"] == ["1", "2", "4", "8"]
    assert chart.key == "sweep-7"


def test_points_that_are_no_numbers_stand_side_by_side():
    axis = SweepAxis("collector", ("G1", "ZGC"))
    values = {"es": forks(lambda x: x, axis), "os": forks(lambda x: x, axis, seed=2)}
    chart = sweep_chart(make_curve(values, axis), "k")
    es, os = drawn(chart)["data"]
    assert (es["mode"], os["mode"]) == ("markers", "markers")
    assert all(left < place < right for left, place, right in zip(es["x"], (0, 1), os["x"], strict=True))
    assert all(end > 0 for end in (*es["error_y"]["array"], *es["error_y"]["arrayminus"]))
    layout = drawn(chart)["layout"]
    assert layout["xaxis"]["ticktext"] == ["G1", "ZGC"]
    assert layout["xaxis"]["title"]["text"] == "collector"


def test_what_may_be_0_is_drawn_on_a_plain_axis():
    values = {"es": forks(lambda x: x - 1), "os": forks(lambda x: x, seed=2)}
    layout = drawn(sweep_chart(make_curve(values, metric="gc"), "k"))["layout"]
    assert "type" not in layout["yaxis"]
    axis = SweepAxis("replicas", ("0", "1", "2"), (0.0, 1.0, 2.0))
    values = {"es": forks(lambda x: x + 1, axis)}
    assert "type" not in drawn(sweep_chart(make_curve(values, axis, comparisons=()), "k"))["layout"]["xaxis"]


def test_a_point_without_an_interval_or_a_value_does_no_harm():
    values = {"es": [{0: 1.0}, {0: 2.0}, {}, {0: 4.0}]}
    (line,) = drawn(sweep_chart(make_curve(values, comparisons=()), "k"))["data"]
    assert line["x"] == [1.0, 2.0, 8.0]
    assert line["error_y"]["array"] == [0.0, 0.0, 0.0]
    drawn(sweep_chart(make_curve({"es": [{}, {}, {}, {}]}, comparisons=()), "k"))


def test_of_many_tasks_those_are_drawn_whose_difference_depends_most_on_the_history():
    charts, tables = page(analyse_run(tasks_record()))
    assert tables == []
    assert len({chart.key for chart in charts}) == len(charts) == 8
    depends = ["the difference depends on history" in chart.about for chart in charts]
    assert depends == [True] * 7 + [False]


def test_long_names_of_points_are_folded_and_all_of_them_are_there():
    long = "after desc_sort_timestamp, composite-date_histogram-daily"
    axis = SweepAxis("history", ("on a fresh node", long))
    values = {"es": forks(lambda x: x, axis), "os": forks(lambda x: x, axis, seed=2)}
    labels = drawn(sweep_chart(make_curve(values, axis), "k"))["layout"]["xaxis"]["ticktext"]
    assert labels[1].replace("<br>", "").replace(" ", "") == long.replace(" ", "")
    assert max(map(len, labels[1].split("<br>"))) < len(long)


def test_where_recall_rises_points_are_drawn_by_it():
    found = {"es": [{}, *recalls(1.5)[1:]]}
    curve = recall_curve({"es": 1.5}, recalls=found)
    chart = sweep_chart(curve, "k")
    (line,) = drawn(chart)["data"]
    assert line["x"] == [mean.value for mean in curve.lines[0].recall[1:]]
    assert line["y"] == [mean.value for mean in curve.lines[0].means[1:]]
    assert drawn(chart)["layout"]["xaxis"]["title"]["text"] == "recall"
