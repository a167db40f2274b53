"""Whole tasks against a stub: counts, flags, open-loop latency, failures, and every way to end."""

import gc
import itertools
import json
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pytest

from benchctl.load.client import NodeGone
from benchctl.load.executor import TaskResult
from benchctl.load.work import WorkContext
from benchctl.results.samples import SAMPLE_DTYPES, Columns, Outcome
from benchctl.stats.summary import driver_figures
from benchctl.track.model import Task
from benchctl.track.operations.catalogue import decode_operation
from load.conftest import SEARCH
from load.storm import ask, ask_one
from load.stub_server import Reply, Serve, StubServer
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


def test_service_time_lasts_to_the_last_byte(serve: Serve, run: Run):
    columns = run(serve(default=Reply(tail_delay_s=0.02)), iterations=3).columns
    assert (service_ns(columns) >= 20 * MS).all()


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


def together(server: StubServer, *tasks: Task) -> tuple[TaskResult, ...]:
    """Run tasks of one step."""
    return ask(server.url, *((task, SEARCH) for task in tasks), context=WorkContext("big5", seed=1))


def test_tasks_of_a_step_run_at_the_same_time_and_keep_apart(serve: Serve):
    server = serve(default=Reply(delay_s=0.02))
    first, second = together(
        server, Task("a", iterations=4, group=0), Task("b", clients=2, iterations=3, group=0)
    )
    assert first.columns["task"].tolist() == [0] * 4
    assert second.columns["task"].tolist() == [1] * 6
    assert first.columns["start_ns"].min() < second.columns["end_ns"].min()
    assert second.columns["start_ns"].min() < first.columns["end_ns"].min()
    assert server.connections == 3


def test_the_drivers_cpu_time_of_a_step_stands_beside_the_time_of_that_step(serve: Serve):
    server = serve(default=Reply(delay_s=0.002))
    short, long = together(server, Task("a", iterations=1, group=0), Task("b", iterations=50, group=0))
    assert short.ended_ns < long.ended_ns
    assert (short.driver_cpu_s, short.wall_s) == (long.driver_cpu_s, long.wall_s)
    assert long.wall_s == pytest.approx((long.ended_ns - long.start_ns) / 1e9)


MIX = (
    Task("a", clients=2, warmup_iterations=5, iterations=40, lanes=2, group=0, mixed=True),
    Task("b", clients=2, iterations=15, lanes=2, group=0, mixed=True),
)


def order_of(results: tuple[TaskResult, ...], client: int) -> list[int]:
    """Which task each of a client's requests was of."""
    rows = [
        (start, int(task))
        for result in results
        for start, task, mine in zip(
            result.columns["start_ns"], result.columns["task"], result.columns["client"], strict=True
        )
        if mine == client
    ]
    return [task for _, task in sorted(rows)]


def test_the_requests_of_a_mix_come_in_one_random_order_that_the_seed_decides(serve: Serve):
    server = serve()
    results = together(server, *MIX)
    assert server.connections == 2
    assert [result.columns["warmup"].sum() for result in results] == [10, 0]
    orders = [order_of(results, client) for client in range(2)]
    assert [order.count(0) for order in orders] == [45, 45]
    assert [order.count(1) for order in orders] == [15, 15]
    assert orders[0] != orders[1]
    for order in orders:
        changes = sum(one != other for one, other in itertools.pairwise(order))
        # Of 60 places, 15 of them of one task, 22 are expected to differ from the one before.
        assert changes > 10
    assert [order_of(together(serve(), *MIX), client) for client in range(2)] == orders
    # One at a time: nothing of a client's requests overlaps.
    for client in range(2):
        spans = sorted(
            (start, end)
            for result in results
            for start, end, mine in zip(
                *(result.columns[name] for name in ("start_ns", "end_ns", "client")), strict=True
            )
            if mine == client
        )
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))


def test_waiting_for_others_of_a_mix_is_no_lag_of_the_driver(serve: Serve):
    results = together(serve(default=Reply(delay_s=0.002)), *MIX)
    for task, result in zip(MIX, results, strict=True):
        figures = driver_figures([result.columns], task, cpu_s=0.0, wall_s=1.0)
        assert (figures.think_share, figures.lag_p99_ns) == (None, None)
        assert figures.requests


def test_a_task_of_a_mix_that_the_node_cannot_do_leaves_the_others_to_go_on(serve: Serve):
    # Whichever of them is first.
    results = together(
        serve(Reply(status=400, body=UNKNOWN)),
        *(msgspec.structs.replace(task, clients=1, lanes=1) for task in MIX),
    )
    lacking = [result.unsupported is not None for result in results]
    assert sorted(lacking) == [False, True]
    asked = [result.columns["client"].size for result in results]
    assert asked[lacking.index(True)] == 1
    assert asked[lacking.index(False)] == [45, 15][lacking.index(False)]


def bulk_step(server: StubServer, documents: int, **task: Any) -> TaskResult:
    """Send so many documents, one a body."""
    bulk = decode_operation({"name": "send", "operation-type": "bulk", "bulk-size": 1})
    corpus = b'{"n":1}\n' * documents
    context = WorkContext("big5", documents=lambda: iter([corpus]), document_count=documents)
    return ask_one(server.url, bulk, context=context, **task)


def test_clients_take_no_more_documents_than_they_send(serve: Serve):
    result = bulk_step(serve(), 40, clients=4, iterations=10)
    assert np.bincount(result.columns["client"]).tolist() == [10] * 4


def test_documents_warm_up_for_their_time_and_go_on_to_the_end(serve: Serve):
    result = bulk_step(
        serve(), 60, clients=2, warmup_time_period=0.05, ramp_up_time_period=0.05, target_throughput=200.0
    )
    columns = result.columns
    assert columns["client"].size == 60
    due_ns = columns["intended_ns"] - result.start_ns
    assert columns["warmup"].tolist() == (due_ns < 50 * MS).tolist()
    assert due_ns[columns["client"] == 0].min() == 0
    assert due_ns[columns["client"] == 1].min() == 25 * MS


def test_a_lane_serves_its_clients_one_after_the_other(serve: Serve):
    server = serve()
    (result,) = together(server, Task("a", clients=4, iterations=5, lanes=1, group=0))
    columns = result.columns
    assert server.connections == 1
    assert np.bincount(columns["client"]).tolist() == [5] * 4
    for client in range(1, 4):
        before = columns["end_ns"][columns["client"] == client - 1].max()
        assert columns["start_ns"][columns["client"] == client].min() >= before


def test_clients_ramp_up_one_after_the_other(serve: Serve):
    task = Task("a", clients=4, warmup_time_period=0.4, time_period=0.1, ramp_up_time_period=0.4)
    (result,) = together(serve(default=Reply(delay_s=0.001)), task)
    columns = result.columns
    first = [columns["start_ns"][columns["client"] == client].min() - result.start_ns for client in range(4)]
    assert all(offset >= number * 100 * MS for number, offset in enumerate(first))
    assert first[3] < 400 * MS
    assert columns["warmup"][columns["start_ns"] - result.start_ns < 400 * MS].all()


def test_one_task_that_the_node_lacks_does_not_end_the_others(serve: Serve):
    server = serve(Reply(status=400, body=UNKNOWN))
    results = together(server, Task("a", iterations=5, group=0), Task("b", iterations=5, group=0))
    assert sorted(result.columns["client"].size for result in results) == [1, 5]
    assert sum(result.unsupported is not None for result in results) == 1
