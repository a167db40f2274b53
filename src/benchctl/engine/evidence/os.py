"""Evidence `os`: what the kernel counts of the node's process, read several times a second."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from benchctl.engine.evidence.collector import Scene
from benchctl.engine.gauge import Gauge, ProcessGauge, Usage
from benchctl.engine.node import Node
from benchctl.results.evidence import OS_DTYPES, OS_FILE, stacked_columns, write_evidence
from benchctl.results.plan import EvidenceKind

INTERVAL_S = 0.25
"""Short tasks are told apart, and reading takes about 1 % of a CPU."""


class OsCollector:
    """Reads the node's process from the first task to the last, in a thread of its own.

    Args:
        scene: of the node start.
        gauge: makes what reads a process, by its id.
        clock: the monotonic clock, nanoseconds.
        interval_s: between readings, seconds.
    """

    kind: EvidenceKind = "os"

    def __init__(
        self,
        scene: Scene,
        *,
        gauge: Callable[[int], Gauge] = ProcessGauge,
        clock: Callable[[], int] = time.monotonic_ns,
        interval_s: float = INTERVAL_S,
    ) -> None:
        self._scene = scene
        self._gauge = gauge
        self._clock = clock
        self._interval_s = interval_s
        self._over = threading.Event()
        self._pool: ThreadPoolExecutor | None = None
        self._reading: Future[None] | None = None
        self._rows: list[tuple[float, ...]] = []

    def flags(self) -> tuple[str, ...]:
        """None."""
        return ()

    def begin(self, node: Node) -> None:
        """Take the first reading, and more from then on."""
        gauge, started_ns = self._gauge(node.pid), node.started_ns
        self._read(gauge, started_ns)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="evidence-os")
        self._reading = self._pool.submit(self._run, gauge, started_ns)

    def measured(self, node: Node) -> None:
        """Take the last reading, while there is something to read."""
        del node
        self._stop()

    def end(self) -> None:
        """Write what was read; nothing of a node that never was ready.

        Raises:
            BenchctlError: the disk is full or cannot be written.
        """
        self._stop()
        if self._rows:
            columns = stacked_columns(self._rows, OS_DTYPES)
            write_evidence(columns, OS_DTYPES, self._scene.folder / OS_FILE)

    def _run(self, gauge: Gauge, started_ns: int) -> None:
        while not self._over.wait(self._interval_s):
            self._read(gauge, started_ns)
        self._read(gauge, started_ns)

    def _stop(self) -> None:
        self._over.set()
        if self._pool is not None:
            self._pool.shutdown()
        if self._reading is not None:
            # A mistake in there must not pass for a quiet node.
            self._reading.result()

    def _read(self, gauge: Gauge, started_ns: int) -> None:
        usage = gauge.read()
        self._rows.append((self._clock() - started_ns, *_values(usage)))


def _values(usage: Usage) -> tuple[float, ...]:
    """In the order of OS_DTYPES, behind the time."""
    return (
        usage.user_s,
        usage.system_s,
        usage.minor_faults,
        usage.major_faults,
        usage.read_bytes,
        usage.write_bytes,
        usage.voluntary_switches,
        usage.involuntary_switches,
        usage.threads,
        usage.rss_bytes,
    )
