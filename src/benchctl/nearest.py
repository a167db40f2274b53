"""Guesses which valid name a typing mistake meant, and the hint with it."""

import difflib
from collections.abc import Iterable

USUAL = 0.65
"""Similarity, in difflib's measure from 0 to 1, from which a name is suggested for another."""


def nearest(word: str, known: Iterable[str], *, alike: float = USUAL) -> str | None:
    """Return the valid name that a word is most like; None when it is like none.

    `alike` is the least likeness, from 0 to 1.
    """
    return next(iter(difflib.get_close_matches(word, list(known), n=1, cutoff=alike)), None)


def guess(word: str, known: Iterable[str], *, before: str = "") -> str:
    """Return `did you mean 'range'?`, or nothing if no valid name is like the word.

    `before` is what has to be written before a name.
    """
    near = nearest(word, known)
    return "" if near is None else f"did you mean '{before}{near}'?"


def suggestion(word: str, known: Iterable[str], *, before: str = "") -> str:
    """Return the guess, or all valid names, once each and in their order."""
    names = list(dict.fromkeys(known))
    return guess(word, names, before=before) or f"known: {', '.join(names) or 'none'}"
