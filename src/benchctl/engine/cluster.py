"""A running cluster: nodes started together, watched, checked, stopped; a single node is a cluster of one."""

import itertools
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeVar

from benchctl.disk import disk_errors, read_file
from benchctl.endpoint import Endpoint
from benchctl.engine.client import NodeRequestError, SearchClient
from benchctl.engine.distribution import Installation
from benchctl.engine.jdk import Jdk
from benchctl.engine.launch import ClassArchive, Starts
from benchctl.engine.node import (
    EXIT_STATUS_WAIT_S,
    GIVEN_UP,
    START_TIMEOUT_S,
    UNKNOWN_HINT,
    VMSTAT,
    Ground,
    Member,
    Node,
    StartManner,
    Wanted,
)
from benchctl.engine.prepared_index import entries, link
from benchctl.engine.process import Command, NodeProcess, describe_exit
from benchctl.engine.settings import ALONE, hand_over, joining
from benchctl.engine.usage import Reading, wait_idle
from benchctl.errors import BenchctlError
from benchctl.home import Home, Owner, open_folder
from benchctl.results.model import Fate
from benchctl.results.plan import NodeSpec

IDLE_WINDOW_S = 0.1
IDLE_CORES = 0.25
_MORE_TIME_S = 60.0
# How long nobody asks whether to give up; at most as long as `Member.left_s` is at least.
_HEALTH_S = 1.0
_ARCHIVING_HEAP_MB = 512
NEVER_STARTED = "the node that was to write it did not start"
_ENDED = (signal.SIGTERM.name, signal.SIGKILL.name, GIVEN_UP)

T = TypeVar("T")
U = TypeVar("U")


class Cluster:
    """Nodes that are up together; `boot` makes them and stops them.

    Attributes:
        nodes: all of them, also those that are down.
        start_s: seconds from starting the processes to ready.
        version: as its nodes say.
        build: hash of the commit it was built from.
        lucene: Lucene's version.
        uuid: its identity; empty for a single node.
        fates: (when on the monotonic clock in ns, node, what became of it), in order.
    """

    def __init__(
        self, nodes: Sequence[Member], installation: Installation, *, start_s: float, tolerant: bool
    ) -> None:
        self._installation = installation
        self._tolerant = tolerant
        self._stop_s: float | None = None
        self.nodes = tuple(nodes)
        self.start_s = start_s
        self.version = nodes[0].info.version
        self.build = nodes[0].info.build
        self.lucene = installation.lucene
        self.uuid = self.client.cluster_uuid() if len(nodes) > 1 else ""
        self.fates: list[tuple[int, str, Fate]] = []

    @property
    def client(self) -> SearchClient:
        """Client for unmeasured requests, of the first node that is up."""
        return next((node for node in self.nodes if not node.down), self.nodes[0]).client

    @property
    def endpoint(self) -> Endpoint:
        """Addresses of all nodes; with several, a node may be down."""
        hosts = tuple(host for node in self.nodes for host in node.endpoint.hosts)
        return Endpoint(hosts, lossy=len(hosts) > 1)

    def readings(self) -> dict[int, Reading]:
        """Current usage of nodes by process id, without those that cannot be read."""
        by_pid = {node.pid: node.reading() for node in self.nodes}
        return {pid: reading for pid, reading in by_pid.items() if reading is not None}

    @property
    def command(self) -> tuple[str, ...]:
        """Command line of the first server JVM."""
        return self.nodes[0].command

    @property
    def manner(self) -> StartManner:
        """Manner in which the first node was started."""
        return self.nodes[0].manner

    def searches_counted(self) -> int | None:
        """Return query phases since the start, by the nodes' own statistics.

        None with several primary shards, of which a search is counted on each that it asks, and it skips
        some; and when a node, with its counts, was not always there.
        """
        if self.fates or self.client.primary_shards() > 1:
            return None
        return self.client.node_search_count()

    def wait_idle(self, max_s: float = 2.0) -> float:
        """Wait until the JVMs are idle: together under a quarter of a core over a tenth of a second.

        Returns:
            Seconds waited; at least one window, at most about max_s.

        Raises:
            BenchctlError: If a node died.
        """
        # A node that dies meanwhile ends the wait.
        return wait_idle(
            lambda: sum(node.cpu_seconds() for node in self.nodes),
            lambda: self.check_alive(IDLE_WINDOW_S / len(self.nodes)),
            cores=IDLE_CORES,
            max_s=max_s,
        )

    def check_alive(self, within_s: float = 0.0) -> None:
        """Check that all nodes run that should; the loss of a node may be tolerated, and is then kept.

        Args:
            within_s: how long to watch each, see `Node.check_alive`.

        Raises:
            BenchctlError: If a node died that may not, with the cause.
        """
        for node in self.nodes:
            try:
                node.check_alive(within_s)
            except BenchctlError:
                others = [member for member in self.nodes if member is not node and not member.down]
                if not self._tolerant or not others or node.host_lost:
                    raise
                node.down = True
                self._note(node, "lost")

    def glance(self) -> None:
        """Check like `check_alive`, cheaply enough to be called all the time."""
        if any(node.lost for node in self.nodes):
            self.check_alive()

    def stop(self, *, at_once: bool = False) -> float:
        """Stop all nodes at the same time, and everything they started.

        Args:
            at_once: kill them, where nothing of them is kept that they would write at their end.

        Returns:
            Seconds until the last process was gone; the same again when called again.
        """
        if self._stop_s is None:
            self._stop_s = max(_at_once(lambda node: node.stop(at_once=at_once), self.nodes))
        return self._stop_s

    def act(self, action: str, name: str | None, halted: Callable[[], bool]) -> None:
        """Do to a node what an operation asks beyond requests, and return when that is over.

        Args:
            action: `stop`, `kill`, `restart`, or `roll` for a restart of all nodes in turn; `check`.
            name: of the node; `master` for the one that is; None for all.
            halted: asked now and then whether to give up.

        Raises:
            BenchctlError: If there is no such node, it does not come back, or it was given up.
        """
        for node in self.nodes if name is None else (self._named(name),):
            if action == "check":
                if not isinstance(node, Node):
                    raise BenchctlError(f"{node.name or 'the node'} and its files are on host {node.host}")
                check_shards(node, self._installation.root / "lib", halted)
                continue
            if action in {"stop", "kill"} or not node.down:
                node.take_down(at_once=action == "kill")
                self._note(node, "killed" if action == "kill" else "stopped")
            if action in {"restart", "roll"}:
                node.start_again(halted)
                self._note(node, "started again")
                self._wait_taken_up(node, halted)

    def _wait_taken_up(self, node: Member, halted: Callable[[], bool]) -> None:
        """Wait until a node that was started again has its shards back, as far as others are there for it."""
        with SearchClient(self._installation.engine, node.endpoint) as client:
            while True:
                node.check_alive(when="when it was started again")
                up = [member for member in self.nodes if not member.down]
                try:
                    client.health(None, _HEALTH_S, len(up), whole=len(up) == len(self.nodes))
                except NodeRequestError as err:
                    if halted() or node.left_s <= _HEALTH_S or node.down:
                        never = f"never got its shards ready: {err.reason}"
                        raise node.failure(never, client.unassigned()) from err
                else:
                    return

    def _named(self, name: str) -> Member:
        if name == "master":
            # Its own connection: others use that of the cluster meanwhile.
            up = next((node for node in self.nodes if not node.down), self.nodes[0])
            with SearchClient(self._installation.engine, up.endpoint) as client:
                name = client.elected()
        for node in self.nodes:
            if node.name == name:
                return node
        names = ", ".join(node.name for node in self.nodes)
        raise BenchctlError(f"the cluster has no node '{name}'", hint=f"its nodes are {names}")

    def _note(self, node: Member, fate: Fate) -> None:
        self.fates.append((time.monotonic_ns(), node.name, fate))


class Elsewhere(Protocol):
    """The counterpart of `Ground` on another host."""

    def node(self, wanted: Wanted) -> Member:
        """Configure a node there."""
        ...


@contextmanager
def boot(  # noqa: PLR0913 - what is started, on what and for whom; all by keyword
    installation: Installation,
    jdk: Jdk,
    *,
    data: Path,
    folder: Path,
    owner: Owner | None,
    heap_mb: int,
    jvm_flags: Sequence[str] = (),
    node_flags: Mapping[str, Sequence[str]] = MappingProxyType({}),
    settings: Mapping[str, Any] | None = None,
    timeout_s: float = START_TIMEOUT_S,
    expect_index: str | None = None,
    cpus: tuple[int, ...] | None = None,
    variables: Mapping[str, str] = MappingProxyType({}),
    vmstat: Path = VMSTAT,
    starts: Starts | None = None,
    archive: ClassArchive | None = None,
    listen: str = "",
    nodes: Sequence[NodeSpec] = (),
    tolerant: bool = False,
    elsewhere: Mapping[str, Elsewhere] = MappingProxyType({}),
) -> Iterator[Cluster]:
    """Start nodes, wait until they are ready, and stop them when the block ends, however it ends.

    Args:
        installation: what to start; it is only read.
        jdk: what to run it on.
        data: the data folder, made when it is not there; of several nodes, the folder of their folders.
        folder: a new folder for configuration and logs, which stay; of several, likewise.
        owner: whom to run them as; None means the current user.
        heap_mb: heap of each, MiB.
        jvm_flags: behind all other flags.
        node_flags: node -> its own, behind these; a single one's name is empty.
        settings: node settings over benchctl's own.
        timeout_s: how long one may take to get ready; several, which share the CPUs, have longer.
        expect_index: an index whose primary shards must be started before they count as ready; of several
            nodes, all copies.
        cpus: the CPUs that they run on from their first instruction; None for those that benchctl may use.
        variables: of their environment, over benchctl's own.
        vmstat: where the kernel counts whom it killed.
        starts: where what was learnt of the engine's starts is kept, to start the server itself; None to
            start it by the engine's script. So is one whose script does what benchctl does not know.
        archive: of the classes that a single server, started itself, writes when it is stopped in peace, and
            that is then kept; None for none.
        listen: the address that they take requests at; empty for loopback.
        nodes: of the cluster; empty for a single one without a name.
        tolerant: whether the others go on when a node is lost.
        elsewhere: node -> the ground that it starts on instead, on another host.

    Raises:
        BenchctlError: If a node cannot be configured, ended, or did not get ready in time; the message has
            the reason as far as its log shows it.
    """
    specs = nodes if len(nodes) > 1 else [NodeSpec("", node.settings) for node in nodes] or [NodeSpec("")]
    common = settings or {}
    together = joining(installation, specs, common)
    own = Ground(installation, jdk, data, folder, owner, starts, archive, cpus, vmstat, listen)
    grounds = [elsewhere.get(spec.name, own) for spec in specs]
    wanted = [
        Wanted(
            spec.name,
            heap_mb=heap_mb,
            jvm_flags=(*jvm_flags, *node_flags.get(spec.name, ())),
            settings={**common, **spec.settings},
            joining={**together, "node.name": spec.name} if spec.name else ALONE,
            variables=variables,
            timeout_s=timeout_s + _MORE_TIME_S * (len(specs) - 1),
            spread=any(ground is not grounds[0] for ground in grounds),
        )
        for spec in specs
    ]
    members = _at_once(lambda pair: pair[0].node(pair[1]), list(zip(grounds, wanted, strict=True)))
    started = time.monotonic()
    with ExitStack() as stack:
        entered = [stack.enter_context(member) for member in members]
        try:
            _wait_listening(entered)
        except BenchctlError as err:
            # A node that somebody ended says nothing about its archive.
            if archive is not None and not _was_ended(err):
                archive.refuse(NEVER_STARTED)
            # Of all: which one it was about, its text alone says.
            if err.hint == UNKNOWN_HINT and [node for node in entered if node.forget_start()]:
                hint = f"{UNKNOWN_HINT}; try again: how it starts is learnt again; or use start:script"
                raise BenchctlError(err.message, hint=hint) from err
            raise
        _wait_healthy(entered, expect_index)
        start_s = time.monotonic() - started
        cluster = Cluster(entered, installation, start_s=start_s, tolerant=tolerant)
        try:
            yield cluster
        except BaseException:
            # Whoever interrupts a node does not wait for its archive, nor is that one kept.
            cluster.stop(at_once=archive is not None)
            raise
        finally:
            cluster.stop()
        for member in entered:
            if isinstance(member, Node):
                member.keep_archive()


def _was_ended(err: BenchctlError) -> bool:
    return any(name in err.message for name in _ENDED)


def _wait_listening(nodes: Sequence[Member]) -> None:
    """Wait until all answer requests; of several, when each has been told where the others are."""

    def none_gone() -> bool:
        for node in nodes:
            node.check_alive(when="before it was ready")
        return False

    if len(nodes) > 1:
        addresses = [node.wait_address(none_gone) for node in nodes]
        for node in nodes:
            node.tell_others(addresses)
    for node in nodes:
        node.wait_listening(none_gone)


def _at_once(do: Callable[[T], U], items: Sequence[T]) -> list[U]:
    if len(items) == 1:
        return [do(items[0])]
    with ThreadPoolExecutor(len(items), thread_name_prefix="nodes") as pool:
        return list(pool.map(do, items))


def _wait_healthy(nodes: Sequence[Member], index: str | None) -> None:
    """Wait for the index's shards, or for whatever shards there are, on all nodes."""
    first = nodes[0]
    try:
        first.client.health(index, first.left_s, len(nodes))
    except NodeRequestError as err:
        first.check_alive(EXIT_STATUS_WAIT_S, "before it was ready")
        for node in nodes if len(nodes) > 1 else ():
            if not node.client.has_master():
                raise node.failure("never found the others, or too few to elect a master") from err
        what = f"the shards of index '{index}'" if index else "its shards"
        raise first.failure(f"never got {what} ready: {err.reason}", first.client.unassigned()) from err


def archive_classes(home: Home, installation: Installation, jdk: Jdk, starts: Starts) -> str:
    """Have a node archive the classes of starting, indexing and searching, unless that was done.

    Args:
        home: where the node works, and as whom.
        installation: whose classes.
        jdk: what its nodes run on.
        starts: where the archive is kept.

    Returns:
        Why there is no archive; empty if there is one.

    Raises:
        BenchctlError: If the disk refuses.
    """
    archive = starts.archive(installation, jdk)
    if archive.refusal is None:
        with (
            disk_errors(f"make {archive.path}"),
            tempfile.TemporaryDirectory(prefix="classes-", dir=home.scratch) as name,
        ):
            folder = open_folder(Path(name))
            # With another variant's settings, or without an archive, nodes may well start.
            try:
                with boot(
                    installation,
                    jdk,
                    data=folder / "data",
                    folder=folder / "boot",
                    owner=home.node_owner,
                    heap_mb=_ARCHIVING_HEAP_MB,
                    starts=starts,
                    archive=archive,
                ) as cluster:
                    exercise(cluster.client)
            except BenchctlError as err:
                if _was_ended(err):
                    raise
                archive.refuse(NEVER_STARTED)
    return archive.refusal or ""


def exercise(client: SearchClient) -> None:
    """Index and search a little of everything, so that the classes for it are loaded; nothing is left."""
    lines = [
        f'{{"index": {{}}}}\n{{"number": {n}, "word": "word{n % 5}", "when": "2023-01-{n + 1:02}"}}\n'
        for n in range(28)
    ]
    client.request("POST", "/any/_bulk", body="".join(lines))
    client.refresh("any")
    client.search(
        "any",
        {
            "query": {"range": {"when": {"gte": "2023-01-02T00:00:00Z"}}},
            "sort": [{"when": "desc"}],
            "aggs": {
                "words": {"terms": {"field": "word.keyword"}},
                "days": {"date_histogram": {"field": "when", "fixed_interval": "1d"}},
                "sum": {"sum": {"field": "number"}},
            },
        },
    )
    client.force_merge("any", 1)
    client.flush("any")
    client.request("DELETE", "/any")


_HEAP: Final = "512m"
_POLL_S: Final = 0.1
_CLEAN: Final = "No problems were detected with this index."
# Between two commits, files go away while they are linked.
_MOST_COPIES: Final = 3


def check_shards(node: Node, lib: Path, halted: Callable[[], bool]) -> None:
    """Check all shards of a node of this host, one after the other, with the Lucene and Java that it runs.

    What was committed is checked. What the checks say is kept beside the node's logs.

    Args:
        node: up or down.
        lib: folder of the engine's jars.
        halted: asked now and then whether to give up.

    Raises:
        BenchctlError: If a shard is damaged, it cannot be checked, or it was given up.
    """
    with disk_errors(f"copy the index in {node.data}"):
        root = Path(tempfile.mkdtemp(prefix="check-", dir=node.data.parent))
        try:
            shards = _linked(node.data, root)
            if not shards:
                raise BenchctlError(f"no shard to check in {node.data}")
            hand_over(root, node.owner)
            for shard in shards:
                checked = ("-cp", f"{lib}/*", "org.apache.lucene.index.CheckIndex", str(shard))
                argv = (node.command[0], f"-Xmx{_HEAP}", *checked)
                _check(argv, shard, node.folders.logs, node.owner, halted)
        finally:
            shutil.rmtree(root, ignore_errors=True)


def _linked(data: Path, root: Path) -> list[Path]:
    for last in range(_MOST_COPIES):
        try:
            return list(_link_all(data, root / str(last)))
        except FileNotFoundError:
            if last == _MOST_COPIES - 1:
                raise
    return []


def _link_all(data: Path, root: Path) -> Iterator[Path]:
    folders: dict[Path, Path] = {}
    for entry in entries(data, data):
        if entry.write_once and not entry.is_folder:
            shard = entry.source.parent
            if shard not in folders:
                # INDEX/SHARD/index
                folders[shard] = root / f"{shard.parent.parent.name}-{shard.parent.name}"
                folders[shard].mkdir(parents=True)
                yield folders[shard]
            link(entry.source, folders[shard] / entry.source.name)


def _check(
    argv: tuple[str, ...], shard: Path, logs: Path, owner: Owner | None, halted: Callable[[], bool]
) -> None:
    output = next(path for n in itertools.count(1) if not (path := logs / f"check-{n}.txt").exists())
    command = Command(argv, {}, Path("/"), output, output, owner)
    with NodeProcess(command, grace_s=0.0) as process:
        while (status := process.wait(_POLL_S)) is None:
            if halted():
                raise BenchctlError("the check was given up")
    text = read_file(output, follow=False).decode(errors="replace")
    if status == 0 and _CLEAN in text:
        return
    lines = [line.strip() for line in text.splitlines()]
    signs = ("Exception", "FAILED", "ERROR")
    wrong = next((line for sign in signs for line in lines if sign in line), "")
    problem = wrong or (lines[-1] if lines else f"nothing: it {describe_exit(status)}")
    raise BenchctlError(f"Lucene's check of shard {shard.name} says: {problem} (all of it: {output})")


# The collection of evidence from one node start: where it goes, and what collects it.


@dataclass(frozen=True)
class Scene:
    """Destination of the evidence of one node start while it runs."""

    # empty, and writable for the node's user; what is in it when the node is gone is kept with the run
    folder: Path
    java_home: Path  # of the node's runtime, whose `bin` may have jcmd and jfr
    cpus: tuple[int, ...] | None = None  # that helpers may use; None for all


class Collector(Protocol):
    """Collects evidence of one node start. Its methods are called in this order, each once.

    `end` is called even if the node fails or never gets ready. None of them may send the node a request: a
    search, and to a lesser degree anything else, changes what is measured.
    """

    def flags(self) -> tuple[str, ...]:
        """Return JVM flags, appended to all others."""

    def begin(self, node: Member) -> None:
        """Begin: the first task of a measured challenge, or its warm-up, is about to start."""

    def measured(self, node: Member) -> None:
        """Handle the end of the last measured task; the node is still up."""

    def end(self) -> None:
        """Convert what the node, now gone, left into the form that is kept."""
