"""Metrics by name, and what a quantile needs."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.errors import UsageError
from benchctl.stats.analyse import analyse
from benchctl.stats.metrics import (
    DEFAULT_METRICS,
    REDLINE,
    THROUGHPUT,
    Metric,
    MetricKey,
    kept_metric_of,
    metric,
    metric_names,
    metric_of,
    percentile,
)
from benchctl.track.model import Task
from benchctl.track.operations.catalogue import decode_operation
from builders import make_driver, make_fork, make_plan, make_summary

SERVICE_TIME = metric("service_time")
LATENCY = metric("latency")

QUANTILES = st.integers(min_value=1, max_value=99_999).map(lambda count: count / 100_000)


@pytest.mark.parametrize("metric", [*DEFAULT_METRICS, REDLINE])
def test_a_metric_is_found_by_its_name(metric: Metric):
    assert metric_of(metric.key) == metric


@given(QUANTILES, st.sampled_from(["service_time", "latency"]))
def test_every_quantile_has_a_name_that_leads_back_to_it(quantile: float, kind: str):
    found = metric(kind, quantile)
    assert metric_of(found.key) == found
    assert msgspec.convert(found.key, MetricKey) == found.key


@pytest.mark.parametrize("key", ["", "p90", "latency", "latency_p", "latency_p9x", "throughput_p90"])
def test_other_names_are_refused(key: str):
    with pytest.raises(ValueError, match="unknown metric"):
        metric_of(key)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(key, MetricKey)


@pytest.mark.parametrize(
    ("name", "said", "hint"),
    [
        ("redline", "result of a red-line search", "redline runs"),
        ("service_time_p50", "a percentile of the metric service_time", "--quantile"),
        ("thruput", "unknown metric", "did you mean 'throughput'?"),
    ],
)
def test_what_challenges_are_not_compared_by_is_told_where_it_is(name: str, said: str, hint: str):
    with pytest.raises(UsageError, match=said) as caught:
        metric_names(name)
    assert hint in caught.value.hint


def test_a_part_of_a_figure_has_a_name_that_leads_back_to_it():
    (name,) = metric_names("profile_aggs.cpu.pct")
    found = metric_of(name)
    assert found == metric(name) == kept_metric_of(name)
    assert found.key == msgspec.convert(name, MetricKey) == name
    assert found.value(make_summary("range", 10.0, meters={"profile_aggs": 9.0, name: 2.0})) == 2.0
    for missing in ("profile_aggs.", "mean.cpu", "profile_agg.cpu", "profile_aggs.a\nb", "profile_aggs.a[b"):
        with pytest.raises(UsageError, match="unknown metric"):
            metric_names(missing)
        with pytest.raises(ValueError, match="unknown metric"):
            metric_of(missing)


SEARCH: dict[str, Any] = {"name": "by", "operation-type": "search"}


@pytest.mark.parametrize(
    ("changes", "known"),
    [
        ({"body": {"query": {"match_all": {}}}}, False),
        ({"body": {"query": {"match_all": {}}, "profile": True}}, True),
        ({"body": {}, "profile-query": True}, True),
        ({"operation-type": "composite", "requests": [SEARCH | {"body": {"profile": True}}]}, True),
    ],
)
def test_what_no_profile_will_tell_is_known_before(changes: dict[str, Any], *, known: bool):
    operation = decode_operation(SEARCH | changes)
    assert metric("mean").lacking(Task("by"), operation) == ""
    assert (metric("profile_query").lacking(Task("by"), operation) == "") == known


NEAREST: dict[str, Any] = {"name": "near", "operation-type": "vector-search", "field": "v", "k": 5}


@pytest.mark.parametrize(
    ("changes", "known"),
    [
        ({}, True),
        ({"filter": {"term": {"group": 3}}}, True),
        ({"data_set_path": "x.hdf5"}, True),
        ({"calculate-recall": False}, False),
        ({"filter": {"term": {"number": 3}}}, False),
        ({"data_set_path": "x.hdf5", "filter": {"term": {"group": 3}}}, False),
        ({"data_set_path": "x.hdf5", "filter": {"term": {"x": 3}}, "neighbors_data_set_path": "y"}, True),
    ],
)
def test_recall_takes_known_neighbours(changes: dict[str, Any], *, known: bool):
    operation = decode_operation({**NEAREST, **changes})
    assert (metric("recall").lacking(Task("near"), operation) == "") == known


def test_recall_is_compared_by_differences_and_shown_where_it_is():
    forks = {
        label: [
            make_fork(
                label,
                block,
                make_summary("range", 10.0, meters={"recall": value + (block * step) % 7 / 1000}),
            )
            for block in range(6)
        ]
        for label, value, step in (("es", 0.9, 1), ("os", 0.95, 3))
    }
    found = {row.metric: row for row in analyse(forks, make_plan(forks=6)).rows}
    (comparison,) = found["recall"].comparisons
    assert comparison.compared_as == "difference"
    assert comparison.difference == pytest.approx(0.05, abs=0.002)
    assert (comparison.verdict, comparison.higher_is_better) == ("faster", True)


def test_what_takes_samples_is_not_kept_of_forks():
    assert kept_metric_of("gc").kind.additive
    with pytest.raises(ValueError, match="only p50, p90, p99"):
        kept_metric_of("latency_p95")


@pytest.mark.parametrize("quantile", [0, 1, -0.5, 1.5])
def test_what_is_no_quantile_is_refused(quantile: float):
    with pytest.raises(ValueError, match="between 0 and 1"):
        metric("latency", quantile)


@pytest.mark.parametrize(
    ("quantile", "name", "least"),
    [
        (0.5, "p50", 2),
        (0.9, "p90", 10),
        (0.95, "p95", 20),
        (0.99, "p99", 100),
        (0.999, "p99.9", 1_000),
        (0.1, "p10", 10),
        (0.07, "p7", 15),
    ],
)
def test_a_quantile_needs_a_request_beyond_it(quantile: float, name: str, least: int):
    assert percentile(quantile) == name
    assert metric("service_time", quantile).samples_least == least
    assert THROUGHPUT.samples_least == REDLINE.samples_least == 0


def test_values_are_those_of_the_summary_in_the_unit_of_the_metric():
    summary = make_summary("range", 10.0)
    assert THROUGHPUT.value(summary) == 100
    assert [metric("service_time", one).value(summary) for one in (0.5, 0.9, 0.99)] == [10, 11, 13]
    assert metric("service_time", 0.95).value(summary) is None
    assert LATENCY.value(summary) is None
    assert SERVICE_TIME.value(msgspec.structs.replace(summary, service_time=None)) is None


def test_only_quantiles_have_an_error_within_a_fork():
    summary = make_summary("range", 10.0)
    assert metric("service_time", 0.99).log_error(summary) == summary.service_time.error_p99
    assert (THROUGHPUT.log_error(summary), LATENCY.log_error(summary)) == (None, None)


@pytest.mark.parametrize("quantile", [0.5, 0.9, 0.99])
def test_what_the_driver_decided_gets_no_verdict_in_any_quantile(quantile: float):
    busy = make_driver(cpu_share=0.99, think_share=0.5)
    forks = {
        name: [
            make_fork(
                name, block, make_summary("range", 10.0 + block * step / 100, samples=1000, driver=busy)
            )
            for block in range(5)
        ]
        for name, step in (("es", 1), ("os", 2))
    }
    found = analyse(forks, make_plan(forks=5), metrics=(metric("service_time", quantile),))
    assert [doubt.code for doubt in found.rows[0].caveats] == ["driver-limited", "driver-limited"]
    assert found.rows[0].comparisons[0].verdict == "n/a"
