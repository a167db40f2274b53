"""What a result of JMH's says: figures of forks, its own table, and a run made of it."""

import json
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
    is_jmh,
    own_row,
    record_of_jmh,
    short_names,
    write_entries,
)
from benchctl.stats.analyse import analyse_run
from golden import Cases


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
    entry("sum", "avgt", "us/op", rawData=[[1.0, 3.0], [5.0, 7.0], [2.0, 2.0]]),
    entry("copy", "thrpt", "ops/ms", rawData=[[4.0, 6.0], [1.0, 1.0], [2.0, 2.0]]),
    entry("one", "sample", "ns/op", rawDataHistogram=[[[[10, 90]], [[30, 10]]], [[[5, 1]]], [[[5, 2]]]]),
]


@pytest.fixture
def result(tmp_path: Path) -> Path:
    path = tmp_path / "jmh-result.json"
    path.write_text(json.dumps(ENTRIES))
    return path


def test_its_forks_are_forks(result: Path):
    assert is_jmh(result)
    record, kept = record_of_jmh([result], "new", "r", tags=["lab"])
    assert [list(one) for one in kept] == [["sum:size=9", "copy:size=9", "one:size=9"]] * 3
    assert [own_row("sum", [one["sum:size=9"]]).score for one in kept] == [2.0, 6.0, 2.0]
    assert (record.id, record.tags, record.plan.variants[0].version) == ("r", ("lab",), "21.0.8")
    assert record.imported is not None
    assert (record.imported.tool, record.imported.version, len(record.forks)) == ("jmh", "1.37", 3)
    first, second, _ = record.forks
    sums, copies, ones = first.summaries
    assert [one.label for one in first.summaries] == ["sum:size=9", "copy:size=9", "one:size=9"]
    assert (sums.mean_ns, sums.throughput_per_s, sums.service_time) == (2000.0, None, None)
    assert second.summaries[0].mean_ns == 6000.0
    assert (copies.throughput_per_s, copies.unit, copies.mean_ns) == (5000.0, "ops", None)
    assert ones.service_time is not None
    assert (ones.mean_ns, ones.service_time.p50, ones.service_time.p99) == (12.0, 10.0, 30.0)
    found = analyse_run(record)
    told = {(row.metric, row.label): row.figures[0].values for row in found.rows}
    assert told["op_time", "sum:size=9"] == pytest.approx((2000.0, 6000.0, 2000.0))
    assert ("throughput", "sum:size=9") not in told
    assert record.caveats == ()


def test_what_is_none_is_refused(cases: Cases, result: Path):
    def read(text: str) -> object:
        result.write_text(text)
        return record_of_jmh([result], "new", "r")

    cases("results", read, result.parent)


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


def test_what_a_profiler_says_of_allocation_is_a_figure_and_nonsense_is_none():
    def told(score: object) -> dict[str, float]:
        key = "·gc.alloc.rate.norm"
        text = json.dumps([{**ENTRIES[0], "secondaryMetrics": {key: {"score": score}, "·stack": {}}}])
        return figures_of(0, "sum", msgspec.json.decode(text, type=list[JmhEntry])[0]).meters

    assert told(416.0) == {"allocated": 0.416}
    assert told("NaN") == {}


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
def test_an_iteration_without_a_number_is_a_failure_and_the_others_count(result: Path, score: object):
    text = json.dumps([entry("sum", "avgt", "ns/op", rawData=[[score, 2.0], [1.0, 3.0], [score]])])
    result.write_text(text)
    record, kept = record_of_jmh([result], "new", "r")
    first, second, third = (fork.summaries[0] for fork in record.forks)
    assert (first.mean_ns, first.samples, first.failures) == (2.0, 1, {"failed": 1})
    assert (second.mean_ns, second.failures) == (2.0, {})
    assert (third.mean_ns, third.samples, third.failures) == (None, 0, {"failed": 1})
    path = entries_file(result.parent, "new", 0)
    write_entries(path, kept[0])
    assert decode_jmh(path.read_bytes(), dict[str, JmhEntry])["sum:size=9"].values(0) == [(2.0, 1)]


@pytest.mark.parametrize(("asked", "said"), [(0, "-f 0"), (5, "3 of 5")])
def test_forks_that_were_not_what_was_asked_for_are_told(result: Path, asked: int, said: str):
    result.write_text(json.dumps([{**ENTRIES[0], "forks": asked}]))
    (text,) = record_of_jmh([result], "new", "r")[0].caveats
    assert said in text
    assert "demo.Sum.sum" in text


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"threads": 4}, "threads"),
        ({"jdkVersion": "17"}, "Java version"),
        ({"jvmArgs": ["-Xmx2g"]}, "JVM arguments"),
        ({"mode": "ss"}, "mode"),
        ({"measurementTime": "9 s"}, "measurement"),
        ({"primaryMetric": {"scoreUnit": "ms/op", "rawData": [[1.0], [1.0], [1.0]]}}, "unit"),
    ],
)
def test_files_of_other_settings_are_no_further_forks(result: Path, change: dict[str, Any], name: str):
    result.write_text(json.dumps(ENTRIES[:1]))
    other = result.with_name("other.json")
    changed = {**ENTRIES[0], **change}
    if "primaryMetric" not in change:
        changed["primaryMetric"] = {"scoreUnit": "us/op", "rawData": [[1.0], [2.0], [3.0]]}
    other.write_text(json.dumps([changed]))
    with pytest.raises(BenchctlError, match=rf"other\.json: {name} of demo.Sum.sum is"):
        record_of_jmh([result, other], "new", "r")


def test_the_same_results_are_not_counted_again(result: Path):
    again = result.with_name("again.json")
    again.write_bytes(result.read_bytes())
    with pytest.raises(BenchctlError, match=r"again\.json: the same results as"):
        record_of_jmh([result, again], "new", "r")
