"""A log of HotSpot's inlining: a file or bytes, read as a stream as often as it is asked."""

import functools
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import zstandard

from benchctl.errors import BenchctlError
from benchctl.jvm.inlining.model import Compilation, names
from benchctl.jvm.inlining.reader import Account, Entry, read_entries

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
            method: an end of its name, as `model.names` takes it.
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
        zstandard.ZstdError: it is no frame, or not a whole one.
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
