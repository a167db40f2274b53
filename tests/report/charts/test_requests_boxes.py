import numpy as np
import plotly.graph_objects as go
import pytest

from benchctl.report.charts import Frame, variant_style
from benchctl.report.charts.requests import box_chart
from figures import drawn
from sampled import make_samples, make_source, make_task_shapes

FRAME = Frame("0-0-range", "range", ("es", "os"))


def test_boxes_are_of_all_requests_with_so_many_hits():
    random = np.random.default_rng(1)
    service, hits = random.integers(1, 1_000, 200).astype(float), random.integers(0, 500, 200)
    halves = [
        make_source([make_samples(service[part], hits=hits[part])], "es", block)
        for block, part in enumerate((slice(90), slice(90, 200)))
    ]
    chart = box_chart(make_task_shapes(*halves), FRAME)
    assert chart is not None
    box, mark = drawn(chart)["data"]
    assert box["x"] == [
        name for name in ("0", "1 to 9", "10 to 99", "100 to 999") if name != "0" or 0 in hits
    ]
    own = service[(hits >= 100)]
    ends = [box[name][-1] for name in ("lowerfence", "q1", "median", "q3", "upperfence")]
    assert ends == pytest.approx(np.quantile(own, (0, 0.25, 0.5, 0.75, 0.95)), rel=1e-4)
    assert mark["y"] == box["median"]
    assert chart.table is not None
    assert chart.table.texts[-1][:3] == ("es", "100 to 999", str(own.size))


def test_variants_stand_beside_each_other_with_their_own_marks():
    shapes = make_task_shapes(
        make_source([make_samples([1.0, 2.0], hits=[5, 500])], "es"),
        make_source([make_samples([1.0, 2.0], hits=[50, 5_000])], "os"),
    )
    chart = box_chart(shapes, FRAME)
    assert chart is not None
    figure = go.Figure(drawn(chart))
    marks = [trace for trace in drawn(chart)["data"] if trace["type"] == "scatter"]
    assert [mark["marker"]["symbol"] for mark in marks] == [variant_style(0).symbol, variant_style(1).symbol]
    assert [trace["offsetgroup"] for trace in drawn(chart)["data"]] == ["0", "0", "1", "1"]
    assert list(figure.layout.xaxis.categoryarray) == ["1 to 9", "10 to 99", "100 to 999", "1,000 to 9,999"]


def test_it_is_said_that_boxes_describe_and_what_they_lack():
    rows = make_samples([1.0] * 4, hits=[5, 50, -1, 10_000], hits_exact=[True, True, True, False])
    chart = box_chart(make_task_shapes(make_source([rows])), FRAME)
    assert chart is not None
    assert "boxes describe, and say nothing about whether variants differ" in chart.about
    assert "Requests whose hits are not known, and which are in none: 1." in chart.about
    assert (
        "Requests whose hits the engine stopped counting, so that they had as many or more: 1." in chart.about
    )


def test_requests_that_all_find_as_much_make_no_boxes():
    assert box_chart(make_task_shapes(make_source([make_samples([1.0, 2.0])])), FRAME) is None
