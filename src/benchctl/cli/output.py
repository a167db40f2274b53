"""Results on standard output: for people with colours where there is a terminal, for programs without."""

import shutil
import sys
from pathlib import Path

import click
import msgspec
from rich.console import Console

from benchctl.cli.streams import is_terminal
from benchctl.report.facts import fact_lines
from benchctl.report.formats import Format, render
from benchctl.report.tables import terminal_report
from benchctl.results.plan import Plan
from benchctl.results.select import Selection
from benchctl.results.store import RunFolder, reference
from benchctl.stats.analyse import analyse, analyse_run
from benchctl.stats.analysis import Analysis
from benchctl.stats.caveat import Caveat

FOR_READERS = frozenset({"text", "markdown"})
WITHOUT_TERMINAL_WIDTH = 120


def print_run(folder: RunFolder, output_format: Format, *, usual: Path, details: bool = False) -> None:
    """Print what a run found.

    Args:
        folder: of the run.
        output_format: as `--format`.
        usual: where runs are looked for by default.
        details: host, engines, indices and times as well, for readers.
    """
    record = folder.load()
    if output_format in FOR_READERS and details:
        click.echo("\n".join(fact_lines(record, width=_width())) + "\n")
    _print(analyse_run(record), output_format, record.plan, details=details)
    if output_format in FOR_READERS:
        click.echo(f"\nRun: {folder.path}\nAgain: benchctl show {reference(folder, usual)}")


def print_comparison(selection: Selection, output_format: Format) -> None:
    """Print stored results side by side, and say where they come from."""
    first = selection.sides[0].run
    runs = tuple(dict.fromkeys(side.run.id for side in selection.sides))
    analysis = analyse(
        {side.label: side.forks for side in selection.sides},
        first.plan,
        runs=runs,
        answers=first.answers if len(runs) == 1 else None,
        calibration=first.calibration if len(runs) == 1 else None,
    )
    marks = tuple(
        Caveat("unlike", f"unlike results, compared by force: {text}") for text in selection.differences
    )
    own = tuple(Caveat("run", text) for side in selection.sides for text in side.run.caveats)
    caveats = tuple(dict.fromkeys((*marks, *own, *analysis.caveats)))
    analysis = msgspec.structs.replace(analysis, caveats=caveats)
    if output_format in FOR_READERS:
        for side in selection.sides:
            forks = f"{len(side.forks)} fork{'s' if len(side.forks) != 1 else ''}"
            click.echo(f"{side.label}: {forks} of run {side.run.id} ({side.run.created})")
        click.echo()
    _print(analysis, output_format, first.plan if len(runs) == 1 else None)


def _print(analysis: Analysis, output_format: Format, plan: Plan | None, *, details: bool = False) -> None:
    if output_format == "text" and is_terminal(sys.stdout):
        Console(highlight=False).print(terminal_report(analysis, plan=plan, width=_width(), details=details))
    else:
        click.echo(render(analysis, output_format, plan=plan, width=_width(), details=details), nl=False)


def _width() -> int:
    return shutil.get_terminal_size((WITHOUT_TERMINAL_WIDTH, 24)).columns
