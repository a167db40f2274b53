import pytest

from benchctl.report.charts import Chart, Frame, variant_style
from benchctl.report.charts.requests import distribution_chart
from benchctl.results.reading import ForkSource
from figures import drawn
from sampled import make_samples, make_source, make_task_shapes

FRAME = Frame("0-0-range", "range", ("es", "os"))


def draw(*sources: ForkSource) -> Chart:
    chart = distribution_chart(
        make_task_shapes(*sources), FRAME, kind="service time", of=lambda fork: fork.shape.service
    )
    assert chart is not None
    return chart


def forks(*service_ms: float, label: str = "es", requests: int = 100) -> list[ForkSource]:
    return [
        make_source(
            [make_samples([value * (1 + place / requests) for place in range(requests)])], label, block
        )
        for block, value in enumerate(service_ms)
    ]


def test_every_fork_is_a_thin_line_and_the_variant_the_median_of_their_quantiles():
    chart = draw(*forks(1.0, 2.0, 9.0))
    upper = [trace for trace in drawn(chart)["data"] if "xaxis" not in trace]
    assert [trace["name"] for trace in upper] == [
        "es, fork 0",
        "es, fork 1",
        "es, fork 2",
        "es, median of 3 forks",
    ]
    assert [trace["line"]["width"] for trace in upper] == [1, 1, 1, 3]
    lower = [trace for trace in drawn(chart)["data"] if trace.get("xaxis") == "x2"]
    assert lower[3]["y"] == lower[1]["y"]  # the fork in the middle, not the mean, and not the pool
    assert upper[0]["y"][-1] == 1
    assert upper[0]["x"] == sorted(upper[0]["x"])


def test_named_percentiles_are_marked_and_are_those_of_the_table():
    chart = draw(*forks(1.0, requests=1_000), *forks(2.0, label="os", requests=1_000))
    marks = [trace for trace in drawn(chart)["data"] if trace["mode"] == "markers"]
    assert [mark["x"] for mark in marks] == [[2, 10, 100]] * 2
    assert [mark["marker"]["symbol"] for mark in marks] == [variant_style(0).symbol, variant_style(1).symbol]
    assert chart.table is not None
    assert chart.table.texts[0] == ("es, fork 0", "1,000", "1.500", "1.899", "1.989", "n/a")
    assert marks[0]["y"] == pytest.approx([1.4995, 1.8991, 1.989], abs=1e-3)


def test_variants_differ_in_dash_and_colour():
    chart = draw(*forks(1.0, 1.1), *forks(2.0, 2.1, label="os"))
    thick = [trace["line"] for trace in drawn(chart)["data"] if trace["showlegend"]]
    assert [line["dash"] for line in thick] == [variant_style(0).dash, variant_style(1).dash]
    assert [line["color"] for line in thick] == [variant_style(0).colour, variant_style(1).colour]


def test_a_variant_keeps_its_style_where_the_first_has_nothing():
    chart = draw(*forks(2.0, label="os"))
    assert {trace["line"]["color"] for trace in drawn(chart)["data"] if "line" in trace} == {
        variant_style(1).colour
    }


def test_quantiles_that_too_few_requests_carry_are_not_drawn_and_it_is_said():
    chart = draw(*forks(1.0, requests=100), *forks(2.0, label="os", requests=150))
    lower = [trace for trace in drawn(chart)["data"] if trace.get("xaxis") == "x2"]
    assert max(max(trace["x"]) for trace in lower) < 100
    assert "A fork has 100 to 150 requests" in chart.about
    assert "fewer than 10 are not drawn in the lower plot (p99, p99.9, in some forks or all)" in chart.about


def test_the_median_over_forks_ends_where_the_shortest_fork_does():
    sources = [*forks(1.0, requests=100), make_source([make_samples([2.0] * 1_000)], "es", 1)]
    *_, median, _ = (trace for trace in drawn(draw(*sources))["data"] if trace.get("xaxis") == "x2")
    assert max(median["x"]) == 10


def test_few_requests_have_a_distribution_but_no_percentile_panel():
    chart = draw(*forks(1.0, requests=10))
    assert "xaxis2" not in drawn(chart)["layout"]
    assert len(drawn(chart)["data"]) == 1
    assert "A fork has 10 requests: too few for a plot of quantiles, with under 10 beyond p50." in chart.about
    assert "lower plot" not in chart.about


def test_the_line_of_a_single_fork_is_the_variants():
    (trace,) = drawn(draw(*forks(1.0, requests=10)))["data"]
    assert (trace["name"], trace["showlegend"], trace["line"]["shape"]) == ("es", True, "hv")
    assert "pooled" not in draw(*forks(1.0)).about


def test_names_cannot_bring_tags():
    frame = Frame("k", "g", ("<b>es",))
    shapes = make_task_shapes(*forks(1.0, 2.0, label="<b>es"))
    chart = distribution_chart(shapes, frame, kind="service time", of=lambda fork: fork.shape.service)
    assert chart is not None
    assert all("<" not in trace["name"] for trace in drawn(chart)["data"])


def test_a_time_that_no_fork_has_is_no_chart():
    shapes = make_task_shapes(*forks(1.0))
    assert distribution_chart(shapes, FRAME, kind="latency", of=lambda fork: fork.shape.latency) is None
