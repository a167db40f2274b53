"""Processes of clients on several hosts as one pool: reached by Dask, started together, samples merged."""

import logging
import multiprocessing
import pickle
import threading
import time
import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import zip_longest
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self

import dask.config
from distributed import Client, Security
from distributed.versions import VersionMismatchWarning

from benchctl.errors import BenchctlError
from benchctl.hosts.file import Hosts
from benchctl.hosts.remote import NEEDED, HostFacts, LoadHost, versions
from benchctl.load.executor import (
    Assigned,
    HostClock,
    LocalWorker,
    Message,
    Parts,
    Start,
    Worker,
    WorkerPool,
    died,
)
from benchctl.results.figures import Calibration
from benchctl.results.model import LoadHostFacts
from benchctl.results.samples import Chunks

LOST_S = 10.0
"""A host that does not answer for so many seconds is lost."""

_CONNECT_S = 10.0
_HEAR_S = 1.0
_CALIBRATE_S = 60.0
_END_S = 20.0  # timeout of a start or end on a host
# Samples are fetched in pieces of this size: a host's whole step may not fit into memory.
_PIECE_BYTES = 4 << 20

# Of many round trips the quickest one waited for nobody; half of it is all that its asymmetry can be.
_ROUNDS = 20
# Where every one of them waits, there are not that many: the node idles meanwhile, host after host.
_LEAST_ROUNDS = 5
_MOST_CLOCK_NS = 200_000_000
# What a clock that is being corrected may gain or lose: 500 ppm is the most that the kernel's NTP code does.
_MOST_DRIFT = 500e-6
# A message to a process of another host takes milliseconds, one host after the other.
_LEAD_NS = 100_000_000
_LEAD_WORKER_NS = 5_000_000


class Link:
    """The way to one host: calls of its actor, each of which ends in time.

    Raises:
        BenchctlError: If it does not answer.
    """

    def __init__(self, name: str, client: Client, actor: Any) -> None:
        self.name = name
        self.lost: BenchctlError | None = None  # why the host cannot be reached any more; None while it can
        self.clock = HostClock(name)  # where its clock stands, as it was last found out
        self._client = client
        self._actor = actor
        self._execution = ""
        # Why nothing more comes from its processes; None while something may.
        self.failure: BenchctlError | None = None
        self.folder = Path()  # where the samples of its processes are
        self._lines: list[Connection] = []
        self._relay: threading.Thread | None = None
        self._ended = False
        self.facts: HostFacts = self.call("facts")

    def call(self, method: str, *arguments: Any, timeout_s: float = LOST_S) -> Any:
        """Call a method of the actor.

        Raises:
            BenchctlError: If the host is lost, or says so itself.
        """
        if self.lost is not None:
            raise self.lost
        try:
            call = getattr(self._actor, method)(*arguments)
        except RuntimeError as err:
            raise self.lose("its Dask worker is gone") from err
        try:
            return call.result(timeout=timeout_s)
        except BenchctlError as err:
            raise BenchctlError(f"host {self.name}: {err.message}", hint=err.hint) from err
        except TimeoutError as err:
            raise self.lose(f"it did not respond for {timeout_s:g} s") from err
        except (OSError, RuntimeError, CancelledError) as err:
            # That is how Dask reports it; any other OSError was raised there.
            is_gone = not isinstance(err, OSError) or "contact Actor's worker" in str(err)
            raise self.lose("its Dask worker is gone" if is_gone else str(err)) from err

    def lose(self, why: str) -> BenchctlError:
        """Give the host up; the lines of its processes end as soon as whoever listens to it notices."""
        if self.lost is None:
            self.lost = BenchctlError(
                f"host {self.name} was lost: {why}",
                hint="check its Dask worker; `benchctl doctor --hosts FILE` shows what is reachable",
            )
        return self.lost

    def measure_clock(self) -> tuple[HostClock, int]:
        """Return where its clock stands, and the round trip that tells, in nanoseconds."""

        async def measure() -> list[tuple[int, int]]:
            trips_ns: list[tuple[int, int]] = []
            begun_ns = time.monotonic_ns()
            while len(trips_ns) < _ROUNDS:
                sent_ns = time.monotonic_ns()
                if len(trips_ns) >= _LEAST_ROUNDS and sent_ns - begun_ns > _MOST_CLOCK_NS:
                    break
                there_ns = await self._actor.clock()
                back_ns = time.monotonic_ns()
                trips_ns.append((back_ns - sent_ns, there_ns - (sent_ns + back_ns) // 2))
            return trips_ns

        if self.lost is not None:
            raise self.lost
        try:
            trips = self._client.sync(measure, callback_timeout=LOST_S)
        except (OSError, RuntimeError, TimeoutError, CancelledError) as err:
            raise self.lose(f"it did not report its time within {LOST_S:g} s") from err
        round_trip_ns, offset_ns = min(trips)
        return HostClock(self.name, offset_ns, round_trip_ns // 2 + 1), round_trip_ns

    def begin(self, processes: int) -> list["HostWorker"]:
        """Take the host, and start processes there."""
        execution = uuid.uuid4().hex
        self.folder = self.call("begin", execution, processes, timeout_s=_END_S)
        self._execution = execution
        pipes = [multiprocessing.Pipe() for _ in range(processes)]
        self._lines = [theirs for _, theirs in pipes]
        self._relay = threading.Thread(target=self._listen, name=f"host {self.name}", daemon=True)
        self._relay.start()
        return [HostWorker(self, number, ours) for number, (ours, _) in enumerate(pipes)]

    def tell(self, number: int, message: Message) -> None:
        """Send a message to a process; a lost host shows by the end of the lines."""
        with suppress(BenchctlError):
            self.call("tell", self._execution, number, pickle.dumps(message))

    def fetch(self, samples: object, folder: Path) -> Chunks:
        """Bring samples here, file by file and piece by piece; they are gone there."""
        if not isinstance(samples, Chunks):
            raise TypeError("only samples in files can be fetched")

        def read(path: Path, offset: int) -> bytes:
            piece: bytes = self.call("read", self._execution, path, offset, _PIECE_BYTES)
            return piece

        return Chunks(tuple(file.copied(folder, read, _PIECE_BYTES) for file in samples.files))

    def end(self) -> None:
        """End what was begun; whatever cannot be reached any more ends by itself."""
        self._ended = True
        if self._execution and self.lost is None:
            with suppress(BenchctlError):
                self.call("end", self._execution, timeout_s=_END_S)
        if self._relay is not None and self.lost is None:
            self._relay.join(2 * _HEAR_S)

    def _listen(self) -> None:
        try:
            while not self._ended:
                heard = self.call("hear", self._execution, _HEAR_S, timeout_s=LOST_S)
                for number, message in heard:
                    if isinstance(message, bytes):
                        self._lines[number].send_bytes(message)
                    else:
                        self.failure = died(message, f" on host {self.name}")
                        return
        except BenchctlError as err:
            self.failure = err
        except OSError:
            return  # nobody listens any more
        finally:
            for line in self._lines:
                line.close()


@dataclass(eq=False)
class HostWorker:
    """A process of another host; translates between its clock and disk and ours."""

    _link: Link
    _number: int
    line: Connection

    def tell(self, message: Message) -> None:
        """Send it."""
        offset_ns = self._link.clock.offset_ns
        match message:
            case Assigned(stage=stage):
                stage = replace(stage, origin_ns=stage.origin_ns + offset_ns)
                message = replace(message, stage=stage, folder=self._link.folder)
            case Start(start_ns=start_ns):
                message = Start(start_ns + offset_ns)
        self._link.tell(self._number, message)

    def receive(self) -> Message:
        """Take it."""
        try:
            message: Message = pickle.loads(self.line.recv_bytes())  # noqa: S301 - from hosts that our authority vouches for
        except (EOFError, OSError) as err:
            raise (self._link.failure or self._link.lose("its processes have ended")) from err
        if isinstance(message, BenchctlError):
            message.message = f"host {self._link.name}: {message.message}"
        return message

    def settle(self, parts: Parts, folder: Path) -> Parts:
        """Fetch the samples, and set the clock."""
        offset_ns = self._link.clock.offset_ns

        def ours(there_ns: int) -> int:
            return there_ns - offset_ns if there_ns else 0

        return tuple(
            replace(
                part,
                samples=self._link.fetch(part.samples, folder),
                start_ns=ours(part.start_ns),
                ended_ns=ours(part.ended_ns),
                stops=tuple((ours(begin_ns), ours(end_ns)) for begin_ns, end_ns in part.stops),
                host=self._link.clock,
            )
            for part in parts
        )


class HostSession:
    """Hosts of a file while they are used: connected to; a context manager."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._held = ExitStack()
        self.links: dict[str, Link] = {}
        # Of those that cannot be used, why not, and what to do about it.
        self.missing: dict[str, BenchctlError] = {}

    def __enter__(self) -> Self:
        if self._hosts.elsewhere:
            with ExitStack() as stack:
                self._connect(stack)
                self._held = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def link(self, name: str) -> Link:
        """Return the way to a host.

        Raises:
            BenchctlError: If it is not there, or not fit.
        """
        if why := self.missing.get(name):
            raise BenchctlError(f"host {name} cannot be used: {why.message}", hint=why.hint)
        return self.links[name]

    def _connect(self, stack: ExitStack) -> None:
        client = stack.enter_context(_client(self._hosts))
        there = {
            str(worker["name"]): worker for worker in client.scheduler_info(n_workers=-1)["workers"].values()
        }
        for name in self._hosts.elsewhere:
            try:
                self.links[name] = self._settled_in(client, name, there)
            except BenchctlError as err:
                self.missing[name] = err

    def _settled_in(self, client: Client, name: str, there: Mapping[str, Any]) -> Link:
        start = (
            f"start there: dask worker {self._hosts.scheduler} --name HOST --no-nanny --nthreads 1 "
            "--tls-ca-file CA --tls-cert CERTIFICATE --tls-key KEY"
        )
        if name not in there:
            names = ", ".join(there) or "none"
            raise BenchctlError(
                f"no Dask worker of that name is connected to the scheduler (connected: {names})", hint=start
            )
        if there[name].get("nanny"):
            raise BenchctlError("its Dask worker has a nanny, which lets it start no processes", hint=start)
        future = client.submit(
            LoadHost, workers=[name], allow_other_workers=False, actor=True, pure=False, retries=0
        )
        try:
            link = Link(name, client, future.result(timeout=_CONNECT_S))
        except BenchctlError:
            raise
        except Exception as err:  # whatever its worker has instead of ours
            raise BenchctlError(
                f"its Dask worker cannot load benchctl as it is here: {err}", hint=_SAME_HINT
            ) from err
        ours, theirs = versions(), link.facts
        other = [
            f"{component} {theirs.versions[component]}, here {ours[component]}"
            for component in NEEDED
            if theirs.versions[component] != ours[component]
        ]
        if other:
            raise BenchctlError(f"it has {'; '.join(other)}", hint=_SAME_HINT)
        return link


_SAME_HINT = "install the versions of this host there, and start its Dask worker with them"


@contextmanager
def _client(hosts: Hosts) -> Iterator[Client]:
    # Its log tells what we tell ourselves, in other words and on the screen.
    for name in ("distributed", "distributed.client", "distributed.core", "distributed.comm", "tornado"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", category=VersionMismatchWarning)
    if hosts.tls is None:
        raise ValueError("connections to hosts require TLS")
    security = Security(
        tls_ca_file=hosts.tls.ca,
        tls_client_cert=hosts.tls.certificate,
        tls_client_key=hosts.tls.key,
        require_encryption=True,
    )
    with dask.config.set({"distributed.comm.timeouts.connect": _CONNECT_S}):
        try:
            client = Client(
                hosts.scheduler,
                security=security,
                timeout=_CONNECT_S,
                direct_to_workers=True,
                name="benchctl",
            )
        except (OSError, ValueError) as err:
            raise BenchctlError(
                f"the Dask scheduler {hosts.scheduler} cannot be reached: {err.__cause__ or err}",
                hint=f"check that it is running, and that {hosts.tls.ca} signed both certificates",
            ) from err
        try:
            yield client
        finally:
            client.close(timeout=_CONNECT_S)


def calibrate_hosts(hosts: Hosts) -> dict[str, Calibration]:
    """Return what a driver costs on each host of load that is not this one, one after the other.

    Raises:
        BenchctlError: If one of them cannot be used.
    """
    with HostSession(hosts) as session:
        return {
            name: session.link(name).call("calibrate", timeout_s=_CALIBRATE_S) for name in hosts.elsewhere
        }


class HostPool(WorkerPool):
    """Processes on several hosts, which together send what one would.

    What reads a corpus stays on this host, which has it. A host that is lost fails what is being done, and is
    looked for anew before the next step: load never comes from fewer hosts than were asked for.

    Args:
        hosts: those that load comes from.
        processes: on each of them.
    """

    def __init__(self, hosts: Hosts, processes: int) -> None:
        size = len(hosts.load) * processes
        # As `_begin` has them: the first process of the local host, or one beyond all others.
        super().__init__(size, reader=hosts.load.index(hosts.local) if hosts.local else size)
        self.lead_ns = _LEAD_NS + size * _LEAD_WORKER_NS
        self.nodes_at = hosts.address
        self._hosts = hosts
        self._processes = processes
        self._held = ExitStack()
        self._links: list[Link] = []

    def _begin(self) -> None:
        names = self._hosts.elsewhere
        session = self._held.enter_context(HostSession(self._hosts))
        self._links += [session.link(name) for name in names]

        def begin(name: str) -> Sequence[Worker]:
            if name in names:
                return session.link(name).begin(self._processes)
            return [LocalWorker(HostClock(name)) for _ in range(self._processes)]

        with ThreadPoolExecutor(len(self._hosts.load)) as together:
            crews = list(together.map(begin, self._hosts.load))
        # Clients are dealt out to hosts in turn, and then to the processes of each.
        self._workers += [worker for rank in zip_longest(*crews) for worker in rank if worker is not None]
        if self._reader == self.size:
            self._workers.append(LocalWorker())

    @property
    def facts(self) -> dict[str, LoadHostFacts]:
        """Of each host that is not this one."""
        return {
            link.name: LoadHostFacts(
                cores=link.facts.cores,
                memory_bytes=link.facts.memory_bytes,
                versions=link.facts.versions,
                round_trip_ns=link.measure_clock()[1],
            )
            for link in self._links
        }

    def _end(self) -> None:
        for link in self._links:
            link.end()
        self._links.clear()
        for worker in self._workers:
            if isinstance(worker, HostWorker):
                worker.line.close()
        super()._end()
        self._held.close()

    @contextmanager
    def _around_step(self) -> Iterator[None]:
        """Find out where the clocks stand, before and after; one that steps makes the samples worthless."""
        begun_ns = time.monotonic_ns()
        for link in self._links:
            link.clock, _ = link.measure_clock()
        yield
        for link in self._links:
            after, _ = link.measure_clock()
            link.clock = checked_clock(link.clock, after, time.monotonic_ns() - begun_ns)


def checked_clock(before: HostClock, after: HostClock, elapsed_ns: int) -> HostClock:
    """Return a host's clock over a step, from what it was found to be before and after.

    Raises:
        BenchctlError: If it moved further than a clock does by drifting.
    """
    moved_ns = abs(after.offset_ns - before.offset_ns)
    if moved_ns > before.error_ns + after.error_ns + _MOST_DRIFT * elapsed_ns:
        raise BenchctlError(
            f"the clock of host {before.name} moved by {moved_ns / 1e6:,.3f} ms against this host's within "
            f"{elapsed_ns / 1e9:,.1f} s",
            hint="one of the two was suspended or has an unsteady clock: see its kernel log, then repeat",
        )
    return replace(before, error_ns=max(before.error_ns, moved_ns + after.error_ns))
