"""The hooks of searches that the core calls."""

from collections.abc import Callable, Iterator

import click

from benchctl.cli.options import TableFormat, print_listing, table_format_option
from benchctl.cli.streams import note
from benchctl.home import Home, resolve_home
from benchctl.report.listing import Listing
from benchctl.search.record import all_searches


def references(home: Home, unread: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    """Yield the runs that searches and bisections rest on, which lie in their directories."""
    del unread
    for folder, label in (("minimize", "search"), ("bisections", "bisection")):
        for run in (home.root / folder).glob("*/runs/*"):
            yield str(run.resolve()), f"{label} {run.parents[1].name}"


@click.command("searches")
@table_format_option
def listing(output_format: TableFormat) -> None:
    """Searches for the smallest schedule with an effect (`minimize`), oldest first."""
    # Whoever only looks makes no folder.
    rows = [
        (
            record.id,
            record.status,
            record.plan.schedules[0].name,
            str(record.spec.effect),
            len(record.decisions),
            None if record.found is None else [task.label for task in record.found.schedule],
        )
        for record in all_searches(resolve_home().root / "minimize", note)
    ]
    columns = ("search", "status", "challenge", "effect", "questions", "found")
    title = "Searches for the smallest schedule"
    print_listing(Listing(columns, rows, frozenset({4}), title=title), output_format)
