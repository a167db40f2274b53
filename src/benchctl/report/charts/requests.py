"""The chart of a task's requests: service time by the number of the request, warm-up included."""

import math
import re
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import plotly.graph_objects as go

from benchctl.errors import BenchctlError
from benchctl.report.charts import LEAST_POINTS, Chart, tint, variant_style
from benchctl.report.charts.panels import milliseconds, plain, plot_layout, shaded, spans, time_axis, upright
from benchctl.report.numbers import figure
from benchctl.report.table import VARIANT, Table
from benchctl.results.plan import Place
from benchctl.results.samples import Columns, Outcome
from benchctl.results.store import ForkSource
from benchctl.stats.analysis import Analysis
from benchctl.stats.quantiles import by_place

_NEEDED = ("outcome", "warmup", "start_ns", "end_ns")
_MOST_POINTS = 200
_TITLE = "Service time by request"
_COLUMNS = (VARIANT, "Forks", "Warm-up", "Measured", "Not drawn", "First third, ms", "Last third, ms")


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
        _chart(place, group, [forks[place] for forks in found if place in forks], each[place], analysis)
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


def _chart(place: Place, group: str, forks: _Forks, each: int, analysis: Analysis) -> Chart | None:
    """Return the chart of a task, with a line of its table for each variant; None for few points."""
    if max((len(fork.medians_ns) for fork in forks), default=0) < LEAST_POINTS:
        return None
    variants = [(label, [fork for fork in forks if fork.label == label]) for label in analysis.variants]
    drawn = [_variant(label, own, position, each) for position, (label, own) in enumerate(variants) if own]
    warmup, unanswered = max(fork.warmup for fork in forks), sum(fork.unanswered for fork in forks)
    bins = f"; a point is up to {each:,}" if each > 1 else ""
    lost = f"; {unanswered:,} failed or cut off, not drawn" if unanswered else ""
    layout = plot_layout(
        f"Request, from the first measured one{bins}{lost}",
        "Service time, ms",
        yaxis=time_axis([value for fork in forks for value in fork.medians_ns.values()]),
        shapes=[shaded(0.5 - warmup, 0.5), upright(0.5)] if warmup else [],
    )
    about = "Each point is the median over forks"
    about += f" of the median of up to {each:,} successive requests" if each > 1 else ""
    about += ", the band the range of forks."
    about += " What is shaded is warm-up, and in no figure." if warmup else ""
    if len({(fork.warmup, fork.measured) for fork in forks}) > 1:
        about += " Forks differ in length: where some have no request, points are of the others."
    key = f"requests-{place[0]}-{place[1]}-{re.sub(r'[^A-Za-z0-9]+', '-', group).strip('-')}"
    table = Table.of(_TITLE, _COLUMNS, [line for _, line in drawn])
    return Chart(key, group, _TITLE, about, [trace for traces, _ in drawn for trace in traces], layout, table)


def _variant(label: str, forks: _Forks, position: int, each: int) -> tuple[list[go.Scatter], tuple[str, ...]]:
    """Return the traces of a variant, which break where no request succeeded, and its line of the table."""
    numbers = sorted({number for fork in forks for number in fork.medians_ns})
    values = [[fork.medians_ns[n] for fork in forks if n in fork.medians_ns] for n in numbers]
    ranges_ns = [(min(medians), float(np.median(medians)), max(medians)) for medians in values]
    low, middle, high = milliseconds(ranges_ns).reshape(-1, 3).T
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
    cells = [*(spans(min(size), max(size)) for size in sizes), f"{sum(fork.unanswered for fork in forks):,}"]
    cells += [figure(float(np.median(part))) for part in thirds] or [figure(None)] * 2
    return traces, (label, str(len(forks)), *cells)
