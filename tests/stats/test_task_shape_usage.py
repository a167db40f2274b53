"""Telemetry of a task is what its readings say, on the clock of its measured window."""

import numpy as np
import pytest

from benchctl.results.reading import Telemetry
from benchctl.results.samples import GC_DTYPES, SERIES_DTYPES, Columns, empty_telemetry
from benchctl.stats.task_shape import task_usage

S = 1_000_000_000


def make_series(seconds: int, **columns: list[float]) -> Columns:
    """A reading a second, from 1 s on."""
    series = {name: np.full(seconds, np.nan) for name in SERIES_DTYPES} | {
        "boot": np.zeros(seconds, np.int16),
        "t_ns": (np.arange(seconds) + 1) * S,
    }
    return series | {name: np.array(values, dtype=np.float64) for name, values in columns.items()}


def make_pauses(*pauses: tuple[float, float]) -> Columns:
    """(start in s, length in ms) of each."""
    return {
        "boot": np.zeros(len(pauses), np.int16),
        "t_ns": np.array([round(start * S) for start, _ in pauses], dtype=np.int64),
        "pause_ns": np.array([round(length * 1e6) for _, length in pauses], dtype=np.int64),
        "what": np.array([f"pause at {start:g}" for start, _ in pauses], dtype=object),
    }


def test_a_task_has_the_readings_in_it_and_the_one_that_ends_it():
    telemetry = Telemetry(
        make_series(9, node_cpu_percent=[10, 20, 30, 40, 50, 60, 70, 80, 90]), make_pauses()
    )
    usage = task_usage(telemetry, round(2.5 * S), round(5.5 * S), origin_ns=4 * S)
    assert usage.seconds.tolist() == [-1, 0, 1, 2]
    assert usage.node_cpu_percent.tolist() == [30, 40, 50, 60]
    assert usage.readings.tolist() == [1, 1, 1, 1]
    assert np.isnan(usage.driver_cpu_percent).all()
    assert np.isnan(usage.merges).all()


def test_a_reading_at_the_beginning_is_about_what_was_before():
    usage = task_usage(Telemetry(make_series(5), make_pauses()), 2 * S, 4 * S, origin_ns=0)
    assert usage.seconds.tolist() == [3, 4]


def test_a_reading_long_after_a_task_is_not_about_it():
    usage = task_usage(Telemetry(make_series(1), make_pauses()), -5 * S, -1 * S, origin_ns=0)
    assert usage.seconds.size == 0


def test_many_readings_are_means_of_what_is_known():
    cpu = [100.0, np.nan, 50.0, np.nan] * 75
    usage = task_usage(
        Telemetry(make_series(300, node_cpu_percent=cpu), make_pauses()), 0, 300 * S, origin_ns=0
    )
    assert usage.readings.tolist() == [2] * 150
    assert usage.node_cpu_percent.tolist() == [100, 50] * 75
    assert usage.seconds[:2].tolist() == [2, 4]


def test_pauses_are_those_that_began_in_the_task():
    pauses = make_pauses((0.5, 100), (1.5, 7), (2.5, 9), (4, 100))
    usage = task_usage(Telemetry(make_series(5), pauses), S, 3 * S, origin_ns=2 * S)
    assert (usage.pauses, usage.pauses_ms, usage.longest) == (2, 16.0, "pause at 2.5")
    assert usage.pause_s.tolist() == [-0.5, 0.5]
    assert usage.pause_ms.tolist() == [7, 9]
    assert usage.pause_counts.tolist() == [1, 1]


def test_of_many_pauses_a_mark_is_the_longest_and_says_of_how_many():
    pauses = make_pauses(*((number * 0.01, 1 + number % 7) for number in range(1_000)))
    usage = task_usage(Telemetry(make_series(10), pauses), 0, 10 * S, origin_ns=0)
    assert usage.pause_counts.sum() == usage.pauses == 1_000
    assert usage.pause_ms.size == 150
    assert set(usage.pause_ms.tolist()) <= {6.0, 7.0}
    assert (np.diff(usage.pause_s) > 0).all()
    assert usage.pauses_ms == pytest.approx(sum(1 + number % 7 for number in range(1_000)))


def test_telemetry_without_rows_gives_a_usage_without_points():
    empty = Telemetry(empty_telemetry(SERIES_DTYPES), empty_telemetry(GC_DTYPES))
    usage = task_usage(empty, 0, S, origin_ns=0)
    assert (usage.seconds.size, usage.pauses, usage.pause_s.size, usage.longest) == (0, 0, 0, "")
