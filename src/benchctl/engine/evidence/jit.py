"""Evidence `jit`: when the node's JVM compiled, gave compiled code up, and deoptimised."""

from collections.abc import Iterable

from benchctl.engine.evidence.logged import LoggedCollector, Row
from benchctl.jvm.unified_log import FIRST_WITH_DEOPTIMIZATION, read_events
from benchctl.results.evidence import JIT_DTYPES, JIT_FILE, Dtypes
from benchctl.results.plan import EvidenceKind


class JitCollector(LoggedCollector):
    """Has the JVM log its compilations, and where the runtime can, its deoptimisations."""

    kind: EvidenceKind = "jit"

    @property
    def tags(self) -> str:
        """As of `LoggedCollector`."""
        knows = self._scene.java_major >= FIRST_WITH_DEOPTIMIZATION
        return f"jit+compilation=debug{',deoptimization=debug' if knows else ''}"

    @property
    def columns(self) -> tuple[str, Dtypes]:
        """As of `LoggedCollector`."""
        return JIT_FILE, JIT_DTYPES

    def rows(self, log: Iterable[str], pid: int, started_ns: int) -> list[Row]:
        """As of `LoggedCollector`."""
        return [
            (one.uptime_ns, one.what, one.compile_id, one.level, one.osr, one.method, one.reason)
            for one in read_events(log, pid, started_ns)
        ]
