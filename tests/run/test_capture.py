"""A live index becomes a track that loads, with exactly the documents that were drawn."""

import errno
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from benchctl.engine.target import ClusterFacts
from benchctl.errors import BenchctlError, UsageError
from benchctl.run.capture import DOCUMENTS_FILE, Captured, Queries, capture, named, read_queries
from benchctl.track.load import load_challenge, load_track
from live_cluster import MAPPINGS, NAME, LiveCluster

FACTS = ClusterFacts("elasticsearch", "8.11.0", "b", "9.8.0", "j", (), ())
DOCUMENTS: list[dict[str, Any]] = [
    {"at": 1_700_000_000_000 + number, "kind": "a{{ b }}{% c", "note": "\u00fc\n\ud800"}
    for number in range(30)
]
QUERIES: Queries = {
    "all": {"query": {"match_all": {}}},
    "kind": {"query": {"term": {"kind": "a{{ b }}{% c"}}},
}


def ignore(_documents: int) -> None:
    pass


def captured(
    cluster: LiveCluster,
    folder: Path,
    docs: int | None = None,
    progress: Callable[[int], None] = ignore,
    queries: Queries = QUERIES,
) -> Captured:
    return capture(cluster.client, FACTS, NAME, folder, docs=docs, searches=named(queries), progress=progress)


def lines(folder: Path) -> list[Any]:
    with (folder / DOCUMENTS_FILE).open("rb") as file:
        text = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    return [json.loads(line) for line in io.BytesIO(text)]


def drawn(held: int, docs: int, folder: Path) -> list[int]:
    cluster = LiveCluster([{"n": number} for number in range(held)])
    made = captured(cluster, folder, docs)
    assert cluster.scrolls == 0
    numbers = [document["n"] for document in lines(folder)]
    assert (made.documents, made.held) == (len(numbers), held)
    return numbers


def test_a_track_loads_with_all_that_the_index_has(tmp_path: Path):
    folder = tmp_path / "deep" / "things"
    cluster = LiveCluster(DOCUMENTS)
    assert captured(cluster, folder) == Captured(30, 30, ("index.lifecycle.name",))
    assert cluster.scrolls == 0
    track, _ = load_track(str(folder), {})
    assert track.description == "30 of 30 documents of things, from elasticsearch 8.11.0"
    # Settings that no index can be created with are not among them, and a single node has no replicas.
    assert track.indices[0].body.settings == {
        "index.codec": "best_compression",
        "index.number_of_shards": "3",
        "index.number_of_replicas": 0,
    }
    assert track.indices[0].body.mappings == MAPPINGS
    assert track.indices[0].body.shards == 3
    (documents,) = track.corpora[0].documents
    assert documents.document_count == 30
    assert lines(folder) == DOCUMENTS


def test_its_searches_are_those_given_even_if_they_look_like_templates(tmp_path: Path):
    captured(LiveCluster(DOCUMENTS), tmp_path / "t")
    track, _ = load_track(str(tmp_path / "t"), {"iterations": 7})
    bodies: dict[str, Any] = dict(track.operations)
    assert {name: operation.body for name, operation in bodies.items()} == QUERIES
    assert track.default_name is not None
    challenge, _ = load_challenge(track.default_name, track, {"iterations": 7})
    assert {(task.warmup_iterations, task.iterations) for task in challenge.schedule} == {(50, 7)}


def test_searches_come_from_a_file(tmp_path: Path):
    path = tmp_path / "queries.json"
    path.write_text(json.dumps(QUERIES), encoding="utf-8")
    assert read_queries(path) == QUERIES
    for text, words in (
        ("{}", "has no searches"),
        ('{"a": 5}', "a: expected a mapping"),
        ("{", "queries.json:1"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(UsageError, match=words):
            read_queries(path)
    with pytest.raises(UsageError, match="cannot read"):
        read_queries(tmp_path / "nothing.json")


def test_a_sample_is_even_the_same_again_and_about_as_large_as_was_asked_for(tmp_path: Path):
    found = drawn(20_000, 2_000, tmp_path / "a")
    assert found == sorted(set(found))
    assert 1_800 < len(found) < 2_200
    halves = sum(number < 10_000 for number in found)
    assert 0.45 < halves / len(found) < 0.55
    assert found == drawn(20_000, 2_000, tmp_path / "b")
    assert drawn(20, 100, tmp_path / "c") == list(range(20))


def test_nothing_drawn_is_told(tmp_path: Path):
    with pytest.raises(UsageError, match="has no documents"):
        drawn(0, 5, tmp_path / "t")
    cluster = LiveCluster([{"n": 0}, {"n": 1}])
    with pytest.raises(UsageError, match="none of 2 documents of the index 'things' was drawn"):
        captured(cluster, tmp_path / "t", docs=0)
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - hidden ones, too


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"fail_page": 1}, "incomplete page: 1 shards failed"),
        ({"empty_page": 2}, "incomplete page: 0 shards failed, 500 documents were still to come"),
        ({"without_source": True}, "missing required field `_source`"),
    ],
)
def test_an_incomplete_page_is_a_failure_and_leaves_nothing(
    fault: dict[str, Any], words: str, tmp_path: Path
):
    cluster = LiveCluster([{"n": number} for number in range(1000)], **fault)
    with pytest.raises(BenchctlError, match=words):
        captured(cluster, tmp_path / "t")
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - hidden ones, too


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("nothing", {}, "no index 'nothing'"),
        ("many", {}, "'many' matches 2 indices: a, b"),
        (NAME, {"mappings": {"_source": {"enabled": False}}}, "does not keep whole documents"),
        (NAME, {"mappings": {"_source": {"excludes": ["secret"]}}}, "does not keep whole documents"),
        (NAME, {"mappings": None}, "in an unknown form: Expected `object`, got `null`"),
        (NAME, {"routing": "r"}, "document '0' of the index 'things' has a routing value"),
    ],
)
def test_what_cannot_become_a_track_is_refused(
    name: str, changes: dict[str, Any], words: str, tmp_path: Path
):
    cluster = LiveCluster(DOCUMENTS, **changes)
    with pytest.raises(BenchctlError, match=words):
        capture(
            cluster.client, FACTS, name, tmp_path / "t", docs=None, searches=named(QUERIES), progress=ignore
        )


def test_a_disk_that_is_full_is_one_line(tmp_path: Path):
    def refuse(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(BenchctlError, match=r"cannot write the track to .*: No space left on device"):
        captured(LiveCluster(DOCUMENTS), tmp_path / "t", progress=refuse)
