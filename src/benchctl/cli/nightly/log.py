"""`benchctl nightly ack` and `annotate`: what people know goes into the log of a suite."""

import getpass
from datetime import datetime

import click

from benchctl.cli.streams import note, say
from benchctl.errors import UsageError
from benchctl.home import resolve_home
from benchctl.nightly.suites.remembered import find_suite
from benchctl.report.numbers import visible
from benchctl.results.nightly.folder import SuiteFolder
from benchctl.results.nightly.model import Acknowledged, Annotated, NightRecord, alarms_of

_SUITE = click.argument("suite", metavar="SUITE")


@click.command("ack")
@_SUITE
@click.argument("numbers", nargs=-1, type=int, metavar="[ALARM]...")
@click.option("--all", "all_open", is_flag=True, help="All that are open.")
@click.option("--text", default="", help="Why it is all right, or who sees to it.")
def ack_command(suite: str, numbers: tuple[int, ...], text: str, *, all_open: bool) -> None:
    """Acknowledge alarms of SUITE by their numbers: somebody knows, and they are open no longer.

    SUITE is a suite's name or the path of its file.
    """
    if bool(numbers) == all_open:
        raise UsageError("which alarms?", hint="give their numbers, or --all")
    folder = find_suite(resolve_home(), suite)
    known = {alarm.raised.alarm: alarm for alarm in alarms_of(folder.events(note))}
    if all_open:
        numbers = tuple(number for number, alarm in known.items() if alarm.state == "open")
        if not numbers:
            say(f"no alarm of {folder.root.name} is open")
    for number in numbers:
        if number not in known:
            raised = ", ".join(map(str, known)) or "none"
            raise UsageError(f"{folder.root.name} has no alarm {number}", hint=f"alarms so far: {raised}")
    for number in dict.fromkeys(numbers):
        alarm = known[number]
        title = visible(alarm.raised.title)
        if alarm.acknowledged is not None:
            say(f"alarm {number} was acknowledged by {alarm.acknowledged.who} before: {title}")
            continue
        folder.append(Acknowledged(number, _now(), _user(), text))
        say(f"alarm {number} is acknowledged: {title}")


@click.command("annotate")
@_SUITE
@click.argument("text")
@click.option(
    "--night",
    "night",
    type=int,
    default=None,
    metavar="NUMBER",
    help="First night that it bears on  [default: the next one]",
)
@click.option("--rebase", is_flag=True, help="Find the usual level of every series anew, from that night on.")
def annotate_command(suite: str, text: str, night: int | None, *, rebase: bool) -> None:
    """Write down something that bears on the figures of SUITE, such as a new power supply.

    It stands in the charts, and beside alarms that begin there.
    """
    if not text.strip():
        raise UsageError("there is nothing to write down", hint="give a text")
    folder = find_suite(resolve_home(), suite)
    number, found = _night(folder, night)
    folder.append(
        Annotated(
            at=_now(),
            night="" if found is None else found.id,
            number=number,
            text=text,
            who=_user(),
            rebase=rebase,
        )
    )
    since = f"night {number}" if found is None else f"night {found.id}"
    begins = "; levels begin anew there" if rebase else ""
    say(f"written down for {folder.root.name}, from {since} on{begins}")


def _night(folder: SuiteFolder, number: int | None) -> tuple[int, NightRecord | None]:
    nights = folder.nights(note)
    if number is None:
        return 1 + max((night.number for night in nights), default=0), None
    found = next((night for night in nights if night.number == number), None)
    if found is None:
        newest = max((night.number for night in nights), default=0)
        raise UsageError(
            f"{folder.root.name} has no night {number}",
            hint=f"nights so far: up to {newest}; leave --night out for the next one",
        )
    return number, found


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user id without a name
        return "somebody"
