"""What a running cluster is asked while it is measured, and what becomes of the answers."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from benchctl.engine.client import SearchClient, loopback
from benchctl.engine.readings import HOT_THREADS, STATISTICS, ClusterMeter, withheld
from engine.fake_node import FakeNode
from waiting import eventually

ASKED = "/_nodes/stats/process,jvm,indices,fs/indexing,refresh,merge,flush,segments,store"
HOT = "/_nodes/hot_threads"
MS = 1_000_000


@pytest.fixture
def client(node: FakeNode) -> Iterator[SearchClient]:
    with SearchClient("opensearch", loopback(node.port)) as made:
        yield made


def told(name: str, cpu_ms: int, age_ms: int, **more: Any) -> dict[str, Any]:
    """As a node says it, as far as `filter_path` leaves it."""
    collectors = {
        "young": {"collection_count": 4, "collection_time_in_millis": 119},
        "G1 Concurrent GC": {"collection_count": 2, "collection_time_in_millis": 21},
    }
    return {
        "name": name,
        "timestamp": 10_000,
        "process": {"timestamp": 10_000 - age_ms, "cpu": {"total_in_millis": cpu_ms}},
        "jvm": {"mem": {"heap_used_in_bytes": 7}, "gc": {"collectors": collectors}},
        "indices": {"merges": {"current": 1, "total_time_in_millis": 5}, "segments": {"count": 3}},
        **more,
    }


def ticking() -> Callable[[], int]:
    """A clock that goes on by 10 ms whenever somebody looks."""
    now = iter(range(0, 10**15, 10 * MS))
    return lambda: next(now)


def test_values_are_summed_over_nodes_that_looked_at_their_processes_some_time_ago(
    node: FakeNode, client: SearchClient
):
    nodes = {"i": told("a", 100, 300), "j": told("b", 50, 500, fs={"total": {"available_in_bytes": 9}})}
    node.answers["GET", ASKED] = (200, {"nodes": nodes})
    with ClusterMeter(client, clock=ticking()) as meter:
        reading = meter.read().result()
        clocks = meter.write_clocks()
    assert reading is not None
    assert reading.total("cpu_ms") == 150
    assert (reading.total("gc_ms"), reading.total("collections")) == (280, 12)
    assert reading.total("disk_available_bytes") is None
    assert reading.nodes["b"]["disk_available_bytes"] == 9
    # Asked at 0, answered after three looks at the clock; the nodes had looked 400 ms before on the mean.
    assert (reading.asked_ns, reading.at_ns, reading.unsure_ns) == (0, 15 * MS - 400 * MS, 15 * MS)
    assert clocks == {"merge_ms": 10}
    assert meter.nodes["a"] == {"cpu_s": 0, "gc_s": 0, "heap_used_bytes": 7, "segments": 3}
    asked = meter.asked[STATISTICS]
    assert (asked.calls, asked.failed, asked.total_ns, asked.longest_ns) == (2, 0, 20 * MS, 10 * MS)
    assert asked.total_bytes == 2 * len(b'{"nodes": }') + 2 * len(str(nodes))
    assert node.seen[0][2]["filter_path"].startswith(
        "nodes.*.name,nodes.*.timestamp,nodes.*.process.timestamp"
    )
    # Nothing that changes a cluster.
    assert {method for method, *_ in node.seen} == {"GET"}


def test_a_cluster_is_looked_at_again_and_again_and_all_of_it_is_kept(node: FakeNode, client: SearchClient):
    node.answers["GET", ASKED] = (200, {"nodes": {"i": told("a", 1, 0)}})
    node.answers["GET", HOT] = (200, b'"::: {a}\\n  17% cpu usage"')
    with ClusterMeter(client, every_s=0.01) as meter:
        assert eventually(lambda: len(meter.hot_threads) >= 2)
    rows = [msgspec.json.decode(line) for line in meter.lines(0).splitlines()]
    assert [row["asked_ns"] for row in rows] == sorted(row["asked_ns"] for row in rows)
    assert {"nodes", "hot_threads"} <= {key for row in rows for key in row}
    assert meter.asked[HOT_THREADS].calls >= 2


def test_what_is_not_answered_is_counted_and_nothing_else(node: FakeNode, client: SearchClient):
    with ClusterMeter(client) as meter:
        assert meter.read().result() is None
        assert meter.write_clocks() == {}
    assert meter.asked[STATISTICS].failed == meter.asked[STATISTICS].calls == 2
    assert (meter.nodes, meter.lines(0)) == ({}, b"")
    assert len(node.seen) == 2


def test_what_a_cluster_refuses_is_known_before_and_never_asked_again(node: FakeNode, client: SearchClient):
    node.answers["GET", ASKED] = (200, {"nodes": {}})
    node.answers["GET", HOT] = (403, {"message": "no permissions for [cluster:monitor/nodes/hot_threads]"})
    assert withheld(client) == {
        HOT_THREADS: "HTTP 403: no permissions for [cluster:monitor/nodes/hot_threads]"
    }
    node.seen.clear()
    with ClusterMeter(client, {HOT_THREADS}, every_s=0.01):
        assert eventually(lambda: len(node.seen) >= 3)
    assert {path for _, path, *_ in node.seen} == {ASKED}
