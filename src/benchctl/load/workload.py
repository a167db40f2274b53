"""The contracts between operations, which know what to send, and clients, which send it."""

import operator
import sys
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from itertools import count
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from benchctl.errors import BenchctlError
from benchctl.load.request import (
    UNDECODABLE,
    Answer,
    Exchange,
    Judge,
    Request,
    accepting,
    answerable,
    judge_of,
    shorten,
)
from benchctl.load.values import Bodies
from benchctl.plugin.session import PluginUse
from benchctl.results.plan import EngineName
from benchctl.results.samples import Outcome
from benchctl.track.model import Template
from benchctl.track.operations.common import Assertion, Cannot, Form, Operation, Retried, Varying, url_param


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
"""Items that a script yields."""

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


# What operations have in common: headers and deadlines, polling, retries, assertions, refusals.

DEFAULT_TIMEOUT_S = 60.0
# Merging or restoring an index takes as long as it takes, and its time is what is measured.
LONG_TIMEOUT_S = 4 * 3600.0
JSON = "application/json"
NDJSON = "application/x-ndjson"


class Envelope:
    """Makes the requests of one operation, with its headers, deadline and retries.

    `timeout_s` applies when the operation sets no deadline; the operation's own headers override `headers`.
    """

    def __init__(
        self,
        operation: Operation,
        *,
        content_type: str = JSON,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._timeout_s = timeout_s if operation.deadline_s is None else operation.deadline_s
        self._accepted = operation.accepted
        self._retries = operation.retry_on_429
        chosen = {"Content-Type": content_type, "Accept": JSON, **(headers or {})}
        if operation.opaque_id is not None:
            chosen["X-Opaque-Id"] = operation.opaque_id
        # Header names are case-insensitive.
        own = {name.lower() for name in operation.headers}
        kept = {name: value for name, value in chosen.items() if name.lower() not in own}
        self._headers = tuple(f"{name}: {value}" for name, value in {**kept, **operation.headers}.items())

    def request(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        judge: Judge | None = None,
        reads: Collection[str] = (),
        params: Mapping[str, str] | None = None,
        accepted: Collection[int] = (),
        searches: int = 0,
        weight: int = 1,
    ) -> Request:
        """Return one request.

        `path` is percent-encoded and may have a query, to which `params` are added. `judge` is by default
        that of the path, to which statuses of `accepted` are like 200; `reads` are further fields of the
        response that the operation needs. `searches` is by how much the node's own count of searches grows,
        `weight` the units of throughput.
        """
        if params:
            path = f"{path}{'&' if '?' in path else '?'}{urlencode(params)}"
        return Request(
            method=method,
            path=answerable(method, path, reads),
            body=body,
            headers=self._headers,
            timeout_s=self._timeout_s,
            judge=accepting(judge or judge_of(method, path), {*self._accepted, *accepted}),
            searches=searches,
            weight=weight,
            retries=self._retries,
        )


def with_body(request: Request, body: bytes, weight: int | None = None) -> Request:
    """Return the same request with another body and weight; spelt out, since it runs for every request."""
    return Request(
        request.method,
        request.path,
        body,
        request.headers,
        request.timeout_s,
        request.judge,
        request.searches,
        request.weight if weight is None else weight,
        request.retries,
    )


def own_query(operation: Operation, form: Form) -> dict[str, str]:
    """Return the query parameters that an operation's own keys amount to."""
    said = {name: getattr(operation, name) for name in (*form.query, *form.flags)}
    # 0 is a value, unlike other false ones.
    return {
        name: url_param(value)
        for name, value in said.items()
        if value or type(value) is int or name in form.flags
    }


Verdict = Callable[[Reply], Answer | None]
"""Good response -> the operation's answer; None: ask again."""

_STILL = Answer(Outcome.TIMEOUT, reason="still not done")


def poll(
    question: Request, verdict: Verdict, period_s: float, tries: int | None = None, late: Answer = _STILL
) -> Script:
    """Ask every `period_s` seconds until there is a verdict, the question fails, or no try is left."""
    for number in count(1):
        reply = yield from ask(question)
        if reply.answer.outcome is not Outcome.OK:
            return reply.answer
        try:
            found = verdict(reply)
        except UNDECODABLE as err:
            return Answer(Outcome.BAD_BODY, reason=shorten(f"no progress in the response: {err}"))
        if found is not None:
            return found
        if number == tries:
            break
        yield period_s
    return late


# These outcomes may change on a retry; what a node refuses, it refuses again.
_WRONG = frozenset({Outcome.BAD_BODY, Outcome.PARTIAL})


def with_retries(operation: Retried, workload: Workload) -> Workload:
    """Return the workload, retried as the operation says; unchanged when it says nothing.

    Every answered request is recorded as a success: only the operation's own sample tells how it ended.
    """
    if not operation.retry_until_success and not operation.retries:
        return workload

    def program(client: int) -> Program:
        inner = workload.program(client)

        def again() -> Script | None:
            first = inner()
            return None if first is None else _tries(operation, first, inner)

        return again

    return replace(workload, program=program)


def _tries(operation: Retried, work: Request | Script, inner: Program) -> Script:
    left = sys.maxsize if operation.retry_until_success else operation.retries
    while True:
        last: Reply | None = None

        def send(request: Request) -> Generator[Item, Reply | None, Reply]:
            nonlocal last
            last = yield from _send(request)
            return last

        answer = (yield from follow(work, send)) or (Answer(Outcome.OK) if last is None else last.answer)
        status = 0 if last is None else last.exchange.status
        if answer.outcome is Outcome.OK or not left or not _is_worth_it(operation, status, answer):
            return answer
        left -= 1
        yield operation.retry_wait_period
        following = inner()
        if following is None:
            return answer
        work = following


def _is_worth_it(operation: Retried, status: int, answer: Answer) -> bool:
    if answer.outcome is Outcome.TIMEOUT or status == HTTPStatus.REQUEST_TIMEOUT:
        return operation.retry_on_timeout or operation.retry_until_success
    wanted = operation.retry_on_error or operation.retry_until_success
    return wanted and answer.outcome in _WRONG


def _send(request: Request) -> Generator[Item, Reply | None, Reply]:
    """Send a request that is recorded as a success whatever its answer, but judge it all the same."""
    reply = yield from ask(msgspec.structs.replace(request, judge=_any_answer))
    if reply.exchange.failure is not None:
        return reply
    return Reply(reply.exchange, request.judge(reply.exchange.status, reply.exchange.body))


def _any_answer(_status: int, _body: bytes) -> Answer:
    return Answer(Outcome.OK)


_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}
_PROPERTIES: Mapping[str, Callable[[Answer], object]] = {
    "hits": lambda answer: answer.hits if answer.hits >= 0 else None,
    "hits_relation": lambda answer: "eq" if answer.hits_exact else "gte",
    "took": lambda answer: answer.took_ms if answer.took_ms >= 0 else None,
    "timed_out": lambda answer: answer.outcome is Outcome.TIMEOUT,
    "success": lambda answer: answer.outcome is Outcome.OK,
}
"""Metadata of every response, by Rally's names."""


def with_assertions(operation: Operation, workload: Workload) -> Workload:
    """Return the workload with the operation's assertions checked; unchanged when it has none.

    Raises:
        BenchctlError: If an assertion is about an unknown property.
    """
    if not operation.assertions:
        return workload
    for assertion in operation.assertions:
        if assertion.property not in _PROPERTIES:
            raise BenchctlError(
                f"operation '{operation.name}' asserts unknown property '{assertion.property}'",
                hint=f"properties are {', '.join(_PROPERTIES)}; to skip all assertions: --no-assertions",
            )

    def judged(judge: Judge) -> Judge:
        return lambda status, body: _checked(operation.assertions, judge(status, body))

    def script(work: Script) -> Script:
        answer = yield from work
        return None if answer is None else _checked(operation.assertions, answer)

    def program(client: int) -> Program:
        inner = workload.program(client)
        # The same request stays the same object: the wire need not load it again.
        before: tuple[Request, Request] | None = None

        def next_one() -> Request | Script | None:
            nonlocal before
            work = inner()
            if not isinstance(work, Request):
                return None if work is None else script(work)
            if before is None or before[0] is not work:
                before = (work, msgspec.structs.replace(work, judge=judged(work.judge)))
            return before[1]

        return next_one

    return replace(workload, program=program)


def _checked(assertions: Sequence[Assertion], answer: Answer) -> Answer:
    if answer.outcome is not Outcome.OK:
        return answer
    for assertion in assertions:
        found = _PROPERTIES[assertion.property](answer)
        if not _holds(found, assertion):
            reason = (
                f"expected {assertion.property} {assertion.condition} {assertion.value}, and it is {found}"
            )
            return msgspec.structs.replace(answer, outcome=Outcome.BAD_BODY, reason=reason)
    return answer


def _holds(found: object, assertion: Assertion) -> bool:
    try:
        return _COMPARE[assertion.condition](found, assertion.value)
    except TypeError:
        # An unknown value cannot be compared.
        return False


def open_cannot(operation: Cannot, _order: WorkOrder) -> Workload:
    """Unsupported by benchctl; or by the node, where it refuses the request that the type has."""
    if operation.wire is None:
        return cannot(operation.reason)
    probe = Envelope(operation).request(operation.wire.method, operation.wire.path)

    def script() -> Script:
        reply = yield from ask(probe)
        if reply.answer.outcome is not Outcome.OK:
            return reply.answer
        return (yield from lacking(operation.reason))

    return scripted(script, endless=False)


def cannot(reason: str) -> Workload:
    """Return a workload that sends nothing, for the reason that tables show; the first refusal ends it."""
    return scripted(lambda: lacking(reason), endless=False)


def lacking(reason: str) -> Script:
    """Return an operation that sends nothing, for this reason."""
    yield from ()
    return Answer(Outcome.HTTP_ERROR, reason=reason, lacking=reason)
