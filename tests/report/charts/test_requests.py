"""What the charts of a task's requests show: `golden/requests.txt` has them scene by scene."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import golden
from benchctl.report.charts import Chart, Frame
from benchctl.report.charts.requests import course_chart, distribution_chart, flow_chart
from benchctl.results.figures import Course
from benchctl.results.reading import ForkSource, Telemetry
from builders import make_summary
from figures import chart_text
from sampled import make_samples, make_source, make_task_shapes, make_telemetry

GOLDEN = Path(__file__).parent / "golden" / "requests.txt"
FRAME = Frame("0-0-range", "range", ("es", "os"))
WARMING = Course("warm-up", 6, 10, (0, 3, 6), (9e6, 7e6, 5e6))
NEVER = Course("no steady state", 6, 10, (0, 6), (5e6, 9e6))
MANY = Course("warm-up", 9, 10, tuple(range(10)), tuple(1e6 * (10 - place) for place in range(10)))
PAUSES = make_telemetry(18, [(5.5, 7.0), (6.5, 9.0)], node_cpu_percent=150.0, driver_cpu_percent=8.0)
MERGES = make_telemetry(18, merges_current=2.0)
LONG = make_telemetry(600, [(number * 0.5, 5.0) for number in range(1_200)], node_cpu_percent=9.0)
# The last reading is alone in its point: all others are of two.
UNEVEN = make_telemetry(151, node_cpu_percent=0.0)
UNEVEN.series["node_cpu_percent"][-1] = 151.0
FEW = make_telemetry(9, node_cpu_percent=150.0)


def course(*sources: ForkSource, **task: Any) -> Chart | None:
    return course_chart(make_task_shapes(*sources, **task), FRAME)


def flow(*sources: ForkSource) -> Chart | None:
    return flow_chart(make_task_shapes(*sources), FRAME)


def distribution(*sources: ForkSource, frame: Frame = FRAME) -> Chart | None:
    shapes = make_task_shapes(*sources)
    return distribution_chart(shapes, frame, kind="service time", of=lambda fork: fork.shape.service)


def steps(
    label: str = "es", block: int = 0, *, count: int = 10, warmup: int = 0, of: Any = None, **columns: Any
) -> ForkSource:
    """Requests of 5 ms, with the course that was found in them."""
    rows = make_samples([5.0] * (warmup + count), warmup=[True] * warmup + [False] * count, **columns)
    return make_source([rows], label, block, summaries=(make_summary("range", 5.0, course=of),))


def row_of_60(
    label: str = "es", block: int = 0, ms: float = 100.0, telemetry: Telemetry | None = None, **columns: Any
) -> ForkSource:
    """60 requests one after the other, the first 20 of them warm-up."""
    rows = make_samples([ms] * 60, warmup=[True] * 20 + [False] * 40, **columns)
    summaries = (make_summary("range", ms, unit="docs"),)
    return make_source([rows], label, block, summaries=summaries, telemetry=telemetry)


def rising(*ms: float, label: str = "es", count: int = 100) -> list[ForkSource]:
    rows = [make_samples([value * (1 + place / count) for place in range(count)]) for value in ms]
    return [make_source([one], label, block) for block, one in enumerate(rows)]


SCENES: dict[str, Callable[[], Chart | None]] = {
    "measured requests count from one, and warm-up ends at zero": lambda: course(
        steps(warmup=3, of=WARMING), steps("os", 4)
    ),
    "nothing is shaded without warm-up": lambda: course(steps()),
    "every variant has a panel of the same scale": lambda: course(steps(), steps("os"), steps("os", 1)),
    "points of many requests have a band": lambda: course(steps(count=4_000)),
    "what never settled has no mark": lambda: course(steps(of=NEVER)),
    "tasks of a given time are drawn over seconds": lambda: course(
        steps(count=8, warmup=2, of=Course("flat", 4, 8, (0, 4), (5e6, 5e6))), time_period=1.0
    ),
    "failures are counted in words": lambda: course(steps(outcome=[0, 1, 1, *[0] * 7])),
    "of many segments the table has the last ones": lambda: course(steps(of=MANY)),
    "a single request is a mark": lambda: course(steps(count=1)),
    "no request is no chart": lambda: course(steps(outcome=1)),
    "rates are over time": lambda: flow(row_of_60(weight=5)),
    "everything was measured": lambda: flow(make_source([make_samples([100.0] * 20)])),
    "every variant is one entry of the legend": lambda: flow(
        row_of_60(), row_of_60("os"), row_of_60("os", 1)
    ),
    "telemetry stands below on the same clock": lambda: flow(row_of_60(ms=200.0, telemetry=PAUSES)),
    "merges have a panel where they were asked for": lambda: flow(row_of_60(ms=200.0, telemetry=MERGES)),
    "forks without telemetry among others are named": lambda: flow(
        row_of_60(ms=200.0, telemetry=MERGES), row_of_60("os", 1)
    ),
    "many pauses and readings are joined": lambda: flow(row_of_60(ms=10_000.0, telemetry=LONG)),
    "a fork that only failed is a line of nothing": lambda: flow(row_of_60(outcome=3)),
    "the mean is over readings, not over points": lambda: flow(row_of_60(ms=151_000 / 60, telemetry=UNEVEN)),
    "telemetry of few readings is left out": lambda: flow(row_of_60(telemetry=FEW)),
    "telemetry that ended before is left out": lambda: flow(row_of_60(start_ms=20_000, telemetry=FEW)),
    "the variant is the median of its forks' quantiles": lambda: distribution(*rising(1.0, 2.0, 9.0)),
    "named percentiles are marked": lambda: distribution(
        *rising(1.0, count=1_000), *rising(2.0, label="os", count=1_000)
    ),
    "a variant keeps its style where the first has nothing": lambda: distribution(*rising(2.0, label="os")),
    "quantiles that too few requests carry are not drawn": lambda: distribution(
        *rising(1.0), *rising(2.0, label="os", count=150)
    ),
    "the median ends where the shortest fork does": lambda: distribution(
        *rising(1.0), make_source([make_samples([2.0] * 1_000)], "es", 1)
    ),
    "few requests have no panel of percentiles": lambda: distribution(*rising(1.0, count=10)),
    "names cannot bring tags": lambda: distribution(
        *rising(1.0, 2.0, label="<b>es"), frame=Frame("k", "g", ("<b>es",))
    ),
}


def test_every_scene_is_drawn_as_before(request: pytest.FixtureRequest):
    scenes = [f"# {name}\n{chart_text(scene())}" for name, scene in SCENES.items()]
    golden.agree(request.config, GOLDEN, "\n".join(scenes))


def test_a_time_that_no_fork_has_is_no_chart():
    shapes = make_task_shapes(*rising(1.0))
    assert distribution_chart(shapes, FRAME, kind="latency", of=lambda fork: fork.shape.latency) is None
