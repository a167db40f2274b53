"""A node: started, watched, checked, stopped, and explained when it fails."""

import re
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol, Self

import psutil

from benchctl.disk import disk_errors, read_file
from benchctl.endpoint import Endpoint
from benchctl.engine.client import NodeRequestError, SearchClient, loopback
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
from benchctl.engine.process import (
    STOP_GRACE_S,
    TIMEOUT_VARIABLE,
    Command,
    GcPause,
    Meter,
    NodeProcess,
    Patience,
    Reading,
    describe_exit,
    node_timeout_s,
    read_pauses,
    search_threads,
    started_ns,
)
from benchctl.engine.settings import BootFolders, environment, hand_over, write_config
from benchctl.errors import BenchctlError
from benchctl.home import Home, Owner, open_folder
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
        r"Lock held by another program|failed to obtain node lock",
        "another node uses this data directory, or the node's user cannot write to it",
    ),
)


def diagnose(log: Sequence[str], *, errors_only: bool = False) -> tuple[str, str]:
    """Explain a failed node by its log.

    Args:
        log: its last lines.
        errors_only: whether lines that are neither errors nor exceptions stay out.

    Returns:
        The line or lines that matter, the innermost exception before all others, and the engine's own last
        warning before what else its JVM said; empty when there are none. And what to do about them.
    """
    # Control characters are for whoever started it, such as the mark with which it says that it is ready.
    log = ["".join(char for char in line if char.isprintable() or char == "\t") for line in log]
    lines = [line.strip() for line in log if line.strip() and not _NOISE.match(line)]
    inner = [_INNER.sub("", line, count=1) for line in reversed(lines) if _INNER.match(line)]
    for line, cause in (*product(inner, _CAUSES), *((line, cause) for cause in _CAUSES for line in lines)):
        if cause.pattern.search(line):
            naming = (outer for outer in lines if cause.naming and cause.naming in outer)
            return next(naming, line)[:_LINE_LENGTH], cause.hint
    if inner:
        return inner[0][:_LINE_LENGTH], UNKNOWN_HINT
    warned = [line for line in log if _WARNING.match(line)]
    telling = [line for line in lines if _TELLING.search(line)]
    if not errors_only:
        telling = telling or warned[-1:] or lines
    return "; ".join(line[:_LINE_LENGTH] for line in telling[-_SHOWN_LINES:]), UNKNOWN_HINT


POLL_S = 0.02
EXIT_STATUS_WAIT_S = 2.0
IDLE_WINDOW_S = 0.1
IDLE_CORES = 0.25
_TAIL_LINES = 400
_HEALTH_S = 5.0
_NOT_YET = (0, HTTPStatus.SERVICE_UNAVAILABLE)  # it did not answer in time, or has no master yet
_BUSY = 0.25  # share of the CPUs from which others are named as the reason why a node is late
VMSTAT = Path("/proc/vmstat")
_KILLED_HINT = (
    "benchctl did not kill it; the kernel does when memory runs out: see `dmesg`, and use a smaller heap"
)
_OUT_OF_MEMORY_HINT = (
    "give the machine, or its container, more memory, or the node a smaller heap with --heap; of a container "
    "it must leave room for the JVM itself and for the page cache"
)
StartManner = Literal["script", "direct", "direct, classes archived"]
ARCHIVED: Final[StartManner] = "direct, classes archived"


class Node:
    """A node of this host while it is up: a context manager that starts it, and ends it.

    Args:
        installation: what to start; it is only read.
        jdk: what to run it on.
        data: its data folder, made when it is not there.
        folder: a new folder for configuration and logs, which stay.
        owner: whom to run it as; None means the current user.
        heap_mb: of heap, MiB.
        jvm_flags: behind all other flags.
        settings: node settings over benchctl's own.
        variables: of its environment, over benchctl's own.
        timeout_s: how long it may take without progress to listen, and then to open its shards; None for
            `node_timeout_s`. See `Patience`.
        cpus: the CPUs that it runs on from its first instruction; None for those that benchctl may use.
        vmstat: where the kernel counts whom it killed.
        starts: where what was learnt of the engine's starts is kept, to start the server itself; None to
            start it by the engine's script. So is one whose script does what benchctl does not know.
        archive: of the classes that it writes when it is stopped in peace; None for none.
        listen: the address that it takes requests at; empty for loopback.
        expect_index: an index whose primary shards must be started before it counts as ready.
    """

    # There once it listens:
    client: SearchClient  # for everything that is not measured
    http_port: int
    pid: int  # of the server JVM
    command: tuple[str, ...]  # the server JVM's real command line
    start_s: float  # seconds from starting the process to ready
    started_ns: int  # start of its server JVM, on the monotonic clock
    version: str  # as it says
    build: str  # hash of the commit it was built from

    def __init__(  # noqa: PLR0913 - what is started, on what and for whom; all by keyword
        self,
        installation: Installation,
        jdk: Jdk,
        *,
        data: Path,
        folder: Path,
        owner: Owner | None,
        heap_mb: int,
        jvm_flags: Sequence[str] = (),
        settings: Mapping[str, Any] = MappingProxyType({}),
        variables: Mapping[str, str] = MappingProxyType({}),
        timeout_s: float | None = None,
        cpus: tuple[int, ...] | None = None,
        vmstat: Path = VMSTAT,
        starts: Starts | None = None,
        archive: ClassArchive | None = None,
        listen: str = "",
        expect_index: str | None = None,
    ) -> None:
        self.folders = folders = BootFolders.create(folder)
        self.lucene = installation.lucene
        self.manner: StartManner = "script"
        self._installation = installation
        self._engine = installation.engine
        self._data = data
        self._owner = owner
        self._vmstat = vmstat
        self._starts = starts
        self._archive = archive
        self._listen = listen
        self._index = expect_index
        self._timeout_s = node_timeout_s() if timeout_s is None else timeout_s
        self._started = time.monotonic()
        self._held = ExitStack()
        # Of the process, whose keeper has one line to tell things by.
        self._lock = threading.RLock()
        self._server: psutil.Process | None = None
        self._stop_s: float | None = None
        write_config(
            folders,
            installation,
            jdk,
            heap_mb=heap_mb,
            jvm_flags=jvm_flags,
            settings=settings,
            data=data,
            listen=listen,
        )
        data.mkdir(parents=True, exist_ok=True)
        self._command = Command(
            argv=(str(installation.root.absolute() / "bin" / self._engine),),
            env=environment(folders, installation, jdk, variables),
            cwd=folders.root,
            stdout=folders.stdout,
            stderr=folders.stderr,
            owner=owner,
            cpus=cpus,
        )
        if starts is not None:
            with suppress(UnlearnableError):
                parts = self._command, starts, folders, installation, jdk, data
                self._command = direct(*parts, archive_to=self.archive_to)
                self.manner = "direct"
        for root in (folders.root, data):
            hand_over(root, owner)

    @property
    def archive_to(self) -> Path | None:
        """File that it writes an archive of its classes to when it stops; None if it is to write none."""
        return None if self._archive is None else self.folders.temporary / self._archive.path.name

    def _keep_archive(self) -> None:
        if self._archive is not None and self.archive_to is not None:
            # One that had to be killed may have been about to write it, and a script may be learnt next time.
            by_chance = self._process.was_killed or self.manner == "script"
            self._archive.keep(
                self.archive_to,
                ruled_out(self.command) or ("" if by_chance else "its node wrote no archive"),
            )

    def __enter__(self) -> Self:
        """Start it, and wait until it is ready.

        Raises:
            BenchctlError: If it ended, or did not get ready in time; the message has the reason as far as its
                log shows it.
        """
        self._started, self._oom_kills = time.monotonic(), _oom_kills(self._vmstat)
        server = MAIN_CLASSES[self._engine]
        with ExitStack() as stack:
            stack.callback(self._held.close)
            self._process = self._held.enter_context(NodeProcess(self._command, server=server))
            try:
                self._wait_ready()
            except BenchctlError as err:
                # A node that is slow, or that somebody ended, says nothing about its archive and its recipe.
                by_itself = self._process.status is not None and not _was_ended(err)
                if self._archive is not None and by_itself:
                    self._archive.refuse(NEVER_STARTED)
                if err.hint == UNKNOWN_HINT and by_itself and self._forget_start():
                    hint = (
                        f"{UNKNOWN_HINT}; try again, with its start command read again, or use start:script"
                    )
                    raise BenchctlError(err.message, hint=hint) from err
                raise
            stack.pop_all()
        return self

    def __exit__(self, raised: object, *_: object) -> None:
        try:
            # Whoever interrupts a node does not wait for its archive, nor is that one kept.
            self.stop(at_once=raised is not None and self._archive is not None)
        finally:
            self._held.close()
            shutil.rmtree(self.folders.repository, ignore_errors=True)
        if raised is None:
            self._keep_archive()

    @property
    def endpoint(self) -> Endpoint:
        """Endpoint for clients."""
        return Endpoint.of(_url(self._listen, self.http_port)) if self._listen else loopback(self.http_port)

    @property
    def stdout(self) -> Path:
        """File with its standard output."""
        return self.folders.stdout

    def _wait_ready(self) -> None:
        ports, patience = self.folders.http_ports, self._patience()
        while not ports.exists():
            self.check_alive(when="before it was ready")
            if patience.is_over():
                raise self._late("was not ready: it opened no port", patience)
            with self._lock:
                self._process.wait(POLL_S)
        with disk_errors(f"read {ports}"):
            self.http_port = parse_port(read_file(ports, follow=False).decode())
        with self._lock:
            self._server = psutil.Process(self._process.pid)
        self.pid = self._server.pid
        self.started_ns = started_ns(self.pid)
        self.command = tuple(self._server.cmdline())
        self.manner = _manner(self.manner, self.pid, self.command)
        self.client = self._held.enter_context(SearchClient(self._engine, self.endpoint))
        self.wait_shards(self._index)
        self.start_s = time.monotonic() - self._started
        info = self.client.info()
        self.version, self.build = info.version, info.build

    def _patience(self) -> Patience:
        return Patience(self._timeout_s, self._process.used_s, self._command.cpus)

    def wait_shards(self, index: str | None) -> None:
        """Wait until primary shards are started: those of an index, or of all for None.

        Raises:
            BenchctlError: If the node died or refused, or they make no progress; with the reason.
        """
        shards = f"the shards of index '{index}'" if index else "its shards"
        what = f"did not start {shards}"
        patience, problem = self._patience(), ""
        while True:
            try:
                if self.client.health(index, min(self._timeout_s, _HEALTH_S)) != "red":
                    return
            except NodeRequestError as err:
                self.check_alive(EXIT_STATUS_WAIT_S, "before it was ready")
                if err.status not in _NOT_YET:
                    raise self.failure(f"{what}: {err.reason}") from err
                problem = f": {err.reason}"
            if patience.is_over():
                raise self._late(f"{what}{problem}", patience, self.client.unassigned())

    def _late(self, what: str, patience: Patience, said: Sequence[str] = ()) -> BenchctlError:
        """Return the error about a wait that is over; what else had the CPUs is the likeliest reason."""
        waited = f"{what} after {patience.waited_s:.0f} s"
        if patience.others < _BUSY:
            return self.failure(waited, said, exited=False)
        title, percent = f"{self._engine} {self._installation.version}", round(100 * patience.others)
        return BenchctlError(
            f"{title} {waited}, in which other processes kept {percent}% of the CPUs or a disk busy "
            f"(logs in {self.folders.root})",
            hint=f"stop what else runs, or set {TIMEOUT_VARIABLE} to more than {self._timeout_s:g}s",
        )

    def _forget_start(self) -> bool:
        if self._starts is None or self.manner == "script":
            return False
        self._starts.forget()
        return True

    @cached_property
    def _meter(self) -> Meter:
        return self._held.enter_context(Meter(self.pid))

    def reading(self) -> Reading | None:
        """Return its process's usage; None if it cannot be read."""
        return self._meter.read()

    def search_threads(self) -> frozenset[int] | None:
        """Return its threads that search; see `process.search_threads`."""
        return search_threads(self.pid, self.stdout)

    def pauses(self, logs: Path, origin_ns: int) -> list[GcPause]:
        """Return the pauses in its logs, wherever they are now, since `origin_ns` on the monotonic clock."""
        return read_pauses(logs, self.pid, origin_ns)

    def searches_counted(self) -> int | None:
        """Return query phases since the start, by its own statistics.

        None with several primary shards, of which a search is counted on each that it asks, and it skips
        some.
        """
        return None if self.client.primary_shards() > 1 else self.client.node_search_count()

    def wait_idle(self, max_s: float = 2.0) -> float:
        """Wait until the JVM is idle: under a quarter of a core over a tenth of a second.

        Returns:
            Seconds waited; at least one window, at most about max_s.

        Raises:
            BenchctlError: If the node died.
        """
        begun = time.monotonic()
        while True:
            since, before_s = time.monotonic(), self.cpu_seconds()
            self.check_alive(IDLE_WINDOW_S)
            now = time.monotonic()
            if self.cpu_seconds() - before_s < IDLE_CORES * (now - since) or now - begun >= max_s:
                return now - begun

    def cpu_seconds(self) -> float:
        """Return CPU time of the server JVM over all threads.

        Raises:
            BenchctlError: If the node died.
        """
        if self._server is None:
            return 0.0
        try:
            times = self._server.cpu_times()
        except psutil.NoSuchProcess:
            self.check_alive()
            raise
        return float(times.user + times.system)

    def glance(self) -> None:
        """Check like `check_alive`, cheaply enough to be called all the time.

        Raises:
            BenchctlError: If the node died, with the cause.
        """
        with self._lock:
            lost = self._stop_s is None and not self._process.alive()
        if lost:
            self.check_alive()

    def check_alive(self, within_s: float = 0.0, when: str = "while it was in use") -> None:
        """Check that it runs, or was stopped on purpose.

        Args:
            within_s: how long to watch. A dying process closes its connections a moment before it is gone:
                after a broken request, look a second long.
            when: it would have died, for the message.

        Raises:
            BenchctlError: If the node died, with the cause.
        """
        with self._lock:
            if self._stop_s is not None:
                return
            self._process.wait(within_s)
            if self._process.alive():
                return
            # A launcher outlives its server by a moment and brings the exit status.
            status = self._process.wait(EXIT_STATUS_WAIT_S)
        raise self.failure(f"{'died' if status is None else describe_exit(status)} {when}")

    def stop(self, *, at_once: bool = False) -> float:
        """Stop it and everything it started.

        Args:
            at_once: kill it, where nothing of it is kept that it would write at its end.

        Returns:
            Seconds until its last process was gone; the same again when called again.
        """
        with self._lock:
            if self._stop_s is None:
                self._stop_s = self._process.stop(0.0 if at_once else STOP_GRACE_S)
            return self._stop_s

    def failure(self, what: str, said: Sequence[str] = (), *, exited: bool = True) -> BenchctlError:
        """Return an error with the explanation of its log, or else `said`.

        Of a node that still runs, only errors explain anything: what it wrote last need not.
        """
        # What a JVM says of its compilations names exceptions that nobody threw.
        own = hook("foreign_lines")(line.encode() for line in self._process.tail(_TAIL_LINES))
        reason, hint = diagnose([*(line.decode() for line in own), *said], errors_only=not exited)
        if hint == UNKNOWN_HINT and signal.SIGKILL.name in what:
            # Nobody gets to log this end; the last lines are about something else.
            reason, hint = self._killed()
        title = f"{self._engine} {self._installation.version}"
        text = f"{title} {what}: {reason}" if reason else f"{title} {what}"
        return BenchctlError(f"{text} (logs in {self.folders.root})", hint=hint)

    def _killed(self) -> tuple[str, str]:
        """Return whether it was the kernel; it counts whom it kills, also for a cgroup's limit."""
        now = _oom_kills(self._vmstat)
        if now is None or self._oom_kills is None:
            return "", _KILLED_HINT
        if now > self._oom_kills:
            return "memory ran out, and the kernel killed a process for it", _OUT_OF_MEMORY_HINT
        return (
            "",
            "killed neither by benchctl nor for lack of memory: check what else kills processes on this host",
        )


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


NEVER_STARTED = "its node failed to start"
_TOO_SLOW = "its node was too slow this time; the next run tries again"
_ENDED = (signal.SIGTERM.name, signal.SIGKILL.name)


def _was_ended(err: BenchctlError) -> bool:
    return any(name in err.message for name in _ENDED)


_ARCHIVING_HEAP_MB = 512


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
                node = Node(
                    installation,
                    jdk,
                    data=folder / "data",
                    folder=folder / "boot",
                    owner=home.node_owner,
                    heap_mb=_ARCHIVING_HEAP_MB,
                    starts=starts,
                    archive=archive,
                )
                if node.manner == "script":
                    return "the engine's script starts its nodes"
                with node:
                    exercise(node.client)
            except BenchctlError as err:
                if _was_ended(err):
                    raise
    return _TOO_SLOW if archive.refusal is None else archive.refusal


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

    def begin(self, node: Node) -> None:
        """Begin: the first task of a measured challenge, or its warm-up, is about to start."""

    def measured(self, node: Node) -> None:
        """Handle the end of the last measured task; the node is still up."""

    def end(self) -> None:
        """Convert what the node, now gone, left into the form that is kept."""
