"""Layouts of charts, their axes, and what is drawn below the data."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from benchctl.stats.inference import Floats

GUIDE: Final = "rgba(128,128,128,0.75)"
"""Colour of lines that are not data: no difference, a limit, the start of the measured window."""
BAND: Final = "rgba(128,128,128,0.18)"
"""Colour of areas that are not data: a margin, a warm-up."""
LOG_FROM: Final = 3
"""The ratio of the largest to the smallest value from which an axis is logarithmic."""
TICKS: Final = ((0.8, (1, 1.5, 2, 3, 4, 5, 6, 8)), (2.5, (1, 2, 5)), (99, (1,)))
"""Decades that an axis spans, up to which these steps of each are marked: at least two marks are seen."""

_PLOT_HEIGHT = 320
_LEGEND_PX = 36
_NO_LEGEND_PX = 10
_LABELS_PX = 44
_NS_PER_MS = 1e6


def plot_layout(
    x_title: str,
    y_title: str,
    *,
    height: int = _PLOT_HEIGHT,
    xaxis: Mapping[str, Any] = {},
    yaxis: Mapping[str, Any] = {},
    showlegend: bool = True,
    **more: Any,
) -> go.Layout:
    """Return the layout of one plot; `script.js` adds the look that all have.

    Titles have units; `height` is that of the plotting area, pixels, to which labels and the legend are
    added.
    """
    top = _LEGEND_PX if showlegend else _NO_LEGEND_PX
    return go.Layout(
        height=height + top + _LABELS_PX,
        margin={"t": top, "b": _LABELS_PX},
        showlegend=showlegend,
        xaxis={"title": {"text": x_title}, **xaxis},
        yaxis={"title": {"text": y_title}, **yaxis},
        **more,
    )


def shaded(begin: float, end: float) -> go.layout.Shape:
    """Return an area below the data, from one x to another."""
    return go.layout.Shape(
        type="rect", layer="below", xref="x", yref="paper", x0=begin, x1=end, y0=0, y1=1,
        fillcolor=BAND, line={"width": 0},
    )  # fmt: skip


def upright(place: float, **line: Any) -> go.layout.Shape:
    """Return a line below the data at one x."""
    return go.layout.Shape(
        type="line", layer="below", xref="x", yref="paper", x0=place, x1=place, y0=0, y1=1,
        line={"color": GUIDE, "width": 1.5, **line},
    )  # fmt: skip


def time_axis(times_ns: npt.ArrayLike) -> dict[str, Any]:
    """Return an axis in ms for times in ns, as by `scaled_axis`."""
    return scaled_axis(milliseconds(times_ns))


def scaled_axis(values: npt.ArrayLike) -> dict[str, Any]:
    """Return an axis for values: logarithmic if those above 0 span more than a factor of 3."""
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
        "type": "log", "range": [float(low - pad), float(high + pad)],
        "tickmode": "array", "tickvals": ticks, "ticktext": [f"{tick:,.4g}" for tick in ticks],
    }  # fmt: skip


def milliseconds(values_ns: npt.ArrayLike) -> Floats:
    """Return nanoseconds as milliseconds."""
    return np.asarray(values_ns, dtype=np.float64) / _NS_PER_MS


def plain(text: str) -> str:
    """Return text without markup: plotly reads tags in names and labels, and these come from outside."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def spans(low: float, high: float) -> str:
    """Return `3` or `3 to 5`, for numbers of requests."""
    return f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"
