"""Resource usage of a node's processes, and the pauses of its JVM."""

import io
import math
import os
import re
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import BufferedReader
from pathlib import Path
from typing import Self

import psutil

from benchctl.disk import disk_errors, open_regular

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

# HotSpot maps a file for its counters, unless it has -XX:-UsePerfData or -XX:+PerfDisableSharedMem.
_COUNTERS_FILE = re.compile(r" (?P<path>/\S*/hsperfdata_[^/\s]+/\d+)$", re.MULTILINE)
_MOST_COUNTERS_BYTES = 1024 * 1024
_COUNTER_BYTES = 8
# Both compilers together; the time is the compiling threads' from begin to end, on the monotonic clock.
_COMPILATIONS, _COMPILING_NS = "sun.ci.totalCompiles", "java.ci.totalTime"


@dataclass(frozen=True)
class Reading:
    """Resources used by a process since it started."""

    at_ns: int  # when, on the monotonic clock
    cpu_ns: int  # CPU time, those of threads that have ended included
    # kernel's number of a thread -> its CPU time in nanoseconds; that of a running one is up to a tick old
    threads: Mapping[int, int]
    read_bytes: int | None  # read from storage; None where the kernel does not say
    major_faults: int  # page faults that had to read from storage
    # methods that a JVM has compiled, and the nanoseconds that this took; None where it keeps no counters
    compiled: tuple[int, int] | None = None
    open_files: int | None = None  # that it has now, sockets included; None where the kernel does not say


@dataclass
class Meter:
    """A reader of a process of this host; a context manager that keeps a descriptor per thread.

    Args:
        pid: of the process.
    """

    pid: int
    _open: dict[int, int] = field(default_factory=dict)
    _counters: BufferedReader | None = None
    _places: tuple[int, int] = (0, 0)

    def __enter__(self) -> Self:
        with suppress(OSError, KeyError):
            file = _open_counters(self.pid)
            self._counters = file
            places = counter_places(file.read(_MOST_COUNTERS_BYTES))
            self._places = places[_COMPILATIONS], places[_COMPILING_NS]
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()
        if self._counters is not None:
            self._counters.close()

    def read(self) -> Reading | None:
        """Read the current usage; None for a process that is gone or not readable."""
        try:
            cpu_ns = time.clock_gettime_ns((~self.pid << 3) | _CPUCLOCK_SCHED)
            threads = self._threads()
            fields = Path(f"/proc/{self.pid}/stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            return None
        now_ns = time.monotonic_ns()
        return Reading(
            now_ns, cpu_ns, threads, self._storage(), int(fields[9]), self._compiled(), self._open_files()
        )

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

    def _storage(self) -> int | None:
        try:
            text = Path(f"/proc/{self.pid}/io").read_bytes()
        except OSError:
            return None
        return int(text.partition(b"\nread_bytes: ")[2].split(maxsplit=1)[0])

    def _compiled(self) -> tuple[int, int] | None:
        if self._counters is None or 0 in self._places:
            return None
        # Not mapped: a file that its owner cuts off would end benchctl.
        counters = [os.pread(self._counters.fileno(), _COUNTER_BYTES, place) for place in self._places]
        compilations, spent_ns = (int.from_bytes(counter, sys.byteorder, signed=True) for counter in counters)
        return compilations, spent_ns

    def _open_files(self) -> int | None:
        folder = f"/proc/{self.pid}/fd"
        try:
            # Linux 6.2 and newer count them here; older ones say 0.
            return os.stat(folder).st_size or len(os.listdir(folder))  # noqa: PTH116, PTH208 - twice as fast
        except OSError:
            return None


def _open_counters(pid: int) -> BufferedReader:
    """The file of counters that a JVM has mapped: another one of its name may be an earlier process's."""
    mapped = _COUNTERS_FILE.search(Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace"))
    if mapped is None:
        raise KeyError(pid)
    return open_regular(Path(mapped["path"]), follow=False)


def counter_places(data: bytes) -> dict[str, int]:
    """Return offsets of a HotSpot's 64-bit counters in its file of them, by name.

    The form is version 2.0 of `perfMemory.hpp`: a prologue, and entries of a name and a value. What is not
    of this form is empty.

    Args:
        data: of the file.
    """
    places = {}
    with suppress(struct.error, ValueError):
        magic, major, accessible, at, entries = struct.unpack_from("=4sxBxB16xii", data)
        if (magic, major, accessible) != (b"\xca\xfe\xc0\xc0", 2, 1):
            return {}
        for _ in range(entries):
            length, name, elements, kind, value = struct.unpack_from("=iiicxxxi", data, at)
            if kind == b"J" and elements == 0:
                places[data[at + name : data.index(b"\0", at + name)].decode()] = at + value
            at += length
    return places


def thread_kinds(pid: int, stdout: Path) -> dict[int, str]:
    """Return the purpose of each thread of a JVM, of KINDS.

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
    names |= {int(match["number"], 0): match["name"] for match in _THREAD.finditer(text)}
    return {
        thread: next((kind for kind, pattern in _KINDS.items() if pattern.search(name)), "other")
        for thread, name in names.items()
    }


def _catches(pid: int, wanted: signal.Signals) -> bool:
    """Return whether a process has a handler; a JVM with -Xrs has none, and SIGQUIT would end it."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    return bool(int(status.partition("\nSigCgt:")[2].split(maxsplit=1)[0], 16) >> (wanted - 1) & 1)


def cpu_by_kind(begin: Reading, end: Reading, kinds: Mapping[int, str]) -> dict[str, int]:
    """Return CPU nanoseconds between two readings by kind; `other` is that of threads that ended."""
    by_kind = dict.fromkeys(KINDS, 0)
    for thread, used in end.threads.items():
        before = begin.threads.get(thread, 0)
        # A number that counts from the beginning again is another thread's.
        by_kind[kinds.get(thread, "other")] += used - before if used >= before else used
    by_kind["other"] += max(end.cpu_ns - begin.cpu_ns - sum(by_kind.values()), 0)
    return by_kind


_SWITCHES = b"voluntary_ctxt_switches:"


@dataclass(frozen=True)
class Usage:
    """Resources used by a process since it started; NaN where they cannot be read."""

    cpu_s: float = math.nan
    rss_bytes: float = math.nan
    read_bytes: float = math.nan
    write_bytes: float = math.nan
    context_switches: float = math.nan
    major_faults: float = math.nan


def wait_idle(
    used_s: Callable[[], float | None], watch: Callable[[], object], *, cores: float, max_s: float
) -> float:
    """Wait until processes use few cores between two looks at them.

    Args:
        used_s: their CPU seconds since they started; None where they are unknown, which ends the wait.
        watch: lets a while pass between two looks.
        cores: that they may use.
        max_s: about how long to wait at most.

    Returns:
        Seconds waited.
    """
    start = since = time.monotonic()
    before = used_s()
    while True:
        watch()
        now, after = time.monotonic(), used_s()
        if before is None or after is None or after - before < cores * (now - since) or now - start >= max_s:
            return now - start
        before, since = after, now


class ProcessGauge:
    """A reader of a local process; one that is gone, or another user's, reads as NaN."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._switches: dict[str, int] = {}
        self._switched = 0
        self._process: psutil.Process | None = None
        with suppress(psutil.NoSuchProcess):
            self._process = psutil.Process(pid)

    def read(self) -> Usage:
        """Read the current usage."""
        if self._process is None:
            return Usage()
        try:
            with self._process.oneshot():
                times = self._process.cpu_times()
                rss_bytes = self._process.memory_info().rss
                major_faults = _major_faults(self._pid)
            read_bytes, write_bytes = storage_bytes(self._process)
            switches = self._context_switches()
        except (psutil.Error, OSError):
            return Usage()
        return Usage(
            cpu_s=times.user + times.system,
            rss_bytes=rss_bytes,
            read_bytes=read_bytes,
            write_bytes=write_bytes,
            context_switches=switches,
            major_faults=major_faults,
        )

    def _context_switches(self) -> int:
        """Switches, voluntary or not, of every thread that was alive at a reading.

        For a process, the kernel reports only those of its main thread.
        """
        now = {}
        with os.scandir(f"/proc/{self._pid}/task") as threads:
            for thread in threads:
                with suppress(FileNotFoundError, ProcessLookupError):
                    now[thread.name] = _switches_of(thread.path)
        for name, count in now.items():
            before = self._switches.get(name, 0)
            # A counter that was reset: the thread id was reused.
            self._switched += count - before if count >= before else count
        self._switches = now
        return self._switched


def storage_bytes(process: psutil.Process) -> tuple[float, float]:
    """Return bytes read and written; NaN where the kernel hides them from other users."""
    try:
        counters = process.io_counters()
    except (psutil.AccessDenied, NotImplementedError):
        return math.nan, math.nan
    return counters.read_bytes, counters.write_bytes


def _switches_of(task: str) -> int:
    """Context switches of a thread, voluntary or not, by its folder in /proc."""
    descriptor = os.open(f"{task}/status", os.O_RDONLY)
    try:
        status = os.read(descriptor, 8192)
    finally:
        os.close(descriptor)
    # The line of involuntary ones follows, and ends with the same words.
    return sum(int(part.split(maxsplit=1)[0]) for part in status.split(_SWITCHES)[1:])


def _major_faults(pid: int) -> int:
    """Page faults of a process that had to read from storage."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - once a second
        # After the program's name, which may contain anything.
        fields = file.read().rpartition(")")[2].split()
    return int(fields[9])


_NS_PER_S = 1_000_000_000
_NS_PER_US = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_DECORATIONS = re.compile(r"(?:\[[^]]*\])+")
_DECORATION = re.compile(r"\[([^]]*)\]")
_UPTIME = re.compile(r"\d+\.\d+s")
_NANOS = re.compile(r"\d+ns")
_WALL = re.compile(r"\d{4}-\d\d-\d\dT\S+")


@dataclass(frozen=True)
class LogClock:
    """Offsets from a log's clocks to the clock of the pauses."""

    zero_ns: int  # its value at zero of the monotonic clock, whose nanoseconds benchctl makes nodes log
    # its value at the Unix epoch, for logs with wall times only; that clock may be set while a node runs
    epoch_ns: int
    # its value at the start of the process. Uptimes count from when the JVM was loaded, for OpenSearch a
    # second or two later, since its start script becomes the JVM: a pause without a wall time is placed that
    # much too early.
    started_ns: int


# Pauses of the collector, with the heap, as of `-Xlog:gc*`.

_NS_PER_MS = 1_000_000
_BYTES = {"B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

# Numbers have no more digits than fit into 64 bits in their unit: others were not written by a JVM.
# Generational ZGC names the generation first; not all pauses state the heap before and after.
_PAUSE = re.compile(
    r"(?:\[[^]]*\])* *GC\(\d+\) (?:[YyOo]: )?Pause (?P<what>.+?)"
    r"(?: (?P<before>\d{1,9})(?P<before_unit>[BKMG])->(?P<after>\d{1,9})(?P<after_unit>[BKMG])\(\d+[BKMG]\))?"
    r" (?P<ms>\d{1,9}\.\d+)ms"
)


@dataclass(frozen=True)
class GcPause:
    """A stop of all threads by the collector."""

    start_ns: int  # when it began, on the clock of its end
    pause_ns: int  # its length
    what: str  # the kind and cause, as the JVM names it: `Young (Normal) (G1 Evacuation Pause)`
    before_bytes: int | None = None  # heap in use, rounded by the JVM; None if it does not tell
    after_bytes: int | None = None


def parse_pause(text: str, end_ns: int) -> GcPause | None:
    """Return the pause that a log line reports at its end, for any collector; None for other lines.

    Leading decorations of the line are skipped; `end_ns` is when it was written.
    """
    # Most lines are irrelevant, and a log may be long.
    if "Pause" not in text or (match := _PAUSE.fullmatch(text)) is None:
        return None
    pause_ns = round(float(match["ms"]) * _NS_PER_MS)
    before, after = _bytes(match, "before"), _bytes(match, "after")
    return GcPause(end_ns - pause_ns, pause_ns, match["what"], before, after)


def read_pauses(logs: Path, pid: int, clock: LogClock) -> list[GcPause]:
    """Read the pauses that a JVM logged, in order.

    Start scripts run other JVMs with the same flags before the server, so one log may have several processes.
    Lines need nanoseconds, a wall time, or an uptime in seconds; by default they have that.

    Args:
        logs: folder with `gc.log` and its rotated files; without these there are no pauses.
        pid: of the JVM; lines of others are skipped.
        clock: what the result's times count by.

    Raises:
        BenchctlError: If a log cannot be read.
    """
    pauses = [pause for path in logs.glob("gc.log*") for pause in _pauses(path, str(pid), clock)]
    return sorted(pauses, key=lambda pause: pause.start_ns)


def _pauses(path: Path, pid: str, clock: LogClock) -> Iterator[GcPause]:
    with (
        disk_errors(f"read {path}"),
        open_regular(path, follow=False) as raw,
        io.TextIOWrapper(raw, encoding="utf-8", errors="replace") as log,
    ):
        for line in log:
            # Most lines are irrelevant, and a log may be long.
            marks = _DECORATIONS.match(line) if "Pause" in line else None
            decorations = [text.strip() for text in _DECORATION.findall(marks[0])] if marks else []
            end_ns = _time_ns(decorations, clock)
            pause = None if end_ns is None else parse_pause(line.rstrip(), end_ns)
            pids = [text for text in decorations if text.isdigit()]
            if pause is not None and (not pids or pid in pids):
                yield pause


def _time_ns(decorations: list[str], clock: LogClock) -> int | None:
    """Return when a line was written; None when it does not say."""
    for text in decorations:
        if _NANOS.fullmatch(text):
            return clock.zero_ns + int(text.removesuffix("ns"))
    for text in decorations:
        if _WALL.fullmatch(text):
            since = datetime.fromisoformat(text) - _EPOCH
            return clock.epoch_ns + since // timedelta(microseconds=1) * _NS_PER_US
        if _UPTIME.fullmatch(text):
            return clock.started_ns + round(float(text.removesuffix("s")) * _NS_PER_S)
    return None


def _bytes(found: re.Match[str], name: str) -> int | None:
    number = found[name]
    return None if number is None else int(number) * _BYTES[found[f"{name}_unit"]]
