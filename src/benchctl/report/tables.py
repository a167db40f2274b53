"""Grids on a terminal, or as plain text of a given width: nothing is cut, long words break at joints."""

import io
import re
import shlex
import textwrap
from collections.abc import Iterable, Mapping
from typing import Literal

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from benchctl.redline.report import curve_grids, curve_plot
from benchctl.report.details import further_grids, precision_grids
from benchctl.report.layout import (
    Command,
    Notes,
    collect_notes,
    headline,
    paired_points,
)
from benchctl.report.numbers import visible
from benchctl.report.planning import planning_lines
from benchctl.report.table import Cell, Column, Table
from benchctl.results.plan import Plan
from benchctl.stats.analysis import Analysis
from benchctl.stats.caveat import Replicate
from benchctl.stats.compare import Comparison
from benchctl.stats.metrics import metric_of
from benchctl.sweep.report import all_results, verdict

WIDE = 100
_TITLE_WIDTH = 20
_TESTED_OVER: Mapping[Replicate, tuple[str, str]] = {
    "fork": ("blocks", "forks"),
    "build": ("pairs of index builds", "index builds"),
    "run": ("pairs of runs", "runs"),
}
VERDICT_STYLES: dict[str | None, str] = {
    "equivalent": "green",
    "faster": "bold green",
    "slower": "bold red",
    "different": "yellow",
}
_JOINT = re.compile(r"(?<=[-_.@:])(?=\S)")


def render_text(
    analysis: Analysis, *, plan: Plan | None = None, width: int = WIDE, details: bool = False
) -> str:
    """Return the whole report as plain text without control sequences, of 80 columns or more.

    Without `plan` no command is proposed; `details` adds every kind of time, and what the driver itself did.
    """
    return _plain(terminal_report(analysis, plan=plan, width=width, details=details), width)


def render_page(
    grids: Iterable[Table],
    sentences: Iterable[str | Command],
    width: int = WIDE,
    *,
    notes: Notes | None = None,
) -> str:
    """Return tables that are not of an analysis, with sentences and notes below them, as plain text.

    Sentences are one paragraph each, and a command gets lines of its own.
    """
    parts: list[RenderableType] = []
    for grid in grids:
        parts += [paragraph(grid.title, width, style="bold"), _table(grid, width), Text()]
    parts += [_planning_paragraph(line, width) for line in sentences]
    if notes is not None:
        parts += _note_paragraphs(notes, width)
    return _plain(Group(*parts), width)


def render_part(
    analysis: Analysis, part: Literal["notes", "precision"], *, plan: Plan | None = None, width: int = WIDE
) -> str:
    """Return one part of the whole report as plain text; without `plan` no command is proposed.

    `notes` come each with the tasks that it is about, `precision` with what more forks would show.
    """
    if part == "precision":
        run_doubts = [doubt.text for doubt in analysis.caveats if doubt.code in {"test-mode", "unfinished"}]
        return render_page(precision_grids(analysis), [*run_doubts, *planning_lines(analysis, plan)], width)
    notes = collect_notes(analysis)
    lines = [
        (dict.fromkeys(analysis.where(row) for row in analysis.rows if doubt in row.caveats), doubt)
        for doubt in notes.numbered
    ]
    texts = [f"{', '.join(names)}: {doubt.text}" for names, doubt in lines]
    texts += [f"all: {doubt.text}" for doubt in notes.general]
    return _plain(Group(*(paragraph(text, width) for text in (*texts, *legend(analysis)))), width)


def _plain(report: RenderableType, width: int) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=width, color_system=None, legacy_windows=False)
    console.print(report, markup=False, highlight=False)
    return "".join(f"{line.rstrip()}\n" for line in stream.getvalue().rstrip().splitlines())


def terminal_report(
    analysis: Analysis, *, plan: Plan | None = None, width: int = WIDE, details: bool = False
) -> RenderableType:
    """Return the whole report as in `render_text`, coloured if the console can."""
    notes = collect_notes(analysis)
    parts: list[RenderableType] = []
    parts += [paragraph(headline(analysis), width, style="bold"), Text()]
    parts += [paragraph(verdict(analysis), width, lead="VERDICT  ", style="bold"), Text()]
    for result in all_results(analysis, notes):
        if isinstance(result, str):
            parts += [paragraph(result, width), Text()]
        else:
            parts += [paragraph(result.title, width, style="bold"), _table(result, width), Text()]
    for line in legend(analysis):
        parts.append(paragraph(line, width))
    parts += _note_paragraphs(notes, width)
    for grid in further_grids(analysis, details=details):
        parts += [Text(), paragraph(grid.title, width, style="bold"), _table(grid, width)]
    if analysis.redline is not None:
        for grid in curve_grids(analysis.redline):
            parts += [Text(), paragraph(grid.title, width, style="bold"), _table(grid, width)]
        if plot := curve_plot(analysis.redline, width):
            parts += [Text(), Text(visible("\n".join(plot)), no_wrap=True)]
    parts.append(Text())
    parts += [_planning_paragraph(line, width) for line in planning_lines(analysis, plan)]
    return Group(*parts)


def legend(analysis: Analysis) -> list[str]:
    """Return how to read the tables."""
    counts = ", ".join(f"{name} {count}" for name, count in analysis.forks.items())
    lines = [f"Values: geometric means over forks ({counts})."] if analysis.task_rows else []
    if analysis.redline is not None:
        lines.append(
            "A fork's other figures are those of its last step at the red-line, when its node is warmest; in "
            "curves, a fork counts with the median of its steps at a load."
        )
    if len(analysis.variants) > 1 and analysis.task_rows:
        comparisons = [one for row in analysis.task_rows for one in row.comparisons]
        units = _TESTED_OVER[analysis.replicate]
        baseline = "the first one at the same point" if paired_points(analysis) else analysis.variants[0]
        test = f"paired t over {units[0]}" if analysis.paired else f"Welch's t over {units[1]}"
        lines.append(
            f"Diff %: variant / {baseline} - 1. Interval and p: {test}, on logarithms; intervals "
            f"are unadjusted, p is adjusted {adjustment(analysis)}{in_spite_of_looks(comparisons)}."
        )
    if analysis.build_rows:
        lines.append(builds_legend(analysis))
    comparisons = [one for row in analysis.rows for one in row.comparisons]
    if any(one.compared_as == "difference" for one in comparisons):
        lines.append("Differences: of arithmetic means; p and interval on the values, not on logarithms.")
    elif any(metric_of(row.metric).additive for row in analysis.rows):
        lines.append(
            "What may be 0, such as pauses: arithmetic means; p on the values themselves, Fieller's interval."
        )
    return [*lines, *(f"{line}." for line in analysis.differences)]


def builds_legend(analysis: Analysis) -> str:
    """Return how to read the table of index builds."""
    found = [one for row in analysis.build_rows for one in row.comparisons]
    if not found:
        return "Index builds: geometric means over builds."
    made = "paired t over builds, which were made in turns" if found[0].paired else "Welch's t over builds"
    usual = sum(metric_of(row.metric).figure.usual for row in analysis.build_rows)
    rows = (
        f"its first {usual} rows, and over the others" if 0 < usual < len(analysis.build_rows) else "its rows"
    )
    family = adjustment(analysis) if analysis.method == "holm" else f"over {rows} (Benjamini-Hochberg)"
    return f"Index builds: geometric means over builds; {made}, on logarithms; p is adjusted {family}."


def in_spite_of_looks(comparisons: Iterable[Comparison]) -> str:
    """Return the test that looks at a run before its end ask for; empty if there were none."""
    sequential = any(one.sequential for one in comparisons)
    return "; both hold however often the run was looked at (mixture t-test)" if sequential else ""


def adjustment(analysis: Analysis) -> str:
    """Return the family over which p-values are adjusted, and the method."""
    if analysis.method == "holm":
        return "over all tasks and metrics (Holm)"
    return "over all tasks of its metric (Benjamini-Hochberg)"


def break_name(name: str, width: int) -> str:
    """Fold a long name at its joints: `composite-date_histogram-daily` -> two lines under 30 columns."""
    parts = [piece for part in _JOINT.split(name) for piece in textwrap.wrap(part, width) or [part]]
    lines = [""]
    for part in parts:
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _table(grid: Table, width: int) -> RichTable:
    """Narrow tables have thinner gaps, and names and intervals on two lines; no column is left out."""
    narrow = width < WIDE
    # Breaks of our own keep words whole where the library would fold the widest columns anywhere.
    columns = zip(grid.titles, *grid.texts, strict=True)
    unbroken = sum(max(len(text) for text in column) + 2 for column in columns)
    broken = narrow or unbroken > width
    table = RichTable(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 0) if narrow else (0, 1, 0, 0)
    )
    for column in grid.columns:
        title = column.title
        table.add_column(
            visible(title if " " in title else break_name(title, _TITLE_WIDTH)),
            justify="left" if column.flush_left else "right",
            no_wrap=column.kind == "name" or (broken and column.kind == "verdict"),
            overflow="fold",
        )
    for line in grid.lines:
        cells = zip(line, grid.columns, strict=True)
        table.add_row(*(_cell(cell, column, narrow=narrow, broken=broken) for cell, column in cells))
    return table


def _cell(cell: Cell, column: Column, *, narrow: bool, broken: bool) -> Text:
    text = "\n".join(map(visible, cell.stacked.split("\n"))) if broken else visible(cell.text)
    if narrow and column.fold:
        text = break_name(text, column.fold)
    return Text(text, style=VERDICT_STYLES.get(cell.verdict, ""))


def _note_paragraphs(notes: Notes, width: int) -> Iterable[Text]:
    for number, doubt in enumerate(notes.numbered, 1):
        yield paragraph(doubt.text, width, lead=f"{number:>3}  ")
    for doubt in notes.general:
        yield paragraph(doubt.text, width, lead="all  ")


def _planning_paragraph(line: str | Command, width: int) -> Text:
    if isinstance(line, Command):
        return Text(visible("\n".join([f"{line.purpose}:", *command_lines(shlex.split(line.line), width)])))
    return paragraph(line, width)


def command_lines(words: list[str], width: int, *, lead: str = "  ") -> list[str]:
    """Return a command line over several lines that a shell takes as one."""
    lines = [lead]
    for quoted in (shlex.quote(word) for word in words):
        if lines[-1] != lead and len(lines[-1]) + len(quoted) + len(" \\") > width:
            lines[-1] += "\\"
            lines.append("    ")
        lines[-1] += f"{quoted} "
    lines[-1] = lines[-1].rstrip()
    return lines


def paragraph(text: str, width: int, *, lead: str = "", style: str = "") -> Text:
    """Return a text in lines of its own, with a hanging indent after its lead."""
    wrapped = textwrap.fill(
        visible(text),
        width,
        initial_indent=lead,
        subsequent_indent=" " * len(lead),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return Text(wrapped, style=style)
