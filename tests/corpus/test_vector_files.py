"""Files of vectors and neighbours: read as their publishers write them, and refused when they are not."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchctl.corpus.vector_files import read_neighbours, read_vectors
from benchctl.errors import UsageError

VALUES = {".fbin": "<f4", ".u8bin": "u1", ".i8bin": "i1"}
NEIGHBOURS = np.array([[3, 0, 2], [1, -1, -1]])


def write_bin(path: Path, *tables: npt.NDArray[Any]) -> Path:
    header = np.array(tables[0].shape, "<u4")
    path.write_bytes(header.tobytes() + b"".join(table.tobytes() for table in tables))
    return path


def write_hdf5(path: Path, **tables: Any) -> Path:
    with h5py.File(path, "w") as file:
        for name, table in tables.items():
            file[name] = table
    return path


@settings(deadline=None, max_examples=30)
@given(
    count=st.integers(1, 40),
    dims=st.integers(1, 9),
    suffix=st.sampled_from(sorted(VALUES)),
    seed=st.integers(0, 99),
    cuts=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_slices_of_files_are_what_was_written(
    tmp_path_factory: pytest.TempPathFactory,
    count: int,
    dims: int,
    suffix: str,
    seed: int,
    cuts: tuple[float, float],
):
    folder = tmp_path_factory.mktemp("files")
    table = np.random.default_rng(seed).integers(0, 127, (count, dims)).astype(VALUES[suffix])
    start, stop = sorted(int(cut * count) for cut in cuts)
    binary = read_vectors(write_bin(folder / f"base.1M{suffix}", table), "big-ann")
    hdf5 = read_vectors(write_hdf5(folder / "x.hdf5", train=table[::-1], test=table), "hdf5", "test")
    for vectors in (binary, hdf5):
        assert (vectors.count, vectors.dims) == (count, dims)
        rows = vectors.rows(start, stop)
        assert rows.dtype == np.float32
        assert np.array_equal(rows, table[start:stop])


def test_the_digest_is_that_of_the_content(tmp_path: Path):
    table = np.arange(12, dtype="<f4").reshape(4, 3)
    first, again, other = (
        read_vectors(write_bin(tmp_path / f"{name}.fbin", values), "big-ann")
        for name, values in (("a", table), ("b", table), ("c", table + 1))
    )
    assert first.digest == again.digest != other.digest
    path = write_hdf5(tmp_path / "x.hdf5", train=table, test=table[:2])
    assert read_vectors(path, "hdf5", "train").digest != read_vectors(path, "hdf5", "test").digest


def test_neighbours_of_every_form(tmp_path: Path):
    numbers, distances = NEIGHBOURS.astype("<i4"), np.zeros((2, 3), "<f4")
    for path, form in (
        (write_bin(tmp_path / "truth.ibin", numbers), "big-ann"),
        (write_bin(tmp_path / "truth.bin", numbers, distances), "big-ann"),
        (write_hdf5(tmp_path / "x.hdf5", neighbors=numbers, distances=distances), "hdf5"),
    ):
        assert read_neighbours(path, form).dtype == np.int64
        assert read_neighbours(path, form).tolist() == NEIGHBOURS.tolist()
        assert read_neighbours(path, form, queries=1, k=2).tolist() == [[3, 0]]


def test_published_neighbours_of_something_else_are_refused(tmp_path: Path):
    for size in (3, 4):
        own = write_hdf5(tmp_path / f"{size}.hdf5", neighbors=NEIGHBOURS, train=np.zeros((size, 2)))
        if size > NEIGHBOURS.max():
            assert read_neighbours(own, "hdf5").tolist() == NEIGHBOURS.tolist()
        else:
            with pytest.raises(UsageError, match="neighbour 3 is none of the corpus's vectors"):
                read_neighbours(own, "hdf5")
    path = write_bin(tmp_path / "truth.ibin", NEIGHBOURS.astype("<i4"))
    with pytest.raises(UsageError, match="3 neighbours, and 10 are required"):
        read_neighbours(path, "big-ann", k=10)
    with pytest.raises(UsageError, match="2 queries, and 3 are required"):
        read_neighbours(path, "big-ann", queries=3, k=3)
    write_bin(path, (NEIGHBOURS - 1).astype("<i4"))
    with pytest.raises(UsageError, match="neighbour -2 is none"):
        read_neighbours(path, "big-ann")


def test_a_file_without_its_data_sets_is_refused(tmp_path: Path):
    table = np.zeros((4, 3), np.float32)
    path = write_hdf5(tmp_path / "x.hdf5", trains=table, test=np.zeros(4), words=np.array([[b"a"]]))
    with pytest.raises(UsageError, match="no data set 'neighbors' with rows of numbers"):
        read_neighbours(path, "hdf5")
    with pytest.raises(UsageError, match="no data set 'train' with rows of numbers") as raised:
        read_vectors(path, "hdf5")
    assert "trains" in raised.value.hint
    with pytest.raises(UsageError, match="no data set 'test' with rows of numbers"):
        read_vectors(path, "hdf5", "test")
    for content in ({"train": np.array([[b"a"]])}, {"train/deep": table}, {"train": table[:0]}):
        with pytest.raises(UsageError, match="no data set 'train' with rows of numbers"):
            read_vectors(write_hdf5(tmp_path / "y.hdf5", **content), "hdf5")


@pytest.mark.parametrize("kept", [0, 3, 8, 30, 55])
def test_a_truncated_file_is_refused(tmp_path: Path, kept: int):
    path = write_bin(tmp_path / "base.fbin", np.zeros((4, 3), "<f4"))
    whole = path.read_bytes()
    path.write_bytes(whole[:kept])
    with pytest.raises(UsageError, match=r"cannot read vectors of .*base.fbin: "):
        read_vectors(path, "big-ann")
    path.write_bytes(whole + b"\0")
    with pytest.raises(UsageError, match="57 bytes instead of 56"):
        read_vectors(path, "big-ann")


def test_a_file_that_is_cut_after_it_was_opened_is_refused(tmp_path: Path):
    path = write_bin(tmp_path / "base.fbin", np.zeros((4, 3), "<f4"))
    vectors = read_vectors(path, "big-ann")
    path.write_bytes(path.read_bytes()[:30])
    with pytest.raises(UsageError, match="30 bytes instead of 56"):
        vectors.rows()


def test_unreadable_files_are_refused(tmp_path: Path):
    for form, name in (("hdf5", "x.hdf5"), ("big-ann", "x.fbin")):
        path = tmp_path / name
        with pytest.raises(UsageError, match="No such file"):
            read_vectors(path, form)
        path.mkdir()
        with pytest.raises(UsageError, match="cannot read vectors of"):
            read_vectors(path, form)
    text = tmp_path / "text.hdf5"
    text.write_text("no vectors")
    with pytest.raises(UsageError, match=r"cannot read vectors of .*text.hdf5"):
        read_vectors(text, "hdf5")
    whole = write_hdf5(tmp_path / "y.hdf5", train=np.ones((4000, 3))).read_bytes()
    text.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UsageError, match=r"cannot read vectors of .*text.hdf5"):
        read_vectors(text, "hdf5")
    with pytest.raises(UsageError, match=r"has none of .fbin, .u8bin, .i8bin"):
        read_vectors(text, "big-ann")


def test_values_that_float32_cannot_hold_are_refused(tmp_path: Path):
    path = write_hdf5(tmp_path / "x.hdf5", train=np.array([[1.0, 2.0], [1e300, 0.0]]))
    with pytest.raises(UsageError, match=r"vector 1, .*infinite"):
        read_vectors(path, "hdf5").rows()
