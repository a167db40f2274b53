"""Statistics of a running cluster's nodes while it is measured, and the cost of asking.

Nothing that is asked changes a cluster: no refresh, flush or collection comes of it.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from operator import itemgetter
from statistics import fmean
from types import TracebackType
from typing import Any, Self

import msgspec

from benchctl.engine.client import STATISTICS as FIELDS
from benchctl.engine.client import (
    WRITE_CLOCKS,
    NodeRequestError,
    Nodes,
    SearchClient,
    by_name,
    number_at,
    statistics_of,
    statistics_path,
    totals,
)
from benchctl.results.model import Asked

STATISTICS = "node statistics"
HOT_THREADS = "hot threads"
EVERY_S = 10.0
_TIMEOUT_S = 10.0
_NS_PER_MS = 1_000_000

_VALUES = tuple(name for name in FIELDS if name != "searches")
_PATHS = {
    STATISTICS: statistics_path(_VALUES),
    HOT_THREADS: "/_nodes/hot_threads",
}
_LEVELS = ("heap_used_bytes", "open_files", "segments", "store_bytes", "disk_available_bytes")
_COLLECTORS = {"gc_ms": "collection_time_in_millis", "collections": "collection_count"}
_FILTER = ",".join(
    f"nodes.*.{path}"
    for path in ("name", "timestamp", "process.timestamp", "jvm.gc.collectors", *map(FIELDS.get, _VALUES))
)


_FORMS: Mapping[str, type] = {STATISTICS: Nodes, HOT_THREADS: str}


@dataclass(frozen=True)
class ClusterReading:
    """Statistics of a cluster's nodes at a time."""

    asked_ns: int  # when they were asked, on the monotonic clock
    at_ns: int  # when they looked at their processes, on the mean: they do so once a second, and say when
    unsure_ns: int  # by how much that may be off: nobody knows when within the call they answered
    # name of a node -> name of a value -> the value; what a node does not say is missing. Times and counts
    # are since it was started.
    nodes: Mapping[str, Mapping[str, float]]

    def total(self, name: str) -> float | None:
        """Return a value over all nodes; None where a node does not report it."""
        return totals(self.nodes).get(name)


@dataclass
class _Cost:
    took_ns: list[int] = field(default_factory=list)
    total_bytes: int = 0
    failed: int = 0


class ClusterMeter:
    """Readings of a cluster every 10 s and on request, in separate threads; a context manager.

    Args:
        client: of the cluster.
        withheld: what it is not asked: STATISTICS or HOT_THREADS.
        clock: the monotonic clock, nanoseconds.
    """

    def __init__(
        self,
        client: SearchClient,
        withheld: Collection[str] = (),
        *,
        clock: Callable[[], int] = time.monotonic_ns,
        every_s: float = EVERY_S,
    ) -> None:
        self._client = client
        self._withheld = withheld
        self._clock = clock
        self._every_s = every_s
        self._costs = {name: _Cost() for name in _PATHS if name not in withheld}
        self._over = threading.Event()
        self._lock = threading.Lock()
        # One asks at the bounds of tasks, and does not wait for the other, which samples hot threads.
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="readings")
        self._watching: Future[None] | None = None
        self.readings: list[ClusterReading] = []
        self.hot_threads: list[tuple[int, str]] = []

    def __enter__(self) -> Self:
        self._watching = self._pool.submit(self._watch)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._pool.shutdown()
        if self._watching is not None and kind is None:
            self._watching.result()

    def read(self) -> "Future[ClusterReading | None]":
        """Request the statistics soon, without waiting; the result is None where there is no answer."""
        return self._pool.submit(self._read)

    def write_clocks(self) -> dict[str, float]:
        """Return milliseconds since the start that all nodes spent on writing, by name of the work."""
        reading = self._read()
        clocks = {} if reading is None else totals(reading.nodes)
        return {name: clocks[name] for name in WRITE_CLOCKS if name in clocks}

    @property
    def asked(self) -> dict[str, Asked]:
        """Return the cost of asking, by what was asked."""
        with self._lock:
            return {
                name: Asked(
                    calls=len(cost.took_ns),
                    total_ns=sum(cost.took_ns),
                    longest_ns=max(cost.took_ns),
                    total_bytes=cost.total_bytes,
                    failed=cost.failed,
                )
                for name, cost in self._costs.items()
                if cost.took_ns
            }

    @property
    def nodes(self) -> dict[str, dict[str, float]]:
        """Return each node's use between first and last reading, seconds, and state at the last."""
        by_node = {}
        for name, last in self.readings[-1].nodes.items() if self.readings else ():
            first = self.readings[0].nodes.get(name, {})
            used = {
                f"{what}_s": (last[f"{what}_ms"] - first[f"{what}_ms"]) / 1e3
                for what in ("cpu", "gc")
                if f"{what}_ms" in first.keys() & last.keys()
            }
            by_node[name] = used | {key: last[key] for key in _LEVELS if key in last}
        return by_node

    def lines(self, origin_ns: int) -> bytes:
        """Iterate over all readings as lines of JSON, in order; times are nanoseconds from `origin_ns`."""
        entries: list[tuple[int, object]] = [
            (reading.asked_ns, {"at_ns": reading.at_ns - origin_ns, "nodes": reading.nodes})
            for reading in self.readings
        ]
        entries += [(asked_ns, {"hot_threads": text}) for asked_ns, text in self.hot_threads]
        entries.sort(key=itemgetter(0))
        rows = [{"asked_ns": at_ns - origin_ns} | what for at_ns, what in entries if isinstance(what, dict)]
        return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)

    def _watch(self) -> None:
        while not self._over.wait(self._every_s):
            self._read()
            begun_ns = self._clock()
            text = self._ask(HOT_THREADS)
            if isinstance(text, str):
                self.hot_threads.append((begun_ns, text))

    def _read(self) -> ClusterReading | None:
        begun_ns = self._clock()
        answer = self._ask(STATISTICS)
        if not isinstance(answer, Nodes):
            return None
        reading = _reading(answer, begun_ns, self._clock())
        if reading is not None:
            with self._lock:
                self.readings.append(reading)
        return reading

    def _ask(self, what: str) -> object:
        if what in self._withheld:
            return None
        begun_ns, answer, size = self._clock(), None, 0
        # It may be too busy or gone, which the task itself will notice.
        with suppress(NodeRequestError):
            answer, size = ask(self._client, what)
        with self._lock:
            cost = self._costs[what]
            cost.took_ns.append(self._clock() - begun_ns)
            cost.total_bytes += size
            cost.failed += answer is None
        return answer


def ask(client: SearchClient, what: str) -> tuple[Any, int]:
    """Request STATISTICS or HOT_THREADS and return the answer, and its bytes.

    Raises:
        NodeRequestError: If the cluster refuses or does not answer.
    """
    params = {"filter_path": _FILTER} if what == STATISTICS else {}
    answer: Any = client.read(_PATHS[what], _FORMS[what], params=params, timeout_s=_TIMEOUT_S)
    return answer, client.answer_bytes


def withheld(client: SearchClient) -> dict[str, str]:
    """Return what a cluster does not report, and why, by asking for everything once."""
    reasons = {}
    for what in _PATHS:
        try:
            ask(client, what)
        except NodeRequestError as err:
            reasons[what] = f"HTTP {err.status}: {err.reason}" if err.status else err.reason
    return reasons


def _reading(answer: Nodes, begun_ns: int, ended_ns: int) -> ClusterReading | None:
    nodes, ages_ns = statistics_of(answer.nodes, _VALUES), []
    for name, node in by_name(answer.nodes).items():
        collected = {what: _over_collectors(node, key) for what, key in _COLLECTORS.items()}
        nodes[name] |= {what: value for what, value in collected.items() if value is not None}
        age_ms = (number_at(node, "timestamp") or 0) - (number_at(node, "process.timestamp") or 0)
        ages_ns.append(max(age_ms, 0) * _NS_PER_MS)
    if not nodes:
        return None
    half_ns = (ended_ns - begun_ns) // 2
    return ClusterReading(begun_ns, begun_ns + half_ns - round(fmean(ages_ns)), half_ns, nodes)


def _over_collectors(node: Mapping[str, Any], key: str) -> float | None:
    """Sum over a node's collectors; None where one does not report it."""
    try:
        values = [number_at(collector, key) for collector in node["jvm"]["gc"]["collectors"].values()]
    except (KeyError, TypeError, AttributeError):
        return None
    numbers = [value for value in values if value is not None]
    return sum(numbers) if numbers and len(numbers) == len(values) else None
