"""A night that `benchctl resume` goes on with, as `benchctl nightly run` would."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

from benchctl.cli.resume import How
from benchctl.cli.streams import note
from benchctl.errors import BenchctlError, UsageError
from benchctl.nightly.commands.run import run_command
from benchctl.nightly.folder import SuiteFolder, recall
from benchctl.nightly.measure import reason_to_discard
from benchctl.nightly.model import CUT_OFF
from benchctl.nightly.suite import load_suite
from benchctl.run.orchestrate import More


@dataclass(frozen=True)
class BegunNight:
    """A night of a suite."""

    folder: SuiteFolder
    night_id: str

    @property
    def title(self) -> str:
        """What it is, for readers."""
        return f"night {self.night_id} of {self.folder.root.name}"

    def resume(self, how: How, budget_s: float | None) -> None:
        """Go on with it by its suite, if nothing else has become of it."""
        if budget_s is not None:
            raise UsageError(
                "--budget: a night has that of its suite", hint="set `budget` in the suite's file"
            )
        record = self.folder.load(self.night_id)
        if record.status not in CUT_OFF:
            note(f"{self.title} is {record.status}; nothing is measured")
            return
        path = Path(recall(self.folder).file)
        newest = max(one.number for one in self.folder.nights(note))
        reason = reason_to_discard(load_suite(path), record, datetime.now(UTC))
        if record.number < newest:
            reason = "a later night has begun"
        if reason:
            raise BenchctlError(
                f"{self.title} cannot go on: {reason}", hint=f"begin another: benchctl nightly run {path}"
            )
        printed = "json" if how.output_format == "json" else "text"
        click.get_current_context().invoke(
            run_command, path=path, output_format=printed, wait=how.wait, quiet=how.quiet
        )

    def extend(self, more: More, how: How) -> None:
        """Refuse: all nights of a suite have as many forks."""
        del more, how
        raise UsageError(
            f"{self.title} has the forks of its suite, as all nights",
            hint="more of them from the next night on: set `forks` in the suite's file",
        )
