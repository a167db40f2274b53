"""The tables that the blog has published, as records of one fork per variant."""

from typing import NamedTuple

import msgspec

from benchctl.results.figures import Quantiles, TaskSummary
from benchctl.results.model import RunRecord
from benchctl.track.model import Challenge, Task
from builders import ES, NS_PER_MS, OS, make_fork, make_plan, make_record, make_summary


class Line(NamedTuple):
    """One line of the blog's tables: what it prints for both engines, and for their difference."""

    operation: str
    es: float
    os: float
    diff: str


# "Elasticsearch Benchmarking, Part 4: Inlining", in the order of the post.
BLOG_MS = {
    "big5": (
        Line("range", 1964.79, 3537.2, "+80.03%"),
        Line("keyword-in-range", 1970.58, 3552.7, "+80.29%"),
        Line("sort_numeric_desc", 729.779, 1308.88, "+79.35%"),
        Line("sort_numeric_asc", 773.676, 825.3, "+6.67%"),
    ),
    "big5-warmed": (
        Line("range", 3274.09, 3502.62, "+6.98%"),
        Line("keyword-in-range", 3292.79, 3521.31, "+6.94%"),
        Line("sort_numeric_desc", 1075.16, 1016.13, "-5.49%"),
        Line("sort_numeric_asc", 841.639, 819.042, "-2.68%"),
    ),
}
BLOG_QPS = {
    "big5-range": (Line("range", 0.512, 0.286, "-44.14%"),),
    "range-only": (Line("range", 0.69, 0.7, "+1.45%"),),
    "big5rangedebug": (
        Line("desc_sort_timestamp", 0.96, 0.94, "-2.08%"),
        Line("composite-date_histogram-daily", 0.04, 0.04, "0"),
        Line("range", 0.42, 0.33, "-21.43%"),
    ),
    "range-only-short": (
        Line("Range - In big5rangedebug", 0.42, 0.33, "-21.43%"),
        Line("Range - After big5rangedebug", 0.45, 0.33, "-26.67%"),
        Line("Range - Fresh Node", 0.65, 0.68, "+4.62%"),
    ),
    "no-inlining": (
        Line("desc_sort_timestamp", 0.55, 0.56, "+1.82%"),
        Line("composite-date_histogram-daily", 0.02, 0.02, "0"),
        Line("range", 0.26, 0.27, "+3.85%"),
    ),
    "range-no-inlining": (
        Line("Range - After big5rangedebug", 0.45, 0.33, "-26.67%"),
        Line("Range - Fresh Node", 0.65, 0.68, "+4.62%"),
        Line("Range - Fresh Node, no inlining", 0.28, 0.29, "+3.57%"),
    ),
    "big5rangedebug-histo-size-1": (
        Line("desc_sort_timestamp", 0.91, 0.87, "-4.40%"),
        Line("composite-date_histogram-daily-size-1", 0.04, 0.04, "0"),
        Line("range", 0.29, 0.33, "+13.79%"),
    ),
}


def blog_record(name: str) -> RunRecord:
    """One fork of each engine with a table's figures."""
    lines = BLOG_MS.get(name) or BLOG_QPS[name]

    def summary(place: int, label: str, value: float) -> TaskSummary:
        if name in BLOG_MS:
            times = Quantiles(*[value * NS_PER_MS] * 3)
            return make_summary(label, 1000.0, task=place, samples=100, service_time=times)
        return make_summary(label, 1000.0, task=place, samples=100, throughput_per_s=value)

    forks = [
        make_fork(
            engine,
            0,
            *(summary(at, line.operation, getattr(line, engine)) for at, line in enumerate(lines)),
        )
        for engine in ("es", "os")
    ]
    tasks = tuple(Task(line.operation, iterations=100) for line in lines)
    plan = make_plan(schedules=(Challenge(name, tasks),), forks=1, variants=(ES, OS))
    return msgspec.structs.replace(make_record(name, plan=plan), status="complete", forks=tuple(forks))
