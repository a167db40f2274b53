"""What is drawn for every document, as numbers: the generator writes them out, the truth counts them.

Nothing here may change without a new `GENERATOR_VERSION`: these draws decide the corpus.
"""

from enum import IntEnum, auto

import numpy as np

from benchctl.corpus.generated import bits, tables
from benchctl.corpus.generated.bits import Indices, Words
from benchctl.corpus.generated.layout import Day
from benchctl.corpus.generated.tables import NAMES, NOUN_PAIRS

FILES_A_DAY = 24
MOST_WORDS = 25
PAIRS = MOST_WORDS // 2
NAME_STRIDE = 1_000_003  # coprime to NAMES: entries of one pool have different names

_DOCUMENTS_A_POOL_ENTRY = 100
_RARE_IN_10_000 = 4
_SMALL_SIZES_PERCENT = 5


class Field(IntEnum):
    """What is drawn for a document; the numbers enter the random bits, so only append."""

    TIME = auto()
    STREAM = auto()
    STREAM_RARE = auto()
    INGESTION_SECOND = auto()
    INGESTION_MS = auto()
    REGION = auto()
    PROCESS = auto()
    ADDRESS = auto()
    ADDRESS_VALUE = auto()
    EVENT_NAME = auto()
    EVENT_NOUN = auto()
    RUN_TIME = auto()
    RUN_MS = auto()
    RUN_US = auto()
    HOST = auto()
    SIZE_KIND = auto()
    SIZE = auto()
    TMIN = auto()
    AGENT = auto()
    WORDS = auto()
    WORDS_AGAIN = auto()
    CLOSING_WORD = auto()
    FIRST_PAIR = auto()  # and the following numbers, one a pair


class DayDraws:
    """The draws of one day; every method takes numbers of its documents, shape (n,), and gives shape (n,).

    Args:
        seed: of the corpus.
        day: which day of the corpus; it must have documents.
    """

    def __init__(self, seed: int, day: Day) -> None:
        self._seed = seed
        self._day = day
        self._pool = min(max(1, day.documents // _DOCUMENTS_A_POOL_ENTRY), NAMES)

    def below(self, field: int, numbers: Words, bound: int) -> Indices:
        """A uniform integer of [0, bound) for a field."""
        return bits.below(bits.key(self._seed, field), numbers, bound)

    def second(self, numbers: Words) -> Indices:
        """Seconds of `@timestamp` since midnight."""
        return self.below(Field.TIME, numbers, self._day.seconds)

    def file(self, numbers: Words) -> Indices:
        """Which file of the day, from 0: in document order."""
        within = (numbers - np.uint64(self._day.start)).astype(np.intp)
        return within * FILES_A_DAY // self._day.documents

    def stream(self, numbers: Words) -> Indices:
        """Log streams, as places in `tables.streams()`: the day's pool, and rarely those searched for."""
        stream = self.pooled_name(Field.STREAM, numbers)
        chance = self.below(Field.STREAM_RARE, numbers, 10_000)
        rare = chance // _RARE_IN_10_000
        return np.where(rare < len(tables.streams()) - NAMES, NAMES + rare, stream)

    def pooled_name(self, field: Field, numbers: Words) -> Indices:
        """Names out of the day's pool for a field, as places in `tables.streams()`."""
        entry = self.below(field, numbers, self._pool)
        offset = bits.key(self._seed, field, self._day.number) % NAMES
        return (entry * NAME_STRIDE + offset) % NAMES

    def address(self, numbers: Words) -> Indices:
        """32 bits or more of an address out of the day's pool."""
        entry = self.below(Field.ADDRESS, numbers, self._pool).astype(np.uint64)
        stream = bits.key(self._seed, Field.ADDRESS_VALUE, self._day.number)
        return bits.words(stream, entry).astype(np.intp)

    def process(self, numbers: Words) -> Indices:
        """Places in `tables.processes()`."""
        return self.below(Field.PROCESS, numbers, len(tables.processes()))

    def region(self, numbers: Words) -> Indices:
        """Places in `tables.regions()`."""
        return self.below(Field.REGION, numbers, len(tables.regions()))

    def size(self, numbers: Words) -> Indices:
        """`metrics.size`."""
        small = self.below(Field.SIZE_KIND, numbers, 100) < _SMALL_SIZES_PERCENT
        return np.where(
            small, 1 + self.below(Field.SIZE, numbers, 999), 1000 + self.below(Field.SIZE, numbers, 9001)
        )

    def tmin(self, numbers: Words) -> Indices:
        """`metrics.tmin`."""
        return 1 + self.below(Field.TMIN, numbers, 2000)

    def word_count(self, numbers: Words) -> Indices:
        """How many words a message has."""
        return 1 + np.minimum(
            self.below(Field.WORDS, numbers, MOST_WORDS), self.below(Field.WORDS_AGAIN, numbers, MOST_WORDS)
        )

    def pair(self, slot: int, numbers: Words) -> Indices:
        """Two nouns of a message that is long enough: the first's place times all nouns, plus the second's.

        Args:
            slot: which pair of the message, below PAIRS.
            numbers: of the documents.
        """
        return self.below(Field.FIRST_PAIR + slot, numbers, NOUN_PAIRS)
