"""`benchctl resume` and `benchctl extend`: whatever was measured goes on, or gets more forks."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from benchctl.cli.measuring import benched, conclude, measuring_options
from benchctl.cli.options import (
    AmountType,
    SectionedCommand,
    complete_runs,
    format_option,
    grouped,
    open_store,
    require_runs,
    runs_option,
    verbose_option,
)
from benchctl.cli.run_options import trust_option
from benchctl.cli.streams import note
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home, resolve_home
from benchctl.plugin.code import Consent
from benchctl.quantities import DURATION
from benchctl.results.store import LATEST, RunFolder, RunStore
from benchctl.run.orchestrate import More, add_blocks, extended, resume_run
from benchctl.run.plan import reload_track
from benchctl.run.work import confirm_plugin
from benchctl.slices import hooks
from benchctl.spec import DEFAULT_FORKS, MOST_FORKS, BusyAction

if TYPE_CHECKING:
    from benchctl.report.table import Format


@dataclass(frozen=True)
class How:
    """The way in which something goes on; what is measured was said when it was begun."""

    output_format: "Format"
    verbose: bool
    on_busy: BusyAction | None  # None for that of its file, if it has one
    quiet: bool
    trust: bool

    def printed_as(self, *known: str, what: str) -> Any:
        """Return the form of the output.

        Raises:
            UsageError: If it is none of those that `what` is printed in.
        """
        if self.output_format not in known:
            raise UsageError(f"--format {self.output_format}: {what} is printed as {', '.join(known)}")
        return self.output_format


_how = grouped("how", How, trust_option, measuring_options, verbose_option, format_option)
_name = click.argument("name", metavar="ID", shell_complete=complete_runs)
_budget = click.option(
    "--budget",
    "budget_s",
    type=AmountType(DURATION),
    default=None,
    help="Time limit from now, e.g. 30m.",
)


class Whole(Protocol):
    """Something that was begun, and can go on."""

    @property
    def id(self) -> str:
        """Name of its folder."""

    @property
    def title(self) -> str:
        """Title for readers: kind and id."""

    def resume(self, how: How, budget_s: float | None) -> None:
        """Measure what is missing, and print what came out; nothing if it is complete.

        `budget_s` is for that; None for what was said when it was begun.

        Raises:
            BenchctlError: If it cannot go on, or the result does not show all that was asked.
        """

    def extend(self, more: More, how: How) -> None:
        """Add forks to what is complete.

        Raises:
            UsageError: If it is not complete, or is of a kind that ends by its answer.
            BenchctlError: If `resume` raises it.
        """


@dataclass(frozen=True)
class BegunRun:
    """A run that stands alone."""

    home: Home
    store: RunStore
    folder: RunFolder

    @property
    def id(self) -> str:
        """Name of its folder."""
        return self.folder.path.name

    @property
    def title(self) -> str:
        """Title for readers."""
        return f"run {self.id}"

    def resume(self, how: How, budget_s: float | None) -> None:
        """Measure the forks that are missing."""
        self._go_on(how, budget_s, None)

    def extend(self, more: More, how: How) -> None:
        """Add blocks on the same indices."""
        # Refused before the host is looked at.
        extended(self.folder.load(), more)
        self._go_on(how, None, more)

    def _go_on(self, how: How, budget_s: float | None, more: More | None) -> None:
        plan = self.folder.load().plan
        confirm_plugin(plan, Consent(self.home, given=how.trust))
        track = reload_track(plan)
        with benched(self.home, self.store, plan, how.on_busy, quiet=how.quiet) as bench:
            if more is None:
                record = resume_run(bench, self.folder, track, budget_s=budget_s)
            else:
                record = add_blocks(bench, self.folder, track, more)
        conclude(self.folder, record, self.home, how.output_format, details=how.verbose)


@click.command("resume", cls=SectionedCommand)
@_name
@_budget
@_how
@runs_option
def resume_command(name: str, budget_s: float | None, runs_folder: Path | None, *, how: How) -> None:
    """Resume an interrupted run or experiment.

    ID is that of either; `latest` is the newest run. Finished forks are kept, and the rest is measured
    on the same engines, documents and indices; where these have changed, it is refused.
    """
    _check(None, budget_s)
    _require_latest(name, runs_folder)
    home = resolve_home()
    _whole(home, open_store(home, runs_folder), name, finished=False).resume(how, budget_s)


@click.command("extend", cls=SectionedCommand)
@_name
@click.option(
    "--forks",
    type=int,
    default=None,
    help="Further forks per variant; maximum per variant with --until-decided.  "
    f"[default: {DEFAULT_FORKS}; with --budget or --until-decided up to {MOST_FORKS} in total]",
)
@click.option(
    "--until-decided",
    is_flag=True,
    help="Add forks until every row has a verdict. Not of experiments.",
)
@_budget
@_how
@runs_option
def extend_command(
    name: str,
    forks: int | None,
    budget_s: float | None,
    runs_folder: Path | None,
    *,
    until_decided: bool,
    how: How,
) -> None:
    """Add forks to a finished run or experiment.

    They are measured on the same engines, documents and indices. You may look at results first:
    p-values and intervals remain valid.
    """
    _check(forks, budget_s)
    _require_latest(name, runs_folder)
    home = resolve_home()
    whole = _whole(home, open_store(home, runs_folder), name, finished=True)
    whole.extend(More(forks, budget_s, until_decided), how)


def _check(forks: int | None, budget_s: float | None) -> None:
    if forks is not None and forks < 1:
        raise UsageError("--forks must be at least 1")
    if budget_s is not None and budget_s <= 0:
        raise UsageError("--budget must be more than 0s")


def _require_latest(name: str, runs_folder: Path | None) -> None:
    """Refuse `latest` of no runs; other names may be of something that has no run yet."""
    if name == LATEST:
        require_runs(runs_folder)


def _whole(home: Home, store: RunStore, name: str, *, finished: bool) -> Whole:
    """Return what has this id, or what the run of this id is a part of; `latest` has to be `finished`."""
    begun: Whole | None
    # A part of an id, or `latest`, rather means a run.
    of_runs = store.names(name)
    for whole in hooks("whole"):
        try:
            begun = whole(home, name, ())
        except UsageError:
            if not of_runs:
                raise
            continue
        if begun is not None and (begun.id == name or not of_runs):
            return begun
    folder = store.find(name, finished=finished)
    try:
        tags = folder.load().tags
    except BenchctlError:
        tags = ()  # whoever goes on with it says what is wrong
    for whole in hooks("whole"):
        begun = whole(home, "", tags)
        if begun is not None:
            note(f"run {folder.path.name} is part of {begun.title}, all of which is continued")
            return begun
    return BegunRun(home, store, folder)
