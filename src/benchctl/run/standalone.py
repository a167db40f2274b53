"""A node without measurement: started in the background, found again, stopped."""

import contextlib
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil

from benchctl.disk import read_file, replacing
from benchctl.engine.cluster import boot
from benchctl.engine.equipment import equip
from benchctl.engine.launch import starts_of
from benchctl.engine.variant import check_name
from benchctl.errors import BenchctlError, ExitCode, UsageError
from benchctl.home import Home, open_folder
from benchctl.results.plan import VariantSpec
from benchctl.run.bench import Observer

STATE_NAME = "node.json"
START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 60.0
_POLL_S = 0.05


class NodeState(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A background node, as its serving process recorded it."""

    variant: str  # also the node's name
    version: str
    url: str  # of several nodes, comma-separated
    serving_pid: int  # the benchctl process that holds it
    serving_since: float  # epoch seconds: its pid may have been reused
    node_pid: int  # of several, the first one's


@dataclass(frozen=True)
class NodeFolder:
    """The folder of one background node."""

    path: Path

    @property
    def log(self) -> Path:
        """Output of the serving benchctl and of the node's start."""
        return self.path / "serve.log"

    @property
    def node_logs(self) -> list[Path]:
        """The nodes' own standard outputs."""
        return sorted((self.path / "boot").rglob("stdout.log"))

    def state(self) -> NodeState | None:
        """The node's state; None when it is not up."""
        try:
            state = msgspec.json.decode(read_file(self.path / STATE_NAME), type=NodeState)
            process = psutil.Process(state.serving_pid)
        except (FileNotFoundError, msgspec.DecodeError, psutil.NoSuchProcess):
            return None
        same = abs(process.create_time() - state.serving_since) < 1.0
        return state if same and process.status() != psutil.STATUS_ZOMBIE else None


def node_folder(home: Home, variant: str) -> NodeFolder:
    """The folder of a variant's background node.

    Raises:
        UsageError: If the name is not a variant's; a path would lead to other files.
    """
    return NodeFolder(home.nodes / check_name(variant))


def running_nodes(home: Home) -> Iterator[NodeState]:
    """Return every background node that is up."""
    for path in sorted(home.nodes.iterdir()):
        state = NodeFolder(path).state()
        if state is not None:
            yield state


def only_node(home: Home, verb: str) -> str:
    """The variant of the only background node that is up; `verb` is the `benchctl node` command, for hints.

    Raises:
        BenchctlError: If no node is up.
        UsageError: If several nodes are up.
    """
    up = [state.variant for state in running_nodes(home)]
    if not up:
        raise BenchctlError(
            "no node is up", hint=f"to reach what one left behind, name it: benchctl node {verb} es"
        )
    if len(up) > 1:
        raise UsageError(
            f"{len(up)} nodes are up: {', '.join(up)}", hint=f"say which: benchctl node {verb} {up[0]}"
        )
    return up[0]


def serve(home: Home, spec: VariantSpec, heap_mb: int, port: int | None, observer: Observer) -> None:
    """Run a node until this process is terminated.

    Raises:
        BenchctlError: If the node does not start, or dies.
    """
    folder = node_folder(home, spec.name)
    observer.stage(f"{spec.name}: engine and Java runtime")
    equipment = equip(home, spec, observer.progress)
    observer.stage(f"{spec.name}: starting the node")
    data = folder.path / "data"
    data.mkdir(parents=True, exist_ok=True)
    open_folder(folder.path)
    settings = dict(spec.settings) | ({"http.port": port} if port is not None else {})
    with boot(
        equipment.installation,
        equipment.jdk,
        data=data,
        folder=folder.path / "boot",
        owner=home.node_owner,
        heap_mb=heap_mb,
        jvm_flags=spec.jvm_flags,
        settings=settings,
        variables=spec.environment,
        starts=starts_of(home, equipment.installation) if spec.start == "direct" else None,
        nodes=spec.nodes,
    ) as cluster:
        me = psutil.Process()
        state = NodeState(
            spec.name,
            cluster.version,
            cluster.endpoint.title,
            me.pid,
            me.create_time(),
            cluster.nodes[0].pid,
        )
        with replacing(folder.path / STATE_NAME) as partial:
            partial.write_bytes(msgspec.json.encode(state))
        observer.note(f"{spec.name} {cluster.version} listens on {state.url}")
        try:
            while True:
                signal.sigtimedwait({signal.SIGUSR1}, 1.0)
                cluster.check_alive()
        finally:
            (folder.path / STATE_NAME).unlink(missing_ok=True)


def check_port(port: int) -> None:
    """Refuse a port that is taken: a node takes half a minute to report it, and blames a setting.

    Raises:
        BenchctlError: If another process listens there.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As engines do: closed connections do not block a port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as err:
            raise BenchctlError(
                f"--port {port}: {(err.strerror or str(err)).lower()}",
                hint="give another --port, or none for a free one",
            ) from err


def start_in_background(home: Home, variant: str, arguments: list[str]) -> NodeState:
    """Start a process of `benchctl node serve` with these arguments, and wait until the node is ready.

    Raises:
        BenchctlError: If the node is up already, or does not get ready.
    """
    folder = node_folder(home, variant)
    running = folder.state()
    if running is not None:
        raise BenchctlError(
            f"node {variant} is up already at {running.url}",
            hint=f"stop it with: benchctl node stop {variant}",
        )
    shutil.rmtree(folder.path / "boot", ignore_errors=True)
    folder.path.mkdir(parents=True, exist_ok=True)
    # -P: a folder or file called like a module in the current folder is not benchctl's.
    command = [sys.executable, "-P", "-m", "benchctl", "node", "serve", *arguments]
    with folder.log.open("wb") as log:
        serving = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    try:
        return _wait_for_state(folder, serving, variant)
    except BaseException:
        serving.terminate()
        serving.wait(STOP_TIMEOUT_S)
        raise


def _wait_for_state(folder: NodeFolder, serving: "subprocess.Popen[bytes]", variant: str) -> NodeState:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if (state := folder.state()) is not None:
            return state
        if serving.poll() is not None:
            output = folder.log.read_text(encoding="utf-8", errors="replace").strip()
            wrong = serving.returncode == ExitCode.USAGE
            raise BenchctlError(
                f"node {variant} did not start:\n{output}",
                exit_code=ExitCode.USAGE if wrong else ExitCode.FAILED,
            )
        time.sleep(_POLL_S)
    raise BenchctlError(
        f"node {variant} was not ready after {START_TIMEOUT_S:.0f} s", hint=f"see {folder.log}"
    )


def stop_in_background(home: Home, variant: str) -> None:
    """Stop a background node; its data stays.

    Raises:
        BenchctlError: If there is no such node, or it does not end.
    """
    folder = node_folder(home, variant)
    state = folder.state()
    if state is None:
        up = ", ".join(node.variant for node in running_nodes(home)) or "none"
        raise BenchctlError(f"node {variant} is not up", hint=f"nodes that are up: {up}")
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(state.serving_pid)
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except psutil.TimeoutExpired as err:
            raise BenchctlError(
                f"node {variant} (process {state.serving_pid}) does not end", hint=f"see {folder.log}"
            ) from err


def remove(home: Home, variant: str) -> None:
    """Delete a stopped node's data and logs."""
    shutil.rmtree(node_folder(home, variant).path, ignore_errors=True)
