"""Clients in several processes, for loads that one cannot offer: same clock, one start, one end."""

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import monotonic_ns
from types import TracebackType
from typing import Self

from benchctl.errors import BenchctlError
from benchctl.load.client import NodeGone, TaskAborted
from benchctl.load.crew import OnProgress
from benchctl.load.lanes import Completion, Lane
from benchctl.load.share import Done, Job, Order
from benchctl.load.worker import (
    Assigned,
    ClientDone,
    Failed,
    Finished,
    Halt,
    Message,
    Progress,
    Ready,
    Start,
    Stop,
    Unsupported,
    serve,
)
from benchctl.results.samples import SampleSpool

# A message reaches its process, and all of its clients wake up, well within this.
_START_LEAD_NS = 20_000_000
_POLL_S = 0.05
_END_S = 5.0


@dataclass(frozen=True)
class _Worker:
    """A process that works, and the line to it."""

    process: BaseProcess
    line: Connection

    def tell(self, message: Message) -> None:
        """Send a message; one that is gone shows by its end of the line."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.line.send(message)


class WorkerPool:
    """Processes that live for several steps; a context manager that ends them.

    The monotonic clock is one for all processes of a host, so they share the start, and their samples lie on
    one axis.

    Args:
        size: how many.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._workers: list[_Worker] = []
        self._steps = 0

    @property
    def pids(self) -> list[int]:
        """The process ids."""
        return [worker.process.pid for worker in self._workers if worker.process.pid is not None]

    def __enter__(self) -> Self:
        try:
            self._begin()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def run(
        self, order: Order, spool: SampleSpool, *, stop: threading.Event, on_progress: OnProgress | None
    ) -> list[Done]:
        """Do an order; its lanes are dealt out to the processes.

        Returns:
            What each process did; those without a lane are left out.

        Raises:
            BenchctlError: as in one process, or a worker died.
        """
        dealt = [lanes for lanes in deal(order.lanes, order.jobs, self.size) if lanes]
        if not self._workers:
            self._begin()
        self._steps += 1
        step = _Step(self._steps, self._workers[: len(dealt)], order, stop, on_progress)
        try:
            done = step.run(dealt, spool.folder)
        except (NodeGone, TaskAborted):
            raise
        except BaseException:
            self._end()
            raise
        for one in done:
            for share in one.shares:
                spool.adopt(share.samples)
        return done

    def _begin(self) -> None:
        # Spawned, not forked: the caller has threads.
        context = get_context("spawn")
        for _ in range(self.size):
            ours, theirs = context.Pipe()
            process = context.Process(target=serve, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            self._workers.append(_Worker(process, ours))

    def _end(self) -> None:
        for worker in self._workers:
            # The end of the line is the end of the worker.
            worker.line.close()
        for worker in self._workers:
            worker.process.join(_END_S)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
        self._workers.clear()


def deal(lanes: Sequence[Lane], jobs: Sequence[Job], processes: int) -> list[tuple[Lane, ...]]:
    """Which lanes go to which process: in turn, but all that share the reading of a corpus to the first."""
    sharing = {number for number, job in enumerate(jobs) if job.operation.shares_work}
    dealt: list[list[Lane]] = [[] for _ in range(processes)]
    place = 0
    for lane in lanes:
        if any(task in sharing for task, _ in lane.posts):
            dealt[0].append(lane)
        else:
            dealt[place % processes].append(lane)
            place += 1
    return [tuple(lanes) for lanes in dealt]


class _Step:
    """One step in several processes, as the process that watches them sees it."""

    def __init__(
        self,
        number: int,
        workers: Sequence[_Worker],
        order: Order,
        stop: threading.Event,
        on_progress: OnProgress | None,
    ) -> None:
        self._number = number
        self._workers = workers
        self._order = order
        self._stop = stop
        self._on_progress = on_progress
        self._completion = Completion([job.task for job in order.jobs], self._stop_all)
        self._ready = 0
        self._requests = [0] * len(workers)
        self._finished: dict[int, Done | None] = {}
        self._failed: Failed | None = None

    def run(self, dealt: Sequence[tuple[Lane, ...]], folder: Path) -> list[Done]:
        """Run it to its end."""
        for number, (worker, lanes) in enumerate(zip(self._workers, dealt, strict=True)):
            prefix = f"step-{self._number:06d}-worker-{number}"
            worker.tell(Assigned(replace(self._order, lanes=lanes), folder, prefix))
        stopping = False
        while len(self._finished) < len(self._workers):
            if self._stop.is_set() and not stopping:
                stopping = True
                self._stop_all()
            lines = [w.line for n, w in enumerate(self._workers) if n not in self._finished]
            for line in wait(lines, timeout=_POLL_S):
                number = next(n for n, worker in enumerate(self._workers) if worker.line is line)
                self._hear(number, self._receive(number))
            if self._on_progress is not None:
                self._on_progress(sum(self._requests))
        if self._failed is not None:
            raise self._failed.error()
        return [done for _, done in sorted(self._finished.items()) if done is not None]

    def _receive(self, number: int) -> Message:
        worker = self._workers[number]
        try:
            return worker.line.recv()  # type: ignore[no-any-return]
        except (EOFError, ConnectionResetError) as err:
            worker.process.join(_END_S)
            raise BenchctlError(
                f"a load generating process died with status {worker.process.exitcode}",
                hint="the system may be short of memory: look at the kernel log",
            ) from err

    def _hear(self, number: int, message: Message) -> None:
        match message:
            case Ready():
                self._ready += 1
                if self._ready == len(self._workers):
                    start_ns = monotonic_ns() + _START_LEAD_NS
                    self._tell_all(Start(start_ns))
            case ClientDone(task=task):
                self._completion.client_done(task)
            case Unsupported(task=task):
                self._tell_all(Halt(task))
            case Failed():
                self._failed = self._failed or message
                self._finished[number] = None
                self._stop_all()
            case Finished(done=done):
                self._finished[number] = done
            case Progress(requests=requests):
                self._requests[number] = requests

    def _stop_all(self) -> None:
        self._tell_all(Stop())

    def _tell_all(self, message: Message) -> None:
        for number, worker in enumerate(self._workers):
            if number not in self._finished:
                worker.tell(message)
