"""The contracts between operations, which know what to send, and clients, which send it; changing values.

Values that change from request to request are a pure function of seed, key and request number, at the end.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from itertools import accumulate, count
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote, urlencode

import msgspec
import numpy as np
import numpy.typing as npt

from benchctl.corpus.tables import key as mix_key
from benchctl.corpus.tables import mix
from benchctl.home import Home
from benchctl.load.transport import Answer, Exchange, Judge, Request
from benchctl.load.work.judges import UNDECODABLE, accepting, answerable, judge_of, shorten
from benchctl.plugin.session import PluginUse
from benchctl.results.plan import CorpusSpec, EngineName
from benchctl.results.samples import Outcome
from benchctl.track.model import Template
from benchctl.track.operations import Form, Operation, Varying, url_param
from benchctl.track.values import (
    EPOCH_UNITS_US,
    Choice,
    Date,
    Grid,
    Number,
    Placeholder,
    Pool,
    ValueSource,
    split_text,
)


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
    corpus: CorpusSpec | None = None  # the documents, where benchctl generates them
    # Files of the track's corpora of vectors, by name and format.
    data_sets: Mapping[tuple[str, str], Path] = field(default_factory=dict)
    home: Home | None = None  # keeps the exact neighbours of vectors; None where there are none
    assertions: bool = False
    plugin: PluginUse | None = None  # the track's Python plug-in, where it may be executed
    version: str = ""  # of the engine, as its node reports it; empty while none is up


@dataclass(frozen=True)
class Workload:
    """A task's operation, ready for all its clients."""

    program: Callable[[int], Program]  # what a client sends; clients are numbered from 0
    endless: bool = True  # whether it can be repeated indefinitely; indexing a corpus ends by itself
    # How many a task without iterations and time sends over all clients, where that is no matter of what is
    # left; None for as many as there are.
    requests: int | None = None
    # Of a log, when each of its requests is due, ns from the log's start, and what makes one by its number.
    due_ns: npt.NDArray[np.int64] | None = None
    make: Callable[[int], Request] | None = None
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

    def bodies(self, operation: Varying, template: Any, *, part: str = "", plain: bool = False) -> "Bodies":
        """Return the bodies of requests, JSON or plain text, with the operation's values.

        `part` separates several templates of an operation, when each is to have values of its own.
        """
        key = self.key + part
        return Bodies(template, operation.values, seed=self.context.seed, key=key, plain=plain)


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
        raise TypeError("a request of a script got no response")
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
        self.replies: list[Reply] = []
        # Supplies status and body: the first that failed, else the last.
        self._decisive: Exchange | None = None

    def begin(self, now_ns: int) -> None:
        """Count from here on where nothing is sent: what was waited for before is no part of it."""
        self._began_ns = now_ns

    def add(self, reply: Reply) -> None:
        """Add the reply of another request."""
        self.replies.append(reply)
        if self.answer.outcome is Outcome.OK:
            self.answer = reply.answer
            self._decisive = reply.exchange

    def join(self, others: "Iterable[ScriptTotal]") -> None:
        """Add the replies of scripts that ran at the same time, in the order in which they were asked."""
        replies = [reply for other in others for reply in other.replies]
        for reply in sorted(replies, key=lambda reply: reply.exchange.start_ns):
            self.add(reply)

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
            return Exchange(self._began_ns, 0, now_ns, 0, b"", 0)
        parts = [reply.exchange for reply in self.replies]
        return Exchange(
            start_ns=parts[0].start_ns,
            connect_ns=sum(part.connect_ns for part in parts),
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
    options = {name: getattr(operation, name) for name in (*form.query, *form.flags)}
    # 0 is a value, unlike other false ones.
    return {
        name: url_param(value)
        for name, value in options.items()
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
            answer = verdict(reply)
        except UNDECODABLE as err:
            return Answer(Outcome.BAD_BODY, reason=shorten(f"no progress in the response: {err}"))
        if answer is not None:
            return answer
        if number == tries:
            break
        yield period_s
    return late


def cannot(reason: str) -> Workload:
    """Return a workload that sends nothing, for the reason that tables show; the first refusal ends it."""
    return scripted(lambda: lacking(reason), endless=False)


def lacking(reason: str) -> Script:
    """Return an operation that sends nothing, for this reason."""
    yield from ()
    return Answer(Outcome.HTTP_ERROR, reason=reason, lacking=reason)


# Bodies whose values change from request to request. Nothing here depends on a library's distributions or the
# platform: random bits come from counters, draws and Zipf tables are integers, and dates are formatted from
# their fields.

# The positions that a request draws from one source: both ends of a range, or one position twice.
Positions: TypeAlias = tuple[int, ...]
Draw: TypeAlias = Callable[[int], Positions]
Render: TypeAlias = Callable[[int], bytes]
Show: TypeAlias = Callable[[Any], bytes]  # value -> its form in the encoded text

_WORD_BITS = 64
_GOLDEN = 0x9E3779B97F4A7C15  # SplitMix64's distance between counters
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZIPF_DIGITS = 24  # more than the 64 bits of a table
# Purposes of random bits; each has its own stream.
_PLACE, _WIDTH, _REPEAT, _RANK, _POOL_PLACE, _POOL_WIDTH = range(1, 7)


def _in_text(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else msgspec.json.encode(value)


def _in_string(value: Any) -> bytes:
    """A value within a JSON string."""
    return msgspec.json.encode(_in_text(value).decode())[1:-1]


class Bodies:
    """The bodies of one task's requests; thread-safe.

    For the same seed and key, sources of the same name have the same value in the same request: path and body
    agree, and the searches of a batch differ only if their keys do.

    Args:
        template: JSON with placeholders, accepted by `check_values`.
        values: name -> source; unused ones are not drawn.
        seed: of the run.
        key: what else the values depend on, such as the task's name.
        plain: whether the template is a text that goes out as it is.

    Raises:
        ValueError: If a placeholder has no value, or a source is invalid.
    """

    def __init__(
        self, template: Any, values: Mapping[str, ValueSource], *, seed: int, key: str, plain: bool = False
    ) -> None:
        self._values = values
        self._root = mix_key(seed, digest(key))
        self._order: dict[str, int] = {}  # name of a source -> its place among the draws
        self._draws: list[Draw] = []
        self._fixed = [b""]
        self._slots: list[tuple[int, int, int, Render]] = []  # place, source, end of a range, renderer
        for part in self._cut(template, _in_text) if plain else self._encoded(template):
            if isinstance(part, bytes):
                self._fixed[-1] += part
            else:
                self._slots.append((len(self._fixed), *part))
                self._fixed += [b"", b""]

    def encode(self, number: int) -> bytes:
        """Return the compact JSON or the text of one request; the same object if it has no placeholders.

        `number` is the request's, from 0, over all clients of the task.
        """
        if not self._slots:
            return self._fixed[0]
        drawn = [draw(number) for draw in self._draws]
        filled = self._fixed.copy()
        for place, source, end, render in self._slots:
            filled[place] = render(drawn[source][end])
        return b"".join(filled)

    def _encoded(self, template: Any) -> Iterator[bytes | tuple[int, int, Render]]:
        """The template's JSON, cut at its placeholders."""
        if isinstance(template, str):
            pieces = split_text(template)
            if len(pieces) == 1 and isinstance(pieces[0], Placeholder):
                yield self._slot(pieces[0], msgspec.json.encode)
                return
            yield b'"'
            yield from self._cut(template, _in_string)
            yield b'"'
        elif isinstance(template, Mapping):
            yield b"{"
            for place, (key, value) in enumerate(template.items()):
                yield (b"," if place else b"") + msgspec.json.encode(key) + b":"
                yield from self._encoded(value)
            yield b"}"
        elif isinstance(template, list | tuple):
            yield b"["
            for place, item in enumerate(template):
                yield b"," if place else b""
                yield from self._encoded(item)
            yield b"]"
        else:
            yield msgspec.json.encode(template)

    def _cut(self, text: str, show: Show) -> Iterator[bytes | tuple[int, int, Render]]:
        for piece in split_text(text):
            yield self._slot(piece, show) if isinstance(piece, Placeholder) else show(piece)

    def _slot(self, found: Placeholder, show: Show) -> tuple[int, int, Render]:
        source = self._values.get(found.name)
        if source is None or found.end not in source.ends:
            raise ValueError(f"'{found}' is not a known value")
        if found.name not in self._order:
            self._order[found.name] = len(self._draws)
            self._draws.append(_draw(source, mix_key(self._root, digest(found.name))))
        return self._order[found.name], source.ends.index(found.end), _renderer(source, show)


def zipf_table(size: int, alpha: float) -> list[int]:
    """Cumulative probabilities of Zipf's law for ranks 1 to `size`, in units of 2^-64; the last is 2^64.

    Rank k has weight k^-alpha (alpha 0 is uniform), by decimal arithmetic, whose ln and exp are correctly
    rounded by definition, unlike a C library's.
    """
    decimal = Context(prec=_ZIPF_DIGITS, traps=[])  # no traps: a hopeless rank's weight may underflow to 0
    exponent = Decimal(repr(-alpha))
    powers = (
        decimal.exp(decimal.multiply(exponent, decimal.ln(Decimal(rank)))) for rank in range(1, size + 1)
    )
    sums = list(accumulate(int(decimal.scaleb(power, _ZIPF_DIGITS)) for power in powers))
    return [(total << _WORD_BITS) // sums[-1] for total in sums]


def digest(text: str) -> int:
    """Return 64 bits of a text, for the key of random numbers."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def _word(stream: int, number: int) -> int:
    """64 random bits, those of `tables.words`."""
    return mix(stream + number * _GOLDEN)


def _draw(source: ValueSource, root: int) -> Draw:
    if isinstance(source, Choice):
        return _choose(source, mix_key(root, _PLACE))
    if source.pool is None:
        return _fresh(source.grid, root, _PLACE, _WIDTH)
    return _pooled(source.grid, source.pool, root)


def _choose(source: Choice, stream: int) -> Draw:
    # Before the index was asked, something stands for its terms.
    size = len(source.items) or 1
    if source.pick == "cycle":
        return lambda number: (number % size,)
    if source.pick == "random":
        return lambda number: (_word(stream, number) * size >> _WORD_BITS,)
    table = zipf_table(size, source.alpha)
    return lambda number: (bisect_right(table, _word(stream, number)),)


def _fresh(grid: Grid, root: int, for_place: int, for_width: int) -> Draw:
    """Draws from a grid: first the width, then one of the places where a range of that width fits.

    A word times a bound, shifted right, is uniform with a bias of at most bound / 2^64.
    """
    first, step, steps, narrowest, widest = grid
    places, widths = mix_key(root, for_place), mix_key(root, for_width)
    choices = widest - narrowest + 1
    if widest == 0:

        def draw_one(number: int) -> Positions:
            place = first + (_word(places, number) * (steps + 1) >> _WORD_BITS) * step
            return place, place

        return draw_one

    def draw(number: int) -> Positions:
        width = narrowest + (_word(widths, number) * choices >> _WORD_BITS)
        start = first + (_word(places, number) * (steps + 1 - width) >> _WORD_BITS) * step
        return start, start + width * step

    return draw


def _pooled(grid: Grid, pool: Pool, root: int) -> Draw:
    """Draws from a pool for its share of the requests, otherwise fresh ones."""
    members: dict[Positions, None] = {}
    fill = _fresh(grid, root, _POOL_PLACE, _POOL_WIDTH)
    for number in count():
        members[fill(number)] = None
        if len(members) == pool.size:
            break
    by_rank = list(members)
    table = zipf_table(pool.size, pool.alpha)
    fresh = _fresh(grid, root, _PLACE, _WIDTH)
    repeats, ranks = mix_key(root, _REPEAT), mix_key(root, _RANK)
    repeated_below = int(pool.share * 2.0**_WORD_BITS)

    def draw(number: int) -> Positions:
        if _word(repeats, number) < repeated_below:
            return by_rank[bisect_right(table, _word(ranks, number))]
        return fresh(number)

    return draw


def _renderer(source: ValueSource, show: Show) -> Render:
    if isinstance(source, Choice):
        return [show(item) for item in source.items or ("",)].__getitem__
    if isinstance(source, Number):
        # The nearest binary number prints as the decimal it stands for.
        scale = 10**source.decimals
        return lambda position: repr(position / scale).encode()
    if not isinstance(source, Date):
        return lambda position: b"%d" % position
    unit_us, date_format = EPOCH_UNITS_US.get(source.format), source.format
    if unit_us is not None:
        return lambda position: b"%d" % (position // unit_us)
    return lambda position: show((_EPOCH + timedelta(microseconds=position)).strftime(date_format))
