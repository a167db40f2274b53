"""Standard streams as they really are: closed ones, and those that cannot write every character."""

import io
import sys
from typing import TextIO

import click


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a standard stream is a terminal; Python has None for one that was closed before it started."""
    return stream is not None and stream.isatty()


def accept_all_characters() -> None:
    """Print `?` for what a stream's encoding lacks, such as the lines of a table: results are worth more."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def complain(text: str) -> None:
    """Say something on standard error, control characters of foreign texts made visible."""
    # Reports are no part of the commands' own names and options, and most commands have nothing to say.
    from benchctl.report.visible import visible  # noqa: PLC0415 - see above

    click.echo(visible(text), err=True)


def note(text: str) -> None:
    """Something that the reader should know of a result."""
    complain(f"note: {text}")
