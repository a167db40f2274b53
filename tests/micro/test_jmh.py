"""What JMH prints and writes, in benchctl's own terms; no JVM is started."""

import math
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import BenchctlError, UsageError
from benchctl.micro.jmh import (
    JmhEntry,
    check_arguments,
    figures_of,
    parse_listing,
    read_source,
    short_names,
    sources_of,
    tasks_of,
)

LISTING = """Benchmarks:
demo.Sum.copy
  param "size" = {100, 1000}
demo.Sum.sum
  param "size" = {100, 1000}
demo.Other.none
"""
NAMES = st.from_regex(r"[a-z]{1,6}(\.[a-z]{1,6}){1,3}\.[A-Z][a-z]{0,5}\.[a-z]{1,8}", fullmatch=True)
WORDS = st.from_regex(r"[a-zA-Z0-9_.-]{1,8}", fullmatch=True)


def test_a_listing_has_benchmarks_with_their_parameters():
    sizes = {"size": ("100", "1000")}
    assert parse_listing(LISTING) == {"demo.Sum.copy": sizes, "demo.Sum.sum": sizes, "demo.Other.none": {}}


@given(st.dictionaries(NAMES, st.dictionaries(WORDS, st.lists(WORDS, min_size=1, max_size=3), max_size=3)))
def test_whatever_is_listed_is_read(found: dict[str, dict[str, list[str]]]):
    lines = ["Benchmarks: "]
    for name, params in found.items():
        lines += [name, *(f'  param "{param}" = {{{", ".join(values)}}}' for param, values in params.items())]
    assert parse_listing("\n".join(lines)) == {
        name: {param: tuple(values) for param, values in params.items()} for name, params in found.items()
    }


def test_there_is_a_task_for_every_value_and_number_of_threads():
    found = parse_listing(LISTING)
    tasks = tasks_of(found, {"size": ("7",)}, (1, 2))
    assert [task.label for task in tasks] == [
        "Sum.copy:size=7,threads=1",
        "Sum.copy:size=7,threads=2",
        "Sum.sum:size=7,threads=1",
        "Sum.sum:size=7,threads=2",
        "Other.none:threads=1",
        "Other.none:threads=2",
    ]
    assert tasks[1].meta == {"benchmark": "demo.Sum.copy", "params": {"size": "7"}, "threads": 2}
    assert [task.clients for task in tasks[:2]] == [1, 2]
    # Of one class, the method says all; its own number of threads needs no mark.
    same = {name: params for name, params in found.items() if "Sum" in name}
    assert [task.label for task in tasks_of(same, {}, (0,))][:2] == ["copy:size=100", "copy:size=1000"]
    with pytest.raises(UsageError, match="no benchmark has such a parameter") as caught:
        tasks_of(found, {"sise": ("7",)}, (1,))
    assert caught.value.hint == "known: size"


def test_a_source_names_what_it_stands_on(tmp_path: Path):
    source = tmp_path / "Sum.java"
    source.write_text("//DEPS a.b:c:1 d:e:2\n  // DEPS a.b:c:1\nclass Sum {}\n")
    (tmp_path / "Sum.yml").write_text("{dependencies: ['f:g:3'], apart: {old: 'f:g:2'}}")
    found = read_source(source)
    assert (found.dependencies, found.apart) == (("a.b:c:1", "d:e:2", "f:g:3"), {"old": "f:g:2"})
    folder = read_source(tmp_path)
    assert (folder.dependencies, sources_of(tmp_path)) == (("a.b:c:1", "d:e:2"), [source])
    source.write_text("//DEPS a.b:c:1 d:e:2\nclass Sum { }\n")
    assert read_source(source).digest != found.digest


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("Sum.java", "//DEPS a.b:c", "'a.b:c' is not a Maven coordinate"),
        ("Sum.txt", "", "neither Java nor a jar"),
        ("Sum.java", None, "no such file.*Sum.java"),
    ],
)
def test_what_is_no_source_is_refused(tmp_path: Path, name: str, text: str | None, said: str):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=said):
        read_source(tmp_path / name)


def test_jmh_is_told_some_things_by_benchctl_alone():
    check_arguments(("-wi", "5", "-bm", "sample", "-prof", "gc"))
    for word, hint in (
        ("-f", "--forks"),
        ("-t", "--threads"),
        ("-jvmArgsAppend", "jvm:FLAG"),
        ("-rff", "remove"),
    ):
        with pytest.raises(UsageError, match=f"--jmh {word}: benchctl sets that itself") as caught:
            check_arguments((word, "1"))
        assert hint in caught.value.hint


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


@pytest.mark.parametrize("score", [math.nan, "NaN", math.inf, "+INF"])
def test_an_iteration_without_a_number_is_a_failure_and_the_others_count(score: object):
    found = figures_of(0, "sum", one(rawData=[[score, 2.0]]))
    assert (found.mean_ns, found.samples, found.failures) == (2.0, 1, {"failed": 1})
    none = figures_of(0, "sum", one(rawData=[[score]]))
    assert (none.mean_ns, none.samples, none.failures) == (None, 0, {"failed": 1})
