"""Standard streams as they really are: closed ones, and those that cannot write every character."""

import io
import sys
from typing import TextIO


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a standard stream is a terminal; Python has None for one that was closed before it started."""
    return stream is not None and stream.isatty()


def accept_all_characters() -> None:
    """Print `?` for what a stream's encoding lacks, such as the lines of a table: results are worth more."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
