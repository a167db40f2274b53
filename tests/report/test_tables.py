"""Whole expected texts: read the golden files to see what users see."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from benchctl.report.html.parts import table
from benchctl.report.layout import result_grids
from benchctl.report.notes import Notes
from benchctl.report.paragraph import verdict_paragraph
from benchctl.report.tables import break_name, render_text, terminal_report
from benchctl.results.figures import TaskSummary
from benchctl.results.model import RunRecord
from benchctl.stats.analyse import analyse, analyse_run
from benchctl.stats.compare import Verdict

GOLDEN = Path(__file__).parent / "golden"


def difficult(summary: TaskSummary, variant: str, block: int):
    """One noisy task, one that OpenSearch cannot do, one with few samples that had not settled."""
    if summary.label == "desc_sort_timestamp":
        factor = 1 + 0.1 * ((block * 3 + len(variant)) % 5)
        return msgspec.structs.replace(summary, throughput_per_s=summary.throughput_per_s * factor)
    if summary.label == "range":
        return msgspec.structs.replace(summary, samples=10, drift=-0.3)
    if variant == "os":
        return msgspec.structs.replace(
            summary, samples=0, throughput_per_s=None, service_time=None, unsupported="unknown aggregation"
        )
    return summary


@pytest.mark.parametrize(
    ("name", "width", "options"),
    [
        ("plain-80", 80, {}),
        ("plain-120", 120, {}),
        ("difficult-80", 80, {"edit": difficult}),
        ("difficult-120", 120, {"edit": difficult}),
        ("one-fork-80", 80, {"forks": 1}),
        ("three-variants-80", 80, {"variants": ("es", "os", "noinline")}),
        ("three-variants-120", 120, {"variants": ("es", "os", "noinline")}),
        ("one-variant-80", 80, {"variants": ("es",)}),
    ],
)
def test_text(build: Callable[..., RunRecord], name: str, width: int, options: dict[str, Any]):
    record = build(**options)
    text = render_text(analyse_run(record), plan=record.plan, width=width)
    assert text == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")
    assert max(len(line) for line in text.splitlines()) <= width


def test_text_begins_with_the_conclusion(build: Callable[..., RunRecord]):
    analysis = analyse_run(build())
    top = render_text(analysis, width=80).partition("\n\n")[0]
    assert " ".join(top.split()) == verdict_paragraph(analysis)
    assert render_text(analyse_run(build(variants=("es",)))).startswith("big5rangedebug: throughput")


def test_a_verdict_says_that_requests_failed(build: Callable[..., RunRecord]):
    def failing(summary: TaskSummary, variant: str, _block: int) -> TaskSummary:
        failures = {"http_error": 1} if (summary.label, variant) == ("range", "os") else {}
        return msgspec.structs.replace(summary, failures=failures)

    lines = render_text(analyse_run(build(edit=failing)), width=140).splitlines()
    assert sum("os slower, requests failed" in line for line in lines if line.startswith("range ")) == 2
    assert sum("requests failed" in line for line in lines) == 2


def test_text_has_no_control_sequences_even_where_colour_is_forced(
    record: RunRecord, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in render_text(analyse_run(record))


def test_a_terminal_gets_colours(record: RunRecord):
    stream = io.StringIO()
    console = Console(file=stream, width=100, force_terminal=True, color_system="standard")
    console.print(terminal_report(analyse_run(record), width=100))
    assert "\x1b[1;31mos slower" in stream.getvalue()


@pytest.mark.parametrize("contender", ["os", "os slower", "equivalent"])
@pytest.mark.parametrize(
    ("verdict", "text", "style"),
    [
        ("equivalent", "equivalent", "32"),
        ("faster", "{} faster", "1;32"),
        ("slower", "{} slower", "1;31"),
        ("different", "different ({} slower)", "33"),
        ("inconclusive", "inconclusive", ""),
    ],
)
def test_a_verdict_has_one_colour_everywhere_whatever_weakens_it_and_whoever_it_names(
    build: Callable[..., RunRecord], contender: str, verdict: Verdict, text: str, style: str
):
    def unsettled(summary: TaskSummary, _variant: str, _block: int) -> TaskSummary:
        return msgspec.structs.replace(summary, drift=-0.3)

    analysis = analyse_run(build(edit=unsettled))
    row = analysis.rows[0]
    found = msgspec.structs.replace(row.comparisons[0], verdict=verdict, contender=contender)
    analysis = msgspec.structs.replace(
        analysis, rows=(msgspec.structs.replace(row, comparisons=(found,)),), order_effects=()
    )
    stream = io.StringIO()
    console = Console(file=stream, width=200, force_terminal=True, color_system="standard")
    console.print(terminal_report(analysis, width=200))
    shown = f"{text.format(contender)}, not steady"
    assert (f"\x1b[{style}m{shown}\x1b[0m" if style else f" {shown} ") in stream.getvalue()
    (cell,) = [
        cell for cell in table(result_grids(analysis, Notes((), ()))[0]).lines[0] if cell.verdict is not None
    ]
    assert (cell.text, cell.verdict) == (shown, verdict)


def test_markup_in_reasons_is_shown_as_it_is(build: Callable[..., RunRecord]):
    def reasoned(summary: TaskSummary, _variant: str, _block: int) -> TaskSummary:
        return msgspec.structs.replace(summary, throughput_per_s=None, unsupported="[bold]no[/bold] [x]")

    assert "[bold]no[/bold] [x]" in render_text(analyse_run(build(edit=reasoned)))


def test_long_names_of_variants_lose_nothing(record: RunRecord):
    name = "es@8.19.0-with-a-rather-long-name.and-more"
    forks = {name: record.done("es"), "os": record.done("os")}
    wide = render_text(analyse(forks, record.plan), width=120)
    assert [part in wide for part in ("es@8.19.0-with-a-", "rather-long-name.and-", "more")] == [True] * 3
    narrow = render_text(analyse(forks, record.plan), width=80)
    assert max(len(line) for line in narrow.splitlines()) <= 80
    assert "…" not in narrow


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("range", ["range"]),
        ("composite-date_histogram-daily", ["composite-date_", "histogram-daily"]),
        ("a" * 45, ["a" * 20, "a" * 20, "a" * 5]),
        ("", [""]),
    ],
)
def test_names_break_at_joints(name: str, lines: list[str]):
    assert break_name(name, 20).split("\n") == lines


def test_rows_of_several_challenges_are_told_apart_everywhere(record: RunRecord):
    schedules = record.plan.schedules * 2
    again = [msgspec.structs.replace(one, schedule=1) for one in record.forks[0].summaries]
    forks = tuple(msgspec.structs.replace(fork, summaries=(*fork.summaries, *again)) for fork in record.forks)
    plan = msgspec.structs.replace(record.plan, schedules=schedules)
    text = render_text(analyse_run(msgspec.structs.replace(record, plan=plan, forks=forks)), width=160)
    for number in (1, 2):
        assert f"big5rangedebug ({number} of 2): throughput" in text
        assert f"big5rangedebug ({number} of 2): range " in text
