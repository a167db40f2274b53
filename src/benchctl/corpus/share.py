"""Which documents of a file are used when not all are: evenly spaced blocks, the same ones every time.

Pure arithmetic on two numbers. Corpora lie in the order of their days, so a prefix would hold the first days
only.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

BLOCKS = 1000
"""Blocks of a share: no stretch of a file has a thousandth of the share more or less than is its due."""


class Stretch(NamedTuple):
    """Consecutive documents of a file, [start, stop), numbered within the file."""

    start: int
    stop: int


def stretches(documents: int, held: int, start: int = 0, stop: int | None = None) -> Iterator[Stretch]:
    """Where the documents [start, stop) of an even share lie in their file, in order.

    Before the kth of n blocks, (2k + 1) / 2n of the documents that are left out were left out.

    Args:
        documents: size of the share.
        held: documents of the whole file.
        start: the first document wanted, numbered within the share.
        stop: one behind the last; all of the share when None.

    Yields:
        Stretches that do not touch each other, none of them empty; a single one when nothing is left out.

    Raises:
        ValueError: the share is larger than the file, or the slice does not lie in the share.
    """
    stop = documents if stop is None else stop
    if not 0 <= start <= stop <= documents <= held:
        raise ValueError(f"documents [{start}, {stop}) are not a slice of {documents} out of {held}")
    left_out = held - documents
    if left_out == 0:
        if start < stop:
            yield Stretch(start, stop)
        return
    blocks = min(documents, BLOCKS)
    block = start * blocks // documents if blocks else 0
    waiting: Stretch | None = None
    while start < stop:
        end = min((block + 1) * documents // blocks, stop)
        gap = (2 * block + 1) * left_out // (2 * blocks)
        found = Stretch(start + gap, end + gap)
        block += 1
        start = end
        if found.start == found.stop:
            continue
        if waiting is not None and waiting.stop == found.start:
            waiting = Stretch(waiting.start, found.stop)
            continue
        if waiting is not None:
            yield waiting
        waiting = found
    if waiting is not None:
        yield waiting


def shared_out(documents: int, held: Sequence[int]) -> tuple[int, ...]:
    """Share a number of documents out over files in proportion to what they hold.

    Args:
        documents: altogether, at most what the files hold.
        held: documents of every file.

    Returns:
        Of every file; each is off its exact share by less than one document.
    """
    total = sum(held)
    found = []
    before = 0
    for count in held:
        after = before + count
        found.append(after * documents // total - before * documents // total if total else 0)
        before = after
    return tuple(found)
