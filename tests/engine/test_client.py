"""What a node is asked beside the measured requests, and what is made of its answers."""

from collections.abc import Callable, Iterator
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.engine.client import (
    NodeInfo,
    NodeRequestError,
    SearchClient,
    loopback,
    node_reason,
)
from benchctl.results.model import SegmentFacts
from benchctl.results.plan import EngineName
from engine.fake_node import FakeNode

ENGINES: tuple[EngineName, ...] = get_args(EngineName)


@pytest.fixture(params=ENGINES)
def client(request: pytest.FixtureRequest, node: FakeNode) -> Iterator[SearchClient]:
    with SearchClient(request.param, loopback(node.port)) as made:
        yield made


def test_info_is_asked_of_the_nodes_api(client: SearchClient, node: FakeNode):
    said = {"version": "8.11.0", "build_hash": "d9ec", "process": {"id": 42}}
    node.answers["GET", "/_nodes/_local/process"] = (200, {"nodes": {"x": said}})
    assert client.info() == NodeInfo("8.11.0", "d9ec", 42)


def test_why_a_shard_is_not_started_is_asked_for(client: SearchClient, node: FakeNode):
    assert client.unassigned() == []
    corrupt = {"type": "corrupt_index_exception", "reason": "failed engine", "caused_by": None}
    decision = {"node_decision": "no", "store": {"in_sync": True, "store_exception": corrupt}}
    said = {"index": "big5", "current_state": "unassigned", "node_allocation_decisions": [decision]}
    node.answers["GET", "/_cluster/allocation/explain"] = (200, said)
    assert client.unassigned() == ["Caused by: corrupt_index_exception: failed engine"]


def test_a_refusal_has_the_status_and_the_innermost_reason(client: SearchClient, node: FakeNode):
    shard = {"reason": {"type": "illegal_argument_exception", "reason": "no such field"}}
    error = {
        "type": "search_phase_execution_exception",
        "reason": "all shards failed",
        "failed_shards": [shard],
    }
    node.answers["POST", "/big5/_search"] = (400, {"error": error, "status": 400})
    with pytest.raises(NodeRequestError) as caught:
        client.search("big5", {})
    assert caught.value.status == 400
    assert caught.value.reason == "illegal_argument_exception: no such field"
    assert "POST /big5/_search got status 400" in caught.value.message


@pytest.mark.parametrize("state", ["yellow", "green", "red"])
def test_health_waits_on_the_nodes_side(client: SearchClient, node: FakeNode, state: str):
    node.answers["GET", "/_cluster/health/big5"] = (200, {"status": state})
    assert client.health("big5", 1.5) == state
    assert node.seen[0][2] == {"wait_for_status": "yellow", "timeout": "1500ms"}


NO_MASTER = {"error": {"type": "master_not_discovered_exception", "reason": None}, "status": 503}


def test_health_without_a_state_is_an_error(client: SearchClient, node: FakeNode):
    node.answers["GET", "/_cluster/health"] = (408, {"status": "red", "timed_out": True})
    assert client.health(None, 2.0) == "red"
    node.answers["GET", "/_cluster/health"] = (503, NO_MASTER)
    with pytest.raises(NodeRequestError, match="master_not_discovered"):
        client.health(None, 2.0)


def test_clocks_of_an_index_are_those_of_the_primaries(client: SearchClient, node: FakeNode):
    primaries = {
        "indexing": {"index_time_in_millis": 1},
        "refresh": {"total_time_in_millis": 2},
        "merges": {"total_time_in_millis": 3},
        "flush": {"total_time_in_millis": 4},
    }
    path = "/big5/_stats/indexing,refresh,merge,flush"
    node.answers["GET", path] = (200, {"_all": {"primaries": primaries}})
    assert client.write_clocks_of("big5") == {
        "indexing_ms": 1,
        "refresh_ms": 2,
        "merge_ms": 3,
        "flush_ms": 4,
    }


def segment(documents: int) -> dict[str, Any]:
    return {
        "num_docs": documents,
        "size_in_bytes": 10 * documents,
        "version": "9.8.0",
        "compound": documents > 3,
    }


def test_segments_come_in_the_order_of_shard_and_generation(client: SearchClient, node: FakeNode):
    first = {"routing": {"primary": True}, "segments": {"_10": segment(3), "_z": segment(2)}}
    replica = {"routing": {"primary": False}, "segments": {"_0": segment(9)}}
    tenth = {"routing": {"primary": True}, "segments": {"_0": segment(4)}}
    shards = {"10": [tenth], "2": [replica, first]}
    node.answers["GET", "/big5/_segments"] = (200, {"indices": {"big5": {"shards": shards}}})
    assert client.segments("big5") == [SegmentFacts(n, 10 * n, "9.8.0", n > 3) for n in (2, 3, 4)]


def test_segments_of_several_indices_come_in_the_order_of_the_names(client: SearchClient, node: FakeNode):
    def index(documents: int) -> dict[str, Any]:
        return {"shards": {"0": [{"routing": {"primary": True}, "segments": {"_0": segment(documents)}}]}}

    found = {".ds-s-000002": index(5), "a": index(2), ".ds-s-000001": index(4), "b": index(1)}
    node.answers["GET", "/b,a,s/_segments"] = (200, {"indices": found})
    assert [one.documents for one in client.segments("b,a,s")] == [1, 2, 4, 5]


def test_several_indices_are_asked_at_once(client: SearchClient, node: FakeNode):
    node.answers["GET", "/a,b/_count"] = (200, {"count": 7})
    node.answers["GET", "/_cluster/health/a,b"] = (200, {"active_primary_shards": 3})
    node.answers["GET", "/_cluster/health"] = (200, {"active_primary_shards": 4})
    settings = {"a": {"settings": {"index.refresh_interval": "5s"}}, "b": {"settings": {}}}
    node.answers["GET", "/a,b/_settings"] = (200, settings)
    node.answers["GET", "/a,b/_stats/translog"] = (
        200,
        {"_all": {"primaries": {"translog": {"operations": 4}}, "total": {"translog": {"operations": 9}}}},
    )
    assert client.count("a,b") == 7
    assert (client.primary_shards("a,b"), client.primary_shards()) == (3, 4)
    assert client.setting("a,b", "index.refresh_interval") == {"a": "5s", "b": None}
    assert client.translog_operations("a,b") == 9


def test_counters_are_those_of_all_nodes(client: SearchClient, node: FakeNode):
    searches = [{"indices": {"search": {"query_total": count}}} for count in (12, 5)]
    node.answers["GET", "/_nodes/stats/indices/search"] = (
        200,
        {"nodes": dict(zip("xy", searches, strict=True))},
    )
    merges = {"merges": {"current": 2, "total_time_in_millis": 700, "total": 9}}
    nodes = {"x": {"indices": {**merges, "flush": {"total_time_in_millis": 1}}}, "y": {"indices": merges}}
    node.answers["GET", "/_nodes/stats/indices/merge,flush"] = (200, {"nodes": nodes})
    assert client.node_search_count() == 17
    assert client.statistics("merge_ms", "flush_ms") == {"merge_ms": 1400}


Step = Callable[[SearchClient], None]
STEPS: list[tuple[Step, tuple[str, str, dict[str, str], Any]]] = [
    (lambda client: client.create_index("a", {"x": 1}), ("PUT", "/a", {}, {"x": 1})),
    (lambda client: client.refresh("a"), ("POST", "/a/_refresh", {}, None)),
    (
        lambda client: client.flush("a"),
        ("POST", "/a/_flush", {"force": "true", "wait_if_ongoing": "true"}, None),
    ),
    (lambda client: client.force_merge("a", 2), ("POST", "/a/_forcemerge", {"max_num_segments": "2"}, None)),
    (lambda client: client.create_index("a/b?c", {}), ("PUT", "/a%2Fb%3Fc", {}, {})),
    (
        lambda client: client.search("a", {"size": 0}, {"request_cache": "false"}),
        ("POST", "/a/_search", {"request_cache": "false"}, {"size": 0}),
    ),
]


@pytest.mark.parametrize(("step", "expected"), STEPS)
def test_each_step_is_one_request(
    client: SearchClient, node: FakeNode, step: Step, expected: tuple[str, str, dict[str, str], Any]
):
    node.answers[expected[0], expected[1]] = (200, {"acknowledged": True})
    step(client)
    assert node.seen == [expected]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.sampled_from(["error", "caused_by", "reason", "type", "failed_shards"]), inner)
    ),
)


@given(JSON)
def test_any_answer_gives_some_reason(answer: Any):
    reason = node_reason(answer)
    assert reason
    assert len(reason) <= 400


def test_the_reason_of_a_cause_within_a_cause():
    inner = {"type": "too_many_buckets_exception", "reason": "too many"}
    assert node_reason({"error": {"type": "a", "reason": "b", "caused_by": inner}}) == (
        "too_many_buckets_exception: too many"
    )
