"""Standard streams as they really are: closed ones, and those that cannot write every character."""

import io
import re
import shutil
import sys
from typing import TYPE_CHECKING, Final, TextIO

import click

if TYPE_CHECKING:
    from rich.text import Text

WITHOUT_TERMINAL_WIDTH: Final = 120
WORDS: Final = "benchctl.words"
"""Key of click's `meta` for the words of the command line."""


def typed_words() -> tuple[str, ...]:
    """Return what followed `benchctl` on the command line, without what may be secret in addresses.

    That is users and passwords before the host, and the query.
    """
    words: tuple[str, ...] = click.get_current_context().meta.get(WORDS, ())
    return tuple(re.sub(r"://(?:[^/@\s]*@)?([^?,\s]*)(?:\?[^,\s]*)?", r"://\1", word) for word in words)


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a standard stream is a terminal; Python has None for one that is closed at startup."""
    return stream is not None and stream.isatty()


def text_width() -> int:
    """Return the columns of the terminal or its substitute: COLUMNS, or a width for files and pipes."""
    return shutil.get_terminal_size((WITHOUT_TERMINAL_WIDTH, 24)).columns


def text_height() -> int:
    """Return the lines of the terminal or its substitute; at least 24."""
    return max(24, shutil.get_terminal_size((WITHOUT_TERMINAL_WIDTH, 24)).lines)


def accept_all_characters() -> None:
    """Print `?` for what a stream's encoding lacks, such as the lines of a table: results are worth more."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def shown(text: str) -> str:
    """Return text that is safe on a terminal: control characters of foreign names become visible."""
    # Reports are not part of the commands' own names and options, and most commands have nothing to say.
    from benchctl.report.numbers import visible  # noqa: PLC0415 - see above

    return visible(text)


def say(text: str, *, nl: bool = True) -> None:
    """Print text for people on standard output, with a line end if `nl`; see `shown`."""
    click.echo(shown(text), nl=nl)


def emit(text: str) -> None:
    """Print text for programs on standard output, as it is; a terminal gets it as `say` does."""
    # Told that colours are welcome, click passes on everything.
    click.echo(shown(text) if is_terminal(sys.stdout) else text, nl=False, color=True)


def paint(text: "Text") -> None:
    """Print a text, coloured on a terminal, on standard output; it is folded and went through `shown`."""
    from rich.console import Console  # noqa: PLC0415 - takes a while to load, and most output is plain text

    class Piped(Console):
        def on_broken_pipe(self) -> None:  # Rich itself would end the process with 1
            raise BrokenPipeError

    Piped(highlight=False, markup=False).print(text, soft_wrap=True)


def complain(text: str) -> None:
    """Print text for people on standard error; see `shown`."""
    click.echo(shown(text), err=True)


def note(text: str) -> None:
    """Print a remark on a result, on standard error."""
    complain(f"note: {text}")
