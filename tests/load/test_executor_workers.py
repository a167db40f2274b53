"""Clients in several processes against a stub: one start, every sample kept, and every way to end."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from benchctl.errors import BenchctlError
from benchctl.load import executor
from benchctl.load.client import NodeGone, TaskAborted
from benchctl.load.executor import TaskResult, WorkerPool
from benchctl.results.samples import Outcome, SampleSpool, concatenate
from benchctl.track.model import Task
from benchctl.track.operations.search import Search
from load.storm import ask
from load.stub_server import Reply, Serve, StubServer
from waiting import eventually

SEARCH = Search(name="range", body={"query": {"match_all": {}}})


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    with WorkerPool(2) as workers:
        yield workers


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[SampleSpool]:
    with SampleSpool(tmp_path / "samples") as made:
        yield made


def run(
    server: StubServer, pool: WorkerPool | None, spool: SampleSpool, *tasks: Task, **stage: Any
) -> tuple[TaskResult, ...]:
    return ask(server.url, *((task, SEARCH) for task in tasks), workers=pool, spool=spool, **stage)


def many(**keys: Any) -> Task:
    return Task("range", **{"clients": 4, "iterations": 25, **keys})


def test_all_samples_of_all_clients_come_back(serve: Serve, pool: WorkerPool, spool: SampleSpool):
    server = serve()
    (result,) = run(server, pool, spool, many())
    columns = result.columns
    assert result.processes == 2
    assert result.searches_sent == len(server.searches) == columns["client"].size == 100
    assert np.unique(columns["client"]).tolist() == [0, 1, 2, 3]
    assert (columns["outcome"] == Outcome.OK).all()
    assert server.connections == 4
    assert result.driver_cpu_s > 0
    # The fork's file gets them, too.
    assert concatenate(list(spool.all_chunks()))["client"].size == 100


def test_the_samples_of_one_step_after_the_other_keep_apart(
    serve: Serve, pool: WorkerPool, spool: SampleSpool
):
    server = serve()
    results = [run(server, pool, spool, many(iterations=count))[0] for count in (3, 5, 2)]
    assert [result.columns["client"].size for result in results] == [12, 20, 8]
    assert concatenate(list(spool.all_chunks()))["client"].size == 40


def test_the_processes_share_start_and_clock(serve: Serve, pool: WorkerPool, spool: SampleSpool):
    server = serve(default=Reply(delay_s=0.1))
    (result,) = run(server, pool, spool, many(iterations=1))
    columns = result.columns
    assert columns["start_ns"].max() < columns["end_ns"].min()
    assert columns["start_ns"].min() >= result.start_ns
    arrived = [received.arrived_ns for received in server.searches]
    assert min(arrived) >= columns["start_ns"].min()
    assert max(arrived) <= columns["end_ns"].max()


def test_an_open_loop_keeps_its_rate_over_the_processes(serve: Serve, pool: WorkerPool, spool: SampleSpool):
    (result,) = run(serve(), pool, spool, many(target_throughput=400.0))
    due = np.sort(result.columns["intended_ns"])
    assert np.abs(np.diff(due) - 2_500_000).max() <= 1


def test_a_task_that_completes_its_group_ends_the_clients_of_all_processes(
    serve: Serve, pool: WorkerPool, spool: SampleSpool
):
    server = serve(default=Reply(delay_s=0.005))
    quick = Task("range", iterations=5, group=0, completes=True)
    endless = Task("range", name="endless", clients=3, time_period=60.0, group=0)
    first, second = run(server, pool, spool, quick, endless)
    assert first.columns["client"].size == 5
    # In a minute it would have been several times as many.
    assert 0 < second.columns["client"].size < 5000
    assert first.searches_sent + second.searches_sent == len(server.searches)


def test_a_stop_ends_all_processes(serve: Serve, pool: WorkerPool, spool: SampleSpool):
    server = serve(default=Reply(fault="hang"))
    stop = threading.Event()
    threading.Thread(target=lambda: (server.hanging.wait(), stop.set())).start()
    (result,) = run(server, pool, spool, many(), stop=stop)
    assert (result.columns["outcome"] == Outcome.CANCELLED).all()
    assert result.columns["client"].size == result.searches_sent


def test_progress_of_several_processes_comes_once_in_an_interval(
    serve: Serve, pool: WorkerPool, spool: SampleSpool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(executor, "_PROGRESS_EVERY_S", 3600.0)
    seen: list[int] = []
    run(serve(), pool, spool, many(), on_progress=seen.append)
    assert len(seen) == 1  # at the end


def test_a_failure_in_one_process_is_raised_here(serve: Serve, pool: WorkerPool, spool: SampleSpool):
    with pytest.raises(TaskAborted, match="http_error"):
        run(serve(default=Reply(status=500, body=b"{}")), pool, spool, many(), abort_on_failure=True)
    dead = serve()
    dead.die()
    with pytest.raises(NodeGone):
        run(dead, pool, spool, many())
    assert run(serve(), pool, spool, many())[0].searches_sent == 100


def test_an_unsupported_operation_ends_everywhere(serve: Serve, pool: WorkerPool, spool: SampleSpool):
    body = b'{"error": {"type": "parsing_exception", "reason": "Unknown aggregation type [x]"}}'
    (result,) = run(serve(default=Reply(status=400, body=body)), pool, spool, many())
    assert result.unsupported is not None
    assert "Unknown aggregation" in result.unsupported


def test_a_process_that_is_killed_is_an_error_and_leaves_none_behind(serve: Serve, spool: SampleSpool):
    server = serve(default=Reply(fault="hang"))

    def kill_one(pids: list[int]) -> None:
        server.hanging.wait()
        os.kill(pids[0], signal.SIGKILL)

    with WorkerPool(2) as pool:
        pids = [worker.process.pid for worker in pool._workers]
        threading.Thread(target=kill_one, args=(pids,)).start()
        with pytest.raises(BenchctlError, match="died"):
            run(server, pool, spool, many())
        assert eventually(lambda: not any(psutil.pid_exists(pid) for pid in pids))


def marked(server: StubServer, pool: WorkerPool | None, spool: SampleSpool, *tasks: Task) -> list[int]:
    """How many searches had arrived at each mark."""
    found: list[int] = []
    run(server, pool, spool, *tasks, mark=lambda: found.append(len(server.searches)))
    return found


@pytest.mark.parametrize("several", [False, True])
def test_the_measured_part_of_a_task_is_marked(
    serve: Serve, pool: WorkerPool, spool: SampleSpool, *, several: bool
):
    workers = pool if several else None
    alone = Task("range", iterations=3, warmup_iterations=2)
    begins, ends = marked(serve(), workers, spool, alone)
    assert 2 <= begins <= ends == 5  # word from a process takes a moment
    begins, ends = marked(serve(), workers, spool, many(warmup_iterations=5))
    assert 5 <= begins < ends == 120
    assert marked(serve(), workers, spool, Task("range", group=0), Task("range", name="b", group=0)) == []
