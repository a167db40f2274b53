"""The contracts between operations, which know what to send, and clients, which send it."""

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple
from urllib.parse import quote

from benchctl.load.request import Answer, Exchange, Request
from benchctl.load.values import Bodies
from benchctl.plugin.session import PluginUse
from benchctl.results.plan import EngineName
from benchctl.results.samples import Outcome
from benchctl.track.model import Template
from benchctl.track.operations.common import Operation, Varying


class Reply(NamedTuple):
    """The exchange and answer of one request of a script."""

    exchange: Exchange
    answer: Answer


Pause = float
"""Seconds that a script waits before it goes on."""


@dataclass(frozen=True)
class Together:
    """Scripts that run concurrently; each request uses whichever connection is free."""

    scripts: "tuple[Script, ...]"


Send = Callable[[Request], Reply]
"""Sends a request over the client's connection, records its sample, and returns the reply."""


@dataclass(frozen=True)
class Driven:
    """Code that sends its requests itself, one at a time, and cannot yield them.

    `run` gets a function that sends a request, and one that tells whether the client is to stop. It judges
    its own requests; the outcome of the operation is up to the script that yielded it.
    """

    run: Callable[[Send, Callable[[], bool]], None]


Item = Request | Pause | Together | Driven
"""What a script yields."""

Script = Generator[Item, Reply | None, Answer | None]
"""Several requests as one operation: yields each and is sent its reply; None after a pause or driven code.

Concurrent scripts get one combined reply, whose answer is OK when all of theirs were. The return value is the
operation's answer; None takes the last one. A script normally ends at its first failed request; its runner
records every request, and the operation.
"""


Program = Callable[[], Request | Script | None]
"""Returns a client's next operation, encoded; None when there are no more."""


@dataclass(frozen=True)
class Source:
    """A file of documents."""

    # Blocks of its bytes, which may end anywhere; from a document on, if that is given, from 0.
    open: Callable[..., Iterator[bytes]]
    document_count: int
    corpus: str = ""
    # Where its documents go; None when their action lines name it, or for a data stream.
    index: str | None = None
    data_stream: str | None = None  # the same for a data stream
    type: str | None = None  # of its documents, for nodes old enough to have types
    has_actions: bool = False  # whether each document is preceded by an action line


Act = Callable[[str, str | None, Callable[[], bool]], None]
"""Called with an action, a node and what tells whether to give up; raises BenchctlError when it fails."""


@dataclass(frozen=True)
class WorkContext:
    """The environment of an operation."""

    index_name: str  # the track's index, for operations that name none
    index_body: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    # Opens the corpus, from a document on, if that is given: blocks of bytes, one document per line; None
    # where there is none.
    documents: Callable[..., Iterator[bytes]] | None = None
    document_count: int = 0
    engine: EngineName = "elasticsearch"
    # Settings and mappings of all the track's indices, by name; empty when there is only one.
    indices: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # What the mappings of every index say of it in `_meta`, beside what they say.
    mark: Mapping[str, str] = field(default_factory=dict)
    data_streams: tuple[str, ...] = ()
    templates: tuple[Template, ...] = ()  # the track's, of all kinds
    # The corpora's files, if there is more than one stream of documents for one index.
    sources: tuple[Source, ...] = ()
    assertions: bool = False
    plugin: PluginUse | None = None  # the track's Python plug-in, where it may be executed
    version: str = ""  # of the engine, as its node reports it; empty while none is up
    # Does what a `failover` or `check-index` says to the nodes; None where benchctl did not start them. It
    # cannot be sent to other processes.
    act: "Act | None" = None


@dataclass(frozen=True)
class Workload:
    """A task's operation, ready for all its clients."""

    program: Callable[[int], Program]  # what a client sends; clients are numbered from 0
    endless: bool = True  # whether it can be repeated indefinitely; indexing a corpus ends by itself
    connections: int = 1  # how many a client needs
    close: Callable[[], None] = lambda: None  # releases what it holds, such as the open corpus


@dataclass(frozen=True)
class WorkOrder:
    """The clients that an operation is prepared for; its values depend on `key`, the task's."""

    context: WorkContext
    clients: int
    key: str
    opener: "Callable[[Operation, WorkOrder], Workload]"  # of any operation, for those that hold others

    def open(self, operation: Operation) -> Workload:
        """Return the workload of another operation for the same clients."""
        return self.opener(operation, self)

    def index(self, name: str | None) -> str:
        """Return an index, by default the track's own, as a path component."""
        return quote(name or self.context.index_name or "_all", safe=",*")

    def bodies(self, operation: Varying, template: Any, *, part: str = "") -> Bodies:
        """Return the bodies of requests, with the operation's values.

        `part` separates several templates of an operation, when each is to have values of its own.
        """
        return Bodies(template, operation.values, seed=self.context.seed, key=self.key + part)


def repeated(request: Request) -> Workload:
    """Return the same request every time, for all clients: the wire need not load it again."""
    return Workload(lambda _client: lambda: request)


def scripted(script: Callable[[], Script], *, endless: bool = True) -> Workload:
    """Return a new script every time."""
    return Workload(lambda _client: script, endless)


def numbered(make: Callable[[int], Request | Script], clients: int) -> Workload:
    """Return a new request or script every time, made from its number over all clients of the task.

    Client c of n makes numbers c, c + n, c + 2n and so on, whichever client is faster.
    """

    def program(client: int) -> Program:
        numbers = count(client, clients)
        return lambda: make(next(numbers))

    return Workload(program)


def ask(request: Request) -> Generator[Item, Reply | None, Reply]:
    """Send a request within a script: `yield from` it to get the reply.

    Raises:
        TypeError: If the script's runner sent no reply.
    """
    reply = yield request
    if reply is None:
        raise TypeError("a request of a script was not replied to")
    return reply


Ask = Callable[[Request], Generator[Item, Reply | None, Reply]]


def follow(work: Request | Script, send: Ask = ask) -> Script:
    """Do an operation within a script, each of its requests by `send`."""
    if isinstance(work, Request):
        return (yield from send(work)).answer
    reply: Reply | None = None
    while True:
        try:
            item = work.send(reply)
        except StopIteration as end:
            answer: Answer | None = end.value
            return answer
        reply = (yield from send(item)) if isinstance(item, Request) else (yield item)


CANCELLED = Answer(Outcome.CANCELLED)


class ScriptTotal:
    """Combines the replies of a script into one sample."""

    def __init__(self, began_ns: int) -> None:
        self.answer = Answer(Outcome.OK)  # the first that is not OK, else the last
        self._began_ns = began_ns
        self._replies: list[Reply] = []
        # Supplies status and body: the first that failed, else the last.
        self._decisive: Exchange | None = None

    def begin(self, now_ns: int) -> None:
        """Count from here on where nothing is sent: what was waited for before is no part of it."""
        self._began_ns = now_ns

    def add(self, reply: Reply) -> None:
        """Add the reply of another request."""
        self._replies.append(reply)
        if self.answer.outcome is Outcome.OK:
            self.answer = reply.answer
            self._decisive = reply.exchange

    def conclude(self, answer: Answer | None) -> None:
        """Take the script's own answer, unless a request failed."""
        if answer is not None and self.answer.outcome is Outcome.OK:
            self.answer = answer

    def cancel(self) -> None:
        """Mark it as stopped from outside."""
        self.answer = CANCELLED

    def exchange(self, now_ns: int) -> Exchange:
        """Return the script as a single exchange, from its first request's start to its last one's end.

        `now_ns` is the end of one that sent nothing.
        """
        if self._decisive is None:
            return Exchange(self._began_ns, 0, 0, now_ns, 0, b"", 0)
        parts = [reply.exchange for reply in self._replies]
        return Exchange(
            start_ns=parts[0].start_ns,
            connect_ns=sum(part.connect_ns for part in parts),
            first_byte_ns=parts[0].first_byte_ns,
            end_ns=max(part.end_ns for part in parts),
            status=self._decisive.status,
            body=self._decisive.body,
            response_bytes=sum(part.response_bytes for part in parts),
        )
