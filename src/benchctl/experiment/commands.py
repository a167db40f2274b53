"""`benchctl experiment`: files that say what is compared and expected, and what came of them."""

import threading
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import get_args

import click

from benchctl.cli.measuring import (
    dry_run_option,
    look_around,
    measuring,
    measuring_options,
    plan_lines,
    say_rest,
    with_documents,
)
from benchctl.cli.options import (
    AmountType,
    ParamOptions,
    TableFormat,
    grouped,
    param_options,
    print_table,
    printed_as,
    table_format_option,
)
from benchctl.cli.run import How
from benchctl.cli.run_options import has_trial_documents, setting_option, test_mode_option
from benchctl.cli.streams import emit, note, say, text_width
from benchctl.cli.watch import watching
from benchctl.errors import BenchctlError, UsageError
from benchctl.experiment.conduct import Named, begin, conduct, runs_of, seen_calls
from benchctl.experiment.file import (
    Changes,
    Experiment,
    ExperimentFile,
    experiment_names,
    find_experiment,
    load_experiment,
)
from benchctl.experiment.judge import analyse_experiment
from benchctl.experiment.record import ExperimentFolder, ExperimentRecord, ExperimentStore, experiment_of
from benchctl.experiment.report import Format, render
from benchctl.home import Home, resolve_home
from benchctl.plugin.code import Consent
from benchctl.quantities import COUNT, DURATION
from benchctl.report.numbers import counted
from benchctl.report.table import Column, Table
from benchctl.results.model import unanswered
from benchctl.results.store import RunStore
from benchctl.run.bench import Bench
from benchctl.run.fitness import check_quiet
from benchctl.run.forecast import Ahead, Past, announce, preparation
from benchctl.run.host import describe_host
from benchctl.run.orchestrate import More, extended
from benchctl.run.prepare import check_host
from benchctl.run.work import confirm_plugin
from benchctl.spec import MOST_FORKS_IN_FILE, BusyAction
from benchctl.yaml_file import read_typed


@click.group("experiment")
def experiment_group() -> None:
    """Run an experiment and evaluate its expectations.

    An experiment file names variants, measurements, comparisons between tasks of them, and expectations.
    Measurements are ordinary runs, whose forks are interleaved; every expectation ends confirmed, refuted or
    inconclusive.
    """


_change_options = grouped(
    "changes",
    Changes,
    click.option(
        "--forks",
        type=click.IntRange(1, MOST_FORKS_IN_FILE),
        default=None,
        help="Forks of every variant, instead of the file's.",
    ),
    click.option("--docs", type=AmountType(COUNT), default=None, help="Documents, instead of the file's."),
    setting_option("heap", "Heap of every node, instead of the file's."),
    setting_option("seed", "Seed of order and arrivals, instead of the file's."),
    test_mode_option,
)
_report_format = printed_as(*get_args(Format), about="Output format of the report.")


@experiment_group.command("list")
@table_format_option
def list_command(output_format: TableFormat) -> None:
    """List shipped experiments and past executions."""
    home = resolve_home()
    runs = RunStore(home.root / "runs")
    rows: list[tuple[object, ...]] = [
        (name, None, "shipped", None, read_typed(find_experiment(name), ExperimentFile).value.title)
        for name in experiment_names()
    ]
    # Whoever only looks makes no folder.
    for _, record in ExperimentStore(home.root / "experiments").records(note):
        measured = runs_of(record, runs, note).values()
        total = sum(run.total for run in measured)
        done = total - sum(len(run.missing()) for run in measured)
        rows.append((record.spec.name, record.id, record.status, f"{done}/{total}", record.spec.title))
    columns = ("experiment", "id", "status", Column("forks"), "title")
    print_table(Table.listed("Experiments", columns, rows), output_format)


@experiment_group.command("run")
@click.argument("name", metavar="NAME|FILE")
@_change_options
@param_options
@click.option(
    "--budget",
    "budget_s",
    type=AmountType(DURATION),
    default=None,
    help="Time for the forks, without preparation, such as 2h; no block starts that is not expected to fit.",
)
@dry_run_option
@measuring_options
@_report_format
def run_command(
    name: str,
    budget_s: float | None,
    output_format: Format,
    *,
    changes: Changes,
    param_options: ParamOptions,
    on_busy: BusyAction | None,
    dry_run: bool,
    quiet: bool,
) -> None:
    """Run an experiment and evaluate its expectations.

    Its measurements become separate runs, which `benchctl show` prints; their forks are interleaved. Exit
    codes: 0 when all was measured, whatever the verdicts; 1 when forks failed.
    """
    if budget_s is not None and budget_s <= 0:
        raise UsageError("--budget must be more than 0s")
    home = resolve_home()
    store = RunStore(home.runs)
    experiment = load_experiment(
        find_experiment(name),
        replace(changes, overrides=param_options.read(), at_most=has_trial_documents()),
        home,
    )
    on_busy = on_busy or experiment.on_busy
    for planned in experiment.plans.values():
        check_host(planned.plan, home)
    if dry_run:
        _only_say(experiment, store, home, on_busy)
        return
    with measuring(on_busy, quiet=quiet) as observer:
        check_quiet(home, [planned.plan for planned in experiment.plans.values()], observer.note, on_busy)
        for line in _steps(experiment, Past(store, describe_host().fingerprint), home):
            observer.note(line)
        folder = begin(ExperimentStore(home.experiments), experiment, datetime.now(UTC).astimezone())
        observer.note(f"experiment {folder.path.name}")
        bench = Bench(home, store, observer, threading.Event())
        record = conduct(folder, bench, experiment.plans, budget_s=budget_s)
    conclude(record, store, output_format)


def _steps(experiment: Experiment, past: Past, home: Home) -> list[str]:
    runs = [Ahead(planned.plan, planned.track, planned.files) for planned in experiment.plans.values()]
    return preparation(runs, home, past)


def _only_say(experiment: Experiment, store: RunStore, home: Home, on_busy: BusyAction) -> None:
    """Describe an execution, after checking all that can be checked without it."""
    spec, past = experiment.spec, Past(store, describe_host().fingerprint)
    store.open(make=False)
    say(f"would measure {spec.name}: {counted(len(spec.measurements), 'measurement')}")
    plans = {
        name: with_documents(planned.plan, planned.track, planned.files, home)
        for name, planned in experiment.plans.items()
    }
    remarks = (line for name in plans for line in plan_lines(plans[name], experiment.plans[name].track))
    for line in (*dict.fromkeys(remarks), *_steps(experiment, past, home)):
        say(line)
    with watching(quiet=False) as observer:
        look_around(home, [*plans.values()], observer, on_busy)
        for name, plan in plans.items():
            if plan.schedules:
                announce(past, plan, experiment.plans[name].track, Named(observer, name))


@experiment_group.command("report")
@click.argument("name", metavar="ID")
@_report_format
def report_command(name: str, output_format: Format) -> None:
    """Print the report of a past execution.

    An unfinished one is reported as far as it was measured; `latest` is the newest.
    """
    home = resolve_home()
    # Whoever only looks makes no folder.
    folder = ExperimentStore(home.root / "experiments").find(name)
    _print_report(folder.load(), RunStore(home.root / "runs"), output_format)


def _print_report(record: ExperimentRecord, store: RunStore, output_format: Format) -> None:
    """Judge an experiment from what is on disk, and print that."""
    runs = runs_of(record, store, note)
    analysis = analyse_experiment(record, runs, seen_calls(record.spec, runs, store))
    emit(render(record, runs, analysis, output_format, width=text_width()))


def conclude(record: ExperimentRecord, store: RunStore, output_format: Format) -> None:
    """Print the report.

    Raises:
        BenchctlError: If it does not show everything that was requested.
    """
    _print_report(record, store, output_format)
    runs = runs_of(record, store, lambda _message: None)
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


# `benchctl resume` and `extend`.


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
        """Measure what is missing."""
        record = self.folder.load()
        if record.status == "complete" and not record.stopped:
            note(f"experiment {record.id} is complete; nothing is measured")
            output_format: Format = how.printed_as(*get_args(Format), what="an experiment")
            conclude(record, RunStore(self.home.runs), output_format)
        else:
            self._go_on(how, budget_s, None)

    def extend(self, more: More, how: How) -> None:
        """Add forks of everything."""
        record = self.folder.load()
        if more.until_decided:
            raise UsageError("--until-decided: an experiment needs a number of forks", hint="give it --forks")
        if record.status != "complete":
            raise UsageError(
                f"experiment {record.id} is not finished ({record.status})",
                hint=f"resume with: benchctl resume {record.id}",
            )
        self._go_on(how, more.budget_s, more)

    def _go_on(self, how: How, budget_s: float | None, more: More | None) -> None:
        store, record = RunStore(self.home.runs), self.folder.load()
        output_format: Format = how.printed_as(*get_args(Format), what="an experiment")
        on_busy = how.on_busy or record.on_busy
        if how.dry_run:
            runs = [
                run if more is None else extended(run, more)
                for name, run in runs_of(record, store, note).items()
                if run.plan.schedules and (more is None or record.spec.measurements[name].grows)
            ]
            say_rest(runs, self.home, on_busy)
            return
        with measuring(on_busy, quiet=how.quiet) as observer:
            plans = [run.plan for run in runs_of(record, store, observer.note).values()]
            for plan in plans:
                confirm_plugin(plan, Consent(self.home, given=how.trust))
            check_quiet(self.home, plans, observer.note, on_busy)
            bench = Bench(self.home, store, observer, threading.Event())
            record = conduct(self.folder, bench, budget_s=budget_s, more=more)
        conclude(record, store, output_format)


def whole(home: Home, name: str, tags: Collection[str]) -> BegunExperiment | None:
    """Return the experiment that a name means, or that a run with such tags is a measurement of."""
    store = ExperimentStore(home.root / "experiments")
    experiment_id = experiment_of(tags) or name
    if not store.fitting(experiment_id):
        return None
    return BegunExperiment(home, store.find(experiment_id))
