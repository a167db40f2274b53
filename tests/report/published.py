"""The tables that others have published, as records of one fork per variant, or of twenty."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from scipy.optimize import brentq

from benchctl.results.figures import Quantiles, TaskSummary
from benchctl.results.model import RunRecord
from benchctl.track.model import Challenge, Task
from builders import ES, NS_PER_MS, OS, make_fork, make_plan, make_record, make_summary

JVMS = 20  # what luceneutil starts of either side by default


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


class TalkLine(NamedTuple):
    """One line of the table in "Learning from 11+ years of Apache Lucene benchmarks".

    Standard deviations are in percent, as printed; the range and p-value are luceneutil's own.
    """

    task: str
    base: float
    base_sd: float
    candidate: float
    candidate_sd: float
    diff: str
    low: int
    high: int
    p: float


TALK = (
    TalkLine("OrHighNotMed", 674.76, 4.8, 680.97, 8.0, "0.9%", -11, 14, 0.659),
    TalkLine("PKLookup", 153.45, 4.3, 155.13, 3.8, "1.1%", -6, 9, 0.394),
    TalkLine("Fuzzy1", 56.57, 9.1, 57.76, 6.7, "2.1%", -12, 19, 0.406),
    TalkLine("BrowseMonthSSDVFacets", 19.59, 10.4, 20.03, 6.7, "2.3%", -13, 21, 0.413),
    TalkLine("AndHighHighDayTaxoFacets", 19.22, 1.6, 22.13, 2.2, "15.1%", 11, 19, 0.0),
    TalkLine("AndHighMedDayTaxoFacets", 25.62, 1.5, 29.93, 2.2, "16.8%", 12, 20, 0.0),
    TalkLine("MedTermDayTaxoFacets", 12.96, 2.2, 18.99, 3.4, "46.5%", 39, 53, 0.0),
    TalkLine("OrHighMedDayTaxoFacets", 3.97, 2.0, 5.81, 4.3, "46.5%", 39, 53, 0.0),
    TalkLine("BrowseMonthTaxoFacets", 2.59, 10.9, 11.16, 35.8, "330.4%", 255, 423, 0.0),
    TalkLine("BrowseDateTaxoFacets", 2.44, 9.7, 13.12, 51.8, "438.1%", 343, 553, 0.0),
    TalkLine("BrowseDayOfYearTaxoFacets", 2.44, 9.7, 13.13, 51.7, "438.2%", 343, 552, 0.0),
)

# The talk computed these from unrounded figures; from the two decimals that it prints, other digits follow.
FROM_UNROUNDED = {
    "BrowseMonthSSDVFacets": "2.2%",
    "OrHighMedDayTaxoFacets": "46.3%",
    "BrowseMonthTaxoFacets": "330.9%",
    "BrowseDateTaxoFacets": "437.7%",
    "BrowseDayOfYearTaxoFacets": "438.1%",
}


def blog_record(name: str) -> RunRecord:
    """One fork of each engine with a table's figures."""
    lines = BLOG_MS.get(name) or BLOG_QPS[name]
    in_ms = name in BLOG_MS
    sides = {
        "es": [_summary(place, line.operation, line.es, in_ms=in_ms) for place, line in enumerate(lines)],
        "os": [_summary(place, line.operation, line.os, in_ms=in_ms) for place, line in enumerate(lines)],
    }
    return _record(name, {engine: [summaries] for engine, summaries in sides.items()})


def talk_record(jvms: int = 1) -> RunRecord:
    """The talk's figures; with several JVMs a side, of their means and standard deviations."""
    sides: dict[str, list[list[TaskSummary]]] = {"es": [], "os": []}
    for jvm in range(jvms):
        base, candidate = [], []
        for place, line in enumerate(TALK):
            # luceneutil prints both in percent of the base.
            own = line.candidate_sd * line.base / line.candidate
            base.append(_summary(place, line.task, line.base * _deviation(line.base_sd, jvm, jvms)))
            candidate.append(_summary(place, line.task, line.candidate * _deviation(own, jvm, jvms)))
        sides["es"].append(base)
        sides["os"].append(candidate)
    return _record("talk", sides)


def _deviation(percent: float, jvm: int, jvms: int) -> float:
    """A factor on the mean: evenly spread on the log scale, so that the CV of all is this many percent."""
    if jvms == 1:
        return 1.0
    places = np.linspace(-1, 1, jvms)

    def excess(width: float) -> float:
        values = np.exp(width * places)
        return float(100 * values.std(ddof=1) / values.mean()) - percent

    return float(np.exp(brentq(excess, 0, 1) * places[jvm]))


def _summary(place: int, label: str, value: float, *, in_ms: bool = False) -> TaskSummary:
    changes: dict[str, Any] = {"task": place, "samples": 100}
    if in_ms:
        changes["service_time"] = Quantiles(*[value * NS_PER_MS] * 3)
    else:
        changes["throughput_per_s"] = value
    return make_summary(label, 1000.0, **changes)


def _record(name: str, sides: dict[str, list[list[TaskSummary]]]) -> RunRecord:
    labels: Sequence[str] = [summary.label for summary in sides["es"][0]]
    plan = make_plan(
        schedules=(Challenge(name, tuple(Task(label, iterations=100) for label in labels)),),
        forks=len(sides["es"]),
        variants=(ES, OS),
    )
    forks = [
        make_fork(engine, block, *summaries)
        for engine, group in sides.items()
        for block, summaries in enumerate(group)
    ]
    return msgspec.structs.replace(make_record(name, plan=plan), status="complete", forks=tuple(forks))
