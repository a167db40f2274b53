"""Where everything is in a log: one pass over its bytes, which leaves the trees to be read on demand."""

import re
from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from mmap import mmap

from benchctl.jvm.inlining.lines import (
    C2_WORDS,
    EVENT,
    FIRST_EVENT,
    LEVEL,
    OTHER,
    REST,
    THREAD,
    is_compiled,
    text,
)

Buffer = bytes | mmap

NO_HEAD = -1
NO_THREAD = -1
MOST_SAMPLES = 20
_COUNTED_BYTES = 1 << 22
_SAMPLE_CHARS = 200
_C1, _C2 = -2, -3  # stand for threads where the log does not name any


@dataclass
class LogIndex:
    """Offsets, in bytes, into one log.

    Attributes:
        heads: where each compilation's head begins; NO_HEAD for a fragment's.
        threads: that compiled it; NO_THREAD where the log does not say.
        starts, ends, owners: pieces of trees in the log's order, and whose each is: a position in `heads`.
        lines: of the whole log.
        given_up: lines that say that a compilation was made not entrant, was skipped, and so on.
        markup: lines of the XML around the log.
        foreign: lines that are none of the log's, as an engine's own on standard output.
        samples: the first few of these.
    """

    heads: "array[int]" = field(default_factory=lambda: array("q"))
    threads: "array[int]" = field(default_factory=lambda: array("q"))
    starts: "array[int]" = field(default_factory=lambda: array("q"))
    ends: "array[int]" = field(default_factory=lambda: array("q"))
    owners: "array[int]" = field(default_factory=lambda: array("q"))
    lines: int = 0
    given_up: int = 0
    markup: int = 0
    foreign: int = 0
    samples: list[str] = field(default_factory=list)

    def owner(self, offset: int) -> int | None:
        """Whose tree the byte at an offset is in; None when it is in none."""
        piece = bisect_right(self.starts, offset) - 1
        return self.owners[piece] if piece >= 0 and offset < self.ends[piece] else None

    def pieces(self, number: int) -> list[tuple[int, int]]:
        """(start, end) of what belongs to a compilation's tree, in order."""
        # A compilation's pieces lie behind its head, most of them soon.
        first = bisect_right(self.starts, max(self.heads[number], 0) - 1)
        last = self._last.get(number, -1)
        return [
            (self.starts[at], self.ends[at]) for at in range(first, last + 1) if self.owners[at] == number
        ]

    def close(self) -> None:
        """All is in; remember where each compilation's last piece is."""
        self._last = {owner: at for at, owner in enumerate(self.owners)}

    _last: dict[int, int] = field(default_factory=dict)


class _Pass:
    """The state of the one pass."""

    def __init__(self, data: Buffer) -> None:
        self.data = data
        self.index = LogIndex()
        self.thread = NO_THREAD
        self.current: dict[int, int] = {}
        self.counting = False  # within what the JVM counts up when it ends
        self.switched = -1  # where the line behind the last switch of threads begins

    def run(self) -> LogIndex:
        """Go over it."""
        at = self._preamble()
        first = FIRST_EVENT.match(self.data, at)
        if first is not None:
            self._take(first, at)
            at = first.end() + 1
        # An event takes the line feed before it; what is between two events is lines of trees.
        for found in EVENT.finditer(self.data, max(at - 1, 0)):
            begin = found.start() + 1
            if begin > at:
                self._piece(at, begin)
            self._take(found, begin)
            at = found.end() + 1
        if at < len(self.data):
            self._piece(at, len(self.data))
        self.index.lines = count_lines(self.data)
        self.index.close()
        return self.index

    def _preamble(self) -> int:
        """Where the log proper begins: before it, HotSpot's file says what JVM this is."""
        if self.data[:5] != b"<?xml":
            return 0
        begin = self.data.find(b"\n<tty>\n")
        if begin < 0:
            return 0
        begin += len(b"\n<tty>\n")
        self.index.markup += count_lines(self.data, begin)
        return begin

    def _take(self, found: re.Match[bytes], begin: int) -> None:
        index = self.index
        if found[THREAD] is not None:
            self.thread = int(found[THREAD])
            self.switched = found.end() + 1
            index.markup += 1
        elif (other := found[OTHER]) is not None:
            self._other(other, begin)
        elif is_compiled(found[REST]):
            key = self.thread if self.thread != NO_THREAD else _C2 if found[LEVEL] == b"4" else _C1
            self.current[key] = len(index.heads)
            index.heads.append(begin)
            index.threads.append(self.thread)
        else:
            index.given_up += 1

    def _other(self, line: bytes, begin: int) -> None:
        index = self.index
        if begin == self.switched and not line.startswith(b"<"):
            # C1 prints a line in several writes; another thread came between them, and this is the rest.
            self._piece(begin, begin + len(line))
            return
        if line.startswith(b"<"):
            self.counting = line.startswith(b"<statistics")
        if line.startswith(b"<") or self.counting:
            index.markup += 1
            return
        if line.isspace():
            return
        index.foreign += 1
        if len(index.samples) < MOST_SAMPLES:
            index.samples.append(text(line[:_SAMPLE_CHARS]))

    def _piece(self, start: int, end: int) -> None:
        key = self.thread
        if key == NO_THREAD:
            # C1 prints a tree while it compiles, behind its head; C2 when it is done, perhaps behind C1's.
            key = _C2 if any(self.data.find(word, start, end) >= 0 for word in C2_WORDS) else _C1
            if key not in self.current and self.current:
                key = next(iter(self.current))
        owner = self.current.get(key)
        if owner is None:
            owner = self.current[key] = len(self.index.heads)
            self.index.heads.append(NO_HEAD)
            self.index.threads.append(self.thread)
        self.index.starts.append(start)
        self.index.ends.append(end)
        self.index.owners.append(owner)


def index_log(data: Buffer) -> LogIndex:
    """Find all compilations of a log, and the pieces of their trees.

    Args:
        data: the whole log, as bytes or mapped into memory.
    """
    return _Pass(data).run()


def count_lines(data: Buffer, end: int | None = None) -> int:
    """Lines of a buffer, one that is not ended included; a piece at a time, as it may be large."""
    end = len(data) if end is None else end
    feeds = sum(data[at : min(at + _COUNTED_BYTES, end)].count(b"\n") for at in range(0, end, _COUNTED_BYTES))
    return feeds + (end > 0 and data[end - 1 : end] != b"\n")
