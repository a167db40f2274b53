"""Bulk request bodies: documents framed with action lines, optionally with repeated ids."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from benchctl.corpus.tables import Indices, Words, key, words

# Rally's: with full recency, the latest thirtieth of the ids gets most of the repetitions.
_RECENCY_SLOPE = 30.0
_ROUNDS = 4
_WORD = 2.0**64

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class ConflictPlan:
    """The way ids repeat."""

    documents: int  # number of different ids, at least one; after them all repeat
    probability: float  # of a document to get an earlier id, 0 to 1
    shuffled: bool = False  # new ids come in random order; otherwise they count up
    recency: float = 0.0  # 0 to 1; 0 repeats all earlier ids with equal probability, more prefers recent ones


class ConflictingIds:
    """A generator of ids, reproducible by the 64-bit seed however many are taken at a time."""

    def __init__(self, plan: ConflictPlan, seed: int) -> None:
        self._plan = plan
        self._chances = key(seed, 1)
        self._choices = key(seed, 2)
        self._order = [key(seed, 3, number) for number in range(_ROUNDS)]
        self._taken = 0
        self._new = 0

    def take(self, count: int) -> tuple[Indices, Flags]:
        """Return the ids of the next `count` documents, and whether each is repeated; shape (count,) both."""
        numbers = np.arange(self._taken, self._taken + count, dtype=np.uint64)
        self._taken += count
        repeated = words(self._chances, numbers) / _WORD < self._plan.probability
        if not self._new:
            repeated[0] = False  # nothing to repeat yet
        given = self._new + np.cumsum(~repeated)
        # A corpus that is sent again has no new ids left.
        repeated |= given > self._plan.documents
        given = np.minimum(given, self._plan.documents)
        self._new = int(given[-1])
        places = given - 1
        places[repeated] = self._choose(numbers[repeated], given[repeated])
        return (self._shuffle(places) if self._plan.shuffled else places), repeated

    def _choose(self, numbers: Words, given: Indices) -> Indices:
        """Return which of the earlier ids to repeat."""
        chance = words(self._choices, numbers) / _WORD
        if self._plan.recency:
            # How far back, as a share of all: an exponential distribution truncated at the oldest id. Rally
            # gives that id the whole tail instead, which is nearly everything for a recency near 0.
            rate = _RECENCY_SLOPE * self._plan.recency
            chance = 1.0 + np.log1p(chance * np.expm1(-rate)) / rate
        return np.clip((chance * given).astype(np.intp), 0, given - 1)

    def _shuffle(self, places: Indices) -> Indices:
        """Return a permutation of [0, documents), without a table.

        A Feistel network permutes the next even power of two; values outside go through it again until they
        are inside ("cycle walking", Black and Rogaway: Ciphers with Arbitrary Finite Domains, 2002).
        """
        half = np.uint64((max(self._plan.documents, 2) - 1).bit_length() + 1) // np.uint64(2)
        shuffled = places.astype(np.uint64)
        outside = np.ones(len(shuffled), dtype=np.bool_)
        while outside.any():
            shuffled[outside] = self._feistel(shuffled[outside], half)
            outside = shuffled >= self._plan.documents
        return shuffled.astype(np.intp)

    def _feistel(self, values: Words, half: np.uint64) -> Words:
        mask = (np.uint64(1) << half) - np.uint64(1)
        left, right = values >> half, values & mask
        for stream in self._order:
            left, right = right, left ^ (words(stream, right) & mask)
        return (left << half) | right


Frame = Callable[[Sequence[bytes]], bytes]
"""Lines -> body."""


def frame_bodies(
    blocks: Iterable[bytes], documents_per_body: int, *, framing: Frame | None = None, lines_each: int = 1
) -> Iterator[tuple[int, bytes]]:
    r"""Cut a stream of document lines into bodies for `POST /index/_bulk`.

    Args:
        blocks: bytes of documents, one per line; blocks may end anywhere, and an unfinished last line counts.
        documents_per_body: at least 1.
        framing: of a body; `frame` when None.
        lines_each: lines per document: 2 with action lines.

    Yields:
        (documents, body): every document in order, with its action line and a final newline; each body has
        `documents_per_body` documents but the last one, which has the rest.

    Raises:
        ValueError: If `documents_per_body` is less than 1.
    """
    make = framing or frame
    for lines in batches(blocks, documents_per_body * lines_each):
        yield len(lines) // lines_each, make(lines)


def batches(blocks: Iterable[bytes], documents_per_body: int) -> Iterator[list[bytes]]:
    """Cut a stream like `frame_bodies`, but yield the lines of each body unframed."""
    if documents_per_body < 1:
        raise ValueError(f"a body needs at least one document, not {documents_per_body}")
    waiting: list[bytes] = []
    for lines in _lines(blocks):
        waiting += lines
        complete = len(waiting) - len(waiting) % documents_per_body
        for first in range(0, complete, documents_per_body):
            yield waiting[first : first + documents_per_body]
        del waiting[:complete]
    if waiting:
        yield waiting


def _lines(blocks: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield the lines that end in each block, without newlines; then an unfinished one."""
    unfinished: list[bytes] = []
    for block in blocks:
        lines = block.split(b"\n")
        if len(lines) > 1:
            lines[0] = b"".join([*unfinished, lines[0]])
            unfinished.clear()
        unfinished.append(lines.pop())
        yield lines
    if rest := b"".join(unfinished):
        yield [rest]


def frame(documents: Sequence[bytes], action: bytes = b"index") -> bytes:
    """Return a body whose documents get their ids from the engine; data streams require `create`."""
    line = b'{"%b":{}}\n' % action
    return b"".join([line, (b"\n" + line).join(documents), b"\n"])


def frame_created(documents: Sequence[bytes]) -> bytes:
    """Return a body of create actions."""
    return frame(documents, b"create")


def frame_lines(lines: Sequence[bytes]) -> bytes:
    """Return a body of lines that include the actions."""
    return b"".join([b"\n".join(lines), b"\n"])


def frame_with_ids(
    documents: Sequence[bytes],
    ids: Iterable[int],
    repeated: Iterable[bool],
    on_conflict: Literal["index", "update"],
) -> bytes:
    """Return a body of documents with ids.

    Args:
        documents: one line each.
        ids: one per document; written with at least ten digits.
        repeated: whether an earlier document had the id.
        on_conflict: the action for a document with a repeated id.
    """
    lines = [
        b'{"update":{"_id":"%010d"}}\n{"doc":%b}\n' % (number, document)
        if again and on_conflict == "update"
        else b'{"index":{"_id":"%010d"}}\n%b\n' % (number, document)
        for document, number, again in zip(documents, ids, repeated, strict=True)
    ]
    return b"".join(lines)
