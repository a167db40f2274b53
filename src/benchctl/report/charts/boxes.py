"""Service time by how much was found: a box a variant for every order of magnitude of the hit count."""

from collections.abc import Sequence
from typing import Any

from benchctl.report.chart import Chart
from benchctl.report.charts.panels import Frame, milliseconds, time_axis
from benchctl.report.charts.theme import base_layout, plain, tint, variant_style
from benchctl.report.grid import VARIANT, Grid, worded
from benchctl.report.numbers import figure
from benchctl.stats.quantiles import Box
from benchctl.stats.task_shape import HitBoxes, TaskShapes

_FILL_ALPHA = 0.35
# The same for boxes and marks, so that these are on those.
_GAP = 0.3
_NS_PER_MS = 1e6

_ABOUT = (
    "Boxes reach from p25 to p75 with a mark at the median, whiskers from the least to p95; the longest "
    "times are left out. They hold the requests of all forks together, which depend on each other: boxes "
    "describe, and say nothing about whether variants differ."
)


def box_chart(shapes: TaskShapes, frame: Frame) -> Chart | None:
    """The boxes of one task; None when its requests do not differ in their hits.

    Args:
        shapes: of the task.
        frame: of its charts.
    """
    found = {
        label: shapes.hits[label]
        for label in frame.variants
        if label in shapes.hits and shapes.hits[label].boxes
    }
    if not found:
        return None
    order = {box.magnitude: box.hits for one in found.values() for box in one.boxes}
    layout = base_layout(
        "Hits",
        "Service time, ms",
        xaxis={
            "type": "category",
            "categoryorder": "array",
            "categoryarray": [order[name] for name in sorted(order)],
        },
        yaxis=time_axis(
            [bound for one in found.values() for box in one.boxes for bound in (box.least_ns, box.p95_ns)]
        ),
        boxmode="group",
        boxgap=_GAP,
        scattergap=_GAP,
        scattermode="group",
    )
    data = [
        trace for label, one in found.items() for trace in _traces(label, one.boxes, frame.position(label))
    ]
    return frame.chart(
        "hits",
        "Service time by number of hits",
        [_ABOUT, *_apart(list(found.values()))],
        {"data": data, "layout": layout},
        _table(found),
    )


def _traces(label: str, boxes: Sequence[Box], position: int) -> list[dict[str, Any]]:
    style = variant_style(position)
    hits = [box.hits for box in boxes]
    medians = milliseconds([box.p50_ns for box in boxes])
    base = {"name": plain(label), "legendgroup": plain(label), "offsetgroup": str(position), "x": hits}
    return [
        base | {
            "type": "box", "q1": milliseconds([box.p25_ns for box in boxes]), "median": medians,
            "q3": milliseconds([box.p75_ns for box in boxes]),
            "lowerfence": milliseconds([box.least_ns for box in boxes]),
            "upperfence": milliseconds([box.p95_ns for box in boxes]),
            "line": {"color": style.colour, "width": 1.5}, "fillcolor": tint(style.colour, _FILL_ALPHA),
            "showlegend": False, "hoverinfo": "y+name",
        },
        base | {
            "type": "scatter", "mode": "markers", "y": medians,
            "marker": {"color": style.colour, "symbol": style.symbol, "size": 9},
            "text": [f"{box.requests:,} requests" for box in boxes],
            "hovertemplate": "median %{y} ms of %{text}",
        },
    ]  # fmt: skip


def _apart(found: Sequence[HitBoxes]) -> list[str]:
    """What is in no box, or perhaps in the wrong one."""
    parts = []
    if unknown := sum(one.unknown for one in found):
        parts.append(f"Requests whose hits are not known, and which are in none: {unknown:,}.")
    if bounded := sum(one.bounded for one in found):
        parts.append(
            f"Requests whose hits the engine stopped counting, so that they had as many or more: {bounded:,}."
        )
    return parts


def _table(found: dict[str, HitBoxes]) -> Grid:
    columns = (VARIANT, worded("Hits"), "Requests", "Least", "p25", "Median", "p75", "p95")
    lines = (
        (label, box.hits, f"{box.requests:,}", *_figures(box))
        for label, one in found.items()
        for box in one.boxes
    )
    return Grid.of("Service time by hits, ms, requests of all forks", columns, lines)


def _figures(box: Box) -> tuple[str, ...]:
    times_ns = (box.least_ns, box.p25_ns, box.p50_ns, box.p75_ns, box.p95_ns)
    return tuple(figure(time_ns / _NS_PER_MS) for time_ns in times_ns)
