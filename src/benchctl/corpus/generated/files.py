"""Corpora on disk: made once, found again, listed, read in document order.

A corpus is a folder of part files and a `manifest.json`. It is built in a hidden folder beside its place and
moved there when complete, so a folder with a proper name is a whole corpus.
"""

import errno
import os
import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from benchctl.child import follow_parent
from benchctl.corpus.generated.generator import GENERATOR_VERSION
from benchctl.corpus.generated.layout import Span, spans
from benchctl.corpus.generated.manifest import Corpus, corpus_digest, load_corpus, save_manifest
from benchctl.corpus.generated.parts import (
    BLOCK_BYTES,
    CorpusPart,
    read_part,
    slice_lines,
    verify_part,
    write_part,
)
from benchctl.corpus.lock import locked
from benchctl.disk import FreeBytes, free_bytes, require_space
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home

__all__ = [
    "Corpus",
    "CorpusPart",
    "ensure_corpus",
    "list_corpora",
    "needed_bytes",
    "open_documents",
    "verify_corpus",
]

_SEEDS = 1 << 64
_FILE_BYTES_A_DOCUMENT = 145  # 132 measured, and a tenth to spare


# Part files written by several processes, which end with the one that started them.

# Under this many documents a worker takes longer to start than to do its share.
_WORTH_A_WORKER = 50_000


def write_parts(
    folder: Path, seed: int, documents: int, spans: Sequence[Span], *, workers: int | None = None
) -> Generator[CorpusPart, None, None]:
    """Write part files, in parallel when there is enough to do.

    Closing the iterator early ends the workers after the files that they are at.

    Args:
        folder: where the files go.
        seed: of the corpus.
        documents: size of the whole corpus.
        spans: which files.
        workers: how many processes at most; as many as this one may use CPUs when None.

    Yields:
        The parts, in the order of `spans`.

    Raises:
        OSError: a file could not be written.
        BenchctlError: a worker died.
    """
    most = len(os.sched_getaffinity(0)) if workers is None else workers
    workers = min(most, len(spans), documents // _WORTH_A_WORKER)
    write = partial(write_part, folder, seed, documents)
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


# Corpora on disk.


def ensure_corpus(
    home: Home,
    documents: int,
    *,
    seed: int = 1,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
    free: FreeBytes = free_bytes,
) -> Corpus:
    """Find a corpus, or make it.

    Of several processes that want the same corpus, one makes it and the others wait for it.

    Args:
        home: where corpora are kept.
        documents: size of the corpus.
        seed: from 0 to 2^64 - 1.
        workers: how many processes at most; as many as there are usable CPUs when None.
        progress: told the number of newly written documents, file by file.
        free: how much can be written to a folder, bytes.

    Raises:
        UsageError: the size or the seed is out of range.
        BenchctlError: there is too little space, writing failed, or the corpus that is there is damaged. Of a
            failed or interrupted attempt nothing is left.
    """
    if documents < 1 or not 0 <= seed < _SEEDS:
        raise UsageError(
            f"there is no corpus of {documents} documents with seed {seed}",
            hint="give at least one document and a seed from 0 to 2^64 - 1",
        )
    name = corpus_name(documents, seed)
    folder = home.corpora / name
    if folder.exists():
        return load_corpus(folder)
    try:
        with locked(home.corpora / f".{name}.lock"):
            if not folder.exists():  # somebody else may have been faster
                require_space(
                    home.corpora,
                    needed_bytes(documents),
                    f"generate a corpus of {documents:,} documents",
                    available=free(home.corpora),
                    hint="free some space, choose fewer documents, or set BENCHCTL_HOME to a larger disk",
                )
                _build(folder, seed, documents, workers, progress or (lambda _: None))
    except OSError as err:
        raise _cannot_write(folder, documents, err) from err
    return load_corpus(folder)


def corpus_name(documents: int, seed: int) -> str:
    """Of the folder that it is kept in."""
    return f"big5-v{GENERATOR_VERSION}-seed{seed}-{documents}"


def needed_bytes(documents: int) -> int:
    """About how much space the files of a corpus take; rather too much than too little."""
    return documents * _FILE_BYTES_A_DOCUMENT


def list_corpora(home: Home) -> tuple[Corpus, ...]:
    """All complete corpora, smallest first.

    Raises:
        BenchctlError: a corpus is damaged.
    """
    found = [load_corpus(folder) for folder in home.corpora.glob("big5-v*-seed*-*") if folder.is_dir()]
    return tuple(sorted(found, key=lambda corpus: (corpus.documents, corpus.seed, corpus.generator_version)))


def open_documents(
    corpus: Corpus, *, start: int = 0, stop: int | None = None, block_bytes: int = BLOCK_BYTES
) -> Iterator[bytes]:
    r"""The documents [start, stop) in order, decompressed, in memory of a few blocks.

    Args:
        corpus: which corpus.
        start: the first document wanted, from 0.
        stop: one behind the last one; the end of the corpus when None.
        block_bytes: how much is decompressed at a time.

    Yields:
        Whole lines, each ending in "\n": about `block_bytes`, less at the ends of parts.

    Raises:
        ValueError: the slice does not lie in the corpus.
        BenchctlError: a file is missing, unreadable or damaged; blocks before the damage were given out by
            then.
    """
    stop = corpus.documents if stop is None else stop
    if not 0 <= start <= stop <= corpus.documents:
        raise ValueError(f"documents [{start}, {stop}) are not a slice of a corpus of {corpus.documents}")
    for part in corpus.parts:
        first, last = max(start, part.start), min(stop, part.stop)
        if first >= last:
            continue
        blocks = read_part(corpus.root, part, block_bytes=block_bytes)
        if (first, last) == (part.start, part.stop):
            yield from blocks
        else:
            yield from slice_lines(blocks, first - part.start, last - part.start)


def verify_corpus(corpus: Corpus, *, progress: Callable[[int], None] | None = None) -> None:
    """Read a corpus in full and compare the SHA-256 of every part.

    Args:
        corpus: which corpus.
        progress: told the number of newly verified documents, file by file.

    Raises:
        BenchctlError: a file is missing, unreadable or damaged.
    """
    for part in corpus.parts:
        verify_part(corpus.root, part)
        if progress is not None:
            progress(part.stop - part.start)


def _build(
    folder: Path, seed: int, documents: int, workers: int | None, progress: Callable[[int], None]
) -> None:
    with _construction(folder) as building:
        parts = []
        with closing(
            write_parts(building, seed, documents, tuple(spans(documents)), workers=workers)
        ) as written:
            for part in written:
                parts.append(part)
                progress(part.stop - part.start)
        digest = corpus_digest(parts)
        save_manifest(building, Corpus(folder, seed, documents, GENERATOR_VERSION, digest, tuple(parts)))


@contextmanager
def _construction(folder: Path) -> Iterator[Path]:
    """A folder beside the given one that takes its place on success and vanishes otherwise.

    One left behind by a killed process is cleared first; the caller holds the lock, so nobody is using it.
    """
    building = folder.with_name(f".{folder.name}.building")
    try:
        if building.exists():
            shutil.rmtree(building)
        building.mkdir()
        yield building
        building.replace(folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _cannot_write(folder: Path, documents: int, err: OSError) -> BenchctlError:
    full = err.errno in (errno.ENOSPC, errno.EDQUOT)
    hint = "free some space or choose fewer documents" if full else f"check that {folder.parent} is writable"
    return BenchctlError(
        f"cannot write the corpus of {documents:,} documents (about {needed_bytes(documents):,} bytes) "
        f"to {folder}: {err.strerror or err}",
        hint=hint,
    )
