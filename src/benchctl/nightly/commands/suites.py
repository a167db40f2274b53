"""`benchctl nightly init`, `status` and `ack`: suites, without a node."""

import getpass
import shlex
import sys
from datetime import datetime
from importlib import resources
from pathlib import Path

import click

from benchctl.cli.streams import emit, note, say
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home, resolve_home
from benchctl.lock import measuring_pid, process_words
from benchctl.nightly.folder import SuiteFolder, suites
from benchctl.nightly.model import Acknowledged, alarms_of
from benchctl.nightly.text import status_text
from benchctl.report.numbers import visible


def find_suite(home: Home, name: str) -> SuiteFolder:
    """Return a suite by its name, or by the path of its file.

    Raises:
        UsageError: If the suite has had no night.
    """
    folders = suites(home)
    if Path(name).is_file():
        # Who gives a name need not wait for all that a suite file may speak of.
        from benchctl.nightly.suite import load_suite  # noqa: PLC0415 - see above

        folder = SuiteFolder(home.nightly / load_suite(Path(name)).name)
        if folder.root.is_dir():
            return folder
        raise UsageError(f"{name} has had no night", hint=f"run it: benchctl nightly run {name}")
    for folder in folders:
        if folder.root.name == name:
            return folder
    names = ", ".join(folder.root.name for folder in folders)
    raise UsageError(
        f"no such suite '{name}' in {home.nightly}",
        hint=f"known: {names}" if names else "run one: benchctl nightly run SUITE.yml",
    )


@click.command("init")
@click.argument("path", required=False, type=click.Path(path_type=Path), metavar="[FILE]")
def init_command(path: Path | None) -> None:
    """Create a starter suite file.

    FILE must not exist; without FILE, the suite is printed.
    """
    text = resources.files("benchctl.nightly").joinpath("template.yml").read_text(encoding="utf-8")
    if path is None:
        emit(text)
        return
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as err:
        raise UsageError(f"{path} already exists", hint="choose another file name") from err
    except OSError as err:
        raise BenchctlError(f"cannot write {path}: {err.strerror or err}") from err
    note(f"wrote {path}; adapt it, then: benchctl nightly run {path}")
    note(f"for every night, add to your crontab: {_crontab_line(path)}")


def _crontab_line(path: Path) -> str:
    """Return the line of a crontab that runs a suite at three; cron mails what is printed."""
    # Not resolved: the link to Python inside a virtual environment is what makes it that environment.
    python = Path(sys.executable).absolute()
    script = python.with_name("benchctl")
    program = [str(script)] if script.is_file() else [str(python), "-m", "benchctl"]
    command = shlex.join([*program, "nightly", "run", "--quiet", str(path.absolute())])
    # Cron takes a per cent sign for the end of the line.
    return f"0 3 * * * {command}".replace("%", r"\%")


@click.command("status")
@click.argument("names", nargs=-1, metavar="[SUITE]...")
@click.option(
    "--html",
    "target",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write a page of one suite's history, with that of its last run, instead.",
)
def status_command(names: tuple[str, ...], target: Path | None) -> None:
    """Show last run and open alarms of suites.

    A SUITE is a name or the path of a suite file (default: all suites).
    """
    home = resolve_home()
    folders = [find_suite(home, name) for name in names] or suites(home)
    if not folders:
        say(f"no suite has had a night in {home.nightly}")
        return
    if target is not None:
        if len(folders) > 1:
            raise UsageError("--html requires a SUITE", hint=f"such as {folders[0].root.name}")
        # Imported here, since pages are slow to import.
        from benchctl.nightly.page import write_page  # noqa: PLC0415

        say(f"Report: {write_page(folders[0], target, note)}")
        return
    say("\n".join(_status(folder) for folder in folders), nl=False)


def _status(folder: SuiteFolder) -> str:
    name = folder.root.name
    nights = folder.nights(note)
    # A running night stands in the line of whoever holds the lock.
    last = max(
        (night for night in nights if night.status != "running"),
        key=lambda record: record.number,
        default=None,
    )
    holder, measuring = measuring_pid(folder.lock_name), measuring_pid()
    waits = holder is not None and measuring not in (None, holder)
    return status_text(
        name,
        last,
        folder.events(note),
        holder="" if holder is None else process_words(holder),
        waits_for=process_words(measuring) if waits else "",
    )


_SUITE = click.argument("suite", metavar="SUITE")


@click.command("ack")
@_SUITE
@click.argument("numbers", nargs=-1, type=int, metavar="[ALARM]...")
@click.option("--all", "all_open", is_flag=True, help="All open alarms.")
@click.option("--text", default="", help="Reason, or who is looking into it.")
def ack_command(suite: str, numbers: tuple[int, ...], text: str, *, all_open: bool) -> None:
    """Acknowledge alarms and accept their level as the baseline.

    SUITE is a suite's name or the path of its file; alarms are given by number.
    """
    if bool(numbers) == all_open:
        raise UsageError("missing argument ALARM, or --all")
    folder = find_suite(resolve_home(), suite)
    alarms = {alarm.raised.alarm: alarm for alarm in alarms_of(folder.events(note))}
    if all_open:
        numbers = tuple(number for number, alarm in alarms.items() if alarm.state == "open")
        if not numbers:
            say(f"no alarm of {folder.root.name} is open")
    for number in numbers:
        if number not in alarms:
            raised = ", ".join(map(str, alarms)) or "none"
            raise UsageError(f"{folder.root.name} has no alarm {number}", hint=f"alarms so far: {raised}")
    for number in dict.fromkeys(numbers):
        alarm = alarms[number]
        title = visible(alarm.raised.title)
        if alarm.acknowledged is not None:
            say(f"alarm {number} was acknowledged by {alarm.acknowledged.who} before: {title}")
            continue
        folder.append(Acknowledged(number, _now(), _user(), text))
        say(f"alarm {number} is acknowledged: {title}")


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user id without a name
        return "somebody"
