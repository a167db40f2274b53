"""`benchctl experiment run`: measure an experiment, then report on it."""

import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import click

from benchctl.cli.measuring import (
    dry_run_option,
    measuring,
    measuring_options,
    plan_lines,
    require_quiet_option,
    with_documents,
)
from benchctl.cli.options import ParamOptions, param_options, refuse_beside
from benchctl.cli.streams import note, say
from benchctl.cli.watch import watching
from benchctl.errors import BenchctlError, UsageError
from benchctl.experiment.commands.show import (
    SizeOptions,
    check_page_folder,
    estimated,
    left_out_text,
    print_report,
    report_options,
    size_options,
)
from benchctl.experiment.conduct import More, conduct, plans_to_open
from benchctl.experiment.estimate import estimate_lines
from benchctl.experiment.execution import adopted, begin, forks_missing, runs_of
from benchctl.experiment.file import find_experiment
from benchctl.experiment.plan import Changes, Experiment, Plans, load_experiment
from benchctl.experiment.record import ExperimentFolder, ExperimentRecord, ExperimentStore
from benchctl.experiment.report import Format, documents_text
from benchctl.home import Home, resolve_home
from benchctl.plugin.code import Consent
from benchctl.report.numbers import counted
from benchctl.results.model import DEFAULT_FORKS, MOST_FORKS, RunRecord, unanswered
from benchctl.results.store import RunStore
from benchctl.run.bench import Bench, Observer
from benchctl.run.fitness import check_quiet
from benchctl.run.host import describe_host
from benchctl.run.plugin import confirm_plugin
from benchctl.run.prepare import check_host

# What may stand beside --resume: it says where, how long and what to show, not what to measure.
_WITH_RESUME = frozenset({"resume", "wait", "quiet", "output_format", "html_folder", "budget_s"})
_WITH_MORE = (_WITH_RESUME - {"resume"}) | {"more", "forks", "until_decided"}


@click.command("run")
@click.argument("name", metavar="[NAME|FILE]", required=False)
@size_options
@param_options
@click.option(
    "--resume",
    metavar="ID",
    help="Go on with an execution that was cut off, or ran out of time; --budget counts from then on.",
)
@click.option(
    "--more",
    metavar="ID",
    help="Add forks to an execution that is complete: --forks of everything, as many as fit into --budget, "
    "or with --until-decided what that takes, at most --forks of a side.",
)
@require_quiet_option
@dry_run_option
@measuring_options
@report_options
def run_command(
    name: str | None,
    resume: str | None,
    more: str | None,
    output_format: Format,
    html_folder: Path | None,
    *,
    size_options: SizeOptions,
    param_options: ParamOptions,
    require_quiet: bool,
    dry_run: bool,
    wait: bool,
    quiet: bool,
) -> None:
    """Measure the experiment NAME, or that of a file, and judge what it expects.

    First it says what that takes and will be able to see. Its measurements become runs of their own, which
    `benchctl show` prints; their forks are interleaved. Exit codes: 0 when all was measured, whatever the
    verdicts; 1 when forks failed.
    """
    if html_folder is not None:
        check_page_folder(html_folder)
    home = resolve_home()
    store = RunStore(home.runs)
    changes = size_options.changes(param_options)
    if resume is None and more is None:
        experiment = _loaded(name, changes, home)
        for planned in experiment.plans.values():
            check_host(planned.plan, home)
        if dry_run:
            _only_say(experiment, store, home, size_options.budget_s, require_quiet=require_quiet)
            return
        plans = [planned.plan for planned in experiment.plans.values()]
        with measuring(wait=wait, quiet=quiet) as observer:
            check_quiet(home, plans, describe_host(), observer.note, required=require_quiet)
            folder = _begun(experiment, store, home, size_options.budget_s, observer)
            bench = Bench(home, store, observer, threading.Event())
            record = conduct(folder, bench, experiment.plans, budget_s=size_options.budget_s)
    else:
        option, allowed = ("--resume", _WITH_RESUME) if more is None else ("--more", _WITH_MORE)
        refuse_beside(option, click.get_current_context(), allowed, "an experiment")
        folder = ExperimentStore(home.experiments).find(more or resume or "", note)
        record = folder.load()
        added = None if more is None else _added(record, size_options)
        if (
            added is None
            and record.status == "complete"
            and not forks_missing(record, runs_of(record, store, note))
        ):
            note(f"experiment {record.id} is complete; nothing is measured")
        else:
            with measuring(wait=wait, quiet=quiet) as observer:
                bench = Bench(home, store, observer, threading.Event())
                record = _gone_on(folder, bench, size_options.budget_s, added)
    runs = print_report(record, store, output_format, html_folder)
    _conclude(record, runs)


def _loaded(name: str | None, changes: Changes, home: Home) -> Experiment:
    if name is None:
        raise UsageError("which experiment?", hint="name one, or a file; see: benchctl experiment list")
    experiment = load_experiment(find_experiment(name), changes, home)
    left = left_out_text(experiment)
    if left:
        note(left)
    return experiment


def _only_say(
    experiment: Experiment, store: RunStore, home: Home, budget_s: float | None, *, require_quiet: bool
) -> None:
    """Describe an execution, after checking all that can be checked without it."""
    spec = experiment.spec
    store.open(make=False)
    plans = [with_documents(one.plan, one.track, one.files, home) for one in experiment.plans.values()]
    measurements = counted(len(spec.measurements), "measurement")
    say(f"would measure {spec.name}: {measurements} on {documents_text(spec)}")
    found, steps = estimated(experiment, store, home, budget_s)
    remarks = (
        line
        for plan, planned in zip(plans, experiment.plans.values(), strict=True)
        for line in plan_lines(plan, planned.track)
    )
    for line in (*estimate_lines(found), *dict.fromkeys(remarks), *steps.lines()):
        say(line)
    with watching(quiet=False) as observer:
        check_quiet(home, plans, describe_host(), observer.note, required=require_quiet)


def _begun(
    experiment: Experiment, store: RunStore, home: Home, budget_s: float | None, observer: Observer
) -> ExperimentFolder:
    """Print what to expect, and put the new execution on disk."""
    found, _ = estimated(experiment, store, home, budget_s)
    for line in estimate_lines(found):
        observer.note(line)
    folder = begin(
        ExperimentStore(home.experiments), experiment.spec, found.expected_s, datetime.now(UTC).astimezone()
    )
    observer.note(f"experiment {folder.path.name}")
    return folder


def _added(record: ExperimentRecord, size: SizeOptions) -> More:
    """Return what `--more` adds."""
    if record.status != "complete":
        raise UsageError(
            f"experiment {record.id} is not finished ({record.status})",
            hint=f"go on with: benchctl experiment run --resume {record.id}",
        )
    if size.forks is not None and size.forks < 1:
        raise UsageError("--forks must be at least 1")
    usual = MOST_FORKS if size.until_decided or size.budget_s else DEFAULT_FORKS
    return More(usual if size.forks is None else size.forks, size.until_decided)


def _gone_on(
    folder: ExperimentFolder, bench: Bench, budget_s: float | None, more: More | None
) -> ExperimentRecord:
    """Continue an execution, with more; its plans are made before anything is prepared."""
    record = adopted(folder.load(), bench.store)
    folder.save(record)
    consent = Consent(bench.home)
    for run in runs_of(record, bench.store, bench.observer.note).values():
        confirm_plugin(run.plan, consent)
    plans: Plans = plans_to_open(record, bench.home)
    return conduct(folder, bench, plans, budget_s=budget_s, more=more)


def _conclude(record: ExperimentRecord, runs: Mapping[str, RunRecord]) -> None:
    """Fail if the report does not show everything that was requested."""
    missing = {run.id: len(run.missing()) for run in runs.values() if run.missing()}
    if missing:
        shows = ", ".join(f"benchctl show {name}" for name in missing)
        raise BenchctlError(
            f"{counted(sum(missing.values()), 'fork')} failed; the report shows the rest",
            hint=f"see the reasons with {shows}; go on with: benchctl experiment run --resume {record.id}",
        )
    failing = [f"{name}: {', '.join(found)}" for name, run in runs.items() if (found := unanswered(run))]
    if failing:
        raise BenchctlError(f"every request failed in {'; '.join(failing)}; the report shows the rest")
