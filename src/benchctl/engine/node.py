"""A running node: started, ready, watched, and explained when it fails."""

import contextlib
import re
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import psutil

from benchctl.disk import disk_errors, read_file
from benchctl.endpoint import Endpoint
from benchctl.engine.client import NodeInfo, NodeRequestError, SearchClient, connect, loopback
from benchctl.engine.distribution import Installation
from benchctl.engine.jdk import Jdk
from benchctl.engine.launch import ARCHIVE_FLAG, MAIN_CLASSES, Starts, UnlearnableError, direct
from benchctl.engine.process import STOP_GRACE_S, Command, NodeProcess, describe_exit, started_ns
from benchctl.engine.settings import BootFolders, environment, hand_over, write_config
from benchctl.errors import BenchctlError
from benchctl.home import Home, Owner, open_folder

_SHOWN_LINES = 3
_LINE_LENGTH = 300
# Stack frames say where, and milder lines what was normal: the JVM arguments alone name all sorts of trouble.
_NOISE = re.compile(r"\s+at |\s*\.\.\. \d+ more|WARNING: |\[[^\]]*\]\s*\[(INFO|WARN|DEBUG|TRACE)\s*\]")
# Wrapped exceptions: what is around them says what was being done, such as "failed to bind service".
_INNER = re.compile(r"(Caused by|Suppressed): ")
_TELLING = re.compile(r"\b(FATAL|ERROR|Error|Exception)\b|(Exception|Error):")
UNKNOWN_HINT = "the logs say more"
DAMAGED_HINT = "its data folder is damaged: delete it, and have it filled again"


@dataclass(frozen=True)
class _Cause:
    """What a line of a log means; `naming` stands in the line that names more, such as the port."""

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
        "this JVM does not take that flag: correct it, or leave it out; "
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
        "the JVM itself crashed: hs_err_pid*.log among the logs says where; try another Java with --jdk",
    ),
    _cause(r"unknown (secure )?setting|Failed to parse value", "correct that node setting, or leave it out"),
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
        r"Lock held by another program|failed to obtain node lock",
        "another node uses this data folder, or the node's user cannot write to it",
    ),
)


def diagnose(log: Sequence[str]) -> tuple[str, str]:
    """What a failed node's log says.

    Args:
        log: its last lines.

    Returns:
        The line or lines that matter, the innermost exception before all others, empty when there are none,
        and what to do about them.
    """
    lines = [line.strip() for line in log if line.strip() and not _NOISE.match(line)]
    inner = [_INNER.sub("", line, count=1) for line in reversed(lines) if _INNER.match(line)]
    for line, cause in (*product(inner, _CAUSES), *((line, cause) for cause in _CAUSES for line in lines)):
        if cause.pattern.search(line):
            naming = (outer for outer in lines if cause.naming and cause.naming in outer)
            return next(naming, line)[:_LINE_LENGTH], cause.hint
    if inner:
        return inner[0][:_LINE_LENGTH], UNKNOWN_HINT
    telling = [line for line in lines if _TELLING.search(line)] or lines
    return "; ".join(line[:_LINE_LENGTH] for line in telling[-_SHOWN_LINES:]), UNKNOWN_HINT


# The node.

START_TIMEOUT_S = 120.0
POLL_S = 0.02
IDLE_WINDOW_S = 0.1
IDLE_CORES = 0.25
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

_ARCHIVING_HEAP_MB = 512
_LEAST_ARCHIVING_JAVA = 13
_ARCHIVING_AGAIN_S = 86_400.0

StartManner = Literal["script", "direct", "direct, classes archived"]


class Node:
    """A node that is up; `boot` makes one and stops it.

    Attributes:
        client: for everything that is not measured.
        endpoint: where the measured client finds it.
        http_port: of that.
        pid: of the server JVM.
        started_ns: when the server JVM was started, on the monotonic clock.
        start_s: seconds from starting the process to ready.
        command: the server JVM's real command line.
        manner: how it was started.
        version: as the node says.
        build: hash of the commit it was built from.
        lucene: Lucene's version.
    """

    def __init__(
        self, launch: "_Launch", *, client: SearchClient, endpoint: Endpoint, info: NodeInfo, start_s: float
    ) -> None:
        self._launch = launch
        self._server = psutil.Process(launch.process.pid)
        self._stop_s: float | None = None
        self.client = client
        self.endpoint = endpoint
        self.http_port = int(endpoint.hosts[0].rpartition(":")[2])
        self.pid = self._server.pid
        self.started_ns = started_ns(self.pid)
        self.start_s = start_s
        self.command = tuple(self._server.cmdline())
        self.manner = _manner(launch.manner, self.pid, self.command)
        self.version = info.version
        self.build = info.build
        self.lucene = launch.installation.lucene

    @property
    def stdout(self) -> Path:
        """File that its standard output is appended to."""
        return self._launch.folders.stdout

    def searches_counted(self) -> int | None:
        """Query phases since it started, by its own statistics."""
        return self.client.node_search_count()

    def cpu_seconds(self) -> float:
        """CPU time that the server JVM has used, over all its threads.

        Raises:
            BenchctlError: the node died.
        """
        try:
            times = self._server.cpu_times()
        except psutil.NoSuchProcess:
            self.check_alive()
            raise
        return float(times.user + times.system)

    def wait_idle(self, max_s: float = 2.0) -> float:
        """Wait until the JVM is calm: under a quarter of a core over a tenth of a second.

        Returns:
            Seconds waited; at least one window, at most about max_s.

        Raises:
            BenchctlError: the node died.
        """
        start = time.monotonic()
        used, since = self.cpu_seconds(), start
        while True:
            self._launch.process.wait(IDLE_WINDOW_S)
            self.check_alive()
            now, now_used = time.monotonic(), self.cpu_seconds()
            if now_used - used < IDLE_CORES * (now - since) or now - start >= max_s:
                return now - start
            used, since = now_used, now

    def check_alive(self, within_s: float = 0.0) -> None:
        """Do nothing while the node runs.

        Args:
            within_s: how long to watch. A dying process closes its connections a moment before it is gone:
                after a broken request, look a second long.

        Raises:
            BenchctlError: it died, and how.
        """
        if self._stop_s is None:
            self._launch.check_alive("while it was in use", within_s)

    def stop(self, *, at_once: bool = False) -> float:
        """Stop the node and everything it started.

        Args:
            at_once: kill it, where nothing of it is kept that it would write at its end.

        Returns:
            Seconds until its last process was gone; the same again when called again.
        """
        if self._stop_s is None:
            self._stop_s = self._launch.process.stop(0.0 if at_once else STOP_GRACE_S)
        return self._stop_s


@dataclass(frozen=True)
class _Launch:
    """A node that was started and may or may not become ready."""

    installation: Installation
    folders: BootFolders
    process: NodeProcess
    manner: StartManner
    started: float  # monotonic seconds
    timeout_s: float
    vmstat: Path
    oom_kills: int | None  # before it was started

    def wait_port(self) -> int:
        """Wait for the node to write down where it listens."""
        while not self.folders.http_ports.exists():
            self.check_alive("before it was ready")
            self._check_time("it listens nowhere")
            self.process.wait(POLL_S)
        with disk_errors(f"read {self.folders.http_ports}"):
            return parse_port(read_file(self.folders.http_ports, follow=False).decode())

    def wait_healthy(self, client: SearchClient, index: str | None) -> NodeInfo:
        """Wait for the index's shards, or for whatever shards there are."""
        remaining_s = max(self.started + self.timeout_s - time.monotonic(), 1.0)
        try:
            client.health(index, remaining_s)
            return client.info()
        except NodeRequestError as err:
            self.check_alive("before it was ready", EXIT_STATUS_WAIT_S)
            what = f"the shards of index '{index}'" if index else "its shards"
            raise self._failure(f"never got {what} ready: {err.reason}", client.unassigned()) from err

    def check_alive(self, when: str, within_s: float = 0.0) -> None:
        """Raise BenchctlError when the process is gone, or goes within that many seconds."""
        self.process.wait(within_s)
        if self.process.alive():
            return
        # A launcher outlives its server by a moment and brings the exit status.
        status = self.process.wait(EXIT_STATUS_WAIT_S)
        raise self._failure(f"{'died' if status is None else describe_exit(status)} {when}")

    def _check_time(self, state: str) -> None:
        if time.monotonic() - self.started > self.timeout_s:
            raise self._failure(f"was not ready after {self.timeout_s:g} s: {state}")

    def _failure(self, what: str, said: Sequence[str] = ()) -> BenchctlError:
        reason, hint = diagnose([*self.process.tail(_TAIL_LINES), *said])
        if hint == UNKNOWN_HINT and signal.SIGKILL.name in what:
            # Nobody gets to log this end; the last lines are about something else.
            reason, hint = self._killed()
        name = f"{self.installation.engine} {self.installation.version}"
        text = f"{name} {what}: {reason}" if reason else f"{name} {what}"
        return BenchctlError(f"{text} (logs in {self.folders.root})", hint=hint)

    def _killed(self) -> tuple[str, str]:
        """Whether it was the kernel; it counts whom it kills, also for a cgroup's limit."""
        now = _oom_kills(self.vmstat)
        if now is None or self.oom_kills is None:
            return "", _KILLED_HINT
        if now > self.oom_kills:
            return "memory ran out, and the kernel killed a process for it", _OUT_OF_MEMORY_HINT
        return "", "neither benchctl nor the kernel, which had memory left, killed it: see who else does"


def _oom_kills(vmstat: Path) -> int | None:
    """How many processes the kernel has killed since it booted, because memory ran out; None if unknown."""
    try:
        text = vmstat.read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    found = re.search(r"^oom_kill (\d+)$", text, re.MULTILINE)
    return None if found is None else int(found[1])


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
    settings: Mapping[str, Any] | None = None,
    timeout_s: float = START_TIMEOUT_S,
    expect_index: str | None = None,
    cpus: tuple[int, ...] | None = None,
    variables: Mapping[str, str] = MappingProxyType({}),
    vmstat: Path = VMSTAT,
    starts: Starts | None = None,
    archive_to: Path | None = None,
    listen: str = "",
) -> Iterator[Node]:
    """Start a node, wait until it is ready, and stop it when the block ends, however it ends.

    Args:
        installation: what to start; it is only read.
        jdk: what to run it on.
        data: its data folder, made when it is not there.
        folder: a new folder for its configuration and logs, which stay.
        owner: whom to run it as; None means the current user.
        heap_mb: heap, MiB.
        jvm_flags: behind all other flags.
        settings: node settings over benchctl's own.
        timeout_s: how long it may take to get ready.
        expect_index: an index whose primary shards must be started before it counts as ready.
        cpus: the CPUs that it runs on from its first instruction; None for those that benchctl may use.
        variables: of its environment, over benchctl's own.
        vmstat: where the kernel counts whom it killed.
        starts: where what was learnt of the engine's starts is kept, to start the server itself; None to
            start it by the engine's script. So is one whose script does what benchctl does not know.
        archive_to: where a server that is started itself writes its classes when it ends; None for nowhere.
        listen: the address that it takes requests at; empty for loopback.

    Raises:
        BenchctlError: it cannot be configured, ended, or did not get ready in time; the message says why as
            far as its log tells.
    """
    folders = BootFolders.create(folder)
    write_config(
        folders,
        installation,
        jdk,
        heap_mb=heap_mb,
        jvm_flags=jvm_flags,
        settings=settings or {},
        data=data,
        listen=listen,
    )
    data.mkdir(parents=True, exist_ok=True)
    command = _script(folders, installation, environment(folders, installation, jdk, variables), owner, cpus)
    manner: StartManner = "script"
    if starts is not None:
        with contextlib.suppress(UnlearnableError):
            command = direct(command, starts, folders, installation, jdk, data, archive_to=archive_to)
            manner = "direct"
    for root in (folders.root, data):
        hand_over(root, owner)
    started, oom_kills = time.monotonic(), _oom_kills(vmstat)
    with NodeProcess(command, server=MAIN_CLASSES[installation.engine]) as process:
        launch = _Launch(installation, folders, process, manner, started, timeout_s, vmstat, oom_kills)
        try:
            port = launch.wait_port()
        except BenchctlError as err:
            if manner == "direct" and starts is not None and err.hint == UNKNOWN_HINT:
                starts.forget()
                hint = (
                    f"{UNKNOWN_HINT}; how it is started is learnt anew, so try again, or with --start script"
                )
                raise BenchctlError(err.message, hint=hint) from err
            raise
        endpoint = loopback(port) if not listen else Endpoint.of(_url(listen, port))
        with connect(installation.engine, endpoint) as client:
            info = launch.wait_healthy(client, expect_index)
            start_s = time.monotonic() - started
            yield Node(launch, client=client, endpoint=endpoint, info=info, start_s=start_s)


def _script(
    folders: BootFolders,
    installation: Installation,
    env: dict[str, str],
    owner: Owner | None,
    cpus: tuple[int, ...] | None,
) -> Command:
    return Command(
        argv=(str(installation.root.absolute() / "bin" / installation.engine),),
        env=env,
        cwd=folders.root,
        stdout=folders.stdout,
        stderr=folders.stderr,
        owner=owner,
        cpus=cpus,
    )


def _manner(asked: StartManner, pid: int, command: Sequence[str]) -> StartManner:
    """A JVM goes on without an archive that does not go with its flags: what it maps tells."""
    archive = next((word.removeprefix(ARCHIVE_FLAG) for word in command if word.startswith(ARCHIVE_FLAG)), "")
    if asked == "script" or not archive:
        return asked
    try:
        mapped = archive in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return asked
    return "direct, classes archived" if mapped else asked


def archive_classes(home: Home, installation: Installation, jdk: Jdk, starts: Starts) -> bool:
    """Let a node write down, as it ends, the classes of starting, indexing and searching, unless it was done.

    Args:
        home: where the node works, and as whom.
        installation: whose classes.
        jdk: what its nodes run on.
        starts: where the archive is kept.

    Returns:
        Whether there is an archive now. Some runtimes write none, and a JVM may be killed, its time to stop
        being over, before it has written one: a day later it is tried again.

    Raises:
        BenchctlError: the disk refuses.
    """
    archive = starts.archive(installation, jdk)
    refused = archive.with_suffix(".refused")
    lately = refused.exists() and time.time() - refused.stat().st_mtime < _ARCHIVING_AGAIN_S
    if archive.exists() or lately or jdk.major < _LEAST_ARCHIVING_JAVA:
        return archive.exists()
    with (
        disk_errors(f"make {archive}"),
        tempfile.TemporaryDirectory(prefix="classes-", dir=home.scratch) as name,
    ):
        folder = open_folder(Path(name))
        written = folder / "boot" / "tmp" / archive.name
        # Whatever went wrong, the nodes that count say it themselves; without an archive they may well start.
        with contextlib.suppress(BenchctlError):
            with boot(
                installation,
                jdk,
                data=folder / "data",
                folder=folder / "boot",
                owner=home.node_owner,
                heap_mb=_ARCHIVING_HEAP_MB,
                starts=starts,
                archive_to=written,
            ) as node:
                if node.manner != "script":
                    _exercise(node.client)
                    node.stop()
            starts.keep(written, archive)
        if not archive.exists():
            refused.touch()
        return archive.exists()


def _exercise(client: SearchClient) -> None:
    """Index and search a little of everything, so that the classes for it are loaded."""
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


def _url(address: str, port: int) -> str:
    return f"http://[{address}]:{port}" if ":" in address else f"http://{address}:{port}"


def parse_port(ports: str) -> int:
    """The port in a node's ports file: one `address:port` a line, IPv6 addresses in brackets."""
    return int(ports.split(maxsplit=1)[0].rpartition(":")[2])
