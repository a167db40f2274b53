"""Series night by night, and what is drawn of them."""

import math
import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.nightly.model import Series, SeriesKey
from benchctl.nightly.site.charts import sparkline
from benchctl.nightly.site.history import history_of, tasks_of
from nightly_suites import KEY, make_series

FORKS = st.dictionaries(
    st.integers(1, 60), st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=6), max_size=20
)


def series_of(nights: dict[int, list[float]]) -> Series:
    rows = [(night, fork, value) for night in sorted(nights) for fork, value in enumerate(nights[night])]
    numbers, forks, values = zip(*rows, strict=True) if rows else ((), (), ())
    return Series(
        key=KEY,
        unit="ms",
        higher_is_better=False,
        nights=np.array(numbers, np.int64),
        forks=np.array(forks, np.int64),
        values=np.array(values, np.float64),
    )


@settings(deadline=None)
@given(FORKS)
def test_a_night_is_the_geometric_mean_and_the_range_of_its_forks(nights: dict[int, list[float]]):
    found = history_of(series_of(nights))
    assert found.numbers.tolist() == sorted(nights)
    for place, number in enumerate(sorted(nights)):
        values = nights[number]
        assert math.isclose(
            found.means[place], math.exp(sum(map(math.log, values)) / len(values)), rel_tol=1e-9
        )
        assert (found.lows[place], found.highs[place]) == (min(values), max(values))
        assert found.forks[place] == len(values)


@settings(deadline=None)
@given(FORKS, st.integers(1, 60), st.integers(0, 60))
def test_a_line_stays_inside_its_box_and_ends_where_a_night_is_missing(
    nights: dict[int, list[float]], first: int, length: int
):
    found = history_of(series_of(nights))
    span = (first, first + length)
    svg = sparkline(found.numbers, found.means, span=span, label="x", position=0)
    inside = [number for number in sorted(nights) if span[0] <= number <= span[1]]
    if not inside:
        assert "<svg" not in svg
        return
    pieces = sum(number - 1 not in inside for number in inside)
    path = re.search(r'<path d="([^"]*)"', svg)
    assert path is not None
    assert path[1].count("M") == pieces
    points = [tuple(map(float, point.split())) for point in re.findall(r"[\d.]+ [\d.]+", path[1])]
    assert len(points) == len(inside)
    assert all(0 <= x <= 150 and 0 <= y <= 30 for x, y in points)


def test_noise_does_not_fill_the_height():
    numbers = np.arange(1, 3)
    svg = sparkline(numbers, np.array([100.0, 101.0]), span=(1, 2), label="x", position=0)
    heights = [float(y) for _, y in re.findall(r"([\d.]+) ([\d.]+)", re.findall(r'd="M([^"]*)"', svg)[0])]
    assert abs(heights[0] - heights[1]) < 4


def test_nights_with_an_alarm_are_marked():
    svg = sparkline(np.arange(1, 4), np.ones(3), span=(1, 3), label="x", position=0, marked={2, 9})
    assert svg.count('class="alarm"') == 1


def test_a_label_is_text():
    svg = sparkline(np.arange(1, 4), np.ones(3), span=(1, 3), label='"><script>', position=0)
    assert "<script>" not in svg


def test_rates_come_before_times_and_watched_variants_before_canaries():
    keys = [
        SeriesKey(variant, "c", "range", metric)
        for metric in ("service_time_p90", "throughput")
        for variant in ("canary", "es", "unknown")
    ]
    (task,) = tasks_of([make_series(key, [1]) for key in keys], ["es", "canary"])
    assert list(task.metrics) == ["throughput", "service_time_p90"]
    assert [one.key.variant for one in task.metrics["throughput"]] == ["es", "canary", "unknown"]
