"""Service time over the course of a task, and below it what the JIT compilers did, on the same clock."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchctl.report.chart import Chart
from benchctl.report.charts.panels import Frame, Panel, axis_name, digits, milliseconds, stacked, time_axis
from benchctl.report.charts.theme import BAND, plain, tint, variant_style
from benchctl.report.layout import Grid
from benchctl.stats.arrays import Integers
from benchctl.stats.jit_course import JitCourse
from benchctl.stats.run_shape import fork_name

_SERVICE_PX = 200
_EVENTS_PX = 90
_ALPHA = 0.7


def jit_chart(courses: Sequence[JitCourse], frame: Frame) -> Chart | None:
    """The chart of one task; None without a fork that has requests.

    Args:
        courses: of the forks that carried evidence.
        frame: of the task's charts.
    """
    drawn = [course for course in courses if course.seconds.size]
    if not drawn:
        return None
    series: list[tuple[str, list[Integers]]] = [
        ("C1", [course.c1 for course in drawn]),
        ("C2", [course.c2 for course in drawn]),
        ("Deopts", [course.deoptimised for course in drawn]),
    ]
    panels = [
        Panel("Service time, ms", _SERVICE_PX, time_axis(np.concatenate([c.service_ns for c in drawn])))
    ]
    panels += [Panel(title, _EVENTS_PX, {"rangemode": "tozero", "nticks": 4}) for title, _ in series]
    data = [_requests(course, frame) for course in drawn]
    for number, (title, counts) in enumerate(series, 2):
        data += [
            _events(course, values, frame, axis=axis_name(number), title=title)
            for course, values in zip(drawn, counts, strict=True)
        ]
    layout = stacked("Seconds since measuring began", panels, shapes=_warm_up(drawn))
    return frame.chart(
        "jit",
        "Service time and the JIT compilers",
        _about(drawn),
        {"data": data, "layout": layout},
        _table(drawn),
    )


def _requests(course: JitCourse, frame: Frame) -> dict[str, Any]:
    style = variant_style(frame.position(course.label))
    return _trace(course, frame) | {
        "mode": "lines+markers", "marker": {"color": style.colour, "symbol": style.symbol, "size": 4},
        "x": digits(course.seconds), "y": milliseconds(course.service_ns), "yaxis": axis_name(1),
        "showlegend": True, "hovertemplate": "%{y} ms at %{x} s",
    }  # fmt: skip


def _events(course: JitCourse, values: Integers, frame: Frame, *, axis: str, title: str) -> dict[str, Any]:
    """Steps: a count is that of its whole cell."""
    return _trace(course, frame) | {
        "mode": "lines", "x": digits(course.edges), "y": digits([*values, values[-1]]), "yaxis": axis,
        "showlegend": False, "hovertemplate": f"%{{y}} {title} from %{{x}} s",
        "line": _line(course, frame) | {"shape": "hv"},
    }  # fmt: skip


def _trace(course: JitCourse, frame: Frame) -> dict[str, Any]:
    name = plain(fork_name(course.label, course.block))
    return {"type": "scatter", "name": name, "legendgroup": name, "line": _line(course, frame)}


def _line(course: JitCourse, frame: Frame) -> dict[str, Any]:
    style = variant_style(frame.position(course.label))
    return {"color": tint(style.colour, _ALPHA), "width": 1.2, "dash": style.dash}


def _warm_up(courses: Sequence[JitCourse]) -> list[dict[str, Any]]:
    """Shaded, as elsewhere; nothing without warm-up."""
    begin = min(float(course.edges[0]) for course in courses)
    if begin >= 0:
        return []
    return [
        {
            "type": "rect", "layer": "below", "xref": "x", "yref": "paper", "x0": begin, "x1": 0,
            "y0": 0, "y1": 1, "fillcolor": BAND, "line": {"width": 0},
        }
    ]  # fmt: skip


def _about(courses: Sequence[JitCourse]) -> list[str]:
    most = max(course.requests for course in courses)
    point = "a request" if most == 1 else f"the median of up to {most} requests"
    parts = [
        f"Forks that carried evidence, and are in no comparison unless all did: each point is {point}.",
        "Below, compilations that began by compiler, and deoptimisations, counted in cells of equal length.",
    ]
    if any(float(course.edges[0]) < 0 for course in courses):
        parts.append("What is shaded is warm-up.")
    return parts


def _table(courses: Sequence[JitCourse]) -> Grid:
    headers = ("Fork", "C1", "C2", "Deopts")
    lines = tuple(
        (
            fork_name(course.label, course.block),
            *(f"{int(values.sum()):,}" for values in (course.c1, course.c2, course.deoptimised)),
        )
        for course in courses
    )
    return Grid("Events of the JIT compilers, warm-up included", headers, lines, frozenset({0}))
