"""`benchctl run`, `resume` and `extend`: measure, then compare."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import click
import msgspec

from benchctl.cli.measuring import (
    benched,
    conclude,
    dry_run_option,
    measuring_options,
    only_say,
    quiet_option,
    say_rest,
    with_enough_workers,
)
from benchctl.cli.options import (
    AmountType,
    ParamOptions,
    SectionedCommand,
    complete_runs,
    format_option,
    grouped,
    open_store,
    param_options,
    require_runs,
    runs_option,
    verbose_option,
)
from benchctl.cli.run_options import asked_run, config_option, form_options, test_mode_option, trust_option
from benchctl.cli.streams import note, typed_words
from benchctl.cli.targets import with_answers
from benchctl.errors import BenchctlError, UsageError
from benchctl.home import Home, resolve_home
from benchctl.plugin.code import Consent
from benchctl.quantities import DURATION
from benchctl.report.table import Format
from benchctl.results.store import LATEST, RunFolder, RunStore, reference
from benchctl.run.form import in_test_mode
from benchctl.run.orchestrate import Extras, More, add_blocks, extended, resume_run, start_run
from benchctl.run.plan import plan_run, reload_track
from benchctl.run.work import confirm_plugin
from benchctl.slices import hook
from benchctl.spec import DEFAULT_FORKS, MOST_FORKS, BusyAction, RunForm

# Options of Rally and OpenSearch Benchmark that have another form here.
_INSTEAD = {
    **dict.fromkeys(
        ("--car", "--provision-config-instance"), "use --heap, or --variant LABEL=es,KEY:VALUE,..."
    ),
    "--client-options": "put them into a file of --targets",
    **dict.fromkeys(("--operation", "--task"), "choose tasks with --include-tasks NAME"),
    "--html": "write the report afterwards: benchctl show latest --html DIR",
    "--pipeline": "name a running cluster: --target NAME=URL",
    **dict.fromkeys(("--report-file", "--results-file"), "use: --format csv > FILE"),
    "--distribution-version": "name versions as variants: --variant es@8.19.0",
    "--target-hosts": "name a running cluster: --target NAME=URL",
    "--telemetry": "use --evidence, or --metric, such as gc",
}


@click.command(
    "run",
    cls=SectionedCommand,
    instead=_INSTEAD,
    options_metavar="[--challenge NAME|FILE] [OPTIONS]",
    examples=(
        "benchctl run --challenge range-only",
        "benchctl run --challenge big5rangedebug --variant es --variant es@8.19.0 --forks 12",
        "benchctl run --challenge big5rangedebug --until-decided --budget 30m",
    ),
    first=(
        *("challenges", "variants", "targets", "track", "docs", "params", "sweep"),
        *("forks", "until_decided", "budget", "test_mode"),
        *("dry_run", "on_busy", "evidence_kinds", "tags", "output_format", "quiet", "verbose"),
    ),
)
@config_option
@param_options
@form_options()
@test_mode_option
@trust_option
@dry_run_option
@quiet_option
@verbose_option
@runs_option
@format_option
def run_command(
    runs_folder: Path | None,
    output_format: Format,
    *,
    form: RunForm,
    param_options: ParamOptions,
    test_mode: bool,
    trust: bool,
    quiet: bool,
    dry_run: bool,
    verbose: bool,
) -> None:
    """Run challenges on fresh nodes and compare the variants."""
    home = resolve_home()
    store = open_store(home, runs_folder)
    consent = Consent(home, given=trust)
    spec = asked_run(form, param_options, consent=consent)
    plan, track = plan_run(msgspec.structs.replace(spec, settle=spec.settle and not test_mode))
    plan = msgspec.structs.replace(in_test_mode(plan) if test_mode else plan, words=typed_words())
    plan = with_answers(plan, os.environ)
    if dry_run:
        only_say(plan, track, spec.files, home, store, form.on_busy)
        return
    with benched(home, store, plan, form.on_busy, quiet=quiet) as bench:
        plan, calibration = with_enough_workers(plan, bench, form)
        extras = Extras(calibration=calibration, tags=form.tags, files=spec.files)
        folder, record = start_run(bench, plan, track, extras)
    conclude(folder, record, home, output_format, details=verbose)


# Going on with what was begun.


@dataclass(frozen=True)
class How:
    """The way in which something goes on; what is measured was said when it was begun."""

    output_format: Format
    verbose: bool
    on_busy: BusyAction | None  # None for that of its file, if it has one
    quiet: bool
    trust: bool
    dry_run: bool

    def printed_as(self, *known: str, what: str) -> Any:
        """Return the form of the output.

        Raises:
            UsageError: If it is none of those that `what` is printed in.
        """
        if self.output_format not in known:
            raise UsageError(f"--format {self.output_format}: {what} is printed as {', '.join(known)}")
        return self.output_format


_how = grouped("how", How, trust_option, dry_run_option, measuring_options, verbose_option, format_option)
_name = click.argument("name", metavar="ID", shell_complete=complete_runs)


def _some_time(_context: click.Context, _param: click.Parameter, budget_s: float | None) -> float | None:
    if budget_s is not None and budget_s <= 0:
        raise UsageError("--budget must be more than 0s")
    return budget_s


_budget = click.option(
    "--budget",
    "budget_s",
    type=AmountType(DURATION),
    callback=_some_time,
    help="Time limit from now, e.g. 30m.",
)


class Whole(Protocol):
    """Something that has runs as its parts, was begun, and can go on."""

    @property
    def id(self) -> str:
        """Name of its folder."""

    @property
    def title(self) -> str:
        """Title for readers: kind and id."""

    def resume(self, how: How, budget_s: float | None) -> None:
        """Measure what is missing within a time, None for what was said when it was begun; print the result.

        Raises:
            BenchctlError: If it cannot go on, or the result does not show all that was asked.
        """

    def extend(self, more: More, how: How) -> None:
        """Add forks to what is complete.

        Raises:
            UsageError: If it is not complete, or is of a kind that ends by its answer.
            BenchctlError: If `resume` raises it.
        """


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
    _go_on(name, runs_folder, how, budget_s, None)


@click.command("extend", cls=SectionedCommand)
@_name
@click.option(
    "--forks",
    type=click.IntRange(1),
    metavar="N",
    help="Further forks per variant; maximum per variant with --until-decided.  "
    f"[default: {DEFAULT_FORKS}; with --budget or --until-decided up to {MOST_FORKS} in total]",
)
@click.option(
    "--until-decided",
    is_flag=True,
    help="Stop when every row has a verdict. Not for experiments.",
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
    _go_on(name, runs_folder, how, None, More(forks, budget_s, until_decided))


def _go_on(name: str, runs_folder: Path | None, how: How, budget_s: float | None, more: More | None) -> None:
    """Resume a run, or what it is a part of; with `more`, add forks to it."""
    if name == LATEST:  # other names may be of something that has no run yet
        require_runs(runs_folder)
    home = resolve_home()
    store = open_store(home, runs_folder)
    whole = _whole_of_id(home, store, name)
    if whole is None:
        folder = store.find(name, finished=more is not None)
        whole = _whole_of_run(home, folder)
    if whole is not None and more is not None:
        whole.extend(more, how)
    elif whole is not None:
        whole.resume(how, budget_s)
    else:
        record = folder.load()
        if more is not None:
            extended(record, more, reference(folder, home.runs))  # refused before the host is looked at
        confirm_plugin(record.plan, Consent(home, given=how.trust))
        if how.dry_run:
            say_rest([record if more is None else extended(record, more)], home, how.on_busy)
            return
        track = reload_track(record.plan)
        with benched(home, store, record.plan, how.on_busy, quiet=how.quiet) as bench:
            if more is None:
                record = resume_run(bench, folder, track, budget_s=budget_s)
            else:
                record = add_blocks(bench, folder, track, more)
        conclude(folder, record, home, how.output_format, details=how.verbose)


def _whole_of_id(home: Home, store: RunStore, name: str) -> Whole | None:
    # A part of an id, or `latest`, rather means a run.
    of_runs = store.names(name)
    try:
        whole: Whole | None = hook("whole")(home, name, ())
    except UsageError:
        if not of_runs:
            raise
        return None
    return whole if whole is not None and (whole.id == name or not of_runs) else None


def _whole_of_run(home: Home, folder: RunFolder) -> Whole | None:
    try:
        tags = folder.load().tags
    except BenchctlError:
        return None  # whoever goes on with it says what is wrong
    whole: Whole | None = hook("whole")(home, "", tags)
    if whole is not None:
        note(f"run {folder.path.name} is part of {whole.title}, which is continued as a whole")
    return whole
