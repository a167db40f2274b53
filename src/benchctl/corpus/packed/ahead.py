"""Work done ahead of whoever takes its results: by several threads, in order, in bounded memory."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import repeat
from typing import TypeVar

T = TypeVar("T")


def usable_cpus() -> int:
    """How many CPUs this process may use."""
    return len(os.sched_getaffinity(0))


def in_order(jobs: Iterable[Callable[[], T]], *, threads: int, most: int) -> Generator[T, None, None]:
    """The results of jobs, in the order of the jobs.

    Closing the iterator early waits for the jobs that are being done, and does no more.

    Args:
        jobs: done by threads; they are taken from the iterable only when there is room for their results.
        threads: how many.
        most: results that are waiting or being made at any time.

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
    """The same blocks, up to `most` of them made by another thread before they are asked for.

    Args:
        blocks: none of them empty.
        most: how many.
    """
    for block in in_order(repeat(lambda: next(blocks, b"")), threads=1, most=most):
        if not block:
            return
        yield block
