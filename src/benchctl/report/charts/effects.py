"""Charts of effects and of forks."""

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import plotly.graph_objects as go

from benchctl.report.charts import LEAST_POINTS, OVERVIEW, Chart, tint, variant_style
from benchctl.report.charts.panels import plain, plot_layout, shaded, upright
from benchctl.report.layout import better, metric_title, verdict_cell
from benchctl.report.numbers import NOT_AVAILABLE, figure, interval, p_value, signed_percent
from benchctl.report.table import INTERVAL, OPERATION, VARIANT, Column, Table, bounds, worded
from benchctl.stats.analysis import Analysis, Figures, Row
from benchctl.stats.compare import Comparison, own_interval
from benchctl.stats.metrics import metric_of

_LABEL_PX = 22
_IN_KEYS = str.maketrans("_.@", "---")
_CONTENDER_PX = 22
_GAP_PX = 10
_REVERSED = " (lower is better: the axis runs from high to low)"
_DIRECTION_PX = 26
_LEAST_REACH = math.log(1.05)
_USUAL_REACH = math.log(5)
# A value of 0 has no place on a scale of ratios.
_NOTHING_PERCENT = -100.0
# Percentages that may be marked on the axis; those that fit its range and leave room for their labels are.
_TICKS = (
    -99, -95, -90, -80, -65, -50, -40, -30, -20, -15, -10, -5, -3,
    0, 3, 5, 10, 15, 25, 40, 65, 100, 200, 400, 900, 1900, 9900,
)  # fmt: skip
_LEAST_TICK_SHARE = 0.09

_ROW_PX = 76
_SPREAD = 0.56
_UNITS = {"task": "fork", "build": "index build"}


class _Mark(msgspec.Struct, frozen=True):
    """An effect, and how far below the top it is drawn, pixels."""

    row: Row
    comparison: Comparison
    y: int


def forest_charts(analysis: Analysis) -> list[Chart]:
    """Return forest plots: one a metric that has effects, on a ratio scale; none for one variant."""
    charts = []
    for metric in dict.fromkeys(row.metric for row in analysis.rows):
        rows = [row for row in analysis.rows if row.metric == metric and not row.swept and _drawable(row)]
        if rows:
            charts.append(_chart(analysis, rows))
    return charts


def _drawable(row: Row) -> bool:
    return not any(side.at_least for side in row.figures) and any(
        comparison.effect_percent is not None and comparison.effect_percent > _NOTHING_PERCENT
        for comparison in row.comparisons
    )


def _chart(analysis: Analysis, rows: Sequence[Row]) -> Chart:
    title = metric_title(rows[0])
    marks, labels, height = _placed(analysis, rows)
    margin = rows[0].comparisons[0].margin_percent
    reach, beyond = _reach(marks, margin)
    baseline = analysis.variants[0]
    words = ("slower", "faster") if metric_of(rows[0].metric).kind.of_speed else ("more", "less")
    ends, how = ([-reach, reach], "") if rows[0].higher_is_better else ([reach, -reach], _REVERSED)
    layout = plot_layout(
        f"{plain(title)} against {plain(baseline)}, %{how}",
        "",
        height=height,
        showlegend=len(rows[0].comparisons) > 1,
        xaxis={"range": ends, "tickmode": "array", **_ticks(reach)},
        yaxis={"range": [height, 0], "visible": False},
        shapes=[shaded(-_log(margin), _log(margin)), upright(0)],
        annotations=[
            *labels,
            _label(f"\u2190 {words[0]}", 0),
            _label(f"{words[1]} \u2192", 0, right=True),
        ],
    )
    return Chart(
        key=f"effects-{rows[0].metric.replace('_', '-').replace('.', '-')}",
        group=OVERVIEW,
        title=f"Effects: {title}",
        about=(
            f"Each mark is how far a variant differs from {baseline} in {title}, with its 95% interval; the "
            f"scale is one of ratios, and right is {words[1]}. Beyond the grey band, {margin:g}% wide to "
            "each side, a difference matters in practice; an interval that crosses the line in the middle "
            f"leaves open {'who' if words[1] == 'faster' else 'which'} is {words[1]}."
            f"{' Intervals that run off the plot are in the table.' if beyond else ''}"
        ),
        data=_traces(analysis, marks),
        layout=layout,
        table=_table(analysis, marks, title),
    )


def _placed(analysis: Analysis, rows: Sequence[Row]) -> tuple[list[_Mark], list[go.layout.Annotation], int]:
    """Marks from top to bottom, the labels above them, and the height of all, pixels."""
    marks, labels, y = [], [], _DIRECTION_PX
    for row in rows:
        labels.append(_label(f"<b>{plain(analysis.where(row))}</b>", y))
        y += _LABEL_PX
        for comparison in row.comparisons:
            if comparison.effect_percent is None or comparison.effect_percent <= _NOTHING_PERCENT:
                continue
            marks.append(_Mark(row, comparison, y + _CONTENDER_PX // 2))
            y += _CONTENDER_PX
        y += _GAP_PX
    return marks, labels, y


def _label(text: str, y: int, *, right: bool = False) -> go.layout.Annotation:
    return go.layout.Annotation(
        text=text, x=int(right), xref="paper", xanchor="right" if right else "left",
        y=y, yref="y", yanchor="top", showarrow=False, align="left",
    )  # fmt: skip


def _traces(analysis: Analysis, marks: Sequence[_Mark]) -> list[go.Scatter]:
    traces = []
    for position, variant in enumerate(analysis.variants[1:], 1):
        own = [mark for mark in marks if mark.comparison.contender == variant]
        if not own:
            continue
        style = variant_style(position)
        middles = [_log(mark.comparison.effect_percent) for mark in own]
        ends = [
            (_distance(mark.comparison.low_percent, middle), _distance(mark.comparison.high_percent, middle))
            for mark, middle in zip(own, middles, strict=True)
        ]
        traces.append(
            go.Scatter(
                mode="markers",
                name=plain(variant),
                x=middles,
                y=[mark.y for mark in own],
                error_x=errors([-low for low, _ in ends], [high for _, high in ends], style.colour, 2.5, 5),
                marker={"color": style.colour, "symbol": style.symbol, "size": 11},
                text=[_hover(mark.comparison) for mark in own],
                hovertemplate="%{text}<extra></extra>",
            )
        )
    return traces


def errors(
    below: Sequence[float], above: Sequence[float], colour: str, thickness: float, width: float
) -> dict[str, Any]:
    """Return error bars, from distances to the mark."""
    return {
        "type": "data", "symmetric": False, "array": above, "arrayminus": below,
        "color": colour, "thickness": thickness, "width": width,
    }  # fmt: skip


def _hover(one: Comparison) -> str:
    numbers = f"{signed_percent(one.effect_percent)}% ({interval(one.low_percent, one.high_percent)})"
    return f"{plain(one.contender)}: {numbers}<br>p {p_value(one.p_adjusted)}, {verdict_cell(one).text}"


def _table(analysis: Analysis, marks: Sequence[_Mark], title: str) -> Table:
    lines = (
        (
            analysis.where(mark.row),
            mark.comparison.contender,
            signed_percent(mark.comparison.effect_percent),
            bounds(mark.comparison.low_percent, mark.comparison.high_percent),
            p_value(mark.comparison.p_adjusted),
            verdict_cell(mark.comparison),
        )
        for mark in marks
    )
    columns = (OPERATION, VARIANT, "Diff %", INTERVAL, "p", Column("Verdict of the variant", "verdict"))
    return Table.of(f"Effects against {analysis.variants[0]}: {title}", columns, lines)


def _log(effect_percent: float | None) -> float:
    return math.log1p((effect_percent or 0.0) / 100)


def _distance(bound_percent: float | None, middle: float) -> float:
    """From an effect to the end of its interval; none where there is no interval."""
    return 0.0 if bound_percent is None or bound_percent <= _NOTHING_PERCENT else _log(bound_percent) - middle


def _reach(marks: Sequence[_Mark], margin_percent: float) -> tuple[float, bool]:
    """Return how far the axis goes, the same to both sides, and whether an interval goes beyond it.

    Two forks can have intervals of many powers of ten, beside which nothing else would be visible: these run
    off the plot.
    """
    effects = [abs(_log(mark.comparison.effect_percent)) for mark in marks]
    ends = [
        abs(_log(bound))
        for mark in marks
        for bound in (mark.comparison.low_percent, mark.comparison.high_percent)
        if bound is not None and bound > _NOTHING_PERCENT
    ]
    widest = max(ends, default=0.0)
    largest = max(*effects, _LEAST_REACH, 1.5 * _log(margin_percent))
    most = max(_USUAL_REACH, 2 * largest)
    return 1.06 * max(largest, min(widest, most)), widest > most


def _ticks(reach: float) -> dict[str, Any]:
    """Round percentages, from the middle outwards, wherever there is room for one."""
    chosen: list[int] = []
    for tick in sorted(_TICKS, key=lambda percent: abs(_log(percent))):
        place = _log(tick)
        if abs(place) <= reach and all(
            abs(place - _log(other)) > 2 * reach * _LEAST_TICK_SHARE for other in chosen
        ):
            chosen.append(tick)
    chosen.sort()
    return {
        "tickvals": [_log(tick) for tick in chosen],
        "ticktext": [f"{tick:+d}" if tick else "0" for tick in chosen],
    }


def fork_charts(analysis: Analysis) -> list[Chart]:
    """Return dots of forks and their means: one chart a row of the analysis with enough of them."""
    return [
        _fork_chart(analysis, row)
        for row in analysis.rows
        if max(sum(value is not None for value in side.values) for side in row.figures) >= LEAST_POINTS
    ]


def _fork_chart(analysis: Analysis, row: Row) -> Chart:
    title = metric_title(row)
    # The same task has a row at every point of a sweep over variants.
    point = f"-{row.figures[0].variant}" if row.swept else ""
    layout = plot_layout(
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
    traces = [trace for place, side in enumerate(row.figures) for trace in _fork_traces(place, row, side)]
    return Chart(
        key=f"forks-{row.schedule}-{row.task}-{f'{row.metric}{point}'.translate(_IN_KEYS)}",
        group=analysis.where(row),
        title=f"{_UNITS[row.level].capitalize()}s: {title}",
        about=(
            f"Each dot is one {_UNITS[row.level]}'s {title}, from top to bottom in the order in which they "
            "ran; the upright mark is their mean, the bar its own 95% interval. Whether two variants differ "
            "is in the interval of their difference, not in whether these bars overlap."
        ),
        data=traces,
        layout=layout,
        table=_fork_table(row),
    )


def _fork_traces(place: int, row: Row, side: Figures) -> list[go.Scatter]:
    measured = [
        (block, value) for block, value in zip(side.blocks, side.values, strict=True) if value is not None
    ]
    if not measured:
        return []
    style, unit = variant_style(place), _UNITS[row.level]
    step = _SPREAD / max(1, len(measured) - 1)
    first = place - _SPREAD / 2 if len(measured) > 1 else place
    dots = go.Scatter(
        mode="markers",
        name=plain(side.variant),
        x=[value for _, value in measured],
        y=[first + number * step for number in range(len(measured))],
        marker={"color": tint(style.colour, 0.75), "symbol": style.symbol, "size": 8},
        text=[f"{plain(side.variant)}, {unit} {block}: {figure(value)}" for block, value in measured],
        hovertemplate="%{text}<extra></extra>",
    )
    return [dots] if side.value is None else [_mean(place, row, side, side.value), dots]


def _mean(place: int, row: Row, side: Figures, value: float) -> go.Scatter:
    colour = variant_style(place).colour
    ends_of = _own_interval(row, side)
    ends = "" if ends_of is None else f"{figure(ends_of[0])} to {figure(ends_of[1])}"
    return go.Scatter(
        mode="markers",
        name=f"{plain(side.variant)}, mean",
        x=[value],
        y=[place],
        error_x=None
        if ends_of is None
        else errors([value - ends_of[0]], [ends_of[1] - value], colour, 2.5, 8),
        marker={"color": colour, "symbol": "line-ns", "size": 34, "line": {"color": colour, "width": 3}},
        text=[f"{plain(side.variant)}: mean {figure(value)}{f' ({ends})' if ends else ''}"],
        hovertemplate="%{text}<extra></extra>",
    )


def _own_interval(row: Row, side: Figures) -> tuple[float, float] | None:
    return own_interval(
        side.values,
        side.units,
        additive=metric_of(row.metric).additive
        or any(comparison.compared_as == "difference" for comparison in row.comparisons),
    )


def _fork_table(row: Row) -> Table:
    """A line a variant, a column for the mean and one for every fork."""
    lines = (
        (
            side.variant,
            figure(side.value),
            NOT_AVAILABLE
            if (ends := _own_interval(row, side)) is None
            else f"{figure(ends[0])} to {figure(ends[1])}",
            ", ".join(
                f"{block}: {figure(value)}" for block, value in zip(side.blocks, side.values, strict=True)
            ),
        )
        for side in row.figures
    )
    columns = (VARIANT, "Mean", "95% interval of it", worded("Forks by number"))
    return Table.of(f"{row.label}: {metric_title(row)} of every fork, {row.unit}", columns, lines)
