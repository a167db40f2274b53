"""What tables of results say; whole texts are among the goldens."""

import io
from collections.abc import Callable

import msgspec
import pytest
from rich.console import Console

from benchctl.report.formats import all_notes, analysis_sections, render
from benchctl.report.layout import precision_table, result_tables, value_text
from benchctl.report.sentences import headline, verdict
from benchctl.report.table import Notes, plain, text_of
from benchctl.results.figures import TaskSummary
from benchctl.results.model import RunRecord
from benchctl.results.plan import StopSpec
from benchctl.stats.analyse import analyse, analyse_run
from benchctl.stats.compare import Verdict
from builders import of_requests


def difficult(summary: TaskSummary, variant: str, block: int):
    """One noisy task, one that OpenSearch cannot do, one with few samples that had not settled."""
    if summary.label == "desc_sort_timestamp":
        factor = 1 + 0.1 * ((block * 3 + len(variant)) % 5)
        return msgspec.structs.replace(summary, throughput_per_s=summary.throughput_per_s * factor)
    if summary.label == "range":
        return msgspec.structs.replace(of_requests(summary, 10), drift=-0.3 - 0.001 * block)
    if variant == "os":
        return msgspec.structs.replace(
            summary, samples=0, throughput_per_s=None, service_time=None, unsupported="unknown aggregation"
        )
    return summary


def test_text_begins_with_the_verdict(build: Callable[..., RunRecord]):
    analysis = analyse_run(build())
    first, second, _ = render(analysis, width=80).split("\n\n", 2)
    assert first == headline(analysis)
    assert " ".join(second.split()) == f"VERDICT {verdict(analysis)}"


def test_notes_stand_alone(build: Callable[..., RunRecord]):
    notes = plain([all_notes(analyse_run(build(edit=difficult)))], 200)
    assert "composite-date_histogram-daily: os cannot do this operation: unknown aggregation" in notes
    assert "all: one index build per engine" in notes


def test_a_verdict_says_that_requests_failed(build: Callable[..., RunRecord]):
    def failing(summary: TaskSummary, variant: str, _block: int) -> TaskSummary:
        failures = {"http_error": 1} if (summary.label, variant) == ("range", "os") else {}
        return msgspec.structs.replace(summary, failures=failures)

    lines = render(analyse_run(build(edit=failing)), width=140).splitlines()
    assert sum("os slower, requests failed" in line for line in lines if line.startswith("range ")) == 2
    assert sum("requests failed" in line for line in lines) == 2


def test_text_has_no_control_sequences_even_where_colour_is_forced(
    record: RunRecord, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in render(analyse_run(record))


def test_a_terminal_gets_colours(record: RunRecord):
    stream = io.StringIO()
    console = Console(file=stream, width=100, force_terminal=True, color_system="standard")
    console.print(text_of(analysis_sections(analyse_run(record))))
    assert "\x1b[1;31mos slower" in stream.getvalue()


@pytest.mark.parametrize("contender", ["os", "os slower", "equivalent"])
@pytest.mark.parametrize(
    ("verdict", "text", "style"),
    [
        ("equivalent", "equal", "32"),
        ("faster", "{} faster", "1;32"),
        ("slower", "{} slower", "1;31"),
        ("different", "different ({} slower)", "33"),
        ("inconclusive", "inconclusive", ""),
    ],
)
def test_a_verdict_has_one_colour_everywhere_whatever_weakens_it_and_whoever_it_names(
    build: Callable[..., RunRecord], contender: str, verdict: Verdict, text: str, style: str
):
    def unsettled(summary: TaskSummary, _variant: str, block: int) -> TaskSummary:
        return msgspec.structs.replace(summary, drift=-0.3 - 0.001 * block)

    analysis = analyse_run(build(edit=unsettled))
    row = analysis.rows[0]
    found = msgspec.structs.replace(
        row.comparisons[0], verdict=verdict, contender=contender, provisional=False
    )
    analysis = msgspec.structs.replace(analysis, rows=(msgspec.structs.replace(row, comparisons=(found,)),))
    stream = io.StringIO()
    console = Console(file=stream, width=200, force_terminal=True, color_system="standard")
    console.print(text_of(analysis_sections(analysis), 200))
    shown = f"{text.format(contender)}, not warmed up"
    assert (f"\x1b[{style}m{shown}\x1b[0m" if style else f" {shown} ") in stream.getvalue()
    (cell,) = [
        cell for cell in next(result_tables(analysis, Notes((), ()))[0].cells) if cell.verdict is not None
    ]
    assert (cell.text, cell.verdict) == (shown, verdict)


def test_precision_says_what_a_difference_takes(build: Callable[..., RunRecord]):
    analysis = analyse_run(build())
    grid = precision_table(analysis)
    assert grid is not None
    assert (grid.titles[-1], analysis.block_s) == ("To go", 40.0)
    further = analysis.rows[0].comparisons[0].further
    assert grid.texts[0][-1] == ("" if further is None else f"{further * 40 / 60:.1f}")
    several = precision_table(analyse_run(build(variants=("es", "os", "noinline"))))
    assert several is not None
    assert (several.titles[2], len(several.texts)) == ("Variant", 12)
    assert precision_table(analyse_run(build(forks=1))) is None


def test_markup_in_reasons_is_shown_as_it_is(build: Callable[..., RunRecord]):
    def reasoned(summary: TaskSummary, _variant: str, _block: int) -> TaskSummary:
        return msgspec.structs.replace(summary, throughput_per_s=None, unsupported="[bold]no[/bold] [x]")

    assert "[bold]no[/bold] [x]" in render(analyse_run(build(edit=reasoned)))


def test_long_names_of_variants_lose_nothing(record: RunRecord):
    name = "es@8.19.0-with-a-rather-long-name.and-more"
    forks = {name: record.done("es"), "os": record.done("os")}
    wide = render(analyse(forks, record.plan), width=120)
    assert [part in wide for part in ("es@8.19.0-with-a-", "rather-long-name.and-", "more")] == [True] * 3
    narrow = render(analyse(forks, record.plan), width=80)
    assert max(len(line) for line in narrow.splitlines()) <= 80
    assert "…" not in narrow


def test_rows_of_several_challenges_are_told_apart_everywhere(record: RunRecord):
    schedules = record.plan.schedules * 2
    again = [msgspec.structs.replace(one, schedule=1) for one in record.forks[0].summaries]
    forks = tuple(msgspec.structs.replace(fork, summaries=(*fork.summaries, *again)) for fork in record.forks)
    plan = msgspec.structs.replace(record.plan, schedules=schedules)
    text = render(analyse_run(msgspec.structs.replace(record, plan=plan, forks=forks)), width=160)
    for number in (1, 2):
        assert f"big5rangedebug ({number} of 2): throughput" in text
        assert f"big5rangedebug ({number} of 2): range " in text


@pytest.mark.parametrize(("looks", "stop"), [(1, None), (3, None), (1, StopSpec(decided=True))])
def test_the_legend_names_the_test_that_holds_at_all_looks(
    record: RunRecord, looks: int, stop: StopSpec | None
):
    plan = msgspec.structs.replace(record.plan, stop=stop)
    seen = msgspec.structs.replace(record, looks=looks, plan=plan)
    text = render(analyse_run(seen), width=400)
    assert ("mixture t-test" in text, "p is times 4, intervals are at 98.75%" in text) == (
        stop is not None,
        looks == 3,
    )


def test_values_beside_a_change_are_those_of_its_pairs(build: Callable[..., RunRecord]):
    """A slow fork whose partner is missing is in no pair, and in no value beside a change of pairs."""
    record = build()
    forks = tuple(fork for fork in record.forks if (fork.block, fork.variant) != (1, "os"))
    slow = next(fork for fork in forks if fork.block == 1)
    summaries = tuple(
        msgspec.structs.replace(one, throughput_per_s=(one.throughput_per_s or 0.0) / 9)
        for one in slow.summaries
    )
    forks = tuple(
        msgspec.structs.replace(fork, summaries=summaries) if fork is slow else fork for fork in forks
    )
    analysis = analyse_run(msgspec.structs.replace(record, forks=forks))
    for row in (one for one in analysis.rows if one.metric == "throughput"):
        (one,) = row.comparisons
        shown = [float(value_text(side, one).replace(",", "")) for side in row.figures]
        assert 100 * (shown[1] / shown[0] - 1) == pytest.approx(one.effect_percent, abs=0.2)
