"""Runs the tasks of one step of a schedule: clients in threads of one process, of several, or of hosts."""

import ctypes
import gc
import random
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from queue import SimpleQueue
from typing import Literal, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from benchctl.child import follow_parent
from benchctl.errors import BenchctlError, UsageError
from benchctl.load.client import (
    NS_PER_S,
    Client,
    Cue,
    Extent,
    NodeGone,
    Recorder,
    Tally,
    TaskAborted,
    Waiter,
    Wire,
    cues,
    extent,
    greet,
    open_ended,
)
from benchctl.load.plugin_work import PluginPace, plugin_paces
from benchctl.load.turns import OwnClock, Seat, Turn, Turns, TurnWaiter, spans_on_own_clock
from benchctl.load.work import Program, WorkContext, Workload
from benchctl.load.work.openers import open_workload
from benchctl.plugin.session import Cancelled
from benchctl.results.model import LoadHostFacts
from benchctl.results.samples import Chunks, Columns, RowFile, RowOwner, SampleSpool, Span, concatenate
from benchctl.track.model import Task
from benchctl.track.operations import Operation
from benchctl.track.operations.search import LoggedSearch

Integers = npt.NDArray[np.int64]


class Lane(NamedTuple):
    """The use of one connection."""

    number: int
    of: int
    posts: tuple[tuple[int, int], ...]  # (task of the step, client of the task), one after the other


Mark = Callable[[], None]
"""Called where a task begins to be measured, and where its last client has ended."""


@dataclass(frozen=True)
class Event:
    """Something that happened to a client of a task of the step."""

    # It is about to send its first measured request, or has done all of its assignment, or the node cannot do
    # its operation, which ends the task.
    what: Literal["measured", "done", "unsupported"]
    task: int


Listener = Callable[[Event], None]
"""Told what happens while the clients work, in their threads."""


class Completion:
    """Counts the clients that are done, and knows when that ends the step.

    Args:
        tasks: of the step.
        finish: called once, when a task that completes the step has ended.
        mark: of the only task; what several use at a time cannot be told apart.
    """

    def __init__(self, tasks: Sequence[Task], finish: Callable[[], None], mark: Mark | None = None) -> None:
        self._tasks = tasks
        self._left = [task.clients for task in tasks]
        self._finish = finish
        self._mark = mark if len(tasks) == 1 else None
        self._measured = False
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        """Take note of what happened."""
        with self._lock:
            if event.what == "measured":
                first, self._measured = not self._measured, True
                if first and self._mark is not None:
                    self._mark()
            if event.what != "done":
                return
            self._left[event.task] -= 1
            ended = self._left[event.task] == 0
            if ended and self._mark is not None and self._measured:
                self._mark()
        if ended and self._tasks[event.task].completes:
            self._finish()


def lanes_of(tasks: Sequence[Task]) -> tuple[Lane, ...]:
    """Assign client after client to lane after lane, from the first again when all are taken.

    Each client has a lane of its own, unless a parallel element has fewer clients than its tasks together:
    then a lane works for several, one after the other, as in Rally.
    """
    posts = [(place, number) for place, task in enumerate(tasks) for number in range(task.clients)]
    of = min((task.lanes for task in tasks if task.lanes is not None), default=len(posts))
    of = min(of, len(posts))
    return tuple(Lane(number, of, tuple(posts[number::of])) for number in range(of))


OnProgress = Callable[[int], None]
OpenWire = Callable[[int], Wire]
"""Makes the wire of a client, by its number; nothing is sent before it is told to connect."""

NewFile = Callable[[RowOwner], RowFile]
"""Makes the file that takes the samples of one client."""


HaltTask = Callable[[int | None], None]
"""Ends the clients of a task of the step, or with None of all."""


@dataclass(frozen=True)
class Job:
    """A task of a step."""

    task: Task  # clients, bounds, target
    operation: Operation
    schedule: int  # which of the fork's schedules it belongs to, for the samples
    position: int  # which task of that schedule, for the samples
    measured: bool = True  # False marks every sample as warm-up, for warm-up challenges


@dataclass(frozen=True)
class Stage:
    """The place where jobs run; without a spool, it can be sent to another process."""

    open_wire: OpenWire  # makes the connection of a client, by its number
    context: WorkContext
    origin_ns: int  # the fork's origin on the monotonic clock; samples are counted from it
    boot: int  # which node start of the fork, for the samples
    spool: SampleSpool | None = None  # takes the samples; without one they stay in memory
    # A failed request ends the step with an error, unless its task says otherwise.
    abort_on_failure: bool = False
    turns: Turns | None = None  # of the node, if it shares the time with others; only for this process


@dataclass(frozen=True)
class HostClock:
    """Load host of several, and the offset of its monotonic clock."""

    name: str
    offset_ns: int = 0  # its clock less that of the host that collects samples
    error_ns: int = 0  # by how much that may be wrong at any time of the step


THIS_HOST = HostClock("")
"""The host of load that comes from no others."""


@dataclass(kw_only=True)
class TaskResult(Tally):
    """The samples and counts of a task, or of a process's or a host's part of it."""

    # Client after client, each in the order of its requests, in chunks; every iteration reads them anew.
    samples: Iterable[Columns]
    # The common start on the monotonic clock, of a host's part on the clock of the samples; 0 when not all
    # clients could connect.
    start_ns: int = 0
    driver_cpu_s: float = 0.0  # CPU time of the driver's processes over the step, from the start on
    wall_s: float = 0.0  # of the step, as that CPU time: from the common start to the end of its last client
    processes: int = 1  # that its clients worked in
    # When one of the driver's processes did not run, on the clock of the samples; of a process's part, on the
    # monotonic clock.
    stops: tuple[Span, ...] = ()
    suspended_ns: int = 0  # for how long the host was suspended during the step
    host: HostClock = THIS_HOST  # of a part, where the load comes from hosts that have names
    hosts: tuple["TaskResult", ...] = ()  # the parts of these hosts
    turns: tuple[Turn, ...] = ()  # of its node, from the fork's origin on; none if it had all the time

    @property
    def columns(self) -> Columns:
        """Return the samples as one batch."""
        return concatenate(list(self.samples))

    @classmethod
    def joined(cls, parts: Sequence["TaskResult"]) -> "TaskResult":
        """Join the parts of several processes, of which several have their samples in files.

        Raises:
            TypeError: If they do not.
        """
        (first, *others) = parts
        samples = first.samples
        for other in others:
            if not (isinstance(samples, Chunks) and isinstance(other.samples, Chunks)):
                raise TypeError("only samples in files can be joined")
            samples = Chunks(samples.files + other.samples.files)
        whole = cls(
            samples=samples,
            start_ns=max(part.start_ns for part in parts),
            driver_cpu_s=sum(part.driver_cpu_s for part in parts),
            processes=len(parts),
            stops=tuple(stop for part in parts for stop in part.stops),
            suspended_ns=max(part.suspended_ns for part in parts),
            host=first.host,
        )
        for part in parts:
            whole.add(part)
        return whole


@dataclass(frozen=True)
class Gathered:
    """The samples of several tasks as those of one, in the order of each client's; read anew every time."""

    parts: Sequence[Iterable[Columns]]
    position: int  # of that task in its schedule

    def __iter__(self) -> Iterator[Columns]:
        whole = concatenate([chunk for part in self.parts for chunk in part])
        order = np.lexsort((whole["start_ns"], whole["client"]))
        ordered = {name: values[order] for name, values in whole.items()}
        yield ordered | {"task": np.full_like(ordered["task"], self.position)}


def gathered(results: Sequence[TaskResult], position: int) -> TaskResult:
    """Return what several tasks of a step did as the result of a task that stands for them all."""
    samples = Gathered([result.samples for result in results], position)
    ended_ns = max(result.ended_ns for result in results)
    (first, *_) = results
    return replace(
        TaskResult(samples=samples, start_ns=first.start_ns, ended_ns=ended_ns),
        driver_cpu_s=first.driver_cpu_s,
        wall_s=first.wall_s,
        processes=first.processes,
        stops=first.stops,
        suspended_ns=first.suspended_ns,
        turns=first.turns,
    )


Parts = tuple[TaskResult, ...]
"""Parts of a process: one of each task of a step, in order."""


class TaskRun:
    """A task while it runs in this process; without new files, its samples stay in memory."""

    def __init__(self, job: Job, stage: Stage, workload: Workload, new_file: NewFile | None = None) -> None:
        self.task = task = job.task
        context = stage.context
        self.workload = workload
        self.seed = context.seed
        self.halt = threading.Event()  # ends its clients
        self.clients: list[Client] = []  # those that have begun, in any order
        self._job = job
        self._stage = stage
        self._new_file = new_file
        self._new_pace = plugin_paces(task, job.operation, context)
        self._paces: dict[int, PluginPace] = {}
        self._recorders: dict[int, tuple[Recorder, RowOwner, RowFile | None]] = {}
        # Work that ends by itself is done to its end, unless the task says how much of it.
        self._until_exhausted = (
            not self.workload.endless and task.iterations is None and task.time_period is None
        )
        self._bounds: Extent = open_ended(task) if self._until_exhausted else extent(task)
        self._expected = None if task.least_time else self._bounds.requests
        # Of a logged schedule: when its requests are due, ns from the start, and their numbers.
        self.logged = _window(task, workload) if task.schedule == "logged" else None

    def client(self, number: int, wires: Sequence[Wire], program: Program | None = None) -> Client:
        """Make one of its clients, with its connections and, if it is given, its program."""
        client = Client(
            program or self._program(number),
            wires[0],
            Waiter(self.halt),
            self._recorder(number),
            label=self.task.label,
            number=number,
            measured=self._job.measured,
            abort_on_failure=self._stage.abort_on_failure
            and self.task.ignore_response_error_level != "non-fatal",
            spares=wires[1:],
            clients=self.task.clients,
        )
        # Of a log, one request that the node does not know says nothing about the next.
        client.may_lack = not isinstance(self._job.operation, LoggedSearch)
        self.clients.append(client)
        return client

    def logged_cues(self, start_ns: int, seat: Seat | None, lane: "ReplayLane") -> Iterator[Cue]:
        """Yield when the request is due that its lane holds."""
        timer = Waiter(self.halt) if seat is None else TurnWaiter(self.halt, seat, measures_first=True)
        warmup_ns = self._bounds.warmup_ns
        while (cue := timer.cue(start_ns + lane.due_ns, warmup=lane.due_ns < warmup_ns)) is not None:
            yield cue

    def cues(self, number: int, start_ns: int, ramp_up_ns: int, seat: Seat | None) -> Iterator[Cue]:
        """Yield when that client sends; with a seat, in its node's turns."""
        # A shape of a mix may have one request only.
        mixed = self.task.mixed
        timer = Waiter(self.halt) if seat is None else TurnWaiter(self.halt, seat, measures_first=mixed)
        if number in self._paces:
            return self._paces[number].cues(self._bounds, start_ns + ramp_up_ns, timer)
        return cues(
            self.task,
            self._bounds,
            client=number,
            seed=self.seed,
            start_ns=start_ns,
            timer=timer,
            ramp_up_ns=ramp_up_ns,
        )

    def result(self) -> TaskResult:
        """Return the samples in order of clients, and what they came to."""
        made = [self._recorders[client] for client in sorted(self._recorders)]
        for recorder, _, _ in made:
            recorder.finish()
        files = tuple(file for _, _, file in made if file is not None)
        kept = [] if self._new_file is not None else [one.columns(place) for one, place, _ in made]
        whole = TaskResult(samples=kept if self._new_file is None else Chunks(files))
        for client in sorted(self.clients, key=lambda client: client.number):
            whole.add(client.tally)
        return whole

    def _recorder(self, client: int) -> Recorder:
        place = RowOwner(
            origin_ns=self._stage.origin_ns,
            schedule=self._job.schedule,
            task=self._job.position,
            boot=self._stage.boot,
            client=client,
        )
        file = None if self._new_file is None else self._new_file(place)
        expected = self._expected
        if self.logged is not None:
            # Nobody knows which client takes how many; a buffer that is full is followed by another.
            expected = _TIMES_A_SHARE * len(self.logged[0]) // self.task.clients + _TIMES_A_SHARE
        recorder = Recorder(expected, file, clients=self.task.clients)
        self._recorders[client] = (recorder, place, file)
        return recorder

    def _program(self, number: int) -> Program:
        """Return what a client asks; of work that all share, it takes no more than it sends."""
        program, most = self.workload.program(number), self._expected
        if self._new_pace is not None:
            self._paces[number] = self._new_pace(program)
            program = self._paces[number].paced(program)
        if most is None and self.workload.requests is not None and self._until_exhausted:
            most = len(range(number, self.workload.requests, self.task.clients))
        if self.workload.endless or most is None:
            return program
        left = iter(range(most))
        return lambda: None if next(left, None) is None else program()


# So many times as many requests of a log as its share can a client take before it needs more memory.
_TIMES_A_SHARE = 3


def _window(task: Task, workload: Workload) -> tuple[Integers, Integers]:
    """Return when the requests of a logged task are due, ns from its start, and their numbers in the log."""
    if workload.due_ns is None or task.time_period is None:
        raise UsageError(f"task '{task.label}' has a logged schedule, but its operation sends no log")
    due_ns = np.rint((workload.due_ns - task.log_start * NS_PER_S) / task.log_speed).astype(np.int64)
    period_ns = round(((task.warmup_time_period or 0) + task.time_period) * NS_PER_S)
    numbers = np.flatnonzero((due_ns >= 0) & (due_ns < period_ns))
    return due_ns[numbers], numbers


class Replay:
    """The requests of a log over all tasks of a step, in order: whichever lane is free takes the next."""

    def __init__(self, runs: Sequence[TaskRun]) -> None:
        logged = [run.logged or _window(run.task, run.workload) for run in runs]
        due_ns = np.concatenate([due_ns for due_ns, _ in logged])
        numbers = np.concatenate([numbers for _, numbers in logged])
        if not due_ns.size:
            raise UsageError(
                "no search of the log is due in the time that is replayed",
                hint="lower --param start, or raise --param seconds",
            )
        places = np.repeat(np.arange(len(runs)), [due_ns.size for due_ns, _ in logged])
        order = np.argsort(due_ns, kind="stable")
        # An iterator in C is one step for all threads.
        taken = zip(due_ns[order].tolist(), places[order].tolist(), numbers[order].tolist(), strict=True)
        self._left = iter(list(taken))

    def take(self) -> tuple[int, int, int] | None:
        """Take the next request: when it is due, ns from the start, its task, and its number in that task."""
        return next(self._left, None)


class ReplayLane:
    """A lane of a replay, with the request that it holds."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self._number: int | None = None
        self.due_ns = 0

    def order(self) -> Iterator[int]:
        """Yield the task of each request that the lane takes."""
        while (taken := self._replay.take()) is not None:
            self.due_ns, place, self._number = taken
            yield place
        self._number = None

    def program(self, run: TaskRun) -> Program:
        """Return what a client of this lane sends: the request that the lane holds, until there is none."""
        make = run.workload.make
        return lambda: None if make is None or self._number is None else make(self._number)


# Clients leave the barrier one after the other; the tasks start when the last of them has surely left it.
_START_LEAD_NS = 2_000_000
_STOP_POLL_S = 0.05
_PROGRESS_EVERY_S = 0.25
# A request in flight may end by itself when a task is stopped, but a hanging node must not delay the user.
_GRACE_S = 0.5
# Longer than an interrupted wire takes: whoever still works then is in code that knows nothing of wires.
_OWN_CODE_S = 2.0


class _Reports:
    """Progress of a step, given at most once in each interval, and at the end."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self._on_progress = on_progress
        self._at = time.monotonic() + _PROGRESS_EVERY_S

    def __call__(self, requests: Callable[[], int], *, last: bool = False) -> None:
        now = time.monotonic()
        if self._on_progress is not None and (last or now >= self._at):
            self._at = now + _PROGRESS_EVERY_S
            self._on_progress(requests())


def _at_once() -> int:
    """Return the start of clients of this process alone."""
    return time.monotonic_ns() + _START_LEAD_NS


class StartLine:
    """Holds all clients until every one is connected, and gives them one start.

    Args:
        clients: how many.
        decide: called when all are there; returns the start, None for none.
    """

    def __init__(self, clients: int, decide: Callable[[], int | None] = _at_once) -> None:
        self._barrier = threading.Barrier(clients, action=self._all_ready)
        self._decide = decide
        self.start_ns = 0  # the start on the monotonic clock; 0 before
        self.cpu_s = 0.0  # CPU time of this process at the start
        self.suspended_ns = 0  # for how long the host had been suspended by then

    def _all_ready(self) -> None:
        self.cpu_s = time.process_time()
        self.suspended_ns = suspended_ns()
        start_ns = self._decide()
        if start_ns is None:
            raise threading.BrokenBarrierError
        self.start_ns = start_ns

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


# Threads on a busy machine wake up some ten milliseconds late; what is longer is not their usual wait.
_LEAST_STOP_NS = 250_000_000


class Pulse:
    """Detects stops of the process from the waits of an otherwise idle thread.

    A wait that ends much later than planned is a stop, unless the process used CPU meanwhile: then other
    threads held the interpreter. Costs three clock readings per wait. Both clocks count nanoseconds:
    monotonic, and CPU time of the process.
    """

    def __init__(
        self,
        clock: Callable[[], int] = time.monotonic_ns,
        cpu_clock: Callable[[], int] = time.process_time_ns,
    ) -> None:
        self._clock = clock
        self._cpu_clock = cpu_clock
        self.stops: list[Span] = []  # so far; each may have begun up to one wait earlier

    @contextmanager
    def wait(self, most_s: float) -> Iterator[None]:
        """Watch the block, which takes no longer than `most_s` unless the process is stopped."""
        begun_ns, begun_cpu_ns = self._clock(), self._cpu_clock()
        yield
        ended_ns = self._clock()
        late_ns = ended_ns - begun_ns - round(most_s * NS_PER_S)
        if late_ns >= _LEAST_STOP_NS and 2 * (self._cpu_clock() - begun_cpu_ns) < late_ns:
            self.stops.append((ended_ns - late_ns, ended_ns))


def suspended_ns() -> int:
    """Return for how long the host was suspended since boot, in ns; the monotonic clock excludes that."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()


class Crew:
    """Clients of a step of the schedule, each lane of them a thread.

    Even a single client has a thread: the caller's one stays free for signals, for `stop` and for progress,
    and never waits inside libcurl.
    """

    def __init__(
        self,
        runs: Sequence[TaskRun],
        lanes: Sequence[Lane],
        open_wire: OpenWire,
        line: StartLine,
        turns: Turns | None = None,
    ) -> None:
        self._runs = runs
        self._lanes = lanes
        # Clients of a lane take turns with its connections.
        widths = [max(runs[task].workload.connections for task, _ in lane.posts) for lane in lanes]
        self._wires = [
            [open_wire(lane.number) for _ in range(width)] for lane, width in zip(lanes, widths, strict=True)
        ]
        self._line = line
        is_logged = bool(lanes) and runs[lanes[0].posts[0][0]].task.schedule == "logged"
        self._replay = Replay(runs) if is_logged else None
        self._seats = [None if turns is None else turns.seat() for _ in lanes]
        self.pulse = Pulse()  # knows when this process did not run
        self._done = threading.Event()
        self._threads: dict[int, int] = {}  # lane -> thread, while it works

    def run(self, listener: Listener, stop: threading.Event, on_progress: OnProgress | None) -> None:
        """Run to the end, to `stop`, or to the first error of a client, which is raised."""
        with ThreadPoolExecutor(len(self._lanes), thread_name_prefix="client") as pool:
            working: list[Future[None]] = []
            try:
                for lane, wires, seat in zip(self._lanes, self._wires, self._seats, strict=True):
                    working.append(pool.submit(self._work, lane, wires, seat, listener))
                self._watch(working, stop, on_progress)
            finally:
                try:
                    self._let_end(working)
                finally:
                    # A second Ctrl-C takes the grace away, and no further one leaves a client at work.
                    interrupted: KeyboardInterrupt | None = None
                    while True:
                        try:
                            self._cut_off(working)
                            break
                        except KeyboardInterrupt as err:
                            interrupted = err
                    if interrupted is not None:
                        raise interrupted
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

    def _work(self, lane: Lane, wires: Sequence[Wire], seat: Seat | None, listener: Listener) -> None:
        wire = wires[0]
        try:
            self._threads[lane.number] = threading.get_ident()
            for own_wire in wires:
                greet(own_wire)
            if self._runs[lane.posts[0][0]].task.mixed:
                self._mix(lane, wires, seat, listener)
                return
            # Its buffers are there before the start.
            task, number = lane.posts[0]
            client = self._runs[task].client(number, wires)
            start_ns = self._line.wait()
            if start_ns is None:
                return
            # Client i of n starts after i/n of the ramp-up.
            ramp_up_s = self._runs[task].task.ramp_up_time_period or 0.0
            ramp_up_ns = round(ramp_up_s * NS_PER_S * lane.number / lane.of)
            self._serve(task, client, self._runs[task].cues(number, start_ns, ramp_up_ns, seat), listener)
            # Behind another client of its lane, a client starts when that one is done.
            for task, number in lane.posts[1:]:
                if not wire.interrupted:
                    client = self._runs[task].client(number, wires)
                    now_ns = time.monotonic_ns() if seat is None else seat.turns.now_ns()
                    self._serve(task, client, self._runs[task].cues(number, now_ns, 0, seat), listener)
        except Cancelled:
            pass  # cut off before its first request or behind its last
        except BaseException:
            self.halt()
            raise
        finally:
            self._threads.pop(lane.number, None)
            if seat is not None:
                seat.end()
            for own_wire in wires:
                own_wire.close()

    def _mix(self, lane: Lane, wires: Sequence[Wire], seat: Seat | None, listener: Listener) -> None:
        """Serve all posts of a lane in one order: that of a log, or one that the seed decides, all alike."""
        runs = [self._runs[task] for task, _ in lane.posts]
        replay = None if self._replay is None else ReplayLane(self._replay)
        clients = [
            run.client(number, wires, None if replay is None else replay.program(run))
            for run, (_, number) in zip(runs, lane.posts, strict=True)
        ]
        order: Iterable[int]
        if replay is None:
            drawn = [place for place, run in enumerate(runs) for _ in range(extent(run.task).requests or 0)]
            random.Random(f"{runs[0].seed} {lane.number}").shuffle(drawn)  # noqa: S311 - has to be repeatable
            order = drawn
        else:
            order = replay.order()
        start_ns = self._line.wait()
        if start_ns is None:
            return
        steps = [
            client.steps(
                _telling(
                    run.cues(number, start_ns, 0, seat)
                    if replay is None
                    else run.logged_cues(start_ns, seat, replay),
                    listener,
                    task,
                )
            )
            for client, run, (task, number) in zip(clients, runs, lane.posts, strict=True)
        ]
        # One more of each: it sees that there is nothing left.
        with suppress(Cancelled):
            for place in chain(order, range(len(steps))):
                if wires[0].interrupted:
                    break
                next(steps[place], None)
                if clients[place].tally.unsupported is not None:
                    self.halt(lane.posts[place][0])
        for place, (task, _) in enumerate(lane.posts):
            steps[place].close()
            self._ended(task, clients[place], listener)

    def _serve(self, task: int, client: Client, cues: Iterator[Cue], listener: Listener) -> None:
        with suppress(Cancelled):
            client.run(_telling(cues, listener, task))
        self._ended(task, client, listener)

    def _ended(self, task: int, client: Client, listener: Listener) -> None:
        client.tally.ended_ns = time.monotonic_ns()
        if client.tally.unsupported is not None:
            self.halt(task)
            listener(Event("unsupported", task))
        listener(Event("done", task))

    def _watch(
        self, working: list[Future[None]], stop: threading.Event, on_progress: OnProgress | None
    ) -> None:
        report = _Reports(on_progress)
        goes_on = True
        while goes_on and not stop.is_set() and not self._done.is_set():
            with self.pulse.wait(_STOP_POLL_S):
                found = wait_for(working, timeout=_STOP_POLL_S, return_when=FIRST_EXCEPTION)
            goes_on = bool(found.not_done)
            report(self._requests, last=not goes_on)

    def _requests(self) -> int:
        return sum(client.recorder.count for run in self._runs for client in run.clients)

    def _let_end(self, working: list[Future[None]]) -> None:
        self.halt()
        if not self._all_ended(working):
            self._line.abort()
            wait_for(working, timeout=_GRACE_S)

    def _cut_off(self, working: list[Future[None]]) -> None:
        if self._all_ended(working):
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
                # What a track's plug-in does there ends as soon as it executes Python again.
                for thread in list(self._threads.values()):
                    cancelled = ctypes.py_object(Cancelled)
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), cancelled)
                patience = time.monotonic() + _OWN_CODE_S
            # A client that was just being started is not among the futures yet.
            if not wait_for(working, timeout=_STOP_POLL_S).not_done and not self._threads:
                return
            time.sleep(_STOP_POLL_S / 10)

    def _all_ended(self, working: list[Future[None]]) -> bool:
        return len(working) == len(self._lanes) and not wait_for(working, timeout=0).not_done


def _telling(cues: Iterator[Cue], listener: Listener, task: int) -> Iterator[Cue]:
    """The cues, and word of the first one that is measured."""
    for cue in cues:
        if not cue[1]:
            listener(Event("measured", task))
            yield cue
            break
        yield cue
    yield from cues


def _work(
    jobs: Sequence[Job],
    lanes: Sequence[Lane],
    stage: Stage,
    *,
    line: StartLine,
    listen: Callable[[HaltTask], Listener],
    new_file: NewFile | None,
    stop: threading.Event,
    on_progress: OnProgress | None,
) -> Parts:
    """Run those clients of a step that are in these lanes, as `run_step` says.

    `listen` makes who is told what happens, and gets the function that ends clients.
    """
    with ExitStack() as stack:
        runs = []
        for job in jobs:
            task = job.task
            work = open_workload(job.operation, stage.context, clients=task.clients, key=task.label)
            stack.callback(work.close)
            runs.append(TaskRun(job, stage, work, new_file))
        crew = Crew(runs, lanes, stage.open_wire, line, stage.turns)
        stack.enter_context(_collector_paused())
        crew.run(listen(crew.halt), stop, on_progress)
        began = line.start_ns != 0
        cpu_s = time.process_time() - line.cpu_s if began else 0.0
        suspended = suspended_ns() - line.suspended_ns if began else 0
        return tuple(
            replace(
                run.result(),
                start_ns=line.start_ns,
                driver_cpu_s=cpu_s,
                stops=tuple(crew.pulse.stops),
                suspended_ns=suspended,
            )
            for run in runs
        )


_pausing = threading.Lock()
_paused: list[bool] = []
"""State of the collector before each step that is at work, of which several may be."""


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Keep Python's cycle collector out of the measurement; a request leaves no cycles behind."""
    with _pausing:
        _paused.append(gc.isenabled())
        gc.disable()
    try:
        yield
    finally:
        with _pausing:
            # The first of them knows how it was before all.
            if _paused.pop() and not _paused:
                gc.enable()


# Clients in several processes: what these and the one that watches them tell each other.


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


Message = Assigned | Start | Halt | Ready | Event | Progress | Parts | BenchctlError
"""An error ends a worker's part of a step."""


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


class _Session:
    """An order while it is done."""

    def __init__(self, assigned: Assigned, line: Connection) -> None:
        self._assigned = assigned
        self._line = line
        self._sending = threading.Lock()
        self._stop = threading.Event()
        self._given: SimpleQueue[int | None] = SimpleQueue()  # the start; None when there will be none
        self._halt_task: HaltTask | None = None

    def hear(self, message: Message) -> None:
        """Take a message while the order is done; called by the thread that listens."""
        match message:
            case Start(start_ns=start_ns):
                self._given.put(start_ns)
            case Halt(task=None):
                self._stop.set()
                self._given.put(None)
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
            done = _work(
                self._assigned.jobs,
                self._assigned.lanes,
                self._assigned.stage,
                line=StartLine(len(self._assigned.lanes), self._start_ns),
                listen=self._listen,
                new_file=new_file,
                stop=self._stop,
                on_progress=lambda requests: self._tell(Progress(requests)),
            )
        except BenchctlError as err:
            self._tell(err.with_traceback(None))
            for file in files:
                # Behind what is still being written of it.
                disk.submit(file.close)
        else:
            self._tell(done)

    def _start_ns(self) -> int | None:
        """Return the start that is given when the clients of all processes are connected."""
        self._tell(Ready())
        return self._given.get()

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


def spawn(target: Callable[[Connection], None] = serve) -> tuple[Connection, BaseProcess]:
    """Start a process that works for us, with the line to it; the end of the line is its end."""
    # Spawned, not forked: the caller has threads.
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=target, args=(theirs,), daemon=True)
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
        f"a load generating process{where} "
        + ("closed its connection and did not end" if status is None else f"died with status {status}"),
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
        for _ in range(self.size):
            self._workers.append(LocalWorker())

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
    from its lane: all of them together send what one would. So they do of a log, whose lanes share a process.
    """
    sharing = {
        number
        for number, job in enumerate(jobs)
        if job.operation.shares_work or job.task.schedule == "logged"
    }
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
        self._report = _Reports(on_progress)
        self._completion = Completion([job.task for job in jobs], self._stop_all, mark)
        self._ready = 0
        self._requests = [0] * len(posts)
        self._finished: dict[int, Parts | None] = {}
        self._failed: BenchctlError | None = None

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
            self._report(lambda: sum(self._requests), last=len(self._finished) == len(self._workers))
        if self._failed is not None:
            raise self._failed
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
                    start_ns = time.monotonic_ns() + self._lead_ns
                    self._tell_all(Start(start_ns))
            case Event(what="unsupported", task=task):
                self._tell_all(Halt(task))
            case Event():
                self._completion(message)
            case BenchctlError():
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
            _work(
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
