"""HDF5 files of vectors and neighbours: read as they are published, and refused when they are not."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.corpus.neighbours import read_neighbours, read_vectors
from benchctl.errors import UsageError

NEIGHBOURS = np.array([[3, 0, 2], [1, -1, -1]])


def write_hdf5(path: Path, **tables: Any) -> Path:
    with h5py.File(path, "w") as file:
        for name, table in tables.items():
            file[name] = table
    return path


@settings(deadline=None, max_examples=20)
@given(
    count=st.integers(1, 40),
    dims=st.integers(1, 9),
    kind=st.sampled_from(["<f4", "u1", "i1"]),
    seed=st.integers(0, 99),
    cuts=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_slices_of_files_are_what_was_written(
    tmp_path_factory: pytest.TempPathFactory,
    count: int,
    dims: int,
    kind: str,
    seed: int,
    cuts: tuple[float, float],
):
    folder = tmp_path_factory.mktemp("files")
    table = np.random.default_rng(seed).integers(0, 127, (count, dims)).astype(kind)
    start, stop = sorted(int(cut * count) for cut in cuts)
    vectors = read_vectors(write_hdf5(folder / "x.hdf5", train=table[::-1], test=table), "test")
    assert (vectors.count, vectors.dims) == (count, dims)
    rows = vectors.rows(start, stop)
    assert rows.dtype == np.float32
    assert np.array_equal(rows, table[start:stop])


def test_the_digest_is_that_of_file_and_context(tmp_path: Path):
    table = np.arange(12, dtype="<f4").reshape(4, 3)
    path = write_hdf5(tmp_path / "x.hdf5", train=table, test=table[:2])
    other = write_hdf5(tmp_path / "y.hdf5", train=table + 1, test=table[:2])
    digests = [read_vectors(path).digest, read_vectors(path, "test").digest, read_vectors(other).digest]
    assert len(set(digests)) == 3
    assert read_vectors(path).digest == digests[0]


def test_neighbours_are_numbers_in_the_corpus(tmp_path: Path):
    for size in (3, 4):
        own = write_hdf5(tmp_path / f"{size}.hdf5", neighbors=NEIGHBOURS, train=np.zeros((size, 2)))
        if size > NEIGHBOURS.max():
            assert read_neighbours(own).dtype == np.int64
            assert read_neighbours(own).tolist() == NEIGHBOURS.tolist()
            assert read_neighbours(own, queries=1, k=2).tolist() == [[3, 0]]
        else:
            with pytest.raises(UsageError, match="neighbour 3 is not a vector of the corpus"):
                read_neighbours(own)
    alone = write_hdf5(tmp_path / "truth.hdf5", neighbors=NEIGHBOURS)
    with pytest.raises(UsageError, match="3 neighbours, and 10 are required"):
        read_neighbours(alone, k=10)
    with pytest.raises(UsageError, match="2 queries, and 3 are required"):
        read_neighbours(alone, queries=3, k=3)
    with pytest.raises(UsageError, match="neighbour -2 is not a vector"):
        read_neighbours(write_hdf5(tmp_path / "low.hdf5", neighbors=NEIGHBOURS - 1))


def test_a_file_without_its_data_sets_is_refused(tmp_path: Path):
    table = np.zeros((4, 3), np.float32)
    path = write_hdf5(tmp_path / "x.hdf5", trains=table, test=np.zeros(4), words=np.array([[b"a"]]))
    with pytest.raises(UsageError, match="no data set 'neighbors' with rows of numbers"):
        read_neighbours(path)
    with pytest.raises(UsageError, match="no data set 'train' with rows of numbers") as raised:
        read_vectors(path)
    assert "trains" in raised.value.hint
    with pytest.raises(UsageError, match="no data set 'test' with rows of numbers"):
        read_vectors(path, "test")
    for content in ({"train": np.array([[b"a"]])}, {"train/deep": table}, {"train": table[:0]}):
        with pytest.raises(UsageError, match="no data set 'train' with rows of numbers"):
            read_vectors(write_hdf5(tmp_path / "y.hdf5", **content))


def test_unreadable_files_are_refused(tmp_path: Path):
    path = tmp_path / "x.hdf5"
    with pytest.raises(UsageError, match="No such file"):
        read_vectors(path)
    path.mkdir()
    with pytest.raises(UsageError, match="cannot read vectors of"):
        read_vectors(path)
    text = tmp_path / "text.hdf5"
    text.write_text("no vectors")
    with pytest.raises(UsageError, match=r"cannot read vectors of .*text.hdf5"):
        read_vectors(text)
    whole = write_hdf5(tmp_path / "y.hdf5", train=np.ones((4000, 3))).read_bytes()
    text.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UsageError, match=r"cannot read vectors of .*text.hdf5"):
        read_vectors(text)


def test_values_that_float32_cannot_hold_are_refused(tmp_path: Path):
    path = write_hdf5(tmp_path / "x.hdf5", train=np.array([[1.0, 2.0], [1e300, 0.0]]))
    with pytest.raises(UsageError, match=r"vector 1, .*infinite"):
        read_vectors(path).rows()
