"""The tree of one compilation, from its lines."""

from collections.abc import Iterable, Sequence

import msgspec

from benchctl.jvm.inlining.lines import CallLine, Lines, TextLine, TreeLine, text
from benchctl.jvm.inlining.model import Call, Receiver, Tree


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
