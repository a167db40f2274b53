"""What a process of this host has used since it started."""

import math
import os
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import psutil

_SWITCHES = b"voluntary_ctxt_switches:"


@dataclass(frozen=True)
class Usage:
    """What a process has used since it started; NaN where that cannot be read."""

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
    """Reads what a process has used."""

    def read(self) -> Usage:
        """As of now."""
        ...


class ProcessGauge:
    """Reads a process of this host; one that is gone, or another user's, reads as unknown.

    Args:
        pid: of the process.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._switches: dict[str, tuple[int, int]] = {}
        self._switched = (0, 0)
        self._process: psutil.Process | None = None
        with suppress(psutil.NoSuchProcess):
            self._process = psutil.Process(pid)

    def read(self) -> Usage:
        """As of now."""
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
        """Voluntary and other ones of every thread that was alive at a reading.

        Of a process, the kernel tells only those of its first thread.
        """
        now = {}
        with os.scandir(f"/proc/{self._pid}/task") as threads:
            for thread in threads:
                with suppress(FileNotFoundError, ProcessLookupError):
                    now[thread.name] = _switches_of(thread.path)
        for name, counts in now.items():
            before = self._switches.get(name, (0, 0))
            if sum(counts) < sum(before):
                # A thread id that counts from the beginning again is another thread's.
                before = (0, 0)
            voluntary, involuntary = self._switched
            self._switched = (voluntary + counts[0] - before[0], involuntary + counts[1] - before[1])
        self._switches = now
        return self._switched


class Storage(Protocol):
    """Tells what a process moved from and to storage, as psutil does."""

    def io_counters(self) -> Any:  # noqa: ANN401 - psutil's type differs from system to system
        """With read_bytes and write_bytes."""
        ...


def storage_bytes(process: Storage) -> tuple[float, float]:
    """Bytes read and written; NaN where the kernel keeps them from other users than the process's own."""
    try:
        counters = process.io_counters()
    except (psutil.AccessDenied, NotImplementedError):
        return math.nan, math.nan
    return counters.read_bytes, counters.write_bytes


def _switches_of(task: str) -> tuple[int, int]:
    """Voluntary and other context switches of a thread, by its folder in /proc."""
    descriptor = os.open(f"{task}/status", os.O_RDONLY)
    try:
        status = os.read(descriptor, 8192)
    finally:
        os.close(descriptor)
    # The line of the others follows, and ends with the same words.
    voluntary, involuntary = (int(part.split(maxsplit=1)[0]) for part in status.split(_SWITCHES)[1:])
    return voluntary, involuntary


def _faults(pid: int) -> tuple[int, int]:
    """Page faults of a process: those that were served from memory, those that had to read from storage.

    Raises:
        OSError: it is gone.
    """
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - once a second
        # Behind the name of the program, which may hold anything.
        fields = file.read().rpartition(")")[2].split()
    return int(fields[7]), int(fields[9])
