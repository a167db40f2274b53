from benchctl.redline.report import page
from benchctl.report.charts import Chart
from benchctl.results.figures import CurvePoint
from benchctl.stats.analyse import analyse
from figures import drawn
from redlines import make_point, redline_fork, redline_plan


def charts(**variants: list[CurvePoint]) -> list[Chart]:
    forks = {
        name: [redline_fork(name, block, 90.0, points) for block in range(3)]
        for name, points in variants.items()
    }
    found, tables = page(analyse(forks, redline_plan()))
    assert tables == []
    return found


def test_every_rate_is_a_mark_of_its_variant_and_the_objective_is_a_line():
    (chart,) = charts(
        es=[make_point(155, 20.0), make_point(158, 70.0, verdict="fail")], os=[make_point(155, 30.0)]
    )
    es, os = drawn(chart)["data"]
    assert (len(es["x"]), len(os["x"])) == (2, 1)
    assert es["y"] == [20.0, 70.0]
    assert es["line"]["dash"] != os["line"]["dash"]
    assert drawn(chart)["layout"]["shapes"][0]["y0"] == 50.0
    assert "p90 of latency within 50 ms" in chart.about


def test_rates_that_the_driver_spoilt_are_hollow():
    (chart,) = charts(es=[make_point(155, 20.0), make_point(158, 70.0, verdict="driver-limited")])
    assert drawn(chart)["data"][0]["marker"]["symbol"] == ["circle", "circle-open"]


def test_nothing_searched_for_or_found_is_no_plot():
    assert charts(es=[], os=[]) == []


def test_a_variant_without_a_step_keeps_the_style_of_its_place():
    (chart,) = charts(es=[], os=[make_point(155, 20.0)])
    assert [trace["name"] for trace in drawn(chart)["data"]] == ["os"]
    assert drawn(chart)["data"][0]["marker"]["symbol"] == ["diamond"]
