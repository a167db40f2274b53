"""What a node's process has used, read where a measurement begins and where it ends."""

import os
import re
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from benchctl.disk import open_regular

# `man 2 clock_getres`: the CPU clock of a process; it counts nanoseconds, ahead of what /proc tells in ticks.
_CPUCLOCK_SCHED = 2

_DUMP_S = 2.0
_POLL_S = 0.01
_MOST_DUMP_BYTES = 4 * 1024 * 1024
_END_OF_DUMP = "JNI global ref"
# Up to JDK 20 a thread's number in the kernel is hexadecimal, from 21 on decimal.
_THREAD = re.compile(r'^"(?P<name>.*)" .*\bnid=(?P<number>0x[0-9a-f]+|\d+) ', re.MULTILINE)
# The names of Elasticsearch's and OpenSearch's thread pools, and of HotSpot's own threads.
_KINDS = {
    "search": re.compile(r"\[(system_(critical_)?)?(search(_\w+)?|index_searcher|get|esql_worker)\]"),
    "write": re.compile(r"\[(system_(critical_)?)?(write|refresh|flush|force_merge|merge)\]|Lucene Merge"),
    "collector": re.compile(r"^(G1 |GC Thread|Parallel|ParGC|[XZ](Worker|Driver|Director)|Shenandoah|CMS)"),
    "compilers": re.compile(r"^(C[12]|JVMCI) Compiler"),
}
KINDS = (*_KINDS, "other")


@dataclass(frozen=True)
class Reading:
    """What a process has used since it started.

    Attributes:
        at_ns: when, on the monotonic clock.
        cpu_ns: CPU time, those of threads that have ended included.
        threads: kernel's number of a thread -> its CPU time in nanoseconds; that of a running one is up to a
            tick old.
        read_bytes: read from storage; None where the kernel does not say.
        major_faults: page faults that had to read from storage.
    """

    at_ns: int
    cpu_ns: int
    threads: Mapping[int, int]
    read_bytes: int | None
    major_faults: int


@dataclass
class Meter:
    """Reads a process of this host; a context manager that keeps a descriptor a thread.

    Args:
        pid: of the process.
    """

    pid: int
    _open: dict[int, int] = field(default_factory=dict)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()

    def read(self) -> Reading | None:
        """As of now; None of a process that is gone or that the kernel keeps from us."""
        try:
            cpu_ns = time.clock_gettime_ns((~self.pid << 3) | _CPUCLOCK_SCHED)
            threads = self._threads()
            fields = Path(f"/proc/{self.pid}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return None
        return Reading(time.monotonic_ns(), cpu_ns, threads, self._storage(), int(fields[9]))

    def _threads(self) -> dict[int, int]:
        folder = f"/proc/{self.pid}/task"
        found = {}
        for thread in map(int, os.listdir(folder)):  # noqa: PTH208 - half as long as by paths
            with suppress(OSError):
                if thread not in self._open:
                    self._open[thread] = os.open(f"{folder}/{thread}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
                found[thread] = int(os.pread(self._open[thread], 64, 0).split(maxsplit=1)[0])
        for gone in self._open.keys() - found.keys():
            os.close(self._open.pop(gone))
        return found

    def _storage(self) -> int | None:
        try:
            text = Path(f"/proc/{self.pid}/io").read_bytes()
        except OSError:
            return None
        return int(text.partition(b"\nread_bytes: ")[2].split(maxsplit=1)[0])


def thread_kinds(pid: int, stdout: Path) -> dict[int, str]:
    """What the threads of a JVM are for: one of KINDS.

    The kernel keeps 15 letters of a name, in which all threads of Elasticsearch are alike; so the JVM is told
    to dump its threads, which stops it for a moment. That is for when nothing is measured any more.

    Args:
        pid: of the JVM.
        stdout: file that its standard output is appended to.

    Returns:
        By the kernel's number; empty where the JVM does not answer.
    """
    try:
        before = stdout.stat().st_size
        names = {
            int(task.name): (task / "comm").read_text(encoding="utf-8", errors="replace")
            for task in Path(f"/proc/{pid}/task").iterdir()
        }
        if not _catches(pid, signal.SIGQUIT):
            return {}
        os.kill(pid, signal.SIGQUIT)
    except OSError:
        return {}
    patience = time.monotonic() + _DUMP_S
    text = ""
    while _END_OF_DUMP not in text and time.monotonic() < patience:
        time.sleep(_POLL_S)
        with suppress(OSError), open_regular(stdout, follow=False) as file:
            file.seek(before)
            text = file.read(_MOST_DUMP_BYTES).decode(errors="replace")
    if _END_OF_DUMP not in text:
        return {}
    names |= {int(found["number"], 0): found["name"] for found in _THREAD.finditer(text)}
    return {thread: _kind(name) for thread, name in names.items()}


def _catches(pid: int, wanted: signal.Signals) -> bool:
    """Whether a process has a handler; a JVM with -Xrs has none, and SIGQUIT would end it."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    return bool(int(status.partition("\nSigCgt:")[2].split(maxsplit=1)[0], 16) >> (wanted - 1) & 1)


def _kind(name: str) -> str:
    return next((kind for kind, pattern in _KINDS.items() if pattern.search(name)), "other")


def cpu_by_kind(begin: Reading, end: Reading, kinds: Mapping[int, str]) -> dict[str, int]:
    """CPU nanoseconds between two readings, by kind; what no living thread accounts for is `other`."""
    found = dict.fromkeys(KINDS, 0)
    for thread, used in end.threads.items():
        before = begin.threads.get(thread, 0)
        # A number that counts from the beginning again is another thread's.
        found[kinds.get(thread, "other")] += used - before if used >= before else used
    found["other"] += max(end.cpu_ns - begin.cpu_ns - sum(found.values()), 0)
    return found
