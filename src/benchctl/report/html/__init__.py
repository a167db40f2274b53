"""Pages, each complete in one file without network: style and scripts, charts with their JSON, templates."""

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
from markupsafe import Markup

import benchctl
from benchctl.errors import BenchctlError
from benchctl.report.charts import Chart, dark_palette
from benchctl.report.numbers import visible
from benchctl.report.table import Block, Table

STYLE, SCRIPT, PLOTLY = "style.css", "script.js", "plotly.min.js"

# No network, and no script but those of the page. Plotly writes styles into the document.
_POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
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


def inline_policy(*scripts: str) -> str:
    """Return the Content-Security-Policy of a page with these of our scripts in it."""
    hashes = (hashlib.sha256(inline_script(name).encode()).digest() for name in scripts)
    shown = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in hashes)
    return _POLICY.format(scripts=shown or "'none'")


def _unclosed(script: str) -> str:
    """A script whose strings hold what a page may: a browser ends its element at the first `</script`."""
    whole = script.replace("</script", "<\\/script").replace("\r\n", "\n")
    return re.sub(r"[\x00-\x08\x0e-\x1f]", lambda found: f"\\x{ord(found[0]):02x}", whole)


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


class Figures(msgspec.Struct, frozen=True):
    """Charts side by side."""

    charts: tuple[Chart, ...]


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


def groups(charts: Iterable[Chart], order: Sequence[str]) -> list[Group]:
    """Return charts by task, folded, in `order` of titles; tasks that it does not name come last."""
    by_group: dict[str, list[Chart]] = {name: [] for name in order}
    for chart in charts:
        by_group.setdefault(chart.group, []).append(chart)
    return [
        Group(name, (Figures(tuple(own)),), f"operation-{number}", folded=True)
        for number, (name, own) in enumerate(by_group.items(), 1)
        if own
    ]


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
        "anchor": anchor,
        "breakable": breakable,
        "embedded": embedded,
        "kind": lambda block: type(block).__name__,
    }
    return environment


def _shown(value: object) -> object:
    if isinstance(value, Markup):
        return Markup(visible(value))  # noqa: S704 - it was markup before
    return visible(value) if isinstance(value, str) else value


def rendered(
    title: str, parts: Iterable[Part], *, subtitle: Sequence[str] = (), scripted: bool = True
) -> str:
    """Return a page, without parts that are empty; one that is not `scripted` has no plots."""
    shown = [part for part in parts if part.blocks]
    scripts = (SCRIPT, PLOTLY) if scripted else ()
    return (
        templates()
        .get_template("page.html.jinja")
        .render(
            title=title,
            subtitle=subtitle,
            parts=shown,
            links=[(f"#{part.key}", part.heading) for part in shown if part.heading],
            version=benchctl.__version__,
            style=Markup(text_of(STYLE)),  # noqa: S704 - our own file
            scripts=[inline_script(name) for name in scripts],
            policy=inline_policy(*scripts),
            palette=embedded(dark_palette()) if scripted else "",
        )
    )


def render_blocks(title: str, blocks: Iterable[Block]) -> str:
    """Return a page without scripts."""
    shown = [
        Table(block.title, block.columns, tuple(block.lines)) if isinstance(block, Table) else block
        for block in blocks
    ]
    return rendered(title, [Part("", "", shown)], scripted=False)
