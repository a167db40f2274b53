"""A running cluster in use: what it is, whether it stays the same, its searches."""

import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from benchctl.endpoint import Endpoint
from benchctl.engine.client import SearchClient, loopback
from benchctl.engine.target import (
    Address,
    ClusterFacts,
    ClusterIndex,
    Target,
    describe_cluster,
    explained,
    find_data_stream,
    find_index,
    identify,
    node_starts,
    searches_of,
)
from benchctl.errors import BenchctlError
from engine.fake_node import FakeNode
from stub_cluster import stub_cluster

NODES = ("GET", "/_nodes/jvm,plugins")
STARTS = ("GET", "/_nodes/jvm")
SEARCHES = ("GET", "/_nodes/stats/indices/search")
FACTS = ClusterFacts("elasticsearch", "8.11.0", "d9ec", "9.8.0", "Temurin 21.0.8", ("-Xmx1g",), ("apm",))

Attach = Callable[..., AbstractContextManager[Target]]


def described(**changes: Any) -> dict[str, Any]:
    return {
        "version": "8.11.0",
        "build_hash": "d9ec",
        "build_flavor": "default",
        "jvm": {
            "vm_vendor": "Temurin",
            "version": "21.0.8",
            "input_arguments": ["-Xmx1g", "-Djavax.net.ssl.keyStorePassword=hunter2"],
        },
        "modules": [{"name": "x-pack-core"}, {"name": "apm"}],
        "plugins": [{"name": "analysis-icu"}],
        **changes,
    }


def starts(**times: int) -> tuple[int, Any]:
    nodes = {
        name: {"jvm": {"start_time_in_millis": time}, "roles": ["data_hot", "ingest"]}
        for name, time in times.items()
    }
    return 200, {"nodes": {**nodes, "m": {"jvm": {"start_time_in_millis": 9}, "roles": ["master"]}}}


def searches(*counts: int) -> tuple[int, Any]:
    nodes = {str(n): {"indices": {"search": {"query_total": count}}} for n, count in enumerate(counts)}
    return 200, {"nodes": nodes}


@pytest.fixture
def client(node: FakeNode) -> Iterator[SearchClient]:
    with SearchClient("elasticsearch", loopback(node.port)) as made:
        yield made


@pytest.fixture
def use(node: FakeNode) -> Attach:
    """Attach to the fake node: two nodes with data, a hundred searches so far."""
    node.answers[STARTS] = starts(a=1, b=2)
    node.answers[SEARCHES] = searches(60, 40)

    @contextmanager
    def begin(shards: int = 1) -> Iterator[Target]:
        with SearchClient("elasticsearch", loopback(node.port)) as client:
            yield Target(Address("prod", loopback(node.port)), client, FACTS, shards)

    return begin


@pytest.mark.parametrize(("flavour", "engine"), [(True, "elasticsearch"), (False, "opensearch")])
def test_a_cluster_says_what_it_is(node: FakeNode, engine: str, *, flavour: bool):
    said = described()
    if not flavour:
        del said["build_flavor"]
    node.answers[NODES] = (200, {"nodes": {"x": said}})
    node.answers["GET", "/"] = (200, {"version": {"lucene_version": "9.8.0"}})
    found = identify(Address("prod", loopback(node.port)))
    assert found == ClusterFacts(
        engine=engine,  # type: ignore[arg-type]
        version="8.11.0",
        build="d9ec",
        lucene="9.8.0",
        jdk="Temurin 21.0.8",
        jvm_flags=("-Xmx1g", "-Djavax.net.ssl.keyStorePassword={secret}"),
        modules=("analysis-icu", "apm", "x-pack-core"),
    )


def test_core_builds_keep_lucenes_version_to_themselves(node: FakeNode, client: SearchClient):
    node.answers[NODES] = (200, {"nodes": {"x": described()}})
    node.answers["GET", "/"] = (405, {"error": "Incorrect HTTP method"})
    assert describe_cluster(client).lucene == "unknown"


def test_several_versions_are_no_single_measurement(node: FakeNode, client: SearchClient):
    nodes = {"x": described(), "y": described(version="8.12.0")}
    node.answers[NODES] = (200, {"nodes": nodes})
    with pytest.raises(BenchctlError, match=r"several versions: 8\.11\.0, 8\.12\.0"):
        describe_cluster(client)


def test_a_data_stream_is_counted_with_all_that_is_behind_it(node: FakeNode, client: SearchClient):
    stats = ("GET", "/logs-x/_stats/docs")
    node.answers[stats] = (404, {"error": {"type": "index_not_found_exception", "reason": "no such index"}})
    assert find_data_stream(client, "logs-x") is None
    counted = {f".ds-logs-x-{number}": {"primaries": {"docs": {"count": number}}} for number in (1, 2)}
    node.answers[stats] = (200, {"indices": counted})
    settings = {name: {"settings": {"index.number_of_shards": "2"}} for name in counted}
    node.answers["GET", "/logs-x/_settings"] = (200, settings)
    assert find_data_stream(client, "logs-x") == ClusterIndex(documents=3, shards=4)


def test_an_index_is_found_missing_or_something_else(node: FakeNode, client: SearchClient):
    stats = ("GET", "/big5/_stats/docs")
    node.answers[stats] = (404, {"error": {"type": "index_not_found_exception", "reason": "no such index"}})
    assert find_index(client, "big5") is None
    node.answers[stats] = (200, {"indices": {"big5": {"primaries": {"docs": {"count": 7}}}}})
    settings = {"big5": {"settings": {"index.number_of_shards": "3"}}}
    node.answers["GET", "/big5/_settings"] = (200, settings)
    assert find_index(client, "big5") == ClusterIndex(documents=7, shards=3)
    node.answers[stats] = (200, {"indices": {"big5-000001": {"primaries": {"docs": {"count": 7}}}}})
    with pytest.raises(BenchctlError, match="matches other indices there: big5-000001"):
        find_index(client, "big5")
    node.answers[stats] = (200, {"indices": {}})
    with pytest.raises(BenchctlError, match="'big5' is red"):
        find_index(client, "big5")


SERVERLESS = (410, {"error": {"type": "api_not_available_exception", "reason": "not in serverless mode"}})


def test_a_cluster_without_apis_of_nodes_is_what_it_says_at_its_root(node: FakeNode, client: SearchClient):
    for path in (NODES[1], STARTS[1], SEARCHES[1], "/big5/_stats/docs"):
        node.answers["GET", path] = SERVERLESS
    version = {"number": "8.11.0", "build_flavor": "serverless", "build_hash": "00"}
    node.answers["GET", "/"] = (200, {"version": version})
    assert describe_cluster(client) == ClusterFacts(
        "elasticsearch", "8.11.0", "00", "unknown", "unknown", (), ()
    )
    node.answers["GET", "/"] = (200, {"version": {"distribution": "opensearch", "number": "2.11.0"}})
    assert describe_cluster(client).engine == "opensearch"
    assert (node_starts(client), searches_of(client)) == ({}, None)
    node.answers["GET", "/big5/_settings"] = (200, {"big5": {"settings": {}}})
    node.answers["GET", "/big5/_count"] = (200, {"count": 5})
    assert find_index(client, "big5") == ClusterIndex(documents=5, shards=1)
    node.answers["GET", "/big5/_settings"] = (404, {"error": "no such index"})
    assert find_index(client, "big5") is None


def test_what_a_cluster_leaves_out_is_unknown(node: FakeNode, client: SearchClient):
    node.answers[NODES] = (200, {"nodes": {"x": {"version": "8.11.0"}}})
    node.answers["GET", "/"] = (200, {"version": {"build_flavor": "default"}})
    assert describe_cluster(client) == ClusterFacts(
        "elasticsearch", "8.11.0", "unknown", "unknown", "unknown", (), ()
    )
    node.answers[STARTS] = (200, {"nodes": {"x": {"name": "x", "roles": ["data"]}}})
    assert node_starts(client) == {"x": 0}
    node.answers[SEARCHES] = (200, {"nodes": {"x": {"indices": {}}}})
    assert searches_of(client) is None


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (
            200,
            {"nodes": {"x": {}}},
            "GET /_nodes/jvm,plugins got status 200: .* field `version`",
        ),
        (200, b"<html>Welcome</html>", r"does not respond with JSON \(HTTP 200\)"),
        (503, "<html>Gr\u00f6\u00dfe</html>".encode("latin-1"), r"does not respond with JSON \(HTTP 503\)"),
    ],
)
def test_another_answer_is_told_with_its_status(node: FakeNode, status: int, body: Any, message: str):
    node.answers[NODES] = (status, body)
    if isinstance(body, bytes):
        node.headers = {"Content-Type": "text/html"}
    with pytest.raises(BenchctlError, match=message) as caught:
        identify(Address("prod", loopback(node.port)))
    assert f"prod at http://127.0.0.1:{node.port}" in caught.value.message


def test_all_nodes_count(client: SearchClient, use: Attach):
    with use():
        assert searches_of(client) == 100
        assert node_starts(client) == {"a": 1, "b": 2}


def test_a_cluster_is_used_as_it_is(node: FakeNode, use: Attach):
    with use() as target:
        assert (target.start_s, target.wait_idle(), target.stop()) == (0.0, 0.0, 0.0)
        assert (target.version, target.build, target.lucene) == ("8.11.0", "d9ec", "9.8.0")
        assert target.command == ("-Xmx1g",)
        assert target.endpoint == loopback(node.port)
        target.check_alive(within_s=1.0)
    assert all(method == "GET" for method, _, _, _ in node.seen)


def test_searches_are_counted_from_the_beginning_of_the_use(node: FakeNode, use: Attach):
    with use() as target:
        node.answers[SEARCHES] = searches(65, 45)
        assert target.searches_counted() == 10


def test_several_shards_make_the_count_say_nothing(use: Attach):
    with use(shards=3) as target:
        assert target.searches_counted() is None


def test_a_node_that_was_started_anew_spoils_the_use(node: FakeNode, use: Attach):
    with use() as target:
        node.answers[STARTS] = starts(a=1, b=3)
        with pytest.raises(BenchctlError, match="its node b was restarted while it was measured"):
            target.searches_counted()
        node.answers[STARTS] = starts(a=1, c=2)
        with pytest.raises(BenchctlError, match="its node b went away, node c was added while"):
            target.check_alive()


def _use(port: int) -> None:
    """Everything that is asked of a target that is filled already."""
    address = Address("prod", Endpoint((f"http://127.0.0.1:{port}",)))
    facts = identify(address)
    with explained("prod", address.endpoint), SearchClient(facts.engine, address.endpoint) as client:
        find_index(client, "big5")
        find_data_stream(client, "big5")
        client.segments("big5")
    with SearchClient(facts.engine, address.endpoint) as client:
        Target(address, client, facts, 1).searches_counted()


def _ways(value: object, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield way
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from _ways(inner, (*way, key))


def _with(value: Any, way: tuple[Any, ...], other: object) -> Any:
    if not way:
        return other
    changed = copy.copy(value)
    changed[way[0]] = _with(value[way[0]], way[1:], other)
    return changed


@pytest.mark.parametrize("other", [3, "x", [], None, {"a": 1}])
def test_values_of_other_types_are_unknown_or_told_with_their_request(other: object):
    with stub_cluster() as node:
        node.answers[("GET", "/_nodes/stats/indices/search")] = (200, {"nodes": {"n": {"indices": {}}}})
        node.answers[("GET", "/big5/_count")] = (200, {"count": 1_000})
        _use(node.port)
        usual = dict(node.answers)
        told = []
        for asked, (_, answer) in usual.items():
            for way in () if callable(answer) else _ways(answer):
                node.answers = usual | {asked: (200, _with(answer, way, other))}
                try:
                    _use(node.port)
                except BenchctlError as err:
                    told.append(err.message)
    assert told
    assert [message for message in told if not message.startswith("prod at http")] == []
