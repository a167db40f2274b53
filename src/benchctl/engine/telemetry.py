"""Resources used by a node's process since it started, and pauses of its JVM."""

import io
import math
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import psutil

from benchctl.disk import disk_errors, open_regular
from benchctl.jvm.unified_log import GcPause, parse_pause

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
    user_s: float = math.nan
    system_s: float = math.nan
    minor_faults: float = math.nan
    voluntary_switches: float = math.nan
    involuntary_switches: float = math.nan
    threads: float = math.nan


class Gauge(Protocol):
    """A reader of a process's usage."""

    def read(self) -> Usage:
        """Read the current usage."""
        ...


class ProcessGauge:
    """A reader of a local process; one that is gone, or another user's, reads as NaN."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._switches: dict[str, tuple[int, int]] = {}
        self._switched = (0, 0)
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
                minor, major = _faults(self._pid)
            read_bytes, write_bytes = storage_bytes(self._process)
            voluntary, involuntary = self._context_switches()
        except (psutil.Error, OSError):
            return Usage()
        return Usage(
            cpu_s=times.user + times.system,
            rss_bytes=rss_bytes,
            read_bytes=read_bytes,
            write_bytes=write_bytes,
            context_switches=voluntary + involuntary,
            major_faults=major,
            user_s=times.user,
            system_s=times.system,
            minor_faults=minor,
            voluntary_switches=voluntary,
            involuntary_switches=involuntary,
            threads=len(self._switches),
        )

    def _context_switches(self) -> tuple[int, int]:
        """Voluntary and involuntary switches of every thread that was alive at a reading.

        For a process, the kernel reports only those of its main thread.
        """
        now = {}
        with os.scandir(f"/proc/{self._pid}/task") as threads:
            for thread in threads:
                with suppress(FileNotFoundError, ProcessLookupError):
                    now[thread.name] = _switches_of(thread.path)
        for name, counts in now.items():
            before = self._switches.get(name, (0, 0))
            if sum(counts) < sum(before):
                # The counter was reset: the thread id was reused.
                before = (0, 0)
            voluntary, involuntary = self._switched
            self._switched = (voluntary + counts[0] - before[0], involuntary + counts[1] - before[1])
        self._switches = now
        return self._switched


class Storage(Protocol):
    """Storage traffic of a process, as psutil reports it."""

    def io_counters(self) -> Any:
        """Return counters with read_bytes and write_bytes."""
        ...


def storage_bytes(process: Storage) -> tuple[float, float]:
    """Return bytes read and written; NaN where the kernel hides them from other users."""
    try:
        counters = process.io_counters()
    except (psutil.AccessDenied, NotImplementedError):
        return math.nan, math.nan
    return counters.read_bytes, counters.write_bytes


def _switches_of(task: str) -> tuple[int, int]:
    """Voluntary and involuntary context switches of a thread, by its folder in /proc."""
    descriptor = os.open(f"{task}/status", os.O_RDONLY)
    try:
        status = os.read(descriptor, 8192)
    finally:
        os.close(descriptor)
    # The line of involuntary ones follows, and ends with the same words.
    voluntary, involuntary = (int(part.split(maxsplit=1)[0]) for part in status.split(_SWITCHES)[1:])
    return voluntary, involuntary


def _faults(pid: int) -> tuple[int, int]:
    """Minor and major page faults of a process."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - once a second
        # After the program's name, which may contain anything.
        fields = file.read().rpartition(")")[2].split()
    return int(fields[7]), int(fields[9])


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
    found = [pause for path in logs.glob("gc.log*") for pause in _pauses(path, str(pid), clock)]
    return sorted(found, key=lambda pause: pause.start_ns)


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
            found = None if end_ns is None else parse_pause(line.rstrip(), end_ns)
            pids = [text for text in decorations if text.isdigit()]
            if found is not None and (not pids or pid in pids):
                yield found


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
