"""The cluster-metrics generator: any slice on its own."""

import hashlib
import json
import re
from collections import Counter
from pathlib import Path

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.corpus.cluster_metrics import (
    EPOCHS,
    FILE_BYTES_A_DOCUMENT,
    GENERATOR_VERSION,
    NODES,
    TASKS,
    generate,
    spans,
)
from benchctl.corpus.generated import ensure_corpus
from benchctl.home import Home
from benchctl.track.load import load_track
from benchctl.track.operations.search import Search

DOCUMENT = re.compile(
    rb'\{"epoch":[1-5],"node":"N0([0-2]\d|30)","task":"T([01]\d\d|200)",'
    rb'"cpu":\d{1,2}\.\d{3},"mem":\d{1,2}\.\d{3},"net":\d{1,2}\.\d{3}\}\n'
)


def _whole(seed: int, documents: int) -> bytes:
    return b"".join(generate(seed, documents, 0, documents))


def test_golden_digest():
    """If this changes on purpose, so must GENERATOR_VERSION: corpora and prepared indices depend on it."""
    digest = hashlib.sha256(_whole(1, 10_000)).hexdigest()
    assert (GENERATOR_VERSION, digest) == (
        1,
        "7b499c1057fd13468941846b8ee01bb230c56f7df019223d672d687877892e68",
    )


def test_documents_have_the_reports_shape_and_every_node_and_task():
    lines = _whole(3, 20_000).splitlines(keepends=True)
    assert all(DOCUMENT.fullmatch(line) for line in lines)
    documents = [json.loads(line) for line in lines]
    assert len({one["node"] for one in documents}) == NODES
    assert len({one["task"] for one in documents}) == TASKS
    assert Counter(one["epoch"] for one in documents) == dict.fromkeys(range(1, EPOCHS + 1), 4000)
    assert {len({one[field] for one in documents}) > 15_000 for field in ("cpu", "mem", "net")} == {True}


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**64 - 1),
    documents=st.integers(1, 40_000),
    cuts=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_a_slice_equals_that_part_of_the_whole(seed: int, documents: int, cuts: tuple[float, float]):
    start, stop = sorted(int(cut * documents) for cut in cuts)
    lines = _whole(seed, documents).splitlines(keepends=True)
    assert len(lines) == documents
    assert b"".join(generate(seed, documents, start, stop)) == b"".join(lines[start:stop])


@given(documents=st.integers(0, 10_000_000))
def test_part_files_cover_everything_within_epochs(documents: int):
    parts = list(spans(documents))
    assert [part.start for part in parts] == [0, *(part.stop for part in parts)][: len(parts)]
    assert sum(part.stop - part.start for part in parts) == documents
    assert len({part.name for part in parts}) == len(parts)
    for part in parts:
        number = int(part.name.removeprefix("epoch-")[0])
        assert {1 + at * EPOCHS // documents for at in (part.start, part.stop - 1)} == {number}


def test_the_estimate_of_its_files_is_somewhat_above_them(tmp_path: Path):
    made = ensure_corpus(Home(tmp_path), 50_000, generator="cluster-metrics")
    assert made.file_bytes < 50_000 * FILE_BYTES_A_DOCUMENT < 1.3 * made.file_bytes


def test_every_search_of_the_track_asks_for_one_node_in_one_epoch():
    track, _ = load_track("cluster-metrics", {})
    assert track.generator == "cluster-metrics"
    searches = [track.operations[name] for name in ("A", "B", "C_td", "C_hdr", "D_td", "D_hdr")]
    assert {
        b"N001" in msgspec.json.encode(search.body) for search in searches if isinstance(search, Search)
    } == {True}
    documents = [json.loads(line) for line in _whole(1, 6000).splitlines()]
    assert any(document["node"] == "N001" and document["epoch"] == 1 for document in documents)
