"""bzip2 in parallel: its blocks begin with a mark at any bit, and each can be decoded on its own.

Every block is wrapped into a stream of its own for libbz2, which checks the block's CRC. What looks like a
mark may be data, once in 10^15 bits or so; then the block before it cannot be decoded, and is tried up to the
next mark.

Why no library does it: `bz2` cannot begin in the middle of a file, which every sender of documents does, and
uses one core. indexed_bzip2 1.7 and rapidgzip 0.16 (MIT, wheels for CPython 3.11 to 3.13) can do both, but
with several threads they do not check a stream's own CRC: a file that lacks a whole block, or has something
behind its end, is read without an error, and an index with fewer documents than were meant gets measured. Of
a file that was cut off they say `std::exception`. They save little: the CPU time for 200 MB of logs was 6.0 s
with `bz2`, 6.7 s here and 5.8 s with indexed_bzip2.
"""

import bz2
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import islice
from typing import NamedTuple

from benchctl.corpus.packed.ahead import in_order
from benchctl.corpus.packed.damage import DamageError

_BLOCK = 0x314159265359
_END = 0x177245385090
_MARK_BITS = 48
_CRC_BITS = 32
_HEADER = b"BZh9"  # the largest blocks: smaller ones are decoded as well
_HEADER_BITS = 32
_MOST_SYMBOLS = 900_000
_READ_BYTES = 1 << 22
_AFTER_BYTES = 24  # enough behind a mark to tell whether it is one
_TRIED_ENDS = 3


class Mark(NamedTuple):
    """Where a block begins, or where a stream ends.

    Attributes:
        at: first bit of the mark, counted from the beginning of the file.
        is_end: of a stream; False for a block.
        crc: of the block, or of the stream.
    """

    at: int
    is_end: bool
    crc: int


class _Decoded(NamedTuple):
    """What a mark stands before: the bytes up to the next mark, or why there are none."""

    mark: Mark
    until: int
    data: bytes
    problem: str


def decode(file: int, start: int, stop: int | None, threads: int) -> Iterator[tuple[int, bytes]]:
    """Decode a bzip2 file of one stream or several.

    Args:
        file: descriptor.
        start: the bit at which a block begins; 0 for the beginning of the file.
        stop: the bit at which another one begins; the end of the file when None.
        threads: how many decode.

    Yields:
        (bit at which the block begins, its bytes), in order.

    Raises:
        DamageError: the file is damaged, or ends too early.
    """
    return decode_marks(find_marks(file, start, stop), file, start, stop, threads)


def decode_marks(
    marks: Iterator[Mark], file: int, start: int, stop: int | None, threads: int
) -> Iterator[tuple[int, bytes]]:
    """The same with what looks like marks given; those that no block before them ends at are none."""
    expected = start or _HEADER_BITS
    stream_crc: int | None = None if start else 0
    ended = False
    with closing(in_order(_jobs(marks, file), threads=threads, most=threads + 2)) as decoded:
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


def _jobs(marks: Iterator[Mark], file: int) -> Iterator[Callable[[], _Decoded]]:
    """One a mark, which knows the marks behind its own."""
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
    value = _bits(raw, mark.at % 8, bits) << _MARK_BITS | _END
    value = value << _CRC_BITS | mark.crc
    bits += _MARK_BITS + _CRC_BITS
    padding = -bits % 8
    decoder = bz2.BZ2Decompressor()
    data = decoder.decompress(_HEADER + (value << padding).to_bytes((bits + padding) // 8))
    if not decoder.eof:
        raise EOFError
    return data


def find_marks(file: int, start: int, stop: int | None, *, read_bytes: int = _READ_BYTES) -> Iterator[Mark]:
    """What looks like a mark, in order, the one at `stop` included.

    Args:
        file: descriptor.
        start: the first bit to look at.
        stop: the last bit at which a mark may begin; that of the file when None.
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
    """What looks like a mark and begins in the first `most` bytes."""
    for magic in (_BLOCK, _END):
        for shift in range(8):
            # Five whole bytes of the mark, wherever it begins in a byte, are found fast.
            inner = (magic << 8 - shift).to_bytes(7)[1:6]
            place = data.find(inner, 1)
            while 0 < place <= most:
                at = (place - 1) * 8 + shift
                if _bits(data, at, _MARK_BITS) == magic and _plausible(data, at, is_end=magic == _END):
                    yield Mark(at, magic == _END, _bits(data, at + _MARK_BITS, _CRC_BITS))
                place = data.find(inner, place + 1)


def _plausible(data: bytes, at: int, *, is_end: bool) -> bool:
    """Whether what stands behind a mark can stand there."""
    behind = at + _MARK_BITS + _CRC_BITS
    if behind > len(data) * 8:
        return False
    if is_end:
        return data[-(-behind // 8) :][:3] in {b"", b"BZh"}
    # One bit, then where the block's first byte went when it was sorted.
    return behind + 25 <= len(data) * 8 and _bits(data, behind + 1, 24) < _MOST_SYMBOLS


def _bits(data: bytes, at: int, count: int) -> int:
    last = -(-(at + count) // 8)
    return int.from_bytes(data[at // 8 : last]) >> last * 8 - at - count & (1 << count) - 1
