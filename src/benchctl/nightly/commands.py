"""`benchctl nightly`: unattended runs, and what came of them; all but `run`."""

import getpass
import shlex
import sys
from importlib import resources
from pathlib import Path
from typing import ClassVar

import click
import msgspec

from benchctl.cli import LazyGroup
from benchctl.cli.streams import emit, note, say
from benchctl.errors import UsageError
from benchctl.home import Home, resolve_home
from benchctl.lock import measuring_pid, process_words
from benchctl.nightly.message import status_text
from benchctl.nightly.records import SuiteFolder, SuiteState, suites
from benchctl.report.numbers import visible
from benchctl.results.store import RunStore


class Commands(LazyGroup):
    """The commands about nights; what measures is slow to import."""

    sections: ClassVar = {
        "Commands": {
            "init": ("benchctl.nightly.commands:init_command", "Create a starter suite file."),
            "run": ("benchctl.nightly.run:run_command", "Run a suite once, confirm changes and send alerts."),
            "status": ("benchctl.nightly.commands:status_command", "Show last night and open alarms."),
            "ack": ("benchctl.nightly.commands:ack_command", "Acknowledge alarms."),
        }
    }


@click.group("nightly", cls=Commands)
def nightly_group() -> None:
    """Run suites on a schedule and alert on confirmed changes.

    A suite is measured every night and compared with earlier nights. Suspected changes are confirmed by
    rerunning the last good version against tonight's before an alert is sent.
    """


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
    except OSError as err:
        raise UsageError(f"cannot write {path}: {err.strerror}", hint="choose another file name") from err
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


def find_suite(home: Home, name: str) -> SuiteFolder:
    """Return a suite by its name, or by the path of its file.

    Raises:
        UsageError: If the suite has had no night.
    """
    folders = {folder.root.name: folder for folder in suites(home)}
    wanted = Path(name).stem if name.endswith((".yml", ".yaml")) else name
    if wanted in folders:
        return folders[wanted]
    raise UsageError(
        f"no such suite '{name}' in {home.nightly}",
        hint=f"known: {', '.join(folders)}" if folders else "run one: benchctl nightly run SUITE.yml",
    )


@click.command("status")
@click.argument("names", nargs=-1, metavar="[SUITE]...")
@click.option(
    "--html",
    "target",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write a page of one suite instead.",
)
def status_command(names: tuple[str, ...], target: Path | None) -> None:
    """Show last night and open alarms.

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

        say(f"Report: {write_page(folders[0], RunStore(home.runs), target, note)}")
        return
    say("\n".join(_status(folder) for folder in folders), nl=False)


def _status(folder: SuiteFolder) -> str:
    # A running night stands in the line of whoever holds the lock.
    ended = [night for night in folder.nights(note) if night.status != "running"]
    holder = measuring_pid(folder.lock_name)
    words = "" if holder is None else process_words(holder)
    return status_text(folder.root.name, ended[-1] if ended else None, folder.state().alarms, words)


@click.command("ack")
@click.argument("suite", metavar="SUITE")
@click.argument("numbers", nargs=-1, type=int, metavar="[ALARM]...")
@click.option("--all", "all_open", is_flag=True, help="All open alarms.")
@click.option("--text", default="", help="Reason, or who is looking into it.")
def ack_command(suite: str, numbers: tuple[int, ...], text: str, *, all_open: bool) -> None:
    """Acknowledge alarms.

    SUITE is a suite's name or the path of its file; alarms are given by number.
    """
    if bool(numbers) == all_open:
        raise UsageError("missing argument ALARM, or --all")
    folder = find_suite(resolve_home(), suite)
    who = f"{_user()}: {text}" if text else _user()
    told: list[str] = []

    def acknowledged(state: SuiteState) -> SuiteState:
        alarms = {alarm.number: alarm for alarm in state.alarms}
        for number in numbers or [alarm.number for alarm in state.alarms if alarm.is_open]:
            if number not in alarms:
                hint = f"alarms so far: {', '.join(map(str, alarms)) or 'none'}"
                raise UsageError(f"{folder.root.name} has no alarm {number}", hint=hint)
            alarm = alarms[number]
            before = f"was acknowledged by {alarm.acknowledged} before"
            how = before if alarm.acknowledged else "is acknowledged"
            told.append(f"alarm {number} {how}: {visible(alarm.title)}")
            alarms[number] = msgspec.structs.replace(alarm, acknowledged=alarm.acknowledged or who)
        return msgspec.structs.replace(state, alarms=tuple(alarms.values()))

    folder.update(acknowledged)
    say("\n".join(told) or f"no alarm of {folder.root.name} is open")


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user id without a name
        return "somebody"
