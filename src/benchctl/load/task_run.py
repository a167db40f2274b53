"""One task while it runs: what makes its clients, and when each of them sends."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from benchctl.load.arrivals import extent
from benchctl.load.client import Assignment, Client, Wire
from benchctl.load.pace import Turn, Waiter, endless_turns, open_ended, turns
from benchctl.load.plugin.pace import NewPace, PluginPace
from benchctl.load.recorder import Recorder
from benchctl.load.workload import Program, Workload
from benchctl.results.samples import Columns
from benchctl.track.model import Task


class Recorders(Protocol):
    """Where the samples of a task go."""

    def __call__(self, client: int, expected: int | None) -> Recorder:
        """Make the recorder of a client, for as many rows as are expected where that is known."""
        ...

    def finish(self) -> tuple[Iterable[Columns], int]:
        """The samples in order of clients, and how often one of these had to wait for the disk."""
        ...


@dataclass
class TaskRun:
    """One task while it runs.

    Attributes:
        task: the task.
        workload: what its clients ask.
        recorders: makes the recorder of a client, for as many rows as it is expected to have.
        seed: of Poisson arrivals.
        measured: False makes all of it warm-up.
        abort_on_failure: the first failed request ends everything with an error.
        new_pace: makes the pace of a client, where the track's plug-in has a say in that.
        halt: ends its clients.
        clients: those that have begun, in any order.
    """

    task: Task
    workload: Workload
    recorders: Recorders
    seed: int
    measured: bool
    abort_on_failure: bool
    new_pace: NewPace | None = None
    halt: threading.Event = field(default_factory=threading.Event)
    clients: list[Client] = field(default_factory=list)
    _paces: dict[int, PluginPace] = field(default_factory=dict)

    def client(self, number: int, wire: Wire, spares: Sequence[Wire] = ()) -> Client:
        """Make one of its clients, with further connections where its work needs them."""
        assignment = Assignment(
            label=self.task.label,
            client=number,
            program=self._program(number),
            measured=self.measured,
            abort_on_failure=self.abort_on_failure,
        )
        client = Client(assignment, wire, Waiter(self.halt), self.recorders(number, self._expected()), spares)
        self.clients.append(client)
        return client

    def turns(self, number: int, start_ns: int, ramp_up_ns: int) -> Iterator[Turn]:
        """When that client sends."""
        timer = Waiter(self.halt)
        if number in self._paces:
            bounds = open_ended(self.task) if self._until_exhausted() else extent(self.task)
            return self._paces[number].turns(bounds, start_ns + ramp_up_ns, timer)
        made = endless_turns if self._until_exhausted() else turns
        return made(
            self.task, client=number, seed=self.seed, start_ns=start_ns, timer=timer, ramp_up_ns=ramp_up_ns
        )

    def _program(self, number: int) -> Program:
        """What a client asks; of work that all share, it takes no more than it sends."""
        program, most = self.workload.program(number), self._expected()
        if self.new_pace is not None:
            self._paces[number] = self.new_pace(program)
            program = self._paces[number].paced(program)
        if self.workload.endless or most is None:
            return program
        left = iter(range(most))
        return lambda: None if next(left, None) is None else program()

    def _until_exhausted(self) -> bool:
        """Work that ends by itself is done to its end, unless the task says how much of it."""
        return not self.workload.endless and self.task.iterations is None and self.task.time_period is None

    def _expected(self) -> int | None:
        return None if self._until_exhausted() else extent(self.task).requests
