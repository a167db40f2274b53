"""The clients of the tasks that run at the same time: a thread each, one start, one end."""

import ctypes
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from itertools import chain
from typing import Protocol

from benchctl.load.arrivals import NS_PER_S
from benchctl.load.client import Client, Wire, greet
from benchctl.load.lanes import Lane
from benchctl.load.pace import Turn
from benchctl.load.pulse import Pulse, suspended_ns
from benchctl.load.task_run import TaskRun
from benchctl.track.model import Task

# Clients leave the barrier one after the other; the tasks start when the last of them has surely left it.
_START_LEAD_NS = 2_000_000
_STOP_POLL_S = 0.05
_PROGRESS_EVERY_S = 0.25
# A request in flight may end by itself when a task is stopped, but a hanging node must not delay the user.
_GRACE_S = 0.5
# Longer than an interrupted wire takes: whoever still works then is in code that knows nothing of wires.
_OWN_CODE_S = 2.0

OnProgress = Callable[[int], None]
OpenWire = Callable[[int], Wire]
"""Makes the wire of a client, by its number; nothing is sent before it is told to connect."""


class StartLine:
    """Holds all clients until every one is connected, and gives them one start.

    Attributes:
        start_ns: the start on the monotonic clock; 0 before.
        cpu_s: CPU time of this process at the start.
        suspended_ns: for how long the host had been suspended by then.
    """

    def __init__(self, clients: int) -> None:
        self._barrier = threading.Barrier(clients, action=self._all_ready)
        self.start_ns = 0
        self.cpu_s = 0.0
        self.suspended_ns = 0

    def _all_ready(self) -> None:
        self.cpu_s = time.process_time()
        self.suspended_ns = suspended_ns()
        self.start_ns = self._start_ns()

    def _start_ns(self) -> int:
        """The start, once every client is connected."""
        return time.monotonic_ns() + _START_LEAD_NS

    def wait(self) -> int | None:
        """Return the start; None when a client could not come."""
        try:
            self._barrier.wait()
        except threading.BrokenBarrierError:
            return None
        return self.start_ns

    def abort(self) -> None:
        """Let nobody start any more."""
        self._barrier.abort()


class Listener(Protocol):
    """Who is told what happens while the clients work; called in their threads."""

    def client_done(self, task: int) -> None:
        """A client of that task has done all of its assignment."""
        ...

    def unsupported(self, task: int) -> None:
        """The node cannot do that task's operation."""
        ...


class Crew:
    """Clients of a step of the schedule, each lane of them a thread.

    Even a single client has a thread: the caller's one stays free for signals, for `stop` and for progress,
    and never waits inside libcurl.

    Args:
        runs: the tasks of the step.
        lanes: who works where.
        open_wire: makes a lane's wire.
        line: gives the start.

    Attributes:
        pulse: knows when this process did not run.
    """

    def __init__(
        self,
        runs: Sequence[TaskRun],
        lanes: Sequence[Lane],
        open_wire: OpenWire,
        line: StartLine,
    ) -> None:
        self._runs = runs
        self._lanes = lanes
        self._wires = [[open_wire(lane.number) for _ in range(_connections(runs, lane))] for lane in lanes]
        self._line = line
        self.pulse = Pulse()
        self._done = threading.Event()
        self._threads: dict[int, int] = {}  # lane -> thread, while it works

    def run(self, listener: Listener, stop: threading.Event, on_progress: OnProgress | None) -> None:
        """Run to the end, to `stop`, or to the first error of a client, which is raised.

        Args:
            listener: told what happens.
            stop: ends it when set.
            on_progress: called with the number of requests so far, in this thread.
        """
        with ThreadPoolExecutor(len(self._lanes), thread_name_prefix="client") as pool:
            working: list[Future[None]] = []
            try:
                for lane, wires in zip(self._lanes, self._wires, strict=True):
                    working.append(pool.submit(self._work, lane, wires, listener))
                self._watch(working, stop, on_progress)
            finally:
                try:
                    self._let_end(working)
                finally:
                    # A second Ctrl-C takes the grace away, and no further one leaves a client at work.
                    while True:
                        try:
                            self._cut_off(working)
                            break
                        except KeyboardInterrupt:
                            continue
        for future in working:
            future.result()

    def halt(self, task: int | None = None) -> None:
        """End the clients of a task, or all of them: each after the request that it is at."""
        if task is not None:
            self._runs[task].halt.set()
            return
        self._done.set()
        for run in self._runs:
            run.halt.set()

    def _work(self, lane: Lane, wires: Sequence[Wire], listener: Listener) -> None:
        wire, *spares = wires
        try:
            self._threads[lane.number] = threading.get_ident()
            for one in wires:
                greet(one)
            # Its buffers are there before the start.
            task, number = lane.posts[0]
            client = self._runs[task].client(number, wire, spares)
            start_ns = self._line.wait()
            if start_ns is None:
                return
            ramp_up_ns = _ramp_up_ns(self._runs[task].task, lane)
            self._serve(task, client, self._runs[task].turns(number, start_ns, ramp_up_ns), listener)
            # Behind another client of its lane, a client starts when that one is done.
            for task, number in lane.posts[1:]:
                if not wire.interrupted:
                    client = self._runs[task].client(number, wire, spares)
                    turns = self._runs[task].turns(number, time.monotonic_ns(), 0)
                    self._serve(task, client, turns, listener)
        except BaseException:
            self.halt()
            raise
        finally:
            self._threads.pop(lane.number, None)
            for one in wires:
                one.close()

    def _serve(self, task: int, client: Client, turns: Iterator[Turn], listener: Listener) -> None:
        client.run(turns)
        client.ended_ns = time.monotonic_ns()
        if client.unsupported is not None:
            self.halt(task)
            listener.unsupported(task)
        listener.client_done(task)

    def _watch(
        self, working: list[Future[None]], stop: threading.Event, on_progress: OnProgress | None
    ) -> None:
        report_at = time.monotonic() + _PROGRESS_EVERY_S
        while self._goes_on(working):
            if stop.is_set() or self._done.is_set():
                return
            if on_progress is not None and time.monotonic() >= report_at:
                on_progress(self._requests())
                report_at = time.monotonic() + _PROGRESS_EVERY_S
        if on_progress is not None:
            on_progress(self._requests())

    def _goes_on(self, working: list[Future[None]]) -> bool:
        with self.pulse.wait(_STOP_POLL_S):
            return bool(wait(working, timeout=_STOP_POLL_S, return_when=FIRST_EXCEPTION).not_done)

    def _let_end(self, working: list[Future[None]]) -> None:
        self.halt()
        if not self._ended(working):
            self._line.abort()
            wait(working, timeout=_GRACE_S)

    def _cut_off(self, working: list[Future[None]]) -> None:
        if self._ended(working):
            return
        self.halt()
        self._line.abort()
        patience = time.monotonic() + _OWN_CODE_S
        while True:
            # The first Ctrl-C may have come while clients were being started, and one that is just connecting
            # may miss an interruption.
            for wire in chain.from_iterable(self._wires):
                wire.interrupt()
            if time.monotonic() > patience:
                self._interrupt_code()
                patience = time.monotonic() + _OWN_CODE_S
            if not wait(working, timeout=_STOP_POLL_S).not_done:
                return

    def _ended(self, working: list[Future[None]]) -> bool:
        return len(working) == len(self._lanes) and not wait(working, timeout=0).not_done

    def _interrupt_code(self) -> None:
        """End what a track's plug-in does in a client's thread, as soon as it executes Python again."""
        for thread in list(self._threads.values()):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt)
            )

    def _requests(self) -> int:
        return sum(client.recorder.count for run in self._runs for client in run.clients)


def _connections(runs: Sequence[TaskRun], lane: Lane) -> int:
    """How many the clients of a lane need; they take turns."""
    return max(runs[task].workload.connections for task, _ in lane.posts)


def _ramp_up_ns(task: Task, lane: Lane) -> int:
    """How much later than the task a client starts: client i of n after i/n of the ramp-up."""
    return round((task.ramp_up_time_period or 0.0) * NS_PER_S * lane.number / lane.of)
