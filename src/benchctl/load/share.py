"""One process's share of a step: its lanes of clients, from the first connection to the last sample."""

import gc
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass

from benchctl.load.crew import Crew, Listener, OnProgress, OpenWire, StartLine
from benchctl.load.lanes import Lane
from benchctl.load.plugin.pace import plugin_paces
from benchctl.load.pulse import Span, suspended_ns
from benchctl.load.recorder import Recorder
from benchctl.load.tally import Failure, merge_failures
from benchctl.load.task_run import TaskRun
from benchctl.load.work.programs import open_workload
from benchctl.load.workload import WorkContext
from benchctl.results.samples import Columns, Place
from benchctl.results.spool import Chunks, RowFile
from benchctl.track.model import Task
from benchctl.track.operations.common import Operation

NewFile = Callable[[Place], RowFile]
"""Makes the file that takes the samples of one client."""


HaltTask = Callable[[int | None], None]
"""Ends the clients of a task of the step, or with None of all."""


@dataclass(frozen=True)
class Job:
    """One task of a step.

    Attributes:
        task: clients, bounds, target.
        operation: what its clients ask.
        schedule: which of the fork's schedules it belongs to, for the samples.
        position: which task of that schedule, for the samples.
        measured: False marks every sample as warm-up, for warm-up challenges.
    """

    task: Task
    operation: Operation
    schedule: int
    position: int
    measured: bool = True


@dataclass(frozen=True)
class Order:
    """What one process has to do; can be sent to another.

    Attributes:
        jobs: the tasks of the step, all of them.
        lanes: those of this process.
        open_wire: makes the connection of a lane.
        context: what operations need to know of the cluster.
        origin_ns: the fork's origin on the monotonic clock; samples are counted from it.
        boot: which node start of the fork, for the samples.
        abort_on_failure: a failed request ends the step with an error, unless its task says otherwise.
    """

    jobs: tuple[Job, ...]
    lanes: tuple[Lane, ...]
    open_wire: OpenWire
    context: WorkContext
    origin_ns: int
    boot: int
    abort_on_failure: bool


@dataclass(frozen=True)
class Share:
    """What one process did of one task.

    Attributes:
        samples: client after client, in chunks.
        unsupported: the node's reason when it cannot do the operation.
        failures: what failed.
        searches_sent: searches that can have reached the node.
        ended_ns: when its last client had done all of it; 0 without one.
        disk_waits: how often a client had to wait until its samples were on disk.
        unit: what its operations' weights count, where they say so; else empty.
    """

    samples: Iterable[Columns]
    unsupported: str | None
    failures: tuple[Failure, ...]
    searches_sent: int
    ended_ns: int
    disk_waits: int
    unit: str = ""


@dataclass(frozen=True)
class Done:
    """What one process did of a step.

    Attributes:
        shares: one a job, in order.
        start_ns: the common start on the monotonic clock; 0 when not all clients could connect.
        cpu_s: CPU time of the process from the start on.
        stops: when the process did not run, on the monotonic clock.
        suspended_ns: for how long the host was suspended meanwhile.
    """

    shares: tuple[Share, ...]
    start_ns: int
    cpu_s: float
    stops: tuple[Span, ...] = ()
    suspended_ns: int = 0


def work(
    order: Order,
    *,
    line: StartLine,
    listen: Callable[[HaltTask], Listener],
    new_file: NewFile | None,
    stop: threading.Event,
    on_progress: OnProgress | None,
) -> Done:
    """Do an order in this process.

    Args:
        order: what to do.
        line: gives the start to as many clients as the order has lanes.
        listen: makes who is told what happens; gets the function that ends clients.
        new_file: makes the files of the samples; without it they stay in memory.
        stop: ends it when set.
        on_progress: called with the number of requests so far, in this thread.

    Raises:
        NodeGone: the node does not answer any more.
        TaskAborted: a request failed, and that was to end the step.
        UsageError: a task's bounds make no sense, or an operation cannot be asked here.
    """
    with ExitStack() as stack:
        recorders = [_Recorders(job, order, new_file) for job in order.jobs]
        runs = [
            stack.enter_context(_open(job, order, kept))
            for job, kept in zip(order.jobs, recorders, strict=True)
        ]
        crew = Crew(runs, order.lanes, order.open_wire, line)
        stack.enter_context(_collector_paused())
        crew.run(listen(crew.halt), stop, on_progress)
        began = line.start_ns != 0
        cpu_s = time.process_time() - line.cpu_s if began else 0.0
        suspended = suspended_ns() - line.suspended_ns if began else 0
        shares = tuple(_share(run, kept) for run, kept in zip(runs, recorders, strict=True))
        return Done(shares, line.start_ns, cpu_s, tuple(crew.pulse.stops), suspended)


@contextmanager
def _open(job: Job, order: Order, recorders: "_Recorders") -> Iterator[TaskRun]:
    workload = open_workload(job.operation, order.context, clients=job.task.clients, key=job.task.label)
    abort = order.abort_on_failure and job.task.ignore_response_error_level != "non-fatal"
    with closing(workload):
        paces = plugin_paces(job.task, job.operation, order.context)
        yield TaskRun(job.task, workload, recorders, order.context.seed, job.measured, abort, paces)


class _Recorders:
    """The recorders of a task, and what they hold at its end."""

    def __init__(self, job: Job, order: Order, new_file: NewFile | None) -> None:
        self._job = job
        self._order = order
        self._new_file = new_file
        self._made: dict[int, tuple[Recorder, Place, RowFile | None]] = {}

    def __call__(self, client: int, expected: int | None) -> Recorder:
        place = Place(
            origin_ns=self._order.origin_ns,
            schedule=self._job.schedule,
            task=self._job.position,
            boot=self._order.boot,
            client=client,
        )
        file = None if self._new_file is None else self._new_file(place)
        recorder = Recorder(expected, file, clients=self._job.task.clients)
        self._made[client] = (recorder, place, file)
        return recorder

    def finish(self) -> tuple[Iterable[Columns], int]:
        """The samples in order of clients, and how often one of these had to wait for the disk."""
        made = [self._made[client] for client in sorted(self._made)]
        for recorder, _, _ in made:
            recorder.finish()
        files = tuple(file for _, _, file in made if file is not None)
        if self._new_file is not None:
            return Chunks(files), sum(file.waits for file in files)
        return [recorder.columns(place) for recorder, place, _ in made], 0


def _share(run: TaskRun, recorders: _Recorders) -> Share:
    samples, disk_waits = recorders.finish()
    clients = sorted(run.clients, key=lambda client: client.assignment.client)
    return Share(
        samples=samples,
        unsupported=next((client.unsupported for client in clients if client.unsupported), None),
        failures=merge_failures(client.tally.failures() for client in clients),
        searches_sent=sum(client.searches_sent for client in clients),
        ended_ns=max((client.ended_ns for client in clients), default=0),
        disk_waits=disk_waits,
        unit=next((client.unit for client in clients if client.unit), ""),
    )


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Keep Python's cycle collector out of the measurement; a request leaves no cycles behind."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
