"""Ctrl-C in every phase of a task: at once, and with no thread, process or connection left."""

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchctl.load.executor import WorkerPool
from benchctl.load.transport import Exchange, WireClient
from benchctl.results.samples import SampleSpool
from benchctl.track.operations.search import Search, Sleep
from load.hostile_acts import BUSY, STALLED
from load.hostile_server import PLAIN, Act, HostileServer
from load.storm import FaultyWire, ask_one, clients_alive
from waiting import eventually

pytestmark = pytest.mark.usefixtures("no_gc_callbacks")

HANGING = STALLED[0]
FOREVER = 10**6
# Whoever waited for an answer would wait for ever; a busy machine takes its time, too.
MOST_S = 15.0


@contextlib.contextmanager
def interrupted_when(ready: Callable[[], object], times: int = 1) -> Iterator[None]:
    """Send an interrupt to this thread as soon as that holds; it must end what goes on here, in time."""
    us, sent = threading.main_thread().ident, []
    assert us == threading.get_ident()
    before = psutil.Process().num_fds()

    def interrupt() -> None:
        assert eventually(lambda: bool(ready()))
        for _ in range(times):
            sent.append(time.monotonic())
            signal.pthread_kill(us, signal.SIGINT)
            assert times == 1 or eventually(lambda: "_let_end" in running(us))

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        yield
        pytest.fail("it ended by itself")
    except KeyboardInterrupt:
        thread.join()
    assert time.monotonic() - sent[0] < MOST_S
    # A thread that was just being started, and that its pool does not know yet, ends a little later.
    assert eventually(lambda: clients_alive() == [])
    assert eventually(lambda: psutil.Process().num_fds() <= before)


def running(thread: int) -> list[str]:
    """The functions that a thread is in."""
    frame, names = sys._current_frames().get(thread), []
    while frame is not None:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    return names


SLOW = Search(name="x", request_timeout=60.0, retry_on_429=100)
# What the server does, and what is asked of it.
PHASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "greeting": ({"greetings": [HANGING]}, {}),
    "before the start line": ({"greetings": [PLAIN, HANGING]}, {"clients": 2}),
    "a hanging warm-up": ({"default": HANGING}, {"warmup_iterations": 5}),
    "a hanging request": ({"script": [PLAIN], "default": HANGING}, {"clients": 2}),
    "half a body": ({"default": STALLED[3]}, {}),
}


@pytest.mark.parametrize("phase", PHASES)
def test_an_interrupt_ends_what_hangs(phase: str):
    node, task = PHASES[phase]
    with HostileServer(**node) as server:
        with interrupted_when(server.hanging.is_set):
            ask_one(server.url, SLOW, iterations=FOREVER, **task)
        assert eventually(lambda: server.connected == 0)


@pytest.mark.parametrize(
    "task",
    [
        {"iterations": FOREVER, "warmup_iterations": FOREVER},
        {"clients": 3, "time_period": 600.0, "warmup_time_period": 600.0},
        {"clients": 3, "iterations": FOREVER},
        {"clients": 2, "iterations": FOREVER, "target_interval": 600.0},
        {"clients": 2, "iterations": FOREVER, "target_throughput": 1000.0, "schedule": "poisson"},
    ],
)
def test_an_interrupt_ends_what_goes_well(task: dict[str, Any]):
    with HostileServer() as server:
        with interrupted_when(lambda: server.received):
            ask_one(server.url, SLOW, **task)
        assert eventually(lambda: server.connected == 0)


def test_an_interrupt_ends_a_back_off():
    with HostileServer(default=BUSY) as server, interrupted_when(lambda: len(server.received) == 4):
        ask_one(server.url, SLOW)


def test_an_interrupt_ends_a_pause():
    def pausing() -> bool:
        return any("_pause" in running(thread.ident or 0) for thread in threading.enumerate())

    with HostileServer() as server, interrupted_when(pausing):
        ask_one(server.url, Sleep(name="x", duration=600.0))


def test_an_interrupt_ends_a_connection_that_nobody_accepts():
    wires: list[WireClient] = []
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, contextlib.ExitStack() as stack:
        address = listener.getsockname()
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.settimeout(0)
            waiting.connect_ex(address)

        def open_wire(_client: int) -> WireClient:
            wires.append(WireClient(f"http://127.0.0.1:{address[1]}"))
            return wires[-1]

        with interrupted_when(lambda: wires and wires[0]._sockets):
            ask_one("", SLOW, open_wire=open_wire)


def test_a_second_interrupt_takes_the_grace_away():
    with HostileServer(default=HANGING) as server, interrupted_when(server.hanging.is_set, times=2):
        ask_one(server.url, SLOW, clients=3)


class Signalling(FaultyWire):
    """A wire whose greeting interrupts the thread that is still starting the others."""

    def connect(self) -> Exchange:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return super().connect()


def test_an_interrupt_while_clients_are_started_ends_those_that_were():
    with pytest.raises(KeyboardInterrupt):
        ask_one("", clients=50, open_wire=lambda client: (FaultyWire if client else Signalling)())
    # One that was just being started may end by itself, a little later.
    assert eventually(lambda: clients_alive() == [])


def test_an_interrupt_while_samples_are_written_leaves_nothing(tmp_path: Path):
    us = threading.get_ident()
    with (
        HostileServer() as server,
        interrupted_when(lambda: "_write" in running(us)),
        SampleSpool(tmp_path / "rows") as spool,
    ):
        # Opening it waits for a reader, as a disk may let one wait.
        os.mkfifo(spool.folder / "000000.rows")
        ask_one(server.url, iterations=5, spool=spool)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("act", [PLAIN, HANGING], ids=lambda act: act.name)
def test_an_interrupt_ends_the_clients_of_all_processes(
    act: Act, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    with HostileServer([PLAIN], default=act) as server, SampleSpool(tmp_path / "rows") as spool:
        with WorkerPool(2) as pool:
            children = [psutil.Process(worker.process.pid) for worker in pool._workers]
            with interrupted_when(lambda: len(server.received) > 4 or server.hanging.is_set()):
                ask_one(server.url, SLOW, clients=4, iterations=FOREVER, workers=pool, spool=spool)
        assert not any(child.is_running() for child in children)
        assert eventually(lambda: server.connected == 0)
    assert capfd.readouterr().err == ""
