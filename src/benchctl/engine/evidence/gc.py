"""Evidence `gc`: why and for how long the node's threads stood still, and how fast it allocated."""

from collections.abc import Iterable

from benchctl.engine.evidence.logged import LoggedCollector, Row
from benchctl.jvm.unified_log import GcPause, Safepoint, read_stops
from benchctl.results.evidence import GC_DTYPES, GC_FILE, Dtypes
from benchctl.results.plan import EvidenceKind

_UNKNOWN = -1


class GcCollector(LoggedCollector):
    """Has the JVM log everything about its collections, and its safepoints.

    The node's own GC log, as it is shipped with, goes on beside it.
    """

    kind: EvidenceKind = "gc"

    @property
    def tags(self) -> str:
        """As of `LoggedCollector`."""
        return "gc*,safepoint"

    @property
    def columns(self) -> tuple[str, Dtypes]:
        """As of `LoggedCollector`."""
        return GC_FILE, GC_DTYPES

    def rows(self, log: Iterable[str], pid: int, started_ns: int) -> list[Row]:
        """As of `LoggedCollector`."""
        return [_row(stop) for stop in read_stops(log, pid, started_ns)]


def _row(stop: GcPause | Safepoint) -> Row:
    if isinstance(stop, Safepoint):
        return stop.uptime_ns, "safepoint", stop.what, stop.total_ns, stop.reach_ns, _UNKNOWN, _UNKNOWN
    before, after = (_UNKNOWN if size is None else size for size in (stop.before_bytes, stop.after_bytes))
    return stop.start_ns, "pause", stop.what, stop.pause_ns, _UNKNOWN, before, after
