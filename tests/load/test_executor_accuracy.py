"""Figures against what the stub itself knows: generous bounds here, tight ones in the benchmarks."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from benchctl.load.executor import TaskResult
from benchctl.results.samples import Columns, Outcome
from benchctl.stats.summary import summarise
from benchctl.track.model import Task
from load import stub_server
from load.storm import ask_one
from load.stub_server import Reply, Serve

MS = 1_000_000
Run = Callable[..., TaskResult]


@pytest.fixture
def timed_url() -> Iterator[str]:
    """A stub in its own process that serves in 2 ms and answers with what it really took, in nanoseconds."""
    command = [sys.executable, str(Path(stub_server.__file__)), "--service-us", "2000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


def service_ns(columns: Columns) -> npt.NDArray[np.int64]:
    return columns["end_ns"] - columns["start_ns"]


def latency_ns(columns: Columns) -> npt.NDArray[np.int64]:
    return columns["end_ns"] - columns["intended_ns"]


def test_service_time_is_the_stubs_own_and_the_way_there_and_back(timed_url: str):
    columns = ask_one(timed_url, iterations=300).columns
    assert (columns["outcome"] == Outcome.OK).all()
    error_ns = service_ns(columns) - columns["hits"]
    # libcurl's clock has whole microseconds.
    assert error_ns.min() >= -2_000
    assert np.median(error_ns) < MS
    assert (latency_ns(columns) >= service_ns(columns)).all()


def obvious_latency_ns(due_ns: list[int], service_ns: list[int]) -> list[int]:
    """One server, one queue: a request begins when it is due and the one before has ended."""
    free_ns, latencies = 0, []
    for due, service in zip(due_ns, service_ns, strict=True):
        free_ns = max(due, free_ns) + service
        latencies.append(free_ns - due)
    return latencies


def test_the_latency_of_one_stall_is_that_of_the_schedule(serve: Serve, run: Run):
    requests, stalled, stall_ms = 200, 50, 400
    script = [Reply(delay_s=0.002)] * stalled + [Reply(delay_s=stall_ms / 1e3)]
    server = serve(*script, default=Reply(delay_s=0.002))
    columns = run(server, iterations=requests, target_throughput=100).columns
    served_ns = [2 * MS] * requests
    served_ns[stalled] = stall_ms * MS
    truth = obvious_latency_ns([number * 10 * MS for number in range(requests)], served_ns)
    found = latency_ns(columns)
    for share in (0.9, 0.99):
        assert np.quantile(found, share) == pytest.approx(np.quantile(truth, share), rel=0.15)
    # All but what waited behind the stall is the stub's two milliseconds, and what waking up adds.
    assert 2 * MS <= np.median(found) < 5 * MS
    # The service time has the stall once.
    assert np.count_nonzero(service_ns(columns) > 100 * MS) == 1


@pytest.mark.parametrize("clients", [1, 4])
def test_throughput_is_that_of_the_measured_part_after_a_slow_warmup(serve: Serve, run: Run, clients: int):
    warmup, measured = 4, 40
    server = serve(*[Reply(delay_s=0.05)] * warmup * clients, default=Reply(delay_s=0.01))
    columns = run(server, clients=clients, warmup_iterations=warmup, iterations=measured).columns
    summary = summarise(
        [columns], schedule=0, task_index=0, task=Task("range", clients=clients), unsupported=None
    )
    # What the stub saw of the measured part: from its first arrival to the end of the last request.
    arrived = sorted(received.arrived_ns for received in server.searches)[warmup * clients :]
    truth = len(arrived) / ((arrived[-1] - arrived[0]) / 1e9 + 0.01)
    assert summary.samples == measured * clients == len(arrived)
    assert summary.throughput_per_s == pytest.approx(truth, rel=0.05)


@pytest.mark.parametrize("schedule", ["deterministic", "poisson"])
def test_nothing_of_a_throttled_task_arrives_before_it_is_due(serve: Serve, run: Run, schedule: str):
    server = serve(default=Reply(delay_s=0.001))
    result = run(server, clients=4, iterations=10, target_throughput=100, schedule=schedule)
    columns = result.columns
    assert (columns["start_ns"] >= columns["intended_ns"]).all()
    arrived = np.sort([received.arrived_ns for received in server.searches])
    due = np.sort(columns["intended_ns"])
    # The k-th arrival can be no earlier than the k-th that was due.
    assert (arrived >= due).all()
    assert np.median(arrived - due) < 5 * MS
    first = [columns["intended_ns"][columns["client"] == client][0] - result.start_ns for client in range(4)]
    assert len(set(first)) == 4
    if schedule == "deterministic":
        assert first == [0, 10 * MS, 20 * MS, 30 * MS]


def test_the_clients_of_a_throttled_task_are_out_of_phase(serve: Serve, run: Run):
    server = serve(default=Reply(delay_s=0.001))
    run(server, clients=4, iterations=15, target_throughput=200)
    gaps = np.diff(np.sort([received.arrived_ns for received in server.searches]))
    # In phase, three of four gaps would be next to nothing, and the fourth 20 ms.
    assert np.median(gaps) == pytest.approx(5 * MS, rel=0.2)
    assert np.quantile(gaps, 0.2) > 2 * MS
    assert np.quantile(gaps, 0.8) < 10 * MS


def test_a_period_offers_what_its_rate_says(serve: Serve, run: Run):
    columns = run(serve(), clients=3, time_period=1.0, target_throughput=300).columns
    assert columns["start_ns"].size == 300
    span_s = (columns["start_ns"].max() - columns["start_ns"].min()) / 1e9
    assert 299 / span_s == pytest.approx(300, rel=0.05)
