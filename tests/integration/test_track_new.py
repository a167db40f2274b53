"""An index of a real node becomes a track, through the command line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchctl.engine.cluster import Cluster
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
    "aliases": {"every-thing": {}},
}  # fmt: skip


def source(number: int) -> dict[str, Any]:
    return {
        "at": 1_700_000_000_000 + 1000 * number,
        "kind": f"kind-{number % 7}",
        "size": number,
        "note": f"thing number {number} \u00fc",
        "parts": [{"name": "x"}, {"name": "y"}],
    }


@pytest.fixture
def node(engine: EngineName, start: Start) -> Iterator[Cluster]:
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


def test_an_index_becomes_a_track_whose_searches_find_something(
    node: Cluster, benchctl: Benchctl, tmp_path: Path
):
    folder = tmp_path / "made"
    made = benchctl(
        "track", "new", "--from-index", node.endpoint.title, "things", "--docs", "1000", "-o", str(folder)
    )
    assert made.returncode == 0, made.stderr
    assert f"1,000 of {DOCUMENTS:,} documents" in made.stdout
    assert benchctl("track", "validate", str(folder)).returncode == 0
    again = benchctl("track", "new", "--from-index", node.endpoint.title, "things", "-o", str(folder))
    assert again.returncode == 2
    track, _ = load_track(str(folder), {})
    names = ["default", "term-kind", "terms-kind", "range-at", "sort-desc-at"]
    assert list(track.operations) == names
    node.client.create_index(
        "copy", {"settings": track.index.body.settings, "mappings": track.index.body.mappings}
    )
    for name in names:
        operation: Any = track.operations[name]
        assert node.client.search("things", operation.body)["hits"]["total"]["value"] > 0
    missing = benchctl("track", "new", "--from-index", node.endpoint.title, "nothing")
    assert missing.returncode == 2
    assert "has no index 'nothing'" in missing.stderr
