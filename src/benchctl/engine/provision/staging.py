"""Half-done work beside its final place: it appears there complete or vanishes, whoever dies meanwhile."""

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchctl.disk import disk_errors
from benchctl.home import Home

_PREFIX = ".partial-"


@contextlib.contextmanager
def staging(parent: Path, doing: str) -> Iterator[Path]:
    """A folder below `parent` for half-done work; what is complete is moved out, and the rest vanishes.

    Args:
        parent: a folder on the file system where the complete thing is going to be.
        doing: what is being done and where, for "cannot ...".
    """
    with (
        disk_errors(doing),
        _lock(parent, fcntl.LOCK_SH),
        tempfile.TemporaryDirectory(dir=parent, prefix=_PREFIX) as folder,
    ):
        yield Path(folder)


def settle(ready: Path, final: Path) -> None:
    """Move a complete folder to its place, unless another process has just put the same there.

    Raises:
        OSError: it cannot be moved.
    """
    try:
        ready.replace(final)
    except OSError as err:
        if err.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def sweep(home: Home) -> None:
    """Remove the half-done work of processes that were killed.

    A folder where somebody is at work just now is left for another time. So is what cannot be removed: if
    that hinders the work, the work will say so.
    """
    with contextlib.suppress(OSError):
        for folder in {leftover.parent for leftover in home.root.glob(f"*/{_PREFIX}*")}:
            _sweep(folder)


def _sweep(folder: Path) -> None:
    with _lock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB) as alone:
        if alone:
            for leftover in folder.glob(f"{_PREFIX}*"):
                shutil.rmtree(leftover, ignore_errors=True)


@contextlib.contextmanager
def _lock(folder: Path, operation: int) -> Iterator[bool]:
    """Lock a folder until the block ends, or the process in whatever way.

    Yields:
        Whether it is locked; not so when others hold it, or where the file system has no locks.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(handle, operation)
            held = True
        except OSError:
            held = False
        yield held
    finally:
        os.close(handle)
