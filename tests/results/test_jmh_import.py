"""A result of JMH's, taken over: its forks, and what each of them came to."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchctl.errors import BenchctlError
from benchctl.results.foreign import is_jmh, read_jmh, record_of
from benchctl.results.plan import VariantSpec
from benchctl.stats.analyse import analyse_run

SPEC = VariantSpec("new", "jvm", "21.0.8")


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
    races = read_jmh(result)
    record = record_of(races, SPEC, "r")
    assert record.imported is not None
    assert (record.imported.tool, record.imported.version, len(record.forks)) == ("jmh", "1.37", 3)
    first, second, _ = record.forks
    sums, copies, ones = first.summaries
    assert [one.label for one in first.summaries] == ["Sum.sum:size=9", "Sum.copy:size=9", "Sum.one:size=9"]
    assert (sums.mean_ns, sums.throughput_per_s, sums.service_time) == (2000.0, None, None)
    assert second.summaries[0].mean_ns == 6000.0
    assert (copies.throughput_per_s, copies.unit, copies.mean_ns) == (5000.0, "ops", None)
    assert ones.service_time is not None
    assert (ones.mean_ns, ones.service_time.p50, ones.service_time.p99) == (12.0, 10.0, 30.0)
    found = analyse_run(record)
    told = {(row.metric, row.label): row.figures[0].values for row in found.rows}
    assert told["op_time", "Sum.sum:size=9"] == pytest.approx((2000.0, 6000.0, 2000.0))
    assert ("throughput", "Sum.sum:size=9") not in told
    assert not any("p90" in text for text in record.caveats)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "its benchmarks have no forks"),
        ("[{}]", "not a result of JMH's"),
        (json.dumps([ENTRIES[0], entry("sum", "avgt", "us/op", rawData=[[1.0]])]), "have 1 and 3 forks"),
        (json.dumps([entry("sum", "avgt", "lines", rawData=[[1.0]])]), "which is no time"),
        (json.dumps([entry("sum", "avgt", "ns/op", rawData=[[]])]), "has no figures of fork 0"),
    ],
)
def test_what_is_none_is_refused(result: Path, text: str, said: str):
    result.write_text(text)
    with pytest.raises(BenchctlError, match=said):
        read_jmh(result)
