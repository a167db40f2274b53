from collections.abc import Callable

import msgspec

from benchctl.report.layout import collect_notes
from benchctl.results.figures import TaskSummary
from benchctl.results.model import RunRecord
from benchctl.stats.analyse import analyse_run


def test_what_every_row_shares_is_said_once_without_a_number(build: Callable[..., RunRecord]):
    notes = collect_notes(analyse_run(build(forks=1)))
    assert [doubt.code for doubt in notes.numbered] == ["answers-differ"]
    assert [doubt.code for doubt in notes.general] == ["single-fork", "small-scale", "one-index-build"]


def test_numbers_follow_the_order_of_the_rows(build: Callable[..., RunRecord]):
    def failing(summary: TaskSummary, _variant: str, _block: int) -> TaskSummary:
        failures = {"rejected": 1} if summary.label == "desc_sort_timestamp" else {}
        return msgspec.structs.replace(summary, failures=failures)

    analysis = analyse_run(build(edit=failing))
    notes = collect_notes(analysis)
    assert [notes.cell(row.caveats).text for row in analysis.rows[:3]] == ["1 2", "", "3"]


def test_notes_of_the_run_come_along(build: Callable[..., RunRecord]):
    analysis = analyse_run(build(caveats=("the governor is powersave",)))
    assert collect_notes(analysis).general[0].text == "the governor is powersave"
