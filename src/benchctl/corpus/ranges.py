"""Which documents of a corpus: their numbers, from 0, as half-open ranges."""

from collections.abc import Iterable

Range = tuple[int, int]
"""[start, stop)."""


def merged(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """The same documents in as few ranges as they take, in order, none of them empty."""
    found: list[Range] = []
    for start, stop in sorted(one for one in ranges if one[0] < one[1]):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(stop, found[-1][1]))
        else:
            found.append((start, stop))
    return tuple(found)


def count(ranges: Iterable[Range]) -> int:
    """How many documents lie in at least one of the ranges."""
    return sum(stop - start for start, stop in merged(ranges))


def missing(ranges: Iterable[Range], documents: int) -> tuple[Range, ...]:
    """The documents of a corpus that lie in none of the ranges, in order.

    Args:
        ranges: within the corpus.
        documents: of the corpus.
    """
    gaps: list[Range] = []
    at = 0
    for start, stop in merged(ranges):
        gaps.append((at, start))
        at = stop
    return merged([*gaps, (at, documents)])


def within(ranges: Iterable[Range], start: int, stop: int) -> tuple[Range, ...]:
    """What of the ranges lies in [start, stop)."""
    return merged((max(first, start), min(last, stop)) for first, last in ranges)


class Numbering:
    """Hands out the numbers of documents that come one after the other out of several ranges.

    Args:
        ranges: which documents come, in their order.
    """

    def __init__(self, ranges: Iterable[Range]) -> None:
        self._left = list(reversed(merged(ranges)))

    def take(self, documents: int) -> tuple[Range, ...]:
        """The numbers of the next documents.

        Raises:
            ValueError: fewer are left.
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
