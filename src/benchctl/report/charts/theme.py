"""Looks that all charts share: every variant's colour, mark and dash, and layouts for light and dark pages.

Colours are of Okabe and Ito's palette for the colour-blind, as far as they keep a contrast of 3:1. Figures
have those for light pages; a dark page exchanges them for lighter ones, and gives text and grid its own.
"""

from typing import Any, Final

import msgspec

LIGHT_PAPER: Final = "#ffffff"
DARK_PAPER: Final = "#14181d"
"""Backgrounds of the page, as its style sheet has them."""

GUIDE: Final = "rgba(128,128,128,0.75)"
"""Of lines that are no data: no difference, a limit, the start of the measured window."""
BAND: Final = "rgba(128,128,128,0.18)"
"""Of areas that are no data: a margin, a warm-up."""

_PLOT_HEIGHT = 320
_LEGEND_PX = 36
_NO_LEGEND_PX = 10
_LABELS_PX = 44
_TITLE_SIZE = 12.5


class VariantStyle(msgspec.Struct, frozen=True):
    """How a variant is told from the others: each of the three is enough by itself.

    Attributes:
        colour: `#rrggbb`, on light pages and in figures.
        on_dark: what it becomes on dark pages.
        symbol: plotly's name of its mark.
        dash: plotly's name of its dash.
    """

    colour: str
    on_dark: str
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
    """The style of the variant at a position of `Analysis.variants`; more than six begin again."""
    return _STYLES[position % len(_STYLES)]


def dark_palette() -> list[tuple[str, str]]:
    """How colours are written in figures, and what to write for them on dark pages; tints included."""
    return [
        pair
        for style in _STYLES
        for pair in ((style.colour, style.on_dark), (_opening(style.colour), _opening(style.on_dark)))
    ]


def tint(colour: str, alpha: float) -> str:
    """A `#rrggbb` colour, see-through: `rgba(...)` for bands and thin lines."""
    return f"{_opening(colour)}{alpha:g})"


def base_layout(
    x_title: str, y_title: str, *, height: int = _PLOT_HEIGHT, **overrides: object
) -> dict[str, Any]:
    """A plotly layout without colours of text, grid and paper, and without anything that gets in the way.

    Args:
        x_title: with its unit.
        y_title: with its unit.
        height: of the plotting area, pixels; what labels and the legend need is added.
        overrides: other keys of the layout; dicts are merged into those that are there, such as
            `xaxis={"type": "log"}`.
    """
    top = _LEGEND_PX if overrides.get("showlegend", True) else _NO_LEGEND_PX
    layout: dict[str, Any] = {
        "height": height + top + _LABELS_PX,
        "margin": {"l": 8, "r": 12, "t": top, "b": _LABELS_PX},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "hovermode": "closest",
        "dragmode": False,
        "showlegend": True,
        "legend": {"orientation": "h", "x": 0, "y": 1, "xanchor": "left", "yanchor": "bottom"},
        "xaxis": _axis(x_title),
        "yaxis": _axis(y_title),
    }
    for key, value in overrides.items():
        known = layout.get(key)
        layout[key] = known | value if isinstance(known, dict) and isinstance(value, dict) else value
    return layout


def _opening(colour: str) -> str:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},"


def _axis(title: str) -> dict[str, Any]:
    return {
        "title": {"text": title, "standoff": 8, "font": {"size": _TITLE_SIZE}},
        "automargin": True,
        "zeroline": False,
        "ticks": "outside",
    }


def plain(text: str) -> str:
    """Text for titles, names, labels and hovers: plotly reads tags in them, and names come from outside."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
