import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from benchctl.results.samples import Columns, Outcome, concatenate, select
from benchctl.stats.summary import summarise, took_quantiles
from benchctl.track.model import Task
from stats.made import samples

SECOND = 1_000_000_000
TASK = Task("range", iterations=10)


def summarised(chunks: Columns | Iterable[Columns], task: Task = TASK, **places: Any):
    return summarise(chunks, schedule=places.get("schedule", 0), task_index=places.get("task", 0), task=task)


def test_no_samples_at_all():
    found = summarise(samples([]), schedule=0, task_index=0, task=TASK, unsupported="no such aggregation")
    assert (found.samples, found.unsupported, found.throughput_per_s) == (0, "no such aggregation", None)


def test_latency_counts_from_the_intended_start_and_service_time_does_not():
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


def test_clients_that_end_their_warmup_apart_share_one_window():
    quick = samples([10] * 4, client=0, warmup=[True, False, False, False])
    slow = samples([20] * 4, client=1, warmup=[True, True, False, False])
    found = summarised(concatenate([quick, slow]))
    assert found.throughput_per_s == pytest.approx(5 * SECOND / (80 - 10))


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        ([Outcome.OK] * 4, (5, 9)),
        ([Outcome.HTTP_ERROR, *[Outcome.OK] * 3], (None, None)),
        ([Outcome.OK, Outcome.OK, Outcome.TIMEOUT, Outcome.OK], (5, None)),
    ],
)
@pytest.mark.parametrize("apart", [False, True])
def test_the_second_request_is_sent_once_the_first_one_ended(outcome: Any, expected: Any, *, apart: bool):
    columns = samples(
        [5, 7, 9, 11],
        client=[0, 1, 0, 1],
        start_ns=[100_000, 102_000, 106_000, 110_000],
        end_ns=[105_000, 109_000, 115_000, 121_000],
        warmup=[True, True, True, False],
        outcome=outcome,
    )
    chunks = [select(columns, columns["client"] == client) for client in (1, 0)] if apart else columns
    found = summarised(chunks)
    times = (None if ns is None else ns / 1000 for ns in (found.first_ns, found.second_ns))
    assert (found.samples, *times) == (1, *expected)


def test_errors_that_count_as_successes_are_counted():
    status = [200, 404, 404, 503, 200]
    outcome = [Outcome.OK, Outcome.OK, Outcome.OK, Outcome.HTTP_ERROR, Outcome.OK]
    warmup = [False, True, False, False, False]
    found = summarised(samples([10] * 5, status=status, outcome=outcome, warmup=warmup))
    assert (found.samples, found.ignored_errors) == (3, 1)
    paged = samples([10] * 5, status=404, part=[1, 2, 0, 1, 0])
    assert summarised(paged).ignored_errors == 0


def test_hits_only_when_every_answer_agrees():
    agreed = summarised(samples([1] * 3, hits=7, hits_exact=True))
    assert (agreed.hits, agreed.hits_exact) == (7, True)
    assert summarised(samples([1] * 3, hits=[7, 7, 8], hits_exact=True)).hits is None
    assert summarised(samples([1] * 3)).hits is None
    assert summarised(samples([1] * 3, hits=7, hits_exact=[True, False, True])).hits_exact is False


@pytest.mark.parametrize(
    ("hits", "exact", "expected"),
    [
        ([5, 5, 5], True, (None, None)),
        ([5, 3, 5], True, (3, 5)),
        # How far an engine counts is its own affair; whether it does is not.
        ([10_000, 10_003, 10_000], False, (None, None)),
        ([10_000, 10_000, 596], [False, False, True], (596, 10_000)),
        ([7, 7, 7], [False, True, True], (7, 7)),
        ([-1, 5, -1], [False, True, False], (None, None)),
        ([-1, -1, -1], False, (None, None)),
    ],
)
@pytest.mark.parametrize("apart", [False, True])
def test_the_hits_of_constant_requests_are_compared(
    hits: list[int],
    exact: bool | list[bool],  # noqa: FBT001 - a column of samples
    expected: tuple[int | None, int | None],
    *,
    apart: bool,
):
    drawn = samples([1] * 3, hits=hits, hits_exact=exact)
    chunks = [{name: values[place : place + 1] for name, values in drawn.items()} for place in range(3)]
    found = summarise(chunks if apart else drawn, schedule=0, task_index=0, task=TASK, constant=True)
    assert (found.hits_least, found.hits_most) == expected
    varying = summarise(drawn, schedule=0, task_index=0, task=TASK)
    assert (varying.hits_least, varying.hits_most) == (None, None)


@pytest.mark.parametrize("rows", [1, 7, 100])
@pytest.mark.parametrize("throttled", [True, False])
def test_figures_do_not_depend_on_how_samples_are_cut_into_chunks(rows: int, *, throttled: bool):
    draw = np.random.default_rng(rows)
    columns = samples(
        1_000 * draw.integers(1, 20, 200), client=draw.integers(0, 4, 200), task=draw.integers(0, 2, 200),
        warmup=draw.random(200) < 0.2, part=draw.integers(0, 2, 200), attempt=draw.integers(0, 2, 200),
        outcome=draw.choice([Outcome.OK] * 5 + list(Outcome), 200), weight=draw.integers(1, 500, 200),
        took_ms=draw.integers(-1, 4, 200), hits=draw.integers(7, 9, 200), turn=draw.integers(0, 3, 200),
    )  # fmt: skip
    chunks = [
        {name: values[place : place + rows] for name, values in columns.items()}
        for place in range(0, 200, rows)
    ]
    task = Task("range", iterations=10, target_throughput=5 if throttled else None)
    found = summarised(chunks, task)
    assert found == summarised(columns, task)
    assert found.samples > 0


@pytest.mark.parametrize(("ramp_up", "ratio"), [(None, 0.5), (30.0, 1.0)])
def test_requests_before_the_measured_ones_are_in_the_drift_unless_clients_ramp_up(
    ramp_up: Any, ratio: float
):
    """Of 600 requests the last 200: the last 80 of the warm-up, and all 120 measured ones."""
    columns = samples([200] * 470 + [100] * 130, warmup=[True] * 480 + [False] * 120)
    found = summarised(columns, Task("range", iterations=120, ramp_up_time_period=ramp_up))
    assert math.exp(found.drift) == pytest.approx(ratio)


def test_a_retried_request_is_one_success_and_its_rejections_are_failures():
    columns = samples([5, 5, 10], attempt=[0, 1, 2], outcome=[Outcome.REJECTED, Outcome.REJECTED, Outcome.OK])
    columns["intended_ns"][:] = 0
    found = summarised(columns, Task("bulk", iterations=1, target_throughput=1))
    assert (found.samples, found.retries, found.failures) == (1, 2, {"rejected": 2})
    assert (found.latency.p50, found.service_time.p50) == (20, 10)


def test_milliseconds_and_their_counts_are_quantiles_in_nanoseconds():
    (total, first) = took_quantiles(({10: 99, 1000: 1}, {5: 2}), failed=1)
    assert (total.p50, first.p50) == (pytest.approx(10_000_000), None)
    assert took_quantiles((), failed=0) == ()
