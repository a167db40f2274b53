"""`benchctl compare` and `benchctl show`: stored results, side by side or of one run, in every format."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
from rich.text import Text

from benchctl.cli.comparison import Measures, compared
from benchctl.cli.options import (
    AmountType,
    check_html,
    complete_runs,
    diff_option,
    format_option,
    grouped,
    html_option,
    metric_option,
    require_runs,
    runs_option,
    verbose_option,
)
from benchctl.cli.streams import complain, emit, is_terminal, paint, say, text_height, text_width, typed_words
from benchctl.errors import BenchctlError, ExitCode, UsageError
from benchctl.quantities import PERCENT
from benchctl.report.facts import fact_sections
from benchctl.report.formats import all_notes, analysis_sections, render, render_screen
from benchctl.report.numbers import counted
from benchctl.report.table import Command, Format, Items, Section, markdown, plain, text_of
from benchctl.results.model import RunRecord
from benchctl.results.select import Archive, Side, at_point, choose_sides
from benchctl.results.store import RunFolder, reference, usual_runs
from benchctl.slices import hooks
from benchctl.stats.analyse import analyse_run
from benchctl.stats.analysis import Analysis
from benchctl.stats.decisions import GateResult, gate

if TYPE_CHECKING:
    from benchctl.report.html.page import Subject

Part = Literal["all", "notes", "host"]
"""Parts of a report that are printed when it need not fit a screen."""


_AS_MEASURED = Measures()
_EXIT_CODES = {"regression": ExitCode.REGRESSION, "inconclusive": ExitCode.INCONCLUSIVE}


_measures = grouped(
    "measures",
    Measures,
    metric_option,
    diff_option,
    click.option(
        "--quantile",
        "quantiles",
        type=float,
        multiple=True,
        help="Quantile of service time and latency. Repeatable.  [default: 0.9]",
    ),
    click.option(
        "--margin",
        type=AmountType(PERCENT),
        help="Difference that does not matter.  [default: 3% of throughput, 5% of times]",
    ),
)


@click.command("compare")
@click.argument("sides", nargs=-1, shell_complete=complete_runs)
@click.option("--challenge", help="Only runs of this challenge.")
@click.option(
    "--run",
    "runs",
    multiple=True,
    metavar="RUN",
    shell_complete=complete_runs,
    help="Only these runs. Repeatable.",
)
@click.option(
    "--at",
    "point",
    multiple=True,
    metavar="AXIS=VALUE",
    help="Only this point of a sweep, such as history=fresh. Repeatable.",
)
@_measures
@click.option(
    "--gate",
    "gating",
    is_flag=True,
    help="Exit 3 if anything is slower, 4 if inconclusive; p-values are Holm-adjusted over all rows.",
)
@click.option("--force", is_flag=True, help="Compare incomparable results; tables show how they differ.")
@runs_option
@format_option
@html_option
@verbose_option
def compare_command(
    sides: tuple[str, ...],
    challenge: str | None,
    runs: tuple[str, ...],
    point: tuple[str, ...],
    runs_folder: Path | None,
    output_format: Format,
    html: Path | None,
    *,
    measures: Measures,
    gating: bool,
    force: bool,
    verbose: bool,
) -> None:
    """Compare stored results, optionally as a CI gate.

    SIDES such as `es os` are compared by their newest comparable results; the first is the baseline. A side
    is a variant (es), a version (es@8.11.0), a run (RUN, or RUN:es where it has several variants) or a tag
    (tag:NAME, tag:NAME:es). A run alone means all its variants. With
    two or more --run, one variant means its results in each of them.
    """
    check_html(html, output_format)
    archive = Archive(require_runs(runs_folder, *sides, *runs), runs)
    selection = choose_sides(archive, sides, challenge=challenge, force=force)
    if point:
        selection = at_point(selection, point)
    analysis = compared(
        archive,
        selection,
        replace(measures, builds=not gating),
        method="holm" if gating else "benjamini-hochberg",
    )
    result = gate(analysis) if gating else None
    if html is not None or output_format == "html":
        # What draws pages takes a while to load, and no other format needs it.
        from benchctl.report.html.page import comparison_page  # noqa: PLC0415 - see above
        from benchctl.report.planning import again  # noqa: PLC0415 - see above

        commands = [Command("Make this page again", again(typed_words()))]
        print_page(comparison_page(archive, selection, analysis, commands), html)
    else:
        origins = [*map(_origin, selection.parts), *selection.remarks]
        below: list[Section] = [[Items("", tuple(origins))]]
        below += [] if result is None else [[Items(f"Gate: {result.text}", tuple(result.reasons))]]
        _print(
            analysis,
            output_format,
            [part.run for part in selection.parts],
            part="all" if verbose else None,
            more="the same command with -v",
            runs=runs_folder,
            result=result,
            below=below,
        )
    if html is not None:
        for part in selection.parts:
            archive.folder_of(part.run).require_files(part.run)
    if result is not None:
        _conclude_gate(result)


def _conclude_gate(result: GateResult) -> None:
    """Print the verdict of a gate with its first reason in one line on standard error.

    Raises:
        BenchctlError: If it did not pass, with its exit code.
    """
    first, *others = result.reasons
    text = f"gate: {result.text}: {first}" + (f"; and {len(others)} more" if others else "")
    if result.outcome in _EXIT_CODES:
        raise BenchctlError(text, exit_code=_EXIT_CODES[result.outcome])
    complain(f"benchctl: {text}")


# `benchctl show`: a stored run on a screen, in full, or as an HTML report.


@click.command("show")
@click.argument("run", shell_complete=complete_runs)
@click.option("--notes", "part", flag_value="notes", help="Print all warnings and their tasks.")
@click.option("--host", "part", flag_value="host", help="Print host, engines, indices, order and times.")
@click.option("-v", "--verbose", "part", flag_value="all", help="Print every section.")
@grouped("measures", Measures, metric_option, diff_option)
@format_option
@html_option
@runs_option
def show_command(
    run: str,
    part: Part | None,
    runs_folder: Path | None,
    output_format: Format,
    html: Path | None,
    *,
    measures: Measures,
) -> None:
    """Show the results of a stored run.

    RUN is a run id, a unique prefix or suffix of one, a path, or `latest`.
    """
    check_html(html, output_format)
    if part in ("notes", "host") and output_format != "text":
        raise UsageError(f"--{part} requires --format text", hint="print everything with -v")
    folder = require_runs(runs_folder, run).find(run)
    record = print_run(folder, output_format, usual=usual_runs(), part=part, measures=measures, html=html)
    # Its figures are worth being printed whatever became of the files beside them.
    folder.require_files(record)


# Results on standard output: coloured on a terminal, plain for programs.


def print_run(
    folder: RunFolder,
    output_format: Format,
    *,
    usual: Path,
    part: Part | None = None,
    measures: Measures = _AS_MEASURED,
    html: Path | None = None,
) -> RunRecord:
    """Print what a run found, or write its page to the directory `html`, and return its record.

    `usual` is the default directory of runs; without `part`, readers get what fits a screen.
    """
    record = folder.load()
    if part == "host":
        say(plain([fact_sections(record)], text_width()), nl=False)
        return record
    metrics = None if measures == _AS_MEASURED else measures.chosen(record.plan)
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
    _print(analysis, output_format, [record], part=part, more=more, runs=runs, below=below)
    return record


def print_page(page: "Subject", target: Path | None) -> None:
    """Print a page, or write it to a directory."""
    from benchctl.report.html.page import render_page, write_html  # noqa: PLC0415 - see `print_run`

    if target is None:
        emit(render_page(page))
    else:
        say(f"Report: {write_html(target, render_page(page))}")


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
    records: Sequence[RunRecord],
    *,
    part: Part | None,
    more: str,
    runs: Path | None,
    below: Sequence[Section],
    result: GateResult | None = None,
) -> None:
    """Print an analysis, and for readers what is `below` it and how to see `more`.

    `runs` is the directory of the records, None for the default one.
    """
    plan = records[0].plan if len({record.id for record in records}) == 1 else None
    width, terminal = text_width(), is_terminal(sys.stdout)
    if output_format == "markdown":
        emit(markdown([*analysis_sections(analysis, plan, details=part == "all", runs=runs), *below]))
    elif output_format != "text":
        emit(render(analysis, output_format, records=records, gate=result))
    elif part is None:
        # A terminal's last line is the prompt's; what a gate found may take more than a screen.
        lines = text_height() - terminal - len(plain(below[:1], width).splitlines())
        shown = render_screen(analysis, plan=plan, width=width, lines=lines, more=more, runs=runs)
        paint(Text("\n").join([shown, text_of(below, width)] if below else [shown]))
    elif part == "notes":
        paint(text_of([all_notes(analysis)], width))
    else:
        paint(text_of([*analysis_sections(analysis, plan, details=True, runs=runs), *below], width))
