from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchctl.results.figures import Quantiles
from benchctl.results.foreign import read_race, record_of
from benchctl.results.model import RunRecord
from benchctl.results.plan import VariantSpec
from builders import ES, OS
from races import race, run_of_osb, task_of, times, write

UNKNOWN_VERSION = VariantSpec("es", "elasticsearch", "unknown")


def imported(tmp_path: Path, *documents: dict[str, Any], variant: VariantSpec = ES) -> RunRecord:
    paths = [write(tmp_path / f"{number}.json", document) for number, document in enumerate(documents)]
    return record_of([read_race(path) for path in paths], variant, "r", tags=("t",))


def test_every_race_is_a_fork_without_samples(tmp_path: Path):
    record = imported(tmp_path, race(1), race(2))
    assert [(fork.block, fork.status, fork.samples, fork.boots) for fork in record.forks] == [
        (0, "done", None, ()),
        (1, "done", None, ()),
    ]
    assert record.missing() == ()
    assert record.imported is not None
    assert record.imported.files == (str(tmp_path / "0.json"), str(tmp_path / "1.json"))
    assert record.tags == ("t",)
    assert msgspec.json.decode(msgspec.json.encode(record), type=RunRecord) == record


def test_throughput_is_the_median_and_times_are_nanoseconds(tmp_path: Path):
    (fork,) = imported(tmp_path, race(1, task_of("range", 10.0))).forks
    (task,) = fork.summaries
    assert (task.label, task.operation, task.unit) == ("range", "range", "ops")
    assert task.throughput_per_s == pytest.approx(101)
    assert task.service_time == Quantiles(10e6, 12e6, 15e6)
    assert task.processing_time is not None
    assert (task.mean_ns, task.max_ns) == (pytest.approx(10.5e6), 20e6)
    assert (task.sd_ns, task.drift, task.took, task.hits) == (None, None, None, None)


def test_the_latency_of_a_closed_loop_is_left_out_and_said(tmp_path: Path):
    record = imported(tmp_path, race(1))
    assert [task.latency for task in record.forks[0].summaries] == [None, None]
    (remark,) = record.caveats
    assert "the latency that Rally gives for range, desc_sort_timestamp is the service time again" in remark


def test_the_latency_of_a_throttled_task_is_kept(tmp_path: Path):
    throttled = task_of("range", latency=times(p50=14, p90=20, p99=30, top=44))
    record = imported(tmp_path, race(1, throttled))
    assert record.forks[0].summaries[0].latency == Quantiles(14e6, 20e6, 30e6)
    assert record.caveats == ()


def test_what_speaks_against_the_variant_is_said(tmp_path: Path):
    osb = write(tmp_path / "osb.json", run_of_osb(1, cluster={}))
    first, *_ = record_of([read_race(osb)], ES, "r").caveats
    assert first == (
        "es is taken to be elasticsearch, as the user says, although OpenSearch Benchmark measured it"
    )
    old = write(tmp_path / "old.json", race(1, cluster={"distribution-version": "7.10.2"}))
    first, *_ = record_of([read_race(old)], OS, "r").caveats
    assert "although its version is 7.10.2, which is Elasticsearch's" in first
    plain = write(tmp_path / "plain.json", run_of_osb(1, cluster={"distribution-version": "2.11.0"}))
    assert not any("taken to be" in text for text in record_of([read_race(plain)], OS, "r").caveats)


@pytest.mark.parametrize(
    ("service", "samples", "expected", "remarks"),
    [
        (times(p50=1, p90=2, p99=3, top=4), 100, (1e6, 2e6, 3e6), []),
        (times(p50=1, p90=2, top=4), 10, (1e6, 2e6, 4e6), ["p99"]),
        (times(p50=1, top=4), 2, (1e6, 4e6, 4e6), ["p90", "p99"]),
        ({"100_0": 4.0, "mean": 4.0, "unit": "ms"}, 1, (4e6, 4e6, 4e6), ["p90", "p99"]),
        ({**times(p50=1, p90=2, p99=3, top=4), "99_9": 3.5}, 1000, (1e6, 2e6, 3e6), []),
        ({"50_0": 0.5, "90_0": 0.6, "99_0": 0.7, "100_0": 1, "unit": "s"}, 100, (5e8, 6e8, 7e8), []),
    ],
)
def test_percentiles_tell_how_many_requests_there_were_at_least(
    tmp_path: Path,
    service: dict[str, Any],
    samples: int,
    expected: tuple[float, float, float],
    remarks: list[str],
):
    record = imported(tmp_path, race(1, task_of("range", service_time=service, latency=dict(service))))
    task = record.forks[0].summaries[0]
    assert task.samples == samples
    assert task.service_time is not None
    assert (task.service_time.p50, task.service_time.p90, task.service_time.p99) == expected
    said = [text for text in record.caveats if "stands in" in text]
    assert [next(name for name in ("p90", "p99") if f"no {name} of range" in one) for one in said] == remarks


def test_what_failed_is_in_rallys_figures_and_said(tmp_path: Path):
    record = imported(tmp_path, race(1, task_of("range", error_rate=0.25)))
    assert any("25% of the requests of range failed in 0.json (0000-1)" in text for text in record.caveats)
    assert record.forks[0].summaries[0].failures == {}
    assert record.forks[0].summaries[0].failed_share == 0.25


def test_a_task_whose_requests_all_failed_has_no_figures(tmp_path: Path):
    (task,) = imported(tmp_path, race(1, task_of("range", error_rate=1.0))).forks[0].summaries
    assert (task.samples, task.throughput_per_s, task.service_time) == (0, None, None)
    assert task.failures == {"failed": 1}


def test_names_that_are_no_percentiles_and_times_beyond_all_measure_are_left_out(tmp_path: Path):
    odd = {"1e5_0": 2.0, "90_0_0": 3.0, "50_0": 4.0, "90_0": 5.0, "99_0": 1e308, "unit": "s"}
    (task,) = imported(tmp_path, race(1, task_of("range", service_time=odd, latency=odd))).forks[0].summaries
    assert task.service_time is None
    odd["99_0"] = 6.0
    (task,) = imported(tmp_path, race(1, task_of("range", service_time=odd, latency=odd))).forks[0].summaries
    assert task.service_time is not None
    assert (task.service_time.p50, task.service_time.p90, task.service_time.p99) == (4e9, 5e9, 6e9)


def test_figures_that_the_tool_had_not_stay_unknown(tmp_path: Path):
    empty = {"min": None, "mean": None, "median": None, "max": None, "unit": "ops/s"}
    bare = task_of("range", throughput=empty, service_time={}, latency={}, processing_time=None)
    (task,) = imported(tmp_path, race(1, bare)).forks[0].summaries
    assert (task.samples, task.throughput_per_s, task.service_time, task.processing_time) == (
        0,
        None,
        None,
        None,
    )


def test_the_version_is_the_files_and_unknown_stays_unknown(tmp_path: Path):
    silent = race(1, cluster={})
    assert imported(tmp_path, race(1), variant=UNKNOWN_VERSION).plan.variants[0].version == "8.11.0"
    record = imported(tmp_path, silent, variant=UNKNOWN_VERSION)
    assert record.plan.variants[0].version == "unknown"
    (engine,) = record.engines
    assert (engine.version, engine.build, engine.jdk, engine.lucene) == ("unknown",) * 4
    assert (record.plan.heap_mb, record.plan.corpus.documents, record.environment.hostname) == (
        0,
        0,
        "unknown",
    )
