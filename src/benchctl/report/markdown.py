"""Tables and text as Markdown."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from benchctl.report.grid import Grid
from benchctl.report.visible import visible

if TYPE_CHECKING:  # notes come with the statistics, whose libraries lists have no use for
    from benchctl.report.notes import Notes


def escaped(text: str) -> str:
    """Names with underscores and reasons with pipes or angle brackets stay what they are."""
    for special in ("\\", "|", "_", "*", "<", "`"):
        text = text.replace(special, f"\\{special}")
    return visible(" ".join(text.split()))


def table(headers: Iterable[str], lines: Iterable[Iterable[str]], words: frozenset[int]) -> str:
    """One table.

    Args:
        headers: of the columns.
        lines: cells, as many as there are headers.
        words: positions of the columns that are set flush left.
    """
    headers = tuple(headers)
    rules = ["---" if place in words else "---:" for place in range(len(headers))]
    rows = [[escaped(cell) for cell in headers], rules, *([escaped(cell) for cell in line] for line in lines)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def grid_table(grid: Grid) -> str:
    """A grid with its title as a heading."""
    left = frozenset(place for place, column in enumerate(grid.columns) if column.flush_left)
    return f"### {escaped(grid.title)}\n\n{table(grid.titles, grid.texts, left)}"


def note_lists(notes: "Notes") -> tuple[str, str]:
    """The numbered notes, and those for every row; empty where there are none."""
    numbered = [f"{number}. {escaped(doubt.text)}" for number, doubt in enumerate(notes.numbered, 1)]
    general = [f"- {escaped(doubt.text)}" for doubt in notes.general]
    return "\n".join(numbered), "\n".join(general)
