"""Axes of times are marked with numbers that people read."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.report.charts.panels import spans, time_axis


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
