"""A disk on which files cannot grow beyond some bytes."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def nearly_full(left_bytes: int) -> Iterator[None]:
    """Within the block, no file grows beyond so many bytes: a part of a write is taken, the next fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (left_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
