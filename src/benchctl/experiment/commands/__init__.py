"""`benchctl experiment`: files that say what is compared and expected, and what came of them."""

from typing import ClassVar

import click

from benchctl.cli.lazy import LazyGroup

_COMMANDS = {
    "list": (
        "benchctl.experiment.commands.listing:list_command",
        "List the shipped experiments, and those that were run.",
    ),
    "show": (
        "benchctl.experiment.commands.show:show_command",
        "Say what an experiment asks, takes and will see; nothing is run.",
    ),
    "run": (
        "benchctl.experiment.commands.run:run_command",
        "Measure an experiment, interleaved, and judge what it expects.",
    ),
    "report": (
        "benchctl.experiment.commands.show:report_command",
        "Print the report of an experiment that was run.",
    ),
}


class Commands(LazyGroup):
    """The commands about experiments, in the order in which they are met."""

    sections: ClassVar = {"Commands": _COMMANDS}


@click.group("experiment", cls=Commands)
def experiment_group() -> None:
    """Ask a question of several runs: what is compared, what is expected, and whether it is so.

    An experiment file names variants, measurements, comparisons between tasks of them, and expectations.
    Measurements are ordinary runs, whose forks are interleaved; every expectation ends confirmed, refuted or
    inconclusive.
    """
