"""The tree of one compilation, from its lines."""

from collections.abc import Iterable

import msgspec

from benchctl.jvm.inlining.lines import call_line, receivers, text
from benchctl.jvm.inlining.model import Call, Receiver, Tree


class _Growing:
    """A tree while its lines come in."""

    def __init__(self, root: str) -> None:
        self.calls: list[Call] = []
        self.unread: list[bytes] = []
        self._root = root
        self._open: list[tuple[int, int]] = []  # (column, position) of the calls that the next may be in
        self._last = b""
        self._added = 0  # calls that the last line made

    def take(self, line: bytes) -> None:
        """A line, without its line feed."""
        before = len(self.calls)
        if (call := call_line(line)) is not None:
            while self._open and self._open[-1][0] >= call.column:
                self._open.pop()
            parent = self._open[-1][1] if self._open else -1
            caller = self.calls[parent].callee if parent >= 0 else self._root
            for callee, size, fate, words in call.callees:
                self.calls.append(Call(len(self._open), caller, parent, call.bci, callee, size, fate, words))
            self._open.append((call.column, len(self.calls) - 1))
            self._see(call.receivers)
        elif self.calls and (seen := receivers(line)):
            self._see(seen)
        elif line and not line.isspace():
            self.unread.append(line)
        self._last, self._added = line, len(self.calls) - before

    def go_on(self, line: bytes) -> None:
        """The first line of a piece: the rest of the last line before it, where another thread cut that."""
        rest_of_line = call_line(line) is None and not receivers(line)
        if self._last and (rest_of_line or self._last.isspace()):
            if self._added:
                del self.calls[-self._added :]
            elif self.unread and self.unread[-1] == self._last:
                self.unread.pop()
            line = self._last + line
        self.take(line)

    def _see(self, seen: tuple[Receiver, ...]) -> None:
        if seen:
            self.calls[-1] = msgspec.structs.replace(
                self.calls[-1], receivers=self.calls[-1].receivers + seen
            )


def read_tree(pieces: Iterable[bytes], root: str = "") -> Tree:
    """The tree that the lines of these pieces make.

    How deep a call is, is told by its column alone, against those before it: excerpts begin anywhere.

    Args:
        pieces: lines, in order; the last line of one may go on in the next.
        root: the compiled method; empty where that is unknown.
    """
    growing = _Growing(root)
    for piece in pieces:
        first, *others = piece.removesuffix(b"\n").split(b"\n")
        growing.go_on(first.rstrip(b"\r"))
        for line in others:
            growing.take(line.rstrip(b"\r"))
    return Tree(tuple(growing.calls), tuple(map(text, growing.unread)))
