"""Lines of a file by their numbers: decoding begins near them where the file's index knows a place."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from benchctl.corpus.packed.decode import decode, unreadable
from benchctl.corpus.packed.offsets import FileIndex
from benchctl.corpus.share import Stretch


class _Run(NamedTuple):
    """Stretches of lines that are read without a jump.

    Attributes:
        start: where decoding begins.
        stop: where it ends; None for the end of the file.
        line_ends: before `start`.
        stretches: of lines, in order.
    """

    start: int
    stop: int | None
    line_ends: int
    stretches: Sequence[Stretch]


def read_lines(
    path: Path, wanted: Iterable[Stretch], index: FileIndex | None
) -> Generator[bytes, None, None]:
    r"""Lines of a file, in memory of a few blocks.

    Args:
        path: of the file, compressed or not.
        wanted: which lines, from 0; stretches in order that do not touch each other.
        index: of the file; without it, decoding begins at the beginning.

    Yields:
        Whole lines, each ending in "\n", as many at a time as the decoder gives.

    Raises:
        BenchctlError: the file is missing or damaged, or ends before the last line wanted; blocks before that
            were given out by then.
    """
    for run in _runs(wanted, index):
        with closing(decode(path, start=run.start, stop=run.stop)) as decoded:
            reached = yield from _slices((block for _, block in decoded), run.line_ends, run.stretches)
        if reached < run.stretches[-1].stop:
            raise unreadable(path, f"it ends after {reached:,} lines")


def _runs(wanted: Iterable[Stretch], index: FileIndex | None) -> Iterator[_Run]:
    if index is None:
        if found := list(wanted):
            yield _Run(0, None, 0, found)
        return
    together: list[Stretch] = []
    first = last = 0
    for stretch in wanted:
        before, behind = index.entry_before(stretch.start), index.entry_behind(stretch.stop)
        if together and before > last:
            yield _run(index, first, last, together)
            together = []
        if not together:
            first = before
        last = behind
        together.append(stretch)
    if together:
        yield _run(index, first, last, together)


def _run(index: FileIndex, first: int, last: int, stretches: Sequence[Stretch]) -> _Run:
    entry = index.entries[first]
    stop = index.entries[last].at if last < len(index.entries) else None
    return _Run(entry.at, stop, entry.line_ends, stretches)


def _slices(
    blocks: Iterable[bytes], line_ends: int, stretches: Sequence[Stretch]
) -> Generator[bytes, None, int]:
    """Cut lines out of blocks that may end anywhere; the value is the number of the line that was reached."""
    unfinished: list[bytes] = []  # the line that the stretch at hand has begun
    waiting = list(reversed(stretches))
    for block in blocks:
        reached = line_ends + block.count(b"\n")
        at = 0  # behind the line end of number `line_ends`
        while waiting and waiting[-1].start <= reached:
            begin = _behind(block, at, waiting[-1].start - line_ends)
            line_ends = max(line_ends, waiting[-1].start)
            finished = waiting[-1].stop <= reached
            end = _behind(block, begin, waiting[-1].stop - line_ends) if finished else block.rfind(b"\n") + 1
            if end > begin:
                yield _joined(unfinished, block, begin, end)
                unfinished.clear()
            if not finished:
                unfinished.append(block[max(begin, end) :])
                break
            at, line_ends = end, waiting.pop().stop
        line_ends = reached
        if not waiting:
            return line_ends
    if rest := b"".join(unfinished):
        yield rest + b"\n"
        return line_ends + 1
    return line_ends


def _joined(unfinished: Sequence[bytes], block: bytes, begin: int, end: int) -> bytes:
    if not unfinished and (begin, end) == (0, len(block)):
        return block
    return b"".join([*unfinished, memoryview(block)[begin:end]])


def _behind(block: bytes, at: int, line_ends: int) -> int:
    """One behind that many line ends, counted from a place on; the place itself for none."""
    for _ in range(line_ends):
        at = block.index(b"\n", at) + 1
    return at
