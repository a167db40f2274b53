"""What charts of samples have in common: their frame, panels one above the other, and the digits in them."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from benchctl.report.chart import Chart
from benchctl.report.charts.theme import base_layout
from benchctl.report.grid import Grid

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
        also: what each of them has to say, such as which forks have no samples; may be empty.
    """

    key: str
    group: str
    variants: tuple[str, ...]
    also: str = ""

    def position(self, label: str) -> int:
        """Of a variant's style."""
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
        yaxis: more of that axis, as plotly takes it.
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
    """A layout of panels that share their horizontal axis: traces of the n-th, from 1, name `axis_name(n)`.

    Args:
        x_title: of the axis at the bottom, with the unit.
        panels: from top to bottom.
        shapes: drawn below the data.
        annotations: texts in the panels.
        showlegend: whether there is a legend.
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
    """An axis for times in milliseconds: logarithmic where they span more than three times the least.

    Args:
        times_ns: all that is drawn, or its extremes; nanoseconds.
    """
    times_ms = np.asarray(times_ns, dtype=np.float64) / _NS_PER_MS
    times_ms = times_ms[times_ms > 0]
    if times_ms.size == 0 or times_ms.max() < LOG_FROM * times_ms.min():
        return {}
    low, high = np.log10(times_ms.min()), np.log10(times_ms.max())
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
    """Five significant digits of each, which no eye can tell from all of them; what is no number is None."""
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
