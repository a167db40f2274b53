"""A streaming parser of HotSpot's inlining log: what it compiled, what it inlined where, and why not."""

import functools
import html
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec
import zstandard

from benchctl.errors import BenchctlError

Outcome = Literal["inlined", "virtual", "refused"]
"""The way a callee's code is reached: at the call site, by dispatch, or by a direct call."""

# Beginnings of what HotSpot prints about a call; everything else is a reason not to inline it. From the logs
# of JDK 17, 21 and 25, and from HotSpot's sources: bytecodeInfo.cpp, doCall.cpp (C2) and
# c1_GraphBuilder.cpp (C1).
_FORCED = ("force inline", "accessor", "(intrinsic", "intrinsic")
_INLINED = (*_FORCED, "inline (hot)", "late inline succeeded")
_VIRTUAL = ("virtual call", "no static binding", "callee not monomorphic")
# Refusals of calls that HotSpot itself considers worth inlining: they hit a limit.
_LIMITS = (
    "hot method too big", "already compiled into a", "recursive inlining", "recursively inlining",
    "inlining too deep", "MaxForceInlineLevel", "size > DesiredMethodLimit", "total inlining greater",
    "NodeCountInlining", "live nodes", "out of nodes",
)  # fmt: skip


@functools.lru_cache(maxsize=4096)  # logs have a few dozen texts, hundreds of thousands of times
def outcome_of(words: str) -> Outcome:
    """Return the outcome in HotSpot's words, without the type profile."""
    if words == "inline" or words.startswith(_INLINED):
        return "inlined"
    return "virtual" if words.startswith(_VIRTUAL) else "refused"


# A log has as many calls as lines, and structs are created ten times as fast as dataclasses.
class Receiver(msgspec.Struct, frozen=True):
    """A class in a call site's type profile."""

    name: str  # of the class, with dots
    count: int  # its calls
    total: int  # calls in the profile, over all classes


class Call(msgspec.Struct, frozen=True, gc=False):
    """A line of a compilation's tree: one callee at one call site."""

    depth: int  # 0 for calls in the compiled method itself
    caller: str  # method that has the call
    parent: int  # position of the call that inlined the caller, in the same tree; -1 at depth 0
    bci: int  # of the call in the caller's bytecode
    callee: str  # `package.Class::method`
    size: int | None  # of the callee's bytecode, bytes; None if its class was not loaded
    outcome: Outcome
    text: str  # HotSpot's complete words about it
    # of the site's type profile, which HotSpot prints once per site, after its last callee
    receivers: tuple[Receiver, ...] = ()


class Tree(msgspec.Struct, frozen=True):
    """The calls that were inlined into a compilation."""

    calls: tuple[Call, ...]  # in HotSpot's order, callers before the calls in them
    unread: tuple[str, ...] = ()  # lines that should have been part of it and could not be parsed


CompilationKey = tuple[int, bool]
"""The id, and whether it is an on-stack replacement, which some JVMs count separately."""


class Compilation(msgspec.Struct, frozen=True, gc=False):
    """The head of a compilation."""

    id: int  # HotSpot's; on-stack replacements may share ids with methods
    stamp_ms: int  # when it began, milliseconds since the JVM started
    level: int  # 1 to 3 are C1, 4 is C2; 0 for wrappers of native methods
    method: str  # the compiled one, root of the tree
    size: int | None = None  # of its bytecode, bytes; None for a native method
    osr_bci: int | None = None  # where a loop is entered by on-stack replacement
    # as printed: % on-stack replacement, s synchronized, ! exception handlers, b blocking, n native
    flags: str = ""

    @property
    def key(self) -> CompilationKey:
        """HotSpot's own identification."""
        return self.id, "%" in self.flags


# Addresses of hidden classes differ between JVMs: `Foo$$Lambda/0x00007f..::m`, `Foo$$Lambda$12/0x00..::m`.
_HIDDEN = re.compile(r"(?<=\$\$Lambda)(?:\$\d+)?/0x[0-9a-f]+|/0x[0-9a-f]+")
LIBRARY = ("java.", "javax.", "jdk.", "sun.", "com.sun.")
"""Beginnings of the names of the Java library."""


def simple(method: str) -> str:
    """Return `Class::method` without the package and without addresses."""
    holder, colons, name = stable(method).partition("::")
    return f"{holder.rpartition('.')[2]}{colons}{name}"


@functools.lru_cache(maxsize=1 << 15)  # every call of a log names a method, usually one of a few
def stable(method: str) -> str:
    """Return the name without the addresses of hidden classes: the same in every JVM."""
    return _HIDDEN.sub("", method)


def own_name(method: str) -> str:
    """Return the method's name without its class."""
    return method.rpartition("::")[2]


def names(method: str, asked: str) -> bool:
    """Return whether a user's `asked` names the method `package.Outer$Inner::method`.

    Accepts the same, or a suffix that begins with a class: `Outer$Inner::method`, `Inner::method`; or
    `method` or `::method` alone.
    """
    name = stable(method)
    asked = asked.removeprefix("::")
    return name == asked or (name.endswith(asked) and name[-len(asked) - 1] in ".$:/")


def cut_tree(calls: Sequence[Call], asked: str, *, within: bool = False) -> list[tuple[int, Call]]:
    """Return what matters of a tree: (position in the whole tree, call), in order.

    Kept are all calls of methods outside the Java library except accessors, intrinsics and forced inlining;
    virtual calls; calls refused because of a compiler limit; calls of `asked`, as `names` takes it; and the
    path to each of them. `within` keeps only calls of `asked`, and those in it.
    """
    inside: list[bool] = []
    for call in calls:
        below = call.parent >= 0 and inside[call.parent]
        inside.append(not within or below or names(call.callee, asked))
    kept: set[int] = set()
    for at in range(len(calls) - 1, -1, -1):
        if at in kept or (inside[at] and _matters(calls[at], asked)):
            kept |= {at, calls[at].parent}
    return [(at, calls[at]) for at in sorted(kept - {-1})]


def _matters(call: Call, asked: str) -> bool:
    if names(call.callee, asked) or call.outcome == "virtual" or call.text.startswith(_LIMITS):
        return True
    return not call.callee.startswith(LIBRARY) and not call.text.startswith(_FORCED)


# Lines of a log, parsed one by one.

# Possessive quantifiers where possible, against backtracking.
_CALL = re.compile(
    rb"( *+[ sm!]*+)@ (-?\d++) ++([^ ]+::[^ ]++)(?: \((?:(\d++) bytes|not loaded)\))?(?: ++(.*+))?"
).fullmatch
# Stamp, id, flags, level; then `A::b (56 bytes)`, `A::b @ 7 (56 bytes)` for on-stack replacement,
# `A::b (native)`, `A::b (native)   (static)`, or the same with the fate of an earlier compilation.
_HEAD = re.compile(
    rb" *+(\d++) ++(\d++) ([% ][s ][! ][b ][n ]) *+([0-4-]) ++"
    rb"(?:(\S+::\S++)(?: @ (-?\d++))?+ \((?:(\d++) bytes|native)\)(?: ++\(static\))?+ *+$|(.++))"
).fullmatch
_THREAD = re.compile(rb"<writer thread='(\d++)'/>").fullmatch
_OF_TREE = re.compile(rb"[ sm!]*+(?:@(?: -?\d| ?$)|\\->|\\-&gt;)").match
_PROFILE = re.compile(rb"\\-(?:>|&gt;) TypeProfile \((\d+)/(\d+) counts\) = (\S+)")
_CHANGED = re.compile(r" *callee changed to +(\S+::\S+) \((\d+) bytes\) *")
_REFUSED = "failed to inline: "  # before the reason, since JDK 25
# The remainder of a tree's line that another thread interrupted.
_WRAPPED = re.compile(rb" {3}[a-z(]| ?\S* ?\((?:\d+ bytes|not loaded)\)(?:   [a-z(]|$)").match
_NOT_ENTRANT = b"   made not entrant"
_PACKAGE = re.compile(r"/(?!0x)")
# Half of a log's lines repeat earlier ones exactly.
_REMEMBERED_LINES = 1 << 16


class Callee(msgspec.Struct, frozen=True, gc=False):
    """A method that was tried at a call site; see `Call`."""

    method: str
    size: int | None
    outcome: Outcome
    words: str


class CallLine(msgspec.Struct, frozen=True, gc=False):
    """A call's line."""

    raw: bytes  # the line
    column: int  # of its `@`, which determines the depth
    bci: int  # of the call
    callees: tuple[Callee, ...]  # one, or since JDK 25 all that were tried at the site
    receivers: tuple[Receiver, ...]  # on the same line, since JDK 25


class TextLine(msgspec.Struct, frozen=True, gc=False):
    """A line of a type profile, or any other."""

    raw: bytes  # the line
    receivers: tuple[Receiver, ...] = ()  # that it names; none if it is not a type profile
    of_tree: bool = False  # whether it looks like part of a tree


class ThreadLine(msgspec.Struct, frozen=True, gc=False):
    """A switch of the writing thread."""

    thread: int


class GivenUpLine(msgspec.Struct, frozen=True, gc=False):
    """A compilation that failed, or is no longer entered."""

    key: CompilationKey  # which
    stamp_ms: int  # when, milliseconds since the JVM started
    entered_before: bool  # whether it was in use until then; False when it was skipped


TreeLine = CallLine | TextLine
Line = TreeLine | Compilation | ThreadLine | GivenUpLine


def parse_line(raw: bytes) -> Line:
    """Parse a line without its end."""
    if (call := _CALL(raw)) is not None:
        callees, receivers = _tried(call[3], call[4], call[5] or b"")
        return CallLine(raw, call.end(1), int(call[2]), callees, receivers)
    if (head := _HEAD(raw)) is not None:
        return _compilation(head)
    if (thread := _THREAD(raw)) is not None:
        return ThreadLine(int(thread[1]))
    return TextLine(raw, _receivers(raw), _OF_TREE(raw) is not None)


def foreign_lines(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines that are not the log's, such as an engine's own on standard output."""
    parse = functools.lru_cache(maxsize=_REMEMBERED_LINES)(parse_line)
    for raw in lines:
        line = parse(raw.rstrip(b"\r\n"))
        if isinstance(line, TextLine) and not line.of_tree and line.raw and not _WRAPPED(raw):
            yield raw


def _text(raw: bytes) -> str:
    """Decode bytes of a log, whose file is XML; invalid UTF-8 is shown as escapes."""
    return html.unescape(raw.decode("utf-8", "backslashreplace"))


def _dotted(name: bytes) -> str:
    """Return a class or method with dots: unloaded classes and receivers are printed with slashes."""
    return _PACKAGE.sub(".", _text(name))


def _compilation(head: re.Match[bytes]) -> Compilation | GivenUpLine:
    stamp, number, flags, level, method, bci, size, given_up = head.groups()
    if given_up is not None:
        return GivenUpLine((int(number), b"%" in flags), int(stamp), _NOT_ENTRANT in given_up)
    return Compilation(
        int(number),
        int(stamp),
        0 if level == b"-" else int(level),
        _text(method),
        None if size is None else int(size),
        None if bci is None else int(bci),
        flags.replace(b" ", b"").decode(),
    )


@functools.lru_cache(maxsize=1 << 14)  # the same callee and words, at many call sites
def _tried(name: bytes, size: bytes | None, words: bytes) -> tuple[tuple[Callee, ...], tuple[Receiver, ...]]:
    """The callees of a call's line, and the receivers on it."""
    # JDK 25 prints all that was tried at one site on one line.
    first, *rest = _CHANGED.split(_text(_PROFILE.sub(b"", words)))
    tried = [_callee(_dotted(name), int(size) if size else None, first)]
    tried += [_callee(rest[at], int(rest[at + 1]), rest[at + 2]) for at in range(0, len(rest), 3)]
    # A target without words is the declared method again, to which the site was reset.
    return tuple(callee for callee in tried if callee.words) or (tried[0],), _receivers(words)


def _callee(method: str, size: int | None, said: str) -> Callee:
    words = said.strip().removeprefix(_REFUSED)
    return Callee(method, size, outcome_of(words), words)


def _receivers(raw: bytes) -> tuple[Receiver, ...]:
    """The receivers of a type profile; several per line since JDK 25."""
    return tuple(
        Receiver(_dotted(name), int(count), int(total)) for count, total, name in _PROFILE.findall(raw)
    )


def _add_piece(lines: list[TreeLine], piece: Sequence[TreeLine]) -> None:
    """Add lines to a tree; the first may continue the last, if another thread interrupted that."""
    first = piece[0]
    is_continuation = isinstance(first, TextLine) and not first.receivers
    if lines and (is_continuation or lines[-1].raw.isspace()):
        raw = lines[-1].raw + first.raw
        whole = parse_line(raw)
        lines[-1] = whole if isinstance(whole, CallLine | TextLine) else TextLine(raw)
        lines += piece[1:]
    else:
        lines += piece


def _nested(lines: Iterable[TreeLine], root: str) -> Tree:
    """Return the calls of one tree's lines, each with its parent; `root` is the compiled method.

    The depth of a call follows from its column, compared with preceding ones.
    """
    calls: list[Call] = []
    unread: list[str] = []
    outer: list[tuple[int, int, str]] = []  # column, parent and caller of each outer level
    column, depth, parent, caller = -1, 0, -1, root  # of the calls on this level
    callee = root
    for line in lines:
        if not isinstance(line, CallLine):
            if line.receivers and calls:
                _add_receivers(calls, line.receivers)
            elif not line.raw.isspace():
                unread.append(_text(line.raw))
            continue
        if line.column > column:
            if calls:
                outer.append((column, parent, caller))
                depth, parent, caller = depth + 1, len(calls) - 1, callee
        else:
            while outer and outer[-1][0] >= line.column:
                depth, (_, parent, caller) = depth - 1, outer.pop()
        column = line.column
        for tried in line.callees:
            callee = tried.method
            calls.append(
                Call(depth, caller, parent, line.bci, callee, tried.size, tried.outcome, tried.words)
            )
        if line.receivers:
            _add_receivers(calls, line.receivers)
    return Tree(tuple(calls), tuple(unread))


def _add_receivers(calls: list[Call], more: tuple[Receiver, ...]) -> None:
    calls[-1] = msgspec.structs.replace(calls[-1], receivers=calls[-1].receivers + more)


# One pass over a log: a compilation ends when the thread that printed it begins another.


class Entry(msgspec.Struct):
    """A compilation with the lines of its tree."""

    number: int  # position among the compilations of its log, from 0
    compilation: Compilation  # its head
    lines: list[TreeLine]  # in order, parsed but not nested

    def tree(self) -> Tree:
        """The tree of what was inlined into it."""
        return _nested(self.lines, self.compilation.method)

    def callees(self) -> Iterator[str]:
        """Return the methods that it calls, inlined or not, with repetition."""
        return (callee.method for line in self.lines if isinstance(line, CallLine) for callee in line.callees)


@dataclass
class Account:
    """Statistics of a log's lines."""

    lines: int = 0  # all
    of_trees: int = 0  # lines of trees
    compilations: int = 0  # started ones; a retry counts once
    heads: int = 0  # lines that begin a compilation
    others: int = 0  # the XML around the log, reports of failed compilations, an engine's own lines
    names_threads: bool = False  # whether it tells which thread wrote what
    # when compilations were made not entrant, milliseconds since the JVM started
    given_up_ms: dict[CompilationKey, int] = field(default_factory=dict)


def read_entries(chunks: Iterable[bytes], account: Account) -> Iterator[Entry]:
    """Parse a log, cut anywhere into chunks, filling `account`; keeps one tree per thread in memory."""
    reader = _Reader(account)
    rest = b""
    for chunk in chunks:
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()
        yield from reader.take(lines)
    if rest:
        yield from reader.take([rest])
    yield from reader.end()


class _Reader:
    def __init__(self, account: Account) -> None:
        self._account = account
        self._parse = functools.lru_cache(maxsize=_REMEMBERED_LINES)(parse_line)
        self._piece: list[TreeLine] = []  # of a tree, as far as one thread has written it at a time
        self._thread: int | None = None
        self._current: dict[int | None, Entry] = {}  # by thread
        self._switched = False  # right after a switch of threads

    def take(self, lines: list[bytes]) -> Iterator[Entry]:
        """Parse lines; yield the compilations that ended in them."""
        self._account.lines += len(lines)
        piece = self._piece
        for line in map(self._parse, lines):
            if isinstance(line, CallLine):
                piece.append(line)
            elif (ended := self._event(line)) is not None:
                yield ended

    def end(self) -> Iterator[Entry]:
        """Yield the compilations that are still open."""
        self._end_piece()
        yield from sorted(self._current.values(), key=lambda entry: entry.number)

    def _event(self, line: Line) -> Entry | None:
        """Take any line but a call's; return the compilation that it ends."""
        switched, self._switched = self._switched, isinstance(line, ThreadLine)
        if isinstance(line, TextLine):
            raw = line.raw
            is_rest = switched and raw and not raw.startswith(b"<")
            if line.of_tree or is_rest or (raw.isspace() and self._thread in self._current):
                # C1 prints a line in several writes: if another thread interrupts, its indentation may be
                # separate from the rest after the next switch.
                self._piece.append(line)
                return None
            if not raw or raw.isspace():
                return None
        self._end_piece()
        if isinstance(line, Compilation):
            return self._begin(line)
        self._account.others += 1
        if isinstance(line, ThreadLine):
            self._thread, self._account.names_threads = line.thread, True
        elif isinstance(line, GivenUpLine) and line.entered_before:
            self._account.given_up_ms.setdefault(line.key, line.stamp_ms)
        return None

    def _begin(self, compilation: Compilation) -> Entry | None:
        account, ended = self._account, self._current.get(self._thread)
        account.heads += 1
        if ended is not None and ended.compilation.key == compilation.key:
            # C2 retries with fewer optimizations: only the last attempt counts.
            self._current[self._thread] = Entry(ended.number, compilation, [])
            return None
        self._current[self._thread] = Entry(account.compilations, compilation, [])
        account.compilations += 1
        return ended

    def _end_piece(self) -> None:
        entry = self._current.get(self._thread)
        if entry is None:
            self._account.others += len(self._piece)
        elif self._piece:
            _add_piece(entry.lines, self._piece)
            self._account.of_trees += len(self._piece)
        self._piece.clear()


LOG_NAME = "jvm.log"
PACKED_SUFFIX = ".zst"
_CHUNK_BYTES = 1 << 18


class InliningLog:
    """The compilations and inlining of HotSpot, from bytes or a file: text, or compressed as `.zst`.

    Iterating is one pass. It yields a compilation when the thread that printed it begins another: not quite
    in the order of `number`.
    """

    def __init__(self, source: bytes | Path) -> None:
        self._source = source
        self._account: Account | None = None

    def __iter__(self) -> Iterator[Entry]:
        """Yield all compilations.

        Raises:
            BenchctlError: If the file cannot be read or decompressed, is truncated, or has several threads'
                lines without saying whose they are.
        """
        account = Account()
        with ExitStack() as stack:
            try:
                yield from read_entries(self._chunks(stack), account)
            except (OSError, zstandard.ZstdError) as err:
                reason = (err.strerror if isinstance(err, OSError) else "") or str(err)
                raise BenchctlError(f"cannot read {self._source!s}: {reason}") from err
        if account.compilations > 1 and not account.names_threads:
            raise BenchctlError(
                f"{self._source!s} does not identify the threads that wrote its lines",
                hint="let the JVM write it: -XX:+LogVMOutput -XX:LogFile=jvm.log",
            )
        self._account = account

    @property
    def account(self) -> Account:
        """Statistics of the log; free after a pass."""
        if self._account is None:
            for _ in self:
                pass
        return self._account or Account()

    def given_up_ms(self, compilation: Compilation) -> int | None:
        """Return when a compilation was made not entrant, ms since the JVM started; None if never."""
        return self.account.given_up_ms.get(compilation.key)

    def mentions(self, method: str) -> list[Entry]:
        """Return the compilations of a method, as `names` takes it, and those that call it, oldest first."""
        meant = functools.cache(functools.partial(names, asked=method))
        entries = (entry for entry in self if any(map(meant, (entry.compilation.method, *entry.callees()))))
        return sorted(entries, key=lambda entry: entry.number)

    def _chunks(self, stack: ExitStack) -> Iterator[bytes]:
        if isinstance(self._source, bytes):
            return iter([self._source])
        source = stack.enter_context(self._source.open("rb"))
        pieces = iter(functools.partial(source.read, _CHUNK_BYTES), b"")
        return _unpacked(pieces) if self._source.suffix == PACKED_SUFFIX else pieces


def _unpacked(packed: Iterable[bytes]) -> Iterator[bytes]:
    """Decompress frame after frame; a stream reader would silently accept a truncated one."""
    frame = zstandard.ZstdDecompressor().decompressobj()
    for piece in packed:
        rest = piece
        while rest:
            if frame.eof:
                frame = zstandard.ZstdDecompressor().decompressobj()
            yield frame.decompress(rest)
            rest = frame.unused_data
    if not frame.eof:
        raise zstandard.ZstdError("it is cut off")
