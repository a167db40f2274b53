"""Lock for a single measuring benchctl per host: two at once would measure each other."""

import errno
import fcntl
import hashlib
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Final

import psutil

from benchctl.disk import disk_errors
from benchctl.errors import BenchctlError
from benchctl.home import resolve_home

# An abstract Unix socket belongs to the host, not to a user's home, and the kernel frees it however its
# holder dies. Linux only, like the rest of node control.
LOCK_NAME = "\0benchctl-measuring"
SHARE_VARIABLE: Final = "BENCHCTL_SHARE_HOST"
"""Variable that lets benchctls with different homes measure at once, and disturb each other."""
POLL_S = 1.0
LONGEST_WAIT_S = 24 * 3600.0  # whoever measures for longer is stuck
_SECONDS_PER_HOUR = 3600


class HostBusy(BenchctlError):  # noqa: N818 - a state that callers wait for or report, not a mistake
    """Another benchctl is measuring on this host; the message names it and its start."""


def shares_host(environ: Mapping[str, str]) -> bool:
    """Return whether to take only the lock of benchctl's home instead of the host's."""
    return bool(environ.get(SHARE_VARIABLE))


def lock_name(environ: Mapping[str, str]) -> str:
    """Return the name of the lock: the host's, or that of this home, which never has two at work.

    Raises:
        BenchctlError: If the home cannot be used.
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
    home: bool = True,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """Hold the host while measuring; refuse, or `wait`, if another benchctl does.

    `on_wait` is called once with who holds the host; `name` is the lock's, by default from the environment.
    Without a `name`, benchctl's home is held, too, unless `home` is False: in another container or network
    namespace, the host's lock is another one, and whoever measures empties the scratch of its home.

    Raises:
        HostBusy: If another benchctl is measuring, and `wait` is False.
    """
    whole = home and name is None

    def busy(holder: str) -> HostBusy:
        return HostBusy(
            f"another benchctl is measuring on this host ({holder})",
            hint="two at once would measure each other; use: --on-busy wait",
        )

    name = lock_name(os.environ) if name is None else name
    with named_lock(name, busy, wait=wait, on_wait=on_wait, pause=pause), ExitStack() as stack:
        if whole:
            path = resolve_home(os.environ).root / "lock"
            where = f"with the home {path.parent}, in another container or network"
            with disk_errors(f"lock {path}"):
                file = stack.enter_context(path.open("ab"))
            _hold(
                lambda: _lock_file(file.fileno()),
                lambda _: HostBusy(
                    f"another benchctl is measuring {where}",
                    hint="wait for it (--on-busy wait), or set BENCHCTL_HOME to another home",
                ),
                lambda: f"one that measures {where}",
                on_wait if wait else None,
                pause,
            )
        yield


@contextmanager
def named_lock(
    name: str,
    busy: Callable[[str], BenchctlError],
    *,
    wait: bool,
    on_wait: Callable[[str], None],
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """Hold a name on this host, with an abstract socket; `busy` makes the error from who has it.

    Raises:
        BenchctlError: If another process has it, and `wait` is False.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as lock:
        holder = lambda: process_words(measuring_pid(name))  # noqa: E731 - asked for only if it is held
        _hold(lambda: _bind(lock, name), busy, holder, on_wait if wait else None, pause)
        # Never accepted: connections that ask for the holder stay in the queue until this ends.
        lock.listen(socket.SOMAXCONN)
        yield


def _hold(
    taken: Callable[[], bool],
    busy: Callable[[str], BenchctlError],
    who: Callable[[], str],
    on_wait: Callable[[str], None] | None,
    pause: Callable[[float], None],
) -> None:
    """Take a lock, or raise if it is held; with `on_wait`, wait for it first, for a day at most."""
    waited_s = 0.0
    while not taken():
        if on_wait is None or waited_s > LONGEST_WAIT_S:
            raise busy(who())
        if not waited_s:
            on_wait(who())
        pause(POLL_S)
        waited_s += POLL_S


def _lock_file(descriptor: int) -> bool:
    """Take a POSIX lock: no child inherits it, and it ends with the process."""
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as err:
        if err.errno not in (errno.EACCES, errno.EAGAIN):
            raise BenchctlError(f"cannot take the lock of benchctl's home: {err.strerror}") from err
        return False
    return True


def _bind(lock: socket.socket, name: str) -> bool:
    try:
        lock.bind(name)
    except OSError as err:
        if err.errno != errno.EADDRINUSE:
            raise BenchctlError(f"cannot take the lock {name.lstrip(chr(0))}: {err.strerror}") from err
        return False
    return True


def measuring_pid(name: str | None = None) -> int | None:
    """Return the process that holds the host or a name, from the credentials of the listening socket.

    None when nobody does, or it is unknown. `name` is as for `host_lock`.
    """
    name = lock_name(os.environ) if name is None else name
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
    """Return a process, its user, command and start time, as text."""
    if pid is None:
        return "process unknown"
    try:
        process = psutil.Process(pid)
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(process.create_time()))
        return f"process {pid} of user {process.username()}{_command(process.cmdline())}, since {since}"
    except psutil.Error:
        return f"process {pid}"


def _command(line: Sequence[str]) -> str:
    """Return the command in a benchctl's command line, without its options, as a suffix; else nothing."""
    names = [Path(word).name for word in line]
    if "benchctl" not in names:
        return ""
    words = takewhile(lambda word: not word.startswith("-"), line[names.index("benchctl") + 1 :])
    return f" ({' '.join(('benchctl', *words))})"


def process_hours(pid: int | None) -> float:
    """Return for how many hours a process has run; 0 if it is unknown."""
    if pid is None:
        return 0.0
    try:
        return max(0.0, time.time() - psutil.Process(pid).create_time()) / _SECONDS_PER_HOUR
    except psutil.Error:
        return 0.0
