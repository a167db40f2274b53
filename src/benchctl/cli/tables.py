"""Plain tables on standard output, in the form that `--format` names."""

import sys
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import click
from rich.box import SIMPLE_HEAD
from rich.table import Table

from benchctl.cli.options import FORMATS
from benchctl.cli.streams import emit, is_terminal, paint, shown
from benchctl.report.listing import Listing, cell, pieces

F = TypeVar("F", bound=Callable[..., Any])

TableFormat = Literal["text", "markdown", "csv", "json", "html"]

# What a person reads, with folded lines; more is scrolled through as it is.
_MOST_FOLDED = 1000


def table_format_option(command: F) -> F:
    """`--format` of commands that print tables alone."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(FORMATS),
        default="text",
        show_default=True,
        help="How the table is printed.",
    )(command)


def print_listing(listing: Listing, output_format: TableFormat) -> None:
    """Print a listing; text on a terminal is folded to its width, elsewhere lines stay whole."""
    if output_format == "text" and is_terminal(sys.stdout):
        rows = list(listing.rows)
        listing = Listing(listing.columns, rows, listing.numeric, grouped=listing.grouped)
        if len(rows) <= _MOST_FOLDED:
            paint(_folded(listing))
            return
    for piece in pieces(listing, output_format):
        emit(piece)


def _folded(listing: Listing) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for place, column in enumerate(listing.columns):
        justify: Literal["left", "right"] = "right" if place in listing.numeric else "left"
        table.add_column(shown(column), overflow="fold", justify=justify)
    for row in listing.rows:
        table.add_row(*(cell(value, grouped=listing.grouped) for value in row))
    return table
