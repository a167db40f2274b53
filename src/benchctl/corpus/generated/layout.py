"""Which documents belong to which day and which part file: pure arithmetic on the size of the corpus.

The corpus covers 7.25 days from 2023-01-01 on, in day order, each day as large as the next; the last one ends
after six hours and has a quarter of a day's documents. So the first two days hold 2 / 7.25 = 27.6 % of all.
"""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass

FIRST_DATE = dt.date(2023, 1, 1)
PART_DOCUMENTS = 100_000

_QUARTERS = 29
_QUARTERS_A_DAY = 4
_DAYS = -(-_QUARTERS // _QUARTERS_A_DAY)
_SECONDS_A_DAY = 86_400


@dataclass(frozen=True)
class Day:
    """The documents of one day.

    Attributes:
        number: 0 for the first date.
        start: the first document.
        stop: one behind the last document.
        seconds: how much of the day is covered, from midnight on.
    """

    number: int
    start: int
    stop: int
    seconds: int

    @property
    def documents(self) -> int:
        """How many documents the day has; 0 in corpora of a few documents."""
        return self.stop - self.start

    @property
    def date(self) -> dt.date:
        """The date of every `@timestamp` of the day."""
        return FIRST_DATE + dt.timedelta(days=self.number)


@dataclass(frozen=True)
class Span:
    """One part file: consecutive documents of one day, numbered within the whole corpus."""

    name: str
    start: int
    stop: int


def days(documents: int) -> tuple[Day, ...]:
    """The days of a corpus of that many documents, in order and without gaps."""
    found = []
    for number in range(_DAYS):
        first = number * _QUARTERS_A_DAY
        last = min(first + _QUARTERS_A_DAY, _QUARTERS)
        seconds = _SECONDS_A_DAY * (last - first) // _QUARTERS_A_DAY
        found.append(Day(number, documents * first // _QUARTERS, documents * last // _QUARTERS, seconds))
    return tuple(found)


def spans(documents: int, *, most: int = PART_DOCUMENTS) -> Iterator[Span]:
    """The part files of a corpus in document order: none spans two days, none has over `most`."""
    for day in days(documents):
        parts = -(-day.documents // most)
        cuts = [day.start + day.documents * part // parts for part in range(parts)] + [day.stop]
        for part in range(parts):
            yield Span(f"day-{day.number:02d}-part-{part:04d}.ndjson.zst", cuts[part], cuts[part + 1])
