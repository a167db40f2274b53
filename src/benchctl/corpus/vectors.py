"""The vectors generator: points of overlapping clusters, any slice of them on its own.

A document has its number, a group from 0 to 99, uniformly, so that `{"range": {"group": {"lt": 5}}}` matches
5%, and a vector of 128 values, multiples of 0.001 within (-10, 10).

Like embeddings, points have fewer degrees of freedom than dimensions: 32 hidden values, which a random matrix
maps to the dimensions, and a little noise in each. Hidden values are the sum of those of one of 150 centres,
of standard deviation 0.5, and the point's own, of 1: clusters overlap. A graph by faiss of 100,000 points
with 16 links each finds 48% of the 10 nearest with 10 candidates, 85% with 50, and 98% with 200.

Lengths differ, so neighbours depend on the space. Queries are further points of the clusters.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum, auto
from functools import cache, cached_property, partial
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from benchctl.corpus import tables
from benchctl.corpus.tables import Numbers, RowLayout, Span, Texts, Words, blocks_of, check_slice, integers
from benchctl.errors import UsageError

Floats: TypeAlias = npt.NDArray[np.float32]

Space = Literal["l2", "cosine", "dot_product"]
"""The measure of nearness: a small Euclidean distance, a small angle, a large dot product."""


@dataclass(frozen=True)
class Vectors:
    """Vectors of equal dimensions, generated or in a file, read in slices."""

    name: str  # in messages
    count: int
    dims: int
    read: Callable[[int, int], Floats]  # returns vectors [start, stop), unchecked
    identify: Callable[[], str]  # returns what only equal vectors share

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what identifies them, hexadecimal; files are read in full.

        Raises:
            UsageError: If a file cannot be read.
        """
        return hashlib.sha256(self.identify().encode()).hexdigest()

    def rows(self, start: int = 0, stop: int | None = None) -> Floats:
        """Return vectors [start, stop), numbered from 0, by default all; shape (stop - start, dims).

        Raises:
            ValueError: If the slice is not among them.
            UsageError: If they cannot be read, or a value is infinite or not a number.
        """
        stop = self.count if stop is None else stop
        check_slice(start, stop, self.count)
        rows = self.read(start, stop)
        finite = np.isfinite(rows).all(axis=1)
        if not finite.all():
            raise UsageError(
                f"{self.name}: vector {start + int(np.argmin(finite)):,}, counted from 0, "
                "has a value that is infinite or not a number",
                hint="engines reject it: repair the file",
            )
        return rows


GENERATOR_VERSION = 2
FILE_BYTES_A_DOCUMENT = 350  # 318 measured, and a tenth to spare

DIMS = 128
CLUSTERS = 150
GROUPS = 100

_HIDDEN = 32
# Standard deviations, and all values, are in thousandths.
_UNIT = 1000
_CENTRES = 500
_OWN = 1000
_MIXING = 177  # 1 / sqrt(32): a value varies as much as a hidden one
_NOISE = 200
_LARGEST = 10 * _UNIT - 1

_PART_DOCUMENTS = 20_000
_BLOCK_DOCUMENTS = 1 << 12


class Field(IntEnum):
    """The drawn values; the numbers are part of the random bits, so only append."""

    CENTRE = auto()
    MIXING = auto()
    GROUP = auto()
    CLUSTER = auto()
    HIDDEN = auto()
    NOISE = auto()
    QUERY_CLUSTER = auto()
    QUERY_HIDDEN = auto()
    QUERY_NOISE = auto()


_OF_DOCUMENTS = (Field.CLUSTER, Field.HIDDEN, Field.NOISE)
_OF_QUERIES = (Field.QUERY_CLUSTER, Field.QUERY_HIDDEN, Field.QUERY_NOISE)


def spans(documents: int) -> Iterator[Span]:
    """Yield the part files of a corpus of so many documents, in document order."""
    for part, start in enumerate(range(0, documents, _PART_DOCUMENTS)):
        yield Span(f"part-{part:04d}.ndjson.zst", start, min(start + _PART_DOCUMENTS, documents))


def generate(seed: int, documents: int, start: int, stop: int) -> Iterator[bytes]:
    """Yield documents [start, stop), numbered from 0, of the corpus (seed, documents), in a block of memory.

    Yields:
        Whole lines with newlines.

    Raises:
        ValueError: If the slice is not within the corpus.
    """
    check_slice(start, stop, documents)
    layout = RowLayout('{"number":<number>,"group":<group>,"vector":[<vector>]}\n')
    behind_comma = (np.arange(DIMS) > 0).astype(np.intp)
    for numbers in blocks_of(start, stop, _BLOCK_DOCUMENTS):
        texts = _decimals()[behind_comma, _LARGEST + _points(seed, _OF_DOCUMENTS, numbers)]
        columns = {
            "number": numbers.astype("S20"),
            "group": integers(GROUPS)[_groups(seed, numbers)],
            "vector": texts.view(f"S{texts.itemsize * DIMS}")[:, 0],
        }
        yield layout.lines(len(numbers), columns)


def generated_vectors(seed: int, documents: int) -> Vectors:
    """Return the vectors of a generated corpus, as engines read them: every value's nearest float32."""
    return _generated("the generated corpus", seed, _OF_DOCUMENTS, documents)


def generated_queries(seed: int, count: int) -> Vectors:
    """Return queries for the corpora of a seed; the first ones are the same whatever their count."""
    return _generated("the generated queries", seed, _OF_QUERIES, count)


def generated_groups(seed: int, documents: int) -> Numbers:
    """Return the groups of a corpus's documents, shape (documents,)."""
    return _groups(seed, np.arange(documents, dtype=np.uint64))


def _generated(name: str, seed: int, fields: tuple[Field, Field, Field], count: int) -> Vectors:
    def read(start: int, stop: int) -> Floats:
        blocks = [
            np.float32(_points(seed, fields, numbers) / _UNIT)
            for numbers in blocks_of(start, stop, _BLOCK_DOCUMENTS)
        ]
        return np.concatenate([np.empty((0, DIMS), np.float32), *blocks])

    return Vectors(name, count, DIMS, read, partial(str, (name, GENERATOR_VERSION, seed, count)))


def _groups(seed: int, numbers: Words) -> Numbers:
    return tables.below(tables.key(seed, Field.GROUP), numbers, GROUPS)


def _points(seed: int, fields: tuple[Field, Field, Field], numbers: Words) -> Numbers:
    """The values of points in thousandths, shape (n, DIMS)."""

    def bell(field: Field, rows: Words, width: int, deviation: int) -> Numbers:
        """Integers about 0, nearly normal, shape (rows, width): sums of four uniform ones of 16 bits."""
        counters = np.add.outer(rows * np.uint64(width), np.arange(width, dtype=np.uint64))
        bits = tables.words(tables.key(seed, field), counters)
        total = np.full(bits.shape, -2 * 0xFFFF, np.int64)
        for shift in (0, 16, 32, 48):
            total += (bits >> np.uint64(shift)).astype(np.int64) & 0xFFFF
        return total * deviation // 37_837  # 2^16 / sqrt(3)

    of_cluster, of_hidden, of_noise = fields
    cluster = tables.below(tables.key(seed, of_cluster), numbers, CLUSTERS)
    centres = bell(Field.CENTRE, np.arange(CLUSTERS, dtype=np.uint64), _HIDDEN, _CENTRES)
    mixing = bell(Field.MIXING, np.arange(_HIDDEN, dtype=np.uint64), DIMS, _MIXING)
    hidden = centres[cluster] + bell(of_hidden, numbers, _HIDDEN, _OWN)
    # Of integers this small, the product is exact in floats, whatever the order of its sums.
    mixed = np.rint(hidden.astype(np.float64) @ mixing.astype(np.float64) / _UNIT).astype(np.int64)
    points: Numbers = np.clip(mixed + bell(of_noise, numbers, DIMS, _NOISE), -_LARGEST, _LARGEST)
    return points


@cache
def _decimals() -> Texts:
    """The texts of -9.999 to 9.999, shape (2, 19999): bare, and behind a comma."""
    values = [f"{value / _UNIT:.3f}" for value in range(-_LARGEST, _LARGEST + 1)]
    return np.array([[f"{comma}{value}".encode("ascii") for value in values] for comma in ("", ",")])
