"""A log sent again: every request once, in the log's order and at its times, by whichever client is free."""

import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchctl.errors import UsageError
from benchctl.load.executor import Job, Stage, TaskResult, gathered, run_step
from benchctl.load.transport import WireClient
from benchctl.load.work import WorkContext
from benchctl.results.samples import SampleSpool
from benchctl.track.model import Task
from benchctl.track.operations.search import LoggedSearch, Search
from load.stub_server import Reply, Serve, StubServer

MS = 1_000_000
SHAPES = "aabacabb"
GAP_MS = 20
Replay = Callable[..., tuple[TaskResult, ...]]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "queries.json"
    lines = [
        {"timestamp": 5_000 + GAP_MS * place, "shape": shape, "body": {"size": place}}
        for place, shape in enumerate(SHAPES)
    ]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def replay(log: Path) -> Replay:
    def send(server: StubServer, *, clients: int = 3, shapes: Sequence[str] = "abc", **keys: Any) -> Any:
        stage = Stage(
            open_wire=lambda _client: WireClient(server.url),
            context=WorkContext("big5", data_sets={("query-log", "queries"): log}),
            origin_ns=0,
            boot=0,
        )
        timing = {"schedule": "logged", "time_period": 60.0, **keys}
        jobs = [
            Job(
                Task(shape, clients=clients, lanes=clients, group=0, mixed=True, **timing),
                LoggedSearch(name=shape, shape=shape),
                0,
                place,
            )
            for place, shape in enumerate(shapes)
        ]
        return run_step(jobs, stage, stop=threading.Event())

    return send


def sizes(server: StubServer) -> list[int]:
    return [json.loads(one.body)["size"] for one in server.searches]


@pytest.mark.parametrize("clients", [1, 3])
@pytest.mark.parametrize("speed", [1.0, 4.0])
def test_each_request_is_due_at_its_time_and_counts_for_its_shape(
    serve: Serve, replay: Replay, clients: int, speed: float
):
    server = serve()
    results = replay(server, clients=clients, log_speed=speed)
    assert sorted(sizes(server)) == list(range(len(SHAPES)))
    if clients == 1:
        assert sizes(server) == list(range(len(SHAPES)))
    for place, (shape, result) in enumerate(zip("abc", results, strict=True)):
        columns = result.columns
        assert columns["task"].tolist() == [place] * SHAPES.count(shape)
        since_ms = np.sort(columns["intended_ns"] - result.start_ns) / MS * speed / GAP_MS
        numbers = [number for number, one in enumerate(SHAPES) if one == shape]
        assert np.rint(since_ms).astype(int).tolist() == numbers
        assert np.allclose(since_ms, numbers)


def test_a_slow_request_holds_up_no_other(serve: Serve, replay: Replay):
    results = replay(serve(Reply(delay_s=0.3)), clients=3)
    late_ms = np.concatenate([one.columns["start_ns"] - one.columns["intended_ns"] for one in results]) / MS
    # Alone, a client would have sent what follows 0.3 s late.
    assert late_ms.max() < 0.15 * 1000


def test_with_too_few_clients_latency_counts_from_when_requests_were_due(serve: Serve, replay: Replay):
    (result,) = replay(serve(Reply(delay_s=0.3)), clients=1, shapes="a")
    columns = result.columns
    second = np.argsort(columns["intended_ns"])[1]
    assert columns["start_ns"][second] - columns["intended_ns"][second] > 200 * MS


def test_a_window_of_the_log_begins_and_ends_where_it_says(serve: Serve, replay: Replay):
    server = serve()
    results = replay(server, log_start=2 * GAP_MS / 1000, warmup_time_period=0.03, time_period=0.05)
    # Requests 2 to 5 are due after 0, 20, 40 and 60 ms: two before the 30 ms of warm-up are over.
    assert sorted(sizes(server)) == [2, 3, 4, 5]
    warmups = np.concatenate([one.columns["warmup"] for one in results])
    assert warmups.sum() == 2


def test_the_samples_of_all_tasks_are_those_of_the_one_that_stands_for_them(serve: Serve, replay: Replay):
    results = replay(serve())
    whole = gathered(results, 7)
    columns = whole.columns
    assert columns["task"].tolist() == [7] * len(SHAPES)
    together = np.concatenate([one.columns["end_ns"] for one in results])
    assert np.sort(columns["end_ns"]).tolist() == np.sort(together).tolist()
    assert whole.searches_sent == 0


def test_only_what_has_a_log_can_be_sent_at_its_times(serve: Serve):
    server = serve()
    task = Task("x", group=0, lanes=1, mixed=True, schedule="logged", time_period=1.0)
    stage = Stage(lambda _client: WireClient(server.url), WorkContext("big5"), 0, 0)
    with pytest.raises(UsageError, match="sends no log"):
        run_step([Job(task, Search(name="x"), 0, 0)], stage, stop=threading.Event())


def test_samples_in_files_are_whole_however_many_a_client_takes(serve: Serve, log: Path, tmp_path: Path):
    count = 400
    lines = (f'{{"timestamp": {place // 8}, "shape": "a", "body": {{}}}}\n' for place in range(count))
    log.write_text("".join(lines), encoding="utf-8")
    server = serve()
    context = WorkContext("big5", data_sets={("query-log", "queries"): log})
    task = Task("a", clients=8, lanes=8, group=0, mixed=True, schedule="logged", time_period=60.0)
    with SampleSpool(tmp_path / "spool") as spool:
        stage = Stage(lambda _client: WireClient(server.url), context, 0, 0, spool)
        (result,) = run_step(
            [Job(task, LoggedSearch(name="a", shape="a"), 0, 0)], stage, stop=threading.Event()
        )
        assert len(result.columns["end_ns"]) == count
