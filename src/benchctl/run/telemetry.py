"""Observes the nodes' processes and the driver during a fork: one reading a second, in its own thread."""

import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import numpy as np
import psutil

from benchctl.engine.client import NodeRequestError
from benchctl.engine.readings import ClusterReading
from benchctl.engine.usage import GcPause, ProcessGauge
from benchctl.results.samples import GC_DTYPES, SERIES_DTYPES, Columns

INTERVAL_S = 1.0
# Every request costs the node something.
MERGES_EVERY_NS = 2_000_000_000
MERGES_TIMEOUT_S = 1.0
_NS_PER_S = 1_000_000_000
# Shorter intervals are useless for CPU time, which the kernel counts in steps of 10 ms.
_LEAST_INTERVAL_NS = 100_000_000
_UNKNOWN = (math.nan,) * 6


class DriverClock:
    """CPU seconds of this process and of the processes of its clients, whose ids `workers` returns."""

    def __init__(self, workers: Callable[[], Sequence[int]] = tuple) -> None:
        self._workers = workers
        self._processes: dict[int, psutil.Process] = {}
        self._used: dict[int, float] = {}

    def __call__(self) -> float:
        """Since they started; includes those that have ended."""
        for pid in self._workers():
            with suppress(psutil.Error):
                if pid not in self._processes:
                    self._processes[pid] = psutil.Process(pid)
                times = self._processes[pid].cpu_times()
                self._used[pid] = times.user + times.system
        return time.process_time() + sum(self._used.values())


@dataclass(frozen=True)
class NodeWatch:
    """Means of observing a node."""

    gauge: ProcessGauge  # of the server process
    merges: Callable[[], Mapping[str, float]]  # asks the node, which takes a moment
    indexing: Callable[[], bool]  # whether a step that indexes is running; it is asked nothing otherwise


class Telemetry:
    """The readings of one fork, which began at `origin_ns`; `driver` are CPU seconds that the driver used."""

    def __init__(
        self,
        origin_ns: int,
        *,
        driver: Callable[[], float],
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._origin_ns = origin_ns
        self._driver = driver
        self._clock = clock
        self._rows: list[tuple[tuple[int, int], tuple[float, ...]]] = []
        self._pauses: list[tuple[int, GcPause]] = []

    @contextmanager
    def watching(self, boot: int, node: NodeWatch | None, interval_s: float = INTERVAL_S) -> Iterator[None]:
        """Take readings within the block, at its beginning and end and every `interval_s` seconds.

        `boot` is the node start of the fork; `node` is None for a remote cluster, which cannot be observed.
        """
        over = threading.Event()
        watch = _Watch(node, self._driver)
        with ThreadPoolExecutor(1, thread_name_prefix="telemetry") as pool:
            watching = pool.submit(self._run, boot, watch, interval_s, over)
            try:
                yield
            finally:
                over.set()
            # An error in there must not look like an idle node.
            watching.result()

    def add_pauses(self, boot: int, pauses: Iterable[GcPause]) -> None:
        """Keep what a node's log says about its garbage collector, on the fork's clock."""
        self._pauses += [(boot, pause) for pause in pauses]

    def add_readings(self, boot: int, readings: Sequence[ClusterReading]) -> None:
        """Keep what a running cluster told of all its nodes, where it knows what the columns are about."""
        names = [name for name in SERIES_DTYPES if name not in {"boot", "t_ns"}]
        before: ClusterReading | None = None
        for reading in sorted(readings, key=lambda reading: reading.at_ns):
            values = {
                "merges_current": reading.total("merges_current"),
                "merge_ms": reading.total("merge_ms"),
            }
            if before is not None and reading.at_ns - before.at_ns >= _LEAST_INTERVAL_NS:
                used = [state.total("cpu_ms") for state in (before, reading)]
                if None not in used and before.nodes.keys() == reading.nodes.keys():
                    cpu_s = ((used[1] or 0) - (used[0] or 0)) / 1e3
                    values["node_cpu_percent"] = _percent(cpu_s, reading.at_ns - before.at_ns)
            before = reading
            levels = [values.get(name) for name in names]
            row = tuple(math.nan if value is None else value for value in levels)
            self._rows.append(((boot, reading.at_ns - self._origin_ns), row))

    def series(self) -> Columns:
        """The readings, with the columns of SERIES_DTYPES, each of shape (n,)."""
        keys = np.array([key for key, _ in self._rows], np.int64).reshape(-1, 2)
        columns: Columns = {"boot": keys[:, 0].astype(np.int16), "t_ns": keys[:, 1]}
        names = [name for name in SERIES_DTYPES if name not in columns]
        values = np.array([value for _, value in self._rows], np.float64).reshape(-1, len(names))
        return columns | {name: values[:, number] for number, name in enumerate(names)}

    def pauses(self) -> Columns:
        """The pauses, with the columns of GC_DTYPES, each of shape (m,)."""
        pauses = [pause for _, pause in self._pauses]
        values: dict[str, list[int] | list[str]] = {
            "boot": [boot for boot, _ in self._pauses],
            "t_ns": [pause.start_ns for pause in pauses],
            "pause_ns": [pause.pause_ns for pause in pauses],
            "what": [pause.what for pause in pauses],
        }
        return {name: np.array(values[name], dtype) for name, dtype in GC_DTYPES.items()}

    def _run(self, boot: int, watch: "_Watch", interval_s: float, over: threading.Event) -> None:
        due_ns = self._clock()
        while True:
            self._read(boot, watch)
            due_ns = max(due_ns + round(interval_s * _NS_PER_S), self._clock())
            if over.wait((due_ns - self._clock()) / _NS_PER_S):
                self._read(boot, watch)
                return

    def _read(self, boot: int, watch: "_Watch") -> None:
        now_ns = self._clock()
        key = (boot, now_ns - self._origin_ns)
        if (values := watch.read(now_ns)) is not None:
            self._rows.append((key, values))


class _Watch:
    """A node start, reading by reading."""

    def __init__(self, node: NodeWatch | None, driver: Callable[[], float]) -> None:
        self._node = node
        self._driver = driver
        self._before_ns: int | None = None
        self._driver_before_s = math.nan
        self._used_s = math.nan
        self._asked_ns: int | None = None

    def read(self, now_ns: int) -> tuple[float, ...] | None:
        """Values in the order of SERIES_DTYPES; None too soon after the previous reading."""
        since_ns = math.nan if self._before_ns is None else now_ns - self._before_ns
        if since_ns < _LEAST_INTERVAL_NS:
            return None
        driver_s = self._driver()
        common = (_percent(driver_s - self._driver_before_s, since_ns), os.getloadavg()[0])
        self._before_ns, self._driver_before_s = now_ns, driver_s
        cpu, *others = _UNKNOWN if self._node is None else self._usage(self._node.gauge, since_ns)
        return (cpu, *common, *others, *self._merges(now_ns))

    def _usage(self, gauge: ProcessGauge, since_ns: float) -> tuple[float, ...]:
        usage = gauge.read()
        percent = _percent(usage.cpu_s - self._used_s, since_ns)
        self._used_s = usage.cpu_s
        return (
            percent,
            usage.rss_bytes,
            usage.read_bytes,
            usage.write_bytes,
            usage.context_switches,
            usage.major_faults,
        )

    def _merges(self, now_ns: int) -> tuple[float, float]:
        if self._node is None or not self._node.indexing():
            return math.nan, math.nan
        if self._asked_ns is not None and now_ns - self._asked_ns < MERGES_EVERY_NS:
            return math.nan, math.nan
        self._asked_ns = now_ns
        try:
            merges = self._node.merges()
        except NodeRequestError:
            # The node is too busy or dying, which the step itself will notice.
            return math.nan, math.nan
        return merges.get("merges_current", math.nan), merges.get("merge_ms", math.nan)


def _percent(cpu_s: float, wall_ns: float) -> float:
    return 100.0 * cpu_s * _NS_PER_S / wall_ns
