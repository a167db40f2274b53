"""Evidence collected from a node with its metrics: by JVM flags, by attaching, or by observing it."""

import io
import os
import re
import subprocess
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypedDict

import msgspec

from benchctl.disk import disk_errors, open_regular
from benchctl.engine.cluster import Collector, Scene
from benchctl.engine.node import Member
from benchctl.engine.usage import Gauge, GcPause, ProcessGauge, parse_pause
from benchctl.errors import BenchctlError, UsageError
from benchctl.evidence.files import (
    GC_DTYPES,
    GC_FILE,
    JIT_DTYPES,
    JIT_FILE,
    OS_DTYPES,
    OS_FILE,
    Dtypes,
    stacked_columns,
    write_evidence,
)
from benchctl.evidence.inlining_log import foreign_lines
from benchctl.evidence.profile import (
    EVENTS,
    PROFILE_NAME,
    Choice,
    Profile,
    RecordingClock,
    RecordingText,
    collapse,
    count_stacks,
    profile_of,
)
from benchctl.results.model import C2_LEVEL
from benchctl.run.host import thread_on
from benchctl.spec import EvidenceKind

# Lines that begin with `[NANOSECONDSns][PID]`: System.nanoTime, and the process.

DECORATIONS = "timenanos,pid"
"""The decorations for `-Xlog`.

The first is System.nanoTime, on Linux the monotonic clock of all processes. Uptimes would not do: they count
from when the JVM was loaded, and OpenSearch's start script becomes the server a second or two after it began.
"""

_LINE = re.compile(r"\[(\d{1,18})ns\]\[(\d+)\s*\](.*)")


def decorated(lines: Iterable[str], pid: int, started_ns: int) -> Iterator[tuple[int, str]]:
    """Yield what one process logged: (nanoseconds since it started, the rest of the line, right-stripped).

    Start scripts run other JVMs with the same flags before a server, and the last line may be cut. Lines of
    other processes, and lines without decorations, are skipped.

    Args:
        lines: of the log, with or without line ends.
        pid: of the process.
        started_ns: when it started, on the monotonic clock.
    """
    wanted = str(pid)
    for line in lines:
        match = _LINE.match(line)
        if match is not None and match[2] == wanted:
            yield int(match[1]) - started_ns, match[3].rstrip()


# Compilations, discarded code and deoptimisations, as of `-Xlog:jit+compilation=debug,deoptimization=debug`.

JitWhat = Literal["compiled", "failed", "invalidated", "removed", "deoptimised", "unread"]

FIRST_WITH_DEOPTIMIZATION = 21
"""The first long-term support version of Java that knows the tag; 17 refuses to start with it."""

# id, flags (osr, synchronized, has handlers, blocking, native), level unless there is only one, and so on.
_COMPILATION = re.compile(
    r" *(?P<id>\d+) (?P<flags>[%s!bn ]{5})(?: (?P<level>[0-4-]))? +(?P<method>\S+::\S+)"
    r"(?: @ -?\d+)? \((?:native|\d+ bytes)\)(?P<message>.*)"
)
_DEOPTIMISATION = re.compile(
    r" *cid= *(?P<id>\d+) (?P<osr>osr)? *level=(?P<level>\d) (?P<method>\S+) trap_bci=-?\d+"
    r"(?: osr_bci=-?\d+)? (?P<reason>\S+) "
)
_MESSAGES: dict[str, JitWhat] = {
    "": "compiled",
    "(static)": "compiled",
    "made not entrant": "invalidated",
    "made zombie": "removed",
    "COMPILE SKIPPED": "failed",
}


class JitEvent(NamedTuple):
    """A line of the log, in the order of JIT_DTYPES."""

    uptime_ns: int  # since the process started
    # `compiled` when a compilation begins; `failed` when it is impossible; `invalidated` when no thread
    # enters the code any more, which below C2 usually follows the next level's compilation; `removed` when
    # the code is gone; `deoptimised` when a thread left compiled code because an assumption of the compiler
    # was wrong; `unread` for a line of another form, whose text is `reason`
    what: JitWhat
    compile_id: int = -1  # of the compilation; -1 for an unread line
    level: int = -1  # of the compilation, 0 to 4; -1 if the JVM does not tell
    osr: bool = False  # whether it is entered in the middle of a loop
    method: str = ""  # `package.Class::method`
    reason: str = ""  # why, if the JVM tells


def read_events(lines: Iterable[str], pid: int, started_ns: int) -> Iterator[JitEvent]:
    """Yield what the compilers of one process did, in the order of the log; arguments as for `decorated`."""
    for uptime_ns, text in decorated(lines, pid, started_ns):
        yield _event(uptime_ns, text)


def _event(uptime_ns: int, text: str) -> JitEvent:
    if match := _COMPILATION.fullmatch(text):
        message, _, detail = match["message"].strip().partition(":")
        what = _MESSAGES.get(message)
        if what is not None:
            osr, level = "%" in match["flags"], match["level"]
            number = C2_LEVEL if level is None else -1 if level == "-" else int(level)
            return JitEvent(uptime_ns, what, int(match["id"]), number, osr, match["method"], detail.strip())
    elif match := _DEOPTIMISATION.match(text):
        method = _as_compiled(match["method"])
        osr = match["osr"] is not None
        return JitEvent(
            uptime_ns, "deoptimised", int(match["id"]), int(match["level"]), osr, method, match["reason"]
        )
    return JitEvent(uptime_ns, "unread", reason=text.strip())


def _as_compiled(method: str) -> str:
    """`a.B.c(I)V` in the form of compilations: `a.B::c`."""
    owner, _, name = method.partition("(")[0].rpartition(".")
    return f"{owner}::{name}"


# Pauses of the collector, with the heap, and safepoints, as of `-Xlog:gc*,safepoint`.

_SAFEPOINT = re.compile(r'(?:\[[^]]*\])* *Safepoint "(?P<what>[^"]+)", (?P<parts>.*)')
_PART = re.compile(r"(?P<name>[A-Z][A-Za-z ]+): (?P<ns>\d{1,18}) ns")


@dataclass(frozen=True)
class Safepoint:
    """A stop of all threads for an operation of the JVM."""

    uptime_ns: int  # when it was requested, since the process started
    reach_ns: int  # until the last thread had stopped
    total_ns: int  # until they resumed, reaching included
    what: str  # the JVM's name of the operation


def read_stops(lines: Iterable[str], pid: int, started_ns: int) -> Iterator[GcPause | Safepoint]:
    """Yield the stops of one process, in the order of the log; arguments as for `decorated`."""
    for end_ns, text in decorated(lines, pid, started_ns):
        if (pause := parse_pause(text, end_ns)) is not None:
            yield pause
        elif "Safepoint" in text and (match := _SAFEPOINT.fullmatch(text)):
            parts = {part["name"]: int(part["ns"]) for part in _PART.finditer(match["parts"])}
            if "Reaching safepoint" in parts and "Total" in parts:
                total_ns = parts["Total"]
                yield Safepoint(end_ns - total_ns, parts["Reaching safepoint"], total_ns, match["what"])


Row = tuple[Any, ...]


class LoggedCollector(ABC):
    """Base of collectors that let the JVM log; subclasses define what is logged and how it is read."""

    kind: EvidenceKind
    columns: tuple[str, Dtypes]  # name of the file of the columns, and their types

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._process: tuple[int, int] | None = None

    @property
    @abstractmethod
    def tags(self) -> str:
        """Log tags, as `-Xlog` takes them."""

    @abstractmethod
    def rows(self, log: Iterable[str], pid: int, started_ns: int) -> list[Row]:
        """Return what one process logged, in the order of the columns.

        `log` has lines of other processes, too; `started_ns` is when this one started, on the monotonic
        clock.
        """

    def flags(self) -> tuple[str, ...]:
        """Return the logging. Without rotation, a JVM that runs before the server leaves nothing behind."""
        return (f"-Xlog:{self.tags}:file={self._log}:{DECORATIONS}:filecount=0",)

    def begin(self, node: Member) -> None:
        """Note which process counts."""
        self._process = node.pid, node.started_ns

    def measured(self, node: Member) -> None:
        """Do nothing: the log continues until the node ends."""
        del node

    def end(self) -> None:
        """Convert the log to columns beside it; if the node never was ready, only the log is kept.

        Raises:
            BenchctlError: If the log cannot be read, or the columns cannot be written.
        """
        if self._process is None:
            return
        with (
            disk_errors(f"read {self._log}"),
            open_regular(self._log, follow=False) as raw,
            io.TextIOWrapper(raw, encoding="utf-8", errors="replace") as log,
        ):
            rows = self.rows(log, *self._process)
        name, dtypes = self.columns
        write_evidence(stacked_columns(rows, dtypes), dtypes, self._scene.folder / name)

    @property
    def _log(self) -> Path:
        return self._scene.folder / f"{self.kind}.log"


_UNKNOWN = -1


class GcCollector(LoggedCollector):
    """The JVM's log of its collections and safepoints.

    The node's default GC log goes on beside it.
    """

    kind: EvidenceKind = "gc"
    tags = "gc*,safepoint"
    columns = GC_FILE, GC_DTYPES

    def rows(self, log: Iterable[str], pid: int, started_ns: int) -> list[Row]:
        """Implement `LoggedCollector`."""
        return [_row(stop) for stop in read_stops(log, pid, started_ns)]


def _row(stop: GcPause | Safepoint) -> Row:
    if isinstance(stop, Safepoint):
        return stop.uptime_ns, "safepoint", stop.what, stop.total_ns, stop.reach_ns, _UNKNOWN, _UNKNOWN
    before, after = (_UNKNOWN if size is None else size for size in (stop.before_bytes, stop.after_bytes))
    return stop.start_ns, "pause", stop.what, stop.pause_ns, _UNKNOWN, before, after


class JitCollector(LoggedCollector):
    """The JVM's log of its compilations and, where the runtime can, its deoptimisations."""

    kind: EvidenceKind = "jit"
    columns = JIT_FILE, JIT_DTYPES

    @property
    def tags(self) -> str:
        """Implement `LoggedCollector`."""
        knows = self._scene.java_major >= FIRST_WITH_DEOPTIMIZATION
        return f"jit+compilation=debug{',deoptimization=debug' if knows else ''}"

    def rows(self, log: Iterable[str], pid: int, started_ns: int) -> list[Row]:
        """Implement `LoggedCollector`."""
        return [*read_events(log, pid, started_ns)]


INLINING_LOG = "jvm.log"


class InliningCollector:
    """HotSpot's PrintCompilation and PrintInlining, in `jvm.log`.

    These are the lines of standard output, with two important differences. They are the JVM's alone: on
    standard output, the engine's lines come in between. And a change of thread is marked (`<writer
    thread='N'/>`): C2 prints the head of a compilation when it begins and its tree when it ends, with other
    compilers' lines in between, so that only the thread tells whose tree it is. (Without threads, 350 of one
    node's calls came out where the bytecode of their root does not reach.)

    LogCompilation's XML was the alternative. On the same work (Lucene's CheckIndex on an index of 200,000
    documents) it wrote 14.1 MB in 230,000 lines on JDK 21 where these flags write 2.0 MB in 18,000 (17: 10.6
    against 2.0). It would also have the receivers of virtual calls, which PrintInlining omits: that prints a
    type profile only where it used one. The difference in run time was within its variation. The text is what
    others quote, such as the blog, and JDK 17, 21 and 25 print it alike but for details.

    Standard output has the same lines, which are removed when the node is gone. They cannot be kept out:
    `-XX:-DisplayVMOutput` also silences `-XX:+PrintFlagsFinal`, from which both engines' start scripts read
    the heap size, and without which they do not start.
    """

    kind: EvidenceKind = "inlining"

    def __init__(self, scene: Scene) -> None:
        self._log = scene.folder.absolute() / INLINING_LOG
        self._stdout: Path | None = None

    def flags(self) -> tuple[str, ...]:
        """Return JVM flags, appended to all others.

        JVMs that start scripts run before the server write the same file; the server's replaces it.
        """
        return (
            "-XX:+UnlockDiagnosticVMOptions",
            "-XX:+PrintCompilation",
            "-XX:+PrintInlining",
            "-XX:+LogVMOutput",
            f"-XX:LogFile={self._log}",
        )

    def begin(self, node: Member) -> None:
        """Note the node's output; what was compiled before the first task is part of the evidence."""
        self._stdout = node.stdout

    def measured(self, node: Member) -> None:
        """Do nothing: the log continues until the JVM ends."""

    def end(self) -> None:
        """Reduce the node's output to the engine's own lines.

        Raises:
            BenchctlError: If the disk is full or cannot be written.
        """
        if self._stdout is None or not self._log.exists():
            return
        with disk_errors(f"take the JVM's lines out of {self._stdout}"):
            partial = self._stdout.with_name(f".{self._stdout.name}.partial")
            # The folder is the node's, and benchctl may be root: a link would be written through.
            with open_regular(self._stdout, follow=False) as everything, partial.open("xb") as own:
                own.writelines(foreign_lines(everything))
            partial.replace(self._stdout)


INTERVAL_S = 0.25
"""Short enough to tell short tasks apart; reading takes about 1% of a CPU."""


class OsCollector:
    """Counters of the node's process from the first task to the last, read in a separate thread.

    Args:
        scene: of the node start.
        gauge: process id -> its reader.
        clock: the monotonic clock, nanoseconds.
        interval_s: between readings, seconds.
    """

    kind: EvidenceKind = "os"

    def __init__(
        self,
        scene: Scene,
        *,
        gauge: Callable[[int], Gauge] = ProcessGauge,
        clock: Callable[[], int] = time.monotonic_ns,
        interval_s: float = INTERVAL_S,
    ) -> None:
        self._scene = scene
        self._gauge = gauge
        self._clock = clock
        self._interval_s = interval_s
        self._over = threading.Event()
        self._pool: ThreadPoolExecutor | None = None
        self._reading: Future[None] | None = None
        self._rows: list[tuple[float, ...]] = []

    def flags(self) -> tuple[str, ...]:
        """Return no flags."""
        return ()

    def begin(self, node: Member) -> None:
        """Take the first reading, and further ones from then on."""
        gauge, started_ns = self._gauge(node.pid), node.started_ns
        self._read(gauge, started_ns)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="evidence-os")
        self._reading = self._pool.submit(self._run, gauge, started_ns)

    def measured(self, node: Member) -> None:
        """Take the last reading, while the process exists."""
        del node
        self._stop()

    def end(self) -> None:
        """Write the readings; nothing if the node never was ready.

        Raises:
            BenchctlError: If the disk is full or cannot be written.
        """
        self._stop()
        if self._rows:
            columns = stacked_columns(self._rows, OS_DTYPES)
            write_evidence(columns, OS_DTYPES, self._scene.folder / OS_FILE)

    def _run(self, gauge: Gauge, started_ns: int) -> None:
        while not self._over.wait(self._interval_s):
            self._read(gauge, started_ns)
        self._read(gauge, started_ns)

    def _stop(self) -> None:
        self._over.set()
        if self._pool is not None:
            self._pool.shutdown()
        if self._reading is not None:
            # An error in there must not look like an idle node.
            self._reading.result()

    def _read(self, gauge: Gauge, started_ns: int) -> None:
        usage = gauge.read()
        row = (
            self._clock() - started_ns,
            usage.user_s,
            usage.system_s,
            usage.minor_faults,
            usage.major_faults,
            usage.read_bytes,
            usage.write_bytes,
            usage.voluntary_switches,
            usage.involuntary_switches,
            usage.threads,
            usage.rss_bytes,
        )
        self._rows.append(row)  # in the order of OS_DTYPES


# Profiles: Flight Recorder samples of the measured window, converted so that reading them needs no Java.
#
# A recording is started and stopped through `jcmd`, as the node's user, to exclude the node's start, which is
# most of a short run. Started by a flag, it would have to be cut, and events would be on during the start.

RECORDING_NAME = "profile.jfr"
COLLAPSED_NAME = "profile.collapsed"
SETTINGS_NAME = "profile.jfc"
JAVA_PERIOD_MS = 10
NATIVE_PERIOD_MS = 20
STACK_DEPTH = 512
_TIMEOUT_S = 120
_RECORDING = "benchctl"
_TOOLS = ("jcmd", "jfr")
_PERIODS = dict(zip(EVENTS, ("beginChunk", f"{JAVA_PERIOD_MS} ms", f"{NATIVE_PERIOD_MS} ms"), strict=True))


class _Identity(TypedDict, total=False):
    """The user and folder of a tool: arguments of `subprocess`."""

    cwd: str
    env: dict[str, str]
    user: int
    group: int
    extra_groups: list[int]


def check_runtime(kinds: Sequence[EvidenceKind], java_home: Path) -> None:
    """Refuse a runtime that cannot provide these kinds.

    Raises:
        UsageError: If the runtime lacks a tool that profiles need.
    """
    for tool in _TOOLS if "profile" in kinds else ():
        if not (java_home / "bin" / tool).is_file():
            raise UsageError(
                f"profiles need {tool}, and {java_home} has none",
                hint="use the default Java, or name a whole JDK, such as --jdk temurin-21",
            )


class ProfileCollector:
    """Samples of a node's threads by Flight Recorder; its runtime must pass `check_runtime`."""

    kind: EvidenceKind = "profile"

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._recording = scene.folder / RECORDING_NAME
        self._clock: RecordingClock | None = None

    def flags(self) -> tuple[str, ...]:
        """Return flags for exact positions in compiled code, not as of the last safepoint, and deep stacks.

        Without archived classes: a recording redefines classes, and a JVM then crashes when it loads one that
        was not linked when the archive was written (JDK-8342303).
        """
        return (
            "-Xshare:off",
            "-XX:+UnlockDiagnosticVMOptions",
            "-XX:+DebugNonSafepoints",
            f"-XX:FlightRecorderOptions=stackdepth={STACK_DEPTH}",
        )

    def begin(self, node: Member) -> None:
        """Start recording.

        Raises:
            BenchctlError: If the JVM refused.
        """
        settings = self._scene.folder / SETTINGS_NAME
        with disk_errors(f"write {settings}"):
            _write_new(settings, settings_text().encode())
        begun = datetime.now(UTC).replace(tzinfo=None)
        since = timedelta(microseconds=(time.monotonic_ns() - node.started_ns) // 1000)
        # dumponexit: a node that dies leaves what was recorded until then.
        options = (f"settings={settings}", f"filename={self._recording}", "dumponexit=true", "maxsize=0")
        self._command(node, "JFR.start", *options, expected="Started recording")
        self._clock = RecordingClock(begun - since, begun)

    def measured(self, node: Member) -> None:
        """Stop recording, which writes the file.

        Raises:
            BenchctlError: If the JVM refused.
        """
        self._command(node, "JFR.stop", f"filename={self._recording}", expected="Stopped recording")

    def end(self) -> None:
        """Convert the recording to `profile.json`, and to `profile.collapsed` for other tools.

        Raises:
            BenchctlError: If there is no recording, it cannot be read, or the disk is full.
        """
        if self._clock is None:
            return
        if not self._recording.is_file():
            raise BenchctlError("the node left no recording of its profile", hint="see the node's log")
        profile = self._read(self._clock)
        folder = self._scene.folder
        stacks = count_stacks(profile.samples(), Choice(), pools=True).stacks
        with disk_errors(f"write the profile to {folder}"):
            _write_new(folder / PROFILE_NAME, msgspec.json.encode(profile))
            _write_new(folder / COLLAPSED_NAME, collapse(stacks).encode())

    def _command(self, node: Member, command: str, *options: str, expected: str) -> None:
        """Send the JVM a command; the exit status of `jcmd` does not tell whether it succeeded."""
        argv = [str(self._scene.java_home / "bin" / "jcmd"), str(node.pid), command, f"name={_RECORDING}"]
        try:
            with thread_on(self._scene.cpus):
                done = subprocess.run(
                    [*argv, *options],
                    capture_output=True,
                    text=True,
                    errors="replace",
                    check=False,
                    timeout=_TIMEOUT_S,
                    **self._as_node(),
                )
        except (OSError, subprocess.TimeoutExpired) as err:
            raise BenchctlError(f"cannot profile the node: {command}: {err}") from err
        if expected not in done.stdout:
            lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            answer = " ".join(line.strip() for line in lines[1:4]) or f"exit status {done.returncode}"
            raise BenchctlError(f"cannot profile the node: {command}: {answer}")

    def _read(self, clock: RecordingClock) -> Profile:
        argv = [str(self._scene.java_home / "bin" / "jfr"), "print", "--events", ",".join(EVENTS)]
        argv += ["--stack-depth", str(STACK_DEPTH), str(self._recording)]
        try:
            with tempfile.TemporaryFile() as complaints, thread_on(self._scene.cpus):
                with subprocess.Popen(
                    argv,
                    stdout=subprocess.PIPE,
                    stderr=complaints,
                    text=True,
                    encoding="utf-8",
                    errors="replace",
                    **self._as_node(),
                ) as child:
                    text = RecordingText(child.stdout or (), clock)
                    samples = list(text.samples())
                complaints.seek(0)
                complaint = complaints.read(2000).decode(errors="replace").strip()
        except OSError as err:
            raise BenchctlError(f"cannot read {self._recording}: {err.strerror}") from err
        if child.returncode != 0:
            raise BenchctlError(f"cannot read {self._recording}: {complaint or child.returncode}")
        return profile_of(samples, text.unread)

    def _as_node(self) -> _Identity:
        """Return the node's user, who owns the folder: a JVM accepts commands from nobody else."""
        identity: _Identity = {"cwd": "/", "env": {"PATH": os.defpath, "LANG": "C.UTF-8"}}
        owner = self._scene.folder.stat()
        if os.geteuid() == 0 and owner.st_uid != 0:
            identity |= {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []}
        return identity


def settings_text() -> str:
    """The recording's settings: samples only, since every event has its cost."""
    events = "".join(
        f'  <event name="{name}">'
        f'<setting name="enabled">true</setting><setting name="period">{period}</setting></event>\n'
        for name, period in _PERIODS.items()
    )
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<configuration version="2.0" label="benchctl">\n'
    return f"{head}{events}</configuration>\n"


def _write_new(path: Path, content: bytes) -> None:
    """Refuses an existing file or link: the folder is the node's, and benchctl may be root."""
    with path.open("xb") as file:
        # The node reads the settings, whatever the umask.
        os.fchmod(file.fileno(), 0o644)
        file.write(content)


COLLECTORS: Mapping[EvidenceKind, Callable[[Scene], Collector]] = MappingProxyType(
    {
        "inlining": InliningCollector,
        "profile": ProfileCollector,
        "jit": JitCollector,
        "gc": GcCollector,
        "os": OsCollector,
    }
)


def collectors(kinds: Sequence[EvidenceKind], scene: Scene) -> list[Collector]:
    """Return a collector for each kind, in order; the scene's folder is made.

    Raises:
        BenchctlError: If the folder cannot be made.
    """
    with disk_errors(f"collect evidence in {scene.folder}"):
        scene.folder.mkdir(parents=True, exist_ok=True)
    return [COLLECTORS[kind](scene) for kind in kinds]
