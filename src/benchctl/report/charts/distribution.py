"""How long requests took: distribution functions and percentile curves, a line a fork and one a variant."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchctl.report.chart import Chart
from benchctl.report.charts.panels import Frame, digits, milliseconds, spans, time_axis
from benchctl.report.charts.theme import base_layout, plain, tint, variant_style
from benchctl.report.grid import Grid, worded
from benchctl.report.numbers import figure
from benchctl.stats.arrays import Floats
from benchctl.stats.quantiles import LEVELS, ODDS, TAIL_REQUESTS, carries
from benchctl.stats.task_shape import Distribution, ForkShape, TaskShapes

_HEIGHT = 520
_ECDF_DOMAIN = (0.58, 1.0)
_CURVE_DOMAIN = (0.0, 0.46)
_FORK_ALPHA = 0.4
_NS_PER_MS = 1e6
_MARKED = (2.0, 10.0, 100.0, 1000.0)
_NAMES = ("p50", "p90", "p99", "p99.9")
_STEPS_UP_TO = 120

Getter = Callable[[ForkShape], Distribution | None]
_Forks = Sequence[tuple[ForkShape, Distribution]]


def distribution_chart(shapes: TaskShapes, frame: Frame, *, kind: str, of: Getter) -> Chart | None:
    """The distribution of one kind of time of one task; None when no fork has any.

    Args:
        shapes: of the task.
        frame: of its charts.
        kind: which time, in words, such as `service time`.
        of: that time of one fork.
    """
    found = {
        label: [(fork, one) for fork in shapes.forks.get(label, ()) if (one := of(fork)) is not None]
        for label in frame.variants
    }
    found = {label: forks for label, forks in found.items() if forks}
    if not found:
        return None
    times = [one for forks in found.values() for _, one in forks]
    curved = any(_carried(one.requests, _MARKED[0]) for one in times)
    data: list[dict[str, Any]] = []
    for label, forks in found.items():
        data += _share_traces(label, frame.position(label), forks)
        if curved:
            data += _curve_traces(label, frame.position(label), forks)
    return frame.chart(
        kind.replace(" ", "-"),
        f"Distribution of {kind}",
        [*_about(kind, found, curved=curved), _limits(times, curved=curved)],
        {"data": data, "layout": _layout(kind, times, curved=curved)},
        _table(found, kind),
    )


def _share_traces(label: str, position: int, forks: _Forks) -> list[dict[str, Any]]:
    """Distribution functions, and the median over forks of their quantiles."""
    style, hover = variant_style(position), {"hovertemplate": "%{y:.1%} within %{x} ms"}
    thick = {"line": {"color": style.colour, "width": 3, "dash": style.dash}, "showlegend": True}
    if len(forks) == 1:
        return [_line(label, _name(label, forks)) | _steps(forks[0][1], thick) | hover]
    thin = {"line": {"color": tint(style.colour, _FORK_ALPHA), "width": 1}}
    traces = [_line(label, fork.name) | _steps(one, thin) | hover for fork, one in forks]
    level = np.median([one.levels_ns for _, one in forks], axis=0)
    middle = {"x": milliseconds(level), "y": digits(LEVELS)}
    return [*traces, _line(label, _name(label, forks)) | thick | middle | hover]


def _curve_traces(label: str, position: int, forks: _Forks) -> list[dict[str, Any]]:
    """Percentile curves, their median over forks, and marks at the percentiles that have names."""
    style = variant_style(position)
    below = {"xaxis": "x2", "yaxis": "y2", "hovertemplate": "1 in %{x:.4g} above %{y} ms"}
    thick = {"line": {"color": style.colour, "width": 3, "dash": style.dash}}
    thin = {"line": {"color": tint(style.colour, _FORK_ALPHA), "width": 1}}
    curve = np.median([one.curve_ns for _, one in forks], axis=0)  # NaN where any fork has too few
    marked = np.where(np.isin(ODDS, _MARKED), curve, np.nan)
    marks = {"mode": "markers", "marker": {"color": style.colour, "symbol": style.symbol, "size": 9}}
    own = forks if len(forks) > 1 else ()
    name = _name(label, forks)
    return [
        *(_line(label, fork.name) | thin | _drawn(one.curve_ns) | below for fork, one in own),
        _line(label, name) | thick | _drawn(curve) | below,
        _line(label, name) | marks | _drawn(marked) | below,
    ]


def _line(label: str, name: str) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "lines", "showlegend": False,
        "name": plain(name), "legendgroup": plain(label),
    }  # fmt: skip


def _name(label: str, forks: _Forks) -> str:
    return f"{label}, median of {len(forks)} forks" if len(forks) > 1 else label


def _steps(one: Distribution, look: Mapping[str, Any]) -> dict[str, Any]:
    """A function of few values is drawn as the steps that it has."""
    line = look["line"] | ({"shape": "hv"} if one.values_ns.size < _STEPS_UP_TO else {})
    return {**look, "line": line, "x": milliseconds(one.values_ns), "y": digits(one.shares)}


def _drawn(curve_ns: Floats) -> dict[str, Any]:
    known = ~np.isnan(curve_ns)
    return {"x": digits(ODDS[known]), "y": milliseconds(curve_ns[known])}


def _layout(kind: str, times: Sequence[Distribution], *, curved: bool) -> dict[str, Any]:
    kind = kind[0].upper() + kind[1:]
    layout = base_layout(
        f"{kind}, ms",
        "Share of requests",
        height=_HEIGHT if curved else round(_HEIGHT * (1 - _ECDF_DOMAIN[0])),
        xaxis=time_axis([one.values_ns[[0, -1]] for one in times]) | {"anchor": "y"},
        yaxis={
            "domain": list(_ECDF_DOMAIN if curved else (0.0, 1.0)),
            "range": [0, 1.01],
            "tickformat": ".0%",
        },
    )
    if not curved:
        return layout
    lower = base_layout("Percentile (one request in 2, 10, 100, 1,000 takes longer)", f"{kind}, ms")
    layout["xaxis2"] = lower["xaxis"] | {
        "type": "log", "anchor": "y2", "range": [0, round(1.01 * _reach(times), 4)], "tickmode": "array",
        "tickvals": [1, *_MARKED], "ticktext": ["least", *_NAMES],
    }  # fmt: skip
    layout["yaxis2"] = lower["yaxis"] | {"anchor": "x2", "domain": list(_CURVE_DOMAIN), "rangemode": "tozero"}
    return layout


def _about(kind: str, found: Mapping[str, _Forks], *, curved: bool) -> list[str]:
    share = f"the share of requests whose {kind} was no longer than so much"
    parts = [
        f"Above, {share}; below, what one request in so many exceeded."
        if curved
        else f"{share.capitalize()}."
    ]
    if any(len(forks) > 1 for forks in found.values()):
        forks = "Thin lines are forks; thick ones are the median over forks of each quantile: "
        parts.append(forks + "requests of different forks are never pooled.")
    return parts


def _reach(times: Sequence[Distribution]) -> float:
    """Decades from the least to the first marked quantile beyond which nothing is drawn."""
    most = max(ODDS[carries(one.requests)].max(initial=1.0) for one in times)
    return float(np.log10(next(odd for odd in _MARKED if odd >= most)))


def _limits(times: Sequence[Distribution], *, curved: bool) -> str:
    """Which quantiles are missing, and why."""
    sizes = [one.requests for one in times]
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


def _table(found: Mapping[str, _Forks], kind: str) -> Grid:
    places = np.searchsorted(ODDS, _MARKED)
    lines = []
    for label, forks in found.items():
        for fork, one in forks:
            quantiles = (figure(value / _NS_PER_MS) for value in one.curve_ns[places].tolist())
            lines.append((fork.name, f"{one.requests:,}", *quantiles))
        if len(forks) > 1:
            middle = np.median([one.curve_ns[places] for _, one in forks], axis=0) / _NS_PER_MS
            lines.append((f"{label}, median", "", *(figure(value) for value in middle.tolist())))
    return Grid.of(f"Quantiles of {kind}, ms", (worded("Fork"), "Requests", *_NAMES), lines)
