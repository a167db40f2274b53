"""The chart of service time and compilers."""

import numpy as np

from benchctl.evidence.charts import jit_chart
from benchctl.report.charts import Frame
from benchctl.stats.task_shape import JitCourse
from figures import drawn

FRAME = Frame("0-0", "range", ("es", "os"))


def course(label: str, begin_s: float = -1.0, points: int = 4) -> JitCourse:
    counts = np.array([3, 0, 1])
    return JitCourse(
        label=label,
        block=2,
        seconds=np.arange(points) * 1.0,
        service_ns=np.full(points, 5e6),
        requests=1,
        edges=np.linspace(begin_s, 5, 4),
        c1=counts,
        c2=counts * 2,
        deoptimised=counts * 0,
    )


def test_every_fork_has_a_trace_in_each_of_four_panels():
    chart = jit_chart([course("es"), course("os")], FRAME)
    assert chart is not None
    traces = drawn(chart)["data"]
    assert sorted(trace.get("yaxis", "y") for trace in traces) == sorted(["y", "y2", "y3", "y4"] * 2)
    assert {trace["name"] for trace in traces} == {"es, fork 2", "os, fork 2"}
    steps = next(trace for trace in traces if trace.get("yaxis") == "y3")
    assert (steps["x"], steps["y"]) == ([-1.0, 1.0, 3.0, 5.0], [6.0, 0.0, 2.0, 2.0])
    assert steps["line"]["shape"] == "hv"
    assert [trace["showlegend"] for trace in traces].count(True) == 2
    assert chart.table is not None
    assert chart.table.texts == (("es, fork 2", "4", "8", "0"), ("os, fork 2", "4", "8", "0"))


def test_warm_up_is_shaded_where_there_is_some():
    shaded, plain = jit_chart([course("es")], FRAME), jit_chart([course("es", begin_s=0.0)], FRAME)
    assert shaded is not None
    assert plain is not None
    assert ["shapes" in drawn(chart)["layout"] for chart in (shaded, plain)] == [True, False]
    assert ("shaded" in shaded.about, "shaded" in plain.about) == (True, False)


def test_without_requests_nothing_is_drawn():
    assert jit_chart([course("es", points=0)], FRAME) is None
    assert jit_chart([], FRAME) is None
