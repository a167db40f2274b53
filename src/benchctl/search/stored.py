"""Stored searches: listed, resumed and extended."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
import msgspec

from benchctl.cli.options import FORMATS, TableFormat, print_table, table_format_option
from benchctl.cli.streams import note
from benchctl.errors import UsageError
from benchctl.home import Home, resolve_home
from benchctl.plugin.code import Consent
from benchctl.report.table import Column, Table
from benchctl.search.record import MinimizeSpec, SearchFolder, SearchRecord, all_searches, find_search, shelf

if TYPE_CHECKING:
    from benchctl.cli.resume import How, Whole
    from benchctl.run.orchestrate import More


def whole(home: Home, name: str, tags: Collection[str]) -> "Whole | None":
    """Return the search that a name means."""
    del tags
    if not shelf(home).fitting(name):
        return None
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


@dataclass(frozen=True)
class BegunSearch:
    """A search that can go on."""

    home: Home
    folder: SearchFolder

    @property
    def id(self) -> str:
        """Name of its folder."""
        return self.folder.path.name

    @property
    def title(self) -> str:
        """Title for readers."""
        return f"search {self.id}"

    def resume(self, how: "How", budget_s: float | None) -> None:
        """Ask what is left to be asked; a budget is for that."""
        record = self.folder.load()
        if budget_s is not None:
            record = msgspec.structs.replace(record, budget_s=record.spent_s + budget_s)
        self._go_on(record, how)

    def extend(self, more: "More", how: "How") -> None:
        """Measure further pairs where a question stayed open."""
        record = self.folder.load()
        if record.status != "complete":
            hint = f"benchctl resume {record.id}"
            raise UsageError(f"{self.title} is not complete", hint=hint)
        if more.until_decided:
            raise UsageError("--until-decided: a search ends with its answers", hint="remove it")
        budget_s = more.budget_s and record.spent_s + more.budget_s
        most = record.most + more.further(record.most)
        self._go_on(msgspec.structs.replace(record, status="running", most=most, budget_s=budget_s), how)

    def _go_on(self, record: SearchRecord, how: "How") -> None:
        # They load what measures, which no other command need wait for.
        from benchctl.run.plan import reload_track  # noqa: PLC0415 - see above
        from benchctl.run.work import confirm_plugin  # noqa: PLC0415 - see above
        from benchctl.search.commands.bisect import opened_bisection  # noqa: PLC0415 - see above
        from benchctl.search.commands.minimize import opened_minimize  # noqa: PLC0415 - see above

        output_format = how.printed_as(*FORMATS, what="a search")
        confirm_plugin(record.plan, Consent(self.home, given=how.trust))
        track = reload_track(record.plan)
        if isinstance(record.spec, MinimizeSpec):
            opened = opened_minimize(self.home, self.folder, record, track)
        else:
            opened = opened_bisection(self.home, record, track, folder=self.folder)
        opened.conclude(output_format, on_busy=how.on_busy, quiet=how.quiet)
