"""The charts of a page that need samples: of every task that is reported, in the order of the tables."""

import re

from benchctl.report.chart import LEAST_POINTS, Chart, not_drawn
from benchctl.report.charts.boxes import box_chart
from benchctl.report.charts.course import course_chart
from benchctl.report.charts.distribution import distribution_chart
from benchctl.report.charts.flow import flow_chart
from benchctl.report.charts.panels import Frame
from benchctl.report.layout import task_name
from benchctl.stats.analysis import Analysis
from benchctl.stats.task_shape import RunShapes, TaskShapes


def sample_charts(shapes: RunShapes, analysis: Analysis) -> list[Chart]:
    """Draw what was read.

    Args:
        shapes: of the run, or of all runs that are compared.
        analysis: of the same forks; its rows say which tasks are reported.

    Returns:
        Up to five charts a task: latency where requests had a due time, service time, its course, by hits
        where these differ, and throughput. None for tasks without samples, or with very few.
    """
    groups = {(row.schedule, row.task): task_name(row, analysis) for row in analysis.rows}
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
        box_chart(shapes, frame),
        flow_chart(shapes, frame),
    ]


def _key(place: tuple[int, int], group: str) -> str:
    """Unique by the place; the name is for those who read addresses."""
    return f"{place[0]}-{place[1]}-{re.sub(r'[^A-Za-z0-9]+', '-', group).strip('-')}"
