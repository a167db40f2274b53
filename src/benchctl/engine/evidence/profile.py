"""Profiles: Flight Recorder samples of the measured window, brought into a form that needs no Java to read.

A recording is started and stopped through `jcmd`, so that the node's start, which is most of what a short
run does, is not in it. Attaching works as the user that the node runs as; started by a flag, a recording
would have to be cut afterwards, and its events would be on while the node starts.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypedDict

import msgspec

from benchctl.disk import disk_errors
from benchctl.engine.evidence.collector import Scene
from benchctl.engine.node import Node
from benchctl.errors import BenchctlError, UsageError
from benchctl.jvm.profile import (
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
from benchctl.results.plan import EvidenceKind

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
    """Whom to run a tool as, and where; arguments of `subprocess`."""

    cwd: str
    env: dict[str, str]
    user: int
    group: int
    extra_groups: list[int]


def require_tools(java_home: Path) -> None:
    """Refuse a runtime that cannot be asked for a profile.

    Raises:
        UsageError: it lacks a tool.
    """
    for tool in _TOOLS:
        if not (java_home / "bin" / tool).is_file():
            raise UsageError(
                f"profiles need {tool}, and {java_home} has none",
                hint="use the bundled Java, or name a whole JDK with --jdk",
            )


class ProfileCollector:
    """Samples a node's threads by Flight Recorder.

    Args:
        scene: of the node start. Its Java home must have `jcmd` and `jfr`, see `require_tools`.
    """

    kind: EvidenceKind = "profile"

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._recording = scene.folder / RECORDING_NAME
        self._clock: RecordingClock | None = None

    def flags(self) -> tuple[str, ...]:
        """Where compiled code is, told exactly and not as of the last safepoint; and room for deep stacks."""
        return (
            "-XX:+UnlockDiagnosticVMOptions",
            "-XX:+DebugNonSafepoints",
            f"-XX:FlightRecorderOptions=stackdepth={STACK_DEPTH}",
        )

    def begin(self, node: Node) -> None:
        """Start recording.

        Raises:
            BenchctlError: the JVM refused.
        """
        settings = self._scene.folder / SETTINGS_NAME
        with disk_errors(f"write {settings}"):
            _write_new(settings, settings_text().encode())
        begun = datetime.now(UTC).replace(tzinfo=None)
        since = timedelta(microseconds=(time.monotonic_ns() - node.started_ns) // 1000)
        # Of a node that dies, what there is by then is written, too.
        options = (f"settings={settings}", f"filename={self._recording}", "dumponexit=true", "maxsize=0")
        self._command(node, "JFR.start", *options, expected="Started recording")
        self._clock = RecordingClock(begun - since, begun)

    def measured(self, node: Node) -> None:
        """Stop recording, which writes the file.

        Raises:
            BenchctlError: the JVM refused.
        """
        self._command(node, "JFR.stop", f"filename={self._recording}", expected="Stopped recording")

    def end(self) -> None:
        """Read the recording into `profile.json`, and `profile.collapsed` for other tools.

        Raises:
            BenchctlError: there is none, it cannot be read, or the disk is full.
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

    def _command(self, node: Node, command: str, *options: str, expected: str) -> None:
        """Give a JVM an order; the exit status of `jcmd` does not say whether it was carried out."""
        argv = [str(self._scene.java_home / "bin" / "jcmd"), str(node.pid), command, f"name={_RECORDING}"]
        try:
            with _on(self._scene.cpus):
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
            with tempfile.TemporaryFile() as complaints, _on(self._scene.cpus):
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
        """As the user that the node runs as, who owns the folder: a JVM takes no orders from others."""
        identity: _Identity = {"cwd": "/", "env": {"PATH": os.defpath, "LANG": "C.UTF-8"}}
        owner = self._scene.folder.stat()
        if os.geteuid() == 0 and owner.st_uid != 0:
            identity |= {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []}
        return identity


def settings_text() -> str:
    """The settings of the recording: samples and nothing else, since every event has its price."""
    events = "".join(
        f'  <event name="{name}">'
        f'<setting name="enabled">true</setting><setting name="period">{period}</setting></event>\n'
        for name, period in _PERIODS.items()
    )
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<configuration version="2.0" label="benchctl">\n'
    return f"{head}{events}</configuration>\n"


def _write_new(path: Path, content: bytes) -> None:
    """The folder is the node's, and benchctl may be root: what is there already, or a link, is refused."""
    with path.open("xb") as file:
        # The node reads the settings, whatever the umask.
        os.fchmod(file.fileno(), 0o644)
        file.write(content)


@contextmanager
def _on(cpus: Sequence[int] | None) -> Iterator[None]:
    """Let what this thread starts run on those CPUs."""
    if cpus is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
