"""Filling a node: as declared, quiet meanwhile, back as it was, and nothing lost without a word."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchctl.engine.client import SearchClient, loopback
from benchctl.engine.distribution import Installation
from benchctl.engine.prepared_index import IndexKey, Sent, fill
from benchctl.errors import BenchctlError
from benchctl.results.model import IngestCosts
from benchctl.results.plan import CorpusFile, CorpusSpec
from benchctl.track.model import Index, IndexBody, Track
from engine.fake_node import FakeNode

TRACK = Track(
    name="house",
    operations={},
    digest="t",
    indices=(Index("a", IndexBody({"refresh_interval": "5s"})), Index("b", IndexBody())),
)
CORPUS = CorpusSpec(seed=0, documents=9, generator_version=0, digest="c")
ES = Installation("elasticsearch", "8.11.0", Path("/es"), "a" * 64, (), "9.8.0", "sha512")
KEY = IndexKey(ES, CORPUS, TRACK, 1, 2)
SENT = Sent(9, 900, 1.5, IngestCosts(7.0, 8.0, {"write": 5.0}))


@pytest.fixture
def client(node: FakeNode) -> Iterator[SearchClient]:
    with SearchClient("elasticsearch", loopback(node.port)) as made:
        yield made


def answer(node: FakeNode, *, documents: int = 9, segments: tuple[int, ...] = (4, 5)) -> None:
    """A node with two indices that does as it is told."""
    done = (200, {"acknowledged": True})
    for line in (
        "PUT /a",
        "PUT /b",
        "PUT /a/_settings",
        "PUT /b/_settings",
        "POST /a,b/_refresh",
        "POST /a,b/_forcemerge",
        "POST /a,b/_flush",
    ):
        method, _, path = line.partition(" ")
        node.answers[method, path] = done
    refresh = {"a": {"settings": {"index.refresh_interval": "5s"}}, "b": {"settings": {}}}
    node.answers["GET", "/a,b/_settings"] = (200, refresh)
    node.answers["GET", "/a,b/_stats/translog"] = (200, {"_all": {"total": {"translog": {"operations": 0}}}})
    millis = {"total_time_in_millis": 0}
    node.answers["GET", "/a,b/_stats/indexing,refresh,merge,flush"] = _all(
        {
            "docs": {"count": documents},
            "store": {"size_in_bytes": 1},
            "indexing": {"index_time_in_millis": 3000},
            "refresh": millis,
            "merges": millis,
            "flush": millis,
        }
    )
    node.answers["GET", "/a,b/_count"] = (200, {"count": documents})
    node.answers["GET", "/_cluster/health/a,b"] = (200, {"active_primary_shards": 2})
    found = {
        name: {"shards": {"0": [{"routing": {"primary": True}, "segments": kept}]}}
        for name, kept in (("a", _segments(segments[:1])), ("b", _segments(segments[1:])))
    }
    node.answers["GET", "/a,b/_segments"] = (200, {"indices": found})


def _all(primaries: dict[str, Any]) -> tuple[int, Any]:
    return 200, {"_all": {"primaries": primaries}}


def _segments(sizes: tuple[int, ...]) -> dict[str, Any]:
    return {
        f"_{number}": {"num_docs": size, "size_in_bytes": 10 * size, "version": "9.8.0", "compound": False}
        for number, size in enumerate(sizes)
    }


def test_all_indices_are_made_filled_and_merged_together(client: SearchClient, node: FakeNode):
    answer(node)
    facts = fill(client, KEY, lambda: SENT)
    assert facts.key == KEY.digest
    assert (facts.documents, [one.documents for one in facts.segments], facts.store_bytes) == (9, [4, 5], 90)
    assert (facts.ingest.documents, facts.ingest.ingest_s, facts.ingest.engine_indexing_s) == (9, 1.5, 3.0)
    assert facts.ingest.costs == SENT.costs


def test_refreshes_are_off_meanwhile_and_then_as_they_were_declared(client: SearchClient, node: FakeNode):
    answer(node)
    sent_after: list[int] = []

    def send() -> Sent:
        sent_after.append(len(node.seen))
        return SENT

    fill(client, KEY, send)
    changes = [
        (place < sent_after[0], path, body["index.refresh_interval"])
        for place, (method, path, _, body) in enumerate(node.seen)
        if method == "PUT" and path.endswith("/_settings")
    ]
    assert changes == [
        (True, "/a/_settings", "-1"),
        (True, "/b/_settings", "-1"),
        (False, "/a/_settings", "5s"),
        (False, "/b/_settings", None),
    ]
    # Made as the track says, not as it suits the ingest.
    assert node.seen[0][3] == {"settings": {"refresh_interval": "5s"}}


def test_lost_documents_are_told(client: SearchClient, node: FakeNode):
    answer(node, documents=8)
    with pytest.raises(BenchctlError, match=r"elasticsearch 8\.11\.0 holds 8 of 9 documents"):
        fill(client, KEY, lambda: SENT)


def test_documents_that_say_themselves_what_to_do_may_replace_each_other(
    client: SearchClient, node: FakeNode
):
    answer(node, documents=8)
    file = CorpusFile(path="/f", documents=9, held=9, raw_bytes=9, sha256="", index="a", has_actions=True)
    corpus = msgspec.structs.replace(CORPUS, files=(file,))
    assert fill(client, IndexKey(ES, corpus, TRACK, 1, 2), lambda: SENT).documents == 8


def test_a_merge_that_left_more_segments_than_its_shards_may_have_is_told(
    client: SearchClient, node: FakeNode
):
    answer(node, segments=(4, 3, 2))
    with pytest.raises(BenchctlError, match="left 3 segments, 2 were requested"):
        fill(client, KEY, lambda: SENT)
