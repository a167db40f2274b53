"""`benchctl nightly status`: when suites last ran, when they run next, and what is alarming."""

import os
from datetime import UTC, datetime

import click

from benchctl.cli.streams import note, say
from benchctl.errors import BenchctlError
from benchctl.home import Home, resolve_home
from benchctl.nightly.install.next_run import schedule_of
from benchctl.nightly.suites.remembered import find_suite, recall
from benchctl.report.nightly.text import status_text
from benchctl.results.nightly.folder import SuiteFolder, holder_of, suites
from benchctl.run.lock import measuring_pid, process_words


@click.command("status")
@click.argument("names", nargs=-1, metavar="[SUITE]...")
def status_command(names: tuple[str, ...]) -> None:
    """Say how SUITEs stand, all of them if none is named: by name, or by the path of a suite file."""
    home = resolve_home()
    folders = [find_suite(home, name) for name in names] or _all(home)
    if not folders:
        say(f"no suite has had a night in {home.nightly}")
        return
    say("\n".join(_status(folder) for folder in folders), nl=False)


def _all(home: Home) -> list[SuiteFolder]:
    """Every suite that has had a night, or that something starts."""
    known = suites(home)
    roots = {folder.root for folder in known}
    new = (path for path in sorted(home.nightly.iterdir()) if path.is_dir() and path not in roots)
    now = datetime.now(UTC)
    installed = [path for path in new if schedule_of(path.name, environ=os.environ, now=now) is not None]
    return [*known, *map(SuiteFolder, installed)]


def _status(folder: SuiteFolder) -> str:
    name = folder.root.name
    nights = folder.nights(note)
    # A running night stands in the line of whoever holds the lock.
    last = max((one for one in nights if one.status != "running"), key=lambda one: one.number, default=None)
    try:
        site = f"{recall(folder).site}/{name}/index.html"
    except BenchctlError:
        site = ""
    schedule = schedule_of(name, environ=os.environ, now=datetime.now(UTC))
    holder, measuring = holder_of(folder.root / "lock"), measuring_pid()
    waits = holder is not None and measuring not in (None, holder.pid)
    return status_text(
        name,
        last,
        folder.events(note),
        next_run="" if schedule is None else schedule.next_words,
        holder="" if holder is None else holder.text,
        waits_for=process_words(measuring) if waits else "",
        site=site,
    )
