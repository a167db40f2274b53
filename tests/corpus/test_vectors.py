"""The vectors generator: any slice on its own, and the same vectors as text and as numbers."""

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.corpus.generated import ensure_corpus
from benchctl.corpus.vectors import (
    DIMS,
    FILE_BYTES_A_DOCUMENT,
    GENERATOR_VERSION,
    GROUPS,
    Vectors,
    generate,
    generated_groups,
    generated_queries,
    generated_vectors,
    spans,
)
from benchctl.errors import UsageError
from benchctl.home import Home

DOCUMENT = re.compile(
    rb'\{"number":\d+,"group":\d\d?,"vector":\[-?\d\.\d{3}(,-?\d\.\d{3}){127}\]\}\n',
)
SEEDS = st.integers(0, 2**64 - 1)


def _whole(seed: int, documents: int) -> bytes:
    return b"".join(generate(seed, documents, 0, documents))


def test_golden_digest():
    """If this changes on purpose, so must GENERATOR_VERSION: corpora and prepared indices depend on it."""
    digest = hashlib.sha256(_whole(1, 10_000)).hexdigest()
    assert (GENERATOR_VERSION, digest) == (
        2,
        "7abf8c4a6589b303406ad074a72e8960090c5de472d722278318724ba79b257d",
    )


def test_golden_queries():
    """Stored recall is that of these queries."""
    rows = np.rint(generated_queries(1, 1000).rows() * 1000).astype("<i4")
    assert hashlib.sha256(rows.tobytes()).hexdigest() == (
        "1f7efcdaee9a4b351c949e117806cd0cfe97c89010e3193aa3016ed336e03bc7"
    )


@settings(deadline=None, max_examples=20)
@given(seed=SEEDS, documents=st.integers(1, 9000), cuts=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_a_slice_equals_that_part_of_the_whole(seed: int, documents: int, cuts: tuple[float, float]):
    start, stop = sorted(int(cut * documents) for cut in cuts)
    lines = _whole(seed, documents).splitlines(keepends=True)
    assert len(lines) == documents
    assert b"".join(generate(seed, documents, start, stop)) == b"".join(lines[start:stop])
    for vectors in (generated_vectors(seed, documents), generated_queries(seed, documents)):
        assert np.array_equal(vectors.rows(start, stop), vectors.rows()[start:stop])


@settings(deadline=None, max_examples=10)
@given(seed=SEEDS)
def test_the_text_has_exactly_the_numbers(seed: int):
    lines = _whole(seed, 300).splitlines(keepends=True)
    assert all(DOCUMENT.fullmatch(line) for line in lines)
    documents = [json.loads(line) for line in lines]
    assert [one["number"] for one in documents] == list(range(300))
    assert [one["group"] for one in documents] == generated_groups(seed, 300).tolist()
    values = np.array([one["vector"] for one in documents], np.float32)
    assert np.array_equal(values, generated_vectors(seed, 300).rows())


def test_groups_select_their_share():
    counts = np.bincount(generated_groups(1, 100_000), minlength=GROUPS)
    assert len(counts) == GROUPS
    assert np.abs(counts - 1000).max() < 150  # five standard deviations


def test_points_gather_in_overlapping_clusters_of_fewer_dimensions():
    rows = generated_vectors(1, 5000).rows().astype(np.float64)
    assert rows.shape == (5000, DIMS)
    spread = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False) ** 2
    assert 0.95 < spread[:32].sum() / spread.sum() < 1
    assert np.abs(rows).max() < 10
    queries = generated_queries(1, 200).rows()
    distances = ((queries[:, np.newaxis].astype(np.float64) - rows[:1000]) ** 2).sum(axis=2)
    assert distances.min() > 0  # no query is a document
    assert 0.2 < np.median(distances.min(axis=1)) / np.median(distances) < 0.8


def test_documents_do_not_depend_on_the_size_of_the_corpus():
    assert np.array_equal(generated_vectors(5, 100).rows(), generated_vectors(5, 7000).rows(0, 100))
    digests = {generated_vectors(5, 100).digest, generated_vectors(5, 7000).digest}
    digests |= {generated_vectors(6, 100).digest, generated_queries(5, 100).digest}
    assert len(digests) == 4
    assert generated_vectors(5, 100).digest in digests


@given(documents=st.integers(0, 3_000_000))
def test_part_files_cover_everything(documents: int):
    parts = list(spans(documents))
    assert [part.start for part in parts] == [0, *(part.stop for part in parts)][: len(parts)]
    assert sum(part.stop - part.start for part in parts) == documents
    assert len({part.name for part in parts}) == len(parts)


def test_the_estimate_of_its_files_is_somewhat_above_them(tmp_path: Path):
    made = ensure_corpus(Home(tmp_path), 20_000, generator="vectors")
    assert made.file_bytes < 20_000 * FILE_BYTES_A_DOCUMENT < 1.3 * made.file_bytes


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_no_numbers_are_refused_by_their_place(value: float):
    rows = np.zeros((10, 3), np.float32)
    rows[7, 1] = value
    vectors = Vectors("odd", 10, 3, lambda start, stop: rows[start:stop], lambda: "")
    assert vectors.rows(0, 7).shape == (7, 3)
    with pytest.raises(UsageError, match=r"odd: vector 7, .*infinite or not a number"):
        vectors.rows(5)
    with pytest.raises(ValueError, match="not a slice"):
        vectors.rows(5, 11)
