"""One night of a suite at a time: a lock that cannot outlive its holder."""

import contextlib
import errno
import fcntl
import getpass
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import msgspec
import psutil

from benchctl.disk import disk_errors, read_file
from benchctl.errors import BenchctlError

POLL_S = 1.0

_SECONDS_PER_HOUR = 3600


class SuiteBusy(BenchctlError):  # noqa: N818 - a state that callers wait for or report, as the others are named
    """Another process is at work on the suite; the message says which, and since when.

    Attributes:
        hours: for how long it has been; None where that is not known.
    """

    def __init__(self, message: str, *, hint: str = "", hours: float | None = None) -> None:
        super().__init__(message, hint=hint)
        self.hours = hours


class Holder(msgspec.Struct, frozen=True):
    """Who holds a lock, as it wrote into the file: for messages only, it is the kernel that locks.

    Attributes:
        pid: of the process.
        user: whose it is.
        since: wall clock, for people.
    """

    pid: int
    user: str
    since: str

    @property
    def text(self) -> str:
        """For messages."""
        return f"process {self.pid} of user {self.user}, since {self.since}"


@contextmanager
def locked(
    path: Path,
    *,
    wait: bool = False,
    on_wait: Callable[[str], None] = lambda _holder: None,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """Hold a lock file within the block; the kernel frees it when this process dies in whatever way.

    Args:
        path: of the file. It stays when the lock is freed: removing it would let two hold locks of one name.
        wait: wait for whoever holds it; False refuses at once.
        on_wait: told once who holds it.
        pause: how to spend the time between two attempts.

    Raises:
        SuiteBusy: it is held, and we do not wait.
        BenchctlError: there can be no such file.
    """
    with disk_errors(f"lock {path}"):
        # Programs that we start do not inherit it (PEP 446): they would hold the lock after our death.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        told = False
        while not _taken(descriptor, path):
            holder = _holder(descriptor)
            if not wait:
                raise SuiteBusy(
                    f"the suite in {path.parent} is at work already ({holder})",
                    hint="wait until it has ended, or give --wait",
                    hours=_hours(path),
                )
            if not told:
                on_wait(holder)
                told = True
            pause(POLL_S)
        _sign(descriptor)
        yield
        # Not so after an error: who holds it counts only while it is held.
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def holder_of(path: Path) -> Holder | None:
    """Who holds a lock; None when nobody does. The lock is not touched: a start must not meet it.

    Args:
        path: of the file; there need not be one.
    """
    try:
        holder = msgspec.json.decode(read_file(path), type=Holder)
    except (OSError, msgspec.DecodeError):
        return None
    # Who was killed left its name behind.
    return holder if psutil.pid_exists(holder.pid) else None


def _hours(path: Path) -> float | None:
    """How long ago the holder signed; the clock may have jumped meanwhile."""
    try:
        return max(0.0, time.time() - path.stat().st_mtime) / _SECONDS_PER_HOUR
    except OSError:
        return None


def _taken(descriptor: int, path: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as err:
        if err.errno not in {errno.EWOULDBLOCK, errno.EACCES}:
            raise BenchctlError(f"cannot lock {path}: {err.strerror}") from err
        return False
    return True


def _sign(descriptor: int) -> None:
    since = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S")
    content = msgspec.json.encode(Holder(os.getpid(), _user(), since))
    # The lock is ours without it; and a night on a full disk has to come as far as to tell of that.
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, content, 0)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        # A user id without a name, as containers have them.
        return str(os.getuid())


def _holder(descriptor: int) -> str:
    """Who holds it, in words."""
    try:
        return msgspec.json.decode(os.pread(descriptor, 4096, 0), type=Holder).text
    except (OSError, msgspec.DecodeError):
        return "process unknown"
