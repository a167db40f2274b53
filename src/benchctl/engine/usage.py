"""Resource usage of a node's processes, and the pauses of its JVM."""

import io
import os
import re
import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from benchctl.disk import disk_errors, open_regular

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


# Pauses of the collector, as of `-Xlog:gc*`.

_NS_PER_MS = 1_000_000

# Generational ZGC names the generation first; not all pauses state the heap before and after.
_PAUSE = re.compile(
    r"(?:\[[^]]*\])* *GC\(\d+\) (?:[YyOo]: )?Pause (?P<what>.+?)"
    r"(?: \d{1,9}[BKMG]->\d{1,9}[BKMG]\(\d+[BKMG]\))?"
    r" (?P<ms>\d{1,9}\.\d+)ms"
)


@dataclass(frozen=True)
class GcPause:
    """A stop of all threads by the collector."""

    start_ns: int  # when it began, on the clock of its end
    pause_ns: int  # its length
    what: str  # the kind and cause, as the JVM names it: `Young (Normal) (G1 Evacuation Pause)`


def parse_pause(text: str, end_ns: int) -> GcPause | None:
    """Return the pause that a log line reports at its end, for any collector; None for other lines.

    Leading decorations of the line are skipped; `end_ns` is when it was written.
    """
    # Most lines are irrelevant, and a log may be long.
    if "Pause" not in text or (match := _PAUSE.fullmatch(text)) is None:
        return None
    pause_ns = round(float(match["ms"]) * _NS_PER_MS)
    return GcPause(end_ns - pause_ns, pause_ns, match["what"])


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
