"""How service time went along in each fork: warm-up, measured requests, and the levels they settled on."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from benchctl.report.chart import Chart
from benchctl.report.charts.panels import (
    Frame,
    Panel,
    axis_name,
    digits,
    heading,
    milliseconds,
    spans,
    stacked,
    time_axis,
)
from benchctl.report.charts.theme import BAND, GUIDE, plain, tint, variant_style
from benchctl.report.grid import Grid, worded
from benchctl.report.numbers import NOT_AVAILABLE, figure
from benchctl.results.figures import Course
from benchctl.stats.task_shape import CourseLine, ForkShape, TaskShapes

_PANEL_PX = 200
_FORK_ALPHA = 0.4
# Of the bands of all forks together, where they overlap.
_BANDS_ALPHA = 0.5
_NS_PER_MS = 1e6
_MOST_LEVELS_IN_WORDS = 6

_Forks = Sequence[tuple[ForkShape, CourseLine]]


def course_chart(shapes: TaskShapes, frame: Frame) -> Chart | None:
    """The course of one task, a panel a variant; None when no request succeeded.

    Args:
        shapes: of the task.
        frame: of its charts.
    """
    found = {
        label: [
            (fork, line) for fork in shapes.forks.get(label, ()) if (line := fork.shape.course) is not None
        ]
        for label in frame.variants
    }
    found = {label: forks for label, forks in found.items() if forks}
    if not found:
        return None
    lines = [line for forks in found.values() for _, line in forks]
    unit = "Seconds" if shapes.timed else "Requests"
    begin = min(float(_places(line, timed=shapes.timed)[0]) for line in lines)
    layout = stacked(
        f"{unit} since measuring began",
        [Panel("Service time, ms", _PANEL_PX, _axis(lines, number)) for number in range(1, len(found) + 1)],
        showlegend=False,
        shapes=_window(begin, 0.0 if shapes.timed else 0.5),
        annotations=[heading(f"<b>{plain(label)}</b>", number) for number, label in enumerate(found, 1)],
    )
    data = [
        trace
        for number, (label, forks) in enumerate(found.items(), 1)
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
        _about(lines, found),
        {"data": data, "layout": layout},
        _table(found),
    )


def _fork_traces(
    fork: ForkShape, line: CourseLine, *, position: int, axis: str, timed: bool, alpha: float
) -> list[dict[str, Any]]:
    style = variant_style(position)
    places = _places(line, timed=timed)
    base = {"type": "scatter", "name": plain(fork.name), "yaxis": axis, "showlegend": False}
    traces: list[dict[str, Any]] = []
    if line.requests.max() > 1:
        traces.append(base | {
            "mode": "lines", "line": {"width": 0}, "fill": "toself",
            "fillcolor": tint(style.colour, round(alpha, 3)), "hoverinfo": "skip",
            "x": digits(np.concatenate([places, places[::-1]])),
            "y": milliseconds(np.concatenate([line.p90_ns, line.p10_ns[::-1]])),
        })  # fmt: skip
    where = "%{x} s" if timed else "request %{x}"
    traces.append(base | {
        "mode": "lines" if places.size > 1 else "markers",
        "line": {"color": tint(style.colour, _FORK_ALPHA), "width": 1},
        "marker": {"color": style.colour, "symbol": style.symbol},
        "x": digits(places), "y": milliseconds(line.p50_ns), "hovertemplate": f"%{{y}} ms, {where}",
    })  # fmt: skip
    if fork.course is not None:
        traces += _level_traces(fork.course, line, base, position=position, timed=timed)
    return traces


def _level_traces(
    course: Course, line: CourseLine, base: Mapping[str, Any], *, position: int, timed: bool
) -> list[dict[str, Any]]:
    """Segments as steps, and a mark where the last level begins."""
    style = variant_style(position)
    edges = _at(np.array([*course.bounds, course.of]), line, timed=timed)
    x = np.repeat(edges, 2)[1:-1]
    y = np.repeat(course.levels_ns, 2)
    steps = dict(base) | {
        "mode": "lines", "line": {"color": style.colour, "width": 2},
        "x": digits(x), "y": milliseconds(y), "hovertemplate": f"level %{{y}} ms<br>{course.kind}",
    }  # fmt: skip
    if course.kind == "no steady state":
        return [steps]
    level = course.levels_ns[int(np.searchsorted(course.bounds, course.steady_from, side="right")) - 1]
    mark = dict(base) | {
        "mode": "markers", "marker": {"color": style.colour, "symbol": style.symbol, "size": 8},
        "x": digits(_at(np.array([course.steady_from]), line, timed=timed)), "y": milliseconds([level]),
        "hovertemplate": f"settled after {course.steady_from:,} requests<br>{course.kind}",
    }  # fmt: skip
    return [steps, mark]


def _places(line: CourseLine, *, timed: bool) -> npt.NDArray[np.float64]:
    """Where points are drawn: seconds, or the number of the middle request; measured ones count from 1."""
    if timed:
        return line.seconds
    middles: npt.NDArray[np.float64] = line.ranks + (line.requests + 1) / 2.0
    return middles


def _at(ranks: npt.NDArray[np.int64], line: CourseLine, *, timed: bool) -> npt.NDArray[np.float64]:
    """Where the request of a rank begins; between points, times are interpolated."""
    return np.interp(ranks, line.ranks, line.seconds) if timed else ranks.astype(np.float64) + 0.5


def _axis(lines: Sequence[CourseLine], number: int) -> dict[str, Any]:
    """All panels have one scale: they are there to be compared."""
    drawn = np.concatenate([times for line in lines for times in (line.p10_ns, line.p90_ns)])
    return time_axis(drawn) | ({} if number == 1 else {"matches": "y"})


def _window(begin: float, start: float) -> list[dict[str, Any]]:
    """Warm-up shaded, and a line where measuring begins; nothing without warm-up."""
    if begin >= start:
        return []
    place = {"xref": "x", "yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
    return [
        place | {"type": "rect", "x0": begin, "x1": start, "fillcolor": BAND, "line": {"width": 0}},
        place | {"type": "line", "x0": start, "x1": start, "line": {"color": GUIDE, "width": 1.5}},
    ]


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


def _table(found: Mapping[str, _Forks]) -> Grid:
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
    return Grid.of("Course of service time", columns, lines)


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
    earlier = len(words) - _MOST_LEVELS_IN_WORDS
    return ", ".join([f"{earlier} earlier ones", *words[earlier:]] if earlier > 0 else words)
