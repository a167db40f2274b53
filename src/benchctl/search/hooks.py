"""The hooks of searches that the core calls."""

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

import click

from benchctl.cli.options import TableFormat, print_table, table_format_option
from benchctl.cli.streams import note
from benchctl.home import Home, resolve_home
from benchctl.report.table import Column, Table
from benchctl.search.record import MinimizeSpec, all_searches, find_search, shelf

if TYPE_CHECKING:
    from benchctl.cli.resume import Whole


def references(home: Home, unread: Callable[[str], None]) -> Iterator[tuple[str, str]]:
    """Yield the runs that searches rest on, which lie in their directories."""
    del unread
    for run in shelf(home).root.glob("*/runs/*"):
        yield str(run.resolve()), f"search {run.parents[1].name}"


def whole(home: Home, name: str, tags: Collection[str]) -> "Whole | None":
    """Return the search that a name means."""
    del tags
    if not shelf(home).fitting(name):
        return None
    # The commands load statistics, which whoever only deletes runs need not wait for.
    from benchctl.search.commands.resume import BegunSearch  # noqa: PLC0415 - see above

    return BegunSearch(home, find_search(home, name))


@click.command("searches")
@table_format_option
def listing(output_format: TableFormat) -> None:
    """List `minimize` and `bisect` searches, oldest first."""
    # Judging takes the statistics, which whoever only deletes runs need not wait for.
    from benchctl.search import bisect, minimize  # noqa: PLC0415 - see above

    # Whoever only looks makes no folder.
    rows = [
        (
            record.id,
            record.status,
            record.plan.schedules[0].name,
            record.spec.label,
            len(record.questions),
            (minimize if isinstance(record.spec, MinimizeSpec) else bisect).found_labels(record) or None,
        )
        for _, record in all_searches(resolve_home(), note)
    ]
    columns = ("search", "status", "challenge", "looks for", Column("questions"), "found")
    print_table(Table.listed("Searches", columns, rows), output_format)
