"""The JVM's own log of what it compiled and inlined, in a file of its own beside the node's output."""

from pathlib import Path

from benchctl.disk import disk_errors
from benchctl.engine.evidence.collector import Scene
from benchctl.engine.node import Node
from benchctl.jvm.inlining_log import foreign_lines
from benchctl.results.plan import EvidenceKind

LOG_NAME = "jvm.log"


class InliningCollector:
    """Has HotSpot write PrintCompilation and PrintInlining to `jvm.log`.

    These are the lines of standard output, with two differences that matter. They are the JVM's alone: an
    engine writes its own lines between them. And before lines of another thread than the last stands which
    thread it is (`<writer thread='N'/>`): C2 prints the head of a compilation when it begins, and its tree
    when it ends, with the lines of other compilers between them, so that only the thread tells whose tree it
    is. (Without threads, 350 of one node's calls came out where the bytecode of their root does not reach.)

    LogCompilation's XML was the alternative. On the same work (Lucene's CheckIndex on an index of 200,000
    documents) it wrote 14.1 MB in 230,000 lines on JDK 21 where these flags write 2.0 MB in 18,000 (17: 10.6
    against 2.0), and would hold receivers of virtual calls, too, which PrintInlining leaves out: it prints a
    type profile where it used one. The time that the work took differed by less than it varied. The text is
    what others quote, such as the blog, and what JDK 17, 21 and 25 print alike but for details.

    The same is on standard output as well, and is taken out of it again when the node is gone. It cannot be
    kept from there: `-XX:-DisplayVMOutput` also silences `-XX:+PrintFlagsFinal`, from which the start scripts
    of both engines read how large the heap is, and without which they do not start.

    Args:
        scene: where the file is put.
    """

    kind: EvidenceKind = "inlining"

    def __init__(self, scene: Scene) -> None:
        self._log = scene.folder.absolute() / LOG_NAME
        self._stdout: Path | None = None

    def flags(self) -> tuple[str, ...]:
        """JVM flags that the node gets behind all others.

        The JVMs that start scripts run before the server write the same file; the server's replaces it.
        """
        return (
            "-XX:+UnlockDiagnosticVMOptions",
            "-XX:+PrintCompilation",
            "-XX:+PrintInlining",
            "-XX:+LogVMOutput",
            f"-XX:LogFile={self._log}",
        )

    def begin(self, node: Node) -> None:
        """Remember the node's output; what was compiled before the first task is part of the answer."""
        self._stdout = node.stdout

    def measured(self, node: Node) -> None:
        """Nothing: the log goes on until the JVM ends."""

    def end(self) -> None:
        """Leave in the node's output what is the engine's.

        Raises:
            BenchctlError: the disk is full or cannot be written.
        """
        if self._stdout is None or not self._log.exists():
            return
        with disk_errors(f"take the JVM's lines out of {self._stdout}"):
            partial = self._stdout.with_name(f".{self._stdout.name}.partial")
            # The folder is the node's, and benchctl may be root: a link would be written through.
            with self._stdout.open("rb") as everything, partial.open("xb") as own:
                own.writelines(foreign_lines(everything))
            partial.replace(self._stdout)
