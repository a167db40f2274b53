"""What collects evidence of one node start, and when it is called."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchctl.engine.node import Node
from benchctl.results.plan import EvidenceKind


@dataclass(frozen=True)
class Scene:
    """Where evidence of one node start is put while it runs.

    Attributes:
        folder: empty, and the user that the node runs as may write there; what is in it when the node is gone
            is kept with the run.
        java_home: of the runtime that the node runs on, whose `bin` may hold jcmd and jfr.
        java_major: its feature release, such as 21.
        cpus: that helpers may use; None for all.
    """

    folder: Path
    java_home: Path
    java_major: int
    cpus: tuple[int, ...] | None = None


class Collector(Protocol):
    """Collects one kind of evidence of one node start. Its methods are called in this order, each once.

    A node that never gets ready, or fails, still comes to `end`.

    None of them may send the node a request: a search, and to a lesser degree anything else, changes what is
    measured.
    """

    @property
    def kind(self) -> EvidenceKind:
        """What it collects."""

    def flags(self) -> tuple[str, ...]:
        """JVM flags that the node gets behind all others."""

    def begin(self, node: Node) -> None:
        """The node is up, and the first task of a measured challenge, or its warm-up, is about to start."""

    def measured(self, node: Node) -> None:
        """The last measured task is done; the node is still up."""

    def end(self) -> None:
        """The node is gone. Bring what it left into the form in which it is kept."""
