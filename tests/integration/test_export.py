"""Runs in stores on real nodes: found as dashboards ask, once, and complete whatever came in between."""

import select
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from benchctl.engine.client import NodeRequestError
from benchctl.engine.cluster import Cluster
from benchctl.results.plan import EngineName
from benchctl.results.store import RunFolder
from integration.calls import Benchctl
from integration.conftest import Boots
from stored import ROWS, stored
from sweeps import swept_record

pytestmark = pytest.mark.full

RUN = "20260101-000000-c-0000"
FORKS = 4
RECORDS_A_SAMPLE = 3
RESULTS_OF_A_TASK = 4  # throughput, latency, service time, errors


@pytest.fixture(scope="module")
def node(boots: Boots, shared: Path, engine: EngineName) -> Iterator[Cluster]:
    with boots(engine, shared / engine) as started:
        yield started


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    stored(tmp_path, RUN)
    return tmp_path


@pytest.fixture
def exported(benchctl: Benchctl, runs: Path) -> Callable[..., str]:
    def export(*arguments: str, run: str = RUN) -> str:
        done = benchctl("runs", "export", run, "--runs", str(runs), *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return export


@pytest.fixture(autouse=True)
def emptied(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    node: Cluster = request.getfixturevalue("node")
    for index in node.client.request("GET", "/_cat/indices/rally-*", params={"format": "json"}):
        if not index["index"].startswith(".ds"):
            node.client.request("DELETE", f"/{index['index']}")
    with suppress(NodeRequestError):  # there may be none
        node.client.request("DELETE", "/_index_template/rally-*")


def found(node: Cluster, index: str, query: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    node.client.request("POST", f"/{index}/_refresh")
    body = {"query": query or {"match_all": {}}, "track_total_hits": True, "size": 100, **more}
    return node.client.search(index, body)


def count(node: Cluster, index: str) -> int:
    return int(found(node, index)["hits"]["total"]["value"])


def test_it_is_found_as_dashboards_ask_and_twice_is_once(node: Cluster, exported: Callable[..., str]):
    to = ("--to", node.endpoint.title, "--samples", "--environment", "nightly")
    assert f"{FORKS} races sent" in exported(*to)
    samples = FORKS * ROWS * RECORDS_A_SAMPLE
    everything = {
        "rally-races-2026-01": FORKS,
        "rally-results-2026-01": FORKS * RESULTS_OF_A_TASK,
        "rally-metrics-2026-01": samples + 2 * FORKS,
    }
    assert {index: count(node, index) for index in everything} == everything
    assert f"0 races sent (0 records), {FORKS} there already" in exported(*to)
    assert {index: count(node, index) for index in everything} == everything

    # The medians of a chart: one value a fork, 1 to 4 ms.
    chart = found(
        node,
        "rally-results-*",
        {"bool": {"filter": [{"term": {"name": "service_time"}}, {"term": {"environment": "nightly"}}]}},
        aggs={
            "days": {
                "date_histogram": {"field": "race-timestamp", "fixed_interval": "1d"},
                "aggs": {
                    "cars": {
                        "terms": {"field": "car", "order": {"_key": "asc"}},
                        "aggs": {
                            "p50": {"percentiles": {"field": "value.50_0", "percents": [50]}},
                            "forks": {"cardinality": {"field": "race-id"}},
                        },
                    }
                },
            }
        },
    )["aggregations"]["days"]["buckets"]
    (day,) = chart
    cars = {
        one["key"]: (one["p50"]["values"]["50.0"], one["forks"]["value"]) for one in day["cars"]["buckets"]
    }
    assert cars == {"es": (2.0, 2), "os": (3.0, 2)}

    # As Rally itself asks for the errors and times of a race.
    raced = found(
        node,
        "rally-metrics-2026-01",
        {
            "bool": {
                "filter": [
                    {"term": {"race-id": f"{RUN}.os.1.0"}},
                    {"term": {"name": "service_time"}},
                    {"term": {"task": "range"}},
                    {"term": {"sample-type": "normal"}},
                ]
            }
        },
        aggs={"errors": {"terms": {"field": "meta.success"}}, "times": {"stats": {"field": "value"}}},
    )["aggregations"]
    assert [one["key_as_string"] for one in raced["errors"]["buckets"]] == ["true"]
    assert (raced["times"]["count"], raced["times"]["avg"]) == (ROWS - 1, 4.0)


def test_what_is_missing_is_sent_and_nothing_else(node: Cluster, exported: Callable[..., str]):
    to = ("--to", node.endpoint.title)
    exported(*to)
    gone = f"/rally-races-2026-01/_doc/{RUN}.es.1.0"
    node.client.request("DELETE", gone)
    assert f"1 race sent (6 records), {FORKS - 1} there already" in exported(*to)
    assert node.client.request("GET", gone)["_source"]["race-id"] == f"{RUN}.es.1.0"
    assert count(node, "rally-results-2026-01") == FORKS * RESULTS_OF_A_TASK
    # Samples can follow later, to the same races.
    assert f"{FORKS} races sent" in exported(*to, "--samples")
    assert count(node, "rally-races-2026-01") == FORKS


def test_templates_of_others_stay(node: Cluster, exported: Callable[..., str]):
    theirs = {"index_patterns": ["rally-results-*"], "template": {"settings": {"number_of_shards": 2}}}
    node.client.request("PUT", "/_index_template/rally-results", body=theirs)
    exported("--to", node.endpoint.title)
    assert node.client.primary_shards("rally-results-2026-01") == 2


@pytest.mark.parametrize("engine", ["opensearch"], indirect=True)  # core builds of Elasticsearch have none
def test_data_streams(node: Cluster, exported: Callable[..., str]):
    to = ("--to", node.endpoint.title, "--streams", "--samples")
    try:
        exported(*to)
        records = count(node, "rally-metrics-v1")
        assert records == FORKS * (ROWS * RECORDS_A_SAMPLE + 2)
        assert f"0 races sent (0 records), {FORKS} there already" in exported(*to)
        streams = node.client.request("GET", "/_data_stream/rally-*")["data_streams"]
        assert sorted(one["name"] for one in streams) == [
            "rally-metrics-v1", "rally-races-v1", "rally-results-v1",
        ]  # fmt: skip
    finally:
        node.client.request("DELETE", "/_data_stream/rally-*")


def test_a_sweep_says_where_its_points_are(node: Cluster, runs: Path, exported: Callable[..., str]):
    record = swept_record(blocks=1)
    folder = RunFolder(runs / record.id)
    folder.path.mkdir()
    folder.save(record)
    exported("--to", node.endpoint.title, run=record.id)
    hits = found(node, "rally-results-*", {"term": {"meta.point": "clients=2,docs=1k"}})["hits"]["hits"]
    assert {one["_source"]["meta"]["variant"] for one in hits} >= {
        one.name for one in record.plan.variants[:1]
    }
    assert {msgspec.json.encode(one["_source"]["meta"]["at"]) for one in hits} == {
        b'{"clients":"2","docs":"1k"}'
    }


@contextmanager
def forwarding(port: int, to: int) -> Iterator[None]:
    """What is sent to one port goes to another one."""

    class Forwarder(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection(("127.0.0.1", to)) as node:
                other = {self.request: node, node: self.request}
                while True:
                    for ready in select.select(list(other), [], [])[0]:
                        piece = ready.recv(1 << 16)
                        if not piece:
                            return
                        other[ready].sendall(piece)

    with socketserver.ThreadingTCPServer(("127.0.0.1", port), Forwarder) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield
        server.shutdown()
        serving.join()


def test_what_a_store_missed_is_sent_with_the_next_run(
    node: Cluster, runs: Path, benchctl: Benchctl, exported: Callable[..., str]
):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    to = ("--to", f"http://127.0.0.1:{port}")
    down = benchctl("runs", "export", RUN, "--runs", str(runs), *to)
    assert down.returncode == 1
    assert "refuses the connection" in down.stderr
    assert "sent with the next export" in down.stderr
    later = "20260102-000000-c-0000"
    stored(runs, later)
    with forwarding(port, urlsplit(node.endpoint.title).port or 0):
        said = exported(*to, run=later)
    assert [line.split(":")[0] for line in said.splitlines()] == [RUN, later]
    assert count(node, "rally-races-2026-01") == 2 * FORKS
