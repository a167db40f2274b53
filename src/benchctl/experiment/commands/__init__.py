"""`benchctl experiment`: files that say what is compared and expected, and what came of them."""

from typing import ClassVar

import click

from benchctl.cli import LazyGroup

_COMMANDS = {
    "list": (
        "benchctl.experiment.commands.show:list_command",
        "List shipped experiments and past executions.",
    ),
    "show": (
        "benchctl.experiment.commands.show:show_command",
        "Show an experiment's plan, cost and expected precision.",
    ),
    "run": (
        "benchctl.experiment.commands.run:run_command",
        "Run an experiment and evaluate its expectations.",
    ),
    "report": (
        "benchctl.experiment.commands.show:report_command",
        "Print the report of a past execution.",
    ),
}


class Commands(LazyGroup):
    """The commands about experiments, in the order in which they are met."""

    sections: ClassVar = {"Commands": _COMMANDS}


@click.group("experiment", cls=Commands)
def experiment_group() -> None:
    """Run an experiment and evaluate its expectations.

    An experiment file names variants, measurements, comparisons between tasks of them, and expectations.
    Measurements are ordinary runs, whose forks are interleaved; every expectation ends confirmed, refuted or
    inconclusive.
    """
