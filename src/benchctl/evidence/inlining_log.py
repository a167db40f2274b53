"""A streaming parser of HotSpot's inlining log: what it compiled, what it inlined where, and why not."""

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
from benchctl.evidence.inlining_tree import (
    Call,
    Compilation,
    CompilationKey,
    Fate,
    Receiver,
    Tree,
    fate_of,
    names,
)
from benchctl.results.model import C2_LEVEL

# HotSpot's XML file has escaped text, standard output has not.
_ENTITIES = ((b"&lt;", b"<"), (b"&gt;", b">"), (b"&apos;", b"'"), (b"&quot;", b'"'), (b"&amp;", b"&"))

# Possessive quantifiers where possible, against backtracking.
_CALL = re.compile(rb"( *+[ sm!]*+)@ (-?\d++) ++(.++)").fullmatch
_CALLEE = re.compile(rb"([^ ]+::[^ ]++)(?: \((?:(\d++) bytes|not loaded)\))?(?: ++(.*+))?").fullmatch
# Stamp, id, flags, level; then `A::b (56 bytes)`, `A::b @ 7 (56 bytes)` for on-stack replacement,
# `A::b (native)`, `A::b (native)   (static)`, or the same with the fate of an earlier compilation.
_HEAD = re.compile(
    rb" *+(\d++) ++(\d++) ([% ][s ][! ][b ][n ]) *+([0-4-]) ++"
    rb"(?:(\S+::\S++)(?: @ (-?\d++))?+ \((?:(\d++) bytes|native)\)(?: ++\(static\))?+ *+\r?+$|(.++))"
).fullmatch
_THREAD = re.compile(rb"<writer thread='(\d++)'/>").fullmatch
_OF_TREE = re.compile(rb"[ sm!]*+(?:@ -?\d|\\->|\\-&gt;)").match
_PROFILE = re.compile(rb"\\-(?:>|&gt;) TypeProfile \((\d+)/(\d+) counts\) = (\S+)")
_CHANGED = re.compile(r" *callee changed to +(\S+::\S+) \((\d+) bytes\) *")
# The remainder of a tree's line that another thread interrupted.
_WRAPPED = re.compile(rb" {3}[a-z(]| ?\S* ?\((?:\d+ bytes|not loaded)\)(?:   [a-z(]|$)").match
_SPACES = re.compile(r" {2,}")
_NOT_ENTRANT = b"   made not entrant"

# Words that only C2 prints about a call; standard output does not tell which compiler a line belongs to.
_C2_WORDS = (
    b"(hot)", b"TypeProfile", b"   too big", b"call site", b"virtual call", b"already compiled",
    b"hot method", b"NodeCount", b"(intrinsic", b"accessor", b"recursive inlining is", b"never executed",
)  # fmt: skip


class Callee(msgspec.Struct, frozen=True, gc=False):
    """A method that was tried at a call site."""

    method: str  # its name
    size: int | None  # of its bytecode, bytes; None if its class was not loaded
    fate: Fate  # what became of it
    words: str  # the same in HotSpot's words


class CallLine(msgspec.Struct, frozen=True, gc=False):
    """A call's line."""

    raw: bytes  # the line
    column: int  # of its `@`, which determines the depth
    bci: int  # of the call
    callees: tuple[Callee, ...]  # one, or since JDK 25 all that were tried at the site
    receivers: tuple[Receiver, ...]  # on the same line, since JDK 25
    by_c2: bool  # whether only C2 prints this


class TextLine(msgspec.Struct, frozen=True, gc=False):
    """A line of a type profile, or any other."""

    raw: bytes  # the line
    receivers: tuple[Receiver, ...]  # that it names; none if it is not a type profile
    of_tree: bool  # whether it looks like part of a tree

    @property
    def by_c2(self) -> bool:
        """Return whether only C2 prints this."""
        return bool(self.receivers)


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


class Lines(dict[bytes, Line]):
    """Parsed lines by their bytes: a cache, since half of a log's lines repeat earlier ones exactly.

    It is cleared when it has `most` lines.
    """

    def __init__(self, most: int = 1 << 16) -> None:
        self._most = most
        self._call_facts = _CallFactsCache()

    def __missing__(self, raw: bytes) -> Line:
        if len(self) >= self._most:
            self.clear()
            self._call_facts.clear()
        line: Line
        if (call := _CALL(raw)) is not None and (facts := self._call_facts[call[3]]) is not None:
            line = CallLine(raw, call.end(1), int(call[2]), facts.callees, facts.receivers, facts.by_c2)
        elif (head := _HEAD(raw)) is not None:
            return _compilation(head)  # never repeated
        elif raw.endswith(b"\r"):
            return self[raw.rstrip(b"\r")]
        elif (thread := _THREAD(raw)) is not None:
            line = ThreadLine(int(thread[1]))
        else:
            line = TextLine(raw, _receivers(raw), _OF_TREE(raw) is not None)
        self[raw] = line
        return line

    def of_tree(self, raw: bytes) -> TreeLine:
        """Parse a line that is known to be a tree's."""
        line = self[raw]
        return line if isinstance(line, CallLine | TextLine) else TextLine(raw, (), of_tree=False)


class _CallFacts(msgspec.Struct, frozen=True, gc=False):
    """The part of a call's line after the bci."""

    callees: tuple[Callee, ...]
    receivers: tuple[Receiver, ...]
    by_c2: bool


class _CallFactsCache(dict[bytes, _CallFacts | None]):
    """Parse a call's text; None if it is not a call."""

    def __missing__(self, raw: bytes) -> _CallFacts | None:
        facts = self[raw] = _parse_call(raw)
        return facts


def foreign_lines(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines that are not the log's, such as an engine's own on standard output."""
    read = Lines()
    for raw in lines:
        line = read[raw.rstrip(b"\r\n")]
        if isinstance(line, TextLine) and not line.of_tree and line.raw and not _WRAPPED(raw):
            yield raw


def text(raw: bytes) -> str:
    """Decode bytes of a log as unescaped text; invalid UTF-8 is shown as escapes."""
    if b"&" in raw:
        for entity, char in _ENTITIES:
            raw = raw.replace(entity, char)
    return raw.decode("utf-8", "backslashreplace")


def dotted(name: str) -> str:
    """Return a class or method with dots: unloaded classes and receivers are printed with slashes."""
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


def _parse_call(raw: bytes) -> _CallFacts | None:
    match = _CALLEE(raw)
    if match is None:
        return None
    name, size, words = match.groups(b"")
    method, bytes_ = dotted(text(name)), int(size) if size else None
    fate, said, receivers, by_c2 = _said(words)
    if "callee changed to" in said:
        return _CallFacts(_callees(method, bytes_, said), receivers, by_c2)
    return _CallFacts((Callee(method, bytes_, fate, said),), receivers, by_c2)


@functools.lru_cache(maxsize=1 << 12)  # a few dozen; more since JDK 25, which adds a profile's numbers
def _said(words: bytes) -> tuple[Fate, str, tuple[Receiver, ...], bool]:
    """The fate in these words, the words, their receivers, and whether only C2 prints them."""
    spaced = b"   " + words
    said = text(_PROFILE.sub(b"", words)).strip()
    return fate_of(said), said, _receivers(words), any(word in spaced for word in _C2_WORDS)


def _receivers(raw: bytes) -> tuple[Receiver, ...]:
    """The receivers of a type profile; several per line since JDK 25."""
    return tuple(
        Receiver(dotted(text(name)), int(count), int(total)) for count, total, name in _PROFILE.findall(raw)
    )


def _callees(name: str, size: int | None, words: str) -> tuple[Callee, ...]:
    """The callees tried at one site, which JDK 25 prints on one line."""
    first, *rest = _CHANGED.split(words)
    tried: list[tuple[str, int | None, str]] = [(name, size, first)]
    tried += [(rest[at], int(rest[at + 1]), rest[at + 2]) for at in range(0, len(rest), 3)]
    # A target without words is the declared method again, to which the site was reset.
    worded = [
        (callee, bytes_, _SPACES.sub("   ", said.strip())) for callee, bytes_, said in tried if said.strip()
    ]
    kept = worded or [(name, size, words)]
    return tuple(Callee(callee, bytes_, fate_of(said), said) for callee, bytes_, said in kept)


MOST_SAMPLES = 20
_SAMPLE_CHARS = 200
_BY_C2 = attrgetter("by_c2")
_C1, _C2 = -2, -3  # instead of threads, if the log names none


def read_tree(pieces: Iterable[bytes], root: str = "") -> Tree:
    """Return the tree of these pieces of lines, in order; the last line of one may continue in the next.

    `root` is the compiled method; empty if unknown.
    """
    read = Lines()
    lines: list[TreeLine] = []
    for piece in pieces:
        _add_piece(lines, [read.of_tree(raw) for raw in piece.split(b"\n") if raw], read)
    return nested(lines, root)


def _add_piece(lines: list[TreeLine], piece: Sequence[TreeLine], read: Lines) -> None:
    """Add lines to a tree; the first may continue the last, if another thread interrupted that."""
    first = piece[0] if piece else None
    is_continuation = isinstance(first, TextLine) and not first.receivers
    if lines and first is not None and (is_continuation or lines[-1].raw.isspace()):
        lines[-1] = read.of_tree(lines[-1].raw + first.raw)
        lines += piece[1:]
    else:
        lines += piece


def nested(lines: Iterable[TreeLine], root: str) -> Tree:
    """Return the calls of one tree's lines, each with its parent; `root` is the compiled method, or empty.

    The depth of a call follows from its column, compared with preceding ones: excerpts begin anywhere.
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
            _add_receivers(calls, line.receivers)
    return Tree(tuple(calls), tuple(unread))


def _add_receivers(calls: list[Call], more: tuple[Receiver, ...]) -> None:
    calls[-1] = msgspec.structs.replace(calls[-1], receivers=calls[-1].receivers + more)


# One pass over a log: a compilation ends when the thread that printed it begins another.


class Entry(msgspec.Struct):
    """A compilation with the lines of its tree."""

    number: int  # position among the compilations of its log, from 0
    thread: int | None  # that compiled it; None if the log does not tell
    compilation: Compilation  # its head
    lines: list[TreeLine]  # in order, parsed but not nested

    def tree(self) -> Tree:
        """The tree of what was inlined into it."""
        return nested(self.lines, self.compilation.method)

    def callees(self) -> Iterator[str]:
        """Return the methods that it calls, inlined or not, with repetition."""
        return (callee.method for line in self.lines if isinstance(line, CallLine) for callee in line.callees)


@dataclass
class Account:
    """Statistics of a log's lines."""

    lines: int = 0  # all
    of_trees: int = 0  # lines of trees
    compilations: int = 0  # started ones, including fragments; a retry counts once
    heads: int = 0  # lines that begin a compilation
    given_up: int = 0  # lines that report that a compilation was made not entrant, was skipped, and so on
    markup: int = 0  # lines of the XML around the log
    foreign: int = 0  # lines that are not the log's, such as an engine's own on standard output
    samples: list[str] = field(default_factory=list)  # the first few of these
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
        self._read = Lines()
        self._piece: list[TreeLine] = []  # of a tree, not known yet of which
        self._thread: int | None = None
        self._current: dict[int, Entry] = {}  # by thread
        self._preamble = False  # within the description of the JVM before the log proper
        self._counting = False  # within the statistics at the JVM's end
        self._switched = False  # right after a switch of threads

    def take(self, lines: list[bytes]) -> Iterator[Entry]:
        """Parse lines; yield the compilations that ended in them."""
        self._account.lines += len(lines)
        piece = self._piece
        for line in map(self._read.__getitem__, lines):
            if isinstance(line, CallLine):
                piece.append(line)
            elif (ended := self._event(line)) is not None:
                yield ended

    def end(self) -> Iterator[Entry]:
        """Yield the compilations that are still open."""
        self._end_piece()
        yield from sorted(self._current.values(), key=lambda entry: entry.number)

    def _event(self, line: Line) -> Entry | None:
        """Parse any line but a call's; return the compilation that it ends."""
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
            # C1 prints a line in several writes: if another thread interrupts, its indentation may be
            # separate from the rest after the next switch.
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
            # C2 retries with fewer optimizations: only the last attempt counts.
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
            # C1 prints a tree while it compiles, after its head; C2 when it is done, perhaps after C1's.
            thread = _C2 if any(map(_BY_C2, piece)) else _C1
            if thread not in current and current:
                thread = next(iter(current))
        if thread not in current:
            current[thread] = Entry(self._account.compilations, self._thread, Compilation(), [])
            self._account.compilations += 1
        _add_piece(current[thread].lines, piece, self._read)
        self._account.of_trees += len(piece)
        piece.clear()


PACKED_SUFFIX = ".zst"
_CHUNK_BYTES = 1 << 18


@dataclass(frozen=True)
class Mentions:
    """Compilations that involve a method, oldest first."""

    rooted: tuple[Entry, ...]  # compilations of the method
    calling: tuple[Entry, ...]  # those that call it, inlined or not

    def all(self) -> list[Entry]:
        """Return both, without duplicates, oldest first."""
        by_number = {entry.number: entry for entry in (*self.rooted, *self.calling)}
        return [by_number[number] for number in sorted(by_number)]


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
            BenchctlError: If the file cannot be read or decompressed, or is truncated.
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
        """Statistics of the log; free after a pass."""
        if self._account is None:
            for _ in self:
                pass
        return self._account or Account()

    def given_up_ms(self, compilation: Compilation) -> int | None:
        """Return when a compilation was made not entrant, ms since the JVM started; None if never."""
        return None if compilation.key is None else self.account.given_up_ms.get(compilation.key)

    def mentions(self, method: str) -> Mentions:
        """Return the compilations that involve a method, as `names` takes it."""
        meant = functools.cache(functools.partial(names, asked=method))
        rooted, calling = [], []
        for entry in self:
            if entry.compilation.method and meant(entry.compilation.method):
                rooted.append(entry)
            if any(map(meant, entry.callees())):
                calling.append(entry)
        return Mentions(_by_number(rooted), _by_number(calling))

    def methods(self) -> set[str]:
        """Return the names of all compiled methods, and of all that fragments call."""
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


def _by_number(entries: list[Entry]) -> tuple[Entry, ...]:
    return tuple(sorted(entries, key=lambda entry: entry.number))
