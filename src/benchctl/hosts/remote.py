"""The actors of another host's Dask worker; one benchctl has the host at a time.

Clients work in processes of their own, as on one host; the worker passes their messages on, and reads
their samples when a step is over.
"""

import asyncio
import os
import platform
import resource
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import psutil
import pycurl

import benchctl
from benchctl.endpoint import is_loopback
from benchctl.errors import BenchctlError
from benchctl.home import resolve_home
from benchctl.hosts.file import require_address
from benchctl.hosts.site import Site, SiteFacts
from benchctl.load.executor import end, spawn
from benchctl.load.floor import floor_stub, measure_floor
from benchctl.lock import host_lock, lock_name, measuring_pid, process_words
from benchctl.results.figures import Calibration

LEASE_S = 10.0
"""After so many seconds in which nobody asked, whoever began this is gone, and so are its processes."""

_LEASE_POLL_S = 1.0
# Of nodes of one host at a time: each waits for one thing, and is watched by another.
_MOST_CALLS = 64

T = TypeVar("T")


@dataclass(frozen=True)
class HostFacts:
    """Properties of a host, and its free resources."""

    versions: dict[str, str]  # those of `VERSIONS`; those of `NEEDED` must be alike on all hosts
    cores: int  # CPUs that it may use
    memory_bytes: int
    free_memory_bytes: int
    free_disk_bytes: int  # where samples are written
    load: float  # runnable processes of the last minute
    busy: str  # the benchctl that measures there, in words; empty for none
    # How many a process may have (vm.max_map_count); None where the kernel does not say.
    memory_maps: int | None = None
    # How many one may have that is started here (ulimit -Hn); None for any number.
    open_files: int | None = None


VERSIONS = ("benchctl", "python", "distributed", "numpy", "libcurl", "kernel")
NEEDED = VERSIONS[:4]


def versions() -> dict[str, str]:
    """Return the versions of what makes load on this host."""
    try:
        dask = version("distributed")
    except PackageNotFoundError:
        dask = "none"
    values = (
        benchctl.__version__,
        platform.python_version(),
        dask,
        np.__version__,
        pycurl.version_info()[1],
        platform.release(),
    )
    return dict(zip(VERSIONS, values, strict=True))


def describe(folder: Path) -> HostFacts:
    """Return what this host is; `folder` is where it would write samples."""
    memory = psutil.virtual_memory()
    pid = measuring_pid(lock_name(os.environ))
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    return HostFacts(
        versions=versions(),
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=memory.total,
        free_memory_bytes=memory.available,
        free_disk_bytes=shutil.disk_usage(folder).free,
        load=os.getloadavg()[0],
        busy="" if pid is None else process_words(pid),
        memory_maps=_memory_maps(),
        open_files=None if files == resource.RLIM_INFINITY else files,
    )


def _memory_maps() -> int | None:
    try:
        return int(Path("/proc/sys/vm/max_map_count").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


# What both engines demand of a host, where nodes of other hosts reach theirs.
_LEAST_MEMORY_MAPS = 262_144
_LEAST_OPEN_FILES = 65_535


def lacking(facts: HostFacts, addresses: Iterable[str]) -> str:
    """Return what to do on a host so that nodes at these addresses start; empty for nothing.

    The engines' bootstrap checks, which they make as soon as an address is none of loopback.
    """
    addresses = list(filter(None, addresses))
    mend = []
    if facts.memory_maps is not None and facts.memory_maps < _LEAST_MEMORY_MAPS:
        mend.append(f"sysctl -w vm.max_map_count={_LEAST_MEMORY_MAPS}")
    if facts.open_files is not None and facts.open_files < _LEAST_OPEN_FILES:
        mend.append(f"ulimit -n {_LEAST_OPEN_FILES} for what starts them")
    checked = len(addresses) > 1 and not all(map(is_loopback, addresses))
    return ", ".join(mend) if checked else ""


@dataclass(frozen=True)
class SiteRoom:
    """Permission and room of a host to carry nodes."""

    free_disk_bytes: int | None  # of its own home; None where that cannot be used
    unfit: str  # why it cannot, in words; empty where it can


def describe_site(address: str) -> SiteRoom:
    """Return whether nodes can be on this host, at an address; at loopback without one."""
    try:
        home = resolve_home()
        if address:
            require_address(address)
        return SiteRoom(shutil.disk_usage(home.root).free, "")
    except BenchctlError as err:
        return SiteRoom(None, err.message)


class _Holding:
    """The lock of this host, which all that one benchctl has begun in this process shares."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._lock = ExitStack()
        self._owner = ""
        self._count = 0

    @contextmanager
    def by(self, owner: str) -> Iterator[None]:
        """Hold it for a benchctl.

        Raises:
            HostBusy: If another one has the host.
        """
        with self._guard:
            if not self._count or owner != self._owner:
                self._lock.enter_context(host_lock(wait=False, on_wait=_ignore, home=False))
                self._owner = owner
            self._count += 1
        try:
            yield
        finally:
            with self._guard:
                self._count -= 1
                if not self._count:
                    self._lock.close()


_HOLDING = _Holding()


def _room() -> Path:
    """Return where this Dask worker may write; it empties that when it starts again."""
    # Not where only hosts are described: Dask takes a second to load.
    from distributed import get_worker  # noqa: PLC0415 - see above

    return Path(get_worker().local_directory)


def _ignore(_holder: str) -> None:
    """Do nothing: nobody waits here."""


class HostActor:
    """A host, for one benchctl at a time; lives in the host's Dask worker as an actor.

    Dask makes an actor once, on the worker that it is pinned to, and never anew when that is lost. It might
    make it twice while it is being made, so that this does nothing; `begin` does, and gives what it began a
    name. Every later call bears that name, so that nothing else answers to it.
    """

    def __init__(self) -> None:
        self._execution = ""
        self._held = ExitStack()
        self._heard_s = 0.0
        self._ending = threading.Lock()

    async def clock(self) -> int:
        """Return nanoseconds of this host's monotonic clock."""
        return time.monotonic_ns()

    def facts(self) -> HostFacts:
        """Return what this host is."""
        return describe(_room())

    def site(self, address: str) -> SiteRoom:
        """Return whether nodes can be here."""
        return describe_site(address)

    def bytes_of(self, count: int) -> bytes:
        """Return so many bytes that nothing can compress, to find out how fast they come."""
        return os.urandom(count)

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

    def _begun(self, execution: str, held: ExitStack) -> None:
        """Keep what `held` has until it is ended, or nobody asks any more."""
        self._held, self._execution = held, execution
        self._heard_s = time.monotonic()
        threading.Thread(target=self._watch, name="lease", daemon=True).start()

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


class LoadHost(HostActor):
    """A host that load comes from."""

    def __init__(self) -> None:
        super().__init__()
        self._processes: list[tuple[Connection, BaseProcess]] = []
        self._deaf: set[int] = set()

    def calibrate(self) -> Calibration:
        """Return what a driver on this host costs at least, in about three seconds.

        Raises:
            BenchctlError: If somebody measures there, or a request failed.
        """
        with host_lock(wait=False, on_wait=_ignore, home=False), floor_stub() as url:
            return measure_floor(url, stop=threading.Event())

    def begin(self, execution: str, owner: str, processes: int) -> Path:
        """Take the host, and start processes of clients; where their samples will be.

        Raises:
            BenchctlError: If somebody else than `owner` measures on this host.
        """
        if self._execution:
            raise BenchctlError(f"it was begun already, as {self._execution}")
        with ExitStack() as stack:
            stack.enter_context(_HOLDING.by(owner))
            folder = _room() / f"load-{execution}"
            folder.mkdir()
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            stack.callback(self._end_processes)
            for _ in range(processes):
                self._processes.append(spawn())
            self._begun(execution, stack.pop_all())
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


class NodeHost(HostActor):
    """A host that carries nodes; what is done with them is ordinary code, called in threads of its own.

    Others than the worker's, whose one thread for actors would make the load of this host wait for its nodes.
    """

    def __init__(self) -> None:
        super().__init__()
        self._threads = ThreadPoolExecutor(_MOST_CALLS, thread_name_prefix="nodes")
        self._site: Site | None = None

    async def begin(self, execution: str, owner: str, session: str, address: str) -> SiteFacts:
        """Take the host, and make room in its own home.

        Args:
            execution: the name of all that is begun.
            owner: the benchctl that it is for.
            session: of all hosts that nodes are on at the same time.
            address: that nodes are to take requests at.

        Raises:
            BenchctlError: If another benchctl measures on this host, it has no such address, or another host
                of the session has the same home.
        """
        return await self._in_thread(self._begin, execution, owner, session, address)

    async def beat(self, execution: str) -> dict[str, bool]:
        """Say that somebody is there; whether each node runs that should."""
        site = self._checked(execution)
        self._heard_s = time.monotonic()
        return await self._in_thread(site.running)

    async def do(self, execution: str, method: str, arguments: Sequence[Any]) -> Any:
        """Call a method of the site."""
        return await self._in_thread(getattr(self._checked(execution), method), *arguments)

    async def piece(self, execution: str, path: Path, offset: int, count: int) -> bytes:
        """Read as `read`, not in the worker's one thread for actors."""
        return await self._in_thread(self.read, execution, path, offset, count)

    async def finish(self, execution: str) -> None:
        """End as `end`, not in the worker's one thread for actors."""
        return await self._in_thread(self.end, execution)

    def _begin(self, execution: str, owner: str, session: str, address: str) -> SiteFacts:
        if self._execution:
            raise BenchctlError(f"it was begun already, as {self._execution}")
        require_address(address)
        with ExitStack() as stack:
            stack.enter_context(_HOLDING.by(owner))
            self._site = stack.enter_context(Site(resolve_home(), session, address))
            self._begun(execution, stack.pop_all())
        return self._site.facts

    def _checked(self, execution: str) -> Site:
        self._check(execution)
        if self._site is None:
            raise RuntimeError("what has begun has a site")
        return self._site

    async def _in_thread(self, do: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(do, *arguments))
