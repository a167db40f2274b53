from typing import Any

import pytest

from benchctl.report.charts import Chart, Frame
from benchctl.report.charts.requests import course_chart
from benchctl.results.figures import Course
from benchctl.results.reading import ForkSource
from builders import make_summary
from figures import drawn
from sampled import make_samples, make_source, make_task_shapes

FRAME = Frame("0-0-range", "range", ("es", "os"))
WARMING = Course("warm-up", 6, 10, (0, 3, 6), (9e6, 7e6, 5e6))


def draw(*sources: ForkSource, **task: Any) -> Chart:
    chart = course_chart(make_task_shapes(*sources, **task), FRAME)
    assert chart is not None
    return chart


def fork(
    label: str = "es",
    block: int = 0,
    *,
    requests: int = 10,
    warmup: int = 0,
    course: Course | None = None,
    **columns: Any,
) -> ForkSource:
    measured = [False] * requests
    rows = make_samples([5.0] * (warmup + requests), warmup=[True] * warmup + measured, **columns)
    return make_source([rows], label, block, summaries=(make_summary("range", 5.0, course=course),))


def test_measured_requests_count_from_one_and_warm_up_ends_at_zero():
    (line,) = drawn(draw(fork(warmup=3)))["data"]
    assert line["x"] == [-2, -1, 0, *range(1, 11)]
    assert line["y"] == [5.0] * 13


def test_warm_up_is_shaded_up_to_a_line_and_only_where_there_was_some():
    layout = drawn(draw(fork(warmup=3)))["layout"]
    area, line = layout["shapes"]
    assert (area["x0"], area["x1"]) == (-2, 0.5)
    assert (line["x0"], line["x1"]) == (0.5, 0.5)
    chart = draw(fork())
    assert "shapes" not in drawn(chart)["layout"]
    assert "warm-up" not in chart.about


def test_every_variant_has_a_panel_of_the_same_scale():
    layout = drawn(draw(fork("es"), fork("os"), fork("os", 1)))["layout"]
    assert layout["yaxis2"]["matches"] == "y"
    assert [one["text"] for one in layout["annotations"]] == ["<b>es</b>", "<b>os</b>"]
    panels = [trace["yaxis"] for trace in drawn(draw(fork("es"), fork("os"), fork("os", 1)))["data"]]
    assert panels == ["y", "y2", "y2"]


def test_points_of_many_requests_have_a_band_and_say_of_how_many():
    chart = draw(fork(requests=4_000))
    band, line = drawn(chart)["data"]
    assert band["fill"] == "toself"
    assert len(band["x"]) == 2 * len(line["x"]) == 800
    assert "Each point is the median of up to 10 requests" in chart.about
    assert line["x"][0] == 5.5


def test_segments_are_steps_from_request_to_request_with_a_mark_where_the_last_begins():
    _, steps, mark = drawn(draw(fork(course=WARMING)))["data"]
    assert steps["x"] == [0.5, 3.5, 3.5, 6.5, 6.5, 10.5]
    assert steps["y"] == [9, 9, 7, 7, 5, 5]
    assert (mark["x"], mark["y"]) == ([6.5], [5.0])
    assert "settled after 6 requests" in mark["hovertemplate"]


def test_what_never_settled_has_no_mark():
    never = Course("no steady state", 6, 10, (0, 6), (5e6, 9e6))
    chart = draw(fork(course=never))
    assert [trace["mode"] for trace in drawn(chart)["data"]] == ["lines", "lines"]
    assert chart.table is not None
    assert chart.table.texts[0][5:] == ("n/a", "no steady state", "5.000 from 0, 9.000 from 6")


def test_tasks_of_a_given_time_are_drawn_over_seconds():
    chart = draw(fork(requests=8, warmup=2, course=Course("flat", 4, 8, (0, 4), (5e6, 5e6))), time_period=1.0)
    line, steps, _ = drawn(chart)["data"]
    assert line["x"] == pytest.approx([-0.01, -0.005, *(0.005 * number for number in range(8))])
    assert steps["x"][:2] == pytest.approx([0, 0.02])
    assert "Seconds" in drawn(chart)["layout"]["xaxis"]["title"]["text"]


def test_failures_are_counted_in_words():
    chart = draw(fork(outcome=[0, 1, 1, *[0] * 7]))
    assert "Measured requests that failed, and are not drawn: 2." in chart.about
    assert len(drawn(chart)["data"][0]["x"]) == 8


def test_the_table_has_a_line_a_fork():
    chart = draw(fork(warmup=3, course=WARMING), fork("os", 4))
    assert chart.table is not None
    assert chart.table.texts == (
        (
            "es, fork 0",
            "3",
            "10",
            "5.000",
            "5.000",
            "6",
            "warm-up",
            "9.000 from 0, 7.000 from 3, 5.000 from 6",
        ),
        ("os, fork 4", "0", "10", "5.000", "5.000", "n/a", "n/a", "n/a"),
    )


def test_of_many_segments_the_table_has_the_last_ones_and_says_so():
    many = Course("warm-up", 9, 10, tuple(range(10)), tuple(1e6 * (10 - place) for place in range(10)))
    chart = draw(fork(course=many))
    assert chart.table is not None
    assert chart.table.texts[0][-1].startswith("4 earlier ones, 6.000 from 4, ")


def test_a_single_request_is_a_mark_and_none_is_no_chart():
    assert drawn(draw(fork(requests=1)))["data"][0]["mode"] == "markers"
    assert course_chart(make_task_shapes(fork(outcome=1)), FRAME) is None
