"""Statistics of a running cluster's nodes at the bounds of tasks.

Nothing that is asked changes a cluster: no refresh, flush or collection comes of it.
"""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from statistics import fmean
from types import TracebackType
from typing import Any, Self

from benchctl.engine.client import STATISTICS as FIELDS
from benchctl.engine.client import (
    WRITE_CLOCKS,
    NodeRequestError,
    Nodes,
    SearchClient,
    by_name,
    number_at,
    statistics_of,
    totals,
)

STATISTICS = "node statistics"
_TIMEOUT_S = 10.0
_NS_PER_MS = 1_000_000

_VALUES = ("cpu_ms", *WRITE_CLOCKS)
_PATH = "/_nodes/stats/process,jvm,indices/indexing,refresh,merge,flush"
_FILTER = ",".join(
    f"nodes.*.{path}"
    for path in ("name", "timestamp", "process.timestamp", "jvm.gc.collectors", *map(FIELDS.get, _VALUES))
)


@dataclass(frozen=True)
class ClusterReading:
    """Statistics of a cluster's nodes at a time."""

    at_ns: int  # when they looked at their processes, on the mean: they do so once a second, and say when
    unsure_ns: int  # by how much that may be off: nobody knows when within the call they answered
    # name of a node -> name of a value -> the value; what a node does not say is missing. Times are since it
    # was started.
    nodes: Mapping[str, Mapping[str, float]]

    def total(self, name: str) -> float | None:
        """Return a value over all nodes; None where a node does not report it."""
        return totals(self.nodes).get(name)


class ClusterMeter:
    """Readings of a cluster on request, in a separate thread; a context manager.

    Args:
        client: of the cluster.
        clock: the monotonic clock, nanoseconds.
    """

    def __init__(self, client: SearchClient, *, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._client = client
        self._clock = clock
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="readings")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()

    def read(self) -> "Future[ClusterReading | None]":
        """Request the statistics soon, without waiting; the result is None where there is no answer."""
        return self._pool.submit(self._read)

    def write_clocks(self) -> dict[str, float]:
        """Return milliseconds since the start that all nodes spent on writing, by name of the work."""
        reading = self._read()
        clocks = {} if reading is None else totals(reading.nodes)
        return {name: clocks[name] for name in WRITE_CLOCKS if name in clocks}

    def _read(self) -> ClusterReading | None:
        begun_ns = self._clock()
        # It may be too busy or gone, which the task itself will notice.
        with suppress(NodeRequestError):
            return _reading(ask(self._client), begun_ns, self._clock())
        return None


def ask(client: SearchClient) -> Nodes:
    """Request the statistics.

    Raises:
        NodeRequestError: If the cluster refuses or does not answer.
    """
    return client.read(_PATH, Nodes, params={"filter_path": _FILTER}, timeout_s=_TIMEOUT_S)


def withheld(client: SearchClient) -> dict[str, str]:
    """Return what a cluster does not report, and why, by asking for it once."""
    try:
        ask(client)
    except NodeRequestError as err:
        return {STATISTICS: f"HTTP {err.status}: {err.reason}" if err.status else err.reason}
    return {}


def _reading(answer: Nodes, begun_ns: int, ended_ns: int) -> ClusterReading | None:
    nodes, ages_ns = statistics_of(answer.nodes, _VALUES), []
    for name, node in by_name(answer.nodes).items():
        collected_ms = _collected_ms(node)
        nodes[name] |= {} if collected_ms is None else {"gc_ms": collected_ms}
        age_ms = (number_at(node, "timestamp") or 0) - (number_at(node, "process.timestamp") or 0)
        ages_ns.append(max(age_ms, 0) * _NS_PER_MS)
    if not nodes:
        return None
    half_ns = (ended_ns - begun_ns) // 2
    return ClusterReading(begun_ns + half_ns - round(fmean(ages_ns)), half_ns, nodes)


def _collected_ms(node: Mapping[str, Any]) -> float | None:
    """Sum over a node's collectors; None where one does not report it."""
    try:
        collectors = node["jvm"]["gc"]["collectors"].values()
        values = [number_at(collector, "collection_time_in_millis") for collector in collectors]
    except (KeyError, TypeError, AttributeError):
        return None
    numbers = [value for value in values if value is not None]
    return sum(numbers) if numbers and len(numbers) == len(values) else None
