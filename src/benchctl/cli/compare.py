"""`benchctl compare`: stored results side by side."""

from pathlib import Path

import click

from benchctl.cli.options import format_option, open_store, runs_option
from benchctl.cli.output import print_comparison
from benchctl.errors import UsageError
from benchctl.home import resolve_home
from benchctl.report.formats import Format
from benchctl.results.select import select_sides

MIN_VARIANTS = 2


@click.command("compare")
@click.argument("variants", nargs=-1, required=True)
@click.option("--challenge", help="Only runs of this challenge.")
@click.option("--run", "runs", multiple=True, metavar="RUN", help="Only these runs; repeatable.")
@click.option("--force", is_flag=True, help="Compare unlike results; the tables say how they differ.")
@runs_option
@format_option
def compare_command(
    variants: tuple[str, ...],
    challenge: str | None,
    runs: tuple[str, ...],
    runs_folder: Path | None,
    output_format: Format,
    *,
    force: bool,
) -> None:
    """Compare the newest comparable results of VARIANTS, such as `es os`; the first is the baseline."""
    if len(variants) < MIN_VARIANTS:
        raise UsageError("compare needs at least two variants", hint="for example: benchctl compare es os")
    if len(set(variants)) < len(variants):
        raise UsageError("a variant is named twice")
    store = open_store(resolve_home(), runs_folder)
    records = [store.find(run).load() for run in runs] if runs else [record for _, record in store.runs()]
    selection = select_sides(records, variants, challenge=challenge, force=force)
    print_comparison(selection, output_format)
