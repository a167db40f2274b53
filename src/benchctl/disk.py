"""Space on a disk, unfinished work that appears complete or not at all, and refusals in words."""

import contextlib
import errno
import fcntl
import functools
import glob
import os
import pwd
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import TypeVar

import msgspec

from benchctl.errors import BenchctlError
from benchctl.home import UNPRIVILEGED_USER, Home

RESERVE_BYTES = 64 * 1024 * 1024
"""Space that is left on a disk at least, bytes: a full disk harms others too."""

MOST_BYTES = 256 * 1024 * 1024
"""Of a file that is read as a whole; the records of years of nights are smaller."""

_MORE_SPACE = "free some space, or set BENCHCTL_HOME to a directory on a larger disk"
_MIB = 1024 * 1024

NO_LINKS = frozenset({errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EACCES})
"""Errors of file systems that cannot make a hard link."""

T = TypeVar("T")

FreeBytes = Callable[[Path], int]
"""Bytes that can still be written to the file system that holds a folder."""


def free_bytes(folder: Path) -> int:
    """Return bytes free for this user on the file system that holds `folder`."""
    return shutil.disk_usage(folder).free


def require_space(
    folder: Path, needed: int, purpose: str, *, available: int, hint: str = _MORE_SPACE
) -> None:
    """Check that `needed` of the `available` bytes leave `RESERVE_BYTES` to spare.

    Raises:
        BenchctlError: If the space is too small, with `folder`, `purpose` and `hint`.
    """
    if needed + RESERVE_BYTES > available:
        raise BenchctlError(
            f"not enough space in {folder} to {purpose}: "
            f"{-(-(needed + RESERVE_BYTES) // _MIB):,} MiB needed, {available // _MIB:,} MiB free",
            hint=hint,
        )


def try_writing(folder: Path) -> None:
    """Try to make a file in a folder, or where the folder would be made; nothing is left.

    Raises:
        OSError: If writing is not possible.
    """
    existing = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
    with tempfile.TemporaryFile(dir=existing):
        pass


def expanded(text: str) -> Path:
    """Return a path with a home for `~` or `~USER` if there is one; else as written."""
    path = Path(text)
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def size_bytes(path: Path) -> int:
    """Return the size of a file, or of all files of a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.lstat().st_size for file in files if file.is_file())


def remove_folder(path: Path) -> int:
    """Remove a folder with all that is in it.

    Returns:
        Bytes that its files had.

    Raises:
        BenchctlError: If the disk refuses.
    """
    with disk_errors(f"remove {path}"):
        freed = size_bytes(path)
        shutil.rmtree(path)
    return freed


def open_regular(path: Path, *, follow: bool = True) -> BufferedReader:
    """Open a file for reading, and nothing that only looks like one: a pipe or a device may never end.

    Args:
        path: the file.
        follow: whether it may be a link. Where nodes write, it may lead to what only root may read: then
            neither it nor a folder on the way to it may be one of theirs.

    Raises:
        OSError: If it cannot be opened, or is not a regular file.
    """

    def open_without_waiting(name: str, flags: int) -> int:
        # A pipe is otherwise opened when somebody writes to it, and perhaps nobody does.
        flags |= os.O_NONBLOCK | os.O_NOCTTY
        if follow:
            return os.open(name, flags)
        with folder_past_nodes(path.parent) as folder:
            return os.open(path.name, flags | os.O_NOFOLLOW, dir_fd=folder)

    file = open(path, "rb", opener=open_without_waiting)  # noqa: SIM115 - pathlib has no opener
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is a pipe, a device or a socket, not a regular file", str(path))
    return file


@contextlib.contextmanager
def folder_past_nodes(path: Path) -> Iterator[int]:
    """Open a folder, for `dir_fd`, to which no link in a folder of the nodes' user led.

    What runs as that user can replace whatever is in there, at any moment, and benchctl may be root.

    Raises:
        OSError: If it cannot be opened, or there is such a link.
    """
    flags = os.O_PATH | os.O_DIRECTORY
    folder = os.open("/", flags)
    try:
        for part in path.absolute().parts[1:]:
            theirs = os.fstat(folder).st_uid == _nodes_uid()
            inner = os.open(part, flags | (os.O_NOFOLLOW if theirs else 0), dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


@functools.cache
def _nodes_uid() -> int | None:
    """Return the uid of the user that nodes run as; None if benchctl is not root."""
    if os.geteuid() != 0:
        return None
    with contextlib.suppress(KeyError):
        return pwd.getpwnam(UNPRIVILEGED_USER).pw_uid
    return None


def read_file(path: Path, most_bytes: int = MOST_BYTES, *, follow: bool = True) -> bytes:
    """Read a file that fits into memory many times over, such as a record.

    Raises:
        OSError: If it cannot be read, is not a regular file, or larger than `most_bytes`.
    """
    with open_regular(path, follow=follow) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"it is larger than {most_bytes / _MIB:g} MiB", str(path))
    return content


def stored(path: Path, form: type[T]) -> T | None:
    """Return what JSON in a file says; None where there is none, or no whole one: it can be made again.

    Raises:
        OSError: If the file exists and cannot be read.
    """
    try:
        return msgspec.json.decode(read_file(path), type=form)
    except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError):
        return None


def link_or_copy(source: str | Path, target: str | Path) -> None:
    """Make a hard link, of a link itself too; a copy where the file system has none.

    Raises:
        OSError: If the disk refuses.
    """
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as err:
        if err.errno not in NO_LINKS:
            raise
        shutil.copyfile(source, target, follow_symlinks=False)
        if not Path(target).is_symlink():
            Path(target).chmod(0o755 if Path(source).stat().st_mode & 0o111 else 0o644)


@contextlib.contextmanager
def replacing(target: Path, *, durable: bool = False) -> Iterator[Path]:
    """Make a temporary file that takes the target's place if the block ends well, else is gone.

    Readers see what was there before, or all of what is new. What the file system refuses is not turned into
    words here: callers know what to advise. What a killed process left of the same file goes, too.

    Args:
        target: the file; its folder is there.
        durable: have the bytes and the name on the disk before going on, so that a power cut loses nothing.

    Raises:
        OSError: If the disk is full or cannot be written.
    """
    # Indices that are built side by side may make the same file, such as the archive of classes.
    partial = target.with_name(f".{target.name}.{threading.get_native_id()}.{os.getpid()}.partial")
    try:
        for left in target.parent.glob(f".{glob.escape(target.name)}.*.partial"):
            if not Path("/proc", left.suffixes[-2][1:]).exists():
                left.unlink(missing_ok=True)
        yield partial
        if durable:
            _sync(partial)
        partial.replace(target)
        if durable:
            _sync(target.parent)
    finally:
        # Where it could not even be made, that is what callers hear of.
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Have a file's bytes, or a folder's names, on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def disk_errors(doing: str) -> Iterator[None]:
    """Turn what the file system refuses inside the block into a BenchctlError.

    `doing` is what is being done and where, for "cannot ...".
    """
    try:
        yield
    except OSError as err:
        if err.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = _MORE_SPACE
        elif err.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            hint = "check who owns that directory, or set BENCHCTL_HOME to one that you can write to"
        else:
            hint = ""
        raise BenchctlError(f"cannot {doing}: {err.strerror or err}", hint=hint) from err


_PREFIX = ".partial-"


@contextlib.contextmanager
def staging(parent: Path, doing: str) -> Iterator[Path]:
    """Make a folder below `parent` for unfinished work; what is complete is moved out, the rest removed.

    `parent` must be on the file system of the final place; `doing` completes "cannot ..." in messages.
    """
    with (
        disk_errors(doing),
        locked(parent, fcntl.LOCK_SH),
        tempfile.TemporaryDirectory(dir=parent, prefix=_PREFIX) as folder,
    ):
        yield Path(folder)


def settle(ready: Path, final: Path, is_complete: Callable[[], object] = lambda: True) -> None:
    """Move a complete folder to its place, unless another process has just put the same there.

    What is there and not complete is removed.

    Raises:
        OSError: If the folder cannot be moved.
    """
    if final.exists() and not is_complete():
        shutil.rmtree(final)
    try:
        ready.replace(final)
    except OSError as err:
        if err.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise


def sweep(home: Home) -> None:
    """Remove the half-finished work of killed processes.

    Folders in use are skipped. So is what cannot be removed: if that matters, the work itself will fail.
    """
    with contextlib.suppress(OSError):
        for folder in {leftover.parent for leftover in home.root.glob(f"*/{_PREFIX}*")}:
            with locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB) as held:
                for leftover in folder.glob(f"{_PREFIX}*") if held else ():
                    shutil.rmtree(leftover, ignore_errors=True)


@contextlib.contextmanager
def locked(folder: Path, operation: int) -> Iterator[bool | None]:
    """Lock a folder until the block or the process ends, however it does.

    Yields whether it is locked: False if others hold it, None where the file system has no locks.

    Raises:
        OSError: If the folder cannot be opened.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    held: bool | None = True
    try:
        try:
            fcntl.flock(handle, operation)
        except BlockingIOError:
            held = False
        except OSError:
            held = None
        yield held
    finally:
        os.close(handle)
