"""Charts of evidence: service time over a task, with what the JIT compilers did on the same clock below."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from benchctl.errors import BenchctlError
from benchctl.evidence.files import JIT_DTYPES, JIT_FILE, fork_evidence
from benchctl.evidence.histories import history_tables
from benchctl.evidence.profile_report import profile_tables
from benchctl.report.charts import Chart, Frame, tint, variant_style
from benchctl.report.charts.panels import Panel, axis_name, milliseconds, plain, shaded, stacked, time_axis
from benchctl.report.table import Table, worded
from benchctl.results.model import ForkRecord, RunRecord
from benchctl.results.plan import Place
from benchctl.results.reading import SampleFile, task_windows
from benchctl.results.samples import Columns, select
from benchctl.results.store import RunFolder
from benchctl.stats.analysis import Analysis
from benchctl.stats.arrays import Integers
from benchctl.stats.task_shape import JitCourse, fork_name, jit_course

_SERVICE_PX = 200
_EVENTS_PX = 90
_ALPHA = 0.7


def jit_chart(courses: Sequence[JitCourse], frame: Frame) -> Chart | None:
    """Return the chart of one task from the forks that carried evidence; None if none has requests."""
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
    begin = min(float(course.edges[0]) for course in drawn)
    warm_up = [shaded(begin, 0)] if begin < 0 else []
    layout = stacked("Seconds since measuring began", panels, shapes=warm_up)
    return frame.chart(
        "jit",
        "Service time and the JIT compilers",
        _about(drawn),
        data,
        layout,
        _table(drawn),
    )


def _requests(course: JitCourse, frame: Frame) -> go.Scatter:
    style = variant_style(frame.position(course.label))
    return _trace(
        course, frame, mode="lines+markers", x=course.seconds, y=milliseconds(course.service_ns),
        marker={"color": style.colour, "symbol": style.symbol, "size": 4},
        showlegend=True, hovertemplate="%{y} ms at %{x} s",
    )  # fmt: skip


def _events(course: JitCourse, values: Integers, frame: Frame, *, axis: str, title: str) -> go.Scatter:
    """Steps: a count is that of its whole cell."""
    return _trace(
        course, frame, mode="lines", x=course.edges, y=np.append(values, values[-1]), yaxis=axis,
        line_shape="hv", showlegend=False, hovertemplate=f"%{{y}} {title} from %{{x}} s",
    )  # fmt: skip


def _trace(course: JitCourse, frame: Frame, **more: Any) -> go.Scatter:
    style = variant_style(frame.position(course.label))
    name = plain(fork_name(course.label, course.block))
    return go.Scatter(
        name=name,
        legendgroup=name,
        line={"color": tint(style.colour, _ALPHA), "width": 1.2, "dash": style.dash},
        **more,
    )


def _about(courses: Sequence[JitCourse]) -> list[str]:
    most = max(course.requests for course in courses)
    point = "a request" if most == 1 else f"the median of up to {most} requests"
    parts = [
        f"Forks that carried evidence, and are in no comparison unless all did: each point is {point}.",
        "Below, compilations that began by compiler, and deoptimizations, counted in cells of equal length.",
    ]
    if any(float(course.edges[0]) < 0 for course in courses):
        parts.append("What is shaded is warm-up.")
    return parts


def _table(courses: Sequence[JitCourse]) -> Table:
    lines = (
        (
            fork_name(course.label, course.block),
            *(f"{int(values.sum()):,}" for values in (course.c1, course.c2, course.deoptimised)),
        )
        for course in courses
    )
    columns = (worded("Fork"), "C1", "C2", "Deopts")
    return Table.of("Events of the JIT compilers, warm-up included", columns, lines)


def page(
    analysis: Analysis, folder: RunFolder | None = None, record: RunRecord | None = None
) -> tuple[list[Chart], list[Table]]:
    """Return charts of the analysis's tasks, call sites and profiles; nothing for a comparison.

    A profile that cannot be read does not cost a reader the page.
    """
    if folder is None or record is None:
        return [], []
    try:
        profiles = profile_tables(folder, record)
    except BenchctlError as err:
        profiles = [Table.of("Profiles", (worded("Cannot be read"),), ((err.message,),))]
    return _charts(folder, record, analysis), [*history_tables(folder, record), *profiles]


def _charts(folder: RunFolder, record: RunRecord, analysis: Analysis) -> list[Chart]:
    carrying = [fork for fork in record.forks if fork.status == "done" and "jit" in fork.evidence]
    found: dict[Place, list[JitCourse]] = {}
    for fork in sorted(carrying, key=lambda fork: (analysis.variants.index(fork.variant), fork.block)):
        try:
            for place, course in _courses(folder, fork):
                found.setdefault(place, []).append(course)
        except BenchctlError:
            # `benchctl explain` says why; figures and other charts do not depend on it.
            continue
    groups = {(row.schedule, row.task): analysis.where(row) for row in analysis.rows}
    charts = [
        jit_chart(found.get(place, []), Frame(f"{place[0]}-{place[1]}", group, analysis.variants))
        for place, group in groups.items()
    ]
    return [chart for chart in charts if chart is not None]


def _courses(folder: RunFolder, fork: ForkRecord) -> Iterator[tuple[Place, JitCourse]]:
    events = fork_evidence(folder, fork, JIT_FILE, JIT_DTYPES)
    if events is None or fork.samples is None:
        return
    windows = task_windows(folder, fork)
    requests = _by_place(folder, fork.samples)
    for place, window in windows.items():
        yield place, jit_course(fork.variant, fork.block, requests[place], events, window)


def _by_place(folder: RunFolder, samples: str) -> dict[Place, Columns]:
    chunks = list(SampleFile(folder.inside(samples)))
    rows = {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}
    keys = set(zip(rows["schedule"].tolist(), rows["task"].tolist(), strict=True))
    return {
        (schedule, task): select(rows, (rows["schedule"] == schedule) & (rows["task"] == task))
        for schedule, task in keys
    }
