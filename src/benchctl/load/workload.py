"""The contracts between operations, which know what to ask, and clients, which ask it."""

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol
from urllib.parse import quote

from benchctl.load.request import Answer, Exchange, Request
from benchctl.load.values import Bodies
from benchctl.plugin.session import PluginUse
from benchctl.results.plan import EngineName
from benchctl.results.samples import Outcome
from benchctl.track.model import Template
from benchctl.track.operations.common import Operation, Varying


@dataclass(frozen=True)
class Reply:
    """What came back for one request of a script."""

    exchange: Exchange
    answer: Answer


Pause = float
"""Seconds that a script waits before it goes on."""


@dataclass(frozen=True)
class Together:
    """Scripts that run at the same time, each request over whichever connection is free."""

    scripts: "tuple[Script, ...]"


Send = Callable[[Request], Reply]
"""Sends a request over the client's connection, keeps its sample, and gives what came back."""


@dataclass(frozen=True)
class Driven:
    """Code that sends its requests itself, one after the other, and cannot yield them.

    Attributes:
        run: called with what sends a request, and with what tells whether the client is to end. What became
            of its requests is for the code to judge: the script that yielded it says how the whole ended.
    """

    run: Callable[[Send, Callable[[], bool]], None]


Item = Request | Pause | Together | Driven
"""What a script yields."""

Script = Generator[Item, Reply | None, Answer | None]
"""Several requests as one operation: yields each and is sent its reply; None after a pause or driven code.

What scripts that ran together came to is the reply to them: their answer is OK when all of theirs were.

Its return value is the answer of the whole; None takes the last one. A script ends at its first failed
request unless it knows better; whoever runs it records every request, and the whole.
"""


class Program(Protocol):
    """What one client asks, one operation after the other."""

    def __call__(self) -> Request | Script | None:
        """The next operation, encoded; None when there are no more."""
        ...


@dataclass(frozen=True)
class Source:
    """One file of documents.

    Attributes:
        open: blocks of its bytes, which may end anywhere.
        document_count: how many documents it holds.
        corpus: the name of its corpus.
        index: where its documents go; None when their own lines say so, or a data stream is meant.
        data_stream: the same for a data stream.
        type: of its documents, for nodes old enough to have types.
        has_actions: whether a line before each document says what to do with it.
    """

    open: Callable[[], Iterator[bytes]]
    document_count: int
    corpus: str = ""
    index: str | None = None
    data_stream: str | None = None
    type: str | None = None
    has_actions: bool = False


@dataclass(frozen=True)
class WorkContext:
    """What an operation needs to know of where it runs.

    Attributes:
        index_name: the track's index, for operations that name none.
        index_body: settings and mappings of it.
        seed: of the run.
        documents: opens the corpus: blocks of bytes, one document a line; None where there is none.
        document_count: of the corpus.
        engine: whose paths differ from the other's for SQL.
        indices: settings and mappings of all the track's indices, by name; empty for those of the only one.
        data_streams: names of the track's.
        templates: the track's, of all kinds.
        sources: the corpora's files, where there is more than one stream of documents for one index.
        assertions: whether answers have to be as operations assert.
        plugin: the track's Python plug-in, where it may be executed.
        version: of the engine, as its node says; empty while none is up.
    """

    index_name: str
    index_body: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    documents: Callable[[], Iterator[bytes]] | None = None
    document_count: int = 0
    engine: EngineName = "elasticsearch"
    indices: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    data_streams: tuple[str, ...] = ()
    templates: tuple[Template, ...] = ()
    sources: tuple[Source, ...] = ()
    assertions: bool = False
    plugin: PluginUse | None = None
    version: str = ""


class Workload(Protocol):
    """One task's operation, ready to be asked by all its clients.

    Attributes:
        endless: whether it can be asked as often as one likes; a corpus that is sent ends by itself.
        connections: how many a client needs.
    """

    endless: bool
    connections: int

    def program(self, client: int) -> Program:
        """What one client asks.

        Args:
            client: which client, from 0.
        """
        ...

    def close(self) -> None:
        """Let go of what it holds, such as the open corpus."""
        ...


@dataclass(frozen=True)
class WorkOrder:
    """For whom an operation is made ready.

    Attributes:
        context: where it runs.
        clients: how many there are.
        key: the task's own, on which its values depend.
    """

    context: WorkContext
    clients: int
    key: str

    def index(self, name: str | None) -> str:
        """An index, or the track's own, as it stands in a path."""
        return quote(name or self.context.index_name or "_all", safe=",*")

    def bodies(self, operation: Varying, template: Any, *, part: str = "") -> Bodies:  # noqa: ANN401 - any JSON
        """What requests carry, with the operation's values.

        Args:
            operation: whose values.
            template: JSON or text.
            part: which of several, when each is to have values of its own.
        """
        return Bodies(template, operation.values, seed=self.context.seed, key=self.key + part)


Opener = Callable[[Any, WorkOrder], Workload]
"""Makes the work of one class of operations: what it takes is what tables of openers have as keys."""

OpenWorkload = Callable[[Operation, WorkOrder], Workload]
"""Makes the work of any operation, for those that hold others: composites, and plug-ins that call them."""


class Repeated:
    """The same request for everybody every time: the wire need not load it again.

    Args:
        request: what is asked.
    """

    def __init__(self, request: Request) -> None:
        self.endless = True
        self.connections = 1
        self._request = request

    def program(self, client: int) -> Program:  # noqa: ARG002 - all clients ask alike
        """What one client asks."""
        return lambda: self._request

    def close(self) -> None:
        """Nothing is held."""


class Numbered:
    """Another request or script every time, by its number over all clients of the task.

    Args:
        make: request number -> what is asked.
        clients: client c of n asks for the numbers c, c + n, c + 2n and so on, whoever is faster.
    """

    def __init__(self, make: Callable[[int], Request | Script], clients: int) -> None:
        self.endless = True
        self.connections = 1
        self._make = make
        self._clients = clients

    def program(self, client: int) -> Program:
        """What one client asks."""
        numbers = count(client, self._clients)
        make = self._make
        return lambda: make(next(numbers))

    def close(self) -> None:
        """Nothing is held."""


def ask(request: Request) -> Generator[Item, Reply | None, Reply]:
    """Send a request within a script: `yield from` it, and have the reply.

    Raises:
        TypeError: whoever runs the script sent no reply.
    """
    reply = yield request
    if reply is None:
        raise TypeError("a request of a script was not replied to")
    return reply


# An operation of several requests as one sample: when it began and ended, and what came of it.

CANCELLED = Answer(Outcome.CANCELLED)


class Whole:
    """An operation of several requests, put together from their replies.

    Args:
        began_ns: when it began, for one that sends nothing.

    Attributes:
        answer: the first that was not well, else the last.
    """

    def __init__(self, began_ns: int) -> None:
        self.answer = Answer(Outcome.OK)
        self._began_ns = began_ns
        self._replies: list[Reply] = []
        # Whose status and body speak for the whole: the first that failed, else the last.
        self._decisive: Exchange | None = None

    def add(self, reply: Reply) -> None:
        """One more of its requests."""
        self._replies.append(reply)
        if self.answer.outcome is Outcome.OK:
            self.answer = reply.answer
            self._decisive = reply.exchange

    def conclude(self, answer: Answer | None) -> None:
        """What the script says of the whole; by default its first failure, or its last reply."""
        if answer is not None and self.answer.outcome is Outcome.OK:
            self.answer = answer

    def cancel(self) -> None:
        """It was ended from outside."""
        self.answer = CANCELLED

    def exchange(self, now_ns: int) -> Exchange:
        """All of it as if it were one request, from the first one's start to the last one's end.

        Args:
            now_ns: the end of one that sent nothing.
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
