"""Every type of operation against real nodes: it works as judged, or the node says why it cannot."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from benchctl.engine.answers import ask
from benchctl.engine.declared import stand_ins
from benchctl.engine.node import Node
from benchctl.load.transport import Request, WireClient
from benchctl.load.work.openers import open_workload
from benchctl.results.plan import EngineName
from benchctl.results.samples import Outcome
from benchctl.track.operations import Asking, Cannot
from benchctl.track.operations.catalogue import OPERATION_TYPES, decode_operation
from integration.conftest import Boots
from integration.driver import DOCUMENTS, INDEX, OK, UNSUPPORTED, Driver


@pytest.fixture(scope="module")
def repository(shared: Path, engine: EngineName) -> Path:
    """A folder that nodes may write snapshots to, whoever they run as."""
    folder = shared / f"repository-{engine}"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


@pytest.fixture(scope="module")
def node(boots: Boots, shared: Path, repository: Path, engine: EngineName) -> Iterator[Node]:
    with boots(engine, shared / engine, settings={"path.repo": str(repository)}) as started:
        yield started


@pytest.fixture
def driver(node: Node, engine: EngineName) -> Iterator[Driver]:
    """It finds no index, and leaves none."""
    with WireClient(f"http://127.0.0.1:{node.http_port}") as wire:
        yield Driver(node, wire, engine)
    for name in node.client.request("GET", "/_settings"):
        node.client.request("DELETE", f"/{name}")


SORTED = {"size": 7, "sort": [{"n": "asc"}], "track_total_hits": True}
COMPOSITE = {
    "size": 0,
    "track_total_hits": True,
    "aggs": {
        "all": {
            "nested": {"path": "in"},
            "aggs": {"pages": {"composite": {"sources": [{"n": {"terms": {"field": "in.n"}}}], "size": 7}}},
        }
    },
}
# Forty documents, seven a page: five full pages, and one of five.
PAGES = 6
# Of a track's log of queries, and of its element: `test_query_logs` sends them.
OF_A_LOG = {"logged-search", "all-together"}
ONE_VALUE = {"n": {"kind": "integer", "min": 0, "max": DOCUMENTS - 1}}


def test_every_type_of_operation(driver: Driver, engine: EngineName, repository: Path):
    build(driver)
    index_vectors(driver, repository / "vectors.hdf5")
    search(driver)
    if engine == "elasticsearch":
        # OpenSearch's core knows no vectors.
        find_neighbours(driver)
    page(driver)
    raw(driver)
    clear_caches(driver)
    administer(driver)
    snapshot(driver, repository)
    declare(driver, engine)
    compose(driver, engine)
    lacking(driver, engine)
    for kind in LACKING_EVERYWHERE:
        driver.run(kind, UNSUPPORTED, **LACKING_EVERYWHERE[kind])
    assert driver.types == set(OPERATION_TYPES) - OF_A_LOG


def build(driver: Driver) -> None:
    driver.run("create-index", settings={"refresh_interval": "-1"})
    driver.run("put-pipeline", id="mark", body={"processors": []}, request_params={"master_timeout": "10s"})
    driver.run("put-pipeline", id="gone", body={"processors": []}, master_timeout="10s", timeout="10s")
    driver.run("delete-pipeline", id="gone")
    driver.run("delete-pipeline", id="gone")
    sent = driver.run("bulk", bulk_size=15, pipeline="mark", refresh="true")
    assert sent.took_ms >= 0
    assert [reply.exchange.status for reply in driver.replies] == [200, 200, 200]
    driver.run("refresh")
    driver.run("flush")
    driver.run("force-merge", max_num_segments=1)
    driver.run("force-merge", max_num_segments=1, mode="polling", poll_period=0.1)
    driver.run(
        "index-stats",
        condition={"path": "_all.primaries.refresh.listeners", "expected-value": 0},
        retry_until_success=True,
    )
    driver.run("cluster-health", request_params={"wait_for_status": "green"})
    driver.run("cluster-health", retry_until_success=True, request_params={"wait_for_status": "green"})
    driver.run("wait-for-recovery")
    for index, keys in (
        ("numbered", {"conflicts": "sequential", "on_conflict": "index"}),
        ("updated", {"conflicts": "random", "on_conflict": "update", "recency": 0.5}),
    ):
        driver.run("create-index", index=index)
        driver.run("bulk", index=index, bulk_size=15, conflict_probability=30, refresh=True, **keys)
        found = driver.run("search", index=index, body={"size": 0, "track_total_hits": True})
        assert 0 < found.hits < DOCUMENTS
        driver.run("delete-index", index=index)
        driver.run("delete-index", index=index)
    driver.run("sleep", duration=0)


def index_vectors(driver: Driver, file: Path) -> None:
    with h5py.File(file, "w") as data:
        data["train"] = np.arange(6, dtype="<f4").reshape(3, 2)
    keys = {"data__set__format": "hdf5", "data__set__path": str(file), "bulk__size": 2, "index": "numbered"}
    driver.run("bulk-vector-data-set", field="v", **keys)
    driver.run("raw-request", path="/numbered/_doc/2")
    driver.run("delete-index", index="numbered")


def search(driver: Driver) -> None:
    found = driver.run("search", body=SORTED, cache=False)
    assert (found.hits, found.hits_exact) == (DOCUMENTS, True)
    assert driver.run("search", response_compression_enabled=True).hits == DOCUMENTS
    term = {"query": {"term": {"n": "${n}"}}}
    assert driver.run("search", body=term, values=ONE_VALUE).hits == 1
    batch = [{"body": {"size": 0}}, {"body": term}, {"body": {"size": 1}, "index": "sh*"}]
    assert driver.run("multi-search", searches=batch, values=ONE_VALUE).hits == 2 * DOCUMENTS + 1


def find_neighbours(driver: Driver) -> None:
    vector = {"type": "dense_vector", "dims": 2, "index": True, "similarity": "l2_norm"}
    driver.run("create-index", index="points", body={"mappings": {"properties": {"v": vector}}})
    for number in range(3):
        point = {"v": [number, 1]}
        driver.run("raw-request", path=f"/points/_doc/{number}?refresh", method="PUT", body=point)
    knn = {"field": "v", "query_vector": [0, 1], "k": 2, "num_candidates": 3}
    for body in ({"knn": knn}, {"knn": [knn, knn]}, {"knn": knn, "query": {"match_all": {}}}):
        assert driver.run("search", index="points", body=body).hits in {2, 3}
        driver.run("raw-request", path="/points/_search", method="POST", body=body)
    driver.run("multi-search", index="points", searches=[{"body": {"knn": knn}}, {"body": {"size": 1}}])
    driver.run("delete-index", index="points")


def page(driver: Driver) -> None:
    kinds: dict[str, dict[str, Any]] = {
        "paginated-search": {"body": SORTED},
        "scroll-search": {"body": {"size": 7}},
        "search": {"body": SORTED, "pages": "all"},
        "composite-agg": {"body": COMPOSITE},
    }
    for kind, keys in kinds.items():
        whole = driver.run(kind, **keys)
        assert (whole.hits, driver.searches) == (DOCUMENTS, PAGES), kind
        driver.run(kind, **{**keys, "pages": 2, "results_per_page": 5})
        assert driver.searches == 2, kind
    # None of the scrolls is left open.
    stats = driver.node.client.request("GET", "/_nodes/stats/indices/search")
    (node,) = stats["nodes"].values()
    assert node["indices"]["search"]["scroll_current"] == 0


def raw(driver: Driver) -> None:
    driver.run("raw-request", path="/_cat/indices?format=json")
    driver.run("raw-request", path="/nowhere", ignore=404)
    driver.run("raw-request", path=f"/{INDEX}", method="HEAD")
    for path in (f"/{INDEX}/_search?size=1", f"/{INDEX}/_count"):
        driver.run("raw-request", path=path, method="POST", body={"query": {"match_all": {}}})
    lines = [{"index": INDEX}, {"size": 0}, {"index": INDEX}, {"size": 1}]
    driver.run("raw-request", path="/_msearch", method="POST", body=lines)
    driver.run(
        "raw-request",
        path=f"/{INDEX}/_doc/${{n}}",
        ignore=404,
        values=ONE_VALUE,
    )


def clear_caches(driver: Driver) -> None:
    """The node answers a repeated aggregation from its request cache, until a task clears it."""

    def counted(*names: str) -> list[int]:
        stats = driver.node.client.request("GET", f"/{INDEX}/_stats/request_cache")
        cache = stats["_all"]["total"]["request_cache"]
        return [cache[name] for name in names]

    body = {"size": 0, "aggs": {"k": {"terms": {"field": "k"}}}}
    hits, misses = counted("hit_count", "miss_count")
    driver.run("search", body=body, cache=True)
    driver.run("search", body=body, cache=True)
    assert counted("hit_count", "miss_count") == [hits + 1, misses + 1]
    driver.run("raw-request", path="/_cache/clear", method="POST")
    assert counted("memory_size_in_bytes") == [0]
    driver.run("search", body=body, cache=True)
    assert counted("hit_count", "miss_count") == [hits + 1, misses + 2]


def administer(driver: Driver) -> None:
    driver.run("node-stats")
    driver.run("field-caps")
    driver.run("field-caps", fields="n,k", index_filter={"range": {"n": {"gte": 3}}})
    driver.run("put-settings", body={"transient": {"action.auto_create_index": "true"}})
    nodes = {"operator": "gte", "value": 1}
    driver.run("run-until", path="/_cluster/health", json_path="number_of_nodes", criterion=nodes)
    driver.run("cluster-health", retries=2, request_params={"ignore": 408, "request_timeout": 5})
    driver.run("vector-search", body={"size": 1, "query": {"match_all": {}}})
    template = {"index_patterns": ["none-*"]}
    for kind, body in (
        ("index-template", template),
        ("composable-template", template),
        ("component-template", {"template": {}}),
    ):
        driver.run(f"create-{kind}", template="x", body=body)
        driver.run(f"delete-{kind}", template="x")
        driver.run(f"delete-{kind}", template="x")


def snapshot(driver: Driver, repository: Path) -> None:
    place = {"type": "fs", "settings": {"location": str(repository)}}
    driver.run("create-snapshot-repository", repository="r", body=place)
    indices = {"indices": INDEX}
    driver.run("create-snapshot", repository="r", snapshot="one", body=indices)
    driver.run("wait-for-snapshot-create", repository="r", snapshot="one", completion_recheck_wait_period=0.1)
    driver.run("wait-for-current-snapshots-create", repository="r", completion_recheck_wait_period=0.1)
    driver.run("create-snapshot", repository="r", snapshot="two", body=indices, wait_for_completion=True)
    driver.run("delete-index")
    driver.run("restore-snapshot", repository="r", snapshot="one", body=indices)
    driver.run("wait-for-recovery", completion_recheck_wait_period=0.1)
    driver.run("delete-index")
    driver.run("restore-snapshot", repository="r", snapshot="two", body=indices, wait_for_completion=True)
    assert driver.run("search").hits == DOCUMENTS
    driver.run("delete-snapshot-repository", repository="r")
    driver.run("delete-snapshot-repository", repository="r")


def declare(driver: Driver, engine: EngineName) -> None:
    """What a track declares, all of it at once."""
    kinds = ["component", "index", "composable"]
    for kind in kinds:
        driver.run(f"create-{kind}-template", settings={})
    # Where a node has no data streams, a plain index stands in.
    driver.run("create-data-stream")
    driver.run("bulk", bulk_size=15, data_stream="shelves-x", refresh=True)
    assert driver.run("search", data_stream="shelves-x", body={"size": 0}).hits == DOCUMENTS
    stands_in = stand_ins(driver.node.client, ["shelves-x"])
    assert stands_in == (("shelves-x",) if engine == "elasticsearch" else ())
    driver.run("delete-data-stream")
    driver.run("delete-data-stream")
    driver.run("create-index", index=["old-1", "old-2"], body={})
    for kind in kinds:
        driver.run(f"delete-{kind}-template")
        driver.run(f"delete-{kind}-template")
    for name in ("old-1", "old-2"):
        driver.run("raw-request", path=f"/{name}", method="HEAD", ignore=404)
        assert driver.replies[-1].exchange.status == 404
    driver.run("create-index", index=["trays-1", "trays-2"], body={})
    driver.run("delete-index", index="trays-*")
    driver.run("delete-index", index="trays-*")


POINT = {"with-point-in-time-from": "point"}


def compose(driver: Driver, engine: EngineName) -> None:
    """Operations that use what others opened."""
    opened = {"operation-type": "open-point-in-time", "name": "point"}
    closed = {"operation-type": "close-point-in-time", **POINT}
    asked = [
        {"operation-type": "search", "body": SORTED, **POINT},
        {"operation-type": "paginated-search", "body": SORTED, "pages": "all", **POINT},
        {"operation-type": "composite-agg", "body": COMPOSITE, "pages": "all", **POINT},
    ]
    driver.run("composite", requests=[opened, *asked, closed])
    assert driver.searches == 1 + 2 * PAGES
    created = {**opened, "operation-type": "create-point-in-time"}
    deleted = {**closed, "operation-type": "delete-point-in-time"}
    streams = [{"stream": asked}, {"stream": [{"operation-type": "sleep", "duration": 0}, asked[0]]}]
    within = {"operation-type": "composite", "requests": [*streams, asked[0]]}
    driver.run("composite", requests=[created, {"stream": [within, within]}, *streams, deleted])
    stats = driver.node.client.request("GET", "/_nodes/stats/indices/search")
    (node,) = stats["nodes"].values()
    assert node["indices"]["search"]["open_contexts"] == 0
    submit = {"operation-type": "submit-async-search", "name": "later", "body": SORTED}
    later = [
        submit,
        {"operation-type": "get-async-search", "retrieve-results-for": "later"},
        {"operation-type": "delete-async-search", "delete-results-for": "later"},
    ]
    driver.run("composite", UNSUPPORTED, requests=later)
    # Elasticsearch has no word for all points in time.
    all_points = OK if engine == "opensearch" else UNSUPPORTED
    driver.run("list-all-point-in-time", all_points)
    if engine == "opensearch":
        # With none to delete, OpenSearch before 2.12 answers twice, and whoever asks next gets what is left
        # of that (opensearch-project/OpenSearch, pull request 11711).
        driver.run("composite", requests=[created])
    driver.run("delete-point-in-time", all_points)


LACKING_EVERYWHERE: Mapping[str, Mapping[str, Any]] = {
    **{name: {} for name, kind in OPERATION_TYPES.items() if issubclass(kind, Cannot)},
    "update-concurrent-segment-search-settings": {"enable": True},
    "downsample": {"fixed_interval": "1h"},
    "create-ilm-policy": {"policy_name": "p", "body": {"policy": {}}},
    "delete-ilm-policy": {"policy_name": "p"},
    "create-transform": {"transform_id": "t", "body": {}},
    "start-transform": {"transform_id": "t"},
    "wait-for-transform": {"transform_id": "t"},
    "transform-stats": {"transform_id": "t"},
    "delete-transform": {"transform_id": "t"},
    "register-ml-model": {"model_name": "m"},
    "deploy-ml-model": {},
    "delete-ml-model": {"model_name": "m"},
    "create-ml-connector": {"body": {}},
    "delete-ml-connector": {"connector__name": "c"},
    "register-remote-ml-model": {"body": {}},
    "train-knn-model": {"model__id": "m", "body": {}},
    "delete-knn-model": {"model__id": "m"},
    "proto-bulk": {},
    "proto-search": {},
    "proto-vector-search": {},
    "proto-bulk-vector-data-set": {},
    "produce-stream-message": {},
    "esql-profile": {"query": "row a = 1"},
    "enrich-policy": {"policies": {"p": {"match": {"indices": INDEX}}}},
}
"""Types that neither core distribution can do, or that do not speak HTTP."""


def lacking(driver: Driver, engine: EngineName) -> None:
    """What the core distributions do not have, they say so of."""
    driver.run("sql", UNSUPPORTED, body={"query": "select 1"})
    driver.run("esql", UNSUPPORTED, query="row a = 1")
    pipeline = {"request_processors": []}
    searching = OK if engine == "opensearch" else UNSUPPORTED
    driver.run("create-search-pipeline", searching, id="p", body=pipeline)


@pytest.mark.full
def test_a_state_of_health_that_does_not_come_is_a_timeout(driver: Driver):
    driver.run("create-index", index="copied", body={"settings": {"number_of_replicas": 1}})
    params = {"wait_for_status": "green", "timeout": "50ms"}
    operation = decode_operation(
        {"name": "x", "operation-type": "cluster-health", "index": "copied", "request-params": params}
    )
    request = open_workload(operation, driver.context, clients=1, key="k").program(0)()
    assert isinstance(request, Request)
    exchange = driver.wire.send(request)
    answer = request.judge(exchange.status, exchange.body)
    assert (answer.outcome, "yellow" in answer.reason) == (Outcome.TIMEOUT, True)


def test_answers_are_those_of_first_pages_and_all_searches_of_a_batch(driver: Driver):
    build(driver)

    def answer(kind: str, **raw: Any) -> Any:
        operation = decode_operation({"name": "x", "operation-type": kind, **raw})
        assert isinstance(operation, Asking)
        return ask(driver.node.client, operation, INDEX)

    first = answer("paginated-search", body=SORTED, **{"results-per-page": 3})
    same = answer("search", body={**SORTED, "size": 3})
    assert (first.total, first.returned, first.top_hits) == (DOCUMENTS, 3, same.top_hits)
    scroll = answer("search", body=SORTED, pages="all", **{"request-params": {"scroll": "1m"}})
    assert (scroll.total, scroll.returned) == (DOCUMENTS, 7)
    composite = answer("composite-agg", body=COMPOSITE, **{"results-per-page": 3})
    assert composite.aggregations
    batch = answer("multi-search", searches=[{"body": SORTED}, {"body": {"size": 2}}])
    assert (batch.total, batch.returned) == (2 * DOCUMENTS, 9)
    assert answer("search", index="nowhere").failed is not None
