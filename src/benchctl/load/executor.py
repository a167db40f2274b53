"""Runs the tasks of one step of a schedule against a cluster, from a common start to the last answer."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from benchctl.load.client import NodeGone, TaskAborted
from benchctl.load.crew import (
    Completion,
    Done,
    Job,
    OnProgress,
    OpenWire,
    Order,
    Share,
    StartLine,
    lanes_of,
    work,
)
from benchctl.load.lag import Span
from benchctl.load.recorder import Failure, merge_failures
from benchctl.load.transport import WireClient
from benchctl.load.workers import WorkerPool
from benchctl.load.workload import WorkContext
from benchctl.results.samples import Columns, concatenate
from benchctl.results.spool import SampleSpool
from benchctl.track.model import Task
from benchctl.track.operations.common import Operation

__all__ = ["Failure", "Job", "NodeGone", "Stage", "TaskAborted", "TaskResult", "run_step", "run_task"]


@dataclass(frozen=True)
class Stage:
    """Where jobs run.

    Attributes:
        open_wire: makes the connection of a client, by its number.
        context: what operations need to know of the cluster.
        origin_ns: the fork's origin on the monotonic clock; samples are counted from it.
        boot: which node start of the fork, for the samples.
        spool: takes the samples; without one they stay in memory.
        workers: processes that the clients work in; None for this one. They need a spool, and all that the
            stage holds must be fit to be sent to them.
        abort_on_failure: a failed request ends the step with an error, unless its task says otherwise.
    """

    open_wire: OpenWire
    context: WorkContext
    origin_ns: int
    boot: int
    spool: SampleSpool | None = None
    workers: WorkerPool | None = None
    abort_on_failure: bool = False


@dataclass(frozen=True)
class TaskResult:
    """What came of a task.

    Attributes:
        samples: client after client, each in the order of its requests, in chunks; every iteration reads them
            anew.
        unsupported: the node's reason when it cannot do the operation; the task was ended at once.
        failures: what failed, warm-up included.
        searches_sent: searches that can have reached the node, those cut off by a stop included.
        start_ns: the common start on the monotonic clock; 0 when not all clients could connect.
        ended_ns: when the last client was done; 0 when none began.
        driver_cpu_s: CPU time of the driver's processes over the step.
        wall_s: of the step, as that CPU time: from the common start to the end of its last client.
        disk_waits: how often a client had to wait until its samples were on disk.
        processes: that its clients worked in.
        unit: what its operations' weights count, where only they know; else empty.
        stops: when one of the driver's processes did not run, on the clock of the samples.
        suspended_ns: for how long the host was suspended during the step.
    """

    samples: Iterable[Columns]
    unsupported: str | None
    failures: tuple[Failure, ...]
    searches_sent: int
    start_ns: int
    ended_ns: int
    driver_cpu_s: float
    wall_s: float
    disk_waits: int = 0
    processes: int = 1
    unit: str = ""
    stops: tuple[Span, ...] = ()
    suspended_ns: int = 0

    @property
    def columns(self) -> Columns:
        """All samples at once."""
        return concatenate(list(self.samples))


@dataclass(frozen=True)
class _Joined:
    """Samples of several processes, one after the other."""

    parts: tuple[Iterable[Columns], ...]

    def __iter__(self) -> Iterator[Columns]:
        return chain.from_iterable(self.parts)


def run_step(
    jobs: Sequence[Job], stage: Stage, *, stop: threading.Event, on_progress: OnProgress | None = None
) -> tuple[TaskResult, ...]:
    """Run tasks at the same time, with all their clients, and return every request they made.

    Args:
        jobs: at least one.
        stage: where.
        stop: ends the step when set: at the next request, or after half a second of a hanging one, which is
            then kept as cancelled.
        on_progress: called with the number of requests so far, a few times a second, in the caller's thread.

    Returns:
        One result a job, in order.

    Raises:
        NodeGone: the node does not answer any more.
        TaskAborted: a request failed, and that was to end the step.
        UsageError: a task's bounds make no sense, or an operation cannot be asked here.
    """
    tasks = [job.task for job in jobs]
    order = Order(
        jobs=tuple(jobs),
        lanes=lanes_of(tasks),
        open_wire=stage.open_wire,
        context=stage.context,
        origin_ns=stage.origin_ns,
        boot=stage.boot,
        abort_on_failure=stage.abort_on_failure,
    )
    if stage.workers is not None and stage.spool is not None:
        done = stage.workers.run(order, stage.spool, stop=stop, on_progress=on_progress)
    else:
        done = [
            work(
                order,
                line=StartLine(len(order.lanes)),
                listen=lambda halt: Completion(tasks, lambda: halt(None)),
                new_file=None if stage.spool is None else stage.spool.file,
                stop=stop,
                on_progress=on_progress,
            )
        ]
    return tuple(_result(number, done, stage.origin_ns) for number in range(len(jobs)))


def _result(number: int, done: Sequence[Done], origin_ns: int) -> TaskResult:
    shares: list[Share] = [one.shares[number] for one in done]
    start_ns = max(one.start_ns for one in done)
    step_ended_ns = max(share.ended_ns for one in done for share in one.shares)
    return TaskResult(
        samples=shares[0].samples if len(shares) == 1 else _Joined(tuple(share.samples for share in shares)),
        unsupported=next((share.unsupported for share in shares if share.unsupported), None),
        failures=merge_failures(share.failures for share in shares),
        searches_sent=sum(share.searches_sent for share in shares),
        start_ns=start_ns,
        ended_ns=max(share.ended_ns for share in shares),
        driver_cpu_s=sum(one.cpu_s for one in done),
        wall_s=max(step_ended_ns - start_ns, 0) / 1e9,
        disk_waits=sum(share.disk_waits for share in shares),
        processes=len(done),
        unit=next((share.unit for share in shares if share.unit), ""),
        stops=tuple((begin - origin_ns, end - origin_ns) for one in done for begin, end in one.stops),
        suspended_ns=max(one.suspended_ns for one in done),
    )


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
    on_progress: OnProgress | None = None,
    measured: bool = True,
) -> TaskResult:
    """Run a single task against one node; see `run_step`."""
    stage = Stage(
        open_wire=lambda _client: WireClient(base_url),
        context=WorkContext(index_name, seed=seed),
        origin_ns=origin_ns,
        boot=boot,
    )
    job = Job(task, operation, schedule, task_index, measured)
    return run_step([job], stage, stop=stop, on_progress=on_progress)[0]
