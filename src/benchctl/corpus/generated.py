"""Generated corpora on disk: built once, listed, and read in document order.

A corpus is a folder of part files and a `manifest.json`, which is moved to its place when it is complete.
"""

import fcntl
import hashlib
import os
import shlex
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Protocol

import msgspec
import zstandard

from benchctl.child import follow_parent
from benchctl.corpus import big5, cluster_metrics, vectors
from benchctl.corpus.tables import Span, check_slice
from benchctl.disk import FreeBytes, disk_errors, free_bytes, read_file, require_space, settle, staging
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home
from benchctl.track.model import GeneratorName


class CorpusGenerator(Protocol):
    """A module that makes documents."""

    GENERATOR_VERSION: int
    """Raised whenever a document changes."""
    FILE_BYTES_A_DOCUMENT: int
    """An upper estimate, compressed."""

    def generate(self, seed: int, documents: int, start: int, stop: int) -> Iterator[bytes]:
        """Yield the documents [start, stop) of a corpus, as blocks of whole lines."""
        ...

    def spans(self, documents: int) -> Iterator[Span]:
        """Yield the part files of a corpus of so many documents, in document order."""
        ...


GENERATORS: Mapping[GeneratorName, CorpusGenerator] = {
    "big5": big5,
    "cluster-metrics": cluster_metrics,
    "vectors": vectors,
}
"""The generators, by the names that tracks call them: each is a module."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock, represented by a file, until the block or this process ends; waits for it indefinitely.

    Raises:
        BenchctlError: If the file cannot be created.
    """
    with ExitStack() as stack:
        with disk_errors(f"make {path}"):
            file = stack.enter_context(path.open("w"))
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


# Part files.

BLOCK_BYTES = 1 << 20

# Compression takes about as long as generation; level 3 saves 7% of the bytes and costs 60% more time.
_COMPRESSION_LEVEL = 1


@dataclass(frozen=True)
class CorpusPart:
    """A part file with documents [start, stop) of the corpus."""

    name: str  # of the file, within the corpus folder
    start: int
    stop: int
    raw_bytes: int  # size of the documents, newlines included
    sha256: str  # of the raw bytes, hexadecimal
    file_bytes: int  # size of the compressed file


def damaged(path: Path, reason: str) -> BenchctlError:
    """Return the error for a corpus file that is not as it was written."""
    return BenchctlError(
        f"corpus file {path} is damaged: {reason}",
        hint=f"delete the corpus: rm -r {shlex.quote(str(path.parent))}; it is generated again when needed",
    )


def _write_part(folder: Path, generator: GeneratorName, seed: int, documents: int, span: Span) -> CorpusPart:
    """Generate documents of a corpus into a compressed file."""
    path = folder / span.name
    digest = hashlib.sha256()
    raw_bytes = 0
    compressor = zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL, write_checksum=True)
    with path.open("wb") as file, compressor.stream_writer(file) as compressed:
        for block in GENERATORS[generator].generate(seed, documents, span.start, span.stop):
            digest.update(block)
            raw_bytes += len(block)
            compressed.write(block)
    return CorpusPart(span.name, span.start, span.stop, raw_bytes, digest.hexdigest(), path.stat().st_size)


def _read_part(folder: Path, part: CorpusPart, *, block_bytes: int = BLOCK_BYTES) -> Iterator[bytes]:
    r"""Yield all documents of a part file, decompressed."""
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


def slice_lines(blocks: Iterator[bytes], start: int, stop: int) -> Iterator[bytes]:
    """Yield lines [start, stop) of blocks of whole lines, counted over all blocks; read no further."""
    at = 0
    for block in blocks:
        lines = block.count(b"\n")
        if at + lines > start:
            first, last = max(start - at, 0), min(stop - at, lines)
            if (first, last) == (0, lines):
                yield block
            else:
                begin = _offset_of_line(block, 0, first)
                yield block[begin : _offset_of_line(block, begin, last - first)]
        at += lines
        if at >= stop:
            return


def _offset_of_line(block: bytes, offset: int, lines: int) -> int:
    for _ in range(lines):
        offset = block.index(b"\n", offset) + 1
    return offset


# The manifest: written last, and checked against the files whenever it is read.

FORMAT_VERSION = 1

MANIFEST = "manifest.json"
"""Of a generated corpus, in its folder."""


class Corpus(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab", omit_defaults=True):
    """A complete corpus on disk, as its manifest has it."""

    format_version: int
    generator_version: int
    seed: int
    documents: int
    # SHA-256 of the documents and their division into parts, whatever the compression; hexadecimal.
    digest: str
    parts: tuple[CorpusPart, ...]  # its files, in document order
    generator: GeneratorName = "big5"
    folder: str = ""  # in no manifest

    @property
    def root(self) -> Path:
        """The folder of its files."""
        return Path(self.folder)

    @property
    def raw_bytes(self) -> int:
        """Size of all documents, newlines included."""
        return sum(part.raw_bytes for part in self.parts)

    @property
    def file_bytes(self) -> int:
        """Size of all part files."""
        return sum(part.file_bytes for part in self.parts)


def corpus_digest(parts: Iterable[CorpusPart]) -> str:
    """Compute SHA-256 over a line with the format's version, then one per part: name, documents, SHA-256."""
    total = hashlib.sha256(f"benchctl corpus {FORMAT_VERSION}\n".encode())
    for part in parts:
        total.update(f"{part.name} {part.start} {part.stop} {part.sha256}\n".encode())
    return total.hexdigest()


def load_corpus(folder: Path) -> Corpus:
    """Read a corpus's manifest and check that its files exist with their sizes.

    Raises:
        BenchctlError: If they do not, or the manifest is damaged.
    """
    path = folder / MANIFEST
    try:
        corpus = msgspec.json.decode(read_file(path), type=Corpus)
    except (OSError, msgspec.DecodeError) as err:
        raise damaged(path, str(err)) from err
    if corpus.format_version != FORMAT_VERSION or corpus.digest != corpus_digest(corpus.parts):
        raise damaged(path, "its digest or format version does not match")
    for part in corpus.parts:
        file = folder / part.name
        file_bytes = file.stat().st_size if file.is_file() else 0
        if file_bytes != part.file_bytes:
            raise damaged(file, f"{file_bytes} bytes instead of {part.file_bytes}")
    return msgspec.structs.replace(corpus, folder=str(folder))


_SEEDS = 1 << 64


# With smaller files, a worker takes longer to start than to do its share.
_WORTH_A_WORKER_BYTES = 7_000_000


def _write_parts(
    folder: Path,
    generator: GeneratorName,
    seed: int,
    documents: int,
    *,
    workers: int | None = None,
) -> Generator[CorpusPart, None, None]:
    """Write part files, in parallel when it is worth it.

    Closing the iterator early ends the workers after their current files.
    """
    spans = tuple(GENERATORS[generator].spans(documents))
    most = len(os.sched_getaffinity(0)) if workers is None else workers
    workers = min(most, len(spans), needed_bytes(generator, documents) // _WORTH_A_WORKER_BYTES)
    write = partial(_write_part, folder, generator, seed, documents)
    if workers <= 1:
        yield from map(write, spans)
        return
    # Spawned, not forked: the caller may have threads. They live as long as this iterator.
    pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=follow_parent)
    try:
        yield from pool.map(write, spans)
    except BrokenProcessPool as err:
        raise BenchctlError(
            f"a process that wrote the corpus to {folder} died",
            hint="the system may be short of memory: look at the kernel log, or use fewer workers",
        ) from err
    finally:
        pool.shutdown(cancel_futures=True)


def ensure_corpus(
    home: Home,
    documents: int,
    *,
    generator: GeneratorName = "big5",
    seed: int = 1,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
    free: FreeBytes = free_bytes,
) -> Corpus:
    """Find a corpus, or build it.

    If several processes want the same corpus, one builds it and the others wait.

    Args:
        home: has the corpora.
        documents: size of the corpus.
        generator: what makes them.
        seed: from 0 to 2^64 - 1.
        workers: at most this many processes; None for the number of usable CPUs.
        progress: called with the number of newly written documents, file by file.
        free: bytes that can be written to a folder.

    Raises:
        UsageError: If the size or the seed is out of range.
        BenchctlError: If there is too little space, writing failed, or the existing corpus is damaged. A
            failed or interrupted attempt leaves nothing behind.
    """
    if documents < 1 or not 0 <= seed < _SEEDS:
        raise UsageError(
            f"no such corpus: {documents} documents with seed {seed}",
            hint="give at least one document and a seed from 0 to 2^64 - 1",
        )
    name = corpus_name(generator, documents, seed)
    folder = home.corpora / name
    if not folder.exists():
        with locked(home.corpora / f".{name}.lock"):
            if not folder.exists():  # another process may have built it meanwhile
                require_space(
                    home.corpora,
                    needed_bytes(generator, documents),
                    f"generate a corpus of {documents:,} documents",
                    available=free(home.corpora),
                    hint="free some space, choose fewer documents, or set BENCHCTL_HOME to a larger disk",
                )
                _build(folder, generator, seed, documents, workers, progress or (lambda _: None))
    return load_corpus(folder)


def corpus_name(generator: GeneratorName, documents: int, seed: int) -> str:
    """Return the name of its folder."""
    return f"{generator}-v{GENERATORS[generator].GENERATOR_VERSION}-seed{seed}-{documents}"


def needed_bytes(generator: GeneratorName, documents: int) -> int:
    """Estimate the size of a corpus's files from above."""
    return documents * GENERATORS[generator].FILE_BYTES_A_DOCUMENT


def list_corpora(home: Home) -> tuple[Corpus, ...]:
    """Return all complete corpora, smallest first.

    Raises:
        BenchctlError: If a corpus is damaged.
    """
    folders = [folder for name in GENERATORS for folder in home.corpora.glob(f"{name}-v*-seed*-*")]
    corpuses = [load_corpus(folder) for folder in folders if folder.is_dir()]
    return tuple(sorted(corpuses, key=lambda corpus: (corpus.documents, corpus.root)))


def open_documents(
    corpus: Corpus, *, start: int = 0, stop: int | None = None, block_bytes: int = BLOCK_BYTES
) -> Iterator[bytes]:
    r"""Yield the documents [start, stop), from 0, by default all, in order, decompressed, in bounded memory.

    Yields:
        Whole lines with newlines: about `block_bytes`, less at the ends of parts.

    Raises:
        ValueError: If the slice is not within the corpus.
        BenchctlError: If a file is missing, unreadable or damaged; blocks before the damage have been
            yielded.
    """
    stop = corpus.documents if stop is None else stop
    check_slice(start, stop, corpus.documents)
    for part in corpus.parts:
        first, last = max(start, part.start), min(stop, part.stop)
        if first >= last:
            continue
        blocks = _read_part(corpus.root, part, block_bytes=block_bytes)
        if (first, last) == (part.start, part.stop):
            yield from blocks
        else:
            yield from slice_lines(blocks, first - part.start, last - part.start)


def _build(
    folder: Path,
    generator: GeneratorName,
    seed: int,
    documents: int,
    workers: int | None,
    progress: Callable[[int], None],
) -> None:
    with staging(folder.parent, f"write a corpus of {documents:,} documents to {folder}") as building:
        parts = []
        made = building / folder.name
        made.mkdir()
        with closing(_write_parts(made, generator, seed, documents, workers=workers)) as written:
            for part in written:
                parts.append(part)
                progress(part.stop - part.start)
        version, digest = GENERATORS[generator].GENERATOR_VERSION, corpus_digest(parts)
        corpus = Corpus(FORMAT_VERSION, version, seed, documents, digest, tuple(parts), generator)
        text = msgspec.json.format(msgspec.json.encode(corpus), indent=1)
        (made / MANIFEST).write_bytes(text + b"\n")
        settle(made, folder)
