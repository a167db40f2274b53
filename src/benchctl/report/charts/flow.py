"""Throughput over time, and below it, on the same clock, what the node and the driver were doing."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchctl.report.chart import LEAST_READINGS, Chart
from benchctl.report.charts.panels import Frame, Panel, axis_name, digits, stacked
from benchctl.report.charts.theme import BAND, plain, tint, variant_style
from benchctl.report.grid import Grid, worded
from benchctl.report.numbers import NOT_AVAILABLE, figure
from benchctl.stats.arrays import Floats, Integers
from benchctl.stats.task_shape import ForkShape, TaskShapes, Usage, common_cell, rates

_RATE_PX = 220
_USAGE_PX = 90
_LINE_ALPHA = 0.6
_MARK_ALPHA = 0.7

_ByVariant = Mapping[str, Sequence[ForkShape]]


def flow_chart(shapes: TaskShapes, frame: Frame) -> Chart | None:
    """Throughput and telemetry of one task; None without samples.

    Args:
        shapes: of the task.
        frame: of its charts.
    """
    found = {label: shapes.forks[label] for label in frame.variants if shapes.forks.get(label)}
    if not found:
        return None
    forks = [fork for group_of in found.values() for fork in group_of]
    cell_s = common_cell(fork.shape for fork in forks)
    panels = [Panel(f"{shapes.unit.capitalize()}/s", _RATE_PX, {"rangemode": "tozero"})]
    data = _legend(found, frame) + [
        _rate_trace(fork, cell_s, position=frame.position(label), unit=shapes.unit)
        for label, group_of in found.items()
        for fork in group_of
    ]
    for title, traces in _usage_panels(found, frame):
        panels.append(Panel(title, _USAGE_PX, {"rangemode": "tozero", "nticks": 4}))
        data += [trace | {"yaxis": axis_name(len(panels))} for trace in traces]
    layout = stacked("Seconds since measuring began", panels, shapes=_window(forks))
    telemetry = len(panels) > 1
    return frame.chart(
        "throughput",
        "Throughput over time and telemetry" if telemetry else "Throughput over time",
        _about(forks, cell_s, telemetry=telemetry),
        {"data": data, "layout": layout},
        _table(found),
    )


def _legend(found: _ByVariant, frame: Frame) -> list[dict[str, Any]]:
    """One entry a variant, with its line and its mark, which switches all of its forks."""
    entries = []
    for label in found:
        style = variant_style(frame.position(label))
        entries.append(
            {
                "type": "scatter", "mode": "lines+markers", "x": [None], "y": [None],
                "name": plain(label), "legendgroup": plain(label),
                "line": {"color": style.colour, "width": 2, "dash": style.dash},
                "marker": {"color": style.colour, "symbol": style.symbol},
            }
        )  # fmt: skip
    return entries


def _rate_trace(fork: ForkShape, cell_s: float, *, position: int, unit: str) -> dict[str, Any]:
    seconds, per_s = rates(fork.shape.flow, cell_s)
    return _line(fork, position) | {
        "mode": "lines+markers" if seconds.size == 1 else "lines",
        "x": digits(seconds), "y": digits(per_s),
        "hovertemplate": f"%{{y}} {plain(unit)}/s at %{{x}} s",
    }  # fmt: skip


def _usage_panels(found: _ByVariant, frame: Frame) -> list[tuple[str, list[dict[str, Any]]]]:
    """(title, traces) of every panel about which anything is known."""
    kept = [
        (fork, fork.usage, frame.position(label))
        for label, forks in found.items()
        for fork in forks
        if fork.usage is not None and fork.usage.readings.sum() >= LEAST_READINGS
    ]
    readings = (
        ("Node CPU, %", "% of one CPU", [(*one, one[1].node_cpu_percent) for one in kept]),
        ("Driver CPU, %", "% of one CPU", [(*one, one[1].driver_cpu_percent) for one in kept]),
        ("Merges", "merges", [(*one, one[1].merges) for one in kept]),
    )
    panels = [
        (title, [_readings_trace(*one, unit) for one in forks if not np.isnan(one[-1]).all()])
        for title, unit, forks in readings
    ]
    pauses = [_pauses_trace(*one) for one in kept if one[1].pauses]
    panels.insert(len(panels) - 1, ("GC pauses, ms", pauses))
    return [(title, traces) for title, traces in panels if traces]


def _readings_trace(
    fork: ForkShape, usage: Usage, position: int, values: Floats, unit: str
) -> dict[str, Any]:
    return _line(fork, position) | {
        "mode": "lines+markers", "marker": {"size": 3}, "x": digits(usage.seconds), "y": digits(values),
        "hovertemplate": f"%{{y}} {unit} at %{{x}} s",
    }  # fmt: skip


def _pauses_trace(fork: ForkShape, usage: Usage, position: int) -> dict[str, Any]:
    style = variant_style(position)
    trace = _line(fork, position) | {
        "mode": "markers", "x": digits(usage.pause_s), "y": digits(usage.pause_ms),
        "marker": {"color": tint(style.colour, _MARK_ALPHA), "symbol": style.symbol, "size": 6},
        "hovertemplate": "%{y} ms at %{x} s",
    }  # fmt: skip
    if usage.pauses == usage.pause_counts.size:
        return trace
    counts = [f"the longest of {count}" for count in usage.pause_counts.tolist()]
    return trace | {"text": counts, "hovertemplate": "%{y} ms at %{x} s, %{text}"}


def _line(fork: ForkShape, position: int) -> dict[str, Any]:
    style = variant_style(position)
    return {
        "type": "scatter", "name": plain(fork.name), "legendgroup": plain(fork.label), "showlegend": False,
        "line": {"color": tint(style.colour, _LINE_ALPHA), "width": 1.2, "dash": style.dash},
    }  # fmt: skip


def _window(forks: Sequence[ForkShape]) -> list[dict[str, Any]]:
    """The measured window, shaded up to where the last fork ends; nothing where there was no other time."""
    if min(fork.shape.flow.begin_s for fork in forks) >= 0:
        return []
    end_s = max(fork.shape.flow.end_s for fork in forks)
    return [
        {
            "type": "rect", "layer": "below", "xref": "x", "yref": "paper", "x0": 0, "x1": end_s,
            "y0": 0, "y1": 1, "fillcolor": BAND, "line": {"width": 0},
        }
    ]  # fmt: skip


def _about(forks: Sequence[ForkShape], cell_s: float, *, telemetry: bool) -> list[str]:
    parts = [f"Each line is a fork, each point what it completed in {cell_s:.4g} s."]
    if any(fork.shape.flow.begin_s < 0 for fork in forks):
        parts.append("Left of what is shaded is warm-up, which is in no figure.")
    if not telemetry:
        kept = any(fork.usage is not None for fork in forks)
        parts.append(
            f"Telemetry has fewer than {LEAST_READINGS} readings of it." if kept else "No telemetry was kept."
        )
        return parts
    parts.append("Below it, on the same clock, what the node and the driver used; 100 % is one CPU.")
    if without := [fork.name for fork in forks if fork.usage is None]:
        parts.append(f"No telemetry was kept of {', '.join(without)}.")
    usages = [fork.usage for fork in forks if fork.usage is not None]
    if (most := max(int(usage.readings.max(initial=1)) for usage in usages)) > 1:
        parts.append(f"Each point is the mean of up to {most} readings.")
    if any(usage.pauses != usage.pause_counts.size for usage in usages):
        parts.append("Where pauses are many, a mark is the longest of several.")
    return parts


def _table(found: _ByVariant) -> Grid:
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
    return Grid.of("Throughput over time and telemetry, warm-up included", columns, lines)


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
    known = ~np.isnan(values)
    return float(np.average(values[known], weights=weights[known])) if known.any() else None
