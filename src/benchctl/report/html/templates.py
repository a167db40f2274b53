"""The templates of pages, compiled once."""

from functools import cache

import jinja2
from markupsafe import Markup

from benchctl.report.html.parts import breakable, flagged
from benchctl.report.visible import visible


@cache
def templates(*packages: tuple[str, str]) -> jinja2.Environment:
    """What renders templates: escaped, without invisible characters, and with an error for what is not there.

    Args:
        packages: and folders in them with further templates, found before those that all pages share.
    """
    places = (*packages, ("benchctl.report.html", ""))
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(package, folder) for package, folder in places]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        finalize=_shown,
    )
    environment.filters |= {"breakable": breakable, "flagged": flagged}
    return environment


def _shown(value: object) -> object:
    if isinstance(value, Markup):
        return Markup(visible(value))  # noqa: S704 - it was markup before
    return visible(value) if isinstance(value, str) else value
