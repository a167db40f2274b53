"""Results on standard output: coloured on a terminal, plain for programs."""

import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from benchctl.cli.comparison import Measures
from benchctl.cli.streams import emit, is_terminal, paint, say, text_height, text_width
from benchctl.report.facts import fact_lines, fact_markdown
from benchctl.report.formats import Format, render
from benchctl.report.numbers import counted, visible
from benchctl.report.planning import command_for_one_run
from benchctl.report.screen import render_screen
from benchctl.report.tables import render_part, terminal_report
from benchctl.results.model import RunRecord
from benchctl.results.plan import Plan
from benchctl.results.select import Selection, Side
from benchctl.results.store import RunFolder, reference
from benchctl.spec import ComparedAs
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import Analysis
from benchctl.stats.decisions import GateResult

FOR_READERS: frozenset[Format] = frozenset({"text", "markdown"})

Part = Literal["all", "notes", "precision", "host"]
"""What of a report is printed when it need not fit a screen."""


def print_run(
    folder: RunFolder,
    output_format: Format,
    *,
    usual: Path,
    part: Part | None = None,
    figures: tuple[str, ...] = (),
    compared_as: ComparedAs | None = None,
) -> RunRecord:
    """Print what a run found, and return its record.

    `usual` is the default folder of runs; without `part`, readers get what fits a screen. Without
    `figures` and `compared_as` it is compared as was asked for when it was measured.
    """
    record = folder.load()
    if part == "host":
        say("\n".join(fact_lines(record, width=text_width())))
        return record
    # Nobody can repeat what another tool measured by a command of ours.
    plan = record.plan if record.imported is None else None
    measures = Measures(figures, compared_as=compared_as)
    metrics = measures.metrics(record.plan) if figures or compared_as else None
    found = measures.told(analyse_run(record, metrics=metrics), record.plan)
    if output_format == "html":
        # What draws pages takes a while to load, and no other format needs it.
        from benchctl.report.html.page import run_page, single_file_page  # noqa: PLC0415 - see above

        emit(single_file_page(run_page(folder, record, found, usual=usual)))
        return record
    more = f"benchctl show {reference(folder, usual)} -v"
    place = folder.path.absolute().parent
    runs = None if place == usual.absolute() else place
    _print(found, output_format, plan, [record], part=part, more=more, runs=runs)
    if output_format == "text" and part == "all":
        say("\n" + "\n".join(fact_lines(record, width=text_width())) + f"\n\nRun: {folder.path}")
    elif output_format == "markdown":
        say(f"\n{fact_markdown(record)}" if part == "all" else f"\nRun: {folder.path}")
    return record


def print_comparison(
    selection: Selection,
    analysis: Analysis,
    output_format: Format,
    *,
    gate: GateResult | None = None,
    verbose: bool = False,
) -> None:
    """Print stored results side by side, and say where they come from.

    `verbose` gives readers everything, not only what fits a screen.
    """
    records = [part.run for part in selection.parts]
    runs = {record.id for record in records}
    plan = records[0].plan if len(runs) == 1 and records[0].imported is None else None
    origins = [*map(_origin, selection.parts), *selection.remarks] if output_format in FOR_READERS else []
    together = command_for_one_run(selection) if output_format in FOR_READERS else None
    _print(
        analysis,
        output_format,
        plan,
        records,
        part="all" if verbose else None,
        gate=gate,
        more="the same command with -v",
        below=len(origins) + (together is not None),
    )
    for text in origins:
        say(textwrap.fill(visible(text), text_width(), subsequent_indent="  "))
    if together is not None:
        text = f"{together.purpose}: {visible(together.line)}"
        say(textwrap.fill(text, text_width(), subsequent_indent="  ", break_on_hyphens=False))
    if gate is not None and output_format in FOR_READERS:
        say(f"\nGate: {gate.text}")
        for reason in gate.reasons:
            text = textwrap.fill(visible(reason), text_width(), initial_indent="  ", subsequent_indent="    ")
            say(text)


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
    below: int = 0,
) -> None:
    """Print an analysis; a screen keeps `below` lines free."""
    width, terminal = text_width(), is_terminal(sys.stdout)
    if output_format == "text" and part is None:
        # A terminal's last line is the prompt's.
        lines = text_height() - below - terminal
        shown = render_screen(analysis, plan=plan, width=width, lines=lines, more=more, runs=runs)
        if terminal:
            paint(shown)
        else:
            say(shown.plain)
    elif output_format == "text" and part in ("notes", "precision"):
        say(render_part(analysis, part, plan=plan, width=width), nl=False)
    elif output_format == "text" and terminal:
        paint(terminal_report(analysis, plan=plan, width=width, details=True))
    else:
        written = render(
            analysis,
            output_format,
            plan=plan,
            records=records,
            width=width,
            details=part == "all",
            gate=gate,
        )
        emit(written)
