"""Lookup tables of ready-made bytes: making a document is gathering from them.

Every table is a read-only array of fixed-width byte strings, padded with NUL; all are built once a process.
"""

from collections.abc import Iterable
from functools import cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from benchctl.corpus.generated.vocabulary import AGENT_IDS, MODIFIERS, NOUNS, PROCESSES, RARE_STREAMS, REGIONS

Texts: TypeAlias = npt.NDArray[np.bytes_]

NAMES = len(MODIFIERS) * len(NOUNS)
NOUN_PAIRS = len(NOUNS) ** 2


def _read_only(table: Texts) -> Texts:
    table.setflags(write=False)
    return table


def _table(texts: Iterable[str]) -> Texts:
    return _read_only(np.array([text.encode("ascii") for text in texts]))


def _joined(first: Iterable[str], second: Iterable[str]) -> Texts:
    """Every text of one kind joined to every one of another, the latter changing faster; shape (n * m,)."""
    return np.strings.add(_table(first)[:, np.newaxis], _table(second)).ravel()


@cache
def streams() -> Texts:
    """Every name (modifier and noun joined), shape (NAMES + 3,): the rare streams stand behind them."""
    return _read_only(np.concatenate([_joined(MODIFIERS, NOUNS), _table(RARE_STREAMS)]))


@cache
def noun_pairs() -> Texts:
    """Nothing at index 0, then " noun noun" for every two nouns, shape (1 + NOUN_PAIRS,)."""
    words = [f" {noun}" for noun in NOUNS]
    return _read_only(np.concatenate([_table([""]), _joined(words, words)]))


@cache
def closing_words() -> Texts:
    """Nothing at index 0, then " name" for every name, shape (1 + NAMES,)."""
    return _read_only(
        np.concatenate([_table([""]), _joined([f" {modifier}" for modifier in MODIFIERS], NOUNS)])
    )


@cache
def optional_nouns() -> Texts:
    """Every noun once and nothing as often, shape (2 * nouns,)."""
    return _table([*NOUNS, *([""] * len(NOUNS))])


@cache
def processes() -> Texts:
    """Names of processes."""
    return _table(PROCESSES)


@cache
def regions() -> Texts:
    """Names of cloud regions."""
    return _table(REGIONS)


@cache
def agents() -> Texts:
    """Agents' ids."""
    return _table(AGENT_IDS)


@cache
def clock() -> Texts:
    """`HH:MM:SS` of every second of a day, shape (86400,)."""
    return _table(f"{s // 3600:02d}:{s // 60 % 60:02d}:{s % 60:02d}" for s in range(86_400))


@cache
def thousandths() -> Texts:
    """`000` to `999`, shape (1000,)."""
    return _table(f"{n:03d}" for n in range(1000))


@cache
def integers(stop: int) -> Texts:
    """Decimal numbers from 0 up to, not including, `stop`."""
    return _table(str(n) for n in range(stop))


@cache
def octet_pairs() -> Texts:
    """`0-0` to `255-255`, shape (65536,)."""
    return _table(f"{n >> 8}-{n & 255}" for n in range(1 << 16))
