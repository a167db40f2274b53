"""Rates add up to what was completed, however cells are joined."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.stats.task_shape import Flow, TaskShape, common_cell, rates


def make_shape(flow: Flow, samples: int) -> TaskShape:
    return TaskShape(0, samples, 0, 0, None, None, None, flow)


def make_flow(units: list[float], *, first: int = 0, cell_s: float = 0.5, **span: float) -> Flow:
    begin, end = first * cell_s, (first + len(units)) * cell_s
    return Flow(cell_s, first, np.array(units), span.get("begin_s", begin), span.get("end_s", end))


@settings(deadline=None)
@given(
    units=st.lists(st.integers(0, 50), min_size=1, max_size=60),
    first=st.integers(-20, 0),
    doubled=st.integers(0, 5),
    cut=st.tuples(st.floats(0, 0.9), st.floats(0, 0.9)),
)
def test_rates_times_their_lengths_are_all_units(
    units: list[float], first: int, doubled: int, cut: tuple[float, float]
):
    begin, end = first * 0.5 + cut[0] * 0.5, (first + len(units)) * 0.5 - cut[1] * 0.5
    if begin >= end:
        return
    flow = make_flow(units, first=first, begin_s=begin, end_s=end)
    cell_s = 0.5 * 2**doubled
    middles, per_s = rates(flow, cell_s)
    edges = [begin]
    for middle in middles:
        edges.append(2 * middle - edges[-1])
    assert edges[-1] == pytest.approx(end)
    assert (np.diff(edges) > 0).all()
    assert (np.diff(edges) < 2 * cell_s).all()
    assert (per_s * np.diff(edges)).sum() == pytest.approx(sum(units))


def test_cells_are_joined_from_where_the_measured_window_begins():
    middles, per_s = rates(make_flow([1, 2, 3, 4, 5, 6], first=-2), 1.0)
    assert middles.tolist() == [-0.5, 0.5, 1.5]
    assert per_s.tolist() == [3, 7, 11]


def test_a_short_rest_goes_with_the_cell_before_it_and_counts_for_its_time():
    middles, per_s = rates(make_flow([10, 10, 4], cell_s=1.0, end_s=2.4), 1.0)
    assert middles.tolist() == pytest.approx([0.5, 1.7])
    assert per_s.tolist() == pytest.approx([10, 10])


def test_a_late_beginning_goes_with_the_cell_behind_it():
    middles, per_s = rates(make_flow([4, 10, 10], cell_s=1.0, begin_s=0.6), 1.0)
    assert middles.tolist() == pytest.approx([1.3, 2.5])
    assert per_s.tolist() == pytest.approx([10, 10])


def test_a_task_that_took_no_time_has_no_rate():
    assert rates(make_flow([3], begin_s=0.0, end_s=0.0), 0.5)[1].tolist() == [0]


@pytest.mark.parametrize(
    ("seconds", "samples", "cell_s"), [(60, 100_000, 0.5), (60, 50, 8.0), (0.1, 10, 0.03125)]
)
def test_cells_are_long_enough_for_some_requests_and_short_enough_to_see_changes(
    seconds: float, samples: int, cell_s: float
):
    flow = Flow(2.0**-12, 0, np.zeros(1), 0.0, seconds)
    assert common_cell([make_shape(flow, samples)]) == cell_s


def test_all_forks_of_a_task_have_the_cells_of_the_longest():
    shapes = [make_shape(Flow(2.0**-12, 0, np.zeros(1), 0.0, seconds), 10_000) for seconds in (10, 100, 30)]
    assert common_cell(shapes) == 1.0
