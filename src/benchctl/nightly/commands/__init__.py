"""`benchctl nightly`: unattended runs, and what came of them."""

from typing import ClassVar

import click

from benchctl.cli.lazy import LazyGroup

_COMMANDS = {
    "init": (
        "benchctl.nightly.commands.suites",
        "init_command",
        "Write a suite file to begin with.",
    ),
    "run": (
        "benchctl.nightly.commands.run",
        "run_command",
        "Measure a suite, look for changes, confirm them, tell somebody.",
    ),
    "status": (
        "benchctl.nightly.commands.suites",
        "status_command",
        "Show last run and open alarms of suites.",
    ),
    "ack": (
        "benchctl.nightly.commands.suites",
        "ack_command",
        "Acknowledge an alarm: its level is the usual one from then on.",
    ),
    "bisect": (
        "benchctl.nightly.commands.bisect",
        "bisect_command",
        "Find which of several changes an alarm is due to.",
    ),
    "annotate": (
        "benchctl.nightly.commands.suites",
        "annotate_command",
        "Write down what happened, for everybody who looks at the figures.",
    ),
    "report": (
        "benchctl.nightly.commands.suites",
        "report_command",
        "Write the pages of suites anew.",
    ),
    "install": (
        "benchctl.nightly.commands.install",
        "install_command",
        "Print a crontab line or systemd units for a suite.",
    ),
}


class Commands(LazyGroup):
    """The commands about nights, in the order in which they are met."""

    sections: ClassVar = {"Commands": _COMMANDS}


@click.group("nightly", cls=Commands)
def nightly_group() -> None:
    """Run suites unattended, and alert only on confirmed changes.

    A suite file says what is measured. Every night it is measured again and held against earlier nights; what
    looks different is confirmed by running last-good against tonight before anybody is told.
    """
