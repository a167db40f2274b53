"""An index of a real node becomes a track, through the command line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchctl.engine.node import Node
from benchctl.results.plan import EngineName
from benchctl.track.load import load_track
from integration.calls import Benchctl
from integration.conftest import Start

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]

DOCUMENTS = 4_000
BODY = {
    "settings": {"number_of_shards": 2, "codec": "best_compression", "analysis": {"analyzer": {"own": {
        "type": "custom", "tokenizer": "standard", "filter": ["lowercase"]}}}},
    "mappings": {"properties": {
        "at": {"type": "date"}, "kind": {"type": "keyword"}, "size": {"type": "long"},
        "note": {"type": "text", "analyzer": "own", "fields": {"raw": {"type": "keyword"}}},
        "parts": {"type": "nested", "properties": {"name": {"type": "keyword"}}}}},
}  # fmt: skip


QUERIES = {
    "kinds": {"query": {"term": {"kind": "kind-3"}}},
    "newest": {"query": {"match": {"note": "thing"}}, "sort": [{"at": "desc"}]},
}


def source(number: int) -> dict[str, Any]:
    return {
        "at": 1_700_000_000_000 + 1000 * number,
        "kind": f"kind-{number % 7}",
        "size": number,
        "note": f"thing number {number} \u00fc",
        "parts": [{"name": "x"}, {"name": "y"}],
    }


@pytest.fixture
def node(engine: EngineName, start: Start) -> Iterator[Node]:
    with start(engine) as started:
        client = started.client
        client.create_index("things", BODY)
        lines = [
            line
            for number in range(DOCUMENTS)
            for line in (json.dumps({"index": {}}), json.dumps(source(number)))
        ]
        client.request("POST", "/things/_bulk", body="\n".join([*lines, ""]))
        client.refresh("things")
        yield started


def test_an_index_becomes_a_track_that_runs(
    node: Node, engine: EngineName, benchctl: Benchctl, tmp_path: Path
):
    folder, queries = tmp_path / "made", tmp_path / "queries.json"
    queries.write_text(json.dumps(QUERIES), encoding="utf-8")
    new = ("track", "new", str(folder), "--from-index", node.endpoint.title, "things", "--docs", "1000")
    made = benchctl(*new, "--queries", str(queries))
    assert made.returncode == 0, made.stderr
    assert f" of {DOCUMENTS:,} documents\nsearches: kinds, newest" in made.stdout
    assert benchctl("track", "validate", str(folder)).returncode == 0
    assert benchctl(*new).returncode == 2
    track, _ = load_track(str(folder), {})
    assert 800 < track.documents < 1200
    assert list(track.operations) == list(QUERIES)
    run = benchctl("run", "--track-path", str(folder), "--variant", engine, "--heap", "512m", "--test-mode")
    assert run.returncode == 0, run.stderr
    missing = benchctl("track", "new", "--from-index", node.endpoint.title, "nothing")
    assert missing.returncode == 2
    assert "has no index 'nothing'" in missing.stderr
