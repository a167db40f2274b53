"""A log of HotSpot's inlining: opened, its compilations found by method, their trees read on demand."""

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property, lru_cache
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import BinaryIO

import zstandard

from benchctl.errors import BenchctlError
from benchctl.jvm.inlining.index import NO_HEAD, NO_THREAD, Buffer, LogIndex, index_log
from benchctl.jvm.inlining.lines import FIRST_EVENT, escaped, head
from benchctl.jvm.inlining.model import Compilation, Tree
from benchctl.jvm.inlining.tree import read_tree

PACKED_SUFFIX = ".zst"
_BEFORE_NAMES = (b" ", b".", b"/", b"$", b":")


class InliningLog:
    """What HotSpot compiled, and what it inlined.

    Args:
        data: the log's bytes, in memory or mapped; they must stay for as long as this is used.
    """

    def __init__(self, data: Buffer) -> None:
        self._data = data
        self._tree = lru_cache(maxsize=256)(self._read_tree)

    @cached_property
    def index(self) -> LogIndex:
        """Where everything is, and how much of it there is."""
        return index_log(self._data)

    def __len__(self) -> int:
        return len(self.index.heads)

    def compilation(self, number: int) -> Compilation:
        """What the head of a compilation says.

        Args:
            number: from 0, in the log's order.
        """
        offset, thread = self.index.heads[number], self.index.threads[number]
        found = None if offset == NO_HEAD else FIRST_EVENT.match(self._data, offset)
        known = None if thread == NO_THREAD else thread
        return Compilation(number, thread=known) if found is None else head(number, found, known)

    def compilations(self) -> Iterator[Compilation]:
        """All of them, in the log's order."""
        return map(self.compilation, range(len(self)))

    def tree(self, number: int) -> Tree:
        """What was inlined into a compilation."""
        return self._tree(number)

    def given_up_ms(self, compilation: Compilation) -> int | None:
        """When a compilation was made not entrant, milliseconds since the JVM started; None if never."""
        if compilation.id is None:
            return None
        line = rb"\n *(\d+) +%d [%% ][s ][! ][b ][n ] *[0-4-] [^\n]*   made not entrant" % compilation.id
        found = re.compile(line).search(self._data, self.index.heads[compilation.number])
        return None if found is None else int(found[1])

    def rooted(self, method: str) -> list[Compilation]:
        """Compilations of a method, oldest first.

        Args:
            method: an end of its name, as `model.names` takes it.
        """
        places = {offset: number for number, offset in enumerate(self.index.heads) if offset != NO_HEAD}
        found = (places.get(self._line_start(at)) for at in self._mentions(method))
        return [self.compilation(number) for number in sorted({one for one in found if one is not None})]

    def calling(self, method: str) -> list[Compilation]:
        """Compilations whose tree has a call of a method, inlined or not, oldest first."""
        owners = {self.index.owner(at) for at in self._mentions(method)}
        return [self.compilation(number) for number in sorted(one for one in owners if one is not None)]

    def methods(self) -> set[str]:
        """The names of all compiled methods, and of all that fragments call."""
        found = {one.method for one in self.compilations() if one.method}
        for number, offset in enumerate(self.index.heads):
            if offset == NO_HEAD:
                found.update(call.callee for call in self.tree(number).calls)
        return found

    def _read_tree(self, number: int) -> Tree:
        root = self.compilation(number).method
        return read_tree((self._data[start:end] for start, end in self.index.pieces(number)), root)

    def _line_start(self, offset: int) -> int:
        return self._data.rfind(b"\n", 0, offset) + 1

    def _mentions(self, method: str) -> Iterator[int]:
        """Where a name like this stands, in each of its spellings."""
        own = method.removeprefix("::")
        for spelling in sorted({own.encode(), escaped(own), own.replace(".", "/").encode()}):
            # A hidden class has its address between its name and the colons.
            name = re.escape(spelling).replace(b"::", rb"(?:/0x[0-9a-f]+)?::")
            for found in re.finditer(name + rb"(?= [(@])", self._data):
                at = found.start()
                if at and self._data[at - 1 : at] in _BEFORE_NAMES:
                    yield at


@contextmanager
def open_log(path: Path) -> Iterator[InliningLog]:
    """A log from a file, for as long as the block lasts; a packed one is unpacked to a temporary file.

    Args:
        path: text, or `.zst`.

    Raises:
        BenchctlError: it cannot be read or unpacked.
    """
    with ExitStack() as stack:
        try:
            source: BinaryIO = stack.enter_context(path.open("rb"))
            if path.suffix == PACKED_SUFFIX:
                plain = stack.enter_context(tempfile.TemporaryFile())
                zstandard.ZstdDecompressor().copy_stream(source, plain)
                plain.flush()
                source = plain
            size = source.seek(0, os.SEEK_END)
            data = stack.enter_context(mmap(source.fileno(), 0, access=ACCESS_READ)) if size else b""
        except (OSError, zstandard.ZstdError) as err:
            reason = (err.strerror if isinstance(err, OSError) else "") or str(err)
            raise BenchctlError(f"cannot read {path}: {reason}") from err
        yield InliningLog(data)
