"""Evidence `jit`: when the node's JVM compiled, gave compiled code up, and deoptimised."""

import re
from pathlib import Path

from benchctl.disk import disk_errors
from benchctl.engine.evidence.collector import Scene
from benchctl.engine.node import Node
from benchctl.jvm.compilations import FIRST_WITH_DEOPTIMIZATION, read_events
from benchctl.jvm.decorated import DECORATIONS
from benchctl.results.evidence import JIT_DTYPES, JIT_FILE, stacked_columns, write_evidence
from benchctl.results.plan import EvidenceKind

LOG_NAME = "jit.log"
_MAJOR = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)


class JitCollector:
    """Has the JVM log its compilations, and turns the log into columns when the node is gone.

    Args:
        scene: of the node start.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._process: tuple[int, int] | None = None

    @property
    def kind(self) -> EvidenceKind:
        """What it collects."""
        return "jit"

    def flags(self) -> tuple[str, ...]:
        """Logging of compilations, and where the runtime has it of deoptimisations."""
        tags = "jit+compilation=debug"
        if java_major(self._scene.java_home) >= FIRST_WITH_DEOPTIMIZATION:
            tags += ",deoptimization=debug"
        # Without rotation: a JVM that runs before the server with the same flags leaves nothing behind.
        return (f"-Xlog:{tags}:file={self._scene.folder / LOG_NAME}:{DECORATIONS}:filecount=0",)

    def begin(self, node: Node) -> None:
        """Note whose lines count."""
        self._process = node.pid, node.started_ns

    def measured(self, node: Node) -> None:
        """Nothing: the log goes on until the node ends."""

    def end(self) -> None:
        """Turn the log into columns beside it; of a node that never was ready, there is only the log.

        Raises:
            BenchctlError: the log cannot be read, or the columns cannot be written.
        """
        if self._process is None:
            return
        path = self._scene.folder / LOG_NAME
        with disk_errors(f"read {path}"), path.open(encoding="utf-8", errors="replace") as log:
            rows = [
                (one.uptime_ns, one.what, one.compile_id, one.level, one.osr, one.method, one.reason)
                for one in read_events(log, *self._process)
            ]
        write_evidence(stacked_columns(rows, JIT_DTYPES), JIT_DTYPES, self._scene.folder / JIT_FILE)


def java_major(java_home: Path) -> int:
    """The feature version of a runtime, by its release file; 0 when that does not say."""
    try:
        found = _MAJOR.search((java_home / "release").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return 0
    return 0 if found is None else int(found[1])
