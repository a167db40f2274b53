"""`benchctl run`: measure, then compare."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
import psutil

from benchctl.cli.measuring import (
    benched,
    conclude,
    dry_run_option,
    only_say,
    quiet_option,
)
from benchctl.cli.options import (
    ParamOptions,
    SectionedCommand,
    format_option,
    open_store,
    param_options,
    runs_option,
    verbose_option,
)
from benchctl.cli.run_options import (
    asked_run,
    config_option,
    form_options,
    test_mode_option,
    trust_option,
)
from benchctl.cli.targets import TargetOptions, target_options, unasked_targets, with_answers
from benchctl.errors import UsageError
from benchctl.home import resolve_home
from benchctl.plugin.code import Consent
from benchctl.results.figures import Calibration
from benchctl.results.plan import Plan
from benchctl.run.bench import Bench
from benchctl.run.calibrate import calibrate, needs_calibration, with_workers
from benchctl.run.form import pin_of_form
from benchctl.run.orchestrate import Extras, start_run
from benchctl.run.pilot import check_lengthening
from benchctl.run.plan import plan_run
from benchctl.run.trial import in_test_mode
from benchctl.spec import AS_MANY_WORKERS_AS_NEEDED, RunForm

if TYPE_CHECKING:
    from benchctl.report.formats import Format


@click.command("run", cls=SectionedCommand)
@config_option
@param_options
@form_options()
@target_options
@test_mode_option
@trust_option
@dry_run_option
@quiet_option
@verbose_option
@runs_option
@format_option
def run_command(
    runs_folder: Path | None,
    output_format: "Format",
    *,
    form: RunForm,
    param_options: ParamOptions,
    target_options: TargetOptions,
    test_mode: bool,
    trust: bool,
    quiet: bool,
    dry_run: bool,
    verbose: bool,
) -> None:
    """Run challenges on fresh nodes and compare the variants.

    Everything that is needed is fetched or built first and kept for the next run: engines, a Java runtime,
    the corpus, one prepared index an engine.
    """
    if test_mode and form.until_steady:
        raise UsageError("--test-mode cuts what --until-steady lengthens", hint="leave one of them out")
    home = resolve_home()
    store = open_store(home, runs_folder)
    consent = Consent(home, given=trust)
    spec = asked_run(form, param_options, targets=unasked_targets(target_options), consent=consent)
    # Both choose counts of their own.
    settle = spec.settle and not (test_mode or form.until_steady)
    plan, track = plan_run(msgspec.structs.replace(spec, settle=settle))
    # An experiment may say it of all its measurements, a command only of its own variants.
    if plan.on_node_loss != "fail" and not any(len(one.nodes) > 1 for one in plan.variants):
        raise UsageError(
            "--on-node-loss: no variant has several nodes, and without its only one nothing goes on",
            hint="leave it out, or write, for instance, --variant es3=es,nodes:3,replicas:1",
        )
    plan = in_test_mode(plan) if test_mode else plan
    if form.until_steady:
        check_lengthening(plan)
    plan = with_answers(plan, os.environ)
    if dry_run:
        only_say(plan, track, spec.files, home, store, form.on_busy)
        return
    with benched(home, store, plan, form.on_busy, quiet=quiet) as bench:
        plan, calibration = _calibrated(plan, bench, form)
        extras = Extras(
            calibration=calibration,
            tags=form.tags,
            until_steady=form.until_steady,
            files=spec.files,
        )
        folder, record = start_run(bench, plan, track, extras)
    conclude(folder, record, home, output_format, details=verbose)


def _calibrated(plan: Plan, bench: Bench, form: RunForm) -> tuple[Plan, Calibration | None]:
    """Return the plan with as many processes as the driver needs here, and its cost, if measured."""
    choosing = form.workers == AS_MANY_WORKERS_AS_NEEDED and needs_calibration(plan)
    if not (form.calibrate or choosing):
        return plan, None
    calibration = calibrate(bench.observer, bench.stop, plan)
    if choosing:
        plan = with_workers(plan, calibration, psutil.cpu_count() or 1)
        plan = msgspec.structs.replace(plan, pin=pin_of_form(form, plan.workers))
    return plan, calibration
