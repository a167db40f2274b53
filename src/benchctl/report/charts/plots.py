"""Charts of effects, of forks and of requests, and what charts of slices are made of."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from benchctl.errors import BenchctlError
from benchctl.report.charts import LEAST_POINTS, OVERVIEW, Chart, tint, variant_style
from benchctl.report.layout import better, metric_title, verdict_cell
from benchctl.report.numbers import NOT_AVAILABLE, figure, interval, p_value, signed_percent
from benchctl.report.table import VARIANT, Table, worded
from benchctl.results.plan import Place
from benchctl.results.samples import Columns, Outcome
from benchctl.results.store import ForkSource
from benchctl.stats.analysis import Analysis, Figures, Row
from benchctl.stats.compare import Comparison, own_interval
from benchctl.stats.metrics import metric_of
from benchctl.stats.quantiles import by_place

GUIDE: Final = "rgba(128,128,128,0.75)"
"""Colour of lines that are not data: no difference, a limit, the start of the measured window."""
_BAND: Final = "rgba(128,128,128,0.18)"  # of areas that are not data: a margin, a warm-up
_LOG_FROM: Final = 3  # the ratio of the largest to the smallest value from which an axis is logarithmic

_PLOT_HEIGHT = 320
_LEGEND_PX, _NO_LEGEND_PX, _LABELS_PX = 36, 10, 44
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
        fillcolor=_BAND, line={"width": 0},
    )  # fmt: skip


def upright(place: float, **line: Any) -> go.layout.Shape:
    """Return a line below the data at one x."""
    return go.layout.Shape(
        type="line", layer="below", xref="x", yref="paper", x0=place, x1=place, y0=0, y1=1,
        line={"color": GUIDE, "width": 1.5, **line},
    )  # fmt: skip


def scaled_axis(values: npt.ArrayLike) -> dict[str, Any]:
    """Return an axis for values: logarithmic if those above 0 span more than a factor of 3."""
    values = np.asarray(values, dtype=np.float64)
    values = values[values > 0]
    if values.size == 0 or values.max() < _LOG_FROM * values.min():
        return {}
    return {"type": "log", "tickformat": ",.4~g", "minor": {"ticks": "outside"}}


def errors(
    below: Sequence[float], above: Sequence[float], colour: str, thickness: float, width: float
) -> dict[str, Any]:
    """Return error bars, from distances to the mark."""
    return {
        "type": "data", "symmetric": False, "array": above, "arrayminus": below,
        "color": colour, "thickness": thickness, "width": width,
    }  # fmt: skip


def plain(text: str) -> str:
    """Return text without markup: plotly reads tags in names and labels, and these come from outside."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


# Effects.

_ROW_PX, _CONTENDER_PX = 32, 22
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


def forest_charts(analysis: Analysis) -> list[Chart]:
    """Return forest plots: one a metric that has effects, on a ratio scale; none for one variant."""
    charts = []
    for metric in dict.fromkeys(row.metric for row in analysis.rows):
        rows = [row for row in analysis.rows if row.metric == metric and not row.swept]
        rows = [row for row in rows if _placed(row) and not any(side.at_least for side in row.figures)]
        charts += [_forest(analysis, rows)] if rows else []
    return charts


def _placed(row: Row) -> list[Comparison]:
    """Return the comparisons whose effect has a place on a scale of ratios."""
    return [
        one
        for one in row.comparisons
        if one.effect_percent is not None and one.effect_percent > _NOTHING_PERCENT
    ]


def _forest(analysis: Analysis, rows: Sequence[Row]) -> Chart:
    title, baseline = metric_title(rows[0]), analysis.variants[0]
    found = [one for row in rows for one in _placed(row)]
    margin = found[0].margin_percent
    reach, beyond = _reach(found, margin)
    speed = metric_of(rows[0].metric).kind.of_speed
    words = ("slower", "faster") if speed else ("more", "less")
    contenders = analysis.variants[1:]
    row_px = _ROW_PX + _CONTENDER_PX * len(contenders)
    layout = plot_layout(
        f"{plain(title)} against {plain(baseline)}, % (\u2190 {words[0]}, {words[1]} \u2192)",
        "",
        height=row_px * len(rows),
        showlegend=len(contenders) > 1,
        # Right is better.
        xaxis={
            "range": [-reach, reach] if rows[0].higher_is_better else [reach, -reach],
            "tickmode": "array",
            **_ticks(reach),
        },
        yaxis={"range": [len(rows) - 0.5, -0.5], "visible": False},
        # Above the marks of a task: beside them, its name would take half of a phone.
        annotations=[
            go.layout.Annotation(
                text=f"<b>{plain(analysis.where(row))}</b>",
                x=0,
                xref="paper",
                xanchor="left",
                y=place - 0.5,
                yref="y",
                yanchor="top",
                showarrow=False,
            )
            for place, row in enumerate(rows)
        ],
        shapes=[shaded(-_log(margin), _log(margin)), upright(0)],
    )
    below = [(_ROW_PX + _CONTENDER_PX * (number + 0.5)) / row_px - 0.5 for number in range(len(contenders))]
    traces = [_effects(rows, name, place, below[place - 1]) for place, name in enumerate(contenders, 1)]
    return Chart(
        key=f"effects-{rows[0].metric.replace('_', '-').replace('.', '-')}",
        group=OVERVIEW,
        title=f"Effects: {title}",
        about=(
            f"Each mark is a variant's difference from {baseline} in {title}, with its 95% interval, on a "
            f"scale of ratios; to the right is {words[1]}. Differences within the grey band, up to "
            f"{margin:g}%, are too small to matter. If an interval crosses the middle line, it is unclear "
            f"which variant is {words[1]}. The tables under Results have the same values"
            f"{', and the intervals that do not fit the plot' if beyond else ''}."
        ),
        data=[trace for trace in traces if trace.x],
        layout=layout,
    )


def _effects(rows: Sequence[Row], variant: str, position: int, below: float) -> go.Scatter:
    """Return the marks of a contender, so far below the middle of their row."""
    style = variant_style(position)
    own = [(y, one) for y, row in enumerate(rows) for one in _placed(row) if one.contender == variant]
    middles = [_log(one.effect_percent) for _, one in own]
    ends = [
        (_distance(one.low_percent, middle), _distance(one.high_percent, middle))
        for (_, one), middle in zip(own, middles, strict=True)
    ]
    return go.Scatter(
        mode="markers",
        name=plain(variant),
        x=middles,
        y=[y + below for y, _ in own],
        error_x=errors([-low for low, _ in ends], [high for _, high in ends], style.colour, 2.5, 5),
        marker={"color": style.colour, "symbol": style.symbol, "size": 11},
        text=[
            f"{plain(one.contender)}: {signed_percent(one.effect_percent)}% "
            f"({interval(one.low_percent, one.high_percent)})<br>"
            f"p {p_value(one.p_adjusted)}, {verdict_cell(one).text}"
            for _, one in own
        ],
        hovertemplate="%{text}<extra></extra>",
    )


def _log(effect_percent: float | None) -> float:
    return math.log1p((effect_percent or 0.0) / 100)


def _distance(bound_percent: float | None, middle: float) -> float:
    """From an effect to the end of its interval; none where there is no interval."""
    return 0.0 if bound_percent is None or bound_percent <= _NOTHING_PERCENT else _log(bound_percent) - middle


def _reach(found: Sequence[Comparison], margin_percent: float) -> tuple[float, bool]:
    """Return how far the axis goes, the same to both sides, and whether an interval goes beyond it.

    Two forks can have intervals of many powers of ten, beside which nothing else would be visible: these run
    off the plot.
    """
    ends = [bound for one in found for bound in (one.low_percent, one.high_percent)]
    widest = max((abs(_log(bound)) for bound in ends if (bound or 0.0) > _NOTHING_PERCENT), default=0.0)
    largest = max(*(abs(_log(one.effect_percent)) for one in found), _LEAST_REACH, 1.5 * _log(margin_percent))
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


# Forks.

_SIDE_PX = 76
_SPREAD = 0.56
_UNITS = {"task": "fork", "build": "index build"}
_IN_KEYS = str.maketrans("_.@", "---")


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
        height=_SIDE_PX * len(row.figures),
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
            "ran; the vertical mark is the mean, the bar its 95% interval. To see if two variants differ, "
            "read the interval of their difference, not whether these bars overlap."
        ),
        data=traces,
        layout=layout,
        table=_fork_table(row),
    )


def _fork_traces(place: int, row: Row, side: Figures) -> list[go.Scatter]:
    """Return the mean of a side with its own interval, and dots of its forks."""
    measured = [
        (block, value) for block, value in zip(side.blocks, side.values, strict=True) if value is not None
    ]
    style, name = variant_style(place), plain(side.variant)
    step = _SPREAD / max(1, len(measured) - 1)
    first = place - _SPREAD / 2 if len(measured) > 1 else place
    dots = go.Scatter(
        mode="markers",
        name=name,
        x=[value for _, value in measured],
        y=[first + number * step for number in range(len(measured))],
        marker={"color": tint(style.colour, 0.75), "symbol": style.symbol, "size": 8},
        text=[f"{name}, {_UNITS[row.level]} {block}: {figure(value)}" for block, value in measured],
        hovertemplate="%{text}<extra></extra>",
    )
    if side.value is None:
        return [dots] if measured else []
    ends, colour = _own_interval(row, side), style.colour
    mean = go.Scatter(
        mode="markers",
        name=f"{name}, mean",
        x=[side.value],
        y=[place],
        error_x=errors([side.value - ends[0]], [ends[1] - side.value], colour, 2.5, 8) if ends else None,
        marker={"color": colour, "symbol": "line-ns", "size": 34, "line": {"color": colour, "width": 3}},
        text=[f"{name}: mean {figure(side.value)}{f' ({_ends_text(ends)})' if ends else ''}"],
        hovertemplate="%{text}<extra></extra>",
    )
    return [mean, dots]


def _own_interval(row: Row, side: Figures) -> tuple[float, float] | None:
    return own_interval(
        side.values,
        side.units,
        additive=metric_of(row.metric).additive
        or any(comparison.compared_as == "difference" for comparison in row.comparisons),
    )


def _ends_text(ends: tuple[float, float] | None) -> str:
    return f"{figure(ends[0])} to {figure(ends[1])}" if ends else NOT_AVAILABLE


def _fork_table(row: Row) -> Table:
    """A line a variant, a column for the mean and one for every fork."""
    lines = (
        (
            side.variant,
            figure(side.value),
            _ends_text(_own_interval(row, side)),
            ", ".join(f"{at}: {figure(value)}" for at, value in zip(side.blocks, side.values, strict=True)),
        )
        for side in row.figures
    )
    columns = (VARIANT, "Mean", "95% CI of the mean", worded("Forks by number"))
    return Table.of(f"{row.label}: {metric_title(row)} of every fork, {row.unit}", columns, lines)


# Requests.

_NEEDED = ("outcome", "warmup", "start_ns", "end_ns")
_MOST_POINTS = 200
_REQUESTS = "Service time by request"
_REQUEST_COLUMNS = (VARIANT, "Forks", "Warm-up", "Measured", "Not drawn", "First third, ms", "Last third, ms")


class _Fork(msgspec.Struct, frozen=True):
    """A task of one fork."""

    label: str
    warmup: int
    measured: int
    unanswered: int  # of both, failed or cut off
    medians_ns: dict[int, float]  # of stretches of requests in which one succeeded; measured ones from 0


_Forks = Sequence[_Fork]


def request_charts(sources: Sequence[ForkSource], analysis: Analysis) -> tuple[list[Chart], tuple[str, ...]]:
    """Return a chart of each task that tables show, and in words which forks they lack.

    Samples are read twice, a fork at a time: how many requests make a point depends on the longest fork.
    Those of a red-line search are of its steps, not of a task: they are not read.
    """
    groups = {(row.schedule, row.task): analysis.where(row) for row in analysis.task_rows}
    if analysis.redline is not None or not groups:
        return [], ()
    absent: list[str] = []
    counted = [_read(source, dict.fromkeys(groups, 0), absent) for source in sources]
    each = {place: math.ceil(_longest(place, counted) / _MOST_POINTS) for place in groups}
    found = [_read(source, each, []) for source in sources]
    charts = [
        _request_chart(
            place, group, [forks[place] for forks in found if place in forks], each[place], analysis
        )
        for place, group in groups.items()
    ]
    return [chart for chart in charts if chart is not None], tuple(absent)


def _longest(place: Place, counted: Sequence[Mapping[Place, _Fork]]) -> int:
    sizes = [(found[place].warmup, found[place].measured) for found in counted if place in found]
    return sum(map(max, zip(*sizes, strict=True)))


def _read(source: ForkSource, each: Mapping[Place, int], absent: list[str]) -> dict[Place, _Fork]:
    """Read the tasks of one fork; what is missing or damaged is named, and other forks are drawn."""
    name = f"{source.label}, fork {source.block}"
    absent += [f"{name}: {source.absent}"] if source.absent else []
    chunks: dict[Place, list[Columns]] = {}
    try:
        for place, rows in by_place(source.samples or ()):
            if place in each:
                whole = rows["part"] == 0
                chunks.setdefault(place, []).append({key: rows[key][whole] for key in _NEEDED})
    except BenchctlError:
        absent.append(f"{name}: its samples cannot be read")
        return {}
    return {place: _fork(source.label, found, each[place]) for place, found in chunks.items()}


def _fork(label: str, chunks: Sequence[Columns], each: int) -> _Fork:
    """Order requests by their starts, and take the median of each stretch of `each`; of none for 0."""
    rows = {key: np.concatenate([chunk[key] for chunk in chunks]) for key in _NEEDED}
    service_ns = np.where(rows["outcome"] == Outcome.OK, rows["end_ns"] - rows["start_ns"], np.nan)
    service_ns = service_ns[np.lexsort((rows["start_ns"], ~rows["warmup"]))]
    warmup, measured = int(rows["warmup"].sum()), int((~rows["warmup"]).sum())
    medians_ns = {}
    if each:
        # A stretch is of warm-up or of measured requests, never of both.
        padded = np.pad(service_ns, (-warmup % each, -measured % each), constant_values=np.nan)
        for number, times_ns in enumerate(padded.reshape(-1, each), -math.ceil(warmup / each)):
            if not np.isnan(times_ns).all():
                medians_ns[number] = float(np.nanmedian(times_ns))
    return _Fork(label, warmup, measured, int(np.isnan(service_ns).sum()), medians_ns)


def _request_chart(place: Place, group: str, forks: _Forks, each: int, analysis: Analysis) -> Chart | None:
    """Return the chart of a task, with a line of its table for each variant; None for few points."""
    if max((len(fork.medians_ns) for fork in forks), default=0) < LEAST_POINTS:
        return None
    variants = [(label, [fork for fork in forks if fork.label == label]) for label in analysis.variants]
    drawn = [_variant(label, own, position, each) for position, (label, own) in enumerate(variants) if own]
    warmup, unanswered = max(fork.warmup for fork in forks), sum(fork.unanswered for fork in forks)
    bins = f"; up to {each:,} per point" if each > 1 else ""
    lost = f"; {unanswered:,} failed or cut off, not drawn" if unanswered else ""
    layout = plot_layout(
        f"Request, from the first measured one{bins}{lost}",
        "Service time, ms",
        yaxis=scaled_axis([value / _NS_PER_MS for fork in forks for value in fork.medians_ns.values()]),
        shapes=[shaded(0.5 - warmup, 0.5), upright(0.5)] if warmup else [],
    )
    about = "Each point is the median over forks"
    about += f" of the median of up to {each:,} successive requests" if each > 1 else ""
    about += ", the band the range of forks."
    about += " The shaded part is warm-up, which no value includes." if warmup else ""
    if len({(fork.warmup, fork.measured) for fork in forks}) > 1:
        about += " Forks differ in length; where one has ended, points are of the others."
    key = f"requests-{place[0]}-{place[1]}-{re.sub(r'[^A-Za-z0-9]+', '-', group).strip('-')}"
    table = Table.of(_REQUESTS, _REQUEST_COLUMNS, [line for _, line in drawn])
    return Chart(
        key, group, _REQUESTS, about, [trace for traces, _ in drawn for trace in traces], layout, table
    )


def _variant(label: str, forks: _Forks, position: int, each: int) -> tuple[list[go.Scatter], tuple[str, ...]]:
    """Return the traces of a variant, which break where no request succeeded, and its line of the table."""
    numbers = sorted({number for fork in forks for number in fork.medians_ns})
    values = [[fork.medians_ns[n] for fork in forks if n in fork.medians_ns] for n in numbers]
    ranges_ns = [(min(medians), float(np.median(medians)), max(medians)) for medians in values]
    low, middle, high = (np.array(ranges_ns).reshape(-1, 3) / _NS_PER_MS).T
    sizes = ([fork.warmup for fork in forks], [fork.measured for fork in forks])
    begins = np.array(numbers, np.int64) * each
    # Of the middle request; the first and the last stretch may be shorter.
    x = (np.maximum(begins, -max(sizes[0])) + np.minimum(begins + each, max(sizes[1])) + 1) / 2
    style, traces = variant_style(position), []
    for run in np.split(np.arange(x.size), np.flatnonzero(np.diff(begins) > each) + 1) if numbers else ():
        base = {"x": x[run], "name": plain(label), "legendgroup": plain(label)}
        ends, back = np.concatenate([x[run], x[run][::-1]]), low[run][::-1]
        band = {"x": ends, "y": np.concatenate([high[run], back]), "fill": "toself", "line": {"width": 0}}
        band |= {"fillcolor": tint(style.colour, 0.2), "hoverinfo": "skip", "showlegend": False}
        text = [f"{figure(low[n])} to {figure(high[n])}, {len(values[n])} of {len(forks)} forks" for n in run]
        line = {"y": middle[run], "text": text, "hovertemplate": "%{y} ms (%{text}) at request %{x}"}
        line |= {"line": {"color": style.colour, "dash": style.dash}, "showlegend": bool(run[0] == 0)}
        line |= {"marker": {"color": style.colour, "symbol": style.symbol, "size": 4}}
        traces += [go.Scatter(base | {"mode": "lines"} | band)] if len(forks) > 1 else []
        traces.append(go.Scatter(base | {"mode": "lines+markers"} | line))
    third = (x > 0).sum() // 3
    thirds = (middle[x > 0][:third], middle[-third:]) if third else ()
    cells = [*(_span(size) for size in sizes), f"{sum(fork.unanswered for fork in forks):,}"]
    cells += [figure(float(np.median(part))) for part in thirds] or [figure(None)] * 2
    return traces, (label, str(len(forks)), *cells)


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
