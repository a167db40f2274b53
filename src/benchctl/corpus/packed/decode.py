"""Files of documents decompressed while they are read: by several threads where the format allows it."""

import gzip
import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import IO

import zstandard

from benchctl.corpus.packed import bzip2, zstd
from benchctl.corpus.packed.ahead import ahead, usable_cpus
from benchctl.corpus.packed.damage import DamageError
from benchctl.errors import BenchctlError

_READ_BYTES = 1 << 20
_BLOCKS_AHEAD = 4
_NO_ENTRY = -1

_BZIP2 = b"BZh"
_GZIP = b"\x1f\x8b"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_ZSTANDARD = (b"\x28\xb5\x2f\xfd", b"\x2a\x4d\x18")  # the second, behind any byte, of a skippable frame
_TAR_MAGIC, _TAR_MAGIC_AT = b"ustar", 257

_DAMAGE = (
    DamageError,
    EOFError,
    NotImplementedError,  # a zip packed in an unusual way
    lzma.LZMAError,
    zipfile.BadZipFile,
    zlib.error,
    zstandard.ZstdError,
)


def unreadable(path: Path, reason: str) -> BenchctlError:
    """The error for a file that cannot be read to its end."""
    return BenchctlError(
        f"cannot read the documents of {path}: {reason}",
        hint="the file is damaged or incomplete: fetch or copy it again",
    )


def decode(
    path: Path, *, start: int = 0, stop: int | None = None, threads: int | None = None
) -> Generator[tuple[int, bytes], None, None]:
    """The bytes of a file, decompressed by what it is, not by its name.

    Args:
        path: of a plain file, or one packed by bzip2, Zstandard, gzip, or as a zip with one member.
        start: an entry: a place given out before, or 0.
        stop: another one; the end of the file when None.
        threads: how many decompress; as many as there are usable CPUs when None.

    Yields:
        (entry, bytes): none of them empty; the entry is where decoding can begin with these bytes, -1 when it
        cannot: with the first bytes of a file it always can.

    Raises:
        BenchctlError: the file is missing, damaged or incomplete; bytes before that were given out by then.
    """
    try:
        with path.open("rb") as file:
            yield from _decoded(file, start, stop, threads or usable_cpus())
    except _DAMAGE as err:
        raise unreadable(path, str(err) or "it is damaged") from err
    except OSError as err:
        raise unreadable(path, err.strerror or str(err)) from err


def _decoded(file: IO[bytes], start: int, stop: int | None, threads: int) -> Iterator[tuple[int, bytes]]:
    head = os.pread(file.fileno(), _TAR_MAGIC_AT + len(_TAR_MAGIC), 0)
    if head.startswith(_BZIP2):
        return bzip2.decode(file.fileno(), start, stop, threads)
    if head[:4] == _ZSTANDARD[0] or head[1:4] == _ZSTANDARD[1]:
        return zstd.decode(file.fileno(), start, stop, threads)
    if head.startswith(_GZIP):
        return _streamed(gzip.open(file).read)
    if head.startswith(_ZIP):
        return _zip(file)
    if head[_TAR_MAGIC_AT:] == _TAR_MAGIC:
        raise DamageError("it is a tar archive, which benchctl does not read: unpack it")
    return _plain(file, start, stop)


def _plain(file: IO[bytes], start: int, stop: int | None) -> Iterator[tuple[int, bytes]]:
    file.seek(start)
    at = start
    while stop is None or at < stop:
        block = file.read(_READ_BYTES if stop is None else min(_READ_BYTES, stop - at))
        if not block:
            return
        yield at, block
        at += len(block)


def _streamed(reader: Callable[[int], bytes]) -> Iterator[tuple[int, bytes]]:
    """What can only be decoded from its beginning, by a thread that works ahead."""
    entry = 0
    with closing(ahead(iter(partial(reader, _READ_BYTES), b""), most=_BLOCKS_AHEAD)) as blocks:
        for block in blocks:
            yield entry, block
            entry = _NO_ENTRY


def _zip(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    with zipfile.ZipFile(file) as packed:
        members = [member for member in packed.infolist() if not member.is_dir()]
        if len(members) != 1:
            raise DamageError(f"a zip of documents has one member; it has {len(members)}")
        if members[0].flag_bits & 1:
            raise DamageError("its member is encrypted")
        with packed.open(members[0]) as reader:
            yield from _streamed(reader.read)
