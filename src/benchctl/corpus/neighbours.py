"""Published vectors and neighbours, in HDF5 as of ann-benchmarks, and exact neighbours found here."""

import hashlib
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from benchctl.corpus.generated import locked
from benchctl.corpus.tables import Flags, Indices, Numbers
from benchctl.corpus.vectors import Floats, Space, Vectors
from benchctl.disk import disk_errors, open_regular, replacing
from benchctl.errors import UsageError, suggestion
from benchctl.home import Home

Doubles: TypeAlias = npt.NDArray[np.float64]

VectorContext = Literal["train", "test"]
"""The vectors of documents, or those to search for: a file has both."""


def read_vectors(path: Path, context: VectorContext = "train") -> Vectors:
    """Return the vectors of an HDF5 file, which is read slice by slice.

    Raises:
        UsageError: If the file cannot be read, or has no such vectors.
    """

    def read(start: int, stop: int) -> Floats:
        # What float32 cannot hold is refused by whoever reads infinities.
        with _table(path, context) as table, np.errstate(over="ignore"):
            return np.asarray(table[start:stop], np.float32)

    def identify() -> str:
        with _refusals(path), open_regular(path) as file:
            return f"{hashlib.file_digest(file, 'sha256').hexdigest()} {context}"

    with _table(path, context) as table:
        count, dims = table.shape
    return Vectors(str(path), count, dims, read, identify)


def read_neighbours(
    path: Path, *, documents: int | None = None, queries: int | None = None, k: int | None = None
) -> Numbers:
    """Return the numbers of published nearest vectors, nearest first, -1 for none; shape (queries, k).

    Args:
        path: an HDF5 file with `neighbors`.
        documents: size of the corpus; None for that of its own `train`, or any.
        queries: how many queries are needed, the first ones; None for all.
        k: how many neighbours of each are needed, the nearest; None for all.

    Raises:
        UsageError: If the file cannot be read, or has too few, or those in another corpus.
    """
    with _table(path, "neighbors") as table:
        for needed, available, what in zip((queries, k), table.shape, ("queries", "neighbours"), strict=True):
            if needed is not None and needed > available:
                raise UsageError(
                    f"{path}: it has {available:,} {what}, and {needed:,} are required",
                    hint=f"use at most {available:,}, or another file",
                )
        numbers = np.asarray(table[:queries, :k], np.int64)
        corpus = table.parent.get("train")
        if documents is None and corpus is not None:
            documents = len(corpus)
    wrong = (numbers < -1) | (numbers >= (math.inf if documents is None else documents))
    if wrong.any():
        raise UsageError(
            f"{path}: neighbour {numbers[wrong][0]} is not a vector of the corpus",
            hint="give the file of the neighbours in this corpus, or calculate-recall: false",
        )
    return numbers


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    """Turn what the disk or HDF5 refuses into an error that names the file."""
    try:
        yield
    except (OSError, RuntimeError) as err:
        reason = getattr(err, "strerror", None) or str(err)
        raise UsageError(
            f"cannot read vectors of {path}: {reason}", hint="check the file, or fetch it again"
        ) from err


@contextmanager
def _table(path: Path, name: str) -> Iterator[Any]:
    """Open rows of numbers: a data set by its name."""
    # It takes a tenth of a second to load, and few runs have such files.
    import h5py  # noqa: PLC0415 - see above

    with _refusals(path), open_regular(path), h5py.File(path, "r") as opened:
        table = opened.get(name)
        shape = getattr(table, "shape", ())
        if len(shape) != len(("rows", "columns")) or not all(shape) or table.dtype.kind not in "iuf":
            raise UsageError(
                f"cannot read vectors of {path}: no data set '{name}' with rows of numbers",
                hint=suggestion(name, opened),
            )
        yield table


# Exact neighbours are found by comparing each query with each vector, and kept in benchctl's home. Products
# in float32 rule out nearly all pairs, by a bound of their rounding errors. The others are computed again in
# float64, so the result is that of float64 throughout.

_VERSION = 1  # of kept results
_CELLS = 1 << 21  # of an array: 16 MiB of float64; for a moment, some have twice as many
_MOST_ROWS = 1 << 14
_FLOAT32 = np.finfo(np.float32)


def exact_neighbours(
    home: Home, base: Vectors, queries: Vectors, k: int, space: Space, *, selected: Flags | None = None
) -> Path:
    """Return the .npy file of what `nearest` finds, made unless it exists.

    Raises:
        UsageError: If the vectors cannot be compared or read.
        BenchctlError: If the file cannot be written.
    """
    mask = "" if selected is None else hashlib.sha256(np.packbits(selected).tobytes()).hexdigest()
    key = f"{_VERSION} {base.digest} {queries.digest} {k} {space} {mask}"
    folder = home.corpora / ".neighbours"
    path = folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.npy"
    with disk_errors(f"write {path}"):
        folder.mkdir(exist_ok=True)
        with locked(path.with_suffix(".lock")):
            if not path.exists():
                numbers = nearest(base, queries, k, space, selected=selected)
                with replacing(path) as building, building.open("wb") as file:
                    np.save(file, numbers)
    return path


def nearest(
    base: Vectors, queries: Vectors, k: int, space: Space, *, selected: Flags | None = None
) -> Numbers:
    """Return the numbers of the k nearest vectors, nearest first; the lower number first where equally near.

    Memory holds the result, its distances, and a few arrays of at most 32 MiB.

    Args:
        base: the vectors of the corpus, in the order of documents.
        queries: what is searched for.
        k: how many neighbours, at least 1.
        space: what makes vectors near.
        selected: which vectors pass a filter, shape (base.count,); None for all.

    Returns:
        Numbers from 0, and -1 where fewer than k are selected; shape (queries.count, k).

    Raises:
        UsageError: If dimensions differ, a vector has no direction under cosine, or cannot be read.
    """
    if base.dims != queries.dims:
        raise UsageError(
            f"{queries.name}: vectors of {queries.dims:,} dimensions, and {base.name} has {base.dims:,}",
            hint="search for vectors that were made the same way",
        )
    numbers, distances = np.full((queries.count, k), -1), np.full((queries.count, k), np.inf)
    rows = min(_MOST_ROWS, base.count, max(1, _CELLS // base.dims))
    asked_rows = min(_MOST_ROWS, max(1, _CELLS // base.dims), 2 * _CELLS // rows)
    for part, vectors in _blocks(base, rows, space):
        chosen = np.arange(len(vectors)) if selected is None else np.flatnonzero(selected[part])
        kept, new = vectors[chosen], part.start + chosen
        for asked, wanted in _blocks(queries, asked_rows, space) if chosen.size else ():
            _improve(numbers[asked], distances[asked], wanted, kept, new, space)
    return numbers


def check_vectors(vectors: Vectors, space: Space) -> None:
    """Read vectors block by block.

    Raises:
        UsageError: If one has no direction under cosine, a value that is not finite, or cannot be read.
    """
    for _ in _blocks(vectors, max(1, _CELLS // vectors.dims), space):
        pass


def _blocks(vectors: Vectors, size: int, space: Space) -> Iterator[tuple[slice, Doubles]]:
    """Yield blocks of vectors; of length 1 for cosine, which is then a dot product."""
    for start in range(0, vectors.count, size):
        part = slice(start, min(start + size, vectors.count))
        rows = vectors.rows(part.start, part.stop).astype(np.float64)
        if space == "cosine":
            lengths = np.linalg.norm(rows, axis=1, keepdims=True)
            if not lengths.all():
                raise UsageError(
                    f"{vectors.name}: vector {start + int(np.argmin(lengths)):,}, counted from 0, "
                    "is zero, which has no cosine",
                    hint="engines refuse it, too: use another space, or repair the file",
                )
            rows /= lengths
        yield part, rows


def _improve(
    numbers: Numbers, distances: Doubles, wanted: Doubles, rows: Doubles, new: Numbers, space: Space
) -> None:
    """Update the nearest of some queries with rows, whose numbers are new."""
    k = numbers.shape[1]
    asked, places = _possible(distances[:, -1], k, wanted, rows, space)
    exact = np.empty(len(asked))
    step = max(1, _CELLS // rows.shape[1])
    for start in range(0, len(asked), step):
        part = slice(start, start + step)
        one, other = wanted[asked[part]], rows[places[part]]
        exact[part] = ((one - other) ** 2 if space == "l2" else -one * other).sum(axis=1)
    of_query = np.concatenate([np.repeat(np.arange(len(wanted)), k), asked])
    candidates = np.concatenate([numbers.ravel(), new[places]])
    exact = np.concatenate([distances.ravel(), exact])
    order = np.lexsort((candidates, exact, of_query))
    first = np.searchsorted(of_query[order], np.arange(len(wanted)))
    best = order[first[:, np.newaxis] + np.arange(k)]
    numbers[:], distances[:] = candidates[best], exact[best]


def _possible(
    farthest: Doubles, k: int, wanted: Doubles, rows: Doubles, space: Space
) -> tuple[Indices, Indices]:
    """Find pairs of queries and rows, as indices, that may be nearer than the farthest of k, if there are k.

    Scores are distances less the square of the query, which is the same for all rows.
    """
    squares, query_squares = (rows**2).sum(axis=1), (wanted**2).sum(axis=1)
    # A sum of n products in float32 is off by n roundings of the product of lengths at most (Higham: Accuracy
    # and Stability of Numerical Algorithms, 2002, 3.1). The factor leaves room for the other steps.
    lengths = np.sqrt(query_squares) + np.sqrt(squares.max())
    error = 4 * (rows.shape[1] + 4) * (float(_FLOAT32.eps) * lengths**2 + float(_FLOAT32.tiny))
    with np.errstate(over="ignore", invalid="ignore"):
        scores = wanted.astype(np.float32) @ rows.astype(np.float32).T
        if space == "l2":
            scores *= -2
            scores += squares.astype(np.float32)
        else:
            np.negative(scores, out=scores)
    has_k = np.isfinite(farthest).all()
    if not np.isfinite(scores).all() or (k > len(rows) and not has_k):
        is_possible = np.full(scores.shape, fill_value=True)
    elif has_k:
        limits = farthest - (query_squares if space == "l2" else 0) + error
        is_possible = scores <= limits[:, np.newaxis]
    else:
        limits = np.partition(scores, k - 1, axis=1)[:, k - 1] + 2 * error
        is_possible = scores <= limits[:, np.newaxis]
    asked, places = np.nonzero(is_possible)
    return asked, places
