"""Searches that go on: `benchctl resume` and `benchctl extend`."""

from dataclasses import dataclass

import msgspec

from benchctl.cli.options import FORMATS
from benchctl.cli.resume import How
from benchctl.errors import UsageError
from benchctl.home import Home
from benchctl.plugin.code import Consent
from benchctl.run.orchestrate import More
from benchctl.run.plan import reload_track
from benchctl.run.work import confirm_plugin
from benchctl.search.commands.bisect import opened_bisection
from benchctl.search.commands.minimize import opened_minimize
from benchctl.search.record import MinimizeSpec, SearchFolder, SearchRecord


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

    def resume(self, how: How, budget_s: float | None) -> None:
        """Ask what is left to be asked; a budget is for that."""
        record = self.folder.load()
        if budget_s is not None:
            record = msgspec.structs.replace(record, budget_s=record.spent_s + budget_s)
        self._go_on(record, how)

    def extend(self, more: More, how: How) -> None:
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

    def _go_on(self, record: SearchRecord, how: How) -> None:
        output_format = how.printed_as(*FORMATS, what="a search")
        confirm_plugin(record.plan, Consent(self.home, given=how.trust))
        track = reload_track(record.plan)
        if isinstance(record.spec, MinimizeSpec):
            opened = opened_minimize(self.home, self.folder, record, track)
        else:
            opened = opened_bisection(self.home, record, track, folder=self.folder)
        opened.conclude(output_format, on_busy=how.on_busy, quiet=how.quiet)
