"""Options that choose among the tasks of challenges, in Rally's words."""

from dataclasses import dataclass

import click

from benchctl.cli.options import grouped


@dataclass(frozen=True)
class FilterOptions:
    """Which tasks are left.

    Attributes:
        include_tasks: filters with commas in between; only what one of them matches is kept.
        exclude_tasks: the same for what is taken away.
    """

    include_tasks: str
    exclude_tasks: str


filter_options = grouped(
    "filter_options",
    FilterOptions,
    "What is measured",
    click.option(
        "--include-tasks",
        default="",
        metavar="FILTERS",
        help="Only tasks of these names, type:TYPE or tag:TAG, with commas in between.",
    ),
    click.option("--exclude-tasks", default="", metavar="FILTERS", help="The same for tasks to leave out."),
)
"""The options; the command gets them as one, `filter_options`."""
