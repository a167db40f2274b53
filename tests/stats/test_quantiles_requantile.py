"""Quantiles from samples, beside those that summaries hold."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats.mstats import hdquantiles

from benchctl.results.samples import Columns, Outcome, concatenate
from benchctl.stats.metrics import metric
from benchctl.stats.quantiles import requantiled
from benchctl.stats.summary import summarise
from benchctl.track.model import Task
from builders import make_fork
from stats.made import samples as make_samples

CLOSED = Task("range", iterations=10)
THROTTLED = Task("paced", iterations=10, target_throughput=10)
MS = 1_000_000


def two_tasks() -> Columns:
    """A closed loop of 300 requests, and an open one of 200 that waited a millisecond each."""
    draw = np.random.default_rng(1)
    first = make_samples(draw.lognormal(15, 0.3, 300).astype(np.int64) // 1000 * 1000)
    second = make_samples(draw.lognormal(16, 0.3, 200).astype(np.int64) // 1000 * 1000, task=1)
    second["intended_ns"][:] -= MS
    for part in (first, second):
        part["took_ms"][:] = np.arange(part["took_ms"].size) % 7 - 1
    return concatenate([first, second])


def fork_of(columns: Columns) -> Any:
    summaries = [
        summarise(columns, schedule=0, task_index=place, task=task)
        for place, task in enumerate((CLOSED, THROTTLED))
    ]
    return make_fork("es", 0, *summaries)


def chunked(columns: Columns, rows: int) -> Iterator[Columns]:
    for start in range(0, columns["start_ns"].size, rows):
        yield {name: values[start : start + rows] for name, values in columns.items()}


@pytest.mark.parametrize("rows", [7, 100, 1000])
def test_recomputed_quantiles_are_those_of_the_summary(rows: int):
    columns = two_tasks()
    fork = fork_of(columns)
    known = requantiled(fork, chunked(columns, rows), (0.5, 0.9, 0.99))
    for before, after in zip(fork.summaries, known.summaries, strict=True):
        assert after.service_time.more == {
            one: pytest.approx(before.service_time.at(one), rel=1e-12) for one in (0.5, 0.9, 0.99)
        }
        assert after.took.more[0.9] == pytest.approx(before.took.p90, rel=1e-12)
    assert known.summaries[1].latency.more[0.9] == pytest.approx(fork.summaries[1].latency.p90, rel=1e-12)
    assert known.summaries[1].latency.error_at(0.9) == fork.summaries[1].latency.error_p90


def test_failed_requests_rank_above_all_in_further_quantiles():
    columns = two_tasks()
    columns["outcome"][:10] = Outcome.TIMEOUT
    (known, _) = requantiled(fork_of(columns), [columns], (0.9, 0.98)).summaries
    assert known.service_time.at(0.9) == known.service_time.p90
    assert known.service_time.at(0.98) is None


COLUMNS = two_tasks()
FORK = fork_of(COLUMNS)


@given(st.floats(0.01, 0.999))
@settings(deadline=None, max_examples=25)
def test_any_quantile_is_that_of_harrell_and_davis(quantile: float):
    known = requantiled(FORK, [COLUMNS], (quantile,))
    service = (COLUMNS["end_ns"] - COLUMNS["start_ns"])[COLUMNS["task"] == 0] / MS
    found = metric("service_time", quantile)
    assert found.quantile == quantile
    value = known.summaries[0].service_time.at(quantile) / MS
    assert value == pytest.approx(float(hdquantiles(service, [quantile])[0]), rel=1e-9)


def test_a_closed_loop_has_no_latency_in_any_quantile():
    columns = two_tasks()
    known = requantiled(fork_of(columns), [columns], (0.95,))
    tail = metric("latency", 0.95)
    assert tail.value(known.summaries[0]) is None
    service, latency = (metric(kind, 0.95).value(known.summaries[1]) for kind in ("service_time", "latency"))
    # Every request waited the same millisecond.
    assert latency == pytest.approx(service + 1)


@pytest.mark.parametrize(
    "changes", [{"warmup": True}, {"outcome": Outcome.REJECTED}, {"outcome": Outcome.CANCELLED}, {"part": 1}]
)
def test_what_no_summary_counts_is_not_counted_here(changes: dict[str, Any]):
    plain = two_tasks()
    odd = make_samples([10**12] * 50, **changes)
    found = [
        requantiled(fork_of(plain), [columns], (0.95,)).summaries[0].service_time.at(0.95)
        for columns in (plain, concatenate([plain, odd]))
    ]
    assert found[0] == found[1]
