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
from benchctl.report.charts import Chart, dark_palette
from benchctl.report.numbers import visible
from benchctl.report.table import Block, Table

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
_SCRIPTLESS_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
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


def content_policy(*, inline: bool) -> str:
    """Return the Content-Security-Policy of a page: no network, and no script but its own."""
    return inline_policy(SCRIPT, PLOTLY) if inline else _LINKED_POLICY


def inline_policy(*scripts: str) -> str:
    """Return the policy of a page with these of our scripts in it: no network, and no other script."""
    hashes = " ".join(f"'sha256-{_digest(_unclosed(text_of(name)))}'" for name in scripts)
    return _INLINE_POLICY.format(hashes=hashes)


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


class Figures(msgspec.Struct, frozen=True):
    """Charts side by side."""

    figures: tuple[Figure, ...]


class Group(msgspec.Struct, frozen=True):
    """Blocks under a title of their own."""

    title: str
    blocks: "tuple[PageBlock, ...]"
    key: str = ""  # its anchor
    folded: bool | None = None  # None for what cannot be folded


PageBlock = Block | Markup | Figures | Group
"""Content of a page; markup is shown as it is."""


class Part(msgspec.Struct, frozen=True):
    """A section of a page."""

    key: str
    heading: str  # empty for none
    blocks: Sequence[PageBlock]


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
    """Return charts by task, folded, in `order` of titles; tasks that it does not name come last."""
    by_group: dict[str, list[Chart]] = {name: [] for name in order}
    for chart in charts:
        by_group.setdefault(chart.group, []).append(chart)
    seen: set[str] = set()
    listed = []
    for number, (name, own) in enumerate(by_group.items(), 1):
        if own:
            figures = Figures(tuple(figure(chart, explained=chart.title in seen) for chart in own))
            listed.append(Group(name, (figures,), f"operation-{number}", folded=True))
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
    if isinstance(text, Markup):
        return text
    marked = (
        Markup('<span class="flag">{}</span>').format(word) if word.startswith("-") else escape(word)
        for word in text.split(" ")
    )
    return Markup(" ").join(marked)


def anchor(key: str) -> str:
    """Return a valid `id`, whatever the key was made of."""
    return _NOT_IN_ANCHORS.sub("-", key)


@cache
def templates() -> jinja2.Environment:
    """Return a strict, escaping template environment without invisible characters."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("benchctl.report.html", ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        finalize=_shown,
    )
    environment.filters |= {
        "breakable": breakable,
        "flagged": flagged,
        "kind": lambda block: type(block).__name__,
    }
    return environment


def _shown(value: object) -> object:
    if isinstance(value, Markup):
        return Markup(visible(value))  # noqa: S704 - it was markup before
    return visible(value) if isinstance(value, str) else value


def rendered(
    title: str,
    parts: Iterable[Part],
    *,
    subtitle: Sequence[str] = (),
    inline: bool = False,
    scripted: bool = True,
    folder: str = FOLDER,
) -> str:
    """Return a page, without parts that are empty.

    Style and scripts are `inline`, or in `folder`, relative to the page; a page that is not `scripted` is one
    file without any.
    """
    shown = [part for part in parts if part.blocks]
    links = [(f"#{part.key}", part.heading) for part in shown if part.heading]
    inline = inline or not scripted
    context: dict[str, object] = {}
    if inline:
        context = {"style": Markup(text_of(STYLE)), "script": "", "plotly": ""}  # noqa: S704 - our own file
    if inline and scripted:
        context |= {"script": inline_script(SCRIPT), "plotly": inline_script(PLOTLY)}
    return (
        templates()
        .get_template("page.html.jinja")
        .render(
            context,
            title=title,
            subtitle=subtitle,
            parts=shown,
            links=links,
            plots=any(_has_plots(part.blocks) for part in shown),
            folder=folder,
            inline=inline,
            version=benchctl.__version__,
            policy=content_policy(inline=inline) if scripted else _SCRIPTLESS_POLICY,
            palette=embedded(dark_palette()) if scripted else "",
        )
    )


def _has_plots(blocks: Iterable[PageBlock]) -> bool:
    return any(
        isinstance(block, Figures) or (isinstance(block, Group) and _has_plots(block.blocks))
        for block in blocks
    )


def render_blocks(title: str, blocks: Iterable[Block]) -> str:
    """Return a page without scripts."""
    return rendered(title, [Part("", "", list(blocks))], scripted=False)
