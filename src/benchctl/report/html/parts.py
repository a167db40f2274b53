"""What a page shows, as its template wants it: tables with headings and links, charts with their JSON."""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

import msgspec
from markupsafe import Markup, escape

from benchctl.report.chart import Chart
from benchctl.report.layout import Grid, VerdictCell
from benchctl.stats.compare import Verdict

_JOINT = re.compile(r"(?<=[-_.@])")
_NOTE = re.compile(r"\d+")
_NOT_IN_ANCHORS = re.compile(r"[^A-Za-z0-9-]+")


class Cell(msgspec.Struct, frozen=True):
    """One cell.

    Attributes:
        text: what it says; never markup.
        kind: `words` or `figure`.
        verdict: what its colour repeats; None without any.
        notes: numbers that it refers to, shown as links after the text.
        rows: that it stands for; 0 when the cell above stands for it.
    """

    text: str
    kind: str
    verdict: Verdict | None = None
    notes: tuple[str, ...] = ()
    rows: int = 1


class Table(msgspec.Struct, frozen=True):
    """A grid for the template.

    Attributes:
        caption: above it.
        headers: of the columns.
        lines: cells, top to bottom; the first of a line is its heading.
    """

    caption: str
    headers: tuple[Cell, ...]
    lines: tuple[tuple[Cell, ...], ...]

    @property
    def foldable(self) -> bool:
        """Whether a narrow screen can show every line by itself: each has a heading of its own."""
        return all(line[0].rows == 1 for line in self.lines)


class Figure(msgspec.Struct, frozen=True):
    """A chart for the template.

    Attributes:
        key: its anchor.
        title, about: see `Chart`.
        json: the figure, safe inside a script element.
        height_px: that it will take, so that nothing moves when it is drawn.
        table: the same in words.
        explained: a chart of the same title stands above it: how to read it need not be said again at once.
    """

    key: str
    title: str
    about: str
    json: Markup
    height_px: int
    table: Table | None
    explained: bool = False


class Group(msgspec.Struct, frozen=True):
    """The charts of one task."""

    key: str
    title: str
    figures: tuple[Figure, ...]


def table(grid: Grid) -> Table:
    """A grid with its row headings spanning the lines that continue them."""
    spans = _spans([line[0] for line in grid.texts])
    kinds = ["words" if place in grid.words else "figure" for place in range(len(grid.headers))]
    lines = tuple(
        (
            msgspec.structs.replace(_cell(line[0], "", kinds[0]), rows=rows),
            *(
                _cell(cell, header, kind)
                for cell, header, kind in zip(line[1:], grid.headers[1:], kinds[1:], strict=True)
            ),
        )
        for line, rows in zip(grid.lines, spans, strict=True)
    )
    headers = tuple(Cell(text, kind) for text, kind in zip(grid.headers, kinds, strict=True))
    return Table(grid.title, headers, lines)


def figure(chart: Chart, *, explained: bool = False) -> Figure:
    """A chart with its data where the page's script finds it."""
    height = chart.figure.get("layout", {}).get("height", 400)
    return Figure(
        key=anchor(chart.key),
        title=chart.title,
        about=chart.about,
        json=embedded(chart.figure),
        height_px=int(height),
        table=None if chart.table is None else table(chart.table),
        explained=explained,
    )


def groups(charts: Iterable[Chart], order: Sequence[str]) -> list[Group]:
    """Charts by task; tasks that the order does not name come last.

    Args:
        charts: of tasks, in any order; those of a group stay in theirs.
        order: titles of the groups.
    """
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
    """JSON that no `</script>` or `<!--` in it can end or change."""
    text = msgspec.json.encode(value).decode()
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(text)  # noqa: S704 - that is what the lines above are for


def breakable(text: str) -> Markup:
    """A name that may be broken at its joints, where a narrow column has no room for all of it."""
    return Markup("<wbr>").join(_JOINT.split(text))


def flagged(text: str) -> Markup:
    """A line in which options such as `-Xmx1g` are not broken at their hyphens, as far as there is room."""
    marked = (
        Markup('<span class="flag">{}</span>').format(word) if word.startswith("-") else escape(word)
        for word in text.split(" ")
    )
    return Markup(" ").join(marked)


def anchor(key: str) -> str:
    """What may stand in an `id`, whatever the key was made of."""
    return _NOT_IN_ANCHORS.sub("-", key)


def _cell(cell: str | VerdictCell, header: str, kind: str) -> Cell:
    if isinstance(cell, VerdictCell):
        return Cell(cell.text, kind, verdict=cell.verdict)
    if header == "Notes":
        parts = cell.split()
        return Cell(
            " ".join(part for part in parts if not _NOTE.fullmatch(part)),
            kind,
            notes=tuple(part for part in parts if _NOTE.fullmatch(part)),
        )
    return Cell(cell, kind)


def _spans(names: Sequence[str]) -> list[int]:
    """How many lines each row heading stands for; 0 where an empty one continues the one above."""
    heads = 0
    numbered = []
    for name in names:
        heads += bool(name) or not heads
        numbered.append(heads)
    spans: list[int] = []
    for _, members in groupby(numbered):
        count = len(list(members))
        spans += [count, *[0] * (count - 1)]
    return spans
