"""What a page shows, as its template wants it: charts with their JSON, names with their joints."""

import re
from collections.abc import Iterable, Sequence

import msgspec
from markupsafe import Markup, escape

from benchctl.report.chart import Chart
from benchctl.report.grid import Grid

_JOINT = re.compile(r"(?<=[-_.@])")
_NOT_IN_ANCHORS = re.compile(r"[^A-Za-z0-9-]+")


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
    table: Grid | None
    explained: bool = False


class Group(msgspec.Struct, frozen=True):
    """The charts of one task."""

    key: str
    title: str
    figures: tuple[Figure, ...]


def figure(chart: Chart, *, explained: bool = False) -> Figure:
    """A chart with its data where the page's script finds it."""
    height = chart.figure.get("layout", {}).get("height", 400)
    return Figure(
        key=anchor(chart.key),
        title=chart.title,
        about=chart.about,
        json=embedded(chart.figure),
        height_px=int(height),
        table=chart.table,
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
