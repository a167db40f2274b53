"""`benchctl help`: pages of the documentation, without a network."""

import re
import sys
from pathlib import Path

import click

from benchctl.cli.streams import is_terminal, say
from benchctl.errors import UsageError, guess
from benchctl.track.library import shipped

_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)


@click.command("help")
@click.argument("topic", required=False, default="")
def help_command(topic: str) -> None:
    """Read a page of the documentation, e.g. `benchctl help sweeps`; without TOPIC, list the pages."""
    pages = _pages()
    if not topic:
        for section in dict.fromkeys(path.parent.name for path in pages.values()):
            say(f"\n{section.replace('-', ' ').capitalize()}:")
            for name, path in pages.items():
                if path.parent.name == section:
                    say(f"  {name:<20} {_title(path)}")
        say("\nRead one: benchctl help TOPIC")
        return
    named = topic.lower().replace(" ", "-")
    if named not in pages:
        raise UsageError(f"no page '{topic}'", hint=guess(named, pages) or "list all with: benchctl help")
    text = _COMMENT.sub("", pages[named].read_text(encoding="utf-8"))
    if not is_terminal(sys.stdout):
        say(text, nl=False)
        return
    from rich.console import Console  # noqa: PLC0415 - takes a while to load
    from rich.markdown import Markdown  # noqa: PLC0415 - the same

    console = Console()
    with console.pager(styles=True):
        console.print(Markdown(text))


def _pages() -> dict[str, Path]:
    """Name -> file, by section; a name that an earlier section has gets its section's in front."""
    pages: dict[str, Path] = {}
    for path in sorted((shipped("docs") / "pages").glob("*/*.md"), key=_order):
        if path.stem != "index":
            pages[f"{path.parent.name}-{path.stem}" if path.stem in pages else path.stem] = path
    return pages


def _order(path: Path) -> tuple[int, str]:
    sections = ("start", "how-to", "concepts", "method", "reference", "case-studies")
    return sections.index(path.parent.name), path.stem


def _title(path: Path) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    return next(line.removeprefix("# ") for line in lines if line.startswith("# "))
