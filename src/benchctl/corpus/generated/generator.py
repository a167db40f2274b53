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
import re
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from benchctl.corpus.generated import bits, tables
from benchctl.corpus.generated.draws import FILES_A_DAY, PAIRS, DayDraws, Field
from benchctl.corpus.generated.layout import Day, days
from benchctl.corpus.generated.tables import NAMES, Texts

GENERATOR_VERSION = 1

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


# Text with gaps, many rows at once: constants are laid out once, columns fill the gaps, padding goes.

_PADDING = b"\0"
_MARKER = re.compile("<([a-z0-9-]+)>")


class RowLayout:
    """Rows of one template as a structured array: constant pieces and gaps are fields, side by side.

    The array of a layout is kept and reused by the next call, so a layout must not be shared by threads.

    Args:
        template: text with gaps written `<name>`; a name may occur more than once and is then filled alike.
    """

    def __init__(self, template: str) -> None:
        pieces = _MARKER.split(template)
        self._constants = [piece.encode("ascii") for piece in pieces[0::2]]
        self._gaps = pieces[1::2]
        self._rows: npt.NDArray[np.void] = np.empty(0, np.dtype([]))

    def lines(self, count: int, columns: Mapping[str, Texts]) -> bytes:
        """Fill the template `count` times.

        Args:
            count: how many rows.
            columns: the texts of every gap, shape (count,); widths may not change between calls.

        Returns:
            The rows, joined, without any padding.
        """
        if len(self._rows) < count:
            self._rows = self._empty_rows(count, columns)
        rows = self._rows[:count]
        for position, name in enumerate(self._gaps):
            rows[f"gap-{position}"] = columns[name]
        return rows.tobytes().translate(None, _PADDING)

    def _empty_rows(self, count: int, columns: Mapping[str, Texts]) -> npt.NDArray[np.void]:
        fields: list[tuple[str, str]] = []
        for position, constant in enumerate(self._constants):
            if constant:
                fields.append((f"constant-{position}", f"S{len(constant)}"))
            if position < len(self._gaps):
                fields.append((f"gap-{position}", f"S{columns[self._gaps[position]].itemsize}"))
        rows = np.empty(count, np.dtype(fields))
        for position, constant in enumerate(self._constants):
            if constant:
                rows[f"constant-{position}"] = constant
        return rows


# The big5 generator.


class _DayGenerator:
    """Makes documents of one day; constant text and lookup tables are laid out once.

    Args:
        seed: of the corpus.
        day: which day of the corpus.
    """

    def __init__(self, seed: int, day: Day) -> None:
        self._draws = DayDraws(seed, day)
        self._layout = RowLayout(_template_of(day))
        self._file_names = file_names(day)

    def lines(self, start: int, stop: int) -> bytes:
        """The documents [start, stop), one a line; they must belong to this day."""
        numbers = np.arange(start, stop, dtype=np.uint64)
        columns = (
            self._clocks(numbers) | self._sources(numbers) | self._values(numbers) | self._message(numbers)
        )
        return self._layout.lines(stop - start, columns)

    def _clocks(self, numbers: bits.Words) -> dict[str, Texts]:
        clock, thousandths = tables.clock(), tables.thousandths()
        below, file = self._draws.below, self._draws.file(numbers)
        second = file * _SECONDS_A_FILE + below(Field.INGESTION_SECOND, numbers, _SECONDS_A_FILE)
        return {
            "time": clock[self._draws.second(numbers)],
            "ingestion-time": clock[second],
            "ingestion-ms": thousandths[below(Field.INGESTION_MS, numbers, len(thousandths))],
            "run-time": clock[below(Field.RUN_TIME, numbers, len(clock))],
            "run-ms": thousandths[below(Field.RUN_MS, numbers, len(thousandths))],
            "run-us": thousandths[below(Field.RUN_US, numbers, len(thousandths))],
            "file": self._file_names[file],
        }

    def _sources(self, numbers: bits.Words) -> dict[str, Texts]:
        """Log stream, host and address, out of the day's pools."""
        names = tables.streams()
        address = self._draws.address(numbers)
        return {
            "stream": names[self._draws.stream(numbers)],
            "host": names[self._draws.pooled_name(Field.HOST, numbers)],
            "network": tables.octet_pairs()[address & 0xFFFF],
            "host-part": tables.octet_pairs()[(address >> 16) & 0xFFFF],
        }

    def _values(self, numbers: bits.Words) -> dict[str, Texts]:
        draws, below = self._draws, self._draws.below
        agents, nouns = tables.agents(), tables.optional_nouns()
        return {
            "size": tables.integers(10_001)[draws.size(numbers)],
            "tmin": tables.integers(2001)[draws.tmin(numbers)],
            "region": tables.regions()[draws.region(numbers)],
            "process": tables.processes()[draws.process(numbers)],
            "agent": agents[below(Field.AGENT, numbers, len(agents))],
            "event-name": tables.streams()[below(Field.EVENT_NAME, numbers, NAMES)],
            "event-noun": nouns[below(Field.EVENT_NOUN, numbers, len(nouns))],
        }

    def _message(self, numbers: bits.Words) -> dict[str, Texts]:
        count = self._draws.word_count(numbers)
        pairs = count // 2
        closing = (count & 1) * (1 + self._draws.below(Field.CLOSING_WORD, numbers, NAMES))
        columns = {"closing-word": tables.closing_words()[closing]}
        for slot in range(PAIRS):
            pair = (slot < pairs) * (1 + self._draws.pair(slot, numbers))
            columns[f"pair-{slot}"] = tables.noun_pairs()[pair]
        return columns


def _ingestion_date(day: Day) -> dt.date:
    return _FIRST_INGESTION + dt.timedelta(days=day.number)


def file_names(day: Day) -> Texts:
    """The values of `meta.file` on a day, in document order, shape (FILES_A_DAY,)."""
    midnight = dt.datetime.combine(_ingestion_date(day), dt.time(), dt.UTC)
    first_second = int(midnight.timestamp())
    return np.array(
        [
            f"{day.date.isoformat()}/{first_second + file * _SECONDS_A_FILE}-gotext.ndjson.gz".encode("ascii")
            for file in range(FILES_A_DAY)
        ]
    )


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
