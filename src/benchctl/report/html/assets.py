"""The files beside a page: its style, its script, and plotly's, which comes with the plotly package."""

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from markupsafe import Markup

from benchctl.errors import BenchctlError

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
    """One of the files, as text.

    Raises:
        BenchctlError: the plotly package lacks its script.
    """
    if name == PLOTLY:
        return _plotly_path().read_text(encoding="utf-8")
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def inline_script(name: str) -> Markup:
    """A script that can stand inside a page."""
    return Markup(_unclosed(text_of(name)))  # noqa: S704 - our own file, or plotly's


def inline_style() -> Markup:
    """The style sheet, to stand inside a page."""
    return Markup(text_of(STYLE))  # noqa: S704 - our own file


def content_policy(*, inline: bool) -> str:
    """The Content-Security-Policy of a page: no network, and no script but its own."""
    if not inline:
        return _LINKED_POLICY
    hashes = " ".join(f"'sha256-{_digest(_unclosed(text_of(name)))}'" for name in (SCRIPT, PLOTLY))
    return _INLINE_POLICY.format(hashes=hashes)


def scriptless_policy() -> str:
    """The Content-Security-Policy of a page in one file that has no script."""
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
