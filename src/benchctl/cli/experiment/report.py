"""`benchctl experiment report`: an experiment that was run, judged again from what is kept."""

from pathlib import Path

import click

from benchctl.cli.experiment.printing import ReportFormat, print_report, report_options
from benchctl.cli.streams import note
from benchctl.home import resolve_home
from benchctl.results.experiment import ExperimentStore
from benchctl.results.store import RunStore


@click.command("report")
@click.argument("name", metavar="ID|NAME")
@report_options
def report_command(name: str, output_format: ReportFormat, html_folder: Path | None) -> None:
    """Print the report of ID: an id, its beginning or end, a path, or `latest`; of a NAME its newest.

    It says what is there, also of one that is not finished.
    """
    home = resolve_home()
    # Whoever only looks makes no folder.
    folder = ExperimentStore(home.root / "experiments").find(name, note)
    print_report(folder.load(), RunStore(home.root / "runs"), output_format, html_folder)
