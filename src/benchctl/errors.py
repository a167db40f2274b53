"""The one error that users see, how the process ends after it, and hints at what a typing mistake meant."""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit code of a benchctl process."""

    OK = 0
    FAILED = 1
    USAGE = 2
    REGRESSION = 3
    INCONCLUSIVE = 4
    INTERRUPTED = 130
    CLOSED = 141
    """Whoever read the output went away; as of a program that SIGPIPE ends."""


class BenchctlError(Exception):
    """A failure that the user can understand and act on; anything else is a bug and keeps its traceback.

    Args:
        message: what happened and where, in one sentence without a final full stop.
        hint: what to do about it; empty when there is nothing sensible to say.
        exit_code: what the process exits with.
    """

    def __init__(self, message: str, *, hint: str = "", exit_code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = exit_code

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


class UsageError(BenchctlError):
    """The command line or an input file is wrong; nothing was started."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint, exit_code=ExitCode.USAGE)
        self.errors: tuple[UsageError, ...] = (self,)
        """Mistakes of an input file, of which this is the first."""


class Mistakes:
    """The errors of parts that are read one by one, so that all of them are found."""

    def __init__(self) -> None:
        self._errors: dict[str, UsageError] = {}  # by message: of two parts of one error, one is told

    @contextmanager
    def part(self) -> Iterator[None]:
        """Keep the error of the block."""
        try:
            yield
        except UsageError as err:
            self.add(err)

    def add(self, err: UsageError) -> None:
        """Keep an error with those that were found with it."""
        for error in err.errors:
            self._errors.setdefault(error.message, error)

    def settle(self) -> None:
        """Raise what was kept.

        Raises:
            UsageError: If there is anything: the first, with all others in its `errors`.
        """
        errors = tuple(self._errors.values())
        if errors:
            first = UsageError(errors[0].message, hint=errors[0].hint)
            first.errors = errors
            raise first


# Guesses which valid name a typing mistake meant, and the hint with it.

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
