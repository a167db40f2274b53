"""Stacked panels fill the height of a chart; axes of times are marked with numbers that people read."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.report.charts import Frame
from benchctl.report.charts.panels import Panel, heading, spans, stacked, time_axis
from benchctl.report.table import Table


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(40, 300), min_size=1, max_size=6))
def test_panels_stand_below_each_other_as_high_as_they_should_be(heights: list[int]):
    panels = [Panel(f"title {number}", height) for number, height in enumerate(heights)]
    layout = stacked("x", panels, annotations=[heading("es", number + 1) for number in range(len(panels))])
    names = ["yaxis", *(f"yaxis{number}" for number in range(2, len(heights) + 1))]
    domains = [layout[name].domain for name in names]
    assert (domains[0][1], domains[-1][0]) == (1, 0)
    for (low, high), height in zip(domains, heights, strict=True):
        assert (high - low) / (domains[0][1] - domains[0][0]) == pytest.approx(height / heights[0], rel=1e-3)
    assert all(above[0] > below[1] for above, below in itertools.pairwise(domains))
    assert [layout[name].title.text for name in names] == [panel.y_title for panel in panels]


@settings(deadline=None, max_examples=30)
@given(st.floats(1e3, 1e9), st.floats(3.01, 1e7) | st.floats(3.01, 10))
def test_a_wide_axis_is_logarithmic_holds_all_times_and_has_marks(least_ns: float, factor: float):
    axis = time_axis([least_ns, least_ns * factor])
    low, high = axis["range"]
    assert low <= np.log10(least_ns / 1e6)
    assert high >= np.log10(least_ns * factor / 1e6)
    shown = [tick for tick in np.log10(axis["tickvals"]) if low <= tick <= high]
    assert 2 <= len(shown) <= 9
    assert len(axis["tickvals"]) == len(axis["ticktext"])


@pytest.mark.parametrize("times_ns", [[], [0.0], [5e6, 14e6], [0.0, 1e6]])
def test_a_narrow_axis_is_plain(times_ns: list[float]):
    assert time_axis(times_ns) == {}


def test_marks_are_round_numbers():
    assert time_axis([1e6, 90e6])["ticktext"][:6] == ["1", "2", "5", "10", "20", "50"]


def test_spans_are_one_number_where_there_is_one():
    assert (spans(1_000, 1_000), spans(3, 5_000)) == ("1,000", "3 to 5,000")


def test_a_frame_says_what_all_charts_of_a_task_say():
    frame = Frame("0-1-range", "range", ("es", "os"), "Not drawn: os, fork 1.")
    chart = frame.chart("course", "Course", ["One.", "", "Two."], (), None, Table("t", (), ()))
    assert (chart.key, chart.group) == ("course-0-1-range", "range")
    assert chart.about == "One. Two. Not drawn: os, fork 1."
    assert frame.position("os") == 1
