from collections.abc import Callable

import msgspec
import pytest

from benchctl.report.charts.effects import fork_charts
from benchctl.results.figures import TaskSummary
from benchctl.results.model import RunRecord
from benchctl.stats.analyse import analyse_run
from benchctl.stats.compare import own_interval
from figures import drawn


def test_every_fork_is_a_dot_and_the_mean_has_its_own_interval(record: RunRecord):
    analysis = analyse_run(record)
    charts = fork_charts(analysis)
    assert len(charts) == len(analysis.rows) == len({chart.key for chart in charts})
    for chart, row in zip(charts, analysis.rows, strict=True):
        mean, dots = drawn(chart)["data"][2:]
        side = row.figures[1]
        assert dots["x"] == pytest.approx(side.values, rel=1e-4)
        assert mean["x"] == pytest.approx([side.value], rel=1e-4)
        low, high = own_interval(side.values)
        assert mean["x"][0] + mean["error_x"]["array"][0] == pytest.approx(high, rel=1e-4)
        assert mean["x"][0] - mean["error_x"]["arrayminus"][0] == pytest.approx(low, rel=1e-4)
        assert chart.group == row.label


def test_dots_stand_in_the_order_of_their_blocks_inside_the_row_of_their_variant(record: RunRecord):
    for chart in fork_charts(analyse_run(record)):
        _, first, _, second = drawn(chart)["data"]
        assert first["y"] == sorted(first["y"])
        assert -0.5 < min(first["y"]) <= max(first["y"]) < 0.5 < min(second["y"])
        assert [text.split(":")[0] for text in first["text"]] == [f"es, fork {block}" for block in range(5)]


def test_a_fork_without_a_figure_is_no_dot_and_is_in_the_table(build: Callable[..., RunRecord]):
    def holed(summary: TaskSummary, variant: str, block: int) -> TaskSummary:
        if (variant, block) == ("os", 2):
            return msgspec.structs.replace(summary, throughput_per_s=None)
        return summary

    chart = fork_charts(analyse_run(build(edit=holed)))[0]
    dots = drawn(chart)["data"][3]
    assert len(dots["x"]) == 4
    assert "os, fork 2" not in str(dots["text"])
    assert "2: n/a" in chart.table.texts[1][3]


def test_one_fork_is_a_dot_in_the_middle_without_interval(build: Callable[..., RunRecord]):
    for chart in fork_charts(analyse_run(build(forks=1))):
        mean, dots = drawn(chart)["data"][:2]
        assert dots["y"] == [0]
        assert "error_x" not in mean
        assert chart.table.texts[0][2] == "n/a"


def test_an_operation_that_one_side_cannot_do_shows_the_other(build: Callable[..., RunRecord]):
    def unable(summary: TaskSummary, variant: str, _block: int) -> TaskSummary:
        if variant == "os":
            return TaskSummary(0, summary.task, summary.label, summary.operation, unsupported="no such thing")
        return summary

    charts = fork_charts(analyse_run(build(edit=unable)))
    assert all(len(drawn(chart)["data"]) == 2 for chart in charts)


def test_names_are_text_to_plotly(record: RunRecord):
    analysis = analyse_run(record)
    rows = tuple(
        msgspec.structs.replace(
            row, figures=tuple(msgspec.structs.replace(one, variant="<i>v</i>") for one in row.figures)
        )
        for row in analysis.rows
    )
    for chart in fork_charts(msgspec.structs.replace(analysis, rows=rows)):
        assert "<i>" not in str(drawn(chart))
