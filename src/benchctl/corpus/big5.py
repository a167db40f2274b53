"""The big5 generator: any slice of the corpus as JSON lines, from a seed, a size and document numbers.

The documents have the keys, formats and value sets of Elastic's big5 corpus. The differences:

- There is no random walk. In the original, a number strays around its predecessor, and so do the timestamps
  of a file; here every value is drawn independently, uniformly unless stated otherwise, so that any slice can
  be generated on its own.
- Log streams, hosts and addresses come from a pool per day with one entry per 100 documents (at most as many
  as there are names), where the original draws a new value about once in 100 documents.
- 5% of `metrics.size` are in 1-999, the rest in 1,000-10,000. Each of the three streams that operations
  search for has 4 documents in 10,000.
- A message has 1-25 words, few more often than many (the smaller of two draws): pairs of nouns, then, for an
  odd number, one name.
- A day is ingested in document order during one other day, in 24 files.

A document takes 0.93 kB on average, including its newline.
"""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, auto

import numpy as np

from benchctl.corpus import tables
from benchctl.corpus.tables import NAMES, NOUN_PAIRS, Indices, RowLayout, Span, Texts, Words, check_slice

# Days and part files: pure arithmetic on the size of the corpus.
#
# The corpus covers 7.25 equal days from 2023-01-01 on, in order; the last one ends after six hours, with a
# quarter of a day's documents. So the first two days hold 2 / 7.25 = 27.6% of all documents.

FIRST_DATE = dt.date(2023, 1, 1)
PART_DOCUMENTS = 100_000

_QUARTERS = 29
_QUARTERS_A_DAY = 4
_DAYS = -(-_QUARTERS // _QUARTERS_A_DAY)
_SECONDS_A_DAY = 86_400


@dataclass(frozen=True)
class Day:
    """The documents [start, stop) of one day; `number` is 0 for the first date."""

    number: int
    start: int
    stop: int
    seconds: int  # how much of the day is covered, from midnight on

    @property
    def documents(self) -> int:
        """The number of documents of the day, possibly 0 in tiny corpora."""
        return self.stop - self.start

    @property
    def date(self) -> dt.date:
        """The date of every `@timestamp` of the day."""
        return FIRST_DATE + dt.timedelta(days=self.number)


def days(documents: int) -> tuple[Day, ...]:
    """Return the days of a corpus of that many documents, in order and without gaps."""
    calendar = []
    for number in range(_DAYS):
        first = number * _QUARTERS_A_DAY
        last = min(first + _QUARTERS_A_DAY, _QUARTERS)
        seconds = _SECONDS_A_DAY * (last - first) // _QUARTERS_A_DAY
        calendar.append(Day(number, documents * first // _QUARTERS, documents * last // _QUARTERS, seconds))
    return tuple(calendar)


def spans(documents: int, most: int = PART_DOCUMENTS) -> Iterator[Span]:
    """Yield the part files of a corpus in document order, each within a day, of at most `most` documents."""
    for day in days(documents):
        parts = -(-day.documents // most)
        cuts = [day.start + day.documents * part // parts for part in range(parts)] + [day.stop]
        for part in range(parts):
            yield Span(f"day-{day.number:02d}-part-{part:04d}.ndjson.zst", cuts[part], cuts[part + 1])


# The random draws of every document, as numbers.
#
# Nothing here may change without a new `GENERATOR_VERSION`: these draws decide the corpus.

FILES_A_DAY = 24
MOST_WORDS = 25
PAIRS = MOST_WORDS // 2
NAME_STRIDE = 1_000_003  # coprime to NAMES: entries of one pool have different names

_DOCUMENTS_A_POOL_ENTRY = 100
_RARE_IN_10_000 = 4
_SMALL_SIZES_PERCENT = 5


class Field(IntEnum):
    """The drawn values of a document; the numbers are part of the random bits, so only append."""

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


GENERATOR_VERSION = 1
FILE_BYTES_A_DOCUMENT = 145  # 132 measured, and a tenth to spare

BLOCK_DOCUMENTS = 4096

_FIRST_INGESTION = dt.date(2023, 4, 29)
_FIRST_PIPELINE_RUN = dt.date(2023, 7, 19)
_SECONDS_A_FILE = 3600

_TEMPLATE = (
    '{"@timestamp":"<date>T<time>.000Z",'
    '"aws.cloudwatch":{"log_stream":"<stream>","ingestion_time":"<ingestion-date>T<ingestion-time>.<ingestion-ms>Z",'
    '"log_group":"/var/log/messages"},'
    '"cloud":{"region":"<region>"},'
    '"log.file.path":"/var/log/messages/<stream>",'
    '"input":{"type":"aws-cloudwatch"},'
    '"data_stream":{"namespace":"default","type":"logs","dataset":"generic"},'
    '"process":{"name":"<process>"},'
    '"message":"<ingestion-date>T<ingestion-time>.<ingestion-ms>Z <ingestion-day> <ingestion-time> '
    'ip-<network>-<host-part> <process>:<words>",'
    '"event":{"id":"<event-name><event-noun>","ingested":"<run-date>T<run-time>.<run-ms><run-us>Z",'
    '"dataset":"generic"},'
    '"host":{"name":"<host>"},'
    '"metrics":{"size":<size>,"tmin":<tmin>},'
    '"agent":{"id":"<agent>","name":"<host>","type":"filebeat","version":"8.8.0","ephemeral_id":"<agent>"},'
    '"tags":["preserve_original_event"],'
    '"meta":{"file":"<file>"}}\n'
).replace("<words>", "".join(f"<pair-{slot}>" for slot in range(PAIRS)) + "<closing-word>")


class _DayGenerator:
    """Generates documents of one non-empty day; constant text and lookup tables are laid out once.

    Methods take document numbers, shape (n,), and give as many values.
    """

    def __init__(self, seed: int, day: Day) -> None:
        self._seed = seed
        self._day = day
        self._pool = min(max(1, day.documents // _DOCUMENTS_A_POOL_ENTRY), NAMES)
        self._layout = RowLayout(_template_of(day))
        self._file_names = file_names(day)

    def lines(self, start: int, stop: int) -> bytes:
        """Return the documents [start, stop), one per line; they must belong to this day."""
        numbers = np.arange(start, stop, dtype=np.uint64)
        columns = (
            self._clocks(numbers) | self._sources(numbers) | self._values(numbers) | self._message(numbers)
        )
        return self._layout.lines(stop - start, columns)

    def _below(self, field: int, numbers: Words, bound: int) -> Indices:
        """Uniform integers of [0, bound) for a field."""
        return tables.below(tables.key(self._seed, field), numbers, bound)

    def _any(self, field: int, numbers: Words, texts: Texts) -> Texts:
        return texts[self._below(field, numbers, len(texts))]

    def _clocks(self, numbers: Words) -> dict[str, Texts]:
        clock, thousandths = tables.clock(), tables.thousandths()
        # Files follow each other in document order.
        file = (numbers - np.uint64(self._day.start)).astype(np.intp) * FILES_A_DAY // self._day.documents
        second = file * _SECONDS_A_FILE + self._below(Field.INGESTION_SECOND, numbers, _SECONDS_A_FILE)
        return {
            "time": clock[self._below(Field.TIME, numbers, self._day.seconds)],
            "ingestion-time": clock[second],
            "ingestion-ms": self._any(Field.INGESTION_MS, numbers, thousandths),
            "run-time": self._any(Field.RUN_TIME, numbers, clock),
            "run-ms": self._any(Field.RUN_MS, numbers, thousandths),
            "run-us": self._any(Field.RUN_US, numbers, thousandths),
            "file": self._file_names[file],
        }

    def _sources(self, numbers: Words) -> dict[str, Texts]:
        """Log stream, host and address, from the day's pools."""
        names, octets = tables.streams(), tables.octet_pairs()
        rare = self._below(Field.STREAM_RARE, numbers, 10_000) // _RARE_IN_10_000
        stream = self._pooled_name(Field.STREAM, numbers)
        entry = self._below(Field.ADDRESS, numbers, self._pool).astype(np.uint64)
        address_key = tables.key(self._seed, Field.ADDRESS_VALUE, self._day.number)
        address = tables.words(address_key, entry).astype(np.intp)
        return {
            "stream": names[np.where(rare < len(names) - NAMES, NAMES + rare, stream)],
            "host": names[self._pooled_name(Field.HOST, numbers)],
            "network": octets[address & 0xFFFF],
            "host-part": octets[(address >> 16) & 0xFFFF],
        }

    def _pooled_name(self, field: Field, numbers: Words) -> Indices:
        """Names from the day's pool for a field, as indices into `tables.streams()`."""
        offset = tables.key(self._seed, field, self._day.number) % NAMES
        return (self._below(field, numbers, self._pool) * NAME_STRIDE + offset) % NAMES

    def _values(self, numbers: Words) -> dict[str, Texts]:
        small = self._below(Field.SIZE_KIND, numbers, 100) < _SMALL_SIZES_PERCENT
        sizes = 1 + self._below(Field.SIZE, numbers, 999), 1000 + self._below(Field.SIZE, numbers, 9001)
        return {
            "size": tables.integers(10_001)[np.where(small, *sizes)],
            "tmin": tables.integers(2001)[1 + self._below(Field.TMIN, numbers, 2000)],
            "region": self._any(Field.REGION, numbers, tables.table(tables.REGIONS)),
            "process": self._any(Field.PROCESS, numbers, tables.table(tables.PROCESSES)),
            "agent": self._any(Field.AGENT, numbers, tables.table(tables.AGENT_IDS)),
            "event-name": self._any(Field.EVENT_NAME, numbers, tables.streams()[:NAMES]),
            "event-noun": self._any(Field.EVENT_NOUN, numbers, tables.optional_nouns()),
        }

    def _message(self, numbers: Words) -> dict[str, Texts]:
        draws = (self._below(field, numbers, MOST_WORDS) for field in (Field.WORDS, Field.WORDS_AGAIN))
        count = 1 + np.minimum(*draws)
        closing = (count & 1) * (1 + self._below(Field.CLOSING_WORD, numbers, NAMES))
        columns = {"closing-word": tables.closing_words()[closing]}
        for slot in range(PAIRS):
            pair = (slot < count // 2) * (1 + self._below(Field.FIRST_PAIR + slot, numbers, NOUN_PAIRS))
            columns[f"pair-{slot}"] = tables.noun_pairs()[pair]
        return columns


def _ingestion_date(day: Day) -> dt.date:
    return _FIRST_INGESTION + dt.timedelta(days=day.number)


def file_names(day: Day) -> Texts:
    """Return the values of `meta.file` on a day, in document order, shape (FILES_A_DAY,)."""
    midnight = dt.datetime.combine(_ingestion_date(day), dt.time(), dt.UTC)
    first_second = int(midnight.timestamp())
    return np.array(
        [
            f"{day.date.isoformat()}/{first_second + file * _SECONDS_A_FILE}-gotext.ndjson.gz".encode("ascii")
            for file in range(FILES_A_DAY)
        ]
    )


def _template_of(day: Day) -> str:
    """Return the template with everything that all documents of a day share."""
    ingestion = _ingestion_date(day)
    run = _FIRST_PIPELINE_RUN + dt.timedelta(days=day.number)
    month = ("Apr", "May")[ingestion.month - 4]  # strftime would follow the user's locale
    shared = {
        "<date>": day.date.isoformat(),
        "<ingestion-date>": ingestion.isoformat(),
        "<ingestion-day>": f"{month} {ingestion.day:02d}",
        "<run-date>": run.isoformat(),
    }
    template = _TEMPLATE
    for marker, text in shared.items():
        template = template.replace(marker, text)
    return template


def generate(seed: int, documents: int, start: int, stop: int) -> Iterator[bytes]:
    r"""Yield the documents [start, stop), numbered from 0, of the corpus (seed, documents).

    Memory stays at a few blocks. A document depends only on the seed (taken modulo 2^64), the size of the
    corpus and its own number.

    Yields:
        Whole lines with newlines, at most BLOCK_DOCUMENTS of them.

    Raises:
        ValueError: If the slice is not within the corpus.
    """
    check_slice(start, stop, documents)
    for day in days(documents):
        first, last = max(start, day.start), min(stop, day.stop)
        if first >= last:
            continue
        generator = _DayGenerator(seed, day)
        for block in range(first, last, BLOCK_DOCUMENTS):
            yield generator.lines(block, min(block + BLOCK_DOCUMENTS, last))
