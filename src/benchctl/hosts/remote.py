"""The actor of another host's Dask worker; one benchctl has the host at a time.

Clients work in processes of their own, as on one host; the worker passes their messages on, and reads
their samples when a step is over.
"""

import asyncio
import os
import platform
import shutil
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import psutil
import pycurl

import benchctl
from benchctl.errors import BenchctlError
from benchctl.load.executor import end, spawn
from benchctl.load.floor import floor_stub, measure_floor
from benchctl.lock import host_lock, lock_name, measuring_pid, process_words
from benchctl.results.figures import Calibration

LEASE_S = 10.0
"""After so many seconds in which nobody asked, whoever began this is gone, and so are its processes."""

_LEASE_POLL_S = 1.0


@dataclass(frozen=True)
class HostFacts:
    """Properties of a host."""

    versions: dict[str, str]  # those of `VERSIONS`; those of `NEEDED` must be alike on all hosts
    cores: int  # CPUs that it may use
    memory_bytes: int
    busy: str  # the benchctl that measures there, in words; empty for none


VERSIONS = ("benchctl", "python", "distributed", "numpy", "libcurl", "kernel")
NEEDED = VERSIONS[:4]


def versions() -> dict[str, str]:
    """Return the versions of what makes load on this host."""
    try:
        dask = version("distributed")
    except PackageNotFoundError:
        dask = "none"
    own, libcurl = (benchctl.__version__, platform.python_version()), pycurl.version_info()[1]
    return dict(zip(VERSIONS, (*own, dask, np.__version__, libcurl, platform.release()), strict=True))


def describe() -> HostFacts:
    """Return what this host is."""
    pid = measuring_pid(lock_name(os.environ))
    return HostFacts(
        versions=versions(),
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=psutil.virtual_memory().total,
        busy="" if pid is None else process_words(pid),
    )


class LoadHost:
    """A host that load comes from, for one benchctl at a time; lives in the host's Dask worker as an actor.

    Dask makes an actor once, on the worker that it is pinned to, and never anew when that is lost. It might
    make it twice while it is being made, so that this does nothing; `begin` does, and gives what it began a
    name. Every later call bears that name, so that nothing else answers to it.
    """

    def __init__(self) -> None:
        self._execution = ""
        self._held = ExitStack()
        self._heard_s = 0.0
        self._ending = threading.Lock()
        self._processes: list[tuple[Connection, BaseProcess]] = []
        self._deaf: set[int] = set()

    async def clock(self) -> int:
        """Return nanoseconds of this host's monotonic clock."""
        return time.monotonic_ns()

    def facts(self) -> HostFacts:
        """Return what this host is."""
        return describe()

    def read(self, execution: str, path: Path, offset: int, count: int) -> bytes:
        """Return a piece of a file; with its last piece it is removed."""
        self._check(execution)
        try:
            with path.open("rb") as file:
                file.seek(offset)
                piece = file.read(count)
        except FileNotFoundError:
            return b""  # of samples: a client without rows
        if len(piece) < count:
            path.unlink()
        return piece

    def end(self, execution: str) -> None:
        """End all processes, and give the host back."""
        self._check(execution)
        self._end()

    def _check(self, execution: str) -> None:
        if execution != self._execution:
            raise BenchctlError("its Dask worker was restarted, or its work ended by itself")

    def _watch(self) -> None:
        while self._execution:
            if time.monotonic() - self._heard_s > LEASE_S:
                self._end()
            time.sleep(_LEASE_POLL_S)

    def _end(self) -> None:
        with self._ending:
            self._execution = ""
            self._held.close()

    def calibrate(self) -> Calibration:
        """Return what a driver on this host costs at least, in about three seconds.

        Raises:
            BenchctlError: If somebody measures there, or a request failed.
        """
        with host_lock(wait=False, on_wait=lambda _: None, home=False), floor_stub() as url:
            return measure_floor(url, stop=threading.Event())

    def begin(self, execution: str, processes: int) -> Path:
        """Take the host, and start processes of clients; where their samples will be.

        Raises:
            BenchctlError: If somebody else measures on this host.
        """
        # Dask takes a second to load, and hosts are also only described.
        from distributed import get_worker  # noqa: PLC0415 - see above

        if self._execution:
            raise BenchctlError(f"it was already started, as {self._execution}")
        with ExitStack() as stack:
            stack.enter_context(host_lock(wait=False, on_wait=lambda _: None, home=False))
            # Where this Dask worker may write; it empties that when it starts again.
            folder = Path(get_worker().local_directory) / f"load-{execution}"
            folder.mkdir()
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            stack.callback(self._end_processes)
            for _ in range(processes):
                self._processes.append(spawn())
            self._held, self._execution = stack.pop_all(), execution
        self._heard_s = time.monotonic()
        threading.Thread(target=self._watch, name="lease", daemon=True).start()
        return folder

    def tell(self, execution: str, number: int, message: bytes) -> None:
        """Pass a message on to a process; that it is gone is to be heard."""
        self._check(execution)
        try:
            self._processes[number][0].send_bytes(message)
        except OSError:
            return

    async def hear(self, execution: str, wait_s: float) -> list[tuple[int, bytes | int | None]]:
        """Return what processes sent, as soon as one does; nothing if none does for that long.

        Returns:
            (process, message), or (process, exit status) of one that has ended.
        """
        self._check(execution)
        self._heard_s = time.monotonic()
        return await asyncio.to_thread(self._listen, wait_s)

    def _listen(self, wait_s: float) -> list[tuple[int, bytes | int | None]]:
        lines = {line: number for number, (line, _) in enumerate(self._processes) if number not in self._deaf}
        try:
            ready = [line for line in wait(list(lines), wait_s) if isinstance(line, Connection)]
            return [self._receive(line, lines[line]) for line in ready]
        except OSError:
            return []  # it ends meanwhile

    def _receive(self, line: Connection, number: int) -> tuple[int, bytes | int | None]:
        try:
            return number, line.recv_bytes()
        except EOFError:
            self._deaf.add(number)
            process = self._processes[number][1]
            process.join(1.0)
            return number, process.exitcode

    def _end_processes(self) -> None:
        end(self._processes)
        self._processes.clear()
