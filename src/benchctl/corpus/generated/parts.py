"""One part file of a corpus: written with its checksums, read back as whole lines, damage noticed."""

import hashlib
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import zstandard

from benchctl.corpus.generated.generator import generate
from benchctl.corpus.generated.layout import Span
from benchctl.errors import BenchctlError

BLOCK_BYTES = 1 << 20

# Generation and compression then take about the same time; level 3 saves 7 % of the bytes and costs 60 % more
# time.
_COMPRESSION_LEVEL = 1


@dataclass(frozen=True)
class CorpusPart:
    """What a part file holds.

    Attributes:
        name: of the file, within the corpus folder.
        start: the first document, numbered within the whole corpus.
        stop: one behind the last document.
        raw_bytes: size of the documents, line ends included.
        sha256: of the raw bytes, hexadecimal.
        file_bytes: size of the compressed file.
    """

    name: str
    start: int
    stop: int
    raw_bytes: int
    sha256: str
    file_bytes: int


def damaged(path: Path, reason: str) -> BenchctlError:
    """The error for a corpus file that isn't what was once written."""
    return BenchctlError(
        f"corpus file {path} is damaged: {reason}",
        hint=f"delete the corpus: rm -r {shlex.quote(str(path.parent))}; it is made anew when next needed",
    )


def write_part(folder: Path, seed: int, documents: int, span: Span) -> CorpusPart:
    """Generate some documents of a corpus into a compressed file.

    Args:
        folder: where the file goes.
        seed: of the corpus.
        documents: size of the whole corpus.
        span: which documents, and the file's name.

    Raises:
        OSError: the file could not be written.
    """
    path = folder / span.name
    digest = hashlib.sha256()
    raw_bytes = 0
    compressor = zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL, write_checksum=True)
    with path.open("wb") as file, compressor.stream_writer(file) as compressed:
        for block in generate(seed, documents, span.start, span.stop):
            digest.update(block)
            raw_bytes += len(block)
            compressed.write(block)
    return CorpusPart(span.name, span.start, span.stop, raw_bytes, digest.hexdigest(), path.stat().st_size)


def read_part(folder: Path, part: CorpusPart, *, block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
    r"""All documents of a part file, decompressed.

    Args:
        folder: where the file is.
        part: which file, and what it must hold.
        block_bytes: how much is decompressed at a time.

    Yields:
        Whole lines, each ending in "\n": up to `block_bytes` and the rest of a line.

    Raises:
        BenchctlError: the file is missing, unreadable or damaged; blocks before it were given out by then.
    """
    path = folder / part.name
    raw_bytes = 0
    unfinished = b""
    try:
        with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as reader:
            while block := reader.read(block_bytes):
                raw_bytes += len(block)
                cut = block.rfind(b"\n") + 1
                if cut:
                    yield unfinished + block[:cut]
                    unfinished = b""
                unfinished += block[cut:]
    except zstandard.ZstdError as err:
        raise damaged(path, str(err)) from err
    except OSError as err:
        raise damaged(path, err.strerror or str(err)) from err
    if raw_bytes != part.raw_bytes or unfinished:
        raise damaged(path, f"{raw_bytes} bytes instead of {part.raw_bytes}")


def verify_part(folder: Path, part: CorpusPart) -> None:
    """Read a part file in full and compare its SHA-256.

    Raises:
        BenchctlError: the file is missing, unreadable or damaged.
    """
    digest = hashlib.sha256()
    for block in read_part(folder, part):
        digest.update(block)
    if digest.hexdigest() != part.sha256:
        raise damaged(folder / part.name, "its documents have another SHA-256 than those that were written")


def slice_lines(blocks: Iterator[bytes], start: int, stop: int) -> Iterator[bytes]:
    """Lines [start, stop) out of blocks of whole lines, counted over all blocks; reads no further."""
    at = 0
    for block in blocks:
        lines = block.count(b"\n")
        if at + lines > start:
            first, last = max(start - at, 0), min(stop - at, lines)
            yield block[_offset_of_line(block, first) : _offset_of_line(block, last)]
        at += lines
        if at >= stop:
            return


def _offset_of_line(block: bytes, line: int) -> int:
    offset = 0
    for _ in range(line):
        offset = block.index(b"\n", offset) + 1
    return offset
