"""Files of documents, read in full once: their lines, their digest, and blocks that can be read alone.

A plain file is read where it is. A packed one is turned into Zstandard frames of whole lines in benchctl's
home: none of the published formats can be read from the middle.
"""

import bz2
import codecs
import gzip
import hashlib
import itertools
import lzma
import os
import re
import tarfile
import zipfile
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, NamedTuple, Protocol, cast

import msgspec
import zstandard

from benchctl.corpus.generated import locked, slice_lines
from benchctl.disk import FreeBytes, disk_errors, free_bytes, read_file, replacing, require_space
from benchctl.errors import BenchctlError
from benchctl.home import Home


class DamageError(Exception):
    """A damaged or incomplete file, or one of another kind; the text explains it without naming the file."""


_DAMAGE = (
    DamageError,
    EOFError,
    NotImplementedError,  # a zip with an unusual compression method
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    zstandard.ZstdError,
)


def unreadable(path: Path, reason: str) -> BenchctlError:
    """Return the error for a file that cannot be read to its end."""
    return BenchctlError(
        f"cannot read the documents of {path}: {reason}",
        hint="the file is damaged or incomplete: fetch or copy it again",
    )


# Any format into bytes, by its magic number, not its name.

SUFFIXES = (".zst", ".bz2", ".gz", ".zip", ".tgz", ".tar.gz", ".tar.bz2", ".tar.zst", ".tar")
"""Extensions of the packed files that benchctl reads."""

_TAR_MAGIC, _TAR_MAGIC_AT = b"ustar", 257
_HEAD_BYTES = 512

_READ_BYTES = 1 << 20
# What these can unpack to is bounded: 8 MiB of repeated bytes by Zstandard, 250 MiB by bzip2.
_CHUNK_BYTES = 1 << 8
_MOST_WINDOW_BYTES = 1 << 31  # the window of `zstd --long=31`


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


def unpacked(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a plain, compressed or archived file, in chunks of any size.

    Raises:
        BenchctlError: If it is missing, damaged or incomplete; preceding bytes have been yielded.
    """
    try:
        with path.open("rb") as file:
            packing = _format_of(file.read(_HEAD_BYTES))
            file.seek(0)
            chunks = packing.chunks(file)
            head = b""
            while len(head) < _HEAD_BYTES and (chunk := next(chunks, None)) is not None:
                head += chunk
            chunks = itertools.chain([head], chunks)
            yield from _tar_member(chunks) if _is_tar(head) else chunks
    except _DAMAGE as err:
        raise unreadable(path, str(err) or "it is damaged") from err
    except OSError as err:
        raise unreadable(path, err.strerror or str(err)) from err


def _is_tar(head: bytes) -> bool:
    return head[_TAR_MAGIC_AT:].startswith(_TAR_MAGIC)


def _plain(file: IO[bytes]) -> Iterator[bytes]:
    return iter(partial(file.read, _READ_BYTES), b"")


def _gzip(file: IO[bytes]) -> Iterator[bytes]:
    with gzip.open(file) as unpacked_file:
        yield from _plain(cast("IO[bytes]", unpacked_file))


def _zstandard() -> _Decompressor:
    decompressor = zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW_BYTES)
    return cast("_Decompressor", decompressor.decompressobj())


def _streams(new: Callable[[], _Decompressor], file: IO[bytes]) -> Iterator[bytes]:
    """Decompress streams that follow one another; the last must be whole, and nothing may follow it."""
    decompressor = new()
    is_whole = True
    while chunk := file.read(_CHUNK_BYTES):
        while chunk:
            if block := decompressor.decompress(chunk):
                yield block
            is_whole, chunk = decompressor.eof, b""
            if is_whole:
                chunk = decompressor.unused_data
                decompressor = new()
    if not is_whole:
        raise DamageError("it is truncated")


def _zip(file: IO[bytes]) -> Iterator[bytes]:
    with zipfile.ZipFile(file) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
        if len(members) != 1:
            raise DamageError(f"a zip of documents has one member; it has {len(members)}")
        if members[0].flag_bits & 1:
            raise DamageError("its member is encrypted")
        with archive.open(members[0]) as member:
            yield from _plain(member)


def _tar_member(chunks: Iterator[bytes]) -> Iterator[bytes]:
    has_member = False
    with tarfile.open(fileobj=cast("IO[bytes]", _Chunks(chunks)), mode="r|") as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isfile() else None
            if file is None:
                continue
            if has_member:
                raise DamageError(f"a tar of documents has one file; it has {member.name!r}, too")
            has_member = True
            yield from _plain(file)
    if not has_member:
        raise DamageError("a tar of documents has one file; it has none")
    for _ in chunks:  # to the end of the archive's padding, and of its checksums
        pass


class _Format(NamedTuple):
    """A form in which files of documents are published."""

    magic: re.Pattern[bytes]
    chunks: Callable[[IO[bytes]], Iterator[bytes]]
    is_packed: bool = True


_FORMATS = (
    _Format(re.compile(rb"BZh"), partial(_streams, bz2.BZ2Decompressor)),
    # The second is that of a skippable frame.
    _Format(re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"), partial(_streams, _zstandard)),
    _Format(re.compile(rb"\x1f\x8b"), _gzip),
    _Format(re.compile(rb"PK(\x03\x04|\x05\x06)"), _zip),
    _Format(re.compile(rb""), _plain, is_packed=False),
)


def _format_of(head: bytes) -> _Format:
    return next(candidate for candidate in _FORMATS if candidate.magic.match(head))


class _Chunks:
    """Bytes of chunks, as a file to read from."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._waiting = bytearray()

    def read(self, size: int) -> bytes:
        while len(self._waiting) < size and (chunk := next(self._chunks, None)) is not None:
            self._waiting += chunk
        read = bytes(self._waiting[:size])
        del self._waiting[:size]
        return read


# The index of a file, and the packed files' copies.

_FORMAT_VERSION = 5
_BLOCK_BYTES = 1 << 22
_MOST_LINE_BYTES = 1 << 28  # nodes take 100 MB in a request by default
_EMPTY_LINES = (b"\n\n", b"\n\r\n")
# Compression takes about as long as reading gzip; a higher level saves little.
_COMPRESSION_LEVEL = 1
# Of a copy, in sizes of the packed file: bzip2 and Zstandard's high levels pack logs up to twice as densely.
_COPY_RATIO = 3


class Block(msgspec.Struct, frozen=True, array_like=True):
    """Whole lines that can be read alone: where they begin."""

    at: int  # position in the plain file, or in the copy
    raw_bytes: int  # unpacked bytes before them
    lines: int  # lines before them


class FileIndex(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", kw_only=True):
    """The index of a file of lines, valid as long as the file has this size and these times."""

    format_version: int
    path: str
    file_bytes: int
    modified_ns: int
    status_ns: int  # no program can set it back
    lines: int  # an unfinished last one included
    raw_bytes: int  # of all lines, unpacked
    sha256: str  # of the same, hexadecimal
    blocks: tuple[Block, ...]
    copy_bytes: int | None = None  # of a packed file's copy
    first_empty: int | None = None  # number of the first empty line, from 0

    def blocks_of(self, start: int, stop: int) -> range:
        """Return the positions in `blocks` of those that hold lines [start, stop)."""
        first = bisect_right(self.blocks, start, key=lambda block: block.lines) - 1
        last = bisect_right(self.blocks, stop - 1, key=lambda block: block.lines)
        return range(max(first, 0), last)


def index_file(
    path: Path,
    home: Home,
    progress: Callable[[int], None] | None = None,
    *,
    block_bytes: int = _BLOCK_BYTES,
    free: FreeBytes = free_bytes,
) -> FileIndex:
    """Return the index of a file: kept from the last time in `home`, or created by reading all of it.

    A packed file is copied into `home` while it is read. If several processes want the same file, one reads
    it and the others wait.

    Args:
        path: The file.
        home: Keeps indices and copies.
        progress: Called with the number of lines newly read.
        block_bytes: Unpacked bytes that a block has at least.
        free: Bytes that can be written to a folder.

    Raises:
        BenchctlError: If the file is missing or damaged, was changed while it was read, or there is too
            little space for the copy. A failed or interrupted attempt leaves nothing behind.
    """
    path = path.absolute()
    kept = _kept_at(path, home)
    index = _load(kept, path)
    if index is not None:
        return index
    _facts(path)
    with disk_errors(f"save the line index of {path} in {kept.parent}"):
        kept.parent.mkdir(parents=True, exist_ok=True)
        with locked(kept.with_suffix(".lock")):
            index = _load(kept, path)  # another process may have read it
            if index is None:
                _remove_orphans(kept.parent)
                index = _read(path, kept, progress or (lambda _: None), block_bytes, free)
    return index


def read_lines(index: FileIndex, home: Home, stretches: Iterable[tuple[int, int]]) -> Iterator[bytes]:
    r"""Yield lines [start, stop) of non-empty stretches in order, in blocks of whole lines with newlines.

    Raises:
        BenchctlError: If the file, or its copy, is missing or damaged; preceding lines have been yielded.
    """
    path = Path(index.path)
    source = path if index.copy_bytes is None else _copy_of(_kept_at(path, home))
    try:
        with source.open("rb") as file:
            read_block = lru_cache(maxsize=1)(partial(_block, file, index))  # stretches may share one
            for start, stop in stretches:
                positions = index.blocks_of(start, stop)
                before = index.blocks[positions.start].lines
                yield from slice_lines(map(read_block, positions), start - before, stop - before)
    except _DAMAGE as err:
        raise unreadable(source, str(err) or "it is damaged") from err
    except OSError as err:
        raise unreadable(source, err.strerror or str(err)) from err


def _is_packed(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    return _format_of(head).is_packed or _is_tar(head)


def _block(file: IO[bytes], index: FileIndex, position: int) -> bytes:
    block = index.blocks[position]
    end = index.file_bytes if index.copy_bytes is None else index.copy_bytes
    raw_end = index.raw_bytes
    if position + 1 < len(index.blocks):
        end, raw_end = index.blocks[position + 1].at, index.blocks[position + 1].raw_bytes
    content = os.pread(file.fileno(), end - block.at, block.at)
    if index.copy_bytes is not None:
        content = zstandard.ZstdDecompressor().decompress(content)
    if len(content) != raw_end - block.raw_bytes:
        raise DamageError(f"it ends after line {block.lines:,}")
    if position == 0:
        content = content.removeprefix(codecs.BOM_UTF8)  # which editors on Windows write
    return content if content.endswith(b"\n") else content + b"\n"


def _kept_at(path: Path, home: Home) -> Path:
    name = hashlib.sha256(os.fsencode(path)).hexdigest()[:32]
    return home.corpora / ".files" / f"{name}.json"


def _copy_of(kept: Path) -> Path:
    return kept.with_suffix(".zst")


def _load(kept: Path, path: Path) -> FileIndex | None:
    """Return the kept index; None if there is none for the file as it is now, or its copy is gone."""
    with suppress(OSError, msgspec.DecodeError):
        index = msgspec.json.decode(read_file(kept), type=FileIndex)
        is_valid = (index.format_version, index.path) == (_FORMAT_VERSION, str(path))
        if index.copy_bytes is not None:
            is_valid = is_valid and _copy_of(kept).stat().st_size == index.copy_bytes
        if is_valid and _facts(path) == (index.file_bytes, index.modified_ns, index.status_ns):
            return index
    return None


def _facts(path: Path) -> tuple[int, int, int]:
    """Return (size in bytes, mtime in ns, ctime in ns)."""
    try:
        info = path.stat()
    except OSError as err:
        raise unreadable(path, err.strerror or str(err)) from err
    return info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _remove_orphans(folder: Path) -> None:
    """Remove copies of files that no longer exist."""
    for kept in folder.glob("*.json"):
        with suppress(OSError, msgspec.DecodeError):
            index = msgspec.json.decode(read_file(kept), type=FileIndex)
            if index.copy_bytes is not None and not Path(index.path).exists():
                _copy_of(kept).unlink(missing_ok=True)
                kept.unlink()


def _read(
    path: Path, kept: Path, progress: Callable[[int], None], block_bytes: int, free: FreeBytes
) -> FileIndex:
    """Read a whole file, copying a packed one, and keep its index."""
    facts = _facts(path)
    if not _is_packed(path):
        index = _indexed(path, facts, _whole_lines(path, block_bytes), progress, len)
        _keep(index, kept)
        return index
    folder, purpose = kept.parent, f"unpack {path.name}"
    require_space(folder, facts[0] * _COPY_RATIO, purpose, available=free(folder))
    compressor = zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL, write_checksum=True)
    with replacing(_copy_of(kept)) as building:
        with building.open("wb") as copy:

            def write(block: bytes) -> int:
                frame = compressor.compress(block)
                require_space(folder, len(frame), purpose, available=free(folder))
                return copy.write(frame)

            index = _indexed(path, facts, _whole_lines(path, block_bytes), progress, write)
        index = msgspec.structs.replace(index, copy_bytes=building.stat().st_size)
        # Without the copy that follows, an index is not valid.
        _keep(index, kept)
    return index


def _keep(index: FileIndex, kept: Path) -> None:
    with replacing(kept) as building:
        building.write_bytes(msgspec.json.encode(index))


def _indexed(
    path: Path,
    facts: tuple[int, int, int],
    blocks: Iterable[bytes],
    progress: Callable[[int], None],
    write: Callable[[bytes], int],
) -> FileIndex:
    """Return the index of a file's blocks; `write` returns how many bytes a block takes where it is kept."""
    digest = hashlib.sha256()
    entries = []
    at = raw_bytes = lines = 0
    first_empty = None
    for block in blocks:
        entries.append(Block(at, raw_bytes, lines))
        after_line_end = b"\n" + block
        empty = [place for ending in _EMPTY_LINES if (place := after_line_end.find(ending)) >= 0]
        if first_empty is None and empty:
            first_empty = lines + block.count(b"\n", 0, min(empty))
        count = block.count(b"\n") + (not block.endswith(b"\n"))
        at += write(block)
        digest.update(block)
        raw_bytes += len(block)
        lines += count
        progress(count)
    if _facts(path)[:2] != facts[:2]:
        raise unreadable(path, "it was changed while it was read")
    return FileIndex(
        format_version=_FORMAT_VERSION,
        path=str(path),
        file_bytes=facts[0],
        modified_ns=facts[1],
        status_ns=facts[2],
        lines=lines,
        raw_bytes=raw_bytes,
        sha256=digest.hexdigest(),
        blocks=tuple(entries),
        first_empty=first_empty,
    )


def _whole_lines(path: Path, block_bytes: int) -> Iterator[bytes]:
    """Yield a file's bytes in blocks of whole lines; only the last may lack a line end."""
    waiting = bytearray()
    for chunk in unpacked(path):
        waiting += chunk
        after = chunk.rfind(b"\n") + 1
        if after and len(waiting) >= block_bytes:
            end = len(waiting) - len(chunk) + after
            yield bytes(waiting[:end])
            del waiting[:end]
        if len(waiting) > _MOST_LINE_BYTES:
            raise unreadable(path, f"a line of it is longer than {_MOST_LINE_BYTES >> 20} MiB")
    if waiting:
        yield bytes(waiting)
