"""Exact neighbours against distances of all pairs, computed by scipy in float64."""

import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from benchctl.corpus import neighbours
from benchctl.corpus.neighbours import exact_neighbours, nearest
from benchctl.corpus.vectors import Space, Vectors, generated_groups, generated_queries, generated_vectors
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home

SPACES = get_args(Space)


def vectors_of(rows: npt.NDArray[Any], name: str = "vectors") -> Vectors:
    rows = rows.astype(np.float32)
    return Vectors(name, *rows.shape, lambda start, stop: rows[start:stop], lambda: repr(rows.tobytes()))


def all_distances(base: Vectors, queries: Vectors, space: Space) -> npt.NDArray[np.float64]:
    rows, wanted = base.rows().astype(np.float64), queries.rows().astype(np.float64)
    if space == "dot_product":
        return -np.einsum("qd,bd->qb", wanted, rows)
    return cdist(wanted, rows, "sqeuclidean" if space == "l2" else "cosine")


def brute_force(
    base: Vectors, queries: Vectors, k: int, space: Space, selected: npt.NDArray[np.bool_] | None = None
) -> npt.NDArray[np.int64]:
    distances = all_distances(base, queries, space)
    chosen = np.arange(base.count) if selected is None else np.flatnonzero(selected)
    order = chosen[np.argsort(distances[:, chosen], axis=1, kind="stable")][:, :k]
    return np.pad(order, ((0, 0), (0, k - order.shape[1])), constant_values=-1)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("percent", [None, 1, 30])
def test_neighbours_in_the_generated_corpus(space: Space, percent: int | None):
    base, queries = generated_vectors(1, 20_000), generated_queries(1, 300)
    selected = None if percent is None else generated_groups(1, 20_000) < percent
    numbers = nearest(base, queries, 100, space, selected=selected)
    assert np.array_equal(numbers, brute_force(base, queries, 100, space, selected))


@settings(deadline=None, max_examples=150)
@given(
    space=st.sampled_from(SPACES),
    count=st.integers(1, 60),
    asked=st.integers(1, 20),
    dims=st.integers(1, 6),
    k=st.integers(1, 70),
    cells=st.integers(1, 200),
    share=st.sampled_from([0.0, 0.1, 0.6, None]),
    seed=st.integers(0, 9999),
)
def test_ties_blocks_and_filters(
    *, space: Space, count: int, asked: int, dims: int, k: int, cells: int, share: float | None, seed: int
):
    """Many vectors are equal, and all sums exact: values are from -2 to 2; under cosine, all lie on axes."""
    random = np.random.default_rng(seed)
    rows, wanted = (random.integers(-2, 3, (size, dims)) for size in (count, asked))
    if space == "cosine":
        rows, wanted = (
            np.eye(dims)[random.integers(0, dims, size)] * random.choice([-2, -1, 1, 4], (size, 1))
            for size in (count, asked)
        )
    base, queries = vectors_of(rows), vectors_of(wanted)
    selected = None if share is None else random.random(count) < share
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbours, "_CELLS", cells)
        numbers = nearest(base, queries, k, space, selected=selected)
    assert numbers.tolist() == brute_force(base, queries, k, space, selected).tolist()


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1e6, 1e18, 1e37])
def test_magnitudes_that_float32_products_cannot_hold(space: Space, scale: float):
    random = np.random.default_rng(4)
    base = vectors_of(random.normal(size=(500, 8)) * scale)
    queries = vectors_of(random.normal(size=(20, 8)) * scale)
    assert np.array_equal(nearest(base, queries, 10, space), brute_force(base, queries, 10, space))


def test_differences_that_float32_cannot_see():
    """Vectors far from the origin and near each other: in float32 all distances are rounding errors."""
    random = np.random.default_rng(5)
    base, queries = (vectors_of(1000 + random.normal(size=(size, 16)) * 1e-2) for size in (3000, 30))
    assert np.array_equal(nearest(base, queries, 10, "l2"), brute_force(base, queries, 10, "l2"))


def test_no_array_is_large(monkeypatch: pytest.MonkeyPatch):
    """Two thousand dimensions, and as many queries as vectors; numpy reports what it allocates."""
    random = np.random.default_rng(6)
    rows = random.normal(size=(1000, 2000)).astype(np.float32)
    base = Vectors("vectors", *rows.shape, lambda start, stop: rows[start:stop], lambda: "")
    monkeypatch.setattr(neighbours, "_CELLS", 1 << 15)
    tracemalloc.start()
    try:
        nearest(base, base, 5, "l2")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 12 * 8 * (1 << 15)


def test_neighbours_are_computed_once_and_kept(tmp_path: Path):
    home = Home(tmp_path)
    base, queries = generated_vectors(1, 500), generated_queries(1, 10)
    path = exact_neighbours(home, base, queries, 5, "l2")
    assert np.array_equal(np.load(path), nearest(base, queries, 5, "l2"))
    np.save(path, np.zeros((1, 1), np.int64))
    assert exact_neighbours(home, base, queries, 5, "l2") == path
    assert np.load(path).shape == (1, 1)
    groups = generated_groups(1, 500)
    others = {
        exact_neighbours(home, base, queries, 5, "l2", selected=groups < 50),
        exact_neighbours(home, base, queries, 5, "l2", selected=groups < 51),
        exact_neighbours(home, base, queries, 5, "cosine"),
        exact_neighbours(home, base, queries, 6, "l2"),
        exact_neighbours(home, generated_vectors(2, 500), queries, 5, "l2"),
        exact_neighbours(home, base, generated_queries(1, 11), 5, "l2"),
    }
    assert len(others | {path}) == 7
    assert {one.suffix for one in path.parent.iterdir()} == {".npy", ".lock"}


def test_of_several_at_once_one_computes(tmp_path: Path):
    reads: list[int] = []
    rows = np.random.default_rng(1).normal(size=(100, 4)).astype(np.float32)

    def read(start: int, stop: int) -> npt.NDArray[np.float32]:
        reads.append(start)
        return rows[start:stop]

    base = Vectors("vectors", 100, 4, read, lambda: "")
    with ThreadPoolExecutor(4) as pool:
        paths = set(
            pool.map(
                lambda _: exact_neighbours(Home(tmp_path), base, vectors_of(rows[:3]), 2, "l2"), range(4)
            )
        )
    assert (len(paths), reads) == (1, [0])


def test_a_failure_keeps_nothing(tmp_path: Path):
    rows = np.ones((10, 3), np.float32)
    rows[4, 2] = np.nan
    with pytest.raises(UsageError, match="vector 4"):
        exact_neighbours(Home(tmp_path), vectors_of(rows), vectors_of(rows[:2]), 2, "l2")
    assert not list(tmp_path.rglob("*.npy"))


def test_an_unwritable_home_is_told(tmp_path: Path):
    home = Home(tmp_path)
    (home.corpora / ".neighbours").write_text("in the way")
    with pytest.raises(BenchctlError, match=r"cannot write .*neighbours"):
        exact_neighbours(home, generated_vectors(1, 10), generated_queries(1, 2), 1, "l2")


def test_vectors_that_cannot_be_compared_are_refused():
    rows = np.ones((10, 3))
    with pytest.raises(UsageError, match="asked: vectors of 2 dimensions, and documents has 3"):
        nearest(vectors_of(rows, "documents"), vectors_of(rows[:, :2], "asked"), 1, "l2")
    rows[6] = 0
    with pytest.raises(UsageError, match=r"documents: vector 6, .* is zero"):
        nearest(vectors_of(rows, "documents"), vectors_of(rows[:3]), 1, "cosine")
    with pytest.raises(UsageError, match=r"asked: vector 1, .* is zero"):
        nearest(vectors_of(rows[:3]), vectors_of(rows[5:7], "asked"), 1, "cosine")
    for space in ("l2", "dot_product"):
        assert nearest(vectors_of(rows), vectors_of(rows[:3]), 1, space).tolist() == [[0], [0], [0]]
