"""What a result of JMH's says: figures of forks, and its own table."""

import math
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import BenchctlError
from benchctl.micro.results import (
    JmhEntry,
    decode_jmh,
    entries_file,
    figures_of,
    own_row,
    short_names,
    write_entries,
)


def entry(name: str, mode: str, unit: str, **metric: Any) -> dict[str, Any]:
    return {
        "jmhVersion": "1.37",
        "benchmark": f"demo.Sum.{name}",
        "mode": mode,
        "threads": 1,
        "jdkVersion": "21.0.8",
        "params": {"size": "9"},
        "primaryMetric": {"scoreUnit": unit, **metric},
    }


ENTRIES = [
    entry("sum", "avgt", "us/op", rawData=[[1.0, 3.0]]),
    entry("copy", "thrpt", "ops/ms", rawData=[[4.0, 6.0]]),
    entry("one", "sample", "ns/op", rawDataHistogram=[[[[10, 90]], [[30, 10]]]]),
]


def test_a_mean_of_iterations_a_rate_and_percentiles_of_samples():
    sums, copies, ones = (
        figures_of(place, entry["benchmark"], msgspec.convert(entry, JmhEntry))
        for place, entry in enumerate(ENTRIES)
    )
    assert (sums.mean_ns, sums.throughput_per_s, sums.service_time, sums.samples) == (2000.0, None, None, 2)
    assert (copies.throughput_per_s, copies.unit, copies.mean_ns) == (5000.0, "ops", None)
    assert ones.service_time is not None
    assert (ones.mean_ns, ones.service_time.p50, ones.service_time.p99) == (12.0, 10.0, 30.0)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"rawData": [[]]}, "sum has no scores"),
        ({"rawData": []}, "sum has no scores"),
        ({"scoreUnit": "ops/s", "rawData": [[1.0]]}, "unit 'ops/s' does not fit mode 'avgt'"),
    ],
)
def test_what_has_no_value_is_refused(changes: dict[str, Any], text: str):
    entry = {**ENTRIES[0], "primaryMetric": {"scoreUnit": "us/op", **changes}}
    with pytest.raises(BenchctlError, match=text):
        figures_of(0, "sum", msgspec.convert(entry, JmhEntry))


def test_names_are_as_short_as_they_tell_apart():
    assert short_names(["a.Sum.one", "a.Sum.two"]) == {"a.Sum.one": "one", "a.Sum.two": "two"}
    assert short_names(["a.Sum.one", "a.Max.one"]) == {"a.Sum.one": "Sum.one", "a.Max.one": "Max.one"}
    assert short_names(["a.Sum.one", "b.Sum.one"]) == {"a.Sum.one": "a.Sum.one", "b.Sum.one": "b.Sum.one"}


def one(mode: str = "avgt", unit: str = "ns/op", **data: Any) -> JmhEntry:
    return msgspec.convert(entry("sum", mode, unit, **(data or {"rawData": [[1.0, 3.0]]})), JmhEntry)


@pytest.mark.parametrize(
    ("mode", "unit", "expected_ns"), [("avgt", "us/op", 2000.0), ("ss", "ms/op", 2e6), ("avgt", "ns/op", 2.0)]
)
def test_a_time_is_in_nanoseconds_whatever_its_unit(mode: str, unit: str, expected_ns: float):
    found = figures_of(3, "sum", one(mode, unit))
    assert (found.task, found.label, found.mean_ns, found.samples) == (3, "sum", expected_ns, 2)
    assert (found.throughput_per_s, found.service_time) == (None, None)


def test_a_rate_is_a_second_and_sampled_times_have_quantiles():
    rate = figures_of(0, "copy", one("thrpt", "ops/ms"))
    assert (rate.throughput_per_s, rate.mean_ns, rate.unit) == (2000.0, None, "ops")
    found = figures_of(0, "sum", one("sample", "us/op", rawDataHistogram=[[[[1.0, 30], [4.0, 70]]]]))
    assert found.service_time is not None
    assert (found.samples, found.service_time.p90, found.service_time.p99) == (100, 4000.0, 4000.0)


@given(st.lists(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=5), min_size=1, max_size=5))
def test_jmhs_own_error_is_students_of_all_iterations_in_one_pot(forks: list[list[float]]):
    row = own_row("sum", [one(rawData=[fork]) for fork in forks])
    values = [value for fork in forks for value in fork]
    assert row.count == len(values)
    assert row.score == pytest.approx(sum(values) / len(values))
    assert (row.error is None) == (len(values) < 3)


def test_an_error_by_hand():
    """t(0.9995, 3) is 12.924; the standard error of 1, 2, 3, 4 is 0.6455."""
    row = own_row("sum", [one(rawData=[[1.0, 2.0]]), one(rawData=[[3.0, 4.0]])])
    assert row.error == pytest.approx(12.924 * math.sqrt(5 / 3) / 2, rel=1e-3)
    pairs = [one(rawDataHistogram=[[[[1.0, 1], [2.0, 1]], [[3.0, 1], [4.0, 1]]]])]
    assert own_row("sum", pairs).error == pytest.approx(row.error)


@pytest.mark.parametrize("score", [math.nan, "NaN", math.inf, "+INF"])
def test_an_iteration_without_a_number_is_a_failure_and_the_others_count(tmp_path: Path, score: object):
    path = entries_file(tmp_path, "new", 0)
    write_entries(path, {"sum": entry("sum", "avgt", "ns/op", rawData=[[score, 2.0]])})
    kept = decode_jmh(path.read_bytes(), dict[str, JmhEntry])["sum"]
    found = figures_of(0, "sum", kept)
    assert (found.mean_ns, found.samples, found.failures) == (2.0, 1, {"failed": 1})
    none = figures_of(0, "sum", one(rawData=[[score]]))
    assert (none.mean_ns, none.samples, none.failures) == (None, 0, {"failed": 1})
