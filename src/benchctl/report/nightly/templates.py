"""Templates of the site: written down once, with the frame and the macros that pages of runs have."""

from functools import cache
from importlib.resources import files

import jinja2

import benchctl
from benchctl.report.charts.panels import dark_palette
from benchctl.report.html.parts import PLOTLY, SCRIPT, STYLE, content_policy, embedded, templates, text_of

ASSETS = "assets"
NIGHTLY_STYLE, NIGHTLY_SCRIPT = "nightly.css", "nightly.js"


def rendered(template: str, *, depth: int, **context: object) -> str:
    """Write one page.

    Args:
        template: its name.
        depth: how many folders below the site's it lies.
        context: what the template names.
    """
    up = "../" * depth
    if depth:
        context["suite_folder"] = "../" * (depth - 1)
    return _environment().get_template(template).render(context, folder=f"{up}{ASSETS}", up=up)


def assets() -> dict[str, str]:
    """Name -> text of every file that the pages need."""
    own = files(__package__).joinpath("templates")
    found = {name: own.joinpath(name).read_text(encoding="utf-8") for name in (NIGHTLY_STYLE, NIGHTLY_SCRIPT)}
    return found | {name: text_of(name) for name in (STYLE, SCRIPT, PLOTLY)}


@cache
def _environment() -> jinja2.Environment:
    environment = templates(("benchctl.report.nightly", "templates"))
    environment.globals |= {
        "inline": False,
        "version": benchctl.__version__,
        "policy": content_policy(inline=False),
        "palette": embedded(dark_palette()),
    }
    return environment
