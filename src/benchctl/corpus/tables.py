"""Random bits, words, and lookup tables of ready-made bytes, which generators share.

Names are a modifier and a noun joined (`luckcrafter`); messages are nouns and such names. A change of any
list changes the corpus, so it needs a new `GENERATOR_VERSION`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

_WORDS = Path(__file__).with_name("words.txt").read_text(encoding="ascii").split("\n\n")
NOUNS, MODIFIERS = (tuple(words.split()) for words in _WORDS)

PROCESSES: tuple[str, ...] = ("journal", "kernel", "systemd", "cron", "sshd", "httpd", "udev")

REGIONS = (
    "af-south-1", "ap-east-1", "ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "ap-south-1",
    "ap-south-2", "ap-southeast-1", "ap-southeast-2", "ap-southeast-3", "ca-central-1", "eu-central-1",
    "eu-north-1", "eu-south-1", "eu-south-2", "eu-west-1", "eu-west-2", "eu-west-3", "me-central-1",
    "me-south-1", "sa-east-1", "us-east-1", "us-east-2", "us-west-1", "us-west-2",
)  # fmt: skip

# The streams that operations search for. No modifier above yields one of them, so only the generator decides
# their share.
RARE_STREAMS: tuple[str, ...] = ("fuschiashoulder", "solarshark", "indigodagger")

AGENT_IDS: tuple[str, ...] = (
    "4732c68c-75f1-493f-8a59-1fd6a7c1b36a",
    "124c64c2-e423-4cec-8030-aacc07791627",
    "88017620-7c81-4058-be42-a7d57a67d6c3",
    "ae4c212d-3beb-4174-923a-570110b42e9f",
    "bfa69507-8c29-4cb7-86d6-ed150166c763",
    "3cbe86fd-28ed-44f3-b458-15b397c5cf14",
    "6f47e0e8-cfb4-4f7e-8e94-3b999eb97782",
    "78bbaa5a-67c9-4e4c-8f59-360ba935cc37",
    "fa772fb6-e16f-4591-beb6-3d41b46df04b",
    "2d083b14-2b4c-493d-b427-200c292e4cc4",
)


# Every table is a read-only array of fixed-width byte strings, padded with NUL, built once per process.

Texts: TypeAlias = npt.NDArray[np.bytes_]

NAMES = len(MODIFIERS) * len(NOUNS)
NOUN_PAIRS = len(NOUNS) ** 2


def _read_only(table: Texts) -> Texts:
    table.setflags(write=False)
    return table


def _table(texts: Iterable[str]) -> Texts:
    return _read_only(np.array([text.encode("ascii") for text in texts]))


@cache
def table(texts: tuple[str, ...]) -> Texts:
    """Return words such as REGIONS as a table, in order."""
    return _table(texts)


def _joined(first: Iterable[str], second: Iterable[str]) -> Texts:
    """Return all concatenations of two lists, the second changing faster; shape (n * m,)."""
    return np.strings.add(_table(first)[:, np.newaxis], _table(second)).ravel()


@cache
def streams() -> Texts:
    """Return every name (modifier and noun joined), then the rare streams; shape (NAMES + 3,)."""
    return _read_only(np.concatenate([_joined(MODIFIERS, NOUNS), _table(RARE_STREAMS)]))


@cache
def noun_pairs() -> Texts:
    """Return the empty string, then " noun noun" for all pairs of nouns; shape (1 + NOUN_PAIRS,)."""
    words = [f" {noun}" for noun in NOUNS]
    return _read_only(np.concatenate([_table([""]), _joined(words, words)]))


@cache
def closing_words() -> Texts:
    """Return the empty string, then " name" for every name; shape (1 + NAMES,)."""
    return _read_only(
        np.concatenate([_table([""]), _joined([f" {modifier}" for modifier in MODIFIERS], NOUNS)])
    )


@cache
def optional_nouns() -> Texts:
    """Return every noun, then as many empty strings; shape (2 * nouns,)."""
    return _table([*NOUNS, *([""] * len(NOUNS))])


@cache
def clock() -> Texts:
    """Return `HH:MM:SS` of every second of a day, shape (86400,)."""
    return _table(f"{s // 3600:02d}:{s // 60 % 60:02d}:{s % 60:02d}" for s in range(86_400))


@cache
def thousandths() -> Texts:
    """Return `000` to `999`, shape (1000,)."""
    return _table(f"{n:03d}" for n in range(1000))


@cache
def integers(stop: int) -> Texts:
    """Return decimal numbers from 0 up to, not including, `stop`."""
    return _table(str(n) for n in range(stop))


@cache
def octet_pairs() -> Texts:
    """Return `0-0` to `255-255`, shape (65536,)."""
    return _table(f"{n >> 8}-{n & 255}" for n in range(1 << 16))


# The common part of generators: slices of a corpus, part files, and text templates filled in bulk.

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_PADDING = b"\0"
_MARKER = re.compile("<([a-z0-9-]+)>")


@dataclass(frozen=True)
class Span:
    """A part file: documents [start, stop), numbered within the whole corpus."""

    name: str
    start: int
    stop: int


def check_slice(start: int, stop: int, documents: int) -> None:
    """Check that documents [start, stop) are among so many.

    Raises:
        ValueError: If they are not.
    """
    if not 0 <= start <= stop <= documents:
        raise ValueError(f"documents [{start}, {stop}) are not a slice of {documents}")


def blocks_of(start: int, stop: int, size: int) -> Iterator[npt.NDArray[np.uint64]]:
    """Yield the numbers of documents [start, stop), `size` at a time."""
    for first in range(start, stop, size):
        yield np.arange(first, min(first + size, stop), dtype=np.uint64)


class RowLayout:
    """Rows of one template as a structured array whose fields are constant pieces and gaps.

    The array is reused by the next call, so a layout must not be shared between threads. In the template,
    gaps are written `<name>`; all gaps of a name get the same text.
    """

    def __init__(self, template: str) -> None:
        pieces = _MARKER.split(template)
        self._constants = [piece.encode("ascii") for piece in pieces[0::2]]
        self._gaps = pieces[1::2]
        self._rows: npt.NDArray[np.void] = np.empty(0, np.dtype([]))

    def lines(self, count: int, columns: Mapping[str, Texts]) -> bytes:
        """Fill the template `count` times; return the concatenated rows, without padding.

        `columns` has the texts of every gap, shape (count,); widths must not change between calls.
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


# Counter-based random bits: the value of (seed, field, number) depends on no other value.
#
# The mixer is SplitMix64's (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014), in
# plain 64-bit integer arithmetic. Library generators are avoided because their distributions may change
# between versions; these bits decide the corpus byte for byte.

Words: TypeAlias = npt.NDArray[np.uint64]
Indices: TypeAlias = npt.NDArray[np.intp]

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB


def mix(value: int) -> int:
    """Apply SplitMix64's output function: a bijection of 64-bit integers; input is taken modulo 2^64."""
    value &= _MASK
    value = (value ^ (value >> 30)) * _FIRST & _MASK
    value = (value ^ (value >> 27)) * _SECOND & _MASK
    return value ^ (value >> 31)


def key(*parts: int) -> int:
    """Return one 64-bit key from several integers, in order."""
    state = 0
    for part in parts:
        state = mix(state + _GOLDEN + mix(part))
    return state


def words(stream: int, numbers: Words) -> Words:
    """Return 64 random bits for every counter, shape (n,), of a stream, which is a key.

    The result has shape (n,); it is equal for equal (stream, number), at any position in the array.
    """
    state = numbers * np.uint64(_GOLDEN)
    state += np.uint64(stream)
    state ^= state >> np.uint64(30)
    state *= np.uint64(_FIRST)
    state ^= state >> np.uint64(27)
    state *= np.uint64(_SECOND)
    state ^= state >> np.uint64(31)
    return state


def below(stream: int, numbers: Words, bound: int) -> Indices:
    """Return uniform integers of [0, bound), bound from 1 to 2^32, for counters of a stream; shape (n,).

    The upper 32 bits are scaled by multiplication; the bias of at most bound / 2^32 is far below what a
    corpus can reveal.
    """
    state = words(stream, numbers)
    state >>= np.uint64(32)
    state *= np.uint64(bound)
    state >>= np.uint64(32)
    return state.astype(np.intp)
