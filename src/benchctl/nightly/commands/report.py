"""`benchctl nightly report`: the pages of suites, written anew from what is kept."""

from pathlib import Path

import click

from benchctl.cli.streams import note, say
from benchctl.errors import UsageError
from benchctl.home import resolve_home
from benchctl.nightly.folder import suites
from benchctl.nightly.remembered import find_suite, recall
from benchctl.nightly.site.publish import Publisher, without_page
from benchctl.results.store import RunStore


@click.command("report")
@click.argument("names", nargs=-1, metavar="[SUITE]...")
@click.option(
    "--html",
    "target",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder for the pages  [default: where the suite has them]",
)
@click.option("--runs", "with_runs", is_flag=True, help="Also write the pages of runs that have none yet.")
def report_command(names: tuple[str, ...], target: Path | None, *, with_runs: bool) -> None:
    """Write the pages of SUITEs anew, of all of them if none is named; no node is started.

    A SUITE is a name, or the path of a suite file.
    """
    home = resolve_home()
    folders = [find_suite(home, name) for name in names] or suites(home)
    if not folders:
        raise UsageError(
            f"no suite has had a night in {home.nightly}", hint="run one: benchctl nightly run SUITE.yml"
        )
    for folder in folders:
        known = recall(folder)
        site = Path(known.site) if target is None else target
        store = RunStore(Path(known.runs))
        nights = folder.nights(note)
        new = without_page(site, folder.root.name, nights, store) if with_runs else []
        index = Publisher(folder, store, site, known.title, known.margins, note).publish(
            nights, folder.events(note), new
        )
        say(f"Report: {index}")
