"""Minutes to a verdict among the details of a run."""

from collections.abc import Callable

import msgspec

from benchctl.report.costs import costs_grid
from benchctl.report.formats import render
from benchctl.results.model import RunRecord
from benchctl.stats.analyse import analyse_run


def test_a_line_a_task_and_metric_in_the_details_only(record: RunRecord):
    analysis = analyse_run(record)
    grid = costs_grid(analysis)
    assert grid is not None
    assert len(grid.lines) == 6
    assert grid.headers == ("Operation", "Metric", "CV %", "Forks a side", "Pair, s", "Minutes")
    assert "Minutes to find a difference of 10 % in four of five runs" in render(
        analysis, details=True, width=200
    )
    assert "Minutes to find" not in render(analysis)


def test_minutes_are_forks_times_seconds(record: RunRecord):
    analysis = analyse_run(record)
    (first, *_) = analysis.costs
    # Forks of 20 s on either side, which differ by 2 %: three are enough.
    assert (first.forks, first.pair_s, first.minutes) == (3, 40.0, 2.0)
    line = costs_grid(analysis)
    assert line is not None
    assert line.lines[0][3:6] == ("3", "40.0", "2.0")


def test_several_contenders_have_a_column(build: Callable[..., RunRecord]):
    grid = costs_grid(analyse_run(build(variants=("es", "os", "noinline"))))
    assert grid is not None
    assert grid.headers[2] == "Variant"
    assert len(grid.lines) == 12


def test_without_a_spread_there_is_no_table(record: RunRecord):
    nothing = msgspec.structs.replace(analyse_run(record), costs=())
    assert costs_grid(nothing) is None


def test_what_the_host_probe_would_save_is_a_column_where_it_is_known(record: RunRecord):
    analysis = analyse_run(record)
    costs = (msgspec.structs.replace(analysis.costs[0], minutes_adjusted=1.25), *analysis.costs[1:])
    grid = costs_grid(msgspec.structs.replace(analysis, costs=costs))
    assert grid is not None
    assert [line[-1] for line in grid.lines[:2]] == ["1.2", "n/a"]
    assert grid.title.endswith("a pair of forks; the last column with the host's probes held equal")
