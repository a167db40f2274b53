"""Runs the tasks of one step of a schedule against a cluster, by clients in this process or in several."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from queue import SimpleQueue
from time import monotonic_ns
from typing import Protocol, Self

from benchctl.child import follow_parent
from benchctl.errors import BenchctlError
from benchctl.load.client import NodeGone, TaskAborted
from benchctl.load.task_clients import (
    THIS_HOST,
    ClientDone,
    Completion,
    Event,
    HaltTask,
    HostClock,
    Job,
    Lane,
    Listener,
    Mark,
    Measured,
    OnProgress,
    Parts,
    Stage,
    StartLine,
    TaskResult,
    Unsupported,
    lanes_of,
    work,
)
from benchctl.load.turns import OwnClock, Turns, spans_on_own_clock
from benchctl.results.model import LoadHostFacts
from benchctl.results.samples import RowFile, RowOwner, SampleSpool


@dataclass(frozen=True)
class Assigned:
    """Message to a worker: its part of a step, and the folder and name prefix of its sample files."""

    jobs: tuple[Job, ...]  # the tasks of the step, all of them
    lanes: tuple[Lane, ...]  # those of this worker
    stage: Stage  # without a spool
    folder: Path
    prefix: str


@dataclass(frozen=True)
class Start:
    """Message to a worker: all clients are connected; the start on the monotonic clock."""

    start_ns: int


@dataclass(frozen=True)
class Halt:
    """Message to a worker: end the clients of a task, or with None all."""

    task: int | None = None


@dataclass(frozen=True)
class Ready:
    """Message from a worker: all its clients are connected."""


@dataclass(frozen=True)
class Progress:
    """Message from a worker: the number of requests so far."""

    requests: int


@dataclass(frozen=True)
class Failed:
    """Message from a worker: an error; `kind` is its class."""

    kind: str
    message: str
    hint: str

    def error(self) -> BenchctlError:
        """Return the error as it would have been raised in the reading process."""
        kinds: dict[str, type[BenchctlError]] = {"NodeGone": NodeGone, "TaskAborted": TaskAborted}
        return kinds.get(self.kind, BenchctlError)(self.message, hint=self.hint)


Message = Assigned | Start | Halt | Ready | Event | Progress | Parts | Failed


def serve(line: Connection) -> None:
    """Do what comes down the line, until it ends."""
    follow_parent()
    sessions: SimpleQueue[_Session | None] = SimpleQueue()
    threading.Thread(target=_hear, args=(line, sessions), daemon=True).start()
    with ThreadPoolExecutor(1, thread_name_prefix="spool") as disk:
        while (session := sessions.get()) is not None:
            session.run(disk)


def _hear(line: Connection, sessions: "SimpleQueue[_Session | None]") -> None:
    """Sort messages: orders for the process, everything else for the order that it is at."""
    current: _Session | None = None
    while True:
        try:
            message = line.recv()
        except (EOFError, OSError):
            sessions.put(None)
            if current is not None:
                current.hear(Halt())
            return
        if isinstance(message, Assigned):
            current = _Session(message, line)
            sessions.put(current)
        elif current is not None:
            current.hear(message)


class _RemoteLine(StartLine):
    """A start that another process gives, when the clients of all processes are connected."""

    def __init__(self, clients: int, ready: Callable[[], None]) -> None:
        super().__init__(clients)
        self._tell_ready = ready
        self._given: SimpleQueue[int | None] = SimpleQueue()

    def give(self, start_ns: int | None) -> None:
        """Pass on the start; None when there will be none."""
        self._given.put(start_ns)

    def _start_ns(self) -> int:
        self._tell_ready()
        start_ns = self._given.get()
        if start_ns is None:
            raise threading.BrokenBarrierError
        return start_ns


class _Session:
    """An order while it is done."""

    def __init__(self, assigned: Assigned, line: Connection) -> None:
        self._assigned = assigned
        self._line = line
        self._sending = threading.Lock()
        self._stop = threading.Event()
        self._start = _RemoteLine(len(assigned.lanes), lambda: self._tell(Ready()))
        self._halt_task: HaltTask | None = None

    def hear(self, message: Message) -> None:
        """Take a message while the order is done; called by the thread that listens."""
        match message:
            case Start(start_ns=start_ns):
                self._start.give(start_ns)
            case Halt(task=None):
                self._stop.set()
                self._start.give(None)
            case Halt(task=task):
                if self._halt_task is not None:
                    self._halt_task(task)

    def run(self, disk: ThreadPoolExecutor) -> None:
        """Do the order, and say what came of it."""
        folder, prefix = self._assigned.folder, self._assigned.prefix
        files: list[RowFile] = []

        def new_file(place: RowOwner) -> RowFile:
            files.append(RowFile(folder / f"{prefix}-{len(files):06d}.rows", place, disk))
            return files[-1]

        try:
            done = work(
                self._assigned.jobs,
                self._assigned.lanes,
                self._assigned.stage,
                line=self._start,
                listen=self._listen,
                new_file=new_file,
                stop=self._stop,
                on_progress=lambda requests: self._tell(Progress(requests)),
            )
        except BenchctlError as err:
            self._tell(Failed(type(err).__name__, err.message, err.hint))
            for file in files:
                # Behind what is still being written of it.
                disk.submit(file.close)
        else:
            self._tell(done)

    def _listen(self, halt_task: HaltTask) -> Listener:
        self._halt_task = halt_task
        return self._tell

    def _tell(self, message: Message) -> None:
        # After a Ctrl-C nobody listens any more, and the end of the line is the end of the order.
        with self._sending, suppress(BrokenPipeError, ConnectionResetError):
            self._line.send(message)


_POLL_S = 0.05
_END_S = 5.0


class Worker(Protocol):
    """A process that works, on whichever host."""

    line: Connection  # can be waited for: it has something to be received, or has ended

    def tell(self, message: Message) -> None:
        """Send a message; that the worker is gone shows by the end of its line."""
        ...

    def receive(self) -> Message:
        """Receive the next message.

        Raises:
            BenchctlError: If the line has ended, and with it the worker.
        """
        ...

    def settle(self, parts: Parts, folder: Path) -> Parts:
        """Convert results to this host's clock, with their samples in that folder."""
        ...


class LocalWorker:
    """A process of this host, which shares its clock and its disk."""

    def __init__(self, host: HostClock = THIS_HOST) -> None:
        self.line, self.process = spawn()
        self._host = host

    def tell(self, message: Message) -> None:
        """Send it."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.line.send(message)

    def receive(self) -> Message:
        """Take it."""
        try:
            return self.line.recv()  # type: ignore[no-any-return]
        except (EOFError, ConnectionResetError) as err:
            self.process.join(_END_S)
            raise died(self.process.exitcode) from err

    def settle(self, parts: Parts, folder: Path) -> Parts:
        """Nothing is elsewhere."""
        del folder
        return tuple(replace(part, host=self._host) for part in parts)


def spawn() -> tuple[Connection, BaseProcess]:
    """Start a process that serves, with the line to it; the end of the line is its end."""
    # Spawned, not forked: the caller has threads.
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    return ours, process


def end(workers: Sequence[tuple[Connection, BaseProcess]]) -> None:
    """End processes, at once if they do not end by themselves."""
    for line, _ in workers:
        line.close()
    for _, process in workers:
        process.join(_END_S)
        if process.is_alive():
            process.kill()
            process.join()


def died(status: int | None, where: str = "") -> BenchctlError:
    """Return the error for a process that ended unexpectedly."""
    return BenchctlError(
        f"a load generating process{where} died with status {status}",
        hint="killed by a user, or by the kernel for lack of memory: see the kernel's log"
        if status == -signal.SIGKILL
        else "see its output for the reason",
    )


class WorkerPool:
    """Processes that live for several steps; a context manager that ends them.

    The monotonic clock is one for all processes of a host, so they share the start, and their samples lie on
    one axis. Pools of processes on several hosts are derived from this one: they say how processes are begun
    and ended, and what to see to around a step.

    Args:
        size: how many have clients dealt out to them.
        reader: which of the processes, from 0, reads a corpus; it may be one beyond these.
    """

    # A message reaches a process of this host, and all of its clients wake up, well within this.
    lead_ns = 20_000_000
    nodes_at = ""

    def __init__(self, size: int, *, reader: int = 0) -> None:
        self.size = size
        self._reader = reader
        self._workers: list[Worker] = []
        self._steps = 0

    def __enter__(self) -> Self:
        try:
            self._begin()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def run(
        self,
        jobs: Sequence[Job],
        stage: Stage,
        spool: SampleSpool,
        *,
        stop: threading.Event,
        on_progress: OnProgress | None,
        mark: Mark | None = None,
    ) -> list[Parts]:
        """Run the tasks of a step; its lanes are dealt out to the processes.

        Returns:
            What each process did; those without a lane are left out.

        Raises:
            BenchctlError: If one process would raise it, or if a worker dies.
        """
        try:
            if not self._workers:
                self._begin()
            dealt = deal(lanes_of([job.task for job in jobs]), jobs, self.size, self._reader)
            posts = [(worker, lanes) for worker, lanes in zip(self._workers, dealt, strict=False) if lanes]
            self._steps += 1
            with self._around_step():
                step = _Step(posts, jobs, lead_ns=self.lead_ns, stop=stop, on_progress=on_progress, mark=mark)
                results = step.run(replace(stage, spool=None), spool.folder, f"step-{self._steps:06d}")
            done = [worker.settle(one, spool.folder) for worker, one in results]
        except (NodeGone, TaskAborted):
            raise
        except BaseException:
            self._end()
            raise
        for parts in done:
            for part in parts:
                spool.adopt(part.samples)
        return done

    @property
    def facts(self) -> dict[str, LoadHostFacts]:
        """Of other hosts that processes are on, by name."""
        return {}

    def _begin(self) -> None:
        self._workers += [LocalWorker() for _ in range(self.size)]

    def _end(self) -> None:
        end([(worker.line, worker.process) for worker in self._workers if isinstance(worker, LocalWorker)])
        self._workers.clear()

    @contextmanager
    def _around_step(self) -> Iterator[None]:
        yield


def deal(
    lanes: Sequence[Lane], jobs: Sequence[Job], processes: int, reader: int = 0
) -> list[tuple[Lane, ...]]:
    """Deal lanes to processes in turn, but all that share the reading of a corpus to its reader.

    Whatever the number of processes, each lane goes to one of them, and what a client sends and when follows
    from its lane: all of them together send what one would.
    """
    sharing = {number for number, job in enumerate(jobs) if job.operation.shares_work}
    dealt: list[list[Lane]] = [[] for _ in range(max(processes, reader + 1))]
    place = 0
    for lane in lanes:
        if any(task in sharing for task, _ in lane.posts):
            dealt[reader].append(lane)
        else:
            dealt[place % processes].append(lane)
            place += 1
    return [tuple(lanes) for lanes in dealt]


class _Step:
    """A step in several processes, as the process that watches them sees it."""

    def __init__(
        self,
        posts: Sequence[tuple[Worker, tuple[Lane, ...]]],
        jobs: Sequence[Job],
        *,
        lead_ns: int,
        stop: threading.Event,
        on_progress: OnProgress | None,
        mark: Mark | None,
    ) -> None:
        self._lead_ns = lead_ns
        self._posts = posts
        self._workers = [worker for worker, _ in posts]
        self._jobs = tuple(jobs)
        self._stop = stop
        self._on_progress = on_progress
        self._completion = Completion([job.task for job in jobs], self._stop_all, mark)
        self._ready = 0
        self._requests = [0] * len(posts)
        self._finished: dict[int, Parts | None] = {}
        self._failed: Failed | None = None

    def run(self, stage: Stage, folder: Path, prefix: str) -> list[tuple[Worker, Parts]]:
        """Run it to its end; what each worker did."""
        for number, (worker, lanes) in enumerate(self._posts):
            worker.tell(Assigned(self._jobs, lanes, stage, folder, f"{prefix}-worker-{number}"))
        stopping = False
        while len(self._finished) < len(self._workers):
            if self._stop.is_set() and not stopping:
                stopping = True
                self._stop_all()
            lines = [w.line for n, w in enumerate(self._workers) if n not in self._finished]
            for line in wait(lines, timeout=_POLL_S):
                number = next(n for n, worker in enumerate(self._workers) if worker.line is line)
                self._hear(number, self._workers[number].receive())
            if self._on_progress is not None:
                self._on_progress(sum(self._requests))
        if self._failed is not None:
            raise self._failed.error()
        return [
            (self._workers[number], done)
            for number, done in sorted(self._finished.items())
            if done is not None
        ]

    def _hear(self, number: int, message: Message) -> None:
        match message:
            case Ready():
                self._ready += 1
                if self._ready == len(self._workers):
                    start_ns = monotonic_ns() + self._lead_ns
                    self._tell_all(Start(start_ns))
            case Measured() | ClientDone():
                self._completion(message)
            case Unsupported(task=task):
                self._tell_all(Halt(task))
            case Failed():
                self._failed = self._failed or message
                self._finished[number] = None
                self._stop_all()
            case tuple():
                self._finished[number] = message
            case Progress(requests=requests):
                self._requests[number] = requests

    def _stop_all(self) -> None:
        self._tell_all(Halt())

    def _tell_all(self, message: Message) -> None:
        for number, worker in enumerate(self._workers):
            if number not in self._finished:
                worker.tell(message)


def run_step(
    jobs: Sequence[Job],
    stage: Stage,
    *,
    stop: threading.Event,
    workers: WorkerPool | None = None,
    on_progress: OnProgress | None = None,
    mark: Mark | None = None,
) -> tuple[TaskResult, ...]:
    """Run tasks at the same time, with all their clients, and return every request they made.

    Args:
        jobs: at least one.
        stage: where.
        stop: ends the step when set: at the next request, or after half a second of a hanging one, which is
            then kept as cancelled.
        workers: processes that the clients work in; None for this one. They need the stage's spool, and all
            else that the stage holds must be fit to be sent to them.
        on_progress: called with the number of requests so far, a few times a second, in the caller's thread.
        mark: told the bounds of the measured part of a task that runs alone.

    Returns:
        One result a job, in order.

    Raises:
        NodeGone: If the node does not answer any more.
        TaskAborted: If a request fails that is to end the step.
        UsageError: If a task's bounds make no sense, or an operation cannot be sent here.
    """
    tasks = [job.task for job in jobs]
    if workers is not None and stage.spool is not None:
        done = workers.run(jobs, stage, stage.spool, stop=stop, on_progress=on_progress, mark=mark)
    else:
        lanes = lanes_of(tasks)
        done = [
            work(
                jobs,
                lanes,
                stage,
                line=StartLine(len(lanes)),
                listen=lambda halt: Completion(tasks, lambda: halt(None), mark),
                new_file=None if stage.spool is None else stage.spool.file,
                stop=stop,
                on_progress=on_progress,
            )
        ]
    results = (_result(number, done, stage.origin_ns) for number in range(len(jobs)))
    if stage.turns is None or not stage.turns.over:
        return tuple(results)
    return tuple(in_turns(result, stage.turns, stage.origin_ns) for result in results)


def _result(number: int, done: Sequence[Parts], origin_ns: int) -> TaskResult:
    parts = [process[number] for process in done]
    whole = TaskResult.joined(parts)
    start_ns = whole.start_ns - origin_ns
    hosts = dict.fromkeys(part.host for part in parts if part.host.name)
    whole.hosts = tuple(
        replace(TaskResult.joined([part for part in parts if part.host == host]), start_ns=start_ns)
        for host in hosts
    )
    whole.host = THIS_HOST
    whole.stops = tuple((begin - origin_ns, end - origin_ns) for begin, end in whole.stops)
    whole.wall_s = max(max(part.ended_ns for process in done for part in process) - whole.start_ns, 0) / 1e9
    return whole


def in_turns(result: TaskResult, turns: Turns, origin_ns: int) -> TaskResult:
    """Return a result by the clock of its node, which stood still while others had their turns."""
    over = tuple(
        turn._replace(begin_ns=turn.begin_ns - origin_ns, end_ns=turn.end_ns - origin_ns)
        for turn in turns.over
    )
    return replace(
        result,
        samples=OwnClock(result.samples, over),
        stops=tuple(spans_on_own_clock(result.stops, over)),
        driver_cpu_s=turns.cpu_s,
        wall_s=turns.own_s,
        turns=over,
    )
