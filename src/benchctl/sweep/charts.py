"""Sweeps as charts: a line a variant with the intervals of its points."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import plotly.graph_objects as go

from benchctl.report.charts import OVERVIEW, Chart, tint, variant_style
from benchctl.report.charts.panels import plain, plot_layout, scaled_axis, upright
from benchctl.report.layout import better
from benchctl.report.numbers import figure
from benchctl.report.table import Table, break_name
from benchctl.stats.analysis import Analysis, Bounded, SweepCurve, SweepLine
from benchctl.stats.metrics import metric_of
from benchctl.sweep.report import strongest, sweep_answer, sweep_title

_BAND_ALPHA = 0.18
_ASIDE = 0.5
_BESIDE = 0.12
# Labels of points on a page of a telephone's width: so many of its points have room for one.
_LABEL_SHARE = 0.07
# Of points without numbers: columns of a label, and curves of a metric that are drawn.
_LABEL_WIDTH = 24
_MOST_DRAWN = 8


def page(analysis: Analysis, *_run: object) -> tuple[list[Chart], list[Table]]:
    """Return a chart for each curve along numbers, and for the strongest of a metric along others."""
    curves = [curve for curve in analysis.curves if curve.axis.numbers]
    others = strongest([curve for curve in analysis.curves if not curve.axis.numbers])
    for metric in dict.fromkeys(curve.metric for curve in others):
        curves += [curve for curve in others if curve.metric == metric][:_MOST_DRAWN]
    at_recall = [recall_chart(curve, str(number)) for number, curve in enumerate(curves) if curve.at_recall]
    return [*at_recall, *(sweep_chart(curve, str(number)) for number, curve in enumerate(curves))], []


def recall_chart(curve: SweepCurve, key: str) -> Chart:
    """Return the chart of a metric against recall; `key` is unique among those of its page."""
    metric = metric_of(curve.metric)
    ends = [mean.value for line in curve.lines for mean in line.means if mean is not None]
    return Chart(
        key=f"recall-{key}",
        group=OVERVIEW,
        title=f"{sweep_title(curve)}, against recall",
        about=(
            f"Each mark is a point, labelled by {curve.axis.name}: means over forks, with their 95% "
            f"intervals ({better(metric)}). Variants compare along a vertical line; the table has the values."
        ),
        data=[_against_recall(curve, number, line) for number, line in enumerate(curve.lines)],
        layout=plot_layout(
            "recall",
            f"{plain(metric.title)}, {plain(curve.unit)}",
            yaxis=scaled_axis(ends) or {"type": "log"},
            shapes=[upright(level.recall, dash="dot") for level in curve.at_recall],
        ),
    )


def _against_recall(curve: SweepCurve, number: int, line: SweepLine) -> go.Scatter:
    style = variant_style(number)
    points = zip(line.recall, line.means, curve.axis.labels, strict=True)
    known = [(recall, mean, label) for recall, mean, label in points if recall and mean]
    recalls, means, labels = zip(*known, strict=True) if known else ((), (), ())
    return go.Scatter(
        name=plain(line.variant),
        mode="lines+markers+text",
        x=[recall.value for recall in recalls],
        y=[mean.value for mean in means],
        error_x=_bars(recalls, style.colour),
        error_y=_bars(means, style.colour),
        line={"color": style.colour, "dash": style.dash, "width": 2},
        marker={"color": style.colour, "symbol": style.symbol, "size": 8},
        text=[*map(plain, labels)],
        textposition="top right",
        hovertext=[_hover(curve, line, label, mean) for _, mean, label in known],
        hovertemplate="%{hovertext}, recall %{x:.3f}<extra></extra>",
    )


def _bars(means: Sequence[Bounded], colour: str) -> dict[str, Any]:
    """Error bars of intervals; a point without one is its own."""
    return {
        "type": "data", "symmetric": False, "color": colour, "thickness": 2, "width": 5,
        "array": [0.0 if mean.high is None else mean.high - mean.value for mean in means],
        "arrayminus": [0.0 if mean.low is None else mean.value - mean.low for mean in means],
    }  # fmt: skip


def sweep_chart(curve: SweepCurve, key: str) -> Chart:
    """Return the chart of one metric of one task along its axis; `key` is unique on its page."""
    metric = metric_of(curve.metric)
    places = curve.axis.numbers or [float(place) for place in range(len(curve.axis.labels))]
    means = [mean for line in curve.lines for mean in line.means if mean is not None]
    ends = [end for mean in means for end in (mean.value, mean.low, mean.high) if end is not None]
    # What may be 0 has no place on a logarithmic axis.
    yaxis = scaled_axis(ends) if min(ends, default=0.0) > 0 else {}
    layout = plot_layout(
        plain(curve.axis.name + (f" ({curve.axis.fixed})" if curve.axis.fixed else "")),
        f"{plain(metric.title)}, {plain(curve.unit)}",
        xaxis=_x_axis(curve, places),
        yaxis=yaxis or {"rangemode": "tozero"},
    )
    return Chart(
        key=f"sweep-{key}",
        group=OVERVIEW,
        title=sweep_title(curve),
        about=(
            f"Each mark is the mean over forks, with its 95% interval ({better(metric)}). Whether two "
            "variants differ at a point is in the table, not in whether these intervals overlap."
        )
        + "".join(f" {answer}" for answer in sweep_answer(curve) if not curve.axis.numbers),
        data=[
            trace
            for number, line in enumerate(curve.lines)
            for trace in _line_traces(curve, number, line, places)
        ],
        layout=layout,
    )


def _x_axis(curve: SweepCurve, places: Sequence[float]) -> dict[str, Any]:
    """Marked at the points, as many as have room for their labels."""
    logarithmic = scaled_axis(places) if curve.axis.numbers and min(places) > 0 else {}
    scaled = [math.log10(place) for place in places] if logarithmic else list(places)
    span = scaled[-1] - scaled[0]
    shown: list[int] = [] if curve.axis.numbers else list(range(len(scaled)))
    for place in range(len(scaled)) if curve.axis.numbers else ():
        width = _LABEL_SHARE * max(1.0, len(curve.axis.labels[place]) / 3) * span
        if not shown or scaled[place] - scaled[shown[-1]] >= width:
            shown.append(place)
    pad = _ASIDE if not curve.axis.numbers else 0.04 * span or 0.1
    ends = [scaled[0] - pad, scaled[-1] + pad]
    return {
        "type": "log" if logarithmic else "linear", "range": ends, "tickmode": "array",
        "tickvals": [places[place] for place in shown],
        "ticktext": [
            plain(break_name(curve.axis.labels[place], _LABEL_WIDTH)).replace("\n", "<br>") for place in shown
        ],
    }  # fmt: skip


def _line_traces(
    curve: SweepCurve, number: int, line: SweepLine, places: Sequence[float]
) -> Iterator[go.Scatter]:
    """A line with a band; marks side by side for points that are no numbers: nothing lies between them."""
    style = variant_style(number)
    numbers = bool(curve.axis.numbers)
    aside = 0.0 if numbers else _BESIDE * (number - (len(curve.lines) - 1) / 2)
    known = [
        (place + aside, mean, label)
        for place, mean, label in zip(places, line.means, curve.axis.labels, strict=True)
        if mean is not None
    ]
    # Without an interval, a point is its own.
    low = [mean.value if mean.low is None else mean.low for _, mean, _ in known]
    high = [mean.value if mean.high is None else mean.high for _, mean, _ in known]
    along = [place for place, _, _ in known]
    values = [mean.value for _, mean, _ in known]
    base = {"name": plain(line.variant), "legendgroup": plain(line.variant)}
    marks = go.Scatter(
        **base,
        mode="lines+markers" if numbers else "markers",
        x=along,
        y=values,
        line={"color": style.colour, "dash": style.dash, "width": 2},
        marker={"color": style.colour, "symbol": style.symbol, "size": 8},
        text=[_hover(curve, line, label, mean) for _, mean, label in known],
        hovertemplate="%{text}<extra></extra>",
    )
    if numbers:
        yield go.Scatter(
            **base,
            mode="lines",
            line={"width": 0},
            fill="toself",
            fillcolor=tint(style.colour, _BAND_ALPHA),
            showlegend=False,
            hoverinfo="skip",
            x=along + along[::-1],
            y=high + low[::-1],
        )
    else:
        marks.error_y = _bars([mean for _, mean, _ in known], style.colour)
    yield marks


def _hover(curve: SweepCurve, line: SweepLine, label: str, mean: Bounded) -> str:
    ends = ""
    if mean.low is not None and mean.high is not None:
        ends = f" ({figure(mean.low)} to {figure(mean.high)})"
    where = f"{plain(curve.axis.name)} {plain(label)}"
    return f"{plain(line.variant)}, {where}: {figure(mean.value)} {plain(curve.unit)}{ends}"
