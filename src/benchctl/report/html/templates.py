"""The templates of pages, compiled once."""

from functools import cache

import jinja2

from benchctl.report.html.parts import breakable, flagged


@cache
def templates() -> jinja2.Environment:
    """What renders the templates of this package: escaped, and with an error for what is not there."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("benchctl.report.html", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters |= {"breakable": breakable, "flagged": flagged}
    return environment
