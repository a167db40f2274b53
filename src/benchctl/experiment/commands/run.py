"""`benchctl experiment run`: measure an experiment, then report on it."""

import threading
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import click

from benchctl.cli.measuring import (
    dry_run_option,
    measuring,
    measuring_options,
    plan_lines,
    with_documents,
)
from benchctl.cli.options import ParamOptions, param_options
from benchctl.cli.resume import How
from benchctl.cli.streams import note, say
from benchctl.cli.watch import watching
from benchctl.errors import BenchctlError, UsageError
from benchctl.experiment.commands.show import (
    change_options,
    check_page_folder,
    estimated,
    left_out_text,
    print_report,
    report_options,
)
from benchctl.experiment.conduct import conduct, plans_to_open
from benchctl.experiment.estimate import estimate_lines
from benchctl.experiment.execution import adopted, begin, forks_missing, runs_of
from benchctl.experiment.file import find_experiment
from benchctl.experiment.plan import Changes, Experiment, Plans, load_experiment
from benchctl.experiment.record import ExperimentFolder, ExperimentRecord, ExperimentStore
from benchctl.experiment.report import Format, documents_text
from benchctl.home import Home, resolve_home
from benchctl.plugin.code import Consent
from benchctl.report.numbers import counted
from benchctl.results.model import unanswered
from benchctl.results.store import RunStore
from benchctl.run.bench import Bench, Observer
from benchctl.run.fitness import check_quiet
from benchctl.run.orchestrate import More
from benchctl.run.prepare import check_host
from benchctl.run.work import confirm_plugin
from benchctl.spec import BusyAction


@click.command("run")
@click.argument("name", metavar="[NAME|FILE]", required=False)
@change_options
@param_options
@dry_run_option
@measuring_options
@report_options
def run_command(
    name: str | None,
    output_format: Format,
    html_folder: Path | None,
    *,
    changes: Changes,
    param_options: ParamOptions,
    on_busy: BusyAction | None,
    dry_run: bool,
    quiet: bool,
) -> None:
    """Run an experiment and evaluate its expectations.

    First it says what that takes and will be able to see. Its measurements become runs of their own, which
    `benchctl show` prints; their forks are interleaved. Exit codes: 0 when all was measured, whatever the
    verdicts; 1 when forks failed.
    """
    if html_folder is not None:
        check_page_folder(html_folder)
    home = resolve_home()
    store = RunStore(home.runs)
    experiment = _loaded(name, replace(changes, overrides=param_options.read()), home)
    on_busy = on_busy or experiment.spec.on_busy
    for planned in experiment.plans.values():
        check_host(planned.plan, home)
    if dry_run:
        _only_say(experiment, store, home, changes.budget_s, on_busy)
        return
    plans = [planned.plan for planned in experiment.plans.values()]
    with measuring(on_busy, quiet=quiet) as observer:
        check_quiet(home, plans, observer.note, on_busy)
        folder = _begun(experiment, store, home, changes.budget_s, observer)
        bench = Bench(home, store, observer, threading.Event())
        record = conduct(folder, bench, experiment.plans, budget_s=changes.budget_s)
    conclude(record, store, output_format, html_folder)


@dataclass(frozen=True)
class BegunExperiment:
    """An execution of an experiment that goes on."""

    home: Home
    folder: ExperimentFolder

    @property
    def id(self) -> str:
        """Name of its folder."""
        return self.folder.path.name

    @property
    def title(self) -> str:
        """Title for readers."""
        return f"experiment {self.id}"

    def resume(self, how: How, budget_s: float | None) -> None:
        """Measure what is missing, and what expectations are open."""
        record, store = self.folder.load(), RunStore(self.home.runs)
        if record.status == "complete" and not forks_missing(record, runs_of(record, store, note)):
            note(f"experiment {record.id} is complete; nothing is measured")
            conclude(record, store, self._format(how))
        else:
            self._go_on(how, budget_s, None)

    def extend(self, more: More, how: How) -> None:
        """Add forks of everything, or with `until_decided` of what is open."""
        record = self.folder.load()
        if record.status != "complete":
            raise UsageError(
                f"experiment {record.id} is not finished ({record.status})",
                hint=f"resume with: benchctl resume {record.id}",
            )
        self._go_on(how, more.budget_s, more)

    def _go_on(self, how: How, budget_s: float | None, more: More | None) -> None:
        """Continue; plans are made before anything is prepared."""
        store, output_format = RunStore(self.home.runs), self._format(how)
        on_busy = how.on_busy or self.folder.load().spec.on_busy
        with measuring(on_busy, quiet=how.quiet) as observer:
            bench = Bench(self.home, store, observer, threading.Event())
            record = adopted(self.folder.load(), store)
            self.folder.save(record)
            consent = Consent(self.home, given=how.trust)
            plans: Plans = plans_to_open(record, self.home)
            runs = runs_of(record, store, observer.note).values()
            for run in runs:
                confirm_plugin(run.plan, consent)
            check_quiet(
                self.home,
                [*(run.plan for run in runs), *(plan.plan for plan in plans.values())],
                observer.note,
                on_busy,
            )
            record = conduct(self.folder, bench, plans, budget_s=budget_s, more=more)
        conclude(record, store, output_format)

    def _format(self, how: How) -> Format:
        chosen: Format = how.printed_as(*get_args(Format), what="an experiment")
        return chosen


def _loaded(name: str | None, changes: Changes, home: Home) -> Experiment:
    if name is None:
        raise UsageError("which experiment?", hint="name one, or a file; see: benchctl experiment list")
    experiment = load_experiment(find_experiment(name), changes, home)
    left = left_out_text(experiment)
    if left:
        note(left)
    return experiment


def _only_say(
    experiment: Experiment, store: RunStore, home: Home, budget_s: float | None, on_busy: BusyAction
) -> None:
    """Describe an execution, after checking all that can be checked without it."""
    spec = experiment.spec
    store.open(make=False)
    plans = [
        with_documents(planned_run.plan, planned_run.track, planned_run.files, home)
        for planned_run in experiment.plans.values()
    ]
    measurements = counted(len(spec.measurements), "measurement")
    say(f"would measure {spec.name}: {measurements} on {documents_text(spec)}")
    estimate, steps = estimated(experiment, store, home, budget_s)
    remarks = (
        line
        for plan, planned in zip(plans, experiment.plans.values(), strict=True)
        for line in plan_lines(plan, planned.track)
    )
    for line in (*estimate_lines(estimate), *dict.fromkeys(remarks), *steps.lines()):
        say(line)
    with watching(quiet=False) as observer:
        check_quiet(home, plans, observer.note, "fail" if on_busy == "fail" else "warn")


def _begun(
    experiment: Experiment, store: RunStore, home: Home, budget_s: float | None, observer: Observer
) -> ExperimentFolder:
    """Print what to expect, and put the new execution on disk."""
    estimate, _ = estimated(experiment, store, home, budget_s)
    for line in estimate_lines(estimate):
        observer.note(line)
    folder = begin(
        ExperimentStore(home.experiments),
        experiment.spec,
        estimate.expected_s,
        datetime.now(UTC).astimezone(),
    )
    observer.note(f"experiment {folder.path.name}")
    return folder


def conclude(
    record: ExperimentRecord, store: RunStore, output_format: Format, html_folder: Path | None = None
) -> None:
    """Print the report.

    Raises:
        BenchctlError: If it does not show everything that was requested.
    """
    runs = print_report(record, store, output_format, html_folder)
    missing = {run.id: len(run.missing()) for run in runs.values() if run.missing()}
    if missing:
        shows = ", ".join(f"benchctl show {name}" for name in missing)
        raise BenchctlError(
            f"{counted(sum(missing.values()), 'fork')} failed; the report shows the rest",
            hint=f"see the reasons with {shows}; resume with: benchctl resume {record.id}",
        )
    failing = [f"{name}: {', '.join(reasons)}" for name, run in runs.items() if (reasons := unanswered(run))]
    if failing:
        raise BenchctlError(f"every request failed in {'; '.join(failing)}; the report shows the rest")
