"""What a run prints at its end: nothing is left out in silence. Whole screens are among the goldens."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchctl.report.charts.effects import forest_charts
from benchctl.report.formats import render
from benchctl.report.screen import LINES, _interval, render_screen
from benchctl.results.figures import TaskSummary
from benchctl.results.model import RunRecord
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import Analysis
from benchctl.stats.metrics import metric
from builders import of_requests
from report.conftest import complete_record

MORE = "benchctl show 20260101-000000-big5rangedebug-abcd -v"


def cold(summary: TaskSummary, _variant: str, block: int) -> TaskSummary:
    return msgspec.structs.replace(of_requests(summary, 10), drift=-0.5 - 0.001 * block)


def of_tasks(count: int) -> Analysis:
    """More rows than a screen has lines, the later ones of larger differences; only the last is sure."""
    analysis = analyse_run(complete_record(answers=None))
    row = analysis.rows[0]
    rows = []
    for task in range(count):
        verdict = "slower" if task == count - 1 else "inconclusive"
        found = msgspec.structs.replace(row.comparisons[0], effect_percent=-float(task), verdict=verdict)
        rows.append(msgspec.structs.replace(row, task=task, label=f"task-{task}", comparisons=(found,)))
    return msgspec.structs.replace(analysis, rows=tuple(rows))


def test_all_of_a_schedule_fits_though_something_came_to_nothing():
    text = render_screen(of_tasks(150), more=MORE).plain
    assert len(text.splitlines()) <= LINES


def test_a_run_without_any_row_has_a_screen(build: Callable[..., RunRecord]):
    record = build(forks=0, status="failed")
    assert "Nothing was measured" in render_screen(analyse_run(record), plan=record.plan).plain
    nothing = msgspec.structs.replace(analyse_run(record), rows=())
    assert "Nothing was measured" in render_screen(nothing, plan=record.plan).plain


@given(st.integers(1, 60), st.integers(LINES, 80), st.integers(80, 200))
def test_rows_that_do_not_fit_are_counted(count: int, lines: int, width: int):
    text = render_screen(of_tasks(count), width=width, lines=lines, more=MORE).plain
    shown = [line for line in text.splitlines() if line.startswith("task-")]
    assert len(text.splitlines()) <= lines
    assert max(map(len, text.splitlines())) <= width
    assert any(line.startswith(f"task-{count - 1} ") and line.endswith("SLOWER") for line in shown)
    hidden = count - len(shown)
    assert ("more row" in text) == bool(hidden)
    if hidden:
        assert f"{hidden} more row" in text
        names = {int(line.split()[0].removeprefix("task-")) for line in shown}
        assert names == set(range(hidden, count))  # the largest differences


def test_a_mark_of_every_row_is_said_once(build: Callable[..., RunRecord]):
    lines = render_screen(analyse_run(build(edit=cold))).plain.splitlines()
    assert sum(line.startswith("all") and "warming up" in line for line in lines) == 1
    assert not any(line.endswith("warming up") for line in lines)


def test_nothing_is_proposed_where_every_verdict_stands(build: Callable[..., RunRecord]):
    record = build(answers=None)
    analysis = analyse_run(record)
    rows = tuple(
        msgspec.structs.replace(
            row, comparisons=tuple(msgspec.structs.replace(one, verdict="slower") for one in row.comparisons)
        )
        for row in analysis.rows
    )
    text = render_screen(analysis, plan=record.plan).plain
    # What has settled gets more forks, never more documents.
    assert "benchctl extend" in text
    assert "--docs" not in text
    decided = msgspec.structs.replace(analysis, rows=rows)
    assert "Next" not in render_screen(decided, plan=record.plan).plain


def test_long_names_of_variants_stand_in_the_headline(build: Callable[..., RunRecord]):
    analysis = analyse_run(build())
    name = "es@8.19.0-with-a-rather-long-name"
    rows = tuple(
        msgspec.structs.replace(
            row,
            comparisons=tuple(msgspec.structs.replace(one, contender=name) for one in row.comparisons),
            figures=(row.figures[0], msgspec.structs.replace(row.figures[1], variant=name)),
        )
        for row in analysis.rows
    )
    found = msgspec.structs.replace(analysis, rows=rows, variants=("es", name), forks={"es": 5, name: 5})
    text = render_screen(found).plain
    assert f"big5rangedebug: {name} vs es 8.11.0" in text
    assert "es@8…-name" in text
    assert max(map(len, text.splitlines())) <= 80


def test_other_hosts_are_named(build: Callable[..., RunRecord]):
    plan = msgspec.structs.replace(build().plan, load_hosts=("a", "b"))
    text = render_screen(analyse_run(build()), plan=plan, width=100).plain
    assert "Hosts  load from a, b" in text
    assert "Hosts" not in render_screen(analyse_run(build()), plan=build().plan).plain


def test_control_characters_of_names_are_made_visible(build: Callable[..., RunRecord]):
    analysis = analyse_run(build())
    rows = tuple(msgspec.structs.replace(row, label="range\x1b[31m") for row in analysis.rows)
    assert "\x1b" not in render_screen(msgspec.structs.replace(analysis, rows=rows)).plain


def test_what_may_be_0_is_shown_with_an_interval_that_may_have_no_upper_end():
    def paused(summary: TaskSummary, variant: str, block: int) -> TaskSummary:
        pause = 0.9 + 0.1 * block if variant == "os" else 0.004 * (block % 2)
        return msgspec.structs.replace(summary, meters={"gc": pause})

    record = complete_record(edit=paused)
    found = analyse_run(record, metrics=[metric("gc")])
    (one,) = found.rows[0].comparisons
    assert (one.verdict, one.high_percent) == ("slower", None)
    assert f" over {one.low_percent:+,.0f}%" in render_screen(found, plan=record.plan).plain
    for kind in ("text", "markdown", "csv", "json"):
        assert "Infinity" not in render(found, kind, records=[record])
    assert "or more" in render(found, "markdown", records=[record])
    assert forest_charts(found)


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (28.0, None, "over +28%"),
        (-100.0, 2224.0, "up to +2,224%"),
        (-99.9, 97_729.0, "unbounded"),
        (28.0, 97_729.0, "over +28%"),
        (-7.8, 9.1, "-7.8..+9.1%"),
    ],
)
def test_intervals_with_an_open_end_say_so(
    build: Callable[..., RunRecord], low: float, high: float | None, said: str
):
    row = analyse_run(build()).rows[0]
    one = msgspec.structs.replace(row.comparisons[0], low_percent=low, high_percent=high)
    assert _interval(one, row.figures) == said


@pytest.mark.parametrize(("later", "word"), [(0.0, "EQUAL"), (0.9, "SLOWER")])
def test_what_never_happened_has_a_verdict_without_a_ratio(later: float, word: str):
    def paused(summary: TaskSummary, variant: str, block: int) -> TaskSummary:
        return msgspec.structs.replace(
            summary, meters={"gc": later + block if variant == "os" and later else 0.0}
        )

    record = complete_record(forks=6, edit=paused)
    found = analyse_run(record, metrics=[metric("gc")])
    assert render_screen(found, plan=record.plan).plain.count(f" {word}") == len(found.rows)
    for kind in ("text", "markdown", "csv", "json"):
        assert "0 in every fork of es" in render(found, kind, records=[record]) or kind == "csv"
    assert not forest_charts(found)
