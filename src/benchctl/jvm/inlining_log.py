"""HotSpot's inlining log, read as a stream: what it compiled, what it inlined where, and why not."""

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path

import msgspec
import zstandard

from benchctl.errors import BenchctlError
from benchctl.jvm.inlining_tree import (
    C2_LEVEL,
    Call,
    Compilation,
    CompilationKey,
    Fate,
    Receiver,
    Tree,
    fate_of,
    names,
)

# The XML file that HotSpot writes has its text escaped, standard output has not.
_ENTITIES = ((b"&lt;", b"<"), (b"&gt;", b">"), (b"&apos;", b"'"), (b"&quot;", b'"'), (b"&amp;", b"&"))

# Repetition is possessive where it can be: no line is gone over twice.
_CALL = re.compile(rb"( *+[ sm!]*+)@ (-?\d++) ++(.++)").fullmatch
_CALLEE = re.compile(rb"([^ ]+::[^ ]++)(?: \((?:(\d++) bytes|not loaded)\))?(?: ++(.*+))?").fullmatch
# Stamp, id, flags, level; then `A::b (56 bytes)`, `A::b @ 7 (56 bytes)` where a loop is entered,
# `A::b (native)`, `A::b (native)   (static)`, or the same with what became of an earlier compilation.
_HEAD = re.compile(
    rb" *+(\d++) ++(\d++) ([% ][s ][! ][b ][n ]) *+([0-4-]) ++"
    rb"(?:(\S+::\S++)(?: @ (-?\d++))?+ \((?:(\d++) bytes|native)\)(?: ++\(static\))?+ *+\r?+$|(.++))"
).fullmatch
_THREAD = re.compile(rb"<writer thread='(\d++)'/>").fullmatch
_OF_TREE = re.compile(rb"[ sm!]*+(?:@ -?\d|\\->|\\-&gt;)").match
_PROFILE = re.compile(rb"\\-(?:>|&gt;) TypeProfile \((\d+)/(\d+) counts\) = (\S+)")
_CHANGED = re.compile(r" *callee changed to +(\S+::\S+) \((\d+) bytes\) *")
# A line of a tree that another thread cut: its end, as it is left behind.
_WRAPPED = re.compile(rb" {3}[a-z(]| ?\S* ?\((?:\d+ bytes|not loaded)\)(?:   [a-z(]|$)").match
_SPACES = re.compile(r" {2,}")
_NOT_ENTRANT = b"   made not entrant"

# Words that only C2 says of a call; standard output does not say which compiler's tree a line belongs to.
_C2_WORDS = (
    b"(hot)", b"TypeProfile", b"   too big", b"call site", b"virtual call", b"already compiled",
    b"hot method", b"NodeCount", b"(intrinsic", b"accessor", b"recursive inlining is", b"never executed",
)  # fmt: skip


class Callee(msgspec.Struct, frozen=True, gc=False):
    """A method that was tried at a call site.

    Attributes:
        method: its name.
        size: of its bytecode, bytes; None where its class was not loaded.
        fate: what became of it.
        words: the same in HotSpot's.
    """

    method: str
    size: int | None
    fate: Fate
    words: str


class CallLine(msgspec.Struct, frozen=True, gc=False):
    """A call's line.

    Attributes:
        raw: the line.
        column: of its `@`, which tells how deep it is.
        bci: of the call.
        callees: one, or since JDK 25 all that were tried at the site.
        receivers: that stood on the same line, since JDK 25.
        by_c2: whether C1 never says this.
    """

    raw: bytes
    column: int
    bci: int
    callees: tuple[Callee, ...]
    receivers: tuple[Receiver, ...]
    by_c2: bool


class TextLine(msgspec.Struct, frozen=True, gc=False):
    """A line of a type profile, or any other.

    Attributes:
        raw: the line.
        receivers: that it names; none if it is not a type profile.
        of_tree: whether it looks like a tree's line.
    """

    raw: bytes
    receivers: tuple[Receiver, ...]
    of_tree: bool

    @property
    def by_c2(self) -> bool:
        """Whether C1 never says this."""
        return bool(self.receivers)


class ThreadLine(msgspec.Struct, frozen=True, gc=False):
    """From here on another thread writes.

    Attributes:
        thread: which.
    """

    thread: int


class GivenUpLine(msgspec.Struct, frozen=True, gc=False):
    """A compilation came to nothing, or is no longer entered.

    Attributes:
        key: which.
        stamp_ms: when, milliseconds since the JVM started.
        entered_before: whether it was in use until then; False when it was skipped.
    """

    key: CompilationKey
    stamp_ms: int
    entered_before: bool


TreeLine = CallLine | TextLine
Line = TreeLine | Compilation | ThreadLine | GivenUpLine


class Lines(dict[bytes, Line]):
    """Lines by their bytes, each read when it is first asked for.

    Half of a log's lines are to the byte what others were before. What is remembered is bounded: when there
    is too much of it, it begins anew.

    Args:
        most: lines that are remembered.
    """

    def __init__(self, most: int = 1 << 16) -> None:
        self._most = most
        self._told = _ToldByWords()

    def __missing__(self, raw: bytes) -> Line:
        if len(self) >= self._most:
            self.clear()
            self._told.clear()
        line: Line
        if (call := _CALL(raw)) is not None and (told := self._told[call[3]]) is not None:
            line = CallLine(raw, call.end(1), int(call[2]), told.callees, told.receivers, told.by_c2)
        elif (head := _HEAD(raw)) is not None:
            return _compilation(head)  # no other is the same
        elif raw.endswith(b"\r"):
            return self[raw.rstrip(b"\r")]
        elif (thread := _THREAD(raw)) is not None:
            line = ThreadLine(int(thread[1]))
        else:
            line = TextLine(raw, _receivers(raw), _OF_TREE(raw) is not None)
        self[raw] = line
        return line

    def of_tree(self, raw: bytes) -> TreeLine:
        """A line that is known to be a tree's."""
        line = self[raw]
        return line if isinstance(line, CallLine | TextLine) else TextLine(raw, (), of_tree=False)


class _Told(msgspec.Struct, frozen=True, gc=False):
    """What a call's line says behind the bci."""

    callees: tuple[Callee, ...]
    receivers: tuple[Receiver, ...]
    by_c2: bool


class _ToldByWords(dict[bytes, _Told | None]):
    """The same, by how it stands there; None where it is not a call after all."""

    def __missing__(self, raw: bytes) -> _Told | None:
        told = self[raw] = _told(raw)
        return told


def foreign_lines(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Those of these lines that are not the log's, such as an engine's own on the same standard output."""
    read = Lines()
    for raw in lines:
        line = read[raw.rstrip(b"\r\n")]
        if isinstance(line, TextLine) and not line.of_tree and line.raw and not _WRAPPED(raw):
            yield raw


def text(raw: bytes) -> str:
    """Bytes of a log as text, unescaped; what is not UTF-8 stays visible."""
    if b"&" in raw:
        for entity, char in _ENTITIES:
            raw = raw.replace(entity, char)
    return raw.decode("utf-8", "backslashreplace")


def dotted(name: str) -> str:
    """A class or method with dots: classes that are not loaded, and receivers, are printed with slashes."""
    if "/" not in name:
        return name
    holder, colons, method = name.partition("::")
    hidden = holder.find("/0x")
    if hidden < 0:
        return f"{holder.replace('/', '.')}{colons}{method}"
    return f"{holder[:hidden].replace('/', '.')}{holder[hidden:]}{colons}{method}"


def _compilation(head: re.Match[bytes]) -> Compilation | GivenUpLine:
    stamp, number, flags, level, method, bci, size, given_up = head.groups()
    if given_up is not None:
        return GivenUpLine((int(number), b"%" in flags), int(stamp), _NOT_ENTRANT in given_up)
    return Compilation(
        int(number),
        int(stamp),
        None if level == b"-" else int(level),
        text(method),
        None if size is None else int(size),
        None if bci is None else int(bci),
        "" if flags.isspace() else flags.replace(b" ", b"").decode(),
    )


def _told(raw: bytes) -> _Told | None:
    found = _CALLEE(raw)
    if found is None:
        return None
    name, size, words = found.groups(b"")
    method, bytes_ = dotted(text(name)), int(size) if size else None
    fate, said, receivers, by_c2 = _said(words)
    if "callee changed to" in said:
        return _Told(_tried(method, bytes_, said), receivers, by_c2)
    return _Told((Callee(method, bytes_, fate, said),), receivers, by_c2)


@functools.lru_cache(maxsize=1 << 12)  # a few dozen; more since JDK 25, where some have a profile's numbers
def _said(words: bytes) -> tuple[Fate, str, tuple[Receiver, ...], bool]:
    """The fate that these words tell of, the words, the receivers in them, and whether C1 never says them."""
    spaced = b"   " + words
    said = text(_PROFILE.sub(b"", words)).strip()
    return fate_of(said), said, _receivers(words), any(word in spaced for word in _C2_WORDS)


def _receivers(raw: bytes) -> tuple[Receiver, ...]:
    """The receivers that a type profile names; several on one line since JDK 25."""
    return tuple(
        Receiver(dotted(text(name)), int(count), int(total)) for count, total, name in _PROFILE.findall(raw)
    )


def _tried(name: str, size: int | None, words: str) -> tuple[Callee, ...]:
    """The callees that were tried at one site, as JDK 25 names them on one line."""
    first, *rest = _CHANGED.split(words)
    tried: list[tuple[str, int | None, str]] = [(name, size, first)]
    tried += [(rest[at], int(rest[at + 1]), rest[at + 2]) for at in range(0, len(rest), 3)]
    # A target without words is the declared method again, to which the site was put back.
    worded = [
        (callee, bytes_, _SPACES.sub("   ", said.strip())) for callee, bytes_, said in tried if said.strip()
    ]
    kept = worded or [(name, size, words)]
    return tuple(Callee(callee, bytes_, fate_of(said), said) for callee, bytes_, said in kept)


# One pass over a log: its compilations, each when the thread that printed it begins another.

MOST_SAMPLES = 20
_SAMPLE_CHARS = 200
_BY_C2 = attrgetter("by_c2")
_C1, _C2 = -2, -3  # stand for threads where the log does not name any


# The tree of one compilation, from its lines.


def read_tree(pieces: Iterable[bytes], root: str = "") -> Tree:
    """The tree that the lines of these pieces make.

    Args:
        pieces: lines, in order; the last line of one may go on in the next.
        root: the compiled method; empty where that is unknown.
    """
    read = Lines()
    lines: list[TreeLine] = []
    for piece in pieces:
        _add_piece(lines, [read.of_tree(raw) for raw in piece.split(b"\n") if raw], read)
    return nested(lines, root)


def _add_piece(lines: list[TreeLine], piece: Sequence[TreeLine], read: Lines) -> None:
    """Add lines to a tree's; the first may be the rest of the last, where another thread cut that."""
    if lines and piece and (_is_rest(piece[0]) or lines[-1].raw.isspace()):
        lines[-1] = read.of_tree(lines[-1].raw + piece[0].raw)
        lines += piece[1:]
    else:
        lines += piece


def nested(lines: Iterable[TreeLine], root: str) -> Tree:
    """The calls of these lines, each with the call that it is in.

    How deep a call is, is told by its column alone, against those before it: excerpts begin anywhere.

    Args:
        lines: of one tree.
        root: the compiled method; empty where that is unknown.
    """
    calls: list[Call] = []
    unread: list[str] = []
    outer: list[tuple[int, int, str]] = []  # what is below, of each level further out
    column, depth, parent, caller = -1, 0, -1, root  # of the calls on this level
    callee = root
    for line in lines:
        if not isinstance(line, CallLine):
            if line.receivers and calls:
                _see(calls, line.receivers)
            elif not line.raw.isspace():
                unread.append(text(line.raw))
            continue
        if line.column > column:
            if calls:
                outer.append((column, parent, caller))
                depth, parent, caller = depth + 1, len(calls) - 1, callee
        else:
            while outer and outer[-1][0] >= line.column:
                depth, (_, parent, caller) = depth - 1, outer.pop()
        column, bci = line.column, line.bci
        for one in line.callees:
            callee = one.method
            calls.append(Call(depth, caller, parent, bci, callee, one.size, one.fate, one.words))
        if line.receivers:
            _see(calls, line.receivers)
    return Tree(tuple(calls), tuple(unread))


def _is_rest(line: TreeLine) -> bool:
    return isinstance(line, TextLine) and not line.receivers


def _see(calls: list[Call], seen: tuple[Receiver, ...]) -> None:
    calls[-1] = msgspec.structs.replace(calls[-1], receivers=calls[-1].receivers + seen)


# One pass over a log.


class Entry(msgspec.Struct):
    """A compilation with the lines of its tree.

    Attributes:
        number: position among the compilations of its log, from 0.
        thread: that compiled it; None where the log does not say.
        compilation: what its head says.
        lines: in order, read but not nested.
    """

    number: int
    thread: int | None
    compilation: Compilation
    lines: list[TreeLine]

    def tree(self) -> Tree:
        """What was inlined into it."""
        return nested(self.lines, self.compilation.method)

    def callees(self) -> Iterator[str]:
        """The methods that it calls, inlined or not, with repetition."""
        return (callee.method for line in self.lines if isinstance(line, CallLine) for callee in line.callees)


@dataclass
class Account:
    """What a log holds, line by line.

    Attributes:
        lines: all.
        of_trees: lines of trees.
        compilations: that were begun, fragments included; one that was tried again counts once.
        heads: lines that begin a compilation.
        given_up: lines that say that a compilation was made not entrant, was skipped, and so on.
        markup: lines of the XML around the log.
        foreign: lines that are none of the log's, as an engine's own on standard output.
        samples: the first few of these.
        names_threads: whether it says which thread wrote what.
        given_up_ms: when compilations were made not entrant, milliseconds since the JVM started.
    """

    lines: int = 0
    of_trees: int = 0
    compilations: int = 0
    heads: int = 0
    given_up: int = 0
    markup: int = 0
    foreign: int = 0
    samples: list[str] = field(default_factory=list)
    names_threads: bool = False
    given_up_ms: dict[CompilationKey, int] = field(default_factory=dict)


def read_entries(chunks: Iterable[bytes], account: Account) -> Iterator[Entry]:
    """Read a log from one end to the other; what is in memory is one tree of each thread.

    Args:
        chunks: the log, cut anywhere.
        account: is filled as it goes on.
    """
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
    """The state of the pass."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._read = Lines()
        self._piece: list[TreeLine] = []  # of a tree, not known yet whose
        self._thread: int | None = None
        self._current: dict[int, Entry] = {}  # by thread
        self._preamble = False  # within what HotSpot's file says of the JVM before the log proper
        self._counting = False  # within what the JVM counts up when it ends
        self._switched = False  # just behind a switch of threads

    def take(self, lines: list[bytes]) -> Iterator[Entry]:
        """Some lines; yields the compilations that ended in them."""
        self._account.lines += len(lines)
        piece = self._piece
        for line in map(self._read.__getitem__, lines):
            if isinstance(line, CallLine):
                piece.append(line)
            elif (ended := self._event(line)) is not None:
                yield ended

    def end(self) -> Iterator[Entry]:
        """That was all; yields the compilations that were still open."""
        self._end_piece()
        yield from sorted(self._current.values(), key=lambda entry: entry.number)

    def _event(self, line: Line) -> Entry | None:
        """Any line but a call's; returns the compilation that it ends."""
        switched, self._switched = self._switched, False
        if isinstance(line, Compilation):
            self._end_piece()
            return self._begin(line)
        if isinstance(line, TextLine):
            self._text(line, switched=switched)
        elif isinstance(line, ThreadLine):
            self._end_piece()
            self._thread, self._switched = line.thread, True
            self._account.names_threads = True
            self._account.markup += 1
        elif isinstance(line, GivenUpLine):
            self._end_piece()
            self._account.given_up += 1
            if line.entered_before:
                self._account.given_up_ms.setdefault(line.key, line.stamp_ms)
        return None

    def _text(self, line: TextLine, *, switched: bool) -> None:
        raw, account = line.raw, self._account
        if raw.startswith(b"<?xml"):
            self._preamble = True
        if self._preamble:
            account.markup += 1
            self._preamble = raw != b"<tty>"
        elif raw.startswith(b"<"):
            self._end_piece()
            account.markup += 1
            self._counting = raw.startswith(b"<statistics")
        elif line.of_tree or (switched and raw) or (raw.isspace() and self._thread in self._current):
            # C1 prints a line in several writes: when another thread comes between them, its indentation can
            # stand alone, and its rest behind the next switch.
            self._piece.append(line)
        elif self._counting:
            account.markup += 1
        elif raw and not raw.isspace():
            self._end_piece()
            account.foreign += 1
            if len(account.samples) < MOST_SAMPLES:
                account.samples.append(text(raw[:_SAMPLE_CHARS]))

    def _begin(self, compilation: Compilation) -> Entry | None:
        account, thread = self._account, self._thread
        account.heads += 1
        if thread is None:
            thread = _C2 if compilation.level == C2_LEVEL else _C1
        ended = self._current.get(thread)
        if (
            ended is not None
            and ended.compilation.id == compilation.id
            and ended.compilation.key == compilation.key
        ):
            # C2 gave up an attempt at it, and tries again with fewer optimizations: only the last counts.
            self._current[thread] = Entry(ended.number, self._thread, compilation, [])
            return None
        self._current[thread] = Entry(account.compilations, self._thread, compilation, [])
        account.compilations += 1
        return ended

    def _end_piece(self) -> None:
        piece, current = self._piece, self._current
        if not piece:
            return
        thread = self._thread
        if thread is None:
            # C1 prints a tree while it compiles, behind its head; C2 when it is done, perhaps behind C1's.
            thread = _C2 if any(map(_BY_C2, piece)) else _C1
            if thread not in current and current:
                thread = next(iter(current))
        if thread not in current:
            current[thread] = Entry(self._account.compilations, self._thread, Compilation(), [])
            self._account.compilations += 1
        _add_piece(current[thread].lines, piece, self._read)
        self._account.of_trees += len(piece)
        piece.clear()


# A log of HotSpot's inlining: a file or bytes, read as a stream as often as it is asked.

PACKED_SUFFIX = ".zst"
_CHUNK_BYTES = 1 << 18


@dataclass(frozen=True)
class Mentions:
    """Where a method is, both oldest first.

    Attributes:
        rooted: compilations of the method.
        calling: those that have a call of it, inlined or not.
    """

    rooted: tuple[Entry, ...]
    calling: tuple[Entry, ...]

    def all(self) -> list[Entry]:
        """Both, each once, oldest first."""
        by_number = {entry.number: entry for entry in (*self.rooted, *self.calling)}
        return [by_number[number] for number in sorted(by_number)]


class InliningLog:
    """What HotSpot compiled, and what it inlined; iterating over it is one pass.

    A compilation comes when the thread that printed it begins another: not quite in the order of `number`.

    Args:
        source: the log itself, or its path: text, or packed as `.zst`.
    """

    def __init__(self, source: bytes | Path) -> None:
        self._source = source
        self._account: Account | None = None

    def __iter__(self) -> Iterator[Entry]:
        """All compilations.

        Raises:
            BenchctlError: the file cannot be read or unpacked, or its end is missing.
        """
        account = Account()
        with ExitStack() as stack:
            try:
                yield from read_entries(self._chunks(stack), account)
            except (OSError, zstandard.ZstdError) as err:
                reason = (err.strerror if isinstance(err, OSError) else "") or str(err)
                raise BenchctlError(f"cannot read {self._source!s}: {reason}") from err
        self._account = account

    @property
    def account(self) -> Account:
        """What the log holds; after a pass it costs nothing more."""
        if self._account is None:
            for _ in self:
                pass
        return self._account or Account()

    def given_up_ms(self, compilation: Compilation) -> int | None:
        """When a compilation was made not entrant, milliseconds since the JVM started; None if never."""
        return None if compilation.key is None else self.account.given_up_ms.get(compilation.key)

    def mentions(self, method: str) -> Mentions:
        """The compilations that have to do with a method.

        Args:
            method: an end of its name, as `names` takes it.
        """
        meant = functools.cache(functools.partial(names, asked=method))
        rooted, calling = [], []
        for entry in self:
            if entry.compilation.method and meant(entry.compilation.method):
                rooted.append(entry)
            if any(map(meant, entry.callees())):
                calling.append(entry)
        return Mentions(_by_number(rooted), _by_number(calling))

    def methods(self) -> set[str]:
        """The names of all compiled methods, and of all that fragments call."""
        found: set[str] = set()
        for entry in self:
            found.update([entry.compilation.method] if entry.compilation.method else entry.callees())
        return found

    def _chunks(self, stack: ExitStack) -> Iterator[bytes]:
        if isinstance(self._source, bytes):
            return iter([self._source])
        source = stack.enter_context(self._source.open("rb"))
        pieces = iter(functools.partial(source.read, _CHUNK_BYTES), b"")
        return _unpacked(pieces) if self._source.suffix == PACKED_SUFFIX else pieces


def _unpacked(packed: Iterable[bytes]) -> Iterator[bytes]:
    """Frame after frame; of one without its end, a stream reader would give what there is and say nothing.

    Raises:
        zstandard.ZstdError: it is not a frame, or not a whole one.
    """
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


def _by_number(entries: list[Entry]) -> tuple[Entry, ...]:
    return tuple(sorted(entries, key=lambda entry: entry.number))
