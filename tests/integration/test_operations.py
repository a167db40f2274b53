"""Every type of operation against real nodes: it works as judged, or the node says why it cannot."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from benchctl.engine.answers import ask
from benchctl.engine.node import Node
from benchctl.load.judge import is_unsupported
from benchctl.load.programs import Reply, Script, WorkContext, open_workload
from benchctl.load.request import Answer, Request
from benchctl.load.transport import WireClient
from benchctl.results.plan import EngineName
from benchctl.results.samples import Outcome
from benchctl.track.catalogue import OPERATION_TYPES, decode_operation
from benchctl.track.operation import Asking

pytestmark = pytest.mark.nodes

DOCUMENTS = 40
INDEX = "shelf"
BODY: Mapping[str, Any] = {
    "settings": {"index": {"number_of_shards": 1, "number_of_replicas": 0}},
    "mappings": {"properties": {"n": {"type": "long"}, "k": {"type": "keyword"}, "in": {"type": "nested"}}},
}
OK, UNSUPPORTED = "ok", "unsupported"

Start = Callable[..., AbstractContextManager[Node]]


def documents() -> Iterator[bytes]:
    """A corpus."""
    for number in range(DOCUMENTS):
        yield b'{"n":%d,"k":"k%d","in":{"n":%d}}\n' % (number, number % 7, number)


class Driver:
    """Runs operations over the measured wire client, as a client of a task does, without its clocks."""

    def __init__(self, node: Node, wire: WireClient, engine: EngineName) -> None:
        self.node = node
        self.wire = wire
        self.context = WorkContext(INDEX, BODY, 7, documents, DOCUMENTS, engine)
        self.replies: list[Reply] = []
        self.searches = 0
        self.types: set[str] = set()

    def run(self, kind: str, expected: str = OK, **raw: Any) -> Answer:
        """Run an operation once, or a corpus to its end; check how it ends and what the node counts."""
        keys = {name.replace("_", "-"): value for name, value in raw.items()}
        operation = decode_operation({"name": kind, "operation-type": kind, **keys})
        self.types.add(kind)
        self.replies, self.searches = [], 0
        before = self.node.client.node_search_count()
        workload = open_workload(operation, self.context, clients=1, key=kind)
        program = workload.program(0)
        answer = Answer(Outcome.OK)
        while (made := program()) is not None:
            answer = self._ask(made).answer if isinstance(made, Request) else self._follow(made)
            if workload.endless:
                break
        workload.close()
        last = self.replies[-1].exchange if self.replies else None
        if expected == UNSUPPORTED:
            assert last is not None
            assert is_unsupported(last.status, last.body), (kind, last)
            return answer
        assert answer.outcome is Outcome.OK, (kind, answer)
        assert all(reply.answer.outcome is Outcome.OK for reply in self.replies), (kind, self.replies)
        assert self.node.client.node_search_count() - before == self.searches, kind
        return answer

    def _ask(self, request: Request) -> Reply:
        exchange = self.wire.send(request)
        assert exchange.failure is None, exchange
        self.searches += request.searches
        reply = Reply(exchange, request.judge(exchange.status, exchange.body))
        self.replies.append(reply)
        return reply

    def _follow(self, script: Script) -> Answer:
        reply: Reply | None = None
        try:
            while True:
                item = script.send(reply)
                reply = self._ask(item) if isinstance(item, Request) else None
        except StopIteration as end:
            return end.value or self.replies[-1].answer

    @property
    def last(self) -> bytes:
        return self.replies[-1].exchange.body


@pytest.fixture
def repository(scratch: Path) -> Path:
    """A folder that nodes may write snapshots to, whoever they run as."""
    folder = scratch / "repository"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


@pytest.fixture
def driver(start: Start, engine: EngineName, repository: Path) -> Iterator[Driver]:
    with (
        start(engine, settings={"path.repo": str(repository)}) as node,
        WireClient(f"http://127.0.0.1:{node.http_port}") as wire,
    ):
        yield Driver(node, wire, engine)


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
ONE_VALUE = {"n": {"kind": "integer", "min": 0, "max": DOCUMENTS - 1}}


def test_every_type_of_operation(driver: Driver, engine: EngineName, repository: Path):
    build(driver)
    search(driver)
    page(driver)
    raw(driver)
    administer(driver)
    snapshot(driver, repository)
    lacking(driver, engine)
    assert driver.types == set(OPERATION_TYPES)


def build(driver: Driver) -> None:
    driver.run("create-index", settings={"refresh_interval": "-1"})
    driver.run("put-pipeline", id="mark", body={"processors": []}, request_params={"master_timeout": "10s"})
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


def search(driver: Driver) -> None:
    found = driver.run("search", body=SORTED, cache=False)
    assert (found.hits, found.hits_exact) == (DOCUMENTS, True)
    assert driver.run("search", response_compression_enabled=True).hits == DOCUMENTS
    term = {"query": {"term": {"n": "${n}"}}}
    assert driver.run("search", body=term, values=ONE_VALUE).hits == 1
    batch = [{"body": {"size": 0}}, {"body": term}, {"body": {"size": 1}, "index": "sh*"}]
    assert driver.run("multi-search", searches=batch, values=ONE_VALUE).hits == 2 * DOCUMENTS + 1


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


def administer(driver: Driver) -> None:
    driver.run("node-stats")
    driver.run("field-caps")
    driver.run("field-caps", fields="n,k", index_filter={"range": {"n": {"gte": 3}}})
    driver.run("put-settings", body={"transient": {"action.auto_create_index": "true"}})
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
    driver.run("create-snapshot", repository="r", snapshot="two", body=indices, wait_for_completion=True)
    driver.run("delete-index")
    driver.run("restore-snapshot", repository="r", snapshot="one", body=indices)
    driver.run("wait-for-recovery", completion_recheck_wait_period=0.1)
    driver.run("delete-index")
    driver.run("restore-snapshot", repository="r", snapshot="two", body=indices, wait_for_completion=True)
    assert driver.run("search").hits == DOCUMENTS
    driver.run("delete-snapshot-repository", repository="r")
    driver.run("delete-snapshot-repository", repository="r")


def lacking(driver: Driver, engine: EngineName) -> None:
    """What the core distributions do not have, they say so of."""
    driver.run("sql", UNSUPPORTED, body={"query": "select 1"})
    driver.run("esql", UNSUPPORTED, query="row a = 1")
    if engine == "elasticsearch":
        driver.run("create-data-stream", UNSUPPORTED, data_stream="logs-x")
        driver.run("delete-data-stream", UNSUPPORTED, data_stream="logs-x")
        return
    stream = {"index_patterns": ["logs-*"], "data_stream": {}}
    driver.run("create-composable-template", template="logs", body=stream)
    driver.run("create-data-stream", data_stream="logs-x")
    driver.run("delete-data-stream", data_stream="logs-x")
    driver.run("delete-data-stream", data_stream="logs-x")


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
    assert (first.total, first.sort_values) == (DOCUMENTS, [[0], [1], [2]])
    scroll = answer("search", body=SORTED, pages="all", **{"request-params": {"scroll": "1m"}})
    assert (scroll.total, scroll.returned) == (DOCUMENTS, 7)
    composite = answer("composite-agg", body=COMPOSITE, **{"results-per-page": 3})
    assert [one["key"]["n"] for one in composite.aggregations["all"]["pages"]["buckets"]] == [0, 1, 2]
    batch = answer("multi-search", searches=[{"body": SORTED}, {"body": {"size": 2}}])
    assert (batch.total, batch.returned, len(batch.sort_values)) == (2 * DOCUMENTS, 9, 7)
    assert answer("search", index="nowhere").failed is not None
