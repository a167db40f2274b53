"""The plot of a red-line search: latency by load."""

from collections.abc import Sequence

import plotly.graph_objects as go

from benchctl.redline.judge import percentile_name
from benchctl.redline.report import load_axis, load_title
from benchctl.report.charts import OVERVIEW, Chart, variant_style
from benchctl.report.charts.effects import errors
from benchctl.report.charts.panels import GUIDE, plain, plot_layout, time_axis
from benchctl.report.facts import objective_text
from benchctl.report.numbers import figure
from benchctl.report.table import Table
from benchctl.results.figures import load_suffix
from benchctl.stats.analysis import Analysis, CurveRow, RedlineCurves

_NS_PER_MS = 1e6


def page(analysis: Analysis, *_run: object) -> tuple[list[Chart], list[Table]]:
    """Return one plot of the percentile by load, for all variants; none where nothing was measured."""
    return ([] if analysis.redline is None else redline_charts(analysis.redline)), []


def redline_charts(found: RedlineCurves) -> list[Chart]:
    """Return the plot of a search, or none."""
    unit = load_suffix(found.unit)
    traces = [_trace(place, curve.variant, curve.rows, unit) for place, curve in enumerate(found.curves)]
    traces = [trace for trace in traces if trace.x]
    if not traces:
        return []
    objective = objective_text(found.search)
    limit_ms = found.search.limit_ns / _NS_PER_MS
    by = load_title(found.search)
    name = percentile_name(found.search.percentile)
    layout = plot_layout(
        "offered requests/s" if found.unit == "queries/s" else load_axis(found),
        f"{name} of latency, ms",
        yaxis=time_axis([found.search.limit_ns, *(_NS_PER_MS * y for trace in traces for y in trace.y)]),
        shapes=[
            go.layout.Shape(
                type="line", xref="paper", x0=0, x1=1, y0=limit_ms, y1=limit_ms,
                line={"color": GUIDE, "width": 2, "dash": "dash"},
            )
        ],
    )  # fmt: skip
    chart = Chart(
        key="redline",
        group=OVERVIEW,
        title=f"Latency by {by}: {found.search.operation}",
        about=(
            f"Each mark is a load that was tried: the median over forks of the {name} of latency, with the "
            f"range over forks. The dashed line is the objective "
            f"({objective}); hollow marks are loads at which the driver itself was the limit. The tables of "
            "the results have the same figures."
        ),
        data=traces,
        layout=layout,
    )
    return [chart]


def _trace(place: int, variant: str, rows: Sequence[CurveRow], unit: str) -> go.Scatter:
    style = variant_style(place)
    measured = [(row, row.objective_ms) for row in rows if row.objective_ms is not None]
    return go.Scatter(
        mode="lines+markers",
        name=plain(variant),
        x=[row.rate_per_s for row, _ in measured],
        y=[latency.median for _, latency in measured],
        error_y=errors(
            [latency.median - latency.low for _, latency in measured],
            [latency.high - latency.median for _, latency in measured],
            style.colour, 1, 3,
        ),
        line={"color": style.colour, "dash": style.dash, "width": 2},
        marker={
            "color": style.colour,
            "symbol": [f"{style.symbol}-open" if row.driver_limited else style.symbol for row, _ in measured],
            "size": 8,
        },
        text=[_hover_of_search(variant, row, unit) for row, _ in measured],
        hovertemplate="%{text}<extra></extra>",
    )  # fmt: skip


def _hover_of_search(variant: str, row: CurveRow, unit: str) -> str:
    spread = row.objective_ms
    latency = (
        "" if spread is None else f"{figure(spread.median)} ms ({figure(spread.low)}-{figure(spread.high)})"
    )
    load = f"{figure(row.rate_per_s)}{unit}"
    return f"{plain(variant)}, {load}: {latency}<br>met {row.passed} of {row.steps} times"
