"""Runs one task against one node: all its clients, from a common start to the last answer."""

import gc
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from benchctl.load.client import Assignment, Client, NodeGone
from benchctl.load.operations import prepare
from benchctl.load.tally import Failure, driver_lag_ns, merge_failures
from benchctl.results.samples import Columns, concatenate
from benchctl.track.model import Operation, Task

__all__ = ["Failure", "NodeGone", "TaskResult", "run_task"]

# Clients leave the barrier one after the other; the task starts when the last of them has surely left it.
_START_LEAD_NS = 2_000_000
_STOP_POLL_S = 0.05
_PROGRESS_EVERY_S = 0.25
# A request in flight may end by itself when a task is stopped, but a hanging node must not delay the user.
_GRACE_S = 0.5

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Position:
    """Where a task stands in its fork; fills the columns of samples that are constant for a task.

    Attributes:
        origin_ns: the fork's origin on the monotonic clock.
        schedule: which of the fork's schedules.
        task: which task of that schedule.
        boot: which node start of the fork.
    """

    origin_ns: int
    schedule: int
    task: int
    boot: int


@dataclass(frozen=True)
class TaskResult:
    """What came of a task.

    Attributes:
        columns: the samples, one client after the other, each in order.
        unsupported: the node's reason when it cannot do the operation; the task was ended at once.
        failures: what failed, warm-up included.
        searches_sent: requests that can have reached the node, those cut off by a stop included.
        driver_cpu_s: CPU time of this process over the task.
        wall_s: from the common start to the last client's end.
        lag_p99_ns: 99th percentile over all requests of the driver's own lateness; 0 without requests.
    """

    columns: Columns
    unsupported: str | None
    failures: tuple[Failure, ...]
    searches_sent: int
    driver_cpu_s: float
    wall_s: float
    lag_p99_ns: int


class _StartLine:
    """Holds all clients until every one is connected, and gives them one start."""

    def __init__(self, clients: int) -> None:
        self._barrier = threading.Barrier(clients, action=self._fire)
        self.start_ns = 0
        self.cpu_s = 0.0

    def _fire(self) -> None:
        self.cpu_s = time.process_time()
        self.start_ns = time.monotonic_ns() + _START_LEAD_NS

    def wait(self) -> int | None:
        """Return the task's start; None when a client could not come."""
        try:
            self._barrier.wait()
        except threading.BrokenBarrierError:
            return None
        return self.start_ns

    def abort(self) -> None:
        """Let nobody start any more."""
        self._barrier.abort()


class _Crew:
    """The clients of one task, a thread each.

    Even a single client has its own thread: the caller's one stays free for signals, for `stop` and for
    progress, and never waits inside libcurl.
    """

    def __init__(
        self, task: Task, operation: Operation, base_url: str, index_name: str, *, seed: int, measured: bool
    ) -> None:
        self._halt = threading.Event()
        self._line = _StartLine(task.clients)
        self._open_loop = task.rate_per_s is not None
        request = prepare(operation, index_name)
        self._clients = [
            Client(Assignment(task, request, number, seed, measured), base_url, self._halt)
            for number in range(task.clients)
        ]

    def run(self, stop: threading.Event, on_progress: Progress | None) -> None:
        """Run to the end, to `stop`, or to the first error of a client, which is raised."""
        with ThreadPoolExecutor(len(self._clients), thread_name_prefix="client") as pool:
            working = [pool.submit(self._work, client) for client in self._clients]
            try:
                self._watch(working, stop, on_progress)
            finally:
                self._end(working)
        for future in working:
            future.result()

    def result(self, position: Position) -> TaskResult:
        """Put together what the clients have, after `run`."""
        cpu_s = time.process_time() - self._line.cpu_s if self._line.start_ns else 0.0
        parts = [
            client.recorder.columns(
                origin_ns=position.origin_ns,
                schedule=position.schedule,
                task=position.task,
                boot=position.boot,
                client=client.number,
            )
            for client in self._clients
        ]
        lags = np.concatenate([driver_lag_ns(part, open_loop=self._open_loop) for part in parts])
        columns = concatenate(parts)
        start_ns = self._line.start_ns - position.origin_ns
        return TaskResult(
            columns=columns,
            unsupported=next((c.unsupported for c in self._clients if c.unsupported), None),
            failures=merge_failures(client.tally.failures() for client in self._clients),
            searches_sent=sum(client.searches_sent for client in self._clients),
            driver_cpu_s=cpu_s,
            wall_s=(int(columns["end_ns"].max(initial=start_ns)) - start_ns) / 1e9,
            lag_p99_ns=int(np.percentile(lags, 99)) if lags.size else 0,
        )

    def _work(self, client: Client) -> None:
        try:
            client.connect()
            start_ns = self._line.wait()
            if start_ns is not None:
                client.run(start_ns)
        except BaseException:
            self._halt.set()
            raise
        finally:
            client.close()

    def _watch(
        self, working: list[Future[None]], stop: threading.Event, on_progress: Progress | None
    ) -> None:
        report_at = time.monotonic() + _PROGRESS_EVERY_S
        while wait(working, timeout=_STOP_POLL_S, return_when=FIRST_EXCEPTION).not_done:
            if stop.is_set() or self._halt.is_set():
                return
            if on_progress is not None and time.monotonic() >= report_at:
                on_progress(self._requests())
                report_at = time.monotonic() + _PROGRESS_EVERY_S
        if on_progress is not None:
            on_progress(self._requests())

    def _end(self, working: list[Future[None]]) -> None:
        self._halt.set()
        pending = wait(working, timeout=0).not_done
        if not pending:
            return
        self._line.abort()
        if wait(pending, timeout=_GRACE_S).not_done:
            for client in self._clients:
                client.interrupt()

    def _requests(self) -> int:
        return sum(client.recorder.count for client in self._clients)


def run_task(  # noqa: PLR0913 - where a task runs, what it asks and where its samples belong; all by keyword
    task: Task,
    operation: Operation,
    *,
    base_url: str,
    index_name: str,
    seed: int,
    origin_ns: int,
    schedule: int,
    task_index: int,
    boot: int,
    stop: threading.Event,
    on_progress: Progress | None = None,
    measured: bool = True,
) -> TaskResult:
    """Run a task with all its clients and return every request it made.

    Args:
        task: clients, bounds, target.
        operation: what every client asks, the same bytes every time.
        base_url: the node, such as http://127.0.0.1:9200.
        index_name: the index to ask when the operation names none.
        seed: of Poisson arrivals; the same seed gives every variant the same arrivals.
        origin_ns: the fork's origin on the monotonic clock; samples are counted from it.
        schedule: which of the fork's schedules, for the samples.
        task_index: which task of the schedule, for the samples.
        boot: which node start of the fork, for the samples.
        stop: ends the task when set: at the next request, or after half a second of a hanging one, which then
            leaves no sample.
        on_progress: called with the number of requests so far, a few times a second, in the caller's thread.
        measured: False marks every sample as warm-up, for warm-up challenges.

    Raises:
        NodeGone: the node refused or reset its connections several times in a row.
        UsageError: the task's bounds make no sense.
    """
    crew = _Crew(task, operation, base_url, index_name, seed=seed, measured=measured)
    with _collector_paused():
        crew.run(stop, on_progress)
        return crew.result(Position(origin_ns, schedule, task_index, boot))


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Keep Python's cycle collector out of the measurement; a request leaves no cycles behind."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
