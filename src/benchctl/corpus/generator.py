"""The big5 generator: any slice of the corpus as JSON lines, from a seed, a size and document numbers.

The documents have the keys, formats and value sets of Elastic's big5 corpus. The differences:

- There is no random walk. In the original, a number strays around its predecessor, and so do the timestamps
  of a file; here every value is drawn on its own, uniformly unless said otherwise, so that any slice can be
  made alone.
- Log streams, hosts and addresses come from a pool per day with one entry for 100 documents (as many names as
  there are at most), where the original draws a new value about once in 100 documents.
- 5 % of `metrics.size` lie in 1-999, the rest in 1,000-10,000. Each of the three streams that operations
  search for has 4 documents in 10,000.
- A message has 1-25 words, few more often than many (the smaller of two draws): pairs of nouns, then, when
  their number is odd, one name.
- A day is ingested in document order through one other day, in 24 files.

A document takes 0.93 kB on average, its line end included.
"""

import datetime as dt
from collections.abc import Iterator
from enum import IntEnum, auto

import numpy as np

from benchctl.corpus import bits, tables
from benchctl.corpus.layout import Day, days
from benchctl.corpus.rows import RowLayout
from benchctl.corpus.tables import NAMES, NOUN_PAIRS, Texts

GENERATOR_VERSION = 1

BLOCK_DOCUMENTS = 4096

_FIRST_INGESTION = dt.date(2023, 4, 29)
_FIRST_PIPELINE_RUN = dt.date(2023, 7, 19)
_FILES_A_DAY = 24
_SECONDS_A_FILE = 3600
_DOCUMENTS_A_POOL_ENTRY = 100
NAME_STRIDE = 1_000_003  # coprime to NAMES: entries of one pool have different names
_RARE_IN_10_000 = 4
_SMALL_SIZES_PERCENT = 5
_MOST_WORDS = 25
_PAIRS = _MOST_WORDS // 2

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
    '"meta":{"file":"<date>/<file-second>-gotext.ndjson.gz"}}\n'
).replace("<words>", "".join(f"<pair-{slot}>" for slot in range(_PAIRS)) + "<closing-word>")


class _Field(IntEnum):
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


class _DayGenerator:
    """Makes documents of one day; constant text and lookup tables are laid out once.

    Args:
        seed: of the corpus.
        day: which day of the corpus.
    """

    def __init__(self, seed: int, day: Day) -> None:
        self._seed = seed
        self._day = day
        self._pool = min(max(1, day.documents // _DOCUMENTS_A_POOL_ENTRY), NAMES)
        self._layout = RowLayout(_template_of(day))
        midnight = dt.datetime.combine(_ingestion_date(day), dt.time(), dt.UTC)
        first_second = int(midnight.timestamp())
        self._file_seconds = np.array(
            [b"%d" % (first_second + file * _SECONDS_A_FILE) for file in range(_FILES_A_DAY)]
        )

    def lines(self, start: int, stop: int) -> bytes:
        """The documents [start, stop), one a line; they must belong to this day."""
        numbers = np.arange(start, stop, dtype=np.uint64)
        columns = (
            self._clocks(numbers) | self._sources(numbers) | self._values(numbers) | self._message(numbers)
        )
        return self._layout.lines(stop - start, columns)

    def _below(self, field: int, numbers: bits.Words, bound: int) -> bits.Indices:
        return bits.below(bits.key(self._seed, field), numbers, bound)

    def _clocks(self, numbers: bits.Words) -> dict[str, Texts]:
        clock, thousandths = tables.clock(), tables.thousandths()
        within = (numbers - np.uint64(self._day.start)).astype(np.intp)
        file = within * _FILES_A_DAY // self._day.documents
        second = file * _SECONDS_A_FILE + self._below(_Field.INGESTION_SECOND, numbers, _SECONDS_A_FILE)
        return {
            "time": clock[self._below(_Field.TIME, numbers, self._day.seconds)],
            "ingestion-time": clock[second],
            "ingestion-ms": thousandths[self._below(_Field.INGESTION_MS, numbers, len(thousandths))],
            "run-time": clock[self._below(_Field.RUN_TIME, numbers, len(clock))],
            "run-ms": thousandths[self._below(_Field.RUN_MS, numbers, len(thousandths))],
            "run-us": thousandths[self._below(_Field.RUN_US, numbers, len(thousandths))],
            "file-second": self._file_seconds[file],
        }

    def _sources(self, numbers: bits.Words) -> dict[str, Texts]:
        """Log stream, host and address, out of the day's pools."""
        names = tables.streams()
        stream = self._names_of_pool(_Field.STREAM, numbers)
        chance = self._below(_Field.STREAM_RARE, numbers, 10_000)
        rare = chance // _RARE_IN_10_000
        stream = np.where(rare < len(names) - NAMES, NAMES + rare, stream)
        entry = self._below(_Field.ADDRESS, numbers, self._pool).astype(np.uint64)
        address = bits.words(bits.key(self._seed, _Field.ADDRESS_VALUE, self._day.number), entry).astype(
            np.intp
        )
        return {
            "stream": names[stream],
            "host": names[self._names_of_pool(_Field.HOST, numbers)],
            "network": tables.octet_pairs()[address & 0xFFFF],
            "host-part": tables.octet_pairs()[(address >> 16) & 0xFFFF],
        }

    def _names_of_pool(self, field: _Field, numbers: bits.Words) -> bits.Indices:
        entry = self._below(field, numbers, self._pool)
        offset = bits.key(self._seed, field, self._day.number) % NAMES
        return (entry * NAME_STRIDE + offset) % NAMES

    def _values(self, numbers: bits.Words) -> dict[str, Texts]:
        small = self._below(_Field.SIZE_KIND, numbers, 100) < _SMALL_SIZES_PERCENT
        size = np.where(
            small, 1 + self._below(_Field.SIZE, numbers, 999), 1000 + self._below(_Field.SIZE, numbers, 9001)
        )
        regions, processes, agents = tables.regions(), tables.processes(), tables.agents()
        nouns = tables.optional_nouns()
        return {
            "size": tables.integers(10_001)[size],
            "tmin": tables.integers(2001)[1 + self._below(_Field.TMIN, numbers, 2000)],
            "region": regions[self._below(_Field.REGION, numbers, len(regions))],
            "process": processes[self._below(_Field.PROCESS, numbers, len(processes))],
            "agent": agents[self._below(_Field.AGENT, numbers, len(agents))],
            "event-name": tables.streams()[self._below(_Field.EVENT_NAME, numbers, NAMES)],
            "event-noun": nouns[self._below(_Field.EVENT_NOUN, numbers, len(nouns))],
        }

    def _message(self, numbers: bits.Words) -> dict[str, Texts]:
        count = 1 + np.minimum(
            self._below(_Field.WORDS, numbers, _MOST_WORDS),
            self._below(_Field.WORDS_AGAIN, numbers, _MOST_WORDS),
        )
        pairs = count // 2
        closing = (count & 1) * (1 + self._below(_Field.CLOSING_WORD, numbers, NAMES))
        columns = {"closing-word": tables.closing_words()[closing]}
        for slot in range(_PAIRS):
            pair = (slot < pairs) * (1 + self._below(_Field.FIRST_PAIR + slot, numbers, NOUN_PAIRS))
            columns[f"pair-{slot}"] = tables.noun_pairs()[pair]
        return columns


def _ingestion_date(day: Day) -> dt.date:
    return _FIRST_INGESTION + dt.timedelta(days=day.number)


def _template_of(day: Day) -> str:
    """The template with everything filled in that all documents of a day share."""
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
    r"""The documents [start, stop) of the corpus (seed, documents).

    Memory stays at a few blocks, whatever the sizes. The bytes of a document depend on the seed, the size of
    the corpus and its own number only.

    Args:
        seed: any integer; taken modulo 2^64.
        documents: the size of the whole corpus.
        start: the first document wanted, from 0.
        stop: one behind the last one, at most `documents`.

    Yields:
        Whole lines, each ending in "\n", at most BLOCK_DOCUMENTS of them.

    Raises:
        ValueError: the slice does not lie in the corpus.
    """
    if not 0 <= start <= stop <= documents:
        raise ValueError(f"documents [{start}, {stop}) are not a slice of a corpus of {documents}")
    for day in days(documents):
        first, last = max(start, day.start), min(stop, day.stop)
        if first >= last:
            continue
        generator = _DayGenerator(seed, day)
        for block in range(first, last, BLOCK_DOCUMENTS):
            yield generator.lines(block, min(block + BLOCK_DOCUMENTS, last))
