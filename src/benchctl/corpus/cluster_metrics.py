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

from benchctl.corpus import random_bits
from benchctl.corpus.random_bits import Indices, Words
from benchctl.corpus.rows import Flags, Numbers, RowLayout, Slice, Span
from benchctl.corpus.tables import Texts, integers, thousandths

GENERATOR_VERSION = 1
FILE_BYTES_A_DOCUMENT = 17  # 15 measured, and a tenth to spare

EPOCHS = 5
NODES = 30
TASKS = 200

NUMBERS = ("epoch",)
KEYWORDS = ("node", "task")

_PART_DOCUMENTS = 500_000
_BLOCK_DOCUMENTS = 1 << 14
_COLUMN_DOCUMENTS = 1 << 18
_WHOLE = 100
_TEMPLATE = (
    '{"epoch":<epoch>,"node":"<node>","task":"<task>",'
    '"cpu":<cpu>.<cpu-decimals>,"mem":<mem>.<mem-decimals>,"net":<net>.<net-decimals>}\n'
)


class Field(IntEnum):
    """What is drawn for a document; the numbers are part of the random bits, so only append."""

    NODE = auto()
    TASK = auto()
    CPU = auto()
    MEM = auto()
    NET = auto()


def spans(documents: int) -> Iterator[Span]:
    """The part files of a corpus in document order, each within an epoch."""
    for epoch in range(EPOCHS):
        first, last = _first_of(epoch, documents), _first_of(epoch + 1, documents)
        parts = -(-(last - first) // _PART_DOCUMENTS)
        cuts = [first + (last - first) * part // parts for part in range(parts)] + [last]
        for part in range(parts):
            yield Span(f"epoch-{epoch + 1}-part-{part:04d}.ndjson.zst", cuts[part], cuts[part + 1])


def _first_of(epoch: int, documents: int) -> int:
    return -(-documents * epoch // EPOCHS)


def generate(seed: int, documents: int, start: int, stop: int) -> Iterator[bytes]:
    """The documents [start, stop), numbered from 0, of the corpus (seed, documents); in memory of a block.

    Yields:
        Whole lines with newlines.

    Raises:
        ValueError: the slice is not within the corpus.
    """
    layout = RowLayout(_TEMPLATE)
    for block in _blocks(Slice(seed, documents, start, stop), _BLOCK_DOCUMENTS):
        yield layout.lines(block.documents, block.texts())


class Block:
    """Documents [start, stop) as columns of shape (n,)."""

    def __init__(self, part: Slice) -> None:
        self.documents = part.stop - part.start
        self._part = part
        self._numbers: Words = np.arange(part.start, part.stop, dtype=np.uint64)

    def numbers(self, field: str) -> Numbers:
        """The values of one of NUMBERS.

        Raises:
            KeyError: it is another field.
        """
        if field not in NUMBERS:
            raise KeyError(field)
        return (1 + self._numbers.astype(np.int64) * EPOCHS // self._part.documents).astype(np.int64)

    def keywords(self, field: str) -> Numbers:
        """The values of one of KEYWORDS, as indices into `keyword_texts(field)`.

        Raises:
            KeyError: it is another field.
        """
        drawn = {"node": Field.NODE, "task": Field.TASK}[field]
        return self._below(drawn, len(_names(field))).astype(np.int64, copy=False)

    def with_words(self, _words: tuple[str, ...], /) -> Flags:
        """No document has text."""
        return np.zeros(self.documents, dtype=np.bool_)

    def texts(self) -> dict[str, Texts]:
        """The texts of every gap of a document."""
        found = {
            "epoch": integers(EPOCHS + 1)[self.numbers("epoch")],
            "node": _names("node")[self.keywords("node")],
            "task": _names("task")[self.keywords("task")],
        }
        wholes, decimals = integers(_WHOLE), thousandths()
        for name, field in (("cpu", Field.CPU), ("mem", Field.MEM), ("net", Field.NET)):
            whole, decimal = np.divmod(self._below(field, _WHOLE * len(decimals)), len(decimals))
            found |= {name: wholes[whole], f"{name}-decimals": decimals[decimal]}
        return found

    def _below(self, field: Field, bound: int) -> Indices:
        return random_bits.below(random_bits.key(self._part.seed, field), self._numbers, bound)


@cache
def _names(field: str) -> Texts:
    letter, count = {"node": ("N", NODES), "task": ("T", TASKS)}[field]
    return np.array([f"{letter}{number:03d}".encode("ascii") for number in range(1, count + 1)])


def keyword_texts(field: str) -> tuple[str, ...]:
    """The texts of one of KEYWORDS, by index.

    Raises:
        KeyError: it is another field.
    """
    return tuple(text.decode() for text in _names(field).tolist())


def blocks(part: Slice) -> Iterator[Block]:
    """The documents of a slice, in order, in blocks that keep memory at some megabytes.

    Raises:
        ValueError: the slice is not within the corpus.
    """
    return _blocks(part, _COLUMN_DOCUMENTS)


def _blocks(part: Slice, most: int) -> Iterator[Block]:
    part.check()
    for first in range(part.start, part.stop, most):
        yield Block(Slice(part.seed, part.documents, first, min(first + most, part.stop)))
