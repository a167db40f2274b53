"""`benchctl report`: self-contained pages of stored runs and comparisons."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from benchctl.cli.comparison import Measures, by_values, compared
from benchctl.cli.options import complete_runs, open_store, runs_option
from benchctl.cli.streams import say
from benchctl.errors import UsageError
from benchctl.home import resolve_home
from benchctl.report.blocks import Command
from benchctl.report.html.page import (
    Entry,
    Subject,
    comparison_page,
    render_index,
    render_page,
    run_page,
    write_pages,
)
from benchctl.report.html.parts import anchor
from benchctl.report.sentences import verdict
from benchctl.results.model import RunRecord
from benchctl.results.select import Archive, Selection, choose_sides
from benchctl.results.store import RunFolder
from benchctl.stats.analyse import analyse_run

INDEX = "index.html"


@click.command("report")
@click.argument("names", nargs=-1, metavar="RUN...", shell_complete=complete_runs)
@click.option(
    "--html",
    "target",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for the pages; open index.html in it.  [required]",
)
@click.option("--compare", "comparing", is_flag=True, help="Read the arguments as sides of a comparison.")
@click.option("--by", "key", metavar="KEY", help="Group runs, or with --compare sides, by a tag KEY:VALUE.")
@click.option("--challenge", help="With --compare: only runs of this challenge.")
@click.option("--baseline", metavar="SIDE", help="With --compare: side to compare the others with.")
@click.option("--force", is_flag=True, help="With --compare: compare unlike results.")
@runs_option
def report_command(
    names: tuple[str, ...],
    target: Path | None,
    key: str | None,
    challenge: str | None,
    baseline: str | None,
    runs_folder: Path | None,
    *,
    comparing: bool,
    force: bool,
) -> None:
    """Write pages with the verdicts, all tables and plots of RUNs; they need no network.

    A RUN is an id, its beginning or end, a path, or `latest`; several get a page each, and one that links
    them. With --compare, the arguments are the sides of one comparison, as `benchctl compare` takes them.
    """
    if not names and not (comparing and key):
        raise UsageError("report requires a RUN", hint="for example: benchctl report latest --html DIR")
    if target is None:
        raise UsageError(
            "the pages need a folder", hint=f"name it: benchctl report {shlex.join(names)} --html DIR"
        )
    home = resolve_home()
    store = open_store(home, runs_folder)
    if comparing:
        archive = Archive(store)
        names = names if key is None else by_values(archive, key, names)
        selection = choose_sides(archive, names, challenge=challenge, baseline=baseline, force=force)
        subject = _compared(archive, selection, names, challenge=challenge, baseline=baseline, force=force)
        pages = {INDEX: render_page(subject)}
        runs = [(archive.folder_of(part.run), part.run) for part in selection.parts]
    elif challenge is not None or baseline is not None or force:
        raise UsageError("--challenge, --baseline and --force are for comparisons", hint="add --compare")
    else:
        folders = {folder.path: folder for folder in map(store.find, names)}
        runs = [(folder, folder.load()) for folder in folders.values()]
        pages = _of_runs(runs, home.runs, key)
    say(f"Report: {write_pages(target, pages)}")
    for folder, record in runs:
        folder.require_files(record)


def _compared(
    archive: Archive,
    selection: Selection,
    names: Sequence[str],
    *,
    challenge: str | None,
    baseline: str | None,
    force: bool,
) -> Subject:
    words = [
        *names,
        *([] if challenge is None else ["--challenge", challenge]),
        *([] if baseline is None else ["--baseline", baseline]),
        *(["--force"] if force else []),
    ]
    again = (
        Command("Print this comparison in a terminal", shlex.join(["benchctl", "compare", *words])),
        Command(
            "Make this page again", shlex.join(["benchctl", "report", "--compare", *words, "--html", "DIR"])
        ),
    )
    return comparison_page(archive, selection, compared(archive, selection, Measures()), again)


def _of_runs(runs: Sequence[tuple[RunFolder, RunRecord]], usual: Path, key: str | None) -> dict[str, str]:
    """Write one page for one run; an index and a page each for several, grouped by a tag's key."""
    pages: dict[str, str] = {}
    entries = []
    for number, (folder, record) in enumerate(runs, 1):
        subject = run_page(folder, record, analyse_run(record), usual=usual)
        if len(runs) == 1:
            return {INDEX: render_page(subject)}
        # Runs of different stores may have the same id, and an id is no more than a name in a file.
        name = f"{number}-{anchor(record.id)}.html"
        pages[name] = render_page(subject)
        own = [tag for tag in record.tags if tag.startswith(f"{key}:")]
        group = "" if key is None else " ".join(own) or f"without {key}"
        entries.append(Entry(name, subject.title, subject.subtitle, verdict(subject.analysis), group))
    entries.sort(key=lambda entry: entry.group)
    return {**pages, INDEX: render_index(f"{len(entries)} runs", entries)}
