"""Decompression of files of documents while they are read, in parallel where the format allows it."""

import bz2
import gzip
import lzma
import os
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import groupby, islice, repeat
from pathlib import Path
from typing import IO, NamedTuple, TypeVar, cast

import zstandard

from benchctl.errors import BenchctlError


class DamageError(Exception):
    """A file is damaged or incomplete; the text tells how, without naming the file."""


# Read-ahead: by several threads, in order, in bounded memory.

T = TypeVar("T")


def in_order(jobs: Iterable[Callable[[], T]], *, threads: int, most: int) -> Generator[T, None, None]:
    """The results of jobs, in the order of the jobs.

    Closing the iterator early waits for running jobs, and starts no more.

    Args:
        jobs: taken from the iterable only when there is room for their results.
        threads: how many run them.
        most: results waiting or in progress at any time.

    Raises:
        Whatever a job raises, in its place.
    """
    pool = ThreadPoolExecutor(threads, thread_name_prefix="decoder")
    waiting: deque[Future[T]] = deque()
    try:
        for job in jobs:
            waiting.append(pool.submit(job))
            if len(waiting) == most:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def ahead(blocks: Iterator[bytes], *, most: int) -> Generator[bytes, None, None]:
    """The same non-empty blocks, up to `most` of them read ahead by another thread."""
    for block in in_order(repeat(lambda: next(blocks, b"")), threads=1, most=most):
        if not block:
            return
        yield block


# bzip2 in parallel: blocks begin with a mark at any bit, and can be decoded independently.
#
# Every block is wrapped into a stream of its own for libbz2, which checks the block's CRC. An apparent mark
# may be data, about once in 10^15 bits; then decoding the block before it fails, and the next mark is tried.
#
# Why not a library: `bz2` cannot start in the middle of a file, as every sender of documents does, and uses
# one core. indexed_bzip2 1.7 and rapidgzip 0.16 (MIT, wheels for CPython 3.11 to 3.13) can do both, but with
# several threads they do not check a stream's own CRC: a file that lacks a whole block, or has trailing data,
# is read without an error, and an index with too few documents gets measured. For a truncated file they
# report `std::exception`. They save little: the CPU time for 200 MB of logs was 6.0 s with `bz2`, 6.7 s here
# and 5.8 s with indexed_bzip2.

_BLOCK_MARK = 0x314159265359
_END_MARK = 0x177245385090
_MARK_BITS = 48
_CRC_BITS = 32
_HEADER = b"BZh9"  # the largest block size, which also decodes smaller ones
_HEADER_BITS = 32
_MOST_SYMBOLS = 900_000
_SEARCHED_BYTES = 1 << 22
_AFTER_BYTES = 24  # enough after a mark to tell whether it is one
_TRIED_ENDS = 3


class Mark(NamedTuple):
    """The start of a block, or the end of a stream.

    Attributes:
        at: first bit of the mark, from the beginning of the file.
        is_end: of a stream; False for a block.
        crc: of the block, or of the stream.
    """

    at: int
    is_end: bool
    crc: int


class _Decoded(NamedTuple):
    """The bytes from a mark to the next, or why there are none."""

    mark: Mark
    until: int
    data: bytes
    problem: str


def decode_bzip2(file: int, start: int, stop: int | None, threads: int) -> Iterator[tuple[int, bytes]]:
    """Decode a bzip2 file of one or more streams.

    Args:
        file: descriptor.
        start: the bit at which a block begins; 0 for the beginning of the file.
        stop: the bit at which another one begins; the end of the file when None.
        threads: how many decode.

    Yields:
        (bit at which the block begins, its bytes), in order.

    Raises:
        DamageError: the file is damaged or truncated.
    """
    return decode_marks(find_marks(file, start, stop), file, start, stop, threads)


def decode_marks(
    marks: Iterator[Mark], file: int, start: int, stop: int | None, threads: int
) -> Iterator[tuple[int, bytes]]:
    """The same, given candidate marks; those at which no preceding block ends are ignored."""
    expected = start or _HEADER_BITS
    stream_crc: int | None = None if start else 0
    ended = False
    with closing(in_order(_bzip2_jobs(marks, file), threads=threads, most=threads + 2)) as decoded:
        for found in decoded:
            if expected == stop:
                return
            if found.mark.at < expected:
                continue
            if found.mark.at > expected or found.problem:
                raise DamageError(found.problem or f"there is no block at bit {expected}")
            expected = found.until
            ended = found.mark.is_end
            if ended:
                if stream_crc not in {None, found.mark.crc}:
                    raise DamageError("the checksum of a stream does not match")
                stream_crc = 0
                continue
            if stream_crc is not None:
                stream_crc = (stream_crc << 1 & 0xFFFFFFFF | stream_crc >> 31) ^ found.mark.crc
            yield found.mark.at, found.data
    if expected != stop and (stop is not None or not ended):
        raise DamageError("it ends in the middle")


def _bzip2_jobs(marks: Iterator[Mark], file: int) -> Iterator[Callable[[], _Decoded]]:
    """One job per mark, which knows the following marks."""
    known = list(islice(marks, _TRIED_ENDS + 1))
    while known:
        yield partial(_decode_one, file, known[0], [mark.at for mark in known[1:]])
        known = [*known[1:], *islice(marks, 1)]


def _decode_one(file: int, mark: Mark, ends: list[int]) -> _Decoded:
    if mark.is_end:
        until = -(-(mark.at + _MARK_BITS + _CRC_BITS) // 8) * 8 + _HEADER_BITS
        return _Decoded(mark, until, b"", "")
    for end in ends:
        try:
            data = _decode_block(file, mark, end)
        except (OSError, EOFError):
            continue
        return _Decoded(mark, end, data, "")
    where = f"the block at bit {mark.at} is damaged" if ends else "it ends in the middle of a block"
    return _Decoded(mark, 0, b"", where)


def _decode_block(file: int, mark: Mark, end: int) -> bytes:
    """The bytes of the block of bits [mark, end), as a stream of one block."""
    bits = end - mark.at
    first = mark.at // 8
    raw = os.pread(file, -(-end // 8) - first, first)
    value = _bits(raw, mark.at % 8, bits) << _MARK_BITS | _END_MARK
    value = value << _CRC_BITS | mark.crc
    bits += _MARK_BITS + _CRC_BITS
    padding = -bits % 8
    decoder = bz2.BZ2Decompressor()
    data = decoder.decompress(_HEADER + (value << padding).to_bytes((bits + padding) // 8))
    if not decoder.eof:
        raise EOFError
    return data


def find_marks(
    file: int, start: int, stop: int | None, *, read_bytes: int = _SEARCHED_BYTES
) -> Iterator[Mark]:
    """Candidate marks, in order.

    Args:
        file: descriptor.
        start: the first bit to look at.
        stop: the last bit at which a mark may begin, inclusive; the end of the file when None.
        read_bytes: how much is searched at a time.
    """
    at = start // 8
    while data := os.pread(file, read_bytes + _AFTER_BYTES, at):
        for mark in sorted(_marks_within(data, read_bytes)):
            where = at * 8 + mark.at
            if stop is not None and where > stop:
                return
            if where >= start:
                yield mark._replace(at=where)
        at += read_bytes
        if stop is not None and at * 8 > stop:
            return


def _marks_within(data: bytes, most: int) -> Iterator[Mark]:
    """Candidate marks that begin in the first `most` bytes."""
    for magic in (_BLOCK_MARK, _END_MARK):
        for shift in range(8):
            # At any bit offset the mark covers five whole bytes, which are found fast.
            inner = (magic << 8 - shift).to_bytes(7)[1:6]
            place = data.find(inner, 1)
            while 0 < place <= most:
                at = (place - 1) * 8 + shift
                if _bits(data, at, _MARK_BITS) == magic and _plausible(data, at, is_end=magic == _END_MARK):
                    yield Mark(at, magic == _END_MARK, _bits(data, at + _MARK_BITS, _CRC_BITS))
                place = data.find(inner, place + 1)


def _plausible(data: bytes, at: int, *, is_end: bool) -> bool:
    """Whether the bits after a mark are valid."""
    behind = at + _MARK_BITS + _CRC_BITS
    if behind > len(data) * 8:
        return False
    if is_end:
        return data[-(-behind // 8) :][:3] in {b"", b"BZh"}
    # One bit, then the position of the block's first byte after sorting.
    return behind + 25 <= len(data) * 8 and _bits(data, behind + 1, 24) < _MOST_SYMBOLS


def _bits(data: bytes, at: int, count: int) -> int:
    last = -(-(at + count) // 8)
    return int.from_bytes(data[at // 8 : last]) >> last * 8 - at - count & (1 << count) - 1


# Zstandard: small frames are decoded in parallel, a large one by a read-ahead thread.
#
# Frame boundaries follow from headers, without decoding.

_FRAME_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = 0x184D2A50
_SKIPPABLE_HEADER_BYTES = 8
_LONGEST_HEADER_BYTES = 18
_BLOCK_HEADER_BYTES = 3
_CHECKSUM_BYTES = 4
_MOST_BLOCK_BYTES = 1 << 17
_RLE, _RESERVED = 1, 3
_MOST_WINDOW_BYTES = 1 << 31  # the window of `zstd --long=31`

_TOGETHER_BYTES = 1 << 20  # small frames are decoded together
_LARGE_BYTES = 1 << 25  # larger frames are never held in memory; those of pzstd are smaller
_READ_BYTES = 1 << 20
_BLOCKS_AHEAD = 4


class Frame(NamedTuple):
    """The position [at, stop) of a frame in its file, and the upper bound of its decoded size."""

    at: int
    stop: int
    most_bytes: int


class _Batch(NamedTuple):
    """Frames that are decoded together, or a single large one."""

    frames: list[Frame]
    is_large: bool

    @property
    def at(self) -> int:
        return self.frames[0].at


def _decode_zstd(file: int, start: int, stop: int | None, threads: int) -> Iterator[tuple[int, bytes]]:
    batches = _batches(find_frames(file, start, stop))
    for is_large, group in groupby(batches, key=lambda batch: batch.is_large):
        if is_large:
            for batch in group:
                yield from _large(file, batch)
        else:
            with closing(in_order(_zstd_jobs(group, file), threads=threads, most=threads + 2)) as decoded:
                yield from (found for found in decoded if found[1])


def _large(file: int, batch: _Batch) -> Iterator[tuple[int, bytes]]:
    at = batch.at
    with closing(ahead(_decode_large(file, batch.frames[0]), most=_BLOCKS_AHEAD)) as blocks:
        for block in blocks:
            yield at, block
            at = -1


def find_frames(file: int, start: int, stop: int | None) -> Iterator[Frame]:
    """The frames between two positions, without skippable ones.

    Args:
        file: descriptor.
        start: the byte at which a frame begins.
        stop: the byte at which to end; the end of the file when None.

    Raises:
        DamageError: the file is damaged or truncated.
    """
    size = os.fstat(file).st_size
    stop = size if stop is None else stop
    at = start
    while at < stop:
        header = os.pread(file, _LONGEST_HEADER_BYTES, at)
        magic = int.from_bytes(header[:4], "little")
        if magic & ~0xF == _SKIPPABLE and len(header) >= _SKIPPABLE_HEADER_BYTES:
            at += _SKIPPABLE_HEADER_BYTES + int.from_bytes(header[4:8], "little")
        elif header[:4] == _FRAME_MAGIC:
            frame = _frame(file, at, header, size)
            yield frame
            at = frame.stop
        else:
            raise DamageError(f"there is no frame at byte {at}")
    if at > size:
        raise DamageError("it ends in the middle of a frame")


def _frame(file: int, at: int, header: bytes, size: int) -> Frame:
    try:
        facts = zstandard.get_frame_parameters(header)
        place = at + zstandard.frame_header_size(header)
    except zstandard.ZstdError as err:
        raise DamageError(f"the header of the frame at byte {at} is damaged") from err
    block_bytes = min(facts.window_size, _MOST_BLOCK_BYTES)
    most_bytes = 0
    is_last = False
    while not is_last:
        header = os.pread(file, _BLOCK_HEADER_BYTES, place)
        if len(header) < _BLOCK_HEADER_BYTES:
            raise DamageError("it ends in the middle of a frame")
        value = int.from_bytes(header, "little")
        is_last, kind, length = bool(value & 1), value >> 1 & 3, value >> 3
        if kind == _RESERVED:
            raise DamageError(f"the block at byte {place} is of no known kind")
        place += _BLOCK_HEADER_BYTES + (1 if kind == _RLE else length)
        most_bytes += block_bytes
    place += _CHECKSUM_BYTES if facts.has_checksum else 0
    if place > size:
        raise DamageError("it ends in the middle of a frame")
    return Frame(at, place, min(most_bytes, _content_bytes(facts.content_size)))


def _content_bytes(content_bytes: int) -> int:
    """The size of a frame's content according to its header; without one, a huge number."""
    return content_bytes if 0 <= content_bytes < zstandard.CONTENTSIZE_ERROR else 1 << 64


def _batches(frames: Iterable[Frame]) -> Iterator[_Batch]:
    """Small frames, grouped by the MiB."""
    waiting: list[Frame] = []
    held = 0
    for frame in frames:
        if waiting and held + frame.most_bytes > _TOGETHER_BYTES:
            yield _Batch(waiting, is_large=False)
            waiting = []
        if frame.most_bytes >= _LARGE_BYTES:
            yield _Batch([frame], is_large=True)
            continue
        held = frame.most_bytes + (held if waiting else 0)
        waiting.append(frame)
    if waiting:
        yield _Batch(waiting, is_large=False)


def _zstd_jobs(batches: Iterable[_Batch], file: int) -> Iterator[Callable[[], tuple[int, bytes]]]:
    for batch in batches:
        yield partial(_decode_small, file, batch)


def _decode_small(file: int, batch: _Batch) -> tuple[int, bytes]:
    decoder = _decoder()
    found = [
        # The initial buffer if the header does not state the frame's size.
        decoder.decompress(os.pread(file, frame.stop - frame.at, frame.at), max_output_size=frame.most_bytes)
        for frame in batch.frames
    ]
    return batch.at, found[0] if len(found) == 1 else b"".join(found)


def _decode_large(file: int, frame: Frame) -> Iterator[bytes]:
    extent = cast("IO[bytes]", _Extent(file, frame.at, frame.stop))  # nothing but read() is called
    with _decoder().stream_reader(extent) as reader:
        while block := reader.read(_READ_BYTES):
            yield block


class _Extent:
    """A part of a file, for a reader that would read beyond it."""

    def __init__(self, file: int, at: int, stop: int) -> None:
        self._file = file
        self._at = at
        self._stop = stop

    def read(self, size: int) -> bytes:
        found = os.pread(self._file, min(size, self._stop - self._at), self._at)
        self._at += len(found)
        return found


def _decoder() -> zstandard.ZstdDecompressor:
    return zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW_BYTES)


# Any file, by its magic number.

_NO_ENTRY = -1

_BZIP2 = b"BZh"
_GZIP = b"\x1f\x8b"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_ZSTANDARD = (b"\x28\xb5\x2f\xfd", b"\x2a\x4d\x18")  # the second, after any byte, of a skippable frame
_TAR_MAGIC, _TAR_MAGIC_AT = b"ustar", 257

_DAMAGE = (
    DamageError,
    EOFError,
    NotImplementedError,  # a zip with an unusual compression method
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
    """The bytes of a file, decompressed according to its content, not its name.

    Args:
        path: of a plain file, or one compressed by bzip2, Zstandard, gzip, or as a zip with one member.
        start: an entry yielded before, or 0.
        stop: another one; the end of the file when None.
        threads: how many decompress; None for the number of usable CPUs.

    Yields:
        (entry, bytes): none of them empty; the entry is where decoding can start with these bytes, -1 if it
        cannot: with the first bytes of a file it always can.

    Raises:
        BenchctlError: the file is missing, damaged or incomplete; preceding bytes have been yielded.
    """
    try:
        with path.open("rb") as file:
            yield from _decoded(file, start, stop, threads or len(os.sched_getaffinity(0)))
    except _DAMAGE as err:
        raise unreadable(path, str(err) or "it is damaged") from err
    except OSError as err:
        raise unreadable(path, err.strerror or str(err)) from err


def _decoded(file: IO[bytes], start: int, stop: int | None, threads: int) -> Iterator[tuple[int, bytes]]:
    head = os.pread(file.fileno(), _TAR_MAGIC_AT + len(_TAR_MAGIC), 0)
    if head.startswith(_BZIP2):
        return decode_bzip2(file.fileno(), start, stop, threads)
    if head[:4] == _ZSTANDARD[0] or head[1:4] == _ZSTANDARD[1]:
        return _decode_zstd(file.fileno(), start, stop, threads)
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
    """A format that can only be decoded from its beginning, by a read-ahead thread."""
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
