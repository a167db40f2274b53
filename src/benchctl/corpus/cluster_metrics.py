"""The cluster-metrics generator: samples of nodes and tasks in epochs, any slice of them on its own.

30 nodes and 200 tasks report CPU, memory and network, each a float from 0 to 99.999, for five epochs. Nodes,
tasks and values are drawn independently and uniformly, so that a node has a 30th of an epoch's documents. An
epoch is a fifth of the corpus: of five million, a million, as in the report that this workload is from.

A document takes 79 bytes on average, including its newline.
"""

from collections.abc import Iterator
from enum import IntEnum, auto
from functools import cache

import numpy as np

from benchctl.corpus import tables
from benchctl.corpus.tables import (
    Indices,
    RowLayout,
    Span,
    Texts,
    Words,
    blocks_of,
    check_slice,
    integers,
    thousandths,
)

GENERATOR_VERSION = 1
FILE_BYTES_A_DOCUMENT = 17  # 15 measured, and a tenth to spare

EPOCHS = 5
NODES = 30
TASKS = 200

_PART_DOCUMENTS = 500_000
_BLOCK_DOCUMENTS = 1 << 14
_WHOLE = 100
_TEMPLATE = (
    '{"epoch":<epoch>,"node":"<node>","task":"<task>",'
    '"cpu":<cpu>.<cpu-decimals>,"mem":<mem>.<mem-decimals>,"net":<net>.<net-decimals>}\n'
)


class Field(IntEnum):
    """The drawn values of a document; the numbers are part of the random bits, so only append."""

    NODE = auto()
    TASK = auto()
    CPU = auto()
    MEM = auto()
    NET = auto()


def spans(documents: int) -> Iterator[Span]:
    """Yield the part files of a corpus in document order, each within an epoch."""
    for epoch in range(EPOCHS):
        first, last = _first_of(epoch, documents), _first_of(epoch + 1, documents)
        parts = -(-(last - first) // _PART_DOCUMENTS)
        cuts = [first + (last - first) * part // parts for part in range(parts)] + [last]
        for part in range(parts):
            yield Span(f"epoch-{epoch + 1}-part-{part:04d}.ndjson.zst", cuts[part], cuts[part + 1])


def _first_of(epoch: int, documents: int) -> int:
    return -(-documents * epoch // EPOCHS)


def generate(seed: int, documents: int, start: int, stop: int) -> Iterator[bytes]:
    """Yield documents [start, stop), numbered from 0, of the corpus (seed, documents), in a block of memory.

    Yields:
        Whole lines with newlines.

    Raises:
        ValueError: If the slice is not within the corpus.
    """
    check_slice(start, stop, documents)
    layout = RowLayout(_TEMPLATE)
    for numbers in blocks_of(start, stop, _BLOCK_DOCUMENTS):
        yield layout.lines(len(numbers), _texts(seed, documents, numbers))


def _texts(seed: int, documents: int, numbers: Words) -> dict[str, Texts]:
    """Return the texts of every gap of documents, by their numbers."""

    def draw(field: Field, bound: int) -> Indices:
        return tables.below(tables.key(seed, field), numbers, bound)

    texts = {
        "epoch": integers(EPOCHS + 1)[1 + numbers.astype(np.int64) * EPOCHS // documents],
        "node": _names("N", NODES)[draw(Field.NODE, NODES)],
        "task": _names("T", TASKS)[draw(Field.TASK, TASKS)],
    }
    wholes, decimals = integers(_WHOLE), thousandths()
    for name, field in (("cpu", Field.CPU), ("mem", Field.MEM), ("net", Field.NET)):
        whole, decimal = np.divmod(draw(field, _WHOLE * len(decimals)), len(decimals))
        texts |= {name: wholes[whole], f"{name}-decimals": decimals[decimal]}
    return texts


@cache
def _names(letter: str, count: int) -> Texts:
    return np.array([f"{letter}{number:03d}".encode("ascii") for number in range(1, count + 1)])
