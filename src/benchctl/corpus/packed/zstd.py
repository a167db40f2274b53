"""Zstandard: several small frames are decoded in parallel, a large one by a thread that works ahead.

Where frames begin and end stands in their headers, so nothing is decoded to find out.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from itertools import groupby
from typing import IO, NamedTuple, cast

import zstandard

from benchctl.corpus.packed.ahead import ahead, in_order
from benchctl.corpus.packed.damage import DamageError

_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = 0x184D2A50
_SKIPPABLE_HEADER_BYTES = 8
_LONGEST_HEADER_BYTES = 18
_BLOCK_HEADER_BYTES = 3
_CHECKSUM_BYTES = 4
_MOST_BLOCK_BYTES = 1 << 17
_RLE, _RESERVED = 1, 3
_MOST_WINDOW_BYTES = 1 << 31  # as far as `zstd --long=31` reaches back

_TOGETHER_BYTES = 1 << 20  # small frames are decoded together
_LARGE_BYTES = 1 << 25  # from here on, a frame is never held as a whole; those of pzstd are smaller
_READ_BYTES = 1 << 20
_BLOCKS_AHEAD = 4


class Frame(NamedTuple):
    """Where a frame lies.

    Attributes:
        at: its first byte.
        stop: one behind its last byte.
        most_bytes: what it can hold at most, decoded.
    """

    at: int
    stop: int
    most_bytes: int


class _Batch(NamedTuple):
    """Frames that are decoded together, or one that is too large for that."""

    frames: list[Frame]
    is_large: bool

    @property
    def at(self) -> int:
        """The first byte."""
        return self.frames[0].at


def decode(file: int, start: int, stop: int | None, threads: int) -> Iterator[tuple[int, bytes]]:
    """Decode a file of Zstandard frames.

    Args:
        file: descriptor.
        start: the byte at which a frame begins.
        stop: the byte at which another one begins; the end of the file when None.
        threads: how many decode.

    Yields:
        (byte at which the frame begins, bytes), in order; the first is -1 behind the beginning of a frame.

    Raises:
        DamageError: the file is damaged, or ends too early.
        zstandard.ZstdError: a frame is damaged, or needs a window of over 2 GiB.
    """
    batches = _batches(find_frames(file, start, stop))
    for is_large, group in groupby(batches, key=lambda batch: batch.is_large):
        if is_large:
            for batch in group:
                yield from _large(file, batch)
        else:
            with closing(in_order(_jobs(group, file), threads=threads, most=threads + 2)) as decoded:
                yield from (found for found in decoded if found[1])


def _large(file: int, batch: _Batch) -> Iterator[tuple[int, bytes]]:
    at = batch.at
    with closing(ahead(_decode_large(file, batch.frames[0]), most=_BLOCKS_AHEAD)) as blocks:
        for block in blocks:
            yield at, block
            at = -1


def find_frames(file: int, start: int, stop: int | None) -> Iterator[Frame]:
    """The frames from one place to another; skippable ones are left out.

    Args:
        file: descriptor.
        start: the byte at which a frame begins.
        stop: the byte at which to end; the end of the file when None.

    Raises:
        DamageError: the file is damaged, or ends too early.
    """
    size = os.fstat(file).st_size
    stop = size if stop is None else stop
    at = start
    while at < stop:
        header = os.pread(file, _LONGEST_HEADER_BYTES, at)
        magic = int.from_bytes(header[:4], "little")
        if magic & ~0xF == _SKIPPABLE and len(header) >= _SKIPPABLE_HEADER_BYTES:
            at += _SKIPPABLE_HEADER_BYTES + int.from_bytes(header[4:8], "little")
        elif header[:4] == _MAGIC:
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
    return Frame(at, place, min(most_bytes, _known(facts.content_size)))


def _known(content_bytes: int) -> int:
    """The size of a frame's content as its header says; a header that does not says something absurd."""
    return content_bytes if 0 <= content_bytes < zstandard.CONTENTSIZE_ERROR else 1 << 64


def _batches(frames: Iterable[Frame]) -> Iterator[_Batch]:
    """Frames by the MiB, as long as they are small."""
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


def _jobs(batches: Iterable[_Batch], file: int) -> Iterator[Callable[[], tuple[int, bytes]]]:
    for batch in batches:
        yield partial(_decode_small, file, batch)


def _decode_small(file: int, batch: _Batch) -> tuple[int, bytes]:
    decoder = _decoder()
    found = [
        # Where the header does not say how much a frame holds, this much is set aside at first.
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
    """A part of a file, for a reader that would go on behind it."""

    def __init__(self, file: int, at: int, stop: int) -> None:
        self._file = file
        self._at = at
        self._stop = stop

    def read(self, size: int) -> bytes:
        """The next bytes; none at the end of the part."""
        found = os.pread(self._file, min(size, self._stop - self._at), self._at)
        self._at += len(found)
        return found


def _decoder() -> zstandard.ZstdDecompressor:
    return zstandard.ZstdDecompressor(max_window_size=_MOST_WINDOW_BYTES)
