"""Parts of pages: style and scripts, charts with their JSON, templates, and tables alone."""

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import jinja2
import msgspec
import numpy as np
from markupsafe import Markup, escape

import benchctl
from benchctl.errors import BenchctlError
from benchctl.report.blocks import Block, Command
from benchctl.report.charts import Chart
from benchctl.report.numbers import visible
from benchctl.report.table import Table

FOLDER = "assets"
STYLE, SCRIPT, PLOTLY = "style.css", "script.js", "plotly.min.js"

# A page needs nothing but its own files. Plotly writes styles into the document; `file:` is what `self`
# does not cover for a page that was opened from a disk.
_LINKED_POLICY = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file: 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
_INLINE_POLICY = (
    "default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)


@cache
def text_of(name: str) -> str:
    """Return one of the files, as text.

    Raises:
        BenchctlError: If the plotly package lacks its script.
    """
    if name == PLOTLY:
        return _plotly_path().read_text(encoding="utf-8")
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def inline_script(name: str) -> Markup:
    """Return a script that can stand inside a page."""
    return Markup(_unclosed(text_of(name)))  # noqa: S704 - our own file, or plotly's


def inline_style() -> Markup:
    """Return the style sheet, to stand inside a page."""
    return Markup(text_of(STYLE))  # noqa: S704 - our own file


def content_policy(*, inline: bool) -> str:
    """Return the Content-Security-Policy of a page: no network, and no script but its own."""
    if not inline:
        return _LINKED_POLICY
    hashes = " ".join(f"'sha256-{_digest(_unclosed(text_of(name)))}'" for name in (SCRIPT, PLOTLY))
    return _INLINE_POLICY.format(hashes=hashes)


def scriptless_policy() -> str:
    """Return the Content-Security-Policy of a page in one file that has no script."""
    return "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def _unclosed(script: str) -> str:
    """A script whose strings hold what a page may: a browser ends its element at the first `</script`."""
    whole = script.replace("</script", "<\\/script").replace("\r\n", "\n")
    return re.sub(r"[\x00-\x08\x0e-\x1f]", lambda found: f"\\x{ord(found[0]):02x}", whole)


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _plotly_path() -> Path:
    """Found without importing the package, which takes a while and is not needed."""
    spec = find_spec("plotly")
    for folder in (spec and spec.submodule_search_locations) or ():
        path = Path(folder) / "package_data" / PLOTLY
        if path.is_file():
            return path
    raise BenchctlError(
        "the plotly package lacks its plotly.min.js, without which pages have no plots",
        hint="reinstall it: pip install --force-reinstall plotly",
    )


_JOINT = re.compile(r"(?<=[-_.@])")
_NOT_IN_ANCHORS = re.compile(r"[^A-Za-z0-9-]+")


class Figure(msgspec.Struct, frozen=True):
    """A chart for the template."""

    key: str
    title: str
    about: str
    json: Markup
    height_px: int
    table: Table | None
    explained: bool = False  # a chart of the same title above it already says how to read it


class Group(msgspec.Struct, frozen=True):
    """The charts of one task."""

    key: str
    title: str
    figures: tuple[Figure, ...]


def figure(chart: Chart, *, explained: bool = False) -> Figure:
    """Return a chart with its data where the page's script finds it."""
    return Figure(
        key=anchor(chart.key),
        title=chart.title,
        about=chart.about,
        json=embedded(chart.figure),
        height_px=chart.layout.height,
        table=chart.table,
        explained=explained,
    )


def groups(charts: Iterable[Chart], order: Sequence[str]) -> list[Group]:
    """Return charts by task, in `order` of titles; tasks that it does not name come last."""
    found: dict[str, list[Chart]] = {name: [] for name in order}
    for chart in charts:
        found.setdefault(chart.group, []).append(chart)
    seen: set[str] = set()
    listed = []
    for number, (name, own) in enumerate(found.items(), 1):
        if own:
            figures = tuple(figure(chart, explained=chart.title in seen) for chart in own)
            listed.append(Group(f"operation-{number}", name, figures))
            seen |= {chart.title for chart in own}
    return listed


def embedded(value: object) -> Markup:
    """Return JSON that no `</script>` or `<!--` in it can end or change."""
    text = msgspec.json.encode(value, enc_hook=_typed_array).decode()
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(text)  # noqa: S704 - that is what the lines above are for


def _typed_array(value: object) -> object:
    """Plotly's form of an array, in single precision: seven digits, and less than its numbers as text."""
    if isinstance(value, np.ndarray):
        return {"dtype": "f4", "bdata": base64.b64encode(value.astype("<f4").tobytes()).decode()}
    raise NotImplementedError(f"no JSON of {type(value)}")


def breakable(text: str) -> Markup:
    """Return a name that may be broken at its joints, where a narrow column has no room for all of it."""
    return Markup("<wbr>").join(_JOINT.split(text))


def flagged(text: str) -> Markup:
    """Return a line in which options such as `-Xmx1g` are not broken at their hyphens, if there is room."""
    marked = (
        Markup('<span class="flag">{}</span>').format(word) if word.startswith("-") else escape(word)
        for word in text.split(" ")
    )
    return Markup(" ").join(marked)


def anchor(key: str) -> str:
    """Return a valid `id`, whatever the key was made of."""
    return _NOT_IN_ANCHORS.sub("-", key)


@cache
def templates(*packages: tuple[str, str]) -> jinja2.Environment:
    """Return a strict, escaping template environment without invisible characters.

    `packages` are folders in Python packages with further templates, found before the shared ones.
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


def render_blocks(title: str, blocks: Sequence[Block]) -> str:
    """Write a page without scripts."""
    return (
        templates()
        .get_template("tables.html.jinja")
        .render(
            title=title,
            tables=[block for block in blocks if isinstance(block, Table)],
            lines=[block for block in blocks if isinstance(block, str)],
            commands=[block for block in blocks if isinstance(block, Command)],
            subtitle=(),
            inline=True,
            style=inline_style(),
            script="",
            palette="",
            version=benchctl.__version__,
            policy=scriptless_policy(),
        )
    )
