"""What a running cluster is asked while it is measured, and what becomes of the answers."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from benchctl.engine.client import SearchClient, loopback
from benchctl.engine.readings import STATISTICS, ClusterMeter, withheld
from engine.fake_node import FakeNode

ASKED = "/_nodes/stats/process,jvm,indices/indexing,refresh,merge,flush"
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
    flushed = {"merges": {"total_time_in_millis": 5}, "flush": {"total_time_in_millis": 9}}
    nodes = {"i": told("a", 100, 300), "j": told("b", 50, 500, indices=flushed)}
    node.answers["GET", ASKED] = (200, {"nodes": nodes})
    with ClusterMeter(client, clock=ticking()) as meter:
        reading = meter.read().result()
        clocks = meter.write_clocks()
    assert reading is not None
    assert reading.total("cpu_ms") == 150
    assert reading.total("gc_ms") == 280
    assert reading.total("flush_ms") is None
    assert reading.nodes["b"]["flush_ms"] == 9
    # Asked at 0, answered at 10 ms; the nodes had looked 400 ms before on the mean.
    assert (reading.at_ns, reading.unsure_ns) == (5 * MS - 400 * MS, 5 * MS)
    assert clocks == {"merge_ms": 10}
    assert node.seen[0][2]["filter_path"].startswith(
        "nodes.*.name,nodes.*.timestamp,nodes.*.process.timestamp"
    )
    # Nothing that changes a cluster.
    assert {method for method, *_ in node.seen} == {"GET"}


def test_what_is_not_answered_is_not_known(node: FakeNode, client: SearchClient):
    with ClusterMeter(client) as meter:
        assert meter.read().result() is None
        assert meter.write_clocks() == {}
    assert len(node.seen) == 2


def test_what_a_cluster_refuses_is_known_before(node: FakeNode, client: SearchClient):
    node.answers["GET", ASKED] = (200, {"nodes": {}})
    assert withheld(client) == {}
    node.answers["GET", ASKED] = (403, {"message": "no permissions for [cluster:monitor/nodes/stats]"})
    assert withheld(client) == {STATISTICS: "HTTP 403: no permissions for [cluster:monitor/nodes/stats]"}
