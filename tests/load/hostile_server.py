"""A search engine's worst stand-in: every way to break an answer, each bounded, and a record of what came in.

What it puts on the wire is spelt out byte by byte. A well-formed answer carries the serial of the request it
belongs to where an engine writes the number of hits, so that no answer can pass for another's.
"""

import re
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto

from benchctl.results.samples import Outcome
from load.stub_server import Listening, end

_NUMBER = re.compile(rb'"number":(\d+)')
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_GREETING = b"GET /_cluster/health"
_ATTEMPTS = 1000
# For so long the kernel holds back what more is said to follow.
_HELD_BACK_S = 0.2


class Then(Enum):
    """How a connection goes on when the bytes do not."""

    CLOSE = auto()
    RESET = auto()
    HANG = auto()


class Doom(Enum):
    """What waits for others."""

    THE_NEXT = auto()  # the next connection is reset before anything is read from it


@dataclass(frozen=True)
class Flood:
    """So many times the same bytes; the other side may well hang up before their end."""

    chunk: bytes
    times: int


@dataclass(frozen=True)
class Last:
    """Bytes that leave in the same segment as the end of the connection."""

    data: bytes


@dataclass(frozen=True)
class Drip:
    """Bytes, one by one."""

    data: bytes
    pause_s: float = 0.0


Step = bytes | Flood | Last | Drip | Then | Doom


@dataclass(frozen=True)
class Act:
    """What becomes of one request.

    Attributes:
        name: for messages.
        steps: serial of the request -> what is done; the connection is kept unless the last one ends it.
        outcome: what a driver must call it.
    """

    name: str
    steps: Callable[[int], Iterable[Step]]
    outcome: Outcome

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Received:
    """A whole request, and what became of it."""

    number: int
    serial: int
    act: Act


class HostileServer(Listening):
    """Does to requests what a script says.

    Args:
        script: what becomes of the first requests, in order of arrival.
        default: what becomes of all the others.
        greetings: what becomes of the first requests for the cluster's health; the others are answered.

    Attributes:
        received: whole requests but for greetings, in order of arrival.
        strays: requests for what only a followed redirection leads to.
        doomed: connections that were reset before anything was read.
        torn: ends that may have left after the bytes before them, because the machine stalled in between.
    """

    def __init__(
        self, script: Iterable[Act] = (), default: Act | None = None, *, greetings: Iterable[Act] = ()
    ) -> None:
        super().__init__()
        self.received: list[Received] = []
        self.strays = 0
        self.doomed = 0
        self.torn = 0
        self._greetings = deque(greetings)
        self._script = deque(script)
        self._default = default or PLAIN
        self._seen: Counter[int] = Counter()
        self._to_doom = 0
        self.url = f"http://127.0.0.1:{self.port}"

    @property
    def connected(self) -> int:
        """Connections that are open now."""
        with self._lock:
            return len(self._open)

    def push(self, data: bytes) -> None:
        """Send bytes that nobody asked for over every open connection."""
        with self._lock:
            for connection in self._open:
                connection.sendall(data)

    def _admit(self) -> bool:
        doomed = self._to_doom > 0
        self._to_doom -= doomed
        self.doomed += doomed
        return not doomed

    def _serve(self, connection: socket.socket, _number: int) -> None:
        how: Then | float | None = None
        try:
            while how is None and (request := _read(connection)):
                how = self._play(connection, self._cast(request))
        except OSError:
            how = Then.CLOSE
        with self._lock:
            self._open.discard(connection)
            end(connection, resets=how is Then.RESET)
            self.torn += isinstance(how, float) and time.monotonic() - how > _HELD_BACK_S / 2

    def _cast(self, request: bytes) -> Iterable[Step]:
        """Choose what becomes of a request, and write it down."""
        found = _NUMBER.search(request)
        with self._lock:
            if request.startswith(_GREETING):
                return (self._greetings.popleft() if self._greetings else PLAIN).steps(0)
            if b"/stray" in request.partition(b"\r\n")[0]:
                self.strays += 1
            number = int(found.group(1)) if found else len(self.received)
            serial = number * _ATTEMPTS + self._seen[number]
            self._seen[number] += 1
            act = self._script.popleft() if self._script else self._default
            self.received.append(Received(number, serial, act))
        return act.steps(serial)

    def _play(self, connection: socket.socket, steps: Iterable[Step]) -> Then | float | None:
        """Do the steps; returns how the connection ends if it does, or since when bytes wait for its end."""
        for step in steps:
            if isinstance(step, Last):
                since = time.monotonic()
                connection.send(step.data, socket.MSG_MORE)
                return since
            if step is Then.HANG:
                self.hanging.set()
                # Until the client has had enough, or the test ends.
                while connection.recv(65536):
                    pass
                return Then.CLOSE
            if isinstance(step, Then):
                return step
            self._put(connection, step)
        return None

    def _put(self, connection: socket.socket, step: bytes | Flood | Drip | Doom) -> None:
        match step:
            case Doom():
                with self._lock:
                    self._to_doom += 1
            case bytes():
                connection.sendall(step)
            case Flood(chunk, times):
                for _ in range(times):
                    connection.sendall(chunk)
            case Drip(data, pause_s):
                for byte in data:
                    connection.sendall(bytes([byte]))
                    if pause_s:
                        self._closing.wait(pause_s)


def _read(connection: socket.socket) -> bytes:
    """One request; empty when there is none any more."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    missing = (int(length.group(1)) if length else 0) - len(body)
    while missing > 0:
        more = connection.recv(65536)
        if not more:
            return b""
        data += more
        missing -= len(more)
    return data


def found(serial: int, extra: str = "") -> bytes:
    """The body of a search response with that many hits."""
    return (
        f'{{"took":1,"timed_out":false,"_shards":{{"failed":0}},{extra}'
        f'"hits":{{"total":{{"value":{serial},"relation":"eq"}},"hits":[]}}}}'
    ).encode()


def head(*lines: str | bytes, status: str = "HTTP/1.1 200 OK") -> bytes:
    """Status line and header lines, with the empty line behind them."""
    raw = [line if isinstance(line, bytes) else line.encode() for line in (status, *lines)]
    return b"\r\n".join([*raw, b"", b""])


def whole(body: bytes, *lines: str | bytes, status: str = "HTTP/1.1 200 OK") -> bytes:
    """A response of the right length."""
    return (
        head("content-type: application/json", f"content-length: {len(body)}", *lines, status=status) + body
    )


def answered(name: str, *steps: Callable[[bytes], Step] | Step, outcome: Outcome = Outcome.OK) -> Act:
    """An act of which some steps depend on the body with the serial."""
    return Act(
        name, lambda serial: [step(found(serial)) if callable(step) else step for step in steps], outcome
    )


PLAIN = answered("plain", whole)
