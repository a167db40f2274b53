"""Plain tables on standard output, in the form that `--format` names."""

from collections.abc import Callable
from typing import Any, Literal, TypeVar

from benchctl.cli.options import FORMATS, printed_as
from benchctl.cli.streams import emit, text_width
from benchctl.report.listing import Listing, pieces

F = TypeVar("F", bound=Callable[..., Any])

TableFormat = Literal["text", "markdown", "csv", "json", "html"]


def table_format_option(command: F) -> F:
    """`--format` of commands that only print tables."""
    return printed_as(*FORMATS, about="How the table is printed.")(command)


def print_listing(listing: Listing, output_format: TableFormat) -> None:
    """Print a listing; text is folded to the width of `text_width`."""
    for piece in pieces(listing, output_format, text_width()):
        emit(piece)
