"""Results on standard output: coloured on a terminal, plain for programs."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.text import Text

from benchctl.cli.comparison import Measures
from benchctl.cli.streams import emit, is_terminal, paint, say, text_height, text_width
from benchctl.report.facts import fact_sections
from benchctl.report.formats import all_notes, analysis_sections, render, render_screen
from benchctl.report.numbers import counted
from benchctl.report.table import Format, Items, Section, markdown, plain, text_of
from benchctl.results.model import RunRecord
from benchctl.results.plan import Plan
from benchctl.results.select import Selection, Side
from benchctl.results.store import RunFolder, reference
from benchctl.slices import hooks
from benchctl.spec import Diff
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import Analysis
from benchctl.stats.decisions import GateResult

if TYPE_CHECKING:
    from benchctl.report.html.page import Subject

Part = Literal["all", "notes", "host"]
"""Parts of a report that are printed when it need not fit a screen."""


def print_run(
    folder: RunFolder,
    output_format: Format,
    *,
    usual: Path,
    part: Part | None = None,
    figures: tuple[str, ...] = (),
    diff: Diff | None = None,
    html: Path | None = None,
) -> RunRecord:
    """Print what a run found, or write its page to the directory `html`, and return its record.

    `usual` is the default folder of runs; without `part`, readers get what fits a screen. Without
    `figures` and `diff` it is compared as was asked for when it was measured.
    """
    record = folder.load()
    if part == "host":
        say(plain([fact_sections(record)], text_width()), nl=False)
        return record
    measures = Measures(figures, diff=diff)
    metrics = measures.metrics(record.plan) if figures or diff else None
    analysis = measures.told(analyse_run(record, metrics=metrics), record.plan)
    if html is not None or output_format == "html":
        # What draws pages takes a while to load, and no other format needs it.
        from benchctl.report.html.page import run_page  # noqa: PLC0415 - see above

        print_page(run_page(folder, record, analysis, usual=usual), html)
        return record
    more = f"benchctl show {reference(folder, usual)} -v"
    place = folder.path.absolute().parent
    runs = None if place == usual.absolute() else place
    below: list[Section] = []
    if part == "all":
        if output_format in ("text", "markdown"):
            below += [[table] for tables in hooks("details") for table in tables(folder, record)]
        below.append(fact_sections(record))
    if below or output_format == "markdown":
        below.append([f"Run: {folder.path}"])
    _print(analysis, output_format, record.plan, [record], part=part, more=more, runs=runs, below=below)
    return record


def print_page(page: "Subject", target: Path | None) -> None:
    """Print a page, or write it to a directory."""
    # See `print_run`.
    from benchctl.report.html.page import render_page, write_html  # noqa: PLC0415

    if target is None:
        emit(render_page(page))
    else:
        say(f"Report: {write_html(target, render_page(page))}")


def print_comparison(
    selection: Selection,
    analysis: Analysis,
    output_format: Format,
    *,
    gate: GateResult | None = None,
    verbose: bool = False,
    runs: Path | None = None,
) -> None:
    """Print stored results side by side, and where they come from.

    `verbose` gives readers everything, not only what fits a screen; `runs` is their directory, None for
    the default one.
    """
    records = [part.run for part in selection.parts]
    ids = {record.id for record in records}
    plan = records[0].plan if len(ids) == 1 else None
    origins = [*map(_origin, selection.parts), *selection.remarks]
    below: list[Section] = [[Items("", tuple(origins))]]
    if gate is not None:
        below.append([Items(f"Gate: {gate.text}", tuple(gate.reasons))])
    _print(
        analysis,
        output_format,
        plan,
        records,
        part="all" if verbose else None,
        gate=gate,
        more="the same command with -v",
        runs=runs,
        below=below,
    )


def _origin(side: Side) -> str:
    forks = counted(len(side.forks), "fork")
    if not side.run.plan.schedules:
        forks = counted(len(side.run.builds_of(side.variant)), "index build")
    what = forks if side.variant == side.label else f"{forks} of {side.variant}"
    tags = f", tags {' '.join(side.run.tags)}" if side.run.tags else ""
    return f"{side.label}: {what} of run {side.run.id} ({side.run.created}{tags})"


def _print(
    analysis: Analysis,
    output_format: Format,
    plan: Plan | None,
    records: Sequence[RunRecord],
    *,
    part: Part | None,
    more: str,
    runs: Path | None = None,
    gate: GateResult | None = None,
    below: Sequence[Section] = (),
) -> None:
    """Print an analysis, and for readers what is `below` it."""
    width, terminal = text_width(), is_terminal(sys.stdout)
    if output_format == "markdown":
        emit(markdown([*analysis_sections(analysis, plan, details=part == "all"), *below]))
    elif output_format != "text":
        emit(render(analysis, output_format, records=records, gate=gate))
    elif part is None:
        # A terminal's last line is the prompt's; what a gate found may take more than a screen.
        lines = text_height() - terminal - len(plain(below[:1], width).splitlines())
        shown = render_screen(analysis, plan=plan, width=width, lines=lines, more=more, runs=runs)
        _show(Text("\n").join([shown, text_of(below, width)] if below else [shown]))
    elif part == "notes":
        _show(text_of([all_notes(analysis)], width))
    else:
        _show(text_of([*analysis_sections(analysis, plan, details=True), *below], width))


def _show(text: Text) -> None:
    if is_terminal(sys.stdout):
        paint(text)
    else:
        say(text.plain)
