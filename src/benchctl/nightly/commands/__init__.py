"""`benchctl nightly`: unattended runs, and what came of them."""

from typing import ClassVar

import click

from benchctl.cli import LazyGroup

_COMMANDS = {
    "init": ("benchctl.nightly.commands.suites:init_command", "Create a starter suite file."),
    "run": (
        "benchctl.nightly.commands.run:run_command",
        "Run a suite once, confirm changes and send alerts.",
    ),
    "status": ("benchctl.nightly.commands.suites:status_command", "Show last run and open alarms of suites."),
    "ack": (
        "benchctl.nightly.commands.suites:ack_command",
        "Acknowledge alarms and accept their level as the baseline.",
    ),
}


class Commands(LazyGroup):
    """The commands about nights, in the order in which they are met."""

    sections: ClassVar = {"Commands": _COMMANDS}


@click.group("nightly", cls=Commands)
def nightly_group() -> None:
    """Run suites on a schedule and alert on confirmed changes.

    A suite is measured every night and compared with earlier nights. Suspected changes are confirmed by
    rerunning the last good version against tonight's before an alert is sent.
    """
