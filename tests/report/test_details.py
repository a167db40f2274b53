"""The tables below the results: every kind of time, what builds explain, cost."""

from collections.abc import Callable

import msgspec

from benchctl.report.details import (
    times_table,
    units_table,
)
from benchctl.report.formats import render
from benchctl.results.figures import Quantiles, TaskSummary
from benchctl.results.model import RunRecord
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import Analysis

MS = 1e6
TOOK = Quantiles(2 * MS, 3 * MS, 4 * MS)


def analysed(build: Callable[..., RunRecord], **changes: object) -> Analysis:
    def changed(summary: TaskSummary, _variant: str, _block: int) -> TaskSummary:
        return msgspec.structs.replace(summary, **changes)

    return analyse_run(build(edit=changed))


def test_there_is_a_column_for_every_time_that_is_known(build: Callable[..., RunRecord]):
    grid = times_table(analysed(build, took=TOOK, pages=TOOK))
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
        grid = times_table(analysed(build, took=TOOK, samples=samples))
        assert grid is not None
        assert {line[2] for line in grid.texts} == {cell}


def test_a_task_without_times_has_no_line(build: Callable[..., RunRecord]):
    assert times_table(analysed(build, service_time=None, latency=None)) is None


def test_the_first_and_the_second_request_come_before_settled_ones(build: Callable[..., RunRecord]):
    grid = times_table(analysed(build, first_ns=9 * MS, second_ns=5 * MS))
    assert grid is not None
    assert grid.titles == ("Operation", "Variant", "first", "second", "service")
    assert {line[2:4] for line in grid.texts} == {("9.000", "5.000")}


def test_only_details_show_them(build: Callable[..., RunRecord]):
    found = analysed(build, took=TOOK)
    assert "Times: p50" in render(found, details=True)
    assert "Times: p50" not in render(found)


def test_a_batch_has_a_line_for_every_search(build: Callable[..., RunRecord]):
    half = Quantiles(MS, 1.5 * MS, 2 * MS)
    grid = times_table(analysed(build, took=TOOK, took_sum=TOOK, took_parts=(half, TOOK)))
    assert grid is not None
    assert grid.titles == ("Operation", "Variant", "took", "took sum", "service")
    searches = [line[2:] for line in grid.texts if line[0].endswith("range, search 1")]
    assert searches == [("1.000 / 1.500 / 2.000", "", "")] * 2


def on_builds(record: RunRecord, builds: int) -> RunRecord:
    """Put the forks on the builds in turn."""
    forks = tuple(msgspec.structs.replace(fork, index_build=fork.block % builds) for fork in record.forks)
    return msgspec.structs.replace(record, forks=forks)


def test_builds_have_their_part_of_the_spread(build: Callable[..., RunRecord]):
    grid = units_table(analyse_run(on_builds(build(), 2)))
    assert grid is not None
    assert grid.texts[0][:4] == ("desc_sort_timestamp", "throughput", "es", "3 2")
    assert units_table(analyse_run(build())) is None


def test_texts_name_builds_where_they_are_the_unit(build: Callable[..., RunRecord]):
    record = on_builds(build(), 3)
    words = " ".join(render(analyse_run(record), plan=record.plan).split())
    assert "Interval and p: paired t over pairs of index builds, on logarithms" in words
    assert "the index build is the unit" in words
