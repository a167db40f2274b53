"""Tables alone as a page in one file, without plots and without a script."""

from collections.abc import Iterable, Sequence

import benchctl
from benchctl.report.html.assets import inline_style, scriptless_policy
from benchctl.report.html.parts import Cell, Table
from benchctl.report.html.templates import templates
from benchctl.report.layout import Command


def render_tables(title: str, tables: Sequence[Table], *, lines: Sequence[str | Command] = ()) -> str:
    """Write the page.

    Args:
        title: of the page.
        tables: one below the other.
        lines: sentences below them, and commands below these.
    """
    return (
        templates()
        .get_template("tables.html.jinja")
        .render(
            title=title,
            tables=tables,
            lines=[line for line in lines if isinstance(line, str)],
            commands=[line for line in lines if isinstance(line, Command)],
            style=inline_style(),
            version=benchctl.__version__,
            policy=scriptless_policy(),
        )
    )


def listed(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]], numeric: frozenset[int]
) -> Table:
    """A table whose cells mean nothing but what they say, whatever its columns are called.

    Args:
        caption: above it.
        columns: their names.
        rows: cells.
        numeric: positions of the columns that hold numbers.
    """
    kinds = ["figure" if place in numeric else "words" for place in range(len(columns))]
    lines = tuple(tuple(map(Cell, row, kinds)) for row in rows)
    return Table(caption, tuple(map(Cell, columns, kinds)), lines)
