"""`benchctl show`: a stored run on a screen, in full, or as an HTML report."""

from pathlib import Path

import click

from benchctl.cli.options import (
    check_html,
    complete_runs,
    diff_option,
    format_option,
    html_option,
    metric_option,
    open_store,
    require_runs,
    runs_option,
)
from benchctl.cli.output import Part, print_run
from benchctl.errors import UsageError
from benchctl.home import resolve_home
from benchctl.report.formats import Format
from benchctl.spec import Diff


@click.command("show")
@click.argument("run", shell_complete=complete_runs)
@click.option("--notes", "part", flag_value="notes", help="Print all warnings and their tasks.")
@click.option(
    "--precision",
    "part",
    flag_value="precision",
    help="Print what the run could detect, and what more would take.",
)
@click.option("--host", "part", flag_value="host", help="Print host, engines, indices, order and times.")
@click.option("-v", "--verbose", "part", flag_value="all", help="Print every section.")
@metric_option
@diff_option
@format_option
@html_option
@runs_option
def show_command(
    run: str,
    part: Part | None,
    metrics: tuple[str, ...],
    diff: Diff | None,
    runs_folder: Path | None,
    output_format: Format,
    html: Path | None,
) -> None:
    """Show the results of a stored run.

    RUN is a run id, a unique prefix or suffix of one, a path, or `latest`.
    """
    check_html(html, output_format)
    if part in ("notes", "precision", "host") and output_format != "text":
        raise UsageError(f"--{part} requires --format text", hint="print everything with -v")
    require_runs(runs_folder, run)
    home = resolve_home()
    store = open_store(home, runs_folder)
    folder = store.find(run)
    record = print_run(
        folder,
        output_format,
        usual=home.runs,
        part=part,
        figures=metrics,
        diff=diff,
        html=html,
    )
    # Its figures are worth being printed whatever became of the files beside them.
    folder.require_files(record)
