"""Tasks against a hostile node, and a process of its own that tells what a storm of faults leaves behind."""

import itertools
import threading
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil

from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.load.executor import Job, Stage, TaskResult, run_step
from benchctl.load.transport import Exchange, Request, open_client
from benchctl.load.work import WorkContext
from benchctl.results.plan import Plan
from benchctl.results.samples import Outcome, SampleSpool
from benchctl.run.bench import Observer, SharedObserver
from benchctl.run.fork import EndedNode, Load, StepRunner
from benchctl.run.session import Serving
from benchctl.track.load import load_track
from benchctl.track.model import Task
from benchctl.track.operations import Operation
from benchctl.track.operations.search import Search
from load.hostile_server import found


def ask(url: str, *jobs: tuple[Task, Operation], **stage: Any) -> tuple[TaskResult, ...]:
    """Run tasks as one step."""
    stop, on_progress = stage.pop("stop", threading.Event()), stage.pop("on_progress", None)
    workers, mark = stage.pop("workers", None), stage.pop("mark", None)
    keys = {"open_wire": partial(open_client, url), "context": WorkContext("big5"), "origin_ns": 0, "boot": 0}
    made = [Job(task, operation, 0, place) for place, (task, operation) in enumerate(jobs)]
    return run_step(
        made, Stage(**{**keys, **stage}), stop=stop, workers=workers, on_progress=on_progress, mark=mark
    )


STAGE = ("stop", "spool", "workers", "open_wire", "context")


def ask_one(url: str, operation: Operation | None = None, **task: Any) -> TaskResult:
    stage = {name: task.pop(name) for name in STAGE if name in task}
    (result,) = ask(url, (Task("x", **task), operation or Search(name="x", request_timeout=10.0)), **stage)
    return result


def resident_bytes() -> int:
    return psutil.Process().memory_info().rss


def clients_alive() -> list[str]:
    """The threads of clients."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("client")]


class FaultyWire:
    """Answers at once, and mostly badly: no two reasons are alike."""

    interrupted = False

    def __init__(self) -> None:
        self._count = itertools.count()
        self._now_ns = 0

    def connect(self) -> Exchange:
        return Exchange(0, 0, 0, 200, b"", 0)

    def send(self, _request: Request) -> Exchange:
        number = next(self._count)
        self._now_ns += 1000
        clock = (self._now_ns, 0, self._now_ns + 500)
        reason = b'{"error":{"type":"t","reason":"%d"}}' % number
        match number % 6:
            case 0:
                return Exchange(*clock, 200, found(number), 99)
            case 1:
                return Exchange(*clock, 429, reason, 99)
            case 2:
                return Exchange(*clock, 503, reason + b" " * 2000, 99)
            case 3:
                return Exchange(*clock, 200, b"\xff%d" % number, 99)
            case 4:
                return Exchange(*clock, 0, b"", 0, Outcome.RESET, f"reset {number}")
            case _:
                return Exchange(*clock, 200, b"half", 4, Outcome.TIMEOUT, f"{number} bytes received")

    def interrupt(self) -> None:
        pass

    def close(self) -> None:
        pass


def send_faulty(line: Connection, folder: Path, url: str) -> None:
    """In a process of its own: 200,000 faulty requests, then broken connections, then huge bodies."""
    grown = []
    with SampleSpool(folder) as spool:
        sizes = []
        for _ in range(40):
            result = ask_one("", iterations=5_000, open_wire=lambda _client: FaultyWire(), spool=spool)
            assert sum(failure.count for failure in result.failures) == 4_166
            assert all(len(failure.details) <= 3 for failure in result.failures)
            sizes.append(resident_bytes())
        # The heap has found its size after a quarter.
        grown.append(sizes[-1] - sizes[10])
        # Broken connections come first; a huge body is all that is left.
        sizes, descriptors = [], []
        for iterations in (300, 300, 300, 4, 4):
            ask_one(url, iterations=iterations, spool=spool)
            sizes.append(resident_bytes())
            descriptors.append(psutil.Process().num_fds())
        grown += [sizes[2] - sizes[0], sizes[4] - sizes[2], descriptors[-1] - descriptors[0]]
    line.send(grown)


def run_step_of(line: Connection, url: str, plan: Plan) -> None:
    """In a process of its own: one task of some two seconds; says how it ended."""
    track, _ = load_track("big5", {})
    runner = StepRunner(plan, track, Home(Path("/")), SharedObserver(Observer()), threading.Event())
    stage = Stage(partial(open_client, url), WorkContext("big5"), origin_ns=0, boot=0)
    job, load = Job(Task("range", iterations=300), Search(name="range"), 0, 0), Load()
    try:
        runner.run_step(cast("Serving", SimpleNamespace(glance=lambda: None)), [job], stage, load)
        line.send(load.summaries(0, EndedNode({}, None))[0].driver)
    except BenchctlError as err:
        line.send(err.message)
