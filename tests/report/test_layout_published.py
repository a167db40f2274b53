"""The blog's and the luceneutil talk's published values: our tables give the same differences."""

import pytest

from benchctl.report.layout import collect_notes, result_tables
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import Analysis
from benchctl.stats.metrics import THROUGHPUT, metric
from report.published import (
    BLOG_MS,
    BLOG_QPS,
    FROM_UNROUNDED,
    JVMS,
    TALK,
    blog_record,
    talk_record,
)

SERVICE_TIME = metric("service_time")

BLOG = {**BLOG_MS, **BLOG_QPS}


def differences(analysis: Analysis) -> dict[str, str]:
    (grid,) = result_tables(analysis, collect_notes(analysis))
    place = grid.titles.index("Diff %")
    return {line[0]: line[place] for line in grid.texts}


def talk_analysis(jvms: int) -> Analysis:
    return analyse_run(talk_record(jvms), metrics=(THROUGHPUT,))


@pytest.mark.parametrize("name", BLOG)
def test_every_value_of_the_blog_gives_its_difference(name: str):
    metric = SERVICE_TIME if name in BLOG_MS else THROUGHPUT
    found = differences(analyse_run(blog_record(name), metrics=(metric,)))
    for line in BLOG[name]:
        assert float(found[line.operation]) == pytest.approx(float(line.diff.rstrip("%")), abs=0.056)


@pytest.mark.parametrize("jvms", [1, JVMS])
def test_every_value_of_the_talk_gives_its_difference(jvms: int):
    found = differences(talk_analysis(jvms))
    for line in TALK:
        expected = FROM_UNROUNDED.get(line.task, line.diff)
        assert float(found[line.task].split(" ")[0]) == pytest.approx(float(expected.rstrip("%")))


def test_true_intervals_are_narrower_than_luceneutils_ranges_with_twenty_jvms():
    for row in talk_analysis(JVMS).rows:
        line = next(line for line in TALK if line.task == row.label)
        comparison = row.comparisons[0]
        assert comparison.low_percent is not None
        assert comparison.high_percent is not None
        assert line.low < comparison.low_percent < comparison.high_percent < line.high
