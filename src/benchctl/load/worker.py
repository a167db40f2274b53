"""A process that clients work in: does the orders that come down its line, until the line ends."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue

from benchctl.child import follow_parent
from benchctl.errors import BenchctlError
from benchctl.load.client import NodeGone, TaskAborted
from benchctl.load.crew import StartLine
from benchctl.load.share import Done, HaltTask, Order, work
from benchctl.results.samples import Place, RowFile


@dataclass(frozen=True)
class Assigned:
    """To a worker: do this; samples go into files in that folder, whose names begin like this."""

    order: Order
    folder: Path
    prefix: str


@dataclass(frozen=True)
class Start:
    """To a worker: all clients are connected everywhere; the start on the monotonic clock."""

    start_ns: int


@dataclass(frozen=True)
class Halt:
    """To a worker: end the clients of a task."""

    task: int


@dataclass(frozen=True)
class Stop:
    """To a worker: end all clients."""


@dataclass(frozen=True)
class Ready:
    """From a worker: all its clients are connected."""


@dataclass(frozen=True)
class ClientDone:
    """From a worker: a client of that task has done all of its assignment."""

    task: int


@dataclass(frozen=True)
class Unsupported:
    """From a worker: the node cannot do that task's operation."""

    task: int


@dataclass(frozen=True)
class Progress:
    """From a worker: how many requests it has made so far."""

    requests: int


@dataclass(frozen=True)
class Finished:
    """From a worker: what it did."""

    done: Done


@dataclass(frozen=True)
class Failed:
    """From a worker: it could not; kind is the class of the error."""

    kind: str
    message: str
    hint: str

    def error(self) -> BenchctlError:
        """The error as it would have been raised in the process that reads this."""
        kinds: dict[str, type[BenchctlError]] = {"NodeGone": NodeGone, "TaskAborted": TaskAborted}
        return kinds.get(self.kind, BenchctlError)(self.message, hint=self.hint)


Message = Assigned | Start | Halt | Stop | Ready | ClientDone | Unsupported | Progress | Finished | Failed


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
                current.hear(Stop())
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
        """The start; None when there will be none."""
        self._given.put(start_ns)

    def _start_ns(self) -> int:
        self._tell_ready()
        start_ns = self._given.get()
        if start_ns is None:
            raise threading.BrokenBarrierError
        return start_ns


class _Session:
    """One order while it is done."""

    def __init__(self, assigned: Assigned, line: Connection) -> None:
        self._assigned = assigned
        self._line = line
        self._sending = threading.Lock()
        self._stop = threading.Event()
        self._start = _RemoteLine(len(assigned.order.lanes), lambda: self._tell(Ready()))
        self._halt_task: HaltTask | None = None

    def hear(self, message: Message) -> None:
        """Take a message while the order is done; called by the thread that listens."""
        match message:
            case Start(start_ns=start_ns):
                self._start.give(start_ns)
            case Stop():
                self._stop.set()
                self._start.give(None)
            case Halt(task=task):
                if self._halt_task is not None:
                    self._halt_task(task)

    def run(self, disk: ThreadPoolExecutor) -> None:
        """Do the order, and say what came of it."""
        folder, prefix = self._assigned.folder, self._assigned.prefix

        files: list[RowFile] = []

        def new_file(place: Place) -> RowFile:
            files.append(RowFile(folder / f"{prefix}-{len(files):06d}.rows", place, disk))
            return files[-1]

        try:
            done = work(
                self._assigned.order,
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
            self._tell(Finished(done))

    def client_done(self, task: int) -> None:
        """Pass it on."""
        self._tell(ClientDone(task))

    def unsupported(self, task: int) -> None:
        """Pass it on."""
        self._tell(Unsupported(task))

    def _listen(self, halt_task: HaltTask) -> "_Session":
        self._halt_task = halt_task
        return self

    def _tell(self, message: Message) -> None:
        # After a Ctrl-C nobody listens any more, and the end of the line is the end of the order.
        with self._sending, suppress(BrokenPipeError, ConnectionResetError):
            self._line.send(message)
