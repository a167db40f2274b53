import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.results.samples import Columns, Outcome, concatenate
from benchctl.stats.summary import drift, effective_samples, lag1_autocorrelation, summarise
from benchctl.track.model import Task

SECOND = 1_000_000_000
TASK = Task("range", iterations=10)


def summarised(columns: Columns, task: Task = TASK, **places: Any):
    return summarise(columns, schedule=places.get("schedule", 0), task_index=places.get("task", 0), task=task)


def test_warmup_never_enters_throughput(samples: Callable[..., Columns]):
    warmup = [SECOND // 2] * 100
    measured = [SECOND // 20] * 1000
    found = summarised(samples(warmup + measured, warmup=[True] * 100 + [False] * 1000))
    assert found.throughput_per_s == pytest.approx(20.0)
    assert (found.samples, found.warmup_samples) == (1000, 100)
    assert found.service_time.p50 == pytest.approx(SECOND // 20)


def test_only_the_asked_task_is_summarised(samples: Callable[..., Columns]):
    other = samples([SECOND] * 3, task=1)
    later = samples([SECOND] * 3, schedule=1)
    found = summarised(concatenate([samples([5, 5]), other, later]))
    assert (found.samples, found.max_ns) == (2, 5.0)


def test_failures_are_counted_and_in_no_figure(samples: Callable[..., Columns]):
    outcomes = [Outcome.OK, Outcome.REJECTED, Outcome.OK, Outcome.REJECTED, Outcome.TIMEOUT]
    found = summarised(samples([100, 1, 100, 1, 1], outcome=outcomes))
    assert found.failures == {"rejected": 2, "timeout": 1}
    assert (found.samples, found.min_ns) == (2, 100.0)
    assert found.throughput_per_s == pytest.approx(2 * SECOND / 203)


def test_all_failed_leaves_no_figures(samples: Callable[..., Columns]):
    found = summarised(samples([10, 10], outcome=Outcome.HTTP_ERROR))
    assert (found.throughput_per_s, found.service_time, found.mean_ns, found.lag1) == (None,) * 4
    assert found.failures == {"http_error": 2}


def test_no_samples_at_all(samples: Callable[..., Columns]):
    found = summarise(samples([]), schedule=0, task_index=0, task=TASK, unsupported="no such aggregation")
    assert (found.samples, found.unsupported, found.throughput_per_s) == (0, "no such aggregation", None)


def test_latency_counts_from_the_intended_start_and_service_time_does_not(samples: Callable[..., Columns]):
    columns = samples([10] * 4, start_ns=[100, 200, 300, 400], end_ns=[110, 210, 310, 410])
    columns["intended_ns"][:] = [50, 150, 250, 350]
    throttled = summarised(columns, Task("range", iterations=4, target_throughput=2))
    assert throttled.latency.p50 == pytest.approx(60)
    assert throttled.service_time.p50 == pytest.approx(10)
    assert throttled.throughput_per_s == pytest.approx(4 * SECOND / (410 - 50))
    assert throttled.target_per_s == 2
    closed = summarised(columns)
    assert closed.latency is None
    assert closed.throughput_per_s == pytest.approx(4 * SECOND / (410 - 100))


def test_clients_that_end_their_warmup_apart_share_one_window(samples: Callable[..., Columns]):
    quick = samples([10] * 4, client=0, warmup=[True, False, False, False])
    slow = samples([20] * 4, client=1, warmup=[True, True, False, False])
    found = summarised(concatenate([quick, slow]))
    assert found.throughput_per_s == pytest.approx(5 * SECOND / (80 - 10))


def test_took_is_in_nanoseconds_and_unknown_ones_are_left_out(samples: Callable[..., Columns]):
    found = summarised(samples([10] * 4, took_ms=[3, -1, 3, 3]))
    assert found.took.p50 == 3_000_000
    assert summarised(samples([10] * 4)).took is None


def test_hits_only_when_every_answer_agrees(samples: Callable[..., Columns]):
    agreed = summarised(samples([1] * 3, hits=7, hits_exact=True))
    assert (agreed.hits, agreed.hits_exact) == (7, True)
    assert summarised(samples([1] * 3, hits=[7, 7, 8], hits_exact=True)).hits is None
    assert summarised(samples([1] * 3)).hits is None
    assert summarised(samples([1] * 3, hits=7, hits_exact=[True, False, True])).hits_exact is False


def test_lag1_of_a_known_process():
    generator = np.random.default_rng(1)
    values = np.zeros(50_000)
    for place, shock in enumerate(generator.normal(size=values.size - 1), 1):
        values[place] = 0.5 * values[place - 1] + shock
    assert lag1_autocorrelation(values, np.zeros(values.size)) == pytest.approx(0.5, abs=0.02)


def test_lag1_does_not_reach_across_clients():
    values = np.array([1.0, 1.0, 1.0, 9.0, 9.0, 9.0])
    assert lag1_autocorrelation(values, np.array([0, 0, 0, 1, 1, 1])) > lag1_autocorrelation(
        values, np.zeros(6)
    )


def test_lag1_of_too_little_or_constant_data_is_unknown():
    assert lag1_autocorrelation(np.array([1, 2]), np.zeros(2)) is None
    assert lag1_autocorrelation(np.array([4, 4, 4]), np.zeros(3)) is None


def test_effective_samples_shrink_with_correlation_and_never_grow():
    assert effective_samples(100, 0.5) == pytest.approx(100 / 3)
    assert effective_samples(100, -0.5) == 100
    assert effective_samples(100, None) == 100


def test_drift_is_the_log_ratio_of_the_outer_thirds():
    assert drift(np.array([200, 200, 150, 150, 100, 100])) == pytest.approx(math.log(0.5))
    assert drift(np.array([1, 2, 3, 4, 5])) is None


@settings(deadline=None)
@given(st.lists(st.integers(1, 10**9), min_size=6, max_size=50))
def test_drift_of_reversed_time_is_its_negative(values: list[int]):
    forward = np.asarray(values)
    assert drift(forward[::-1]) == pytest.approx(-drift(forward))
