"""One client of a task: its connection, its loop, and what it keeps of every request."""

import threading
from dataclasses import dataclass

from benchctl.errors import BenchctlError
from benchctl.load.arrivals import extent
from benchctl.load.operations import Answer, Request, is_unsupported, judge
from benchctl.load.pace import turns
from benchctl.load.recorder import Recorder
from benchctl.load.tally import FailureTally
from benchctl.load.transport import Exchange, WireClient
from benchctl.results.samples import Outcome
from benchctl.track.model import Task

_CONNECTION_LOST = frozenset({Outcome.REFUSED, Outcome.RESET})
_LOST_IN_A_ROW = 3


class NodeGone(BenchctlError):  # noqa: N818 - what happened, not a kind of mistake
    """The node stopped answering in the middle of a task; whoever runs its process knows more."""


@dataclass(frozen=True)
class Assignment:
    """What one client has to do.

    Attributes:
        task: the task.
        request: what it repeats.
        client: which client, from 0.
        seed: of Poisson arrivals.
        measured: False makes every request a warm-up.
    """

    task: Task
    request: Request
    client: int
    seed: int
    measured: bool


class Client:
    """Sends one client's requests over one connection, one after the other.

    Args:
        assignment: what to do.
        base_url: where the node is.
        halt: set by whoever wants all clients of the task to end, this one included.

    Attributes:
        recorder: the samples so far.
        tally: the failures so far.
        searches_sent: requests that can have reached the node.
        unsupported: the node's reason when it cannot do the operation at all.
    """

    def __init__(self, assignment: Assignment, base_url: str, halt: threading.Event) -> None:
        self.recorder = Recorder(extent(assignment.task).requests)
        self.tally = FailureTally()
        self.searches_sent = 0
        self.unsupported: str | None = None
        self._assignment = assignment
        self._base_url = base_url
        self._halt = halt
        self._wire = WireClient(base_url)
        self._lost_in_a_row = 0

    @property
    def number(self) -> int:
        """Which client this is, from 0."""
        return self._assignment.client

    def connect(self) -> None:
        """Open the connection.

        Raises:
            NodeGone: nothing answers there.
        """
        greeting = self._wire.connect()
        if greeting.failure is not None and not self._wire.interrupted:
            raise self._node_gone(f"cannot connect: {greeting.detail}")

    def run(self, start_ns: int) -> None:
        """Do all of the assignment, from `start_ns` on the monotonic clock.

        Raises:
            NodeGone: the connection was refused or reset several times in a row.
        """
        job = self._assignment
        send = self._wire.send
        for intended_ns, warmup in turns(
            job.task, client=job.client, seed=job.seed, start_ns=start_ns, halt=self._halt
        ):
            exchange = send(job.request)
            # The request's clock has stopped: from here on nothing costs it anything.
            self.searches_sent += exchange.failure is not Outcome.REFUSED
            if self._wire.interrupted:
                return
            answer = _answer(exchange)
            due_ns = exchange.start_ns if intended_ns is None else intended_ns
            self.recorder.append(exchange, answer, due_ns, warmup=warmup or not job.measured)
            if answer.outcome is Outcome.OK:
                self._lost_in_a_row = 0
            else:
                self._handle_failure(exchange, answer)

    def interrupt(self) -> None:
        """End the request in flight, from another thread; it leaves no sample."""
        self._wire.interrupt()

    def close(self) -> None:
        """Close the connection."""
        self._wire.close()

    def _handle_failure(self, exchange: Exchange, answer: Answer) -> None:
        self.tally.add(answer.outcome, answer.reason)
        if answer.outcome in _CONNECTION_LOST:
            self._lost_in_a_row += 1
            if self._lost_in_a_row >= _LOST_IN_A_ROW:
                raise self._node_gone(answer.reason)
            return
        self._lost_in_a_row = 0
        if self.recorder.count == 1:
            self.unsupported = is_unsupported(exchange.status, exchange.body)
            if self.unsupported is not None:
                self._halt.set()

    def _node_gone(self, reason: str) -> NodeGone:
        return NodeGone(
            f"the node at {self._base_url} is gone in task '{self._assignment.task.label}': {reason}",
            hint="look at the end of the node's log",
        )


def _answer(exchange: Exchange) -> Answer:
    if exchange.failure is not None:
        return Answer(exchange.failure, reason=exchange.detail)
    return judge(exchange.status, exchange.body)
