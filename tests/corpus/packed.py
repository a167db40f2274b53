"""Bytes packed in all the ways in which corpora are published, as one stream or several."""

import bz2
import gzip
import io
import random
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import zstandard

SKIPPABLE_FRAME = b"\x5f\x2a\x4d\x18\x03\x00\x00\x00any"


def zipped(*parts: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("folder")
        archive.writestr("folder/documents.json", b"".join(parts))
    return buffer.getvalue()


def one_frame(*parts: bytes) -> bytes:
    """As `zstd` writes a file: the frame does not say how much it holds when it comes from a pipe."""
    return zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compress(b"".join(parts))


def frames(*parts: bytes) -> bytes:
    packer = zstandard.ZstdCompressor(write_checksum=True)
    return SKIPPABLE_FRAME + b"".join(packer.compress(part) for part in parts)


def bzipped(*parts: bytes) -> bytes:
    return b"".join(bz2.compress(part, 1) for part in parts)


def gzipped(*parts: bytes) -> bytes:
    return b"".join(gzip.compress(part, mtime=0) for part in parts)


def tarred(*parts: bytes, mode: Literal["w", "w:gz", "w:bz2"] = "w", files: int = 1) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for number in range(files):
            member = tarfile.TarInfo(f"folder/documents{number}.json")
            member.size = sum(map(len, parts))
            archive.addfile(member, io.BytesIO(b"".join(parts)))
    return buffer.getvalue()


def plain(*parts: bytes) -> bytes:
    return b"".join(parts)


PACKERS: dict[str, Callable[..., bytes]] = {
    "plain": plain,
    "bz2": bzipped,
    "zst-frames": frames,
    "zst": one_frame,
    "gz": gzipped,
    "zip": zipped,
    "tar": tarred,
    "tar.gz": partial(tarred, mode="w:gz"),
    "tar.bz2": partial(tarred, mode="w:bz2"),
}


def cut(raw: bytes, places: Sequence[int]) -> list[bytes]:
    """The bytes in parts that end anywhere."""
    ends = sorted(place % (len(raw) + 1) for place in places)
    return [raw[begin:end] for begin, end in zip([0, *ends], [*ends, len(raw)], strict=True)]


def text(size: int, seed: int = 1) -> bytes:
    """Lines that do not compress to nothing."""
    draw = random.Random(seed)  # noqa: S311 - test data
    lines = bytearray()
    while len(lines) < size:
        lines += b'{"a":"%s"}\n' % draw.randbytes(draw.randint(1, 400)).hex().encode()
    return bytes(lines)
