"""Nodes on other hosts, as their cluster has them: each call of one goes to its host, and ends in time."""

import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from benchctl.disk import disk_errors
from benchctl.engine.distribution import Installation
from benchctl.engine.launch import Starts
from benchctl.engine.node import Member, Wanted, place_of
from benchctl.engine.settings import BootFolders
from benchctl.engine.unpacking import unpack
from benchctl.engine.usage import Gauge, LogClock, Reading, Usage
from benchctl.errors import BenchctlError
from benchctl.home import Home
from benchctl.hosts.file import Spread
from benchctl.hosts.pool import END_S, LOST_S, OWNER, PIECE_BYTES, HostSession, Link, checked_clock, facts_of
from benchctl.hosts.remote import NodeHost, describe, lacking
from benchctl.hosts.site import Kit, SiteFacts, kernel_start
from benchctl.results.model import LoadHostFacts
from benchctl.spec import EvidenceKind

_BEAT_S = 1.0
_POLL_S = 0.25
# The kernel has none that is larger.
_PIDS = 1 << 22


class NodeLink(Link):
    """The way to a host that carries nodes."""

    actor_type = NodeHost
    site: SiteFacts
    number = 0  # of the host among those of the session, from 1
    address = ""  # that its nodes take requests at
    given_up = False  # nothing waits any more for what is being done there

    def begin_nodes(self, session: str, address: str) -> None:
        """Take the host, and make room there; from now on it is told every second that somebody is there.

        Raises:
            BenchctlError: If it is taken, or not fit.
        """
        execution = uuid.uuid4().hex
        self.address = address
        self.dead: set[str] = set()  # nodes that do not run and should
        self.clock, _ = self.measure_clock()
        self._begun_ns = time.monotonic_ns()
        self.site = self.call("begin", execution, OWNER, session, address, timeout_s=END_S)
        self._execution = execution
        self._over = threading.Event()
        threading.Thread(target=self._beat, name=f"host {self.name}", daemon=True).start()

    def do(self, method: str, *arguments: Any, halted: Callable[[], bool] = lambda: False) -> Any:
        """Have a method of the site done, however long it takes while the host is there.

        `halted` is asked now and then whether to give up.

        Raises:
            BenchctlError: If the host is lost, or says so itself; or it was given up.
        """
        return self._awaited(method, self.begun("do", self._execution, method, arguments), halted)

    def fetch_file(self, path: Path, target: Path) -> None:
        """Bring a file here, piece by piece; it is gone there.

        Raises:
            BenchctlError: If the host is lost, or the disk refuses.
        """
        with disk_errors(f"write {target}"), target.open("wb") as file:
            while piece := self.call("piece", self._execution, path, file.tell(), PIECE_BYTES):
                file.write(piece)
                if len(piece) < PIECE_BYTES:
                    return

    def check_clock(self) -> None:
        """Find out whether its clock went as ours since it was begun.

        Raises:
            BenchctlError: If it did not.
        """
        after, _ = self.measure_clock()
        self.clock = checked_clock(self.clock, after, time.monotonic_ns() - self._begun_ns)

    def end_nodes(self) -> None:
        """End what was begun; whatever cannot be reached any more ends by itself."""
        self.given_up = False
        if self._execution:
            with suppress(BenchctlError):
                self._awaited("finish", self.begun("finish", self._execution), lambda: False)
            self._over.set()

    def _beat(self) -> None:
        while not self._over.wait(_BEAT_S):
            try:
                running = self.call("beat", self._execution, timeout_s=LOST_S)
            except BenchctlError as err:
                if not self._over.is_set():
                    self.lose(err.message)
                return
            except Exception as err:
                # A bug there; whoever waits for the host must not do so for ever.
                self.lose(f"it failed: {err!r}")
                raise
            self.dead = {name for name, runs in running.items() if not runs}

    def _awaited(self, what: str, call: Any, halted: Callable[[], bool]) -> Any:
        while True:
            try:
                return self.result(call, _POLL_S)
            except TimeoutError:
                if self.lost is not None:
                    raise self.lost from None
                if self.given_up or halted():
                    raise BenchctlError(f"host {self.name} was given up during {what}") from None


class NodeHosts:
    """The hosts of a cluster's nodes, other than this one, while these are prepared or up.

    A context manager that leaves nothing there. A host that is lost fails whatever is being done; what comes
    next looks for all of them anew.

    Args:
        spread: which nodes are where.
        home: of this host.
    """

    def __init__(self, spread: Spread, home: Home) -> None:
        self._spread = spread
        self._session = uuid.uuid4().hex[:12]
        self._mark = home.scratch / f"nodes-{self._session}-here"
        self._held = ExitStack()
        self._links: dict[str, NodeLink] = {}

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            # By which the others notice that they have the same home.
            self._mark.mkdir()
            stack.callback(self._mark.rmdir)
            names = tuple(self._spread.by_host)
            session = stack.enter_context(HostSession(self._spread.hosts, NodeLink, names))
            links = {name: session.link(name) for name in names}
            stack.callback(lambda: _together(NodeLink.end_nodes, links.values()))
            for number, link in enumerate(links.values(), 1):
                link.number = number
            addresses = self._spread.hosts.hosts
            _together(
                lambda link: link.begin_nodes(self._session, addresses[link.name].address), links.values()
            )
            self._links = links
            self._held = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def on_all(self, method: str, *arguments: Any, of_nodes: bool = False) -> dict[str, Any]:
        """Have a method of the site done on all hosts at the same time; what each says, by name.

        With `of_nodes`, the names of the host's nodes are its last argument, after the given ones.

        Raises:
            BenchctlError: If one of them is lost, or says so itself.
        """

        def on(link: NodeLink) -> Any:
            more = (self._spread.by_host[link.name],) if of_nodes else ()
            return link.do(method, *arguments, *more)

        return dict(zip(self._links, _together(on, self._links.values()), strict=True))

    def files(self) -> Counter[str]:
        """Return bytes by what they are for, of all nodes there; see `bytes_by_kind`."""
        sizes: Counter[str] = Counter()
        for files in self.on_all("files").values():
            sizes.update(files)
        return sizes

    @property
    def sites(self) -> dict[str, SiteFacts]:
        """Return what is begun on each host."""
        return {name: link.site for name, link in self._links.items()}

    @property
    def machines(self) -> tuple[tuple[str, ...], ...]:
        """Hosts that are one machine, as containers are; empty for this one, if nodes are here, too."""
        by_kernel: dict[str, tuple[str, ...]] = {kernel_start(): ("",)} if self._spread.own else {}
        for name, site in self.sites.items():
            by_kernel[site.kernel] = (*by_kernel.get(site.kernel, ()), name)
        return tuple(names for kernel, names in by_kernel.items() if kernel and len(names) > 1)

    @property
    def facts(self) -> dict[str, LoadHostFacts]:
        """Return what each host is."""
        return {name: facts_of(link) for name, link in self._links.items()}

    def check_starts(self) -> None:
        """Check that nodes of one cluster would start on each host.

        Raises:
            BenchctlError: If not on one of them, and what to do there.
        """
        addresses = self._spread.hosts.hosts
        by_name = {name: (link.facts, addresses[name].address) for name, link in self._links.items()}
        if self._spread.own:
            local = next((host.address for host in addresses.values() if host.local), "")
            by_name["of benchctl"] = (describe(Path.cwd()), local)
        for name, (facts, _) in by_name.items():
            if lacks := lacking(facts, [address for _, address in by_name.values()]):
                raise BenchctlError(
                    f"no node that others reach would start on host {name}", hint=f"there: {lacks}"
                )

    def collectors(self, kinds: Sequence[EvidenceKind], folder: str) -> dict[str, "RemoteCollector"]:
        """Make the collectors of each node there, by its name.

        Raises:
            BenchctlError: If a host is lost, or cannot make room.
        """
        return {
            node: RemoteCollector(
                self._links[host],
                node,
                self._links[host].do("collect", kinds, self._spread.kits[host], folder, node),
            )
            for host, nodes in self._spread.by_host.items()
            for node in nodes
        }

    def check_clocks(self) -> None:
        """Check that all clocks went as ours.

        Raises:
            BenchctlError: If one did not, or its host is lost.
        """
        for link in self._links.values():
            link.check_clock()

    def grounds(
        self, installation: Installation, starts: Starts | None, folder: Path, *, building: bool = False
    ) -> dict[str, "RemoteGround"]:
        """Return where each node there starts, by its name.

        Args:
            installation: the same on this host.
            starts: its recipes on this host.
            folder: of the start, here: what is left of it there comes to be here.
            building: whether it is to build an index.
        """
        return {
            node: RemoteGround(
                self._links[host], self._spread.kits[host], installation, starts, folder, building
            )
            for host, nodes in self._spread.by_host.items()
            for node in nodes
        }


@dataclass(frozen=True)
class RemoteGround:
    """The ground for nodes on another host."""

    link: NodeLink
    kit: Kit
    installation: Installation
    starts: Starts | None
    folder: Path
    building: bool

    def node(self, wanted: Wanted) -> "RemoteNode":
        """Configure a node there.

        Raises:
            BenchctlError: If it cannot be.
        """
        node = RemoteNode(self, wanted)
        node.configure()
        return node


class RemoteNode(Member):
    """A node of another host: what touches its process or its files is done there."""

    def __init__(self, ground: RemoteGround, wanted: Wanted) -> None:
        folders = BootFolders(place_of(ground.folder, wanted.name))
        super().__init__(
            wanted.name,
            ground.installation.engine,
            folders,
            listen=ground.link.address,
            timeout_s=wanted.timeout_s,
        )
        self._ground = ground
        self._link = ground.link
        self._wanted = wanted
        self._stop_s: float | None = None
        self._gauge: tuple[int, _RemoteGauge] | None = None
        self.host = self._link.name
        self.manner = "script"

    def configure(self) -> None:
        """Make it there."""
        self._do("configure", self._ground.kit, self._ground.folder.name, self._wanted, self._ground.building)

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        self._do("start", self.name)
        return self

    def __exit__(self, *raised: object) -> None:
        try:
            self._held.close()
            self._do("leave", self.name)
            self._fetch_logs()
        except BenchctlError:
            # Why the block failed matters more.
            if raised[0] is None:
                raise

    def _fetch_logs(self) -> None:
        packed = self._do("pack", self.name, self._ground.folder.name)
        root = self.folders.root
        with disk_errors(f"unpack the logs of {self.name or 'the node'} in {root}"):
            root.mkdir(parents=True, exist_ok=True)
            fetched = root / "fetched.tar.gz"
            self._link.fetch_file(packed, fetched)
            unpack(fetched, root)
            fetched.unlink()

    def wait_address(self, halted: Callable[[], bool]) -> str:
        address: str = self._do("wait_address", self.name, halted=halted)
        return address

    def tell_others(self, addresses: Iterable[str]) -> None:
        self._ask("tell_others", list(addresses))

    def wait_listening(self, halted: Callable[[], bool]) -> None:
        self._listens(self._do("wait_listening", self.name, halted=halted))

    def _listens(self, facts: dict[str, Any]) -> None:
        self.http_port, self.start_s = facts["http_port"], facts["start_s"]
        self.command, self.manner = facts["command"], facts["manner"]
        pid, started_ns = facts["life"]
        self.pid = self._link.number * _PIDS + pid
        self.lives.append((self.pid, started_ns - self._link.clock.offset_ns))
        self._connect()

    def forget_start(self) -> bool:
        with suppress(BenchctlError):
            return bool(self._ask("forget_start"))
        return False

    def reading(self) -> Reading | None:
        with suppress(BenchctlError):
            remote: Reading | None = self._ask("reading")
            return remote and replace(remote, at_ns=remote.at_ns - self._link.clock.offset_ns)
        return None

    @property
    def gauge(self) -> Gauge:
        if self._gauge is None or self._gauge[0] != self.pid:
            self._gauge = self.pid, _RemoteGauge(self._link, self.name)
        return self._gauge[1]

    def thread_kinds(self) -> Mapping[int, str]:
        kinds: Mapping[int, str] = self._ask("thread_kinds")
        return kinds

    def own_pid(self, pid: int) -> int:
        return pid % _PIDS

    def log_clock(self, started_ns: int, origin_ns: int) -> LogClock:
        zero_ns = -self._link.clock.offset_ns - origin_ns
        return LogClock(zero_ns, self._link.site.epoch_ns + zero_ns, started_ns - origin_ns)

    def here(self, text: str) -> str:
        ground, site = self._ground, self._link.site
        theirs = ground.kit.equipment.builder if ground.building else ground.kit.equipment.installation
        text = text.replace(str(site.root), str(ground.folder.parent))
        if ground.kit.starts is not None and ground.starts is not None:
            text = text.replace(str(ground.kit.starts.folder), str(ground.starts.folder))
        return text.replace(str(theirs.root), str(ground.installation.root))

    def cpu_seconds(self) -> float:
        return 0.0 if self.down else float(self._ask("cpu_seconds"))

    @property
    def lost(self) -> bool:
        gone = self._link.lost is not None or self.name in self._link.dead
        return gone and not self.down and self._stop_s is None

    @property
    def host_lost(self) -> bool:
        return self._link.lost is not None

    def check_alive(self, within_s: float = 0.0, when: str = "while it was in use") -> None:
        if not self.down and self._stop_s is None:
            self._ask("check_alive", within_s, when)

    def stop(self, *, at_once: bool = False) -> float:
        if self._stop_s is None:
            self._stop_s = float(self._do("stop", self.name, at_once))
        return self._stop_s

    def take_down(self, *, at_once: bool) -> None:
        self.down = True
        self._do("take_down", self.name, at_once)

    def start_again(self, halted: Callable[[], bool]) -> None:
        self._started = time.monotonic()
        facts = self._do("start_again", self.name, halted=halted)
        self.down = False
        self._listens(facts)

    def failure(self, what: str, said: Sequence[str] = ()) -> BenchctlError:
        try:
            error: BenchctlError = self._ask("failure", what, list(said))
        except BenchctlError as err:
            return err
        return BenchctlError(f"host {self.host}: {self.here(error.message)}", hint=error.hint)

    def _ask(self, method: str, *arguments: Any) -> Any:
        return self._do("ask", self.name, method, arguments)

    def _do(self, method: str, *arguments: Any, halted: Callable[[], bool] = lambda: False) -> Any:
        try:
            return self._link.do(method, *arguments, halted=halted)
        except BenchctlError as err:
            raise BenchctlError(self.here(err.message), hint=self.here(err.hint)) from err


@dataclass(frozen=True)
class RemoteCollector:
    """The collectors of a node of another host; what they leave comes with its logs."""

    _link: NodeLink
    _name: str
    _flags: tuple[str, ...]

    def flags(self) -> tuple[str, ...]:
        """Return the JVM flags of all."""
        return self._flags

    def begin(self, node: Member) -> None:
        self._link.do("collect_from", node.name, "begin")

    def measured(self, node: Member) -> None:
        self._link.do("collect_from", node.name, "measured")

    def end(self) -> None:
        """Check that all have ended in peace, with the node.

        Raises:
            BenchctlError: If one failed, or the host is lost.
        """
        self._link.do("check_collected", self._name)


@dataclass(frozen=True, eq=False)
class _RemoteGauge:
    """Reads the process of a node of another host."""

    _link: NodeLink
    _name: str

    def read(self) -> Usage:
        """Return the usage now; nothing of a host that is gone, which others notice."""
        with suppress(BenchctlError):
            usage: Usage = self._link.do("usage", self._name)
            return usage
        return Usage()


def _together(do: Callable[[NodeLink], Any], links: Iterable[NodeLink]) -> list[Any]:
    all_links = list(links)
    with ThreadPoolExecutor(max(len(all_links), 1), thread_name_prefix="hosts") as pool:
        try:
            return list(pool.map(do, all_links))
        except BaseException:
            # One failed, or was interrupted: the others need not go on for as long as they would.
            for link in all_links:
                link.given_up = True
            raise
