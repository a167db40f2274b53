"""Whole tasks against a stub: counts, flags, open-loop latency, failures, and every way to end."""

import gc
import json
import threading
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from benchctl.load.executor import NodeGone, TaskResult
from benchctl.results.samples import SAMPLE_DTYPES, Columns, Outcome
from benchctl.track.model import Operation
from load.stub_server import Reply, Serve
from waiting import eventually

MS = 1_000_000
Run = Callable[..., TaskResult]
UNKNOWN = json.dumps(
    {
        "error": {
            "root_cause": [],
            "type": "parsing_exception",
            "reason": "Unknown aggregation type [auto_date_histogram] did you mean [date_histogram]?",
        },
        "status": 400,
    }
).encode()


def latency_ns(columns: Columns) -> npt.NDArray[np.int64]:
    return columns["end_ns"] - columns["intended_ns"]


def service_ns(columns: Columns) -> npt.NDArray[np.int64]:
    return columns["end_ns"] - columns["start_ns"]


@pytest.mark.parametrize("clients", [1, 3])
def test_iterations_are_per_client_and_all_of_them_are_kept(serve: Serve, run: Run, clients: int):
    server = serve()
    result = run(server, clients=clients, warmup_iterations=4, iterations=6)
    columns = result.columns
    assert set(columns) == set(SAMPLE_DTYPES)
    assert len(server.searches) == result.searches_sent == columns["client"].size == 10 * clients
    assert server.connections == clients
    for client in range(clients):
        mine = columns["client"] == client
        assert columns["warmup"][mine].tolist() == [True] * 4 + [False] * 6
        assert (np.diff(columns["start_ns"][mine]) > 0).all()
    assert (columns["outcome"] == Outcome.OK).all()
    assert (columns["hits"] == 10000).all()
    assert (columns["took_ms"] == 3).all()
    assert (columns["connect_ns"] == 0).all()
    assert result.failures == ()
    assert result.unsupported is None


def test_samples_say_where_they_belong_and_count_from_the_origin(serve: Serve, run: Run):
    origin_ns = time.monotonic_ns()
    columns = run(serve(), iterations=3, place=(origin_ns, 2, 5, 1), measured=False).columns
    assert columns["schedule"].tolist() == [2] * 3
    assert columns["task"].tolist() == [5] * 3
    assert columns["boot"].tolist() == [1] * 3
    assert columns["warmup"].all()
    assert (columns["start_ns"] > 0).all()
    assert (columns["end_ns"] < time.monotonic_ns() - origin_ns).all()
    assert np.array_equal(columns["intended_ns"], columns["start_ns"])


def test_all_clients_start_together(serve: Serve, run: Run):
    server = serve(default=Reply(delay_s=0.2))
    columns = run(server, clients=4, iterations=1).columns
    # Had one waited for another, its request would have started after the other's had ended.
    assert columns["start_ns"].max() < columns["end_ns"].min()


def test_every_request_of_a_task_is_the_same_bytes(serve: Serve, run: Run):
    server = serve()
    operation = Operation(name="x", body={"b": 1, "a": [2]}, request_params={"request_cache": False})
    run(server, ask=operation, clients=2, iterations=5)
    assert {(request.target, request.body) for request in server.searches} == {
        ("/big5/_search?request_cache=false", b'{"b":1,"a":[2]}')
    }


def test_a_throttled_task_sends_when_it_is_due(serve: Serve, run: Run):
    result = run(serve(), clients=3, iterations=5, target_throughput=200)
    columns = result.columns
    assert (columns["start_ns"] >= columns["intended_ns"]).all()
    due = np.sort(columns["intended_ns"])
    assert np.diff(due).tolist() == [5 * MS] * 14
    first = [columns["intended_ns"][columns["client"] == client][0] for client in range(3)]
    assert np.diff(first).tolist() == [5 * MS, 5 * MS]
    assert result.wall_s >= 14 * 0.005
    assert result.lag_p99_ns >= 0


def test_poisson_tasks_repeat_with_their_seed(serve: Serve, run: Run):
    options = {"clients": 2, "iterations": 8, "target_throughput": 1000, "schedule": "poisson"}
    gaps = [np.diff(run(serve(), **options, seed=seed).columns["intended_ns"]).tolist() for seed in (1, 1, 2)]
    assert gaps[0] == gaps[1] != gaps[2]


def test_a_stalled_node_shows_in_the_latency_of_all_that_waited(serve: Serve, run: Run):
    stall_ns = 300 * MS
    server = serve(Reply(), Reply(delay_s=stall_ns / 1e9))
    result = run(server, iterations=30, target_throughput=100)
    columns = result.columns
    service, latency = service_ns(columns), latency_ns(columns)
    assert columns["start_ns"].size == 30
    # One request was slow; those due meanwhile waited behind it, each 10 ms less than the one before.
    assert service[1] >= stall_ns
    behind = np.arange(2, 30)
    assert (latency[behind] >= stall_ns - (behind - 1) * 10 * MS).all()
    assert np.median(service) < stall_ns / 4 < np.median(latency)
    # The node's stall is not the driver's fault.
    assert result.lag_p99_ns < stall_ns / 4


def test_service_time_lasts_to_the_last_byte(serve: Serve, run: Run):
    columns = run(serve(default=Reply(tail_delay_s=0.02)), iterations=3).columns
    assert (service_ns(columns) >= 20 * MS).all()
    assert (columns["first_byte_ns"] < service_ns(columns)).all()


@pytest.mark.parametrize("target", [None, 500.0])
def test_time_periods_bound_a_task(serve: Serve, run: Run, target: float | None):
    columns = run(
        serve(), clients=2, warmup_time_period=0.1, time_period=0.2, target_throughput=target
    ).columns
    start_ns = columns["intended_ns"].min()
    offsets = columns["intended_ns"] - start_ns
    assert offsets.max() < 300 * MS
    assert columns["warmup"].any()
    assert not columns["warmup"].all()
    assert offsets[columns["warmup"]].max() < 100 * MS
    # The first request of a closed loop comes a little after the start that periods count from.
    assert offsets[~columns["warmup"]].min() > 50 * MS
    if target is not None:
        assert offsets.size == 150
        assert np.count_nonzero(columns["warmup"]) == 50


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (Reply(status=429, body=b"{}"), Outcome.REJECTED),
        (Reply(status=503, body=b"{}"), Outcome.HTTP_ERROR),
        (Reply(body=b'{"took":1,"timed_out":true,"hits":{}}'), Outcome.TIMEOUT),
        (Reply(body=b'{"took":1,"_shards":{"failed":1},"hits":{}}'), Outcome.PARTIAL),
        (Reply(body=b"<html>"), Outcome.BAD_BODY),
        (Reply(fault="reset"), Outcome.RESET),
        (Reply(fault="partial"), Outcome.RESET),
        (Reply(fault="hang"), Outcome.TIMEOUT),
    ],
)
def test_failures_are_samples_of_their_own_kind(serve: Serve, run: Run, reply: Reply, outcome: Outcome):
    server = serve(Reply(), reply, Reply(), reply)
    operation = Operation(name="x", request_timeout=0.2)
    result = run(server, ask=operation, iterations=6)
    kinds = [Outcome.OK, outcome, Outcome.OK, outcome, Outcome.OK, Outcome.OK]
    assert result.columns["outcome"].tolist() == kinds
    (failure,) = result.failures
    assert (failure.outcome, failure.count) == (outcome, 2)
    assert failure.details
    assert result.searches_sent == 6


def test_an_operation_that_the_node_does_not_know_ends_the_task_at_once(serve: Serve, run: Run):
    server = serve(default=Reply(status=400, body=UNKNOWN))
    result = run(server, clients=4, warmup_iterations=50, iterations=1000)
    assert result.unsupported is not None
    assert "Unknown aggregation type [auto_date_histogram]" in result.unsupported
    assert len(server.searches) <= 8
    assert (result.columns["outcome"] == Outcome.HTTP_ERROR).all()


def test_an_unknown_aggregation_later_on_is_an_ordinary_failure(serve: Serve, run: Run):
    result = run(serve(Reply(), default=Reply(status=400, body=UNKNOWN)), iterations=4)
    assert result.unsupported is None
    assert result.columns["outcome"].size == 4


def test_a_node_that_nobody_started_is_gone(serve: Serve, run: Run):
    server = serve()
    server.die()
    with pytest.raises(NodeGone, match="cannot connect"):
        run(server, clients=3, iterations=10)


def test_a_node_that_dies_in_the_middle_is_gone(serve: Serve, run: Run):
    server = serve(default=Reply(delay_s=0.001))
    deaths = []

    def die_once(requests: int) -> None:
        if requests and not deaths:
            deaths.append(requests)
            server.die()

    with pytest.raises(NodeGone, match="task 'range'") as caught:
        run(server, clients=2, iterations=10**6, on_progress=die_once)
    assert "log" in caught.value.hint
    assert deaths


def test_two_lost_connections_are_survived(serve: Serve, run: Run):
    lost = Reply(fault="reset")
    result = run(serve(lost, lost, Reply(), lost, lost), iterations=7)
    assert np.count_nonzero(result.columns["outcome"] == Outcome.RESET) == 4


def test_three_lost_connections_in_a_row_are_not(serve: Serve, run: Run):
    server = serve(default=Reply(fault="reset"))
    with pytest.raises(NodeGone):
        run(server, iterations=100)
    assert len(server.searches) == 3


def wait_and_stop(stop: threading.Event, ready: Callable[[], object]) -> threading.Thread:
    def work() -> None:
        ready()
        stop.set()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.parametrize("target", [None, 0.001])
def test_stop_ends_a_task_between_requests(serve: Serve, run: Run, target: float | None):
    server, stop = serve(), threading.Event()
    stopper = wait_and_stop(stop, lambda: eventually(lambda: len(server.searches) >= 1))
    result = run(server, iterations=10**6, target_throughput=target, stop=stop)
    stopper.join()
    assert 1 <= result.columns["client"].size == result.searches_sent


def test_stop_ends_a_task_whose_node_hangs_and_leaves_no_sample_of_that(serve: Serve, run: Run):
    server, stop = serve(Reply(), default=Reply(fault="hang")), threading.Event()
    stopper = wait_and_stop(stop, lambda: server.hanging.wait(10))
    began = time.monotonic()
    result = run(server, iterations=10, stop=stop)
    stopper.join()
    assert time.monotonic() - began < 30
    assert result.columns["outcome"].tolist() == [Outcome.OK]
    assert result.searches_sent == 2


def test_a_task_that_is_stopped_before_it_starts_sends_next_to_nothing(serve: Serve, run: Run):
    server, stop = serve(), threading.Event()
    stop.set()
    result = run(server, iterations=10**6, stop=stop)
    assert result.columns["client"].size < 10**6


def test_an_error_of_the_caller_ends_the_clients(serve: Serve, run: Run):
    server = serve()

    def interrupt(_requests: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(server, clients=2, iterations=10**6, on_progress=interrupt)
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("client")] == []


def test_progress_counts_requests_and_ends_with_all_of_them(serve: Serve, run: Run):
    seen: list[int] = []
    run(serve(), iterations=20, on_progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 20


def test_the_cycle_collector_is_off_while_measuring_and_restored_after(serve: Serve, run: Run):
    during: list[bool] = []
    assert gc.isenabled()
    run(serve(), iterations=3, on_progress=lambda _requests: during.append(gc.isenabled()))
    assert during
    assert not any(during)
    assert gc.isenabled()


def test_the_drivers_own_cost_is_reported(serve: Serve, run: Run):
    result = run(serve(), iterations=50)
    assert result.driver_cpu_s > 0
    assert result.wall_s > 0
    assert 0 < result.lag_p99_ns < result.wall_s * 1e9
