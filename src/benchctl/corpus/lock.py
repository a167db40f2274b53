"""One process at a time, where several want the same file."""

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchctl.disk import disk_errors


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock that ends with this process at the latest; wait for it as long as it takes.

    Args:
        path: of a file that stands for the lock; made if need be.

    Raises:
        BenchctlError: it cannot be made.
    """
    with ExitStack() as stack:
        with disk_errors(f"make {path}"):
            file = stack.enter_context(path.open("w"))
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
