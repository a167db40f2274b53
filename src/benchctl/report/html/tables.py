"""Tables alone as a page in one file, without plots and without a script."""

from collections.abc import Sequence

import benchctl
from benchctl.report.grid import Grid
from benchctl.report.html.assets import inline_style, scriptless_policy
from benchctl.report.html.templates import templates
from benchctl.report.layout import Command


def render_tables(title: str, tables: Sequence[Grid], *, lines: Sequence[str | Command] = ()) -> str:
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
