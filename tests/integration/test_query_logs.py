"""Slow logs that real nodes write, made a track, and replayed on both engines through the command line."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchctl.corpus.query_log import read_log
from benchctl.engine.client import SearchClient
from benchctl.engine.distribution import install
from benchctl.home import Home
from benchctl.results.answers import Found, answer_of
from benchctl.results.plan import EngineName, VariantSpec
from benchctl.results.store import RunStore
from integration.calls import Benchctl
from integration.conftest import Boots, Start

pytestmark = [pytest.mark.full, pytest.mark.nodes, pytest.mark.timeout(900)]

SAMPLES = Path(__file__).parents[1] / "corpus" / "slow_logs"
VERSIONS: list[tuple[EngineName, str]] = [
    ("elasticsearch", "8.11.0"),
    ("elasticsearch", "8.19.0"),
    ("elasticsearch", "9.1.0"),
    ("opensearch", "2.11.0"),
    ("opensearch", "3.1.0"),
]
INDEX = "things"
SLOW = {"index.search.slowlog.threshold": {"query.warn": "0ms", "fetch.warn": "0ms"}}
BODY = {
    "settings": {"number_of_shards": 2, **SLOW},
    "mappings": {
        "properties": {"at": {"type": "date"}, "kind": {"type": "keyword"}, "size": {"type": "long"}}
    },
}
ASKED: list[dict[str, Any]] = [
    {"query": {"term": {"kind": "kind-3"}}, "size": 3, "sort": [{"at": "desc"}]},
    {"query": {"range": {"at": {"gte": "2023-11-14T22:20:00Z", "lt": "2023-11-14T23:00:00Z"}}}, "size": 0,
     "aggs": {"by": {"date_histogram": {"field": "at", "fixed_interval": "10m"}}}},
    {"query": {"match_all": {}}, "sort": [{"size": "asc"}], "size": 2},
    {"query": {"bool": {"filter": [{"terms": {"kind": ["kind-1", "kind-2"]}}, {"exists": {"field": "at"}}]}},
     "aggs": {"sum": {"sum": {"field": "size"}}}},
    {"query": {"query_string": {"query": "kind-5 OR kind-6", "default_field": "kind"}}},
]  # fmt: skip


def filled(client: SearchClient) -> None:
    client.create_index(INDEX, BODY)
    lines: list[str] = []
    for number in range(500):
        source = {"at": 1_700_000_000_000 + 10_000 * number, "kind": f"kind-{number % 7}", "size": number}
        lines += [json.dumps({"index": {}}), json.dumps(source)]
    client.request("POST", f"/{INDEX}/_bulk", body="\n".join([*lines, ""]))
    client.refresh(INDEX)


def search_all(client: SearchClient, engine: EngineName) -> list[Any]:
    found = [client.search(INDEX, body, {}, 60) for body in ASKED]
    page: Any = client.search(INDEX, {"size": 5, "query": {"match_all": {}}}, {"scroll": "1m"}, 60)
    again = {"scroll": "1m", "scroll_id": page["_scroll_id"]}
    client.request("POST", "/_search/scroll", body=again)
    is_es = engine == "elasticsearch"
    path = f"/{INDEX}/_pit" if is_es else f"/{INDEX}/_search/point_in_time"
    point: Any = client.request("POST", path, params={"keep_alive": "1m"})
    pit = {"pit": {"id": point["id" if is_es else "pit_id"]}, "size": 1}
    client.request("POST", "/_search", body=pit)
    return found


@pytest.mark.parametrize(("engine", "version"), VERSIONS)
def test_a_slow_log_has_what_was_asked(
    engine: EngineName,
    version: str,
    home: Home,
    start: Start,
    request: pytest.FixtureRequest,
):
    installation = install(home, VariantSpec(engine, engine, version), lambda *_: None)
    with start(engine, installation=installation, starts=None) as node:
        filled(node.client)
        expected = search_all(node.client, engine)
        (log,) = node.folders.logs.glob("*_index_search_slowlog.json")
        left_out: Counter[str] = Counter()
        queries = list(read_log(log, (), lambda _: None, left_out))[: len(ASKED)]
        # A node writes bodies in its own words; they ask the same.
        for asked, query, found in zip(ASKED, queries, expected, strict=True):
            assert query.indices == (INDEX,)
            again: Any = node.client.search(INDEX, query.body, {}, 60)
            assert compared(asked, again) == compared(asked, found)
        if request.config.getoption("--write-goldens"):
            SAMPLES.mkdir(exist_ok=True)
            shutil.copy(log, SAMPLES / f"{engine}-{version}.json")
    assert any("fetch phase" in kind for kind in left_out)
    assert any("point in time" in kind for kind in left_out)


def compared(asked: dict[str, Any], found: dict[str, Any]) -> Any:
    return answer_of(asked, msgspec.convert(found, Found))


@pytest.fixture(scope="module")
def track(boots: Boots, shared: Path, benchctl: Benchctl, tmp_path_factory: Any) -> Path:
    """A track of the index and the slow log of a node, by the command line."""
    folder = tmp_path_factory.mktemp("tracks") / "made"
    with boots("elasticsearch", shared) as node:
        filled(node.client)
        for _ in range(30):
            search_all(node.client, "elasticsearch")
        (log,) = node.folders.logs.glob("*_index_search_slowlog.json")
        new = ("track", "new", str(folder), "--from-index", node.endpoint.title, INDEX, "--queries", str(log))
        done = benchctl(*new)
        assert done.returncode == 0, done.stderr
        assert "term:kind" in done.stdout
        assert "point in time" in done.stderr
    return folder


def test_a_log_is_replayed_on_both_engines_by_shape_and_as_a_whole(
    track: Path, benchctl: Benchctl, store: RunStore
):
    assert benchctl("track", "validate", str(track)).returncode == 0
    sizes = ("--heap", "512m", "--forks", "1", "--param", "speed=4", "--param", "warmup=0.1")
    done = benchctl("run", "--track", str(track), "--variant", "es", "--variant", "os", *sizes)
    assert done.returncode == 0, done.stderr
    assert "whole log" in done.stdout
    record = store.find("latest").load()
    for fork in record.forks:
        (whole,) = (one for one in fork.summaries if one.label == "whole log")
        others = [one for one in fork.summaries if one.label != "whole log"]
        assert whole.samples == sum(one.samples for one in others) > 100
        assert whole.latency is not None
        assert not any(one.unanswered for one in fork.summaries)
    assert record.answers is not None
    assert not record.answers.findings
    done = benchctl("run", "--track", str(track), "--variant", "es", "--challenge", "mix", "--heap", "512m",
                    "--forks", "1", "--param", "requests=40", "--param", "warmup_requests=10")  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_log_is_the_history_of_a_node(track: Path, benchctl: Benchctl, tmp_path: Path, store: RunStore):
    folder = tmp_path / "aged"
    shutil.copytree(track, folder)
    described = (folder / "track.json").read_text(encoding="utf-8")
    keys = '"pollution": {"source-file": "queries.json", "document-count": 50},'
    (folder / "track.json").write_text(described.replace("{", f"{{{keys}", 1), encoding="utf-8")
    sizes = ("--heap", "512m", "--forks", "1", "--param", "iterations=5", "--param", "warmup_iterations=1")
    asked = ("--challenge", "by-shape", "--sweep", "history=fresh,polluted")
    done = benchctl("run", "--track", str(folder), "--variant", "es", *asked, *sizes)
    assert done.returncode == 0, done.stderr
    plan = store.find("latest").load().plan
    assert plan.pollution is not None
    assert [task.iterations for task in plan.pollution.schedule] == [50]


def test_what_matches_nothing_is_told_before_forks(track: Path, benchctl: Benchctl, tmp_path: Path):
    log = tmp_path / "log.json"
    body = {"query": {"term": {"kind": "nowhere"}}}
    log.write_text("".join(f"{json.dumps({'timestamp': at, 'body': body})}\n" for at in range(0, 2000, 100)))
    folder = tmp_path / "made"
    done = benchctl("track", "new", str(folder), "--track", str(track), "--queries", str(log))
    assert done.returncode == 0, done.stderr
    done = benchctl("run", "--track", str(folder), "--variant", "es", "--heap", "512m", "--forks", "1")
    assert done.returncode == 0, done.stderr
    assert "no document matches term:kind" in done.stderr
