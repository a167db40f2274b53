"""One process at a time, where several want the same file."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock that ends with this process at the latest; wait for it as long as it takes.

    Args:
        path: of a file that stands for the lock; made if need be.
    """
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
