"""A live index becomes a track that loads, with exactly its documents."""

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
from benchctl.run.capture import DOCUMENTS_FILE, Captured, capture
from benchctl.track.load import load_challenge, load_track
from live_cluster import NAME, LiveCluster

FACTS = ClusterFacts("elasticsearch", "8.11.0", "b", "9.8.0", "j", (), ())
DOCUMENTS: list[dict[str, Any]] = [
    {"at": 1_700_000_000_000 + number, "kind": "a{{ b }}{% c", "note": "\u00fc\n\ud800"}
    for number in range(30)
]


def captured(
    cluster: LiveCluster,
    folder: Path,
    docs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Captured:
    return capture(cluster.client, FACTS, NAME, folder, docs=docs, seed=1, progress=progress)


def lines(folder: Path) -> list[Any]:
    with (folder / DOCUMENTS_FILE).open("rb") as file:
        text = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    return [json.loads(line) for line in io.BytesIO(text)]


def test_a_track_loads_with_all_that_the_index_has(tmp_path: Path):
    folder = tmp_path / "deep" / "things"
    made = captured(LiveCluster(DOCUMENTS, aliases={"all": {}}), folder)
    assert (made.documents, made.held, made.left_out) == (30, 30, ("index.lifecycle.name",))
    track, _ = load_track(str(folder), {})
    assert track.description == "things, all 30 documents, from elasticsearch 8.11.0"
    assert track.index.body.settings == {
        "index.number_of_shards": 3,
        "index.number_of_replicas": 0,
        "index.codec": "best_compression",
    }
    assert track.index.body.aliases == {"all": {}}
    (documents,) = track.corpora[0].documents
    assert documents.document_count == 30
    assert documents.compressed_bytes == (folder / DOCUMENTS_FILE).stat().st_size == made.compressed_bytes
    assert lines(folder) == DOCUMENTS
    assert tuple(track.operations) == made.operations


def test_a_value_that_looks_like_a_template_stays_what_it_is(tmp_path: Path):
    captured(LiveCluster(DOCUMENTS), tmp_path / "t")
    track, _ = load_track(str(tmp_path / "t"), {})
    term: Any = track.operations["term-kind"]
    assert term.body["query"]["term"]["kind"]["value"] == "a{{ b }}{% c"


def test_counts_and_shards_are_parameters(tmp_path: Path):
    captured(LiveCluster(DOCUMENTS), tmp_path / "t")
    params = {"iterations": 7, "number_of_shards": 1}
    track, known = load_track(str(tmp_path / "t"), params)
    assert set(params) <= known
    challenge, _ = load_challenge("search", track, params)
    assert {(task.warmup_iterations, task.iterations) for task in challenge.schedule} == {(50, 7)}
    assert track.shards == 1
    assert track.default_challenge is not None


def test_a_sample_says_so(tmp_path: Path):
    made = captured(LiveCluster(DOCUMENTS), tmp_path / "t", docs=10)
    assert made.documents == len(lines(tmp_path / "t")) == 10
    track, _ = load_track(str(tmp_path / "t"), {})
    assert "10 of 30 documents, drawn at random with seed 1" in track.description


def test_documents_that_have_to_say_where_they_go_do(tmp_path: Path):
    cluster = LiveCluster(DOCUMENTS[:2], mappings={"_routing": {"required": True}}, routing="r")
    captured(cluster, tmp_path / "t")
    assert lines(tmp_path / "t")[:2] == [
        {"index": {"_index": NAME, "_id": "0", "routing": "r"}},
        DOCUMENTS[0],
    ]
    track, _ = load_track(str(tmp_path / "t"), {})
    assert track.corpora[0].documents[0].includes_action_and_meta_data


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path):
    (tmp_path / "t").mkdir()
    with pytest.raises(UsageError, match="already exists"):
        captured(LiveCluster(DOCUMENTS), tmp_path / "t")


def test_a_number_that_is_none_is_told(tmp_path: Path):
    with pytest.raises(BenchctlError, match="a number that is none in JSON"):
        captured(LiveCluster([{"size": float("nan")}]), tmp_path / "t")


def test_a_disk_that_is_full_is_one_line(tmp_path: Path):
    def refuse(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(BenchctlError, match=r"cannot write the track to .*: No space left on device"):
        captured(LiveCluster(DOCUMENTS), tmp_path / "t", progress=refuse)


def test_a_failure_leaves_nothing(tmp_path: Path):
    with pytest.raises(BenchctlError, match="incomplete page"):
        captured(LiveCluster(DOCUMENTS, fail_page=1), tmp_path / "t")
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - hidden ones, too
