"""`benchctl export`: runs and their samples as files for other tools."""

from pathlib import Path

import click

from benchctl.cli.options import open_store, runs_option
from benchctl.cli.sql import stored_runs
from benchctl.cli.streams import say
from benchctl.home import resolve_home
from benchctl.results.sql import export_parquet


@click.command("export")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--parquet",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="DIR",
    help="Folder for runs.parquet, forks.parquet, tasks.parquet and samples.parquet.",
)
@runs_option
def export_command(runs: tuple[str, ...], folder: Path, runs_folder: Path | None) -> None:
    """Write RUNs as Parquet, with the columns that `benchctl sql --views` describes."""
    stored = stored_runs(open_store(resolve_home(), runs_folder), runs)
    for path, rows in export_parquet(stored, folder).items():
        say(f"{path}: {rows:,} rows")
