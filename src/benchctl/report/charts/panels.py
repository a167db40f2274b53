"""What all charts share: how they look, panels with one axis, and the same for those who do not see them."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from benchctl.report.grid import Grid

# What a chart is to a page: a figure, and the same for those who do not see it.


OVERVIEW = "overview"
"""The group of charts that are about the whole run."""
LEAST_POINTS, LEAST_READINGS = 5, 10
"""What has fewer is told by its table: a plot of them shows nothing."""

_MOST_ABSENT = 6


class Chart(msgspec.Struct, frozen=True):
    """One chart of a page.

    Attributes:
        key: unique on its page; letters, digits and hyphens, since it becomes an anchor.
        group: `OVERVIEW`, or the task's title as `Analysis.where` gives it.
        title: above it.
        about: what is shown and how to read it, in one or two sentences; also its accessible description.
        figure: a plotly figure as plain JSON: `data` and `layout`.
        table: the same figures in words; None where a table of the page has them already.
    """

    key: str
    group: str
    title: str
    about: str
    figure: dict[str, Any]
    table: Grid | None = None


def not_drawn(absent: Sequence[str]) -> str:
    """The first of the forks that charts lack, and how many more there are; empty when there are none."""
    if not absent:
        return ""
    more = len(absent) - _MOST_ABSENT
    return f"Not drawn: {'; '.join(absent[:_MOST_ABSENT])}{f'; and {more} more' if more > 0 else ''}."


# Looks that all charts share: every variant's colour, mark and dash, and layouts for light and dark pages.


LIGHT_PAPER: Final = "#ffffff"
DARK_PAPER: Final = "#14181d"
"""Backgrounds of the page, as its style sheet has them."""

GUIDE: Final = "rgba(128,128,128,0.75)"
"""Of lines that are not data: no difference, a limit, the start of the measured window."""
BAND: Final = "rgba(128,128,128,0.18)"
"""Of areas that are not data: a margin, a warm-up."""

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
    """A plotly layout without colours of text, grid and paper.

    Titles have units; `height` is that of the plotting area, pixels, to which labels and the legend are
    added. Dicts in `overrides` are merged into those of the layout, such as `xaxis={"type": "log"}`.
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


# What charts of samples have in common: their frame, panels one above the other, and the digits in them.


_GAP_PX = 26
_DIGITS = 5
_NS_PER_MS = 1e6
LOG_FROM: Final = 3
"""From which ratio of the most to the least on an axis is logarithmic."""
TICKS: Final = ((0.8, (1, 1.5, 2, 3, 4, 5, 6, 8)), (2.5, (1, 2, 5)), (99, (1,)))
"""Decades that an axis spans, up to which these steps of each are marked: two of them at least are seen."""


class Frame(msgspec.Struct, frozen=True):
    """What the charts of one task have in common.

    Attributes:
        key: unique among tasks; letters, digits and hyphens.
        group: see `Chart`.
        variants: all of the page, in the order of their styles.
        also: remarks for each, such as which forks have no samples; may be empty.
    """

    key: str
    group: str
    variants: tuple[str, ...]
    also: str = ""

    def position(self, label: str) -> int:
        """Position of a variant, which chooses its style."""
        return self.variants.index(label)

    def chart(
        self, kind: str, title: str, about: Sequence[str], figure: dict[str, Any], table: Grid
    ) -> Chart:
        """A chart of this task; `kind` tells it from its others, and empty parts of `about` are left out."""
        words = " ".join(part for part in (*about, self.also) if part)
        return Chart(f"{kind}-{self.key}", self.group, title, words, figure, table)


class Panel(msgspec.Struct, frozen=True):
    """One of the panels of a chart.

    Attributes:
        y_title: of its vertical axis, with the unit.
        height: of its plotting area, pixels.
        yaxis: further plotly settings of that axis.
    """

    y_title: str
    height: int
    yaxis: dict[str, Any] = {}


def stacked(
    x_title: str,
    panels: Sequence[Panel],
    *,
    shapes: Sequence[dict[str, Any]] = (),
    annotations: Sequence[dict[str, Any]] = (),
    showlegend: bool = True,
) -> dict[str, Any]:
    """A layout of panels, from top to bottom, that share their horizontal axis.

    Traces of the n-th, from 1, name `axis_name(n)`. Titles have units; `shapes` are below the data.
    """
    total = sum(panel.height for panel in panels) + _GAP_PX * (len(panels) - 1)
    layout = base_layout(x_title, panels[0].y_title, height=total, showlegend=showlegend)
    layout |= {"shapes": list(shapes), "annotations": list(annotations)}
    layout["xaxis"] = layout["xaxis"] | {"anchor": axis_name(len(panels))}
    top = total
    for number, panel in enumerate(panels, 1):
        axis = base_layout("", panel.y_title)["yaxis"] | {"anchor": "x"}
        domain = [max(0.0, round((top - panel.height) / total, 5)), round(top / total, 5)]
        layout["yaxis" + axis_name(number)[1:]] = axis | {"domain": domain} | panel.yaxis
        top -= panel.height + _GAP_PX
    return layout


def time_axis(times_ns: npt.ArrayLike) -> dict[str, Any]:
    """An axis in ms for times in ns, as by `scaled_axis`."""
    return scaled_axis(np.asarray(times_ns, dtype=np.float64) / _NS_PER_MS)


def scaled_axis(values: npt.ArrayLike) -> dict[str, Any]:
    """An axis for values: logarithmic if those above 0 span more than a factor of 3."""
    values = np.asarray(values, dtype=np.float64)
    values = values[values > 0]
    if values.size == 0 or values.max() < LOG_FROM * values.min():
        return {}
    low, high = np.log10(values.min()), np.log10(values.max())
    steps = next(steps for most, steps in TICKS if high - low < most)
    exponents = range(int(np.floor(low)), int(np.ceil(high)) + 1)
    ticks = [step * 10.0**exponent for exponent in exponents for step in steps]
    pad = 0.03 * (high - low)
    return {
        "type": "log", "range": digits([low - pad, high + pad]),
        "tickmode": "array", "tickvals": digits(ticks), "ticktext": [f"{tick:,.4g}" for tick in ticks],
    }  # fmt: skip


def axis_name(number: int) -> str:
    """How traces call the vertical axis of the n-th panel: `y`, `y2`, `y3`."""
    return "y" if number == 1 else f"y{number}"


def heading(text: str, panel: int) -> dict[str, Any]:
    """A title inside a panel, at its upper left."""
    return {
        "text": text, "xref": "paper", "x": 0.004, "xanchor": "left", "yref": f"{axis_name(panel)} domain",
        "y": 1, "yanchor": "top", "showarrow": False,
    }  # fmt: skip


def digits(values: npt.ArrayLike) -> list[float | None]:
    """Five significant digits of each, which look like all of them; what is not a number is None."""
    return [
        float(f"{value:.{_DIGITS}g}") if np.isfinite(value) else None
        for value in np.asarray(values, dtype=np.float64).tolist()
    ]


def milliseconds(values_ns: npt.ArrayLike) -> list[float | None]:
    """Nanoseconds as `digits` of milliseconds."""
    return digits(np.asarray(values_ns, dtype=np.float64) / _NS_PER_MS)


def spans(low: float, high: float) -> str:
    """`3` or `3 to 5`, for numbers of requests."""
    return f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"
