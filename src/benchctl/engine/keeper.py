"""A standalone script that runs a node so that it cannot outlive benchctl; `process` starts it.

Needs only the standard library, because it runs isolated (`python -I -S`) to start fast. Its standard input
is the far end of a pipe that benchctl holds: the first line is JSON that says what to run, a later line
`kill` kills everything at once, and end of file, which the kernel sends however benchctl dies, ends
everything with a grace period. On standard output it writes `started PID`, `failed REASON` and `exited
STATUS` (negative: by that signal), and closes it when no descendant is left.
"""

import contextlib
import ctypes
import errno
import json
import os
import select
import signal
import sys
import time
from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
CONTROL_FD = 0
STATUS_FD = 1
RETRY_S = 0.01


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _read_line(descriptor: int) -> bytes:
    """Read up to a newline and not one byte beyond it, so that what follows can still be polled."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(descriptor, 1)
        if not byte:
            return b""
        line += byte
    return line


def _say(text: str) -> None:
    # benchctl may be gone already; that is when the keeper matters most.
    with contextlib.suppress(BrokenPipeError):
        os.write(STATUS_FD, f"{text}\n".encode())


def _open_log(path: str) -> int:
    # The folder may belong to the node's user already, and the keeper may be root: follow no link of theirs.
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o644)


def _input(spec: dict[str, Any]) -> int:
    """The node's standard input; its other end, if it is to stay open, does so as long as this keeper."""
    if not spec["stdin"] and not spec["stdin_open"]:
        return os.open(os.devnull, os.O_RDONLY)
    reader, writer = os.pipe()
    os.write(writer, spec["stdin"].encode("latin-1"))
    if not spec["stdin_open"]:
        os.close(writer)
    return reader


def _become_node(spec: dict[str, Any], stdin: int, keeper_pid: int) -> None:
    """Turn this fresh child into the node; returns only by raising."""
    os.setpgid(0, 0)
    os.dup2(stdin, 0)
    os.dup2(_open_log(spec["stdout"]), 1)
    os.dup2(_open_log(spec["stderr"]), 2)
    if spec["cpus"] is not None:
        # Before the program runs: a JVM sizes its pools by the CPUs it finds at its start.
        os.sched_setaffinity(0, spec["cpus"])
    if spec["uid"] is not None:
        os.setgroups([])
        os.setgid(spec["gid"])
        os.setuid(spec["uid"])
    # After the change of user, which clears it: if the keeper is killed, the kernel kills the node.
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != keeper_pid:
        os._exit(1)
    # Python ignores two signals, the keeper one, and shells more for background jobs; ignored signals stay
    # ignored across exec.
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    os.chdir(spec["cwd"])
    os.execve(spec["argv"][0], spec["argv"], spec["env"])  # noqa: S606 - a node is not a shell command


def _start(spec: dict[str, Any]) -> int:
    """Start the node in its own process group, whose id is the returned process id."""
    keeper_pid = os.getpid()
    # Both ends close on exec, so that the reader sees end of file exactly when the node's program runs.
    stdin = _input(spec)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _become_node(spec, stdin, keeper_pid)
        except OSError as err:
            os.write(writer, str(err.errno or errno.EINVAL).encode())
        finally:
            os._exit(127)
    os.close(writer)
    os.close(stdin)
    failure = os.read(reader, 16)
    os.close(reader)
    if failure:
        os.waitpid(pid, 0)
        raise OSError(int(failure), os.strerror(int(failure)))
    return pid


class Keeper:
    """The watch over one started node until nothing of it is left.

    Args:
        node: process id of the node and id of its group.
        parent: process id of benchctl.
        grace_s: seconds between SIGTERM and SIGKILL.
    """

    def __init__(self, node: int, parent: int, grace_s: float) -> None:
        self._node = node
        self._grace_s = grace_s
        self._kill_at: float | None = None  # monotonic seconds; None while nobody has to go
        self._poll = select.poll()
        self._wakeup, wakeup_writer = os.pipe()
        os.set_blocking(self._wakeup, False)
        os.set_blocking(wakeup_writer, False)
        signal.set_wakeup_fd(wakeup_writer, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        for descriptor in (CONTROL_FD, self._wakeup):
            self._poll.register(descriptor, select.POLLIN)
        self._watch_parent(parent)

    def _watch_parent(self, parent: int) -> None:
        """Watch benchctl itself too: a forked worker of it may still hold its end of the control pipe."""
        # Without pidfds, only the control pipe tells.
        with contextlib.suppress(OSError, AttributeError):
            self._poll.register(os.pidfd_open(parent), select.POLLIN)
        if os.getppid() != parent:
            self._ask_to_end()

    def run(self) -> None:
        """Watch until no descendant is left."""
        while self._reap():
            for descriptor, _ in self._poll.poll(self._timeout_ms()):
                self._handle(descriptor)
            if self._kill_at is not None and time.monotonic() >= self._kill_at:
                self._signal_all(signal.SIGKILL)

    def _timeout_ms(self) -> int | None:
        if self._kill_at is None:
            return None
        # Once killing has begun, repeat: another process may have been forked meanwhile.
        return int(1000 * max(self._kill_at - time.monotonic(), RETRY_S)) + 1

    def _handle(self, descriptor: int) -> None:
        if descriptor == self._wakeup:
            if signal.SIGTERM in os.read(self._wakeup, 4096):
                self._ask_to_end()
        elif descriptor == CONTROL_FD and os.read(CONTROL_FD, 4096):
            self._kill_at = time.monotonic()
        else:
            self._poll.unregister(descriptor)
            self._ask_to_end()

    def _ask_to_end(self) -> None:
        if self._kill_at is None:
            self._kill_at = time.monotonic() + self._grace_s
            self._signal_all(signal.SIGTERM)

    def _reap(self) -> bool:
        """Reap ended processes; returns whether any descendant is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._node:
                _say(f"exited {os.waitstatus_to_exitcode(status)}")
                self._ask_to_end()

    def _signal_all(self, number: int) -> None:
        """Signal the node's group, and orphans that left it: a subreaper inherits those as children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._node, number)
        for pid in _children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def _children() -> list[int]:
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as listing:  # noqa: PTH123 - pathlib is slow to import
            return [int(pid) for pid in listing.read().split()]
    except FileNotFoundError:  # a kernel built without this file: the group is what can be reached
        return []


def main() -> int:
    """Run what the first line of standard input specifies and return the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    line = _read_line(CONTROL_FD)
    if not line:
        return 0
    spec = json.loads(line)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        node = _start(spec)
    except OSError as err:
        _say(f"failed {err.strerror}")
        return 1
    _say(f"started {node}")
    Keeper(node, spec["parent"], spec["grace_s"]).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
