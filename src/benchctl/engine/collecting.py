"""The collection of evidence from one node start: where it goes, and what collects it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchctl.engine.node import Member


@dataclass(frozen=True)
class Scene:
    """Destination of the evidence of one node start while it runs."""

    # empty, and writable for the node's user; what is in it when the node is gone is kept with the run
    folder: Path
    java_home: Path  # of the node's runtime, whose `bin` may have jcmd and jfr
    java_major: int  # its feature release, such as 21
    cpus: tuple[int, ...] | None = None  # that helpers may use; None for all


class Collector(Protocol):
    """Collects evidence of one node start. Its methods are called in this order, each once.

    `end` is called even if the node fails or never gets ready. None of them may send the node a request: a
    search, and to a lesser degree anything else, changes what is measured.
    """

    def flags(self) -> tuple[str, ...]:
        """Return JVM flags, appended to all others."""

    def begin(self, node: Member) -> None:
        """Begin: the first task of a measured challenge, or its warm-up, is about to start."""

    def measured(self, node: Member) -> None:
        """Handle the end of the last measured task; the node is still up."""

    def end(self) -> None:
        """Convert what the node, now gone, left into the form that is kept."""
