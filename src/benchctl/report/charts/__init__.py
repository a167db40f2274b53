"""Charts: what a page needs of each, and how variants look in all of them; only the modules import plotly."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from benchctl.report.table import Table

OVERVIEW = "overview"
"""The group of charts that are about the whole run."""
LEAST_POINTS = 5
"""Minimum number of points of a plot; with fewer, the table is enough."""


class Chart(msgspec.Struct, frozen=True):
    """A chart of a page."""

    key: str  # unique on its page; letters, digits and hyphens, since it becomes an anchor
    group: str  # `OVERVIEW`, or the task's title as `Analysis.where` gives it
    title: str
    about: str  # caption of one or two sentences; also the accessible description
    data: Sequence[Any]  # traces of `plotly.graph_objects`
    layout: Any  # a `plotly.graph_objects.Layout`; the page adds what all plots have in common
    table: Table | None = None  # values as text; None where a table of the page has them already

    @property
    def figure(self) -> dict[str, Any]:
        """The figure as JSON, in which numbers may be arrays of numpy."""
        return {
            "data": [trace.to_plotly_json() for trace in self.data],
            "layout": self.layout.to_plotly_json(),
        }


class VariantStyle(msgspec.Struct, frozen=True):
    """Style of a variant: each of colour, symbol and dash is enough to identify it."""

    colour: str  # `#rrggbb`, on light pages and in figures
    on_dark: str  # colour on dark pages
    symbol: str
    dash: str


_STYLES: Final = (
    VariantStyle("#0072b2", "#56b4e9", "circle", "solid"),
    VariantStyle("#d55e00", "#f58f4c", "diamond", "dash"),
    VariantStyle("#009e73", "#3cc79b", "square", "dot"),
    VariantStyle("#bf6899", "#e09cc4", "triangle-up", "dashdot"),
    VariantStyle("#808080", "#a9a9a9", "cross", "longdash"),
    VariantStyle("#9a7d00", "#d6b93c", "x", "longdashdot"),
)


def variant_style(position: int) -> VariantStyle:
    """Return the style of the variant at a position of `Analysis.variants`; the seventh has the first's."""
    return _STYLES[position % len(_STYLES)]


def dark_palette() -> list[tuple[str, str]]:
    """Return colours as figures have them, tints included, each with what replaces it on dark pages."""
    return [
        pair
        for style in _STYLES
        for pair in ((style.colour, style.on_dark), (_opening(style.colour), _opening(style.on_dark)))
    ]


def tint(colour: str, alpha: float) -> str:
    """Return a `#rrggbb` colour with an opacity, as `rgba(...)`, for bands and thin lines."""
    return f"{_opening(colour)}{alpha:g})"


def _opening(colour: str) -> str:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},"
