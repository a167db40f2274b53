"""A node's processes: started through the keeper, watched, metered, and all ended when the block ends."""

import io
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import psutil

from benchctl.disk import disk_errors, open_regular
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Owner
from benchctl.quantities import DURATION

KEEPER = Path(__file__).with_name("keeper.py")
STOP_GRACE_S = 30.0
KILL_WAIT_S = 10.0
SHELL_SIGNAL_BASE = 128  # shells and JVM launchers report a child killed by signal N as status 128 + N
_TAIL_BYTES = 65536
_GLANCE_S = 0.1

TIMEOUT_VARIABLE = "BENCHCTL_NODE_TIMEOUT"
"""Variable with the limit of every wait for a node: its start, its shards, its commits."""
_TIMEOUT_S = 120.0
_ALWAYS_COUNTED = 0.1


def node_timeout_s(environ: Mapping[str, str] = os.environ) -> float:
    """Return for how many seconds a node that makes no progress is waited for, each time anew.

    Raises:
        UsageError: If the variable holds no duration.
    """
    text = environ.get(TIMEOUT_VARIABLE)
    try:
        return DURATION.parse(text) if text else _TIMEOUT_S
    except UsageError as err:
        raise UsageError(f"{TIMEOUT_VARIABLE}: {err.message}", hint=err.hint) from err


class Patience:
    """A wait for processes whose limit counts the time in which they could have run, and did not.

    Neither what they use of a CPU counts, nor what others use of theirs, nor what a disk keeps them waiting:
    a slow host says nothing about a node. A tenth of the time always does, so that every wait ends.

    Args:
        limit_s: of what counts, seconds.
        used_s: returns the CPU seconds that the processes have used.
        cpus: that they run on; None for all.
        clock: of seconds.
    """

    def __init__(
        self,
        limit_s: float,
        used_s: Callable[[], float],
        cpus: Collection[int] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit_s = limit_s
        self._used_s = used_s
        self._cpus = cpus
        self._clock = clock
        self._counted_s = 0.0
        self._begin = self._last = self._reading()

    def is_over(self) -> bool:
        """Return whether the limit is reached; however often it is called, it looks once a second at most."""
        if self._clock() - self._last[0] >= min(self._limit_s / 10, 1.0):
            now, own, others = self._since(self._last)
            self._last = self._reading()
            self._counted_s += now * max(1.0 - own - others, _ALWAYS_COUNTED)
        return self._counted_s >= self._limit_s

    @property
    def waited_s(self) -> float:
        """Seconds since the wait began."""
        return self._clock() - self._begin[0]

    @property
    def others(self) -> float:
        """Share of the CPUs, 0 to 1, that other processes used or a disk kept waiting since then."""
        return self._since(self._begin)[2]

    def _reading(self) -> tuple[float, float, float, int]:
        """Return the time, CPU seconds of the processes, busy or waiting seconds of CPUs, their number."""
        each = [
            times
            for number, times in enumerate(psutil.cpu_times(percpu=True))
            if not self._cpus or number in self._cpus
        ]
        # Time of guests is part of that of users.
        busy = sum(t.user + t.nice + t.system + t.irq + t.softirq + t.steal + t.iowait for t in each)
        return self._clock(), self._used_s(), busy, len(each)

    def _since(self, before: tuple[float, float, float, int]) -> tuple[float, float, float]:
        """Return seconds passed, CPUs' worth that the processes used, and the share of the CPUs of others."""
        now, used, busy, cpus = self._reading()
        passed_s, own_s = now - before[0], max(used - before[1], 0.0)
        if passed_s <= 0 or not cpus:
            return 0.0, 0.0, 0.0
        others_s = max(busy - before[2] - own_s, 0.0)
        return passed_s, min(own_s / passed_s, 1.0), min(others_s / passed_s / cpus, 1.0)


@dataclass(frozen=True)
class Command:
    """A command to run."""

    argv: tuple[str, ...]  # program, as an absolute path, and arguments
    env: Mapping[str, str]  # the whole environment; nothing is inherited
    cwd: Path
    stdout: Path  # files to append to
    stderr: Path
    owner: Owner | None = None  # whom to run as; None means the current user
    # the CPUs that it and its children run on; None for those that benchctl may use
    cpus: tuple[int, ...] | None = None
    stdin: bytes = b""  # its standard input, at most 32 KiB
    stdin_open: bool = False  # whether standard input stays open after that for as long as it runs


def describe_exit(status: int) -> str:
    """Describe an exit status: negative is a signal's number; launchers report it as above 128."""
    number = -status if status < 0 else status - SHELL_SIGNAL_BASE
    if number in set(signal.Signals):
        return f"was killed by signal {number} ({signal.Signals(number).name})"
    return f"exited with status {status}"


class NodeProcess:
    """A running node and everything it started; a context manager that leaves no process behind.

    The processes are in their own session, so that Ctrl-C at the terminal does not reach them, and below a
    keeper that ends them if benchctl dies in any way.

    Args:
        command: what to run.
        server: end of an argument that only the server process has, such as a main class: start scripts
            and launchers precede or accompany that process. Empty when the command itself serves.
        grace_s: seconds from SIGTERM to SIGKILL when the block ends or benchctl dies.
    """

    def __init__(self, command: Command, *, server: str = "", grace_s: float = STOP_GRACE_S) -> None:
        self._command = command
        self._server = server
        self._grace_s = grace_s
        self._keeper: subprocess.Popen[bytes] | None = None
        self._unread = b""
        self._group = 0
        self._server_process: psutil.Process | None = None
        self._status: int | None = None
        self._gone = False
        self.was_killed = False  # whether it did not end by itself within its time to

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop(self._grace_s)
        finally:
            self._close()

    @property
    def group(self) -> int:
        """Process group, which is also the process id of the command."""
        return self._group

    @property
    def status(self) -> int | None:
        """Exit status of the command, negative for a signal; None while it runs."""
        self._listen(0.0)
        return self._status

    @property
    def pid(self) -> int:
        """Id of the server process; of the command as long as there is no server process."""
        process = self._find_server()
        return self._group if process is None else process.pid

    def alive(self) -> bool:
        """Return whether the command and, once seen, the server process are running."""
        if self.status is not None or self._gone:
            return False
        return self._server_process is None or _runs(self._server_process)

    def used_s(self) -> float:
        """Return the CPU seconds that it and what it started have used, ended children included."""
        used_s = 0.0
        for process in _family(self._group) if self._group else ():
            with suppress(psutil.Error):
                times = process.cpu_times()
                used_s += times.user + times.system + times.children_user + times.children_system
        return used_s

    def wait(self, timeout_s: float) -> int | None:
        """Wait for the command and return its exit status, negative for a signal, or None on timeout."""
        deadline = time.monotonic() + timeout_s
        while self._status is None and self._listen(deadline - time.monotonic()):
            pass
        return self._status

    def stop(self, grace_s: float) -> float:
        """Terminate the server process, and kill whatever is left after grace_s; kill at once if that is 0.

        Returns:
            Seconds until no process was left; about 0 when there was none.

        Raises:
            BenchctlError: If processes survive even being killed.
        """
        start = time.monotonic()
        self._listen(0.0)
        if not self._gone:
            if grace_s:
                self._terminate()
            if not grace_s or not self._wait_gone(grace_s):
                self._kill()
        if self._status is None:
            # The keeper itself was killed, and the kernel took the command with it but not its children.
            with suppress(ProcessLookupError):
                os.killpg(self._group, signal.SIGKILL)
        return time.monotonic() - start

    def tail(self, lines: int) -> list[str]:
        """Return the last lines of standard output, then of standard error."""
        return [
            line for log in (self._command.stdout, self._command.stderr) for line in last_lines(log, lines)
        ]

    def _start(self) -> None:
        # Append: the keeper and the node write to the same file.
        with open(self._command.stderr, "ab", opener=_open_log) as stderr:
            self._keeper = subprocess.Popen(
                [sys.executable, "-I", "-S", str(KEEPER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                bufsize=0,
                start_new_session=True,
            )
        try:
            self._tell(json.dumps(self._specification()))
            while not self._group and self._status is None and self._listen(KILL_WAIT_S):
                pass
            if not self._group:
                self._raise_unstarted("no response from its keeper process")
        except BaseException:
            self._close()
            raise

    def _specification(self) -> dict[str, object]:
        command = self._command
        return {
            "argv": command.argv,
            "env": dict(command.env),
            "cwd": str(command.cwd),
            "stdout": str(command.stdout),
            "stderr": str(command.stderr),
            "uid": None if command.owner is None else command.owner.uid,
            "gid": None if command.owner is None else command.owner.gid,
            "cpus": command.cpus,
            "stdin": command.stdin.decode("latin-1"),
            "stdin_open": command.stdin_open,
            "parent": os.getpid(),
            "grace_s": self._grace_s,
        }

    def _raise_unstarted(self, reason: str) -> None:
        owner = self._command.owner
        user = "" if owner is None else f" as user '{owner.name}'"
        raise BenchctlError(
            f"cannot start {self._command.argv[0]} in {self._command.cwd}{user}: {reason}",
            hint="it must exist, be executable, and lie where that user can enter every directory",
        )

    def _tell(self, line: str) -> None:
        if self._keeper is None or self._keeper.stdin is None:
            return
        try:
            self._keeper.stdin.write(f"{line}\n".encode())
        except BrokenPipeError:
            # The keeper has just ended; its last lines are still to be read.
            return

    def _listen(self, timeout_s: float) -> bool:
        """Read from the keeper; False when timeout_s passed without data, or nothing can follow."""
        if self._gone or self._keeper is None or self._keeper.stdout is None:
            return False
        poll = select.poll()
        poll.register(self._keeper.stdout, select.POLLIN)
        if not poll.poll(max(timeout_s, 0.0) * 1000):
            return False
        data = os.read(self._keeper.stdout.fileno(), 4096)
        if not data:
            self._gone = True
            return False
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            self._take(line.decode())
        return True

    def _take(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "started":
            self._group = int(rest)
        elif word == "exited":
            self._status = int(rest)
        else:
            self._raise_unstarted(rest)

    def _wait_gone(self, timeout_s: float) -> bool:
        patience = Patience(timeout_s, self.used_s, self._command.cpus)
        while not self._gone and not patience.is_over():
            self._listen(min(timeout_s / 10, _GLANCE_S))
        return self._gone

    def _find_server(self) -> psutil.Process | None:
        if self._server and self._server_process is None:
            self._server_process = next(
                (process for process in _family(self._group) if _has_argument(process, self._server)), None
            )
        return self._server_process

    def _terminate(self) -> None:
        """Terminate the server; without one, the command's process."""
        server = self._find_server()
        # It may end on its own at any moment; the keeper takes care of the rest.
        with suppress(psutil.NoSuchProcess):
            process = server if server is not None and _runs(server) else psutil.Process(self._group)
            process.terminate()

    def _kill(self) -> None:
        self.was_killed = True
        self._tell("kill")
        if not self._wait_gone(KILL_WAIT_S):
            raise BenchctlError(
                f"processes of group {self._group} survive being killed",
                hint="they hang in the kernel, most likely on a file system that does not respond",
            )

    def _close(self) -> None:
        """Release the keeper, which kills whatever still runs."""
        if not self._gone:
            self._tell("kill")
        keeper, self._keeper = self._keeper, None
        if keeper is None:
            return
        for pipe in (keeper.stdin, keeper.stdout):
            if pipe is not None:
                pipe.close()
        with suppress(subprocess.TimeoutExpired):
            keeper.wait(KILL_WAIT_S)


def _open_log(name: str, flags: int) -> int:
    # As the keeper does: the folder may belong to the node's user already.
    return os.open(name, flags | os.O_NOFOLLOW, 0o644)


def last_lines(log: Path, lines: int) -> list[str]:
    """Return the last lines of a text file that may be huge, partly binary, or missing."""
    try:
        with open_regular(log, follow=False) as file:
            file.seek(max(file.seek(0, os.SEEK_END) - _TAIL_BYTES, 0))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return []
    except OSError as err:
        return [f"{log} cannot be read: {err.strerror}"]
    return list(deque(text.splitlines(), maxlen=lines))


def started_ns(pid: int) -> int:
    """Return a process's start on the monotonic clock; the kernel's resolution is about 10 ms.

    Raises:
        OSError: If the process is gone.
    """
    # After the program's name, which may contain anything.
    fields = (
        Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    )
    since_boot_ns = int(fields[19]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    # The monotonic clock excludes the time that the host was suspended.
    return since_boot_ns - (time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns())


def _family(pid: int) -> list[psutil.Process]:
    """A process and its descendants; empty when it is gone."""
    try:
        top = psutil.Process(pid)
        return [top, *top.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _has_argument(process: psutil.Process, ending: str) -> bool:
    try:
        return any(argument.endswith(ending) for argument in process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


# What they use, and the pauses of the JVM.

# `man 2 clock_getres`: the CPU clock of a process; it counts nanoseconds, ahead of what /proc tells in ticks.
_CPUCLOCK_SCHED = 2

_DUMP_S = 2.0
_POLL_S = 0.01
_MOST_DUMP_BYTES = 4 * 1024 * 1024
_END_OF_DUMP = "JNI global ref"
# Up to JDK 20 a thread's number in the kernel is hexadecimal, from 21 on decimal.
_THREAD = re.compile(r'^"(?P<name>.*)" .*\bnid=(?P<number>0x[0-9a-f]+|\d+) ', re.MULTILINE)
# The names of Elasticsearch's and OpenSearch's thread pools.
_SEARCHES = re.compile(r"\[(system_(critical_)?)?(search(_\w+)?|index_searcher|get|esql_worker)\]")


@dataclass(frozen=True)
class Reading:
    """Resources used by a process since it started."""

    at_ns: int  # when, on the monotonic clock
    cpu_ns: int  # CPU time, those of threads that have ended included
    # kernel's number of a thread -> its CPU time in nanoseconds; that of a running one is up to a tick old
    threads: Mapping[int, int]


@dataclass
class Meter:
    """A reader of a process of this host; a context manager that keeps a descriptor per thread.

    Args:
        pid: of the process.
    """

    pid: int
    _open: dict[int, int] = field(default_factory=dict)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()

    def read(self) -> Reading | None:
        """Read the current usage; None for a process that is gone or not readable."""
        try:
            cpu_ns = time.clock_gettime_ns((~self.pid << 3) | _CPUCLOCK_SCHED)
            threads = self._threads()
        except OSError:
            return None
        return Reading(time.monotonic_ns(), cpu_ns, threads)

    def _threads(self) -> dict[int, int]:
        folder = f"/proc/{self.pid}/task"
        spent_ns = {}
        for thread in map(int, os.listdir(folder)):  # noqa: PTH208 - half as long as by paths
            with suppress(OSError):
                if thread not in self._open:
                    self._open[thread] = os.open(f"{folder}/{thread}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
                spent_ns[thread] = int(os.pread(self._open[thread], 64, 0).split(maxsplit=1)[0])
        for gone in self._open.keys() - spent_ns.keys():
            os.close(self._open.pop(gone))
        return spent_ns


def search_threads(pid: int, stdout: Path) -> frozenset[int] | None:
    """Return the threads of a JVM that search.

    The kernel keeps 15 letters of a name, in which all threads of Elasticsearch are alike; so the JVM is told
    to dump its threads, which stops it for a moment. That is for when nothing is measured any more.

    Args:
        pid: of the JVM.
        stdout: file that its standard output is appended to.

    Returns:
        Their numbers in the kernel; None where the JVM does not answer.
    """
    try:
        before = stdout.stat().st_size
        names = {
            int(task.name): (task / "comm").read_text(encoding="utf-8", errors="replace")
            for task in Path(f"/proc/{pid}/task").iterdir()
        }
        if not _catches(pid, signal.SIGQUIT):
            return None
        os.kill(pid, signal.SIGQUIT)
    except OSError:
        return None
    patience = time.monotonic() + _DUMP_S
    text = ""
    while _END_OF_DUMP not in text and time.monotonic() < patience:
        time.sleep(_POLL_S)
        with suppress(OSError), open_regular(stdout, follow=False) as file:
            file.seek(before)
            text = file.read(_MOST_DUMP_BYTES).decode(errors="replace")
    if _END_OF_DUMP not in text:
        return None
    names |= {int(match["number"], 0): match["name"] for match in _THREAD.finditer(text)}
    return frozenset(thread for thread, name in names.items() if _SEARCHES.search(name))


def _catches(pid: int, wanted: signal.Signals) -> bool:
    """Return whether a process has a handler; a JVM with -Xrs has none, and SIGQUIT would end it."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    return bool(int(status.partition("\nSigCgt:")[2].split(maxsplit=1)[0], 16) >> (wanted - 1) & 1)


def cpu_of(begin: Reading, end: Reading, threads: Collection[int]) -> int:
    """Return CPU nanoseconds of some threads between two readings, without those that ended."""
    spent_ns = 0
    for thread in end.threads.keys() & threads:
        used, before = end.threads[thread], begin.threads.get(thread, 0)
        # A number that counts from the beginning again is another thread's.
        spent_ns += used - before if used >= before else used
    return spent_ns


# Pauses of the collector, as of `-Xlog:gc*`.

_NS_PER_MS = 1_000_000
_DECORATION = re.compile(r"\[([^]]*)\]")
_NANOS = re.compile(r"\d+ns")

# Generational ZGC names the generation first; not all pauses state the heap before and after.
_PAUSE = re.compile(
    r"(?P<marks>(?:\[[^]]*\])*) *GC\(\d+\) (?:[YyOo]: )?Pause (?P<what>.+?)"
    r"(?: \d{1,9}[BKMG]->\d{1,9}[BKMG]\(\d+[BKMG]\))?"
    r" (?P<ms>\d{1,9}\.\d+)ms"
)


@dataclass(frozen=True)
class GcPause:
    """A stop of all threads by the collector."""

    start_ns: int  # when it began, on the clock of its end
    pause_ns: int  # its length
    what: str  # the kind and cause, as the JVM names it: `Young (Normal) (G1 Evacuation Pause)`


def read_pauses(logs: Path, pid: int, origin_ns: int) -> list[GcPause]:
    """Read the pauses that a JVM logged, of any collector, in order.

    Start scripts run other JVMs with the same flags before the server, so one log may have several
    processes. Lines without the monotonic clock, which benchctl makes nodes log (`timenanos`), are passed
    over: wall time may be set while a node runs.

    Args:
        logs: folder with `gc.log` and its rotated files; without these there are no pauses.
        pid: of the JVM; lines of others are skipped.
        origin_ns: what the result's times count from, on the monotonic clock.

    Raises:
        BenchctlError: If a log cannot be read.
    """
    pauses = [pause for path in logs.glob("gc.log*") for pause in _pauses(path, str(pid), origin_ns)]
    return sorted(pauses, key=lambda pause: pause.start_ns)


def _pauses(path: Path, pid: str, origin_ns: int) -> Iterator[GcPause]:
    with (
        disk_errors(f"read {path}"),
        open_regular(path, follow=False) as raw,
        io.TextIOWrapper(raw, encoding="utf-8", errors="replace") as log,
    ):
        for line in log:
            # Most lines are irrelevant, and a log may be long.
            match = _PAUSE.fullmatch(line.rstrip()) if "Pause" in line else None
            marks = [mark.strip() for mark in _DECORATION.findall(match["marks"])] if match else []
            written_ns = next((int(mark[:-2]) for mark in marks if _NANOS.fullmatch(mark)), None)
            pids = [mark for mark in marks if mark.isdigit()]
            if match is not None and written_ns is not None and (not pids or pid in pids):
                pause_ns = round(float(match["ms"]) * _NS_PER_MS)
                yield GcPause(written_ns - origin_ns - pause_ns, pause_ns, match["what"])
