"""One pass over a log: its compilations, each when the thread that printed it begins another."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

import msgspec

from benchctl.jvm.inlining.lines import (
    CallLine,
    GivenUpLine,
    Line,
    Lines,
    TextLine,
    ThreadLine,
    TreeLine,
    text,
)
from benchctl.jvm.inlining.model import C2_LEVEL, Call, Compilation, CompilationKey, Receiver, Tree

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
        add_piece(lines, [read.of_tree(raw) for raw in piece.split(b"\n") if raw], read)
    return nested(lines, root)


def add_piece(lines: list[TreeLine], piece: Sequence[TreeLine], read: Lines) -> None:
    """Add lines to a tree's; the first may be the rest of the last before it, where another thread cut that.

    Args:
        lines: the tree's so far.
        piece: what comes next.
        read: the log's grammar.
    """
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
        add_piece(current[thread].lines, piece, self._read)
        self._account.of_trees += len(piece)
        piece.clear()
