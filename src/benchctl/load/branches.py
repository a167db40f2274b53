"""Scripts that run at the same time: a thread each, whichever connection is free for every request."""

import queue
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol

from benchctl.load.request import Answer, Exchange, Request
from benchctl.results.samples import Outcome
from benchctl.track.operations.streams import MOST_STREAMS


class Wire(Protocol):
    """One client's way to the cluster."""

    @property
    def interrupted(self) -> bool:
        """Whether `interrupt` was called: a failure after that is not the node's."""
        ...

    def connect(self) -> Exchange:
        """Open the connection by a request that is not a search, so that no measured one pays for it."""
        ...

    def send(self, request: Request) -> Exchange:
        """Send a request and wait for the whole answer; failures are part of the result, not exceptions."""
        ...

    def interrupt(self) -> None:
        """End a request in flight from another thread; the wire is of no use afterwards."""
        ...

    def close(self) -> None:
        """Close the connection; harmless when repeated."""
        ...


class Keeper(Protocol):
    """Where a client's samples go."""

    @property
    def count(self) -> int:
        """How many there are so far."""
        ...

    def append(
        self,
        exchange: Exchange,
        answer: Answer,
        intended_ns: int,
        *,
        warmup: bool,
        part: int = 0,
        attempt: int = 0,
        weight: int = 1,
        processing_ns: int = 0,
    ) -> None:
        """Keep one request."""
        ...


class Note(NamedTuple):
    """A sample that is not kept yet.

    Attributes:
        stands: False when the request was sent again.
    """

    exchange: Exchange
    answer: Answer
    intended_ns: int
    part: int
    attempt: int
    weight: int
    processing_ns: int
    stands: bool = True


class Notes:
    """The samples of a script that runs beside others, until they stand in one order."""

    def __init__(self) -> None:
        self.rows: list[Note] = []

    @property
    def count(self) -> int:
        """How many there are so far."""
        return len(self.rows)

    def append(
        self,
        exchange: Exchange,
        answer: Answer,
        intended_ns: int,
        *,
        warmup: bool,  # noqa: ARG002 - all of an operation is, or nothing
        part: int = 0,
        attempt: int = 0,
        weight: int = 1,
        processing_ns: int = 0,
    ) -> None:
        """Note one request."""
        if attempt:
            before = max(place for place, row in enumerate(self.rows) if row.part == part)
            self.rows[before] = self.rows[before]._replace(stands=False)
        self.rows.append(Note(exchange, answer, intended_ns, part, attempt, weight, processing_ns))


def in_order(branches: Sequence[Sequence[Note]], first: int) -> list[Note]:
    """The requests of all branches by their start, with parts that count on.

    Args:
        branches: what each of them noted.
        first: the first part.
    """
    rows = [(number, row) for number, rows in enumerate(branches) for row in rows]
    rows.sort(key=lambda found: found[1].exchange.start_ns)
    parts: dict[tuple[int, int], int] = {}
    for number, row in rows:
        parts.setdefault((number, row.part), first + len(parts))
    return [row._replace(part=parts[number, row.part]) for number, row in rows]


class SharedWires:
    """Several connections as one: a request takes one that is free, or waits until one is.

    Args:
        wires: open ones.
    """

    def __init__(self, wires: Sequence[Wire]) -> None:
        self._wires = tuple(wires)
        self._free: queue.SimpleQueue[Wire] = queue.SimpleQueue()
        for wire in self._wires:
            self._free.put(wire)

    @property
    def interrupted(self) -> bool:
        """Whether any of them was."""
        return any(wire.interrupted for wire in self._wires)

    def connect(self) -> Exchange:
        """They are open already: ask again over a free one."""
        wire = self._free.get()
        try:
            return wire.connect()
        finally:
            self._free.put(wire)

    def send(self, request: Request) -> Exchange:
        """Send a request over a free one."""
        wire = self._free.get()
        try:
            return wire.send(request)
        finally:
            self._free.put(wire)

    def interrupt(self) -> None:
        """End the requests in flight on all of them."""
        for wire in self._wires:
            wire.interrupt()

    def close(self) -> None:
        """Close all of them."""
        for wire in self._wires:
            wire.close()


def new_pool() -> ThreadPoolExecutor:
    """Threads for the scripts of one client; those that wait for others they contain have one, too."""
    return ThreadPoolExecutor(MOST_STREAMS, thread_name_prefix="stream")


def first_failure(answers: Sequence[Answer]) -> Answer:
    """What scripts that ran together came to."""
    return next((one for one in answers if one.outcome is not Outcome.OK), Answer(Outcome.OK))
