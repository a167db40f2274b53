"""Fixtures of the load tests: stub servers, and a task run with everything but what matters defaulted."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from benchctl.load.executor import Job, Stage, TaskResult, run_step
from benchctl.load.transport import WireClient
from benchctl.load.work import WorkContext
from benchctl.track.model import Task
from benchctl.track.operations import Operation
from benchctl.track.operations.search import Search
from load.stub_server import Reply, Serve, StubServer

SEARCH = Search(name="range", body={"query": {"match_all": {}}})

Run = Callable[..., TaskResult]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start stub servers that end with the test."""
    with ExitStack() as stack:

        def start(
            *script: Reply, default: Reply | None = None, tls: ssl.SSLContext | None = None
        ) -> StubServer:
            return stack.enter_context(StubServer(script, default, tls))

        yield start


@pytest.fixture
def run() -> Run:
    """Run a task against a stub server."""

    def run_it(
        server: StubServer,
        *,
        ask: Operation = SEARCH,
        place: tuple[int, int, int, int] = (0, 0, 0, 0),
        seed: int = 7,
        stop: threading.Event | None = None,
        on_progress: Callable[[int], None] | None = None,
        measured: bool = True,
        **task: Any,
    ) -> TaskResult:
        origin_ns, schedule, task_index, boot = place
        stage = Stage(
            open_wire=lambda _client: WireClient(server.url),
            context=WorkContext("big5", seed=seed),
            origin_ns=origin_ns,
            boot=boot,
        )
        job = Job(Task(operation=ask.name, **task), ask, schedule, task_index, measured)
        (result,) = run_step([job], stage, stop=stop or threading.Event(), on_progress=on_progress)
        return result

    return run_it
