"""Published vectors and nearest neighbours: HDF5 as in ann-benchmarks, and the binary files of big-ann."""

import hashlib
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchctl.corpus.tables import Numbers
from benchctl.corpus.vectors import Floats, Vectors
from benchctl.disk import open_regular
from benchctl.errors import UsageError, suggestion

VectorFormat = Literal["hdf5", "big-ann"]
"""The form of a file: data sets of HDF5, or a header of two numbers, rows and columns, before the values."""
VectorContext = Literal["train", "test"]
"""The vectors of documents, or those to search for: HDF5 has both in a file."""

_VALUES = {".fbin": "<f4", ".u8bin": "u1", ".i8bin": "i1"}
_HEADER_BYTES = 8


def read_vectors(path: Path, data_format: VectorFormat, context: VectorContext = "train") -> Vectors:
    """Return the vectors of a file, which is read slice by slice.

    Args:
        path: an HDF5 file; or one of big-ann's, with .fbin, .u8bin or .i8bin in its name.
        data_format: which of them.
        context: which vectors of an HDF5 file.

    Raises:
        UsageError: If the file cannot be read, or is not as its format or header requires.
    """
    kind = next((_VALUES[suffix] for suffix in path.suffixes if suffix in _VALUES), "")
    if data_format == "big-ann" and not kind:
        raise _unreadable(path, f"its name has none of {', '.join(_VALUES)}", "name it by its kind of values")

    def read(start: int, stop: int) -> Floats:
        # What float32 cannot hold is refused by whoever reads infinities.
        with _table(path, data_format, context, kind) as table, np.errstate(over="ignore"):
            return np.asarray(table[start:stop], np.float32)

    def identify() -> str:
        with _refusals(path), open_regular(path) as file:
            return f"{hashlib.file_digest(file, 'sha256').hexdigest()} {data_format} {context}"

    with _table(path, data_format, context, kind) as table:
        count, dims = table.shape
    return Vectors(str(path), count, dims, read, identify)


def read_neighbours(
    path: Path,
    data_format: VectorFormat,
    *,
    documents: int | None = None,
    queries: int | None = None,
    k: int | None = None,
) -> Numbers:
    """Return the numbers of published nearest vectors, nearest first, -1 for none; shape (queries, k).

    Args:
        path: an HDF5 file with `neighbors`; or one of big-ann's, with or without distances.
        data_format: which of them.
        documents: size of the corpus; None for that of its own `train`, or any.
        queries: how many queries are needed, the first ones; None for all.
        k: how many neighbours of each are needed, the nearest; None for all.

    Raises:
        UsageError: If the file cannot be read, or has too few, or those in another corpus.
    """
    with _table(path, data_format, "neighbors", "<i4", "<f4") as table:
        for needed, available, what in zip((queries, k), table.shape, ("queries", "neighbours"), strict=True):
            if needed is not None and needed > available:
                raise UsageError(
                    f"{path}: it has {available:,} {what}, and {needed:,} are required",
                    hint=f"use at most {available:,}, or another file",
                )
        numbers = np.asarray(table[:queries, :k], np.int64)
        corpus = getattr(table, "parent", {}).get("train")
        if documents is None and corpus is not None:
            documents = len(corpus)
        end = math.inf if documents is None else documents
    wrong = (numbers < -1) | (numbers >= end)
    if wrong.any():
        raise UsageError(
            f"{path}: neighbour {numbers[wrong][0]} is none of the corpus's vectors",
            hint="give the file of the neighbours in this corpus, or calculate-recall: false",
        )
    return numbers


def _unreadable(path: Path, reason: str, hint: str = "check the file, or fetch it again") -> UsageError:
    return UsageError(f"cannot read vectors of {path}: {reason}", hint=hint)


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    """Turn what the disk or HDF5 refuses into an error that names the file."""
    try:
        yield
    except (OSError, RuntimeError) as err:
        raise _unreadable(path, getattr(err, "strerror", None) or str(err)) from err


@contextmanager
def _table(path: Path, data_format: VectorFormat, name: str, *kinds: str) -> Iterator[Any]:
    """Open rows of numbers: a data set by its name; or those after a header, of the first kind.

    Numbers of further kinds may follow.
    """
    with _refusals(path), open_regular(path) as file:
        if data_format == "big-ann":
            yield _mapped(path, os.fstat(file.fileno()).st_size, np.fromfile(file, "<u4", 2).tolist(), kinds)
            return
        # It takes a tenth of a second to load, and few runs have such files.
        import h5py  # noqa: PLC0415 - see above

        with h5py.File(path, "r") as opened:
            table = opened.get(name)
            if not _has_rows(getattr(table, "shape", ())) or table.dtype.kind not in "iuf":
                hint = suggestion(name, opened)
                raise _unreadable(path, f"no data set '{name}' with rows of numbers", hint)
            yield table


def _has_rows(shape: tuple[int, ...]) -> bool:
    return len(shape) == len(("rows", "columns")) and all(shape)


def _mapped(path: Path, file_bytes: int, shape: list[int], kinds: tuple[str, ...]) -> Any:
    if not _has_rows(tuple(shape)):
        raise _unreadable(path, f"{shape} instead of its numbers of rows and columns")
    sizes = np.cumsum([math.prod(shape) * np.dtype(kind).itemsize for kind in kinds]) + _HEADER_BYTES
    if file_bytes not in sizes:
        expected = " or ".join(f"{size:,}" for size in sizes)
        raise _unreadable(path, f"{file_bytes:,} bytes instead of {expected}, as its header has it")
    return np.memmap(path, kinds[0], "r", _HEADER_BYTES, tuple(shape))
