"""What the generator knows about its documents without writing them: their values as columns, and counts.

The columns are in the engines' terms (`@timestamp` in milliseconds, keywords as places in a table of texts),
so that whatever an engine says about the corpus can be held against them.
"""

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from benchctl.corpus.generated import tables
from benchctl.corpus.generated.bits import Indices, Words
from benchctl.corpus.generated.draws import FILES_A_DAY, PAIRS, DayDraws, Field
from benchctl.corpus.generated.generator import file_names
from benchctl.corpus.generated.layout import FIRST_DATE, Day, days
from benchctl.corpus.generated.vocabulary import MODIFIERS, NOUNS, PROCESSES

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

NUMBERS = ("@timestamp", "metrics.size", "metrics.tmin")
KEYWORDS = (
    "process.name",
    "cloud.region",
    "agent.id",
    "aws.cloudwatch.log_stream",
    "log.file.path",
    "meta.file",
)

_BLOCK_DOCUMENTS = 1 << 18
_MS = 1000

FIRST_MS = int(dt.datetime.combine(FIRST_DATE, dt.time(), dt.UTC).timestamp()) * _MS
"""The earliest `@timestamp` that there can be."""

LONGEST_MS = 8 * 86_400 * _MS
"""No `@timestamp` is that much later."""


@dataclass(frozen=True)
class Slice:
    """Which documents of which corpus: [start, stop) of (seed, documents)."""

    seed: int
    documents: int
    start: int
    stop: int


class Block:
    """Consecutive documents of one day, seen as columns of shape (n,) that are made when asked for.

    Args:
        seed: of the corpus.
        day: which day of it.
        start: the first document, numbered within the whole corpus.
        stop: one behind the last one.
    """

    def __init__(self, seed: int, day: Day, start: int, stop: int) -> None:
        self.documents = stop - start
        self._numbers: Words = np.arange(start, stop, dtype=np.uint64)
        self._draws = DayDraws(seed, day)
        self._day = day
        self._kept: dict[str, Numbers] = {}

    def numbers(self, field: str) -> Numbers:
        """The values of one of NUMBERS, dates in milliseconds since 1970.

        Raises:
            KeyError: it is another field.
        """
        return self._once(field, self._made_numbers)

    def keywords(self, field: str) -> Numbers:
        """The values of one of KEYWORDS, as places in `keyword_texts(field)`.

        Raises:
            KeyError: it is another field.
        """
        return self._once(field, self._made_keywords)

    def _once(self, field: str, make: Callable[[str], Indices]) -> Numbers:
        if field not in self._kept:
            self._kept[field] = make(field).astype(np.int64, copy=False)
        return self._kept[field]

    def _made_numbers(self, field: str) -> Indices:
        match field:
            case "@timestamp":
                midnight = dt.datetime.combine(self._day.date, dt.time(), dt.UTC)
                return (int(midnight.timestamp()) + self._draws.second(self._numbers)) * _MS
            case "metrics.size":
                return self._draws.size(self._numbers)
            case "metrics.tmin":
                return self._draws.tmin(self._numbers)
        raise KeyError(field)

    def _made_keywords(self, field: str) -> Indices:
        match field:
            case "process.name":
                return self._draws.process(self._numbers)
            case "cloud.region":
                return self._draws.region(self._numbers)
            case "agent.id":
                return self._draws.below(Field.AGENT, self._numbers, len(tables.agents()))
            case "aws.cloudwatch.log_stream" | "log.file.path":
                return self._draws.stream(self._numbers)
            case "meta.file":
                return self._day.number * FILES_A_DAY + self._draws.file(self._numbers)
        raise KeyError(field)

    def with_words(self, words: tuple[str, ...]) -> Flags:
        """Which messages hold one of these words at least; only `knows_word` ones can be told."""
        wanted = [NOUNS.index(word) for word in words]
        pairs = self._draws.word_count(self._numbers) // 2
        found = np.zeros(self.documents, dtype=np.bool_)
        for slot in range(PAIRS):
            first, second = np.divmod(self._draws.pair(slot, self._numbers), len(NOUNS))
            found |= (slot < pairs) & (np.isin(first, wanted) | np.isin(second, wanted))
        return found


@cache
def keyword_texts(field: str) -> tuple[str, ...]:
    """What the places of one of KEYWORDS stand for; a text may stand there more than once.

    Raises:
        KeyError: it is another field.
    """
    names: dict[str, Callable[[], tables.Texts]] = {
        "process.name": tables.processes,
        "cloud.region": tables.regions,
        "agent.id": tables.agents,
        "aws.cloudwatch.log_stream": tables.streams,
        "log.file.path": tables.streams,
        "meta.file": _all_file_names,
    }
    before = "/var/log/messages/" if field == "log.file.path" else ""
    return tuple(before + text.decode() for text in names[field]().tolist())


def _all_file_names() -> tables.Texts:
    # Every corpus has the same days, whatever its size.
    return np.concatenate([file_names(day) for day in days(1)])


def knows_word(word: str) -> bool:
    """Whether a word can only be one of a message's nouns: no process, no beginning of a name."""
    return word in NOUNS and word not in PROCESSES and not word.startswith(MODIFIERS)


def blocks(part: Slice) -> Iterator[Block]:
    """The documents of a slice, in order, in blocks that keep memory at some megabytes.

    Raises:
        ValueError: the slice does not lie in the corpus.
    """
    if not 0 <= part.start <= part.stop <= part.documents:
        raise ValueError(f"[{part.start}, {part.stop}) is not a slice of a corpus of {part.documents}")
    for day in days(part.documents):
        first, last = max(part.start, day.start), min(part.stop, day.stop)
        for start in range(first, last, _BLOCK_DOCUMENTS):
            yield Block(part.seed, day, start, min(start + _BLOCK_DOCUMENTS, last))


def counts(part: Slice, field: str) -> dict[str, int]:
    """How many documents of a slice have each value of one of KEYWORDS; those that none has are left out.

    Raises:
        KeyError: it is another field.
        ValueError: the slice does not lie in the corpus.
    """
    texts = keyword_texts(field)
    found: Counter[str] = Counter()
    for block in blocks(part):
        places, numbers = np.unique(block.keywords(field), return_counts=True)
        for place, number in zip(places.tolist(), numbers.tolist(), strict=True):
            found[texts[place]] += number
    return dict(found)
