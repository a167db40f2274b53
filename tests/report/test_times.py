"""All the times of a task side by side, where they are known and there are enough requests for them."""

from collections.abc import Callable

import msgspec

from benchctl.report.details import times_grid
from benchctl.report.tables import render_text
from benchctl.results.figures import Quantiles, TaskSummary
from benchctl.results.model import RunRecord
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import Analysis

MS = 1e6
TOOK = Quantiles(2 * MS, 3 * MS, 4 * MS, 0, 0, 0)


def analysed(build: Callable[..., RunRecord], **changes: object) -> Analysis:
    def changed(summary: TaskSummary, _variant: str, _block: int) -> TaskSummary:
        return msgspec.structs.replace(summary, **changes)

    return analyse_run(build(edit=changed))


def test_there_is_a_column_for_every_time_that_is_known(build: Callable[..., RunRecord]):
    grid = times_grid(analysed(build, took=TOOK, pages=TOOK))
    assert grid is not None
    assert grid.titles == ("Operation", "Variant", "took", "service", "page")
    assert all(line[2] == "2.000 / 3.000 / 4.000" for line in grid.texts)


def test_few_requests_have_no_high_quantiles(build: Callable[..., RunRecord]):
    for samples, cell in (
        (9, "2.000"),
        (10, "2.000 / 3.000"),
        (99, "2.000 / 3.000"),
        (100, "2.000 / 3.000 / 4.000"),
    ):
        grid = times_grid(analysed(build, took=TOOK, samples=samples))
        assert grid is not None
        assert {line[2] for line in grid.texts} == {cell}


def test_a_task_without_times_has_no_line(build: Callable[..., RunRecord]):
    assert times_grid(analysed(build, service_time=None, latency=None)) is None


def test_only_details_show_them(build: Callable[..., RunRecord]):
    found = analysed(build, took=TOOK)
    assert "Times: p50" in render_text(found, details=True)
    assert "Times: p50" not in render_text(found)


def test_a_batch_has_a_line_for_every_search(build: Callable[..., RunRecord]):
    half = Quantiles(MS, 1.5 * MS, 2 * MS, 0, 0, 0)
    grid = times_grid(analysed(build, took=TOOK, took_sum=TOOK, took_parts=(half, TOOK)))
    assert grid is not None
    assert grid.titles == ("Operation", "Variant", "took", "took sum", "service")
    searches = [line[2:] for line in grid.texts if line[0].endswith("range, search 1")]
    assert searches == [("1.000 / 1.500 / 2.000", "", "")] * 2
