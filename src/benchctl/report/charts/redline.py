"""Throughput-latency curves of a red-line search: the objective's percentile against the offered rate."""

from collections.abc import Sequence
from typing import Any

from benchctl.report.chart import OVERVIEW, Chart
from benchctl.report.charts.panels import digits, time_axis
from benchctl.report.charts.theme import GUIDE, base_layout, plain, variant_style
from benchctl.report.curve import objective_text
from benchctl.report.numbers import figure
from benchctl.stats.redline import CurveRow, RedlineCurves, percentile_name

_NS_PER_MS = 1e6


def redline_charts(found: RedlineCurves | None) -> list[Chart]:
    """One plot with the curves of all variants; none where nothing was searched for or found."""
    if found is None:
        return []
    traces = [_trace(place, curve.variant, curve.rows) for place, curve in enumerate(found.curves)]
    traces = [trace for trace in traces if trace["x"]]
    if not traces:
        return []
    objective = objective_text(found.search)
    limit_ms = found.search.limit_ns / _NS_PER_MS
    name = percentile_name(found.search.percentile)
    layout = base_layout(
        "offered requests/s",
        f"{name} of latency, ms",
        yaxis=time_axis([found.search.limit_ns, *(_NS_PER_MS * y for trace in traces for y in trace["y"])]),
        shapes=[
            {
                "type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": limit_ms, "y1": limit_ms,
                "line": {"color": GUIDE, "width": 2, "dash": "dash"},
            }
        ],
    )  # fmt: skip
    chart = Chart(
        key="redline",
        group=OVERVIEW,
        title=f"Latency by offered rate: {found.search.operation}",
        about=(
            f"Each mark is a rate that was tried: the median over forks of the {name} of latency, with the "
            f"range over forks. The dashed line is the objective ({objective}); hollow marks are rates at "
            "which the driver itself was late. The tables of the results have the same figures."
        ),
        figure={"data": traces, "layout": layout},
    )
    return [chart]


def _trace(place: int, variant: str, rows: Sequence[CurveRow]) -> dict[str, Any]:
    style = variant_style(place)
    known = [(row, row.objective_ms) for row in rows if row.objective_ms is not None]
    hollow = [f"{style.symbol}-open" if row.driver_limited else style.symbol for row, _ in known]
    return {
        "type": "scatter", "mode": "lines+markers", "name": plain(variant),
        "x": digits([row.rate_per_s for row, _ in known]),
        "y": digits([latency.median for _, latency in known]),
        "error_y": {
            "type": "data", "symmetric": False, "color": style.colour, "thickness": 1, "width": 3,
            "array": digits([latency.high - latency.median for _, latency in known]),
            "arrayminus": digits([latency.median - latency.low for _, latency in known]),
        },
        "line": {"color": style.colour, "dash": style.dash, "width": 2},
        "marker": {"color": style.colour, "symbol": hollow, "size": 8},
        "text": [_hover(variant, row) for row, _ in known],
        "hovertemplate": "%{text}<extra></extra>",
    }  # fmt: skip


def _hover(variant: str, row: CurveRow) -> str:
    spread = row.objective_ms
    latency = (
        "" if spread is None else f"{figure(spread.median)} ms ({figure(spread.low)}-{figure(spread.high)})"
    )
    return f"{plain(variant)}, {figure(row.rate_per_s)}/s: {latency}<br>met {row.passed} of {row.steps} times"
