"""Charts of requests: their course, their rate over time, how they are distributed."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from benchctl.report.charts import (
    LEAST_POINTS,
    LEAST_READINGS,
    Chart,
    Frame,
    not_drawn,
    tint,
    variant_style,
)
from benchctl.report.charts.panels import (
    Panel,
    axis_name,
    heading,
    milliseconds,
    plain,
    plot_layout,
    shaded,
    spans,
    stacked,
    time_axis,
    upright,
)
from benchctl.report.numbers import NOT_AVAILABLE, figure
from benchctl.report.table import Table, worded
from benchctl.results.figures import Course
from benchctl.stats.analysis import Analysis
from benchctl.stats.arrays import Floats, Integers
from benchctl.stats.quantiles import LEVELS, ODDS, TAIL_REQUESTS, carries
from benchctl.stats.task_shape import (
    CourseLine,
    Distribution,
    ForkShape,
    RunShapes,
    TaskShapes,
    Usage,
    common_cell,
    rates,
)

_PANEL_PX = 200
_FORK_ALPHA = 0.4
# Of the bands of all forks together, where they overlap.
_BANDS_ALPHA = 0.5
_NS_PER_MS = 1e6
_MOST_LEVELS_IN_TEXT = 6

_RATE_PX = 220
_USAGE_PX = 90
_LINE_ALPHA = 0.6
_MARK_ALPHA = 0.7

_HEIGHT = 520
_ECDF_DOMAIN = (0.58, 1.0)
_CURVE_DOMAIN = (0.0, 0.46)
_MARKED = (2.0, 10.0, 100.0, 1000.0)
_NAMES = ("p50", "p90", "p99", "p99.9")
_STEPS_UP_TO = 120
_SHARE_HOVER = "%{y:.1%} within %{x} ms"

Getter = Callable[[ForkShape], Distribution | None]
_Forks = Sequence[tuple[ForkShape, CourseLine]]
_ByVariant = Mapping[str, Sequence[ForkShape]]
_DistributionForks = Sequence[tuple[ForkShape, Distribution]]


def course_chart(shapes: TaskShapes, frame: Frame) -> Chart | None:
    """Return the course of one task, a panel a variant; None when no request succeeded."""
    by_variant = {
        label: [
            (fork, line) for fork in shapes.forks.get(label, ()) if (line := fork.shape.course) is not None
        ]
        for label in frame.variants
    }
    by_variant = {label: forks for label, forks in by_variant.items() if forks}
    if not by_variant:
        return None
    lines = [line for forks in by_variant.values() for _, line in forks]
    unit = "Seconds" if shapes.timed else "Requests"
    begin = min(float(_places(line, timed=shapes.timed)[0]) for line in lines)
    start = 0.0 if shapes.timed else 0.5
    axis = time_axis(np.concatenate([times for line in lines for times in (line.p10_ns, line.p90_ns)]))
    layout = stacked(
        f"{unit} since measuring began",
        [
            Panel("Service time, ms", _PANEL_PX, axis if number == 1 else {**axis, "matches": "y"})
            for number in range(1, len(by_variant) + 1)
        ],
        showlegend=False,
        shapes=[shaded(begin, start), upright(start)] if begin < start else [],
        annotations=[heading(f"<b>{plain(label)}</b>", number) for number, label in enumerate(by_variant, 1)],
    )
    data = [
        trace
        for number, (label, forks) in enumerate(by_variant.items(), 1)
        for fork, line in forks
        for trace in _fork_traces(
            fork,
            line,
            position=frame.position(label),
            axis=axis_name(number),
            timed=shapes.timed,
            alpha=_BANDS_ALPHA / (len(forks) + 1),
        )
    ]
    return frame.chart(
        "course",
        "Service time over the course of each fork",
        _about(lines, by_variant),
        data,
        layout,
        _table(by_variant),
    )


def _fork_traces(
    fork: ForkShape, line: CourseLine, *, position: int, axis: str, timed: bool, alpha: float
) -> list[go.Scatter]:
    style = variant_style(position)
    places = _places(line, timed=timed)
    base = {"name": plain(fork.name), "yaxis": axis, "showlegend": False}
    traces = []
    if line.requests.max() > 1:
        band = go.Scatter(
            **base,
            mode="lines",
            line={"width": 0},
            fill="toself",
            fillcolor=tint(style.colour, round(alpha, 3)),
            hoverinfo="skip",
            x=np.concatenate([places, places[::-1]]),
            y=milliseconds(np.concatenate([line.p90_ns, line.p10_ns[::-1]])),
        )
        traces.append(band)
    where = "%{x} s" if timed else "request %{x}"
    medians = go.Scatter(
        **base,
        mode="lines" if places.size > 1 else "markers",
        line={"color": tint(style.colour, _FORK_ALPHA), "width": 1},
        marker={"color": style.colour, "symbol": style.symbol},
        x=places,
        y=milliseconds(line.p50_ns),
        hovertemplate=f"%{{y}} ms, {where}",
    )
    traces.append(medians)
    if fork.course is not None:
        traces += _level_traces(fork.course, line, base, position=position, timed=timed)
    return traces


def _level_traces(
    course: Course, line: CourseLine, base: Mapping[str, Any], *, position: int, timed: bool
) -> list[go.Scatter]:
    """Segments as steps, and a mark where the last level begins."""
    style = variant_style(position)
    edges = _at(np.array([*course.bounds, course.of]), line, timed=timed)
    steps = go.Scatter(
        **base,
        mode="lines",
        line={"color": style.colour, "width": 2},
        x=np.repeat(edges, 2)[1:-1],
        y=milliseconds(np.repeat(course.levels_ns, 2)),
        hovertemplate=f"level %{{y}} ms<br>{course.kind}",
    )
    if course.kind == "no steady state":
        return [steps]
    level = course.levels_ns[int(np.searchsorted(course.bounds, course.steady_from, side="right")) - 1]
    mark = go.Scatter(
        **base,
        mode="markers",
        marker={"color": style.colour, "symbol": style.symbol, "size": 8},
        x=_at(np.array([course.steady_from]), line, timed=timed),
        y=milliseconds([level]),
        hovertemplate=f"settled after {course.steady_from:,} requests<br>{course.kind}",
    )
    return [steps, mark]


def _places(line: CourseLine, *, timed: bool) -> npt.NDArray[np.float64]:
    """X of points: seconds, or the number of the middle request; measured ones count from 1."""
    if timed:
        return line.seconds
    middles: npt.NDArray[np.float64] = line.ranks + (line.requests + 1) / 2.0
    return middles


def _at(ranks: npt.NDArray[np.int64], line: CourseLine, *, timed: bool) -> npt.NDArray[np.float64]:
    """X of the request of a rank; between points, times are interpolated."""
    return np.interp(ranks, line.ranks, line.seconds) if timed else ranks.astype(np.float64) + 0.5


def _about(lines: Sequence[CourseLine], found: Mapping[str, _Forks]) -> list[str]:
    each = [int(line.requests.max()) for line in lines]
    parts = ["Each thin line is a fork, in the order of its requests."]
    if max(each) > 1:
        parts.append(
            f"Each point is the median of up to {spans(min(each), max(each))} requests that follow each "
            "other, the band their p10 to p90."
        )
    if any(line.ranks[0] < 0 for line in lines):
        parts.append("What is shaded is warm-up, and in no figure.")
    if any(fork.course is not None for forks in found.values() for fork, _ in forks):
        parts.append("Steps are levels that requests kept to; the mark on them is where the last one begins.")
    failures = sum(fork.shape.failures for forks in found.values() for fork, _ in forks)
    if failures:
        parts.append(f"Measured requests that failed, and are not drawn: {failures:,}.")
    return parts


def _table(found: Mapping[str, _Forks]) -> Table:
    columns = (
        worded("Fork"),
        "Warm-up",
        "Requests",
        "First third, ms",
        "Last third, ms",
        "Settled after",
        worded("Course"),
        worded("Levels, ms"),
    )
    lines = (
        (
            fork.name,
            f"{fork.shape.warmup:,}",
            f"{fork.shape.samples:,}",
            *_thirds(line),
            NOT_AVAILABLE
            if fork.course is None or fork.course.kind == "no steady state"
            else f"{fork.course.steady_from:,}",
            NOT_AVAILABLE if fork.course is None else fork.course.kind,
            NOT_AVAILABLE if fork.course is None else _levels(fork.course),
        )
        for forks in found.values()
        for fork, line in forks
    )
    return Table.of("Course of service time", columns, lines)


def _thirds(line: CourseLine) -> tuple[str, str]:
    """Median of the points of the first and of the last third of the measured requests."""
    points = line.p50_ns[line.ranks >= 0]
    third = points.size // 3
    if third == 0:
        return NOT_AVAILABLE, NOT_AVAILABLE
    ends = (points[:third], points[-third:])
    first, last = (figure(float(np.median(end)) / _NS_PER_MS) for end in ends)
    return first, last


def _levels(course: Course) -> str:
    """`9.5 from 0, 4.1 from 120`, in requests; of many, the last ones."""
    words = [
        f"{figure(level / _NS_PER_MS)} from {bound:,}"
        for bound, level in zip(course.bounds, course.levels_ns, strict=True)
    ]
    earlier = len(words) - _MOST_LEVELS_IN_TEXT
    return ", ".join([f"{earlier} earlier ones", *words[earlier:]] if earlier > 0 else words)


def flow_chart(shapes: TaskShapes, frame: Frame) -> Chart | None:
    """Return throughput and telemetry of one task; None without samples."""
    by_variant = {label: shapes.forks[label] for label in frame.variants if shapes.forks.get(label)}
    if not by_variant:
        return None
    forks = [fork for group_of in by_variant.values() for fork in group_of]
    cell_s = common_cell(fork.shape for fork in forks)
    panels = [Panel(f"{shapes.unit.capitalize()}/s", _RATE_PX, {"rangemode": "tozero"})]
    data = _legend(by_variant, frame) + [
        _rate_trace(fork, cell_s, position=frame.position(label), unit=shapes.unit)
        for label, group_of in by_variant.items()
        for fork in group_of
    ]
    for title, traces in _usage_panels(by_variant, frame):
        panels.append(Panel(title, _USAGE_PX, {"rangemode": "tozero", "nticks": 4}))
        for trace in traces:
            trace.yaxis = axis_name(len(panels))
        data += traces
    warmed_up = min(fork.shape.flow.begin_s for fork in forks) < 0
    window = [shaded(0, max(fork.shape.flow.end_s for fork in forks))] if warmed_up else []
    layout = stacked("Seconds since measuring began", panels, shapes=window)
    telemetry = len(panels) > 1
    return frame.chart(
        "throughput",
        "Throughput over time and telemetry" if telemetry else "Throughput over time",
        _flow_about(forks, cell_s, telemetry=telemetry),
        data,
        layout,
        _flow_table(by_variant),
    )


def _legend(found: _ByVariant, frame: Frame) -> list[go.Scatter]:
    """Legend with an entry per variant, with its line and mark, which switches all of its forks."""
    entries = []
    for label in found:
        style = variant_style(frame.position(label))
        entry = go.Scatter(
            mode="lines+markers",
            x=[None],
            y=[None],
            name=plain(label),
            legendgroup=plain(label),
            line={"color": style.colour, "width": 2, "dash": style.dash},
            marker={"color": style.colour, "symbol": style.symbol},
        )
        entries.append(entry)
    return entries


def _rate_trace(fork: ForkShape, cell_s: float, *, position: int, unit: str) -> go.Scatter:
    seconds, per_s = rates(fork.shape.flow, cell_s)
    return _line(
        fork, position, mode="lines+markers" if seconds.size == 1 else "lines", x=seconds, y=per_s,
        hovertemplate=f"%{{y}} {plain(unit)}/s at %{{x}} s",
    )  # fmt: skip


def _usage_panels(found: _ByVariant, frame: Frame) -> list[tuple[str, list[go.Scatter]]]:
    """(title, traces) of every panel about which anything is known."""
    kept = [
        (fork, fork.usage, frame.position(label))
        for label, forks in found.items()
        for fork in forks
        if fork.usage is not None and fork.usage.readings.sum() >= LEAST_READINGS
    ]
    readings = (
        ("Node CPU, %", "% of one CPU", [(*pair, pair[1].node_cpu_percent) for pair in kept]),
        ("Driver CPU, %", "% of one CPU", [(*pair, pair[1].driver_cpu_percent) for pair in kept]),
        ("Merges", "merges", [(*pair, pair[1].merges) for pair in kept]),
    )
    panels = [
        (title, [_readings_trace(*fork, unit) for fork in forks if not np.isnan(fork[-1]).all()])
        for title, unit, forks in readings
    ]
    pauses = [_pauses_trace(*pair) for pair in kept if pair[1].pauses]
    panels.insert(len(panels) - 1, ("GC pauses, ms", pauses))
    return [(title, traces) for title, traces in panels if traces]


def _readings_trace(fork: ForkShape, usage: Usage, position: int, values: Floats, unit: str) -> go.Scatter:
    return _line(
        fork, position, mode="lines+markers", marker={"size": 3}, x=usage.seconds, y=values,
        hovertemplate=f"%{{y}} {unit} at %{{x}} s",
    )  # fmt: skip


def _pauses_trace(fork: ForkShape, usage: Usage, position: int) -> go.Scatter:
    style = variant_style(position)
    trace = _line(
        fork, position, mode="markers", x=usage.pause_s, y=usage.pause_ms,
        marker={"color": tint(style.colour, _MARK_ALPHA), "symbol": style.symbol, "size": 6},
        hovertemplate="%{y} ms at %{x} s",
    )  # fmt: skip
    if usage.pauses != usage.pause_counts.size:
        trace.text = [f"the longest of {count}" for count in usage.pause_counts.tolist()]
        trace.hovertemplate = "%{y} ms at %{x} s, %{text}"
    return trace


def _line(fork: ForkShape, position: int, **more: Any) -> go.Scatter:
    style = variant_style(position)
    return go.Scatter(
        name=plain(fork.name),
        legendgroup=plain(fork.label),
        showlegend=False,
        line={"color": tint(style.colour, _LINE_ALPHA), "width": 1.2, "dash": style.dash},
        **more,
    )


def _flow_about(forks: Sequence[ForkShape], cell_s: float, *, telemetry: bool) -> list[str]:
    parts = [f"Each line is a fork, each point what it completed in {cell_s:.4g} s."]
    if any(fork.shape.flow.begin_s < 0 for fork in forks):
        parts.append("Left of what is shaded is warm-up, which is in no figure.")
    if not telemetry:
        kept = any(fork.usage is not None for fork in forks)
        parts.append(
            f"Telemetry has fewer than {LEAST_READINGS} readings of it." if kept else "No telemetry was kept."
        )
        return parts
    parts.append("Below it, on the same clock, what the node and the driver used; 100% is one CPU.")
    if without := [fork.name for fork in forks if fork.usage is None]:
        parts.append(f"No telemetry was kept of {', '.join(without)}.")
    usages = [fork.usage for fork in forks if fork.usage is not None]
    if (most := max(int(usage.readings.max(initial=1)) for usage in usages)) > 1:
        parts.append(f"Each point is the mean of up to {most} readings.")
    if any(usage.pauses != usage.pause_counts.size for usage in usages):
        parts.append("Where pauses are many, a mark is the longest of several.")
    return parts


def _flow_table(found: _ByVariant) -> Table:
    columns = (
        worded("Fork"), "Warm-up, s", "Measured, s", "Requests", "Node CPU, %", "Driver CPU, %",
        "GC pauses", "GC, ms", "Longest, ms", worded("Longest pause"),
    )  # fmt: skip
    lines = (
        (
            fork.name,
            figure(max(0.0, -fork.shape.flow.begin_s)),
            figure(fork.shape.flow.end_s),
            f"{fork.shape.samples:,}",
            *_usage_cells(fork.usage),
        )
        for forks in found.values()
        for fork in forks
    )
    return Table.of("Throughput over time and telemetry, warm-up included", columns, lines)


def _usage_cells(usage: Usage | None) -> tuple[str, ...]:
    """Means over the readings and sums over the pauses of a task."""
    if usage is None:
        return (NOT_AVAILABLE,) * 6
    longest_ms = float(usage.pause_ms.max(initial=0.0))
    return (
        figure(_mean(usage.node_cpu_percent, usage.readings)),
        figure(_mean(usage.driver_cpu_percent, usage.readings)),
        str(usage.pauses),
        figure(usage.pauses_ms),
        figure(longest_ms),
        usage.longest,
    )


def _mean(values: Floats, weights: Integers) -> float | None:
    is_known = ~np.isnan(values)
    return float(np.average(values[is_known], weights=weights[is_known])) if is_known.any() else None


def distribution_chart(shapes: TaskShapes, frame: Frame, *, kind: str, of: Getter) -> Chart | None:
    """Return the distribution of one kind of time of one task; None when no fork has any.

    `kind` names it, such as `service time`; `of` gets it of one fork.
    """
    by_variant = {
        label: [
            (fork, distribution)
            for fork in shapes.forks.get(label, ())
            if (distribution := of(fork)) is not None
        ]
        for label in frame.variants
    }
    by_variant = {label: forks for label, forks in by_variant.items() if forks}
    if not by_variant:
        return None
    times = [distribution for forks in by_variant.values() for _, distribution in forks]
    curved = any(_carried(time.requests, _MARKED[0]) for time in times)
    data: list[go.Scatter] = []
    for label, forks in by_variant.items():
        data += _share_traces(label, frame.position(label), forks)
        if curved:
            data += _curve_traces(label, frame.position(label), forks)
    return frame.chart(
        kind.replace(" ", "-"),
        f"Distribution of {kind}",
        [*_distribution_about(kind, by_variant, curved=curved), _limits(times, curved=curved)],
        data,
        _layout(kind, times, curved=curved),
        _distribution_table(by_variant, kind),
    )


def _share_traces(label: str, position: int, forks: _DistributionForks) -> list[go.Scatter]:
    """Distribution functions, and the median over forks of their quantiles."""
    style = variant_style(position)
    thick = {"color": style.colour, "width": 3, "dash": style.dash}
    if len(forks) == 1:
        return [_share_line(label, label, forks[0][1], thick, showlegend=True)]
    thin = {"color": tint(style.colour, _FORK_ALPHA), "width": 1}
    median = _distribution_line(
        label, _name(label, forks), line=thick, showlegend=True, hovertemplate=_SHARE_HOVER,
        x=milliseconds(np.median([times.levels_ns for _, times in forks], axis=0)), y=LEVELS,
    )  # fmt: skip
    return [*(_share_line(label, fork.name, times, thin) for fork, times in forks), median]


def _share_line(
    label: str, name: str, times: Distribution, line: Mapping[str, Any], *, showlegend: bool = False
) -> go.Scatter:
    """Functions of few values are drawn as steps."""
    steps = {"shape": "hv"} if times.values_ns.size < _STEPS_UP_TO else {}
    return _distribution_line(
        label, name, line={**line, **steps}, showlegend=showlegend, hovertemplate=_SHARE_HOVER,
        x=milliseconds(times.values_ns), y=times.shares,
    )  # fmt: skip


def _curve_traces(label: str, position: int, forks: _DistributionForks) -> list[go.Scatter]:
    """Percentile curves, their median over forks, and marks at the percentiles that have names."""
    style = variant_style(position)
    thin = {"line": {"color": tint(style.colour, _FORK_ALPHA), "width": 1}}
    thick = {"line": {"color": style.colour, "width": 3, "dash": style.dash}}
    marks = {"mode": "markers", "marker": {"color": style.colour, "symbol": style.symbol, "size": 9}}
    curve = np.median([times.curve_ns for _, times in forks], axis=0)  # NaN where any fork has too few
    marked = np.where(np.isin(ODDS, _MARKED), curve, np.nan)
    own = forks if len(forks) > 1 else ()
    name = _name(label, forks)
    return [
        *(_curve_line(label, fork.name, times.curve_ns, thin) for fork, times in own),
        _curve_line(label, name, curve, thick),
        _curve_line(label, name, marked, marks),
    ]


def _curve_line(label: str, name: str, curve_ns: Floats, look: Mapping[str, Any]) -> go.Scatter:
    drawn = ~np.isnan(curve_ns)
    return _distribution_line(
        label, name, xaxis="x2", yaxis="y2", hovertemplate="1 in %{x:.4g} above %{y} ms",
        x=ODDS[drawn], y=milliseconds(curve_ns[drawn]), **look,
    )  # fmt: skip


def _distribution_line(label: str, name: str, **look: Any) -> go.Scatter:
    base = {"mode": "lines", "showlegend": False, "name": plain(name), "legendgroup": plain(label)}
    return go.Scatter(base | look)


def _name(label: str, forks: _DistributionForks) -> str:
    return f"{label}, median of {len(forks)} forks" if len(forks) > 1 else label


def _layout(kind: str, times: Sequence[Distribution], *, curved: bool) -> go.Layout:
    kind = kind[0].upper() + kind[1:]
    below: dict[str, Any] = {}
    if curved:
        # Up to the first marked quantile beyond which nothing is drawn.
        most = max(ODDS[carries(time.requests)].max(initial=1.0) for time in times)
        reach = float(np.log10(next(odd for odd in _MARKED if odd >= most)))
        below["xaxis2"] = {
            "title": {"text": "Percentile (one request in 2, 10, 100, 1,000 takes longer)"},
            "type": "log", "anchor": "y2", "range": [0, 1.01 * reach], "tickmode": "array",
            "tickvals": [1, *_MARKED], "ticktext": ["least", *_NAMES],
        }  # fmt: skip
        below["yaxis2"] = {
            "title": {"text": f"{kind}, ms"}, "anchor": "x2", "domain": _CURVE_DOMAIN, "rangemode": "tozero",
        }  # fmt: skip
    return plot_layout(
        f"{kind}, ms",
        "Share of requests",
        height=_HEIGHT if curved else round(_HEIGHT * (1 - _ECDF_DOMAIN[0])),
        xaxis={**time_axis([time.values_ns[[0, -1]] for time in times]), "anchor": "y"},
        yaxis={
            "domain": _ECDF_DOMAIN if curved else (0.0, 1.0),
            "range": [0, 1.01],
            "tickformat": ".0%",
        },
        **below,
    )


def _distribution_about(kind: str, found: Mapping[str, _DistributionForks], *, curved: bool) -> list[str]:
    share = f"the share of requests whose {kind} was no longer than so much"
    parts = [
        f"Above, {share}; below, the time that one request in that many exceeded."
        if curved
        else f"{share.capitalize()}."
    ]
    if any(len(forks) > 1 for forks in found.values()):
        forks = "Thin lines are forks; thick ones are the median over forks of each quantile: "
        parts.append(forks + "requests of different forks are never pooled.")
    return parts


def _limits(times: Sequence[Distribution], *, curved: bool) -> str:
    """Return which quantiles are missing, and why."""
    sizes = [time.requests for time in times]
    missing = [name for name, odd in zip(_NAMES, _MARKED, strict=True) if not _carried(min(sizes), odd)]
    if not missing:
        return ""
    have = f"A fork has {spans(min(sizes), max(sizes))} requests"
    if not curved:
        return f"{have}: too few for a plot of quantiles, with under {TAIL_REQUESTS} beyond {_NAMES[0]}."
    return (
        f"{have}; quantiles beyond which there are fewer than {TAIL_REQUESTS} are not drawn in the lower "
        f"plot ({', '.join(missing)}, in some forks or all)."
    )


def _carried(requests: int, odd: float) -> bool:
    return bool(carries(requests)[np.searchsorted(ODDS, odd)])


def _distribution_table(found: Mapping[str, _DistributionForks], kind: str) -> Table:
    places = np.searchsorted(ODDS, _MARKED)
    lines = []
    for label, forks in found.items():
        for fork, distribution in forks:
            quantiles = (figure(value / _NS_PER_MS) for value in distribution.curve_ns[places].tolist())
            lines.append((fork.name, f"{distribution.requests:,}", *quantiles))
        if len(forks) > 1:
            middle = (
                np.median([distribution.curve_ns[places] for _, distribution in forks], axis=0) / _NS_PER_MS
            )
            lines.append((f"{label}, median", "", *(figure(value) for value in middle.tolist())))
    return Table.of(f"Quantiles of {kind}, ms", (worded("Fork"), "Requests", *_NAMES), lines)


def sample_charts(shapes: RunShapes, analysis: Analysis) -> list[Chart]:
    """Return up to four charts of each reported task, in the order of the tables; none of few samples.

    They are latency where requests had a due time, service time, its course, and throughput.
    """
    groups = {(row.schedule, row.task): analysis.where(row) for row in analysis.rows}
    also = not_drawn(shapes.absent)
    return [
        chart
        for place, group in groups.items()
        if place in shapes.tasks
        for chart in _task_charts(
            shapes.tasks[place], Frame(_key(place, group), group, analysis.variants, also)
        )
        if chart is not None
    ]


def _task_charts(shapes: TaskShapes, frame: Frame) -> list[Chart | None]:
    requests = (fork.shape.samples for forks in shapes.forks.values() for fork in forks)
    if max(requests, default=0) < LEAST_POINTS:
        return []
    return [
        distribution_chart(shapes, frame, kind="latency", of=lambda fork: fork.shape.latency),
        distribution_chart(shapes, frame, kind="service time", of=lambda fork: fork.shape.service),
        course_chart(shapes, frame),
        flow_chart(shapes, frame),
    ]


def _key(place: tuple[int, int], group: str) -> str:
    """Unique by the place; the name is for those who read addresses."""
    return f"{place[0]}-{place[1]}-{re.sub(r'[^A-Za-z0-9]+', '-', group).strip('-')}"
