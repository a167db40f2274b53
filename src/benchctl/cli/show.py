"""`benchctl show`: a stored run, as it was printed when it ended, with everything that belongs to it."""

from pathlib import Path

import click

from benchctl.cli.completion import complete_runs
from benchctl.cli.options import format_option, open_store, runs_option, style_option
from benchctl.cli.output import print_run
from benchctl.home import resolve_home
from benchctl.report.formats import Format
from benchctl.report.styles import Style


@click.command("show")
@click.argument("run", shell_complete=complete_runs)
@runs_option
@style_option
@format_option
def show_command(run: str, runs_folder: Path | None, style: Style | None, output_format: Format) -> None:
    """Print RUN again: an id, its beginning or end, a path, or `latest`."""
    home = resolve_home()
    store = open_store(home, runs_folder)
    folder = store.find(run)
    record = print_run(folder, output_format, usual=home.runs, details=True, style=style)
    # Its figures are worth being printed whatever became of the files beside them.
    folder.require_files(record)
