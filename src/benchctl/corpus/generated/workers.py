"""Part files written by several processes, which end with the one that started them."""

import os
from collections.abc import Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from benchctl.child import follow_parent
from benchctl.corpus.generated.layout import Span
from benchctl.corpus.generated.parts import CorpusPart, write_part
from benchctl.errors import BenchctlError

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
