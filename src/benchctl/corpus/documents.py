"""Numbers of documents, as people write them (300k, 1m), and half-open ranges of documents."""

from collections.abc import Iterable

Range = tuple[int, int]
"""[start, stop)."""


def merged(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Return the same documents in the fewest ranges, in order, none of them empty."""
    found: list[Range] = []
    for start, stop in sorted(range_ for range_ in ranges if range_[0] < range_[1]):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(stop, found[-1][1]))
        else:
            found.append((start, stop))
    return tuple(found)


def count(ranges: Iterable[Range]) -> int:
    """Return how many documents are in at least one of the ranges."""
    return sum(stop - start for start, stop in merged(ranges))


def missing(ranges: Iterable[Range], documents: int) -> tuple[Range, ...]:
    """Return the documents of a corpus of `documents` that are in none of the ranges, in order."""
    gaps: list[Range] = []
    at = 0
    for start, stop in merged(ranges):
        gaps.append((at, start))
        at = stop
    return merged([*gaps, (at, documents)])


def within(ranges: Iterable[Range], start: int, stop: int) -> tuple[Range, ...]:
    """Return the ranges clipped to [start, stop)."""
    return merged((max(first, start), min(last, stop)) for first, last in ranges)


class Numbering:
    """The numbers of consecutive documents from several ranges."""

    def __init__(self, ranges: Iterable[Range]) -> None:
        self._left = list(reversed(merged(ranges)))

    def take(self, documents: int) -> tuple[Range, ...]:
        """Return the numbers of the next documents.

        Raises:
            ValueError: If fewer are left.
        """
        taken: list[Range] = []
        while documents > 0:
            if not self._left:
                raise ValueError(f"{documents} documents more came than there are numbers for")
            start, stop = self._left.pop()
            cut = min(stop, start + documents)
            taken.append((start, cut))
            documents -= cut - start
            if cut < stop:
                self._left.append((cut, stop))
        return tuple(taken)
