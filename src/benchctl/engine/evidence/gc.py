"""Evidence `gc`: why and for how long the node's threads stood still, and how fast it allocated."""

from benchctl.disk import disk_errors
from benchctl.engine.evidence.collector import Scene
from benchctl.engine.node import Node
from benchctl.jvm.decorated import DECORATIONS
from benchctl.jvm.pauses import GcPause, Safepoint, read_stops
from benchctl.results.evidence import GC_DTYPES, GC_FILE, stacked_columns, write_evidence
from benchctl.results.plan import EvidenceKind

LOG_NAME = "gc.log"
_UNKNOWN = -1


class GcCollector:
    """Has the JVM log its collections and safepoints in full, and turns the log into columns.

    The node's own GC log, as it is shipped with, goes on beside it.

    Args:
        scene: of the node start.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._process: tuple[int, int] | None = None

    @property
    def kind(self) -> EvidenceKind:
        """What it collects."""
        return "gc"

    def flags(self) -> tuple[str, ...]:
        """Logging of everything about collections, and of safepoints."""
        # Without rotation: a JVM that runs before the server with the same flags leaves nothing behind.
        path = self._scene.folder / LOG_NAME
        return (f"-Xlog:gc*,safepoint:file={path}:{DECORATIONS}:filecount=0",)

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
            rows = [_row(stop) for stop in read_stops(log, *self._process)]
        write_evidence(stacked_columns(rows, GC_DTYPES), GC_DTYPES, self._scene.folder / GC_FILE)


def _row(stop: GcPause | Safepoint) -> tuple[int, str, str, int, int, int, int]:
    """In the order of GC_DTYPES."""
    if isinstance(stop, Safepoint):
        return stop.uptime_ns, "safepoint", stop.what, stop.total_ns, stop.reach_ns, _UNKNOWN, _UNKNOWN
    before, after = (_UNKNOWN if size is None else size for size in (stop.before_bytes, stop.after_bytes))
    return stop.uptime_ns, "pause", stop.what, stop.pause_ns, _UNKNOWN, before, after
