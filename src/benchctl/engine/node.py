"""A node of a cluster: started, watched, started again, and explained when it fails."""

import re
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final, Literal, Self

import psutil

from benchctl.disk import disk_errors, read_file
from benchctl.endpoint import Endpoint
from benchctl.engine.client import NodeInfo, SearchClient, loopback
from benchctl.engine.distribution import Installation
from benchctl.engine.jdk import Jdk
from benchctl.engine.launch import (
    ARCHIVE_FLAG,
    MAIN_CLASSES,
    ClassArchive,
    Starts,
    UnlearnableError,
    direct,
    ruled_out,
)
from benchctl.engine.process import STOP_GRACE_S, Command, NodeProcess, describe_exit, lines_since, started_ns
from benchctl.engine.settings import BootFolders, environment, hand_over, write_config
from benchctl.engine.usage import Gauge, LogClock, Meter, ProcessGauge, Reading, thread_kinds
from benchctl.errors import BenchctlError
from benchctl.home import Owner
from benchctl.results.plan import EngineName
from benchctl.slices import hook

_SHOWN_LINES = 3
_LINE_LENGTH = 300
# Stack frames say where, and milder lines what was normal: the JVM arguments alone name all sorts of trouble.
_NOISE = re.compile(
    r"\s+at |\s*\.\.\. \d+ more|WARNING: |.* <clinit>$|\[[^\]]*\]\s*\[(INFO|WARN|DEBUG|TRACE)\s*\]"
)
# Wrapped exceptions: what is around them says what was being done, such as "failed to bind service".
_INNER = re.compile(r"(Caused by|Suppressed): ")
# But for what nodes that are well warn of when they start, and what requests were answered.
_WARNING = re.compile(
    r"\[[^\]]*\]\s*\[WARN\s*\]\s*\[(?!r\.suppressed|\S*\.(BootstrapChecks|ClusterBootstrapService"
    r"|FileBasedSeedHostsProvider|VectorizationProvider)\b)"
)
_TELLING = re.compile(r"\b(FATAL|ERROR|Error|Exception)\b|(Exception|Error):")
UNKNOWN_HINT = "see the logs"
GIVEN_UP = "was given up while it started"
DAMAGED_HINT = "its data directory is damaged: delete it, and have it filled again"


@dataclass(frozen=True)
class _Cause:
    """The meaning of a log line; `naming` is in the line that names more, such as the port."""

    pattern: re.Pattern[str]
    hint: str
    naming: str = ""


def _cause(pattern: str, hint: str, naming: str = "") -> _Cause:
    return _Cause(re.compile(pattern, re.IGNORECASE), hint, naming)


# The first that matches explains the failure; the most specific come first.
_CAUSES = (
    _cause(
        r"Unrecognized (VM )?option|Improperly specified VM option|Missing \+/- setting for VM option"
        r"|VM option '.*' is (diagnostic|experimental)|Conflicting collector combinations|Invalid JVM",
        "this JVM does not take that flag: correct or remove it; "
        "diagnostic flags need -XX:+UnlockDiagnosticVMOptions in front of them",
    ),
    _cause(
        r"UnsupportedClassVersionError|the minimum required Java version|requires (at least )?Java"
        r"|Unsupported Java",
        "this version needs another Java, usually a newer one: choose it with --jdk",
    ),
    _cause(
        r"Enabling a Security Manager is not supported|Security Manager is deprecated|setSecurityManager",
        "this version uses the security manager, which Java 24 removed: choose an older Java with --jdk",
    ),
    _cause(r"Module \S+ not found", "the Java runtime lacks that module: choose another one with --jdk"),
    _cause(
        r"OutOfMemoryError: (Java heap space|GC overhead limit exceeded)",
        "the heap is too small for this work: give nodes a larger one with --heap",
    ),
    _cause(
        r"Cannot allocate memory|insufficient memory|Could not reserve enough space|OutOfMemoryError"
        r"|(Initial|Invalid maximum) heap size",
        "this machine has too little free memory for the heap, or the heap is too small: choose another size "
        "with --heap",
    ),
    _cause(
        r"A fatal error has been detected by the Java Runtime Environment",
        "the JVM itself crashed: hs_err_pid*.log among the logs shows where; try another Java with --jdk",
    ),
    _cause(r"unknown (secure )?setting|Failed to parse value", "correct or remove that node setting"),
    _cause(
        r"Address already in use|BindHttpException|BindTransportException|Failed to bind to",
        "another process has that port: without a port in its settings, the node takes a free one",
        naming="Failed to bind to",
    ),
    _cause(r"No space left on device|Disk quota exceeded|File too large", "free some disk space"),
    _cause(r"AccessDenied|Permission denied", "let the user that nodes run as read and write there"),
    _cause(
        r"Corrupt(Index|State)Exception|corrupt_index_exception|TranslogCorruptedException"
        r"|IndexFormatToo(Old|New)Exception|(NoSuchFileException|EOFException): .*/(indices|_state)/",
        DAMAGED_HINT,
    ),
    _cause(
        r"max virtual memory areas vm\.max_map_count",
        "nodes that other hosts reach must pass the engine's checks; as root, on that host: "
        "sysctl -w vm.max_map_count=262144",
    ),
    _cause(
        r"bootstrap check failure",
        "nodes that other hosts reach must pass the engine's checks: mend on that host what it names",
    ),
    _cause(
        r"Lock held by another program|failed to obtain node lock",
        "another node uses this data directory, or the node's user cannot write to it",
    ),
)


def diagnose(log: Sequence[str]) -> tuple[str, str]:
    """Explain a failed node by its log.

    Args:
        log: its last lines.

    Returns:
        The line or lines that matter, the innermost exception before all others, and the engine's own last
        warning before what else its JVM said; empty when there are none. And what to do about them.
    """
    lines = [line.strip() for line in log if line.strip() and not _NOISE.match(line)]
    inner = [_INNER.sub("", line, count=1) for line in reversed(lines) if _INNER.match(line)]
    for line, cause in (*product(inner, _CAUSES), *((line, cause) for cause in _CAUSES for line in lines)):
        if cause.pattern.search(line):
            naming = (outer for outer in lines if cause.naming and cause.naming in outer)
            return next(naming, line)[:_LINE_LENGTH], cause.hint
    if inner:
        return inner[0][:_LINE_LENGTH], UNKNOWN_HINT
    warned = [line for line in log if _WARNING.match(line)]
    telling = [line for line in lines if _TELLING.search(line)] or warned[-1:] or lines
    return "; ".join(line[:_LINE_LENGTH] for line in telling[-_SHOWN_LINES:]), UNKNOWN_HINT


START_TIMEOUT_S = 120.0
POLL_S = 0.02
EXIT_STATUS_WAIT_S = 2.0
_TAIL_LINES = 400
VMSTAT = Path("/proc/vmstat")
_KILLED_HINT = (
    "benchctl did not kill it; the kernel does when memory runs out: see `dmesg`, and use a smaller heap"
)
_OUT_OF_MEMORY_HINT = (
    "give the machine, or its container, more memory, or the node a smaller heap with --heap; of a container "
    "it must leave room for the JVM itself and for the page cache"
)
# Nodes write their ports file only once they have found a master: until then, their log alone says it.
_TRANSPORT = re.compile(r"TransportService.*\bpublish_address \{(?:[^}/]*/)?(?P<address>[^}]+)\}")

StartManner = Literal["script", "direct", "direct, classes archived"]
ARCHIVED: Final[StartManner] = "direct, classes archived"


@dataclass(frozen=True)
class Wanted:
    """A node to be started, on whichever host."""

    name: str  # empty for a single node
    heap_mb: int  # of it, MiB
    jvm_flags: tuple[str, ...]  # behind all other flags
    settings: Mapping[str, Any]  # over benchctl's own
    joining: Mapping[str, Any]  # settings by which it finds the others
    variables: Mapping[str, str]  # of its environment, over benchctl's own
    timeout_s: float  # how long it may take to get ready
    spread: bool  # whether nodes of other hosts have to reach it


@dataclass(frozen=True)
class Ground:
    """Requirements of nodes that start on this host; the attributes are those of `boot`."""

    installation: Installation
    jdk: Jdk
    data: Path
    folder: Path
    owner: Owner | None
    starts: Starts | None = None
    archive: ClassArchive | None = None
    cpus: tuple[int, ...] | None = None
    vmstat: Path = VMSTAT
    listen: str = ""

    def node(self, wanted: Wanted) -> "Node":
        """Configure a node.

        Raises:
            BenchctlError: If the node cannot be configured.
        """
        return Node(self, wanted)


def place_of(folder: Path, name: str) -> Path:
    """Return a node's part of a folder: the folder itself for the only node, whose name is empty."""
    return folder / name if name else folder


class Member(ABC):
    """A node of a cluster, on whichever host; a context manager that ends it.

    Attributes:
        name: of the node; empty when it is the only one.
        folders: of its start, on the host of benchctl; what is on another host is there once it has ended.
        host: that it is on; empty for that of benchctl.
        client: for everything that is not measured; there once it listens, as is all that follows.
        http_port: where it listens.
        pid: of the server JVM; of one on another host, a number that no process here has.
        start_s: seconds from starting the process to listening.
        command: the server JVM's real command line.
        manner: how it was started.
        lives: (process id, start on the monotonic clock in ns) of every server JVM that it had.
        down: it was stopped on purpose, or its loss is known and put up with.
    """

    host = ""
    client: SearchClient
    http_port: int
    pid: int
    start_s: float
    command: tuple[str, ...]
    manner: StartManner

    def __init__(
        self, name: str, engine: EngineName, folders: BootFolders, *, listen: str, timeout_s: float
    ) -> None:
        self.name = name
        self.folders = folders
        self.lives: list[tuple[int, int]] = []
        self.down = False
        self._engine = engine
        self._listen = listen
        self._timeout_s = timeout_s
        self._started = time.monotonic()
        self._held = ExitStack()
        self._info: NodeInfo | None = None

    @property
    def endpoint(self) -> Endpoint:
        """Endpoint for clients."""
        return Endpoint.of(_url(self._listen, self.http_port)) if self._listen else loopback(self.http_port)

    @property
    def stdout(self) -> Path:
        """File with its standard output."""
        return self.folders.stdout

    @property
    def started_ns(self) -> int:
        """Start of its server JVM, on the monotonic clock; the first of several."""
        return self.lives[0][1]

    @property
    def info(self) -> NodeInfo:
        """The node's own report, requested once."""
        if self._info is None:
            self._info = self.client.info()
        return self._info

    @property
    def left_s(self) -> float:
        """Seconds left to become ready; at least 1."""
        return max(self._started + self._timeout_s - time.monotonic(), 1.0)

    def _connect(self) -> None:
        self.client = self._held.enter_context(SearchClient(self._engine, self.endpoint))

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(self, *_: object) -> None: ...

    @abstractmethod
    def wait_address(self, halted: Callable[[], bool]) -> str:
        """Wait until it listens for other nodes and return the address.

        `halted` is asked now and then whether to give up.

        Raises:
            BenchctlError: If the node ended, or takes too long.
        """

    @abstractmethod
    def tell_others(self, addresses: Iterable[str]) -> None:
        """Give the node the addresses of all nodes of its cluster.

        Raises:
            BenchctlError: If the disk refuses.
        """

    @abstractmethod
    def wait_listening(self, halted: Callable[[], bool]) -> None:
        """Wait until it writes its HTTP address, which it does once it has a master.

        `halted` is asked now and then whether to give up.

        Raises:
            BenchctlError: If the node ended, takes too long, or was given up.
        """

    @abstractmethod
    def forget_start(self) -> bool:
        """Drop its recorded start; return whether it was started without the script."""

    @abstractmethod
    def cpu_seconds(self) -> float:
        """Return CPU time of the server JVM over all threads; 0 if it is down.

        Raises:
            BenchctlError: If the node died.
        """

    @abstractmethod
    def reading(self) -> Reading | None:
        """Return its process's usage, on the clock of this host; None if it cannot be read."""

    @property
    @abstractmethod
    def gauge(self) -> Gauge:
        """Return a gauge of its current process."""

    @abstractmethod
    def thread_kinds(self) -> Mapping[int, str]:
        """Return purposes of its threads; see `meter.thread_kinds`."""

    def own_pid(self, pid: int) -> int:
        """Return the pid in its own host's logs of a process of its `lives`."""
        return pid

    @abstractmethod
    def log_clock(self, started_ns: int, origin_ns: int) -> LogClock:
        """Return the clock from its logs to nanoseconds since `origin_ns` on this host's monotonic clock."""

    @abstractmethod
    def here(self, text: str) -> str:
        """Return a text of the node with folders on this host in place of its own."""

    @property
    @abstractmethod
    def lost(self) -> bool:
        """Return whether it ended without having been stopped."""

    @property
    def host_lost(self) -> bool:
        """Return whether its host is gone."""
        return False

    @abstractmethod
    def check_alive(self, within_s: float = 0.0, when: str = "while it was in use") -> None:
        """Check that it runs, or was stopped on purpose.

        Args:
            within_s: how long to watch. A dying process closes its connections a moment before it is gone:
                after a broken request, look a second long.
            when: it would have died, for the message.

        Raises:
            BenchctlError: If the node died, with the cause.
        """

    @abstractmethod
    def stop(self, *, at_once: bool = False) -> float:
        """Stop it and everything it started.

        Args:
            at_once: kill it, where nothing of it is kept that it would write at its end.

        Returns:
            Seconds until its last process was gone; the same again when called again.
        """

    @abstractmethod
    def take_down(self, *, at_once: bool) -> None:
        """Stop it, or kill it, so that it counts as neither lost nor over."""

    @abstractmethod
    def start_again(self, halted: Callable[[], bool]) -> None:
        """Start it with the engine's script, as users do, with the ports that it had; wait until it listens.

        `halted` is asked now and then whether to give up.

        Raises:
            BenchctlError: If the node ended, takes too long, or was given up.
        """

    @abstractmethod
    def failure(self, what: str, said: Sequence[str] = ()) -> BenchctlError:
        """Return an error with the explanation of its log, or else `said`."""


class Node(Member):
    """A started node of this host that may or may not become ready.

    It may be stopped and started again while others watch it from their threads.

    Attributes:
        data: its data folder.
        owner: whom it runs as; None for the current user.
    """

    def __init__(self, ground: Ground, wanted: Wanted) -> None:
        folders = BootFolders.create(place_of(ground.folder, wanted.name))
        engine = ground.installation.engine
        super().__init__(wanted.name, engine, folders, listen=ground.listen, timeout_s=wanted.timeout_s)
        self._ground = ground
        self.data = place_of(ground.data, wanted.name)
        self.owner = ground.owner
        # Of the process, whose keeper has one line to tell things by.
        self._lock = threading.RLock()
        self._server: psutil.Process | None = None
        self._address = ""
        self._stop_s: float | None = None
        self._gauge: tuple[int, ProcessGauge] | None = None
        self._meter: Meter | None = None
        self.manner: StartManner = "script"
        self._configure(wanted)

    def _configure(self, wanted: Wanted) -> None:
        ground, folders = self._ground, self.folders
        write_config(
            folders,
            ground.installation,
            ground.jdk,
            heap_mb=wanted.heap_mb,
            jvm_flags=wanted.jvm_flags,
            settings=wanted.settings,
            data=self.data,
            joining=wanted.joining,
            listen=ground.listen,
            spread=wanted.spread,
        )
        self.data.mkdir(parents=True, exist_ok=True)
        self._script = self._command = Command(
            argv=(str(ground.installation.root.absolute() / "bin" / self._engine),),
            env=environment(folders, ground.installation, ground.jdk, wanted.variables),
            cwd=folders.root,
            stdout=folders.stdout,
            stderr=folders.stderr,
            owner=ground.owner,
            cpus=ground.cpus,
        )
        if ground.starts is not None:
            with suppress(UnlearnableError):
                parts = self._script, ground.starts, folders, ground.installation, ground.jdk, self.data
                self._command = direct(*parts, archive_to=self.archive_to)
                self.manner = "direct"
        for root in (folders.root, self.data):
            hand_over(root, ground.owner)

    @property
    def archive_to(self) -> Path | None:
        """File that it writes an archive of its classes to when it stops; None if it is to write none."""
        archive = self._ground.archive
        return None if archive is None else self.folders.temporary / archive.path.name

    def keep_archive(self) -> None:
        """Keep the archive that it wrote when it stopped, if it was to write one, or why it did not.

        Raises:
            BenchctlError: If the disk refuses.
        """
        if self._ground.archive is not None and self.archive_to is not None:
            script = self.manner == "script" and "the engine's script starts its nodes"
            reason = script or ruled_out(self.command) or "its node wrote none"
            self._ground.archive.keep(self.archive_to, reason)

    def __enter__(self) -> Self:
        self._begin(self._command)
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def _begin(self, command: Command) -> None:
        self._started, self._oom_kills = time.monotonic(), _oom_kills(self._ground.vmstat)
        server = MAIN_CLASSES[self._engine]
        self._process = self._held.enter_context(NodeProcess(command, server=server))

    def wait_address(self, halted: Callable[[], bool]) -> str:
        read = 0
        while True:
            # All of it: a JVM that tells what it compiles writes thousands of lines a second there.
            with disk_errors(f"read {self.stdout}"):
                lines, read = lines_since(self.stdout, read)
            for line in lines:
                if match := _TRANSPORT.search(line):
                    self._address = match["address"]
                    return self._address
            self._wait_starting("it listens for no other node", halted)

    def wait_listening(self, halted: Callable[[], bool]) -> None:
        ports = self.folders.http_ports
        while not ports.exists():
            self._wait_starting("it listens nowhere", halted)
        with disk_errors(f"read {ports}"):
            self.http_port = parse_port(read_file(ports, follow=False).decode())
        self.start_s = time.monotonic() - self._started
        with self._lock:
            self._server = psutil.Process(self._process.pid)
        self.pid = self._server.pid
        self.lives.append((self.pid, started_ns(self.pid)))
        self.command = tuple(self._server.cmdline())
        self.manner = _manner(self.manner, self.pid, self.command)
        self._connect()

    def tell_others(self, addresses: Iterable[str]) -> None:
        with disk_errors(f"list the nodes' addresses in {self.folders.root}"):
            self.folders.write_seeds(addresses)

    def forget_start(self) -> bool:
        if self._ground.starts is None or self.manner == "script":
            return False
        self._ground.starts.forget()
        return True

    def reading(self) -> Reading | None:
        if self._meter is None or self._meter.pid != self.pid:
            self._meter = self._held.enter_context(Meter(self.pid))
        return self._meter.read()

    @property
    def gauge(self) -> Gauge:
        if self._gauge is None or self._gauge[0] != self.pid:
            self._gauge = self.pid, ProcessGauge(self.pid)
        return self._gauge[1]

    def thread_kinds(self) -> Mapping[int, str]:
        return thread_kinds(self.pid, self.stdout)

    def log_clock(self, started_ns: int, origin_ns: int) -> LogClock:
        now_ns = time.monotonic_ns() - origin_ns
        return LogClock(-origin_ns, now_ns - time.time_ns(), started_ns - origin_ns)

    def here(self, text: str) -> str:
        return text

    def cpu_seconds(self) -> float:
        if self._server is None or self.down:
            return 0.0
        try:
            times = self._server.cpu_times()
        except psutil.NoSuchProcess:
            self.check_alive()
            raise
        return float(times.user + times.system)

    @property
    def lost(self) -> bool:
        with self._lock:
            return not self.down and self._stop_s is None and not self._process.alive()

    def check_alive(self, within_s: float = 0.0, when: str = "while it was in use") -> None:
        with self._lock:
            if self.down or self._stop_s is not None:
                return
            self._process.wait(within_s)
            if self._process.alive():
                return
            # A launcher outlives its server by a moment and brings the exit status.
            status = self._process.wait(EXIT_STATUS_WAIT_S)
        raise self.failure(f"{'died' if status is None else describe_exit(status)} {when}")

    def stop(self, *, at_once: bool = False) -> float:
        with self._lock:
            if self._stop_s is None:
                self._stop_s = self._process.stop(0.0 if at_once else STOP_GRACE_S)
            return self._stop_s

    def take_down(self, *, at_once: bool) -> None:
        self.down = True
        with self._lock:
            self._process.stop(0.0 if at_once else STOP_GRACE_S)

    def start_again(self, halted: Callable[[], bool]) -> None:
        transport = parse_port(self._address) if self._address else 0
        with disk_errors(f"start {self._title} again in {self.folders.root}"):
            self.folders.keep_ports(self._engine, self.http_port, transport)
        with self._lock:
            self.manner = "script"
            self._begin(self._script)
            self.down = False
        self.wait_listening(halted)

    def failure(self, what: str, said: Sequence[str] = ()) -> BenchctlError:
        # What a JVM says of its compilations names exceptions that nobody threw.
        own = hook("foreign_lines")(line.encode() for line in self._process.tail(_TAIL_LINES))
        reason, hint = diagnose([*(line.decode() for line in own), *said])
        if hint == UNKNOWN_HINT and signal.SIGKILL.name in what:
            # Nobody gets to log this end; the last lines are about something else.
            reason, hint = self._killed()
        text = f"{self._title} {what}: {reason}" if reason else f"{self._title} {what}"
        return BenchctlError(f"{text} (logs in {self.folders.root})", hint=hint)

    @property
    def _title(self) -> str:
        of = f"{self._engine} {self._ground.installation.version}"
        return f"{self.name} of {of}" if self.name else of

    def _wait_starting(self, state: str, halted: Callable[[], bool]) -> None:
        self.check_alive(when="before it was ready")
        if halted():
            raise self.failure(GIVEN_UP)
        if time.monotonic() - self._started > self._timeout_s:
            raise self.failure(f"was not ready after {self._timeout_s:g} s: {state}")
        with self._lock:
            self._process.wait(POLL_S)

    def _killed(self) -> tuple[str, str]:
        """Return whether it was the kernel; it counts whom it kills, also for a cgroup's limit."""
        now = _oom_kills(self._ground.vmstat)
        if now is None or self._oom_kills is None:
            return "", _KILLED_HINT
        if now > self._oom_kills:
            return "memory ran out, and the kernel killed a process for it", _OUT_OF_MEMORY_HINT
        return "", "killed by neither benchctl nor the kernel, which had free memory: find the other killer"


def _oom_kills(vmstat: Path) -> int | None:
    """Return how many processes the kernel has killed since boot for want of memory; None if unknown."""
    try:
        text = vmstat.read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    match = re.search(r"^oom_kill (\d+)$", text, re.MULTILINE)
    return None if match is None else int(match[1])


def _manner(asked: StartManner, pid: int, command: Sequence[str]) -> StartManner:
    """A JVM goes on without an archive that does not go with its flags: what it maps tells."""
    archive = next((word.removeprefix(ARCHIVE_FLAG) for word in command if word.startswith(ARCHIVE_FLAG)), "")
    if asked == "script" or not archive:
        return asked
    try:
        mapped = archive in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return asked
    return ARCHIVED if mapped else asked


def _url(address: str, port: int) -> str:
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def parse_port(ports: str) -> int:
    """Return the port in a node's ports file: `address:port` per line, IPv6 addresses in brackets."""
    return int(ports.split(maxsplit=1)[0].rpartition(":")[2])
