"""Evidence collected from a node with its metrics: by JVM flags, or by attaching."""

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from benchctl.disk import disk_errors, open_regular
from benchctl.engine.node import Collector, Node, Scene
from benchctl.errors import BenchctlError, UsageError
from benchctl.evidence.inlining_log import LOG_NAME, foreign_lines
from benchctl.evidence.profile import (
    EVENTS,
    PROFILE_NAME,
    Profile,
    RecordingClock,
    RecordingText,
    profile_of,
)
from benchctl.run.host import thread_on
from benchctl.spec import EvidenceKind


class InliningCollector:
    """HotSpot's PrintCompilation and PrintInlining, in a file, `jvm.log`.

    In the file, unlike on standard output, a change of thread is marked (`<writer thread='N'/>`): C2 prints
    the head of a compilation when it begins and its tree when it ends, with other compilers' lines in
    between, so that only the thread tells whose tree it is. LogCompilation's XML would also have the
    receivers of virtual calls, in seven times the bytes (Lucene's CheckIndex on 200,000 documents, JDK 21).

    Standard output has the same lines, which are removed when the node is gone. They cannot be kept out:
    `-XX:-DisplayVMOutput` also silences `-XX:+PrintFlagsFinal`, from which both engines' start scripts read
    the heap size, and without which they do not start.
    """

    def __init__(self, scene: Scene) -> None:
        self._log = scene.folder.absolute() / LOG_NAME
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

    def begin(self, node: Node) -> None:
        """Note the node's output; what was compiled before the first task is part of the evidence."""
        self._stdout = node.stdout

    def measured(self, node: Node) -> None:
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


# Profiles: Flight Recorder samples of the measured window, converted so that reading them needs no Java.
#
# A recording is started and stopped through `jcmd`, as the node's user, to exclude the node's start, which is
# most of a short run. Started by a flag, it would have to be cut, and events would be on during the start.

RECORDING_NAME = "profile.jfr"
SETTINGS_NAME = "profile.jfc"
STACK_DEPTH = 512
_TIMEOUT_S = 120
_RECORDING = "benchctl"
# Samples only, since every event has its cost.
SETTINGS = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<configuration version="2.0" label="benchctl">\n'
    + "".join(
        f'  <event name="{name}">'
        f'<setting name="enabled">true</setting><setting name="period">{period}</setting></event>\n'
        for name, period in zip(EVENTS, ("beginChunk", "10 ms"), strict=True)
    )
    + "</configuration>\n"
)


def check_runtime(kinds: Sequence[EvidenceKind], java_home: Path) -> None:
    """Refuse a runtime that cannot provide these kinds.

    Raises:
        UsageError: If the runtime lacks a tool that profiles need.
    """
    for tool in ("jcmd", "jfr") if "profile" in kinds else ():
        if not (java_home / "bin" / tool).is_file():
            raise UsageError(
                f"profiles need {tool}, and {java_home} has none",
                hint="use the default Java, or give the path of a whole JDK with --jdk",
            )


class ProfileCollector:
    """Samples of a node's threads by Flight Recorder; its runtime must pass `check_runtime`."""

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

    def begin(self, node: Node) -> None:
        """Start recording.

        Raises:
            BenchctlError: If the JVM refused.
        """
        settings = self._scene.folder / SETTINGS_NAME
        with disk_errors(f"write {settings}"):
            _write_new(settings, SETTINGS.encode())
        begun = datetime.now(UTC).replace(tzinfo=None)
        since = timedelta(microseconds=(time.monotonic_ns() - node.started_ns) // 1000)
        # dumponexit: a node that dies leaves what was recorded until then.
        options = (f"settings={settings}", f"filename={self._recording}", "dumponexit=true", "maxsize=0")
        self._command(node, "JFR.start", *options, expected="Started recording")
        self._clock = RecordingClock(begun - since, begun)

    def measured(self, node: Node) -> None:
        """Stop recording, which writes the file.

        Raises:
            BenchctlError: If the JVM refused.
        """
        self._command(node, "JFR.stop", f"filename={self._recording}", expected="Stopped recording")

    def end(self) -> None:
        """Convert the recording to `profile.json`.

        Raises:
            BenchctlError: If there is no recording, it cannot be read, or the disk is full.
        """
        if self._clock is None:
            return
        if not self._recording.is_file():
            raise BenchctlError("the node left no recording of its profile", hint="see the node's log")
        profile = msgspec.json.encode(self._read(self._clock))
        with disk_errors(f"write the profile to {self._scene.folder}"):
            _write_new(self._scene.folder / PROFILE_NAME, profile)

    def _command(self, node: Node, command: str, *options: str, expected: str) -> None:
        """Send the JVM a command; the exit status of `jcmd` does not tell whether it succeeded."""
        argv = [str(self._scene.java_home / "bin" / "jcmd"), str(node.pid), command, f"name={_RECORDING}"]
        try:
            with thread_on(self._scene.cpus):
                done = subprocess.run(
                    [*argv, *options],
                    capture_output=True,
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
                    **self._as_node(),
                ) as child:
                    text = RecordingText(child.stdout or (), clock)
                    profile = profile_of(text.samples())
                complaints.seek(0)
                complaint = complaints.read(2000).decode(errors="replace").strip()
        except OSError as err:
            raise BenchctlError(f"cannot read {self._recording}: {err.strerror}") from err
        if child.returncode != 0:
            raise BenchctlError(f"cannot read {self._recording}: {complaint or child.returncode}")
        return msgspec.structs.replace(profile, unread=text.unread)

    def _as_node(self) -> dict[str, Any]:
        """Return arguments to run a tool as the folder's owner: a JVM accepts commands from nobody else."""
        owner = self._scene.folder.stat()
        is_other = os.geteuid() == 0 and owner.st_uid != 0
        identity = {"user": owner.st_uid, "group": owner.st_gid, "extra_groups": []} if is_other else {}
        environment = {"PATH": os.defpath, "LANG": "C.UTF-8"}
        return {"cwd": "/", "env": environment, "encoding": "utf-8", "errors": "replace", **identity}


def _write_new(path: Path, content: bytes) -> None:
    """Refuses an existing file or link: the folder is the node's, and benchctl may be root."""
    with path.open("xb") as file:
        # The node reads the settings, whatever the umask.
        os.fchmod(file.fileno(), 0o644)
        file.write(content)


COLLECTORS: dict[EvidenceKind, type[InliningCollector | ProfileCollector]] = {
    "inlining": InliningCollector,
    "profile": ProfileCollector,
}


def collectors(kinds: Sequence[EvidenceKind], scene: Scene) -> list[Collector]:
    """Return a collector for each kind, in order; the scene's folder is made.

    Raises:
        BenchctlError: If the folder cannot be made.
    """
    with disk_errors(f"collect evidence in {scene.folder}"):
        scene.folder.mkdir(parents=True, exist_ok=True)
    return [COLLECTORS[kind](scene) for kind in kinds]
