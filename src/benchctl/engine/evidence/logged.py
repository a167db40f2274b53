"""Evidence that a node's JVM writes into a log of its own, and that becomes columns when the node is gone."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchctl.disk import disk_errors
from benchctl.engine.evidence.collector import Scene
from benchctl.engine.node import Node
from benchctl.jvm.unified_log import DECORATIONS
from benchctl.results.evidence import Dtypes, stacked_columns, write_evidence
from benchctl.results.plan import EvidenceKind

Row = tuple[Any, ...]


class LoggedCollector(ABC):
    """A collector, but for what is logged and how it is read.

    Args:
        scene: of the node start.
    """

    kind: EvidenceKind

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._process: tuple[int, int] | None = None

    @property
    @abstractmethod
    def tags(self) -> str:
        """What is logged, as `-Xlog` takes it."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, Dtypes]:
        """Name of the file that the columns are kept in, and what they are."""

    @abstractmethod
    def rows(self, log: Iterable[str], pid: int, started_ns: int) -> list[Row]:
        """What one process logged, in the order of the columns.

        Args:
            log: its lines, among those of other processes.
            pid: of the process.
            started_ns: when it started, on the monotonic clock.
        """

    def flags(self) -> tuple[str, ...]:
        """The logging. Without rotation: a JVM that runs before the server leaves nothing behind then."""
        return (f"-Xlog:{self.tags}:file={self._log}:{DECORATIONS}:filecount=0",)

    def begin(self, node: Node) -> None:
        """Note whose lines count."""
        self._process = node.pid, node.started_ns

    def measured(self, node: Node) -> None:
        """Nothing: the log goes on until the node ends."""
        del node

    def end(self) -> None:
        """Turn the log into columns beside it; of a node that never was ready, there is only the log.

        Raises:
            BenchctlError: the log cannot be read, or the columns cannot be written.
        """
        if self._process is None:
            return
        with disk_errors(f"read {self._log}"), self._log.open(encoding="utf-8", errors="replace") as log:
            rows = self.rows(log, *self._process)
        name, dtypes = self.columns
        write_evidence(stacked_columns(rows, dtypes), dtypes, self._scene.folder / name)

    @property
    def _log(self) -> Path:
        return self._scene.folder / f"{self.kind}.log"
