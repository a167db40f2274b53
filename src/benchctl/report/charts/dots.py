"""Forks as dots: what every fork of a task came to, with the mean of each variant and its interval."""

from typing import Any

from benchctl.report.chart import LEAST_POINTS, Chart
from benchctl.report.charts.panels import digits
from benchctl.report.charts.theme import base_layout, plain, tint, variant_style
from benchctl.report.grid import VARIANT, Grid, worded
from benchctl.report.layout import better, metric_title, task_name
from benchctl.report.numbers import NOT_AVAILABLE, figure
from benchctl.stats.analysis import Analysis, Figures, Row
from benchctl.stats.compare import own_interval

_ROW_PX = 76
_SPREAD = 0.56


def fork_charts(analysis: Analysis) -> list[Chart]:
    """One chart a row of the analysis that has any value."""
    return [
        _chart(analysis, row)
        for row in analysis.rows
        if max(sum(value is not None for value in side.values) for side in row.figures) >= LEAST_POINTS
    ]


def _chart(analysis: Analysis, row: Row) -> Chart:
    title = metric_title(row)
    layout = base_layout(
        f"{plain(title)}, {plain(row.unit)} ({better(row)})",
        "",
        height=_ROW_PX * len(row.figures),
        showlegend=False,
        xaxis={"rangemode": "normal"},
        yaxis={
            "tickmode": "array",
            "tickvals": list(range(len(row.figures))),
            "ticktext": [plain(side.variant) for side in row.figures],
            "range": [len(row.figures) - 0.5, -0.5],
            "showgrid": False,
            "ticks": "",
        },
    )
    traces = [trace for place, side in enumerate(row.figures) for trace in _traces(place, side)]
    return Chart(
        key=f"forks-{row.schedule}-{row.task}-{row.metric.replace('_', '-').replace('.', '-')}",
        group=task_name(row, analysis),
        title=f"Forks: {title}",
        about=(
            f"Each dot is one fork's {title}, from top to bottom in the order in which they ran; the upright "
            "mark is their geometric mean, the bar its own 95 % interval. Whether two variants differ is in "
            "the interval of their difference, not in whether these bars overlap."
        ),
        figure={"data": traces, "layout": layout},
        table=_table(row),
    )


def _traces(place: int, side: Figures) -> list[dict[str, Any]]:
    known = [
        (block, value) for block, value in zip(side.blocks, side.values, strict=True) if value is not None
    ]
    if not known:
        return []
    style = variant_style(place)
    step = _SPREAD / max(1, len(known) - 1)
    first = place - _SPREAD / 2 if len(known) > 1 else place
    dots = {
        "type": "scatter", "mode": "markers", "name": plain(side.variant),
        "x": digits([value for _, value in known]),
        "y": [round(first + number * step, 4) for number in range(len(known))],
        "marker": {"color": tint(style.colour, 0.75), "symbol": style.symbol, "size": 8},
        "text": [f"{plain(side.variant)}, fork {block}: {figure(value)}" for block, value in known],
        "hovertemplate": "%{text}<extra></extra>",
    }  # fmt: skip
    return [dots] if side.value is None else [_mean(place, side, side.value), dots]


def _mean(place: int, side: Figures, value: float) -> dict[str, Any]:
    style = variant_style(place)
    trace: dict[str, Any] = {
        "type": "scatter", "mode": "markers", "name": f"{plain(side.variant)}, mean",
        "x": digits([value]), "y": [place],
        "marker": {
            "color": style.colour, "symbol": "line-ns", "size": 34,
            "line": {"color": style.colour, "width": 3},
        },
        "text": [f"{plain(side.variant)}: {_in_words(side)}"], "hovertemplate": "%{text}<extra></extra>",
    }  # fmt: skip
    found = own_interval(side.values, side.builds)
    if found is not None:
        low, high = found
        trace["error_x"] = {
            "type": "data", "symmetric": False, "color": style.colour, "thickness": 2.5, "width": 8,
            "array": digits([high - value]), "arrayminus": digits([value - low]),
        }  # fmt: skip
    return trace


def _in_words(side: Figures) -> str:
    found = own_interval(side.values, side.builds)
    bounds = "" if found is None else f" ({figure(found[0])} to {figure(found[1])})"
    return f"geometric mean {figure(side.value)}{bounds}"


def _table(row: Row) -> Grid:
    """A line a variant, a column for the mean and one for every fork."""
    lines = (
        (
            side.variant,
            figure(side.value),
            _interval_text(side),
            ", ".join(
                f"{block}: {figure(value)}" for block, value in zip(side.blocks, side.values, strict=True)
            ),
        )
        for side in row.figures
    )
    columns = (VARIANT, "Mean", "95 % interval of it", worded("Forks by number"))
    return Grid.of(f"{row.label}: {metric_title(row)} of every fork, {row.unit}", columns, lines)


def _interval_text(side: Figures) -> str:
    found = own_interval(side.values, side.builds)
    return NOT_AVAILABLE if found is None else f"{figure(found[0])} to {figure(found[1])}"
