"""One measuring benchctl a host: two at once would measure each other."""

import errno
import hashlib
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import psutil

from benchctl.errors import BenchctlError
from benchctl.home import resolve_home

# An abstract Unix socket belongs to the host, not to a user's home, and the kernel frees it when its holder
# dies in whatever way. Linux only, like the rest of node control.
LOCK_NAME = "\0benchctl-measuring"
SHARE_VARIABLE: Final = "BENCHCTL_SHARE_HOST"
"""Set to anything, it lets benchctls with different homes measure at once, and be measured by each other."""
POLL_S = 1.0


class HostBusy(BenchctlError):  # noqa: N818 - a state that callers wait for or report, not a mistake
    """Another benchctl is measuring on this host; the message says which, and since when."""


def shares_host(environ: Mapping[str, str]) -> bool:
    """Whether the host's lock is not to be taken, but only that of benchctl's home."""
    return bool(environ.get(SHARE_VARIABLE))


def lock_name(environ: Mapping[str, str]) -> str:
    """The lock that keeps others away: the host's, or that of this home, which never has two at work.

    Raises:
        BenchctlError: the home that it is about cannot be used.
    """
    if not shares_host(environ):
        return LOCK_NAME
    root = str(resolve_home(environ).root).encode()
    return f"{LOCK_NAME}-{hashlib.sha256(root).hexdigest()[:16]}"


@contextmanager
def host_lock(
    *,
    wait: bool,
    on_wait: Callable[[str], None],
    name: str | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """Hold the host while measuring.

    Args:
        wait: wait for another benchctl to finish; False refuses at once.
        on_wait: told once who holds the host.
        name: of the lock; None for the one that the environment asks for.
        pause: how to spend the time between two attempts.

    Raises:
        HostBusy: another benchctl is measuring and we do not wait.
    """
    name = lock_name(os.environ) if name is None else name
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as lock:
        told = False
        while not _bind(lock, name):
            if not wait:
                raise HostBusy(
                    f"another benchctl is measuring on this host ({process_words(measuring_pid(name))})",
                    hint="two at once would measure each other: wait for it, or give --wait",
                )
            if not told:
                on_wait(process_words(measuring_pid(name)))
                told = True
            pause(POLL_S)
        # Nobody accepts: everyone who asks who holds the host stays in the queue until this ends.
        lock.listen(socket.SOMAXCONN)
        yield


def _bind(lock: socket.socket, name: str) -> bool:
    try:
        lock.bind(name)
    except OSError as err:
        if err.errno != errno.EADDRINUSE:
            raise BenchctlError(f"cannot take the host's lock: {err.strerror}") from err
        return False
    return True


def measuring_pid(name: str = LOCK_NAME) -> int | None:
    """The process that holds the host, by the credentials that the kernel keeps for a listening socket.

    Args:
        name: of the lock.

    Returns:
        None when nobody does, or it is not known who.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(name)
            raw = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        except OSError:
            return None
    pid: int = struct.unpack("3i", raw)[0]
    return pid


def process_words(pid: int | None) -> str:
    """A process, whose it is, and since when it runs."""
    if pid is None:
        return "process unknown"
    try:
        process = psutil.Process(pid)
        return f"process {pid} of user {process.username()}, since {_clock(process.create_time())}"
    except psutil.Error:
        return f"process {pid}"


def _clock(epoch_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(epoch_s))
