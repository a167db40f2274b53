"""`benchctl run`: measure, then compare."""

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
import psutil
from click.core import ParameterSource

from benchctl.cli.conclude import conclude
from benchctl.cli.filter_options import FilterOptions, filter_options
from benchctl.cli.fork_options import ForkOptions, fork_options
from benchctl.cli.load_options import AUTO, LoadOptions, load_options
from benchctl.cli.measuring import measuring, measuring_options
from benchctl.cli.options import (
    TagType,
    format_option,
    open_store,
    runs_option,
)
from benchctl.cli.param_options import ParamOptions, param_options
from benchctl.cli.schedule_options import ScheduleOptions, schedule_options
from benchctl.cli.subjects import BUILT_IN, SubjectOptions, subject_options
from benchctl.cli.targets import TargetOptions, endpoints_of, resolve_targets, target_options
from benchctl.cli.trial_option import trial_option
from benchctl.cli.trust_option import trust_option
from benchctl.errors import UsageError
from benchctl.home import resolve_home
from benchctl.plugin.consent import Consent
from benchctl.run.calibrate import calibrate
from benchctl.run.offer import needs_calibration, with_workers
from benchctl.run.orchestrate import Bench, resume_run, start_run
from benchctl.run.plan import PlanOptions, plan_run, reload_track
from benchctl.run.plugin import confirm_plugin
from benchctl.run.trial import as_trial

if TYPE_CHECKING:
    from benchctl.report.formats import Format

# What may stand beside --resume: it says where, how and what to show, not what to measure.
_WITH_RESUME = frozenset({"resume", "wait", "quiet", "runs_folder", "output_format", "trust"})


@click.command("run")
@schedule_options
@param_options
@filter_options
@subject_options
@target_options
@load_options
@fork_options
@click.option(
    "--calibrate",
    "calibrating",
    is_flag=True,
    help="First measure what the driver itself costs on this machine, and keep that with the run.",
)
@trial_option
@trust_option
@click.option(
    "--tag",
    "tags",
    type=TagType(),
    multiple=True,
    help="A word to find the run by, with compare and list runs; repeatable.",
)
@click.option(
    "--until-steady",
    is_flag=True,
    help="First find out, on unmeasured pilot forks, for how long tasks must warm up, and let them.",
)
@click.option("--resume", metavar="RUN", help="Go on with a run that was interrupted.")
@measuring_options
@runs_option
@format_option
def run_command(
    tags: tuple[str, ...],
    resume: str | None,
    runs_folder: Path | None,
    output_format: "Format",
    *,
    schedule_options: ScheduleOptions,
    param_options: ParamOptions,
    filter_options: FilterOptions,
    subject_options: SubjectOptions,
    target_options: TargetOptions,
    load_options: LoadOptions,
    fork_options: ForkOptions,
    calibrating: bool,
    test_mode: bool,
    trust: bool,
    until_steady: bool,
    wait: bool,
    quiet: bool,
) -> None:
    """Measure challenges on fresh nodes, or on clusters that run already, and compare the variants.

    Everything that is needed is fetched or built first and kept for the next run: engines, a Java runtime,
    the corpus, one prepared index an engine.
    """
    if test_mode and until_steady:
        raise UsageError("--test-mode cuts what --until-steady lengthens", hint="leave one of them out")
    home = resolve_home()
    store = open_store(home, runs_folder)
    if resume is None:
        targets = resolve_targets(target_options, os.environ)
        options = PlanOptions(
            variants=(*subject_options.specs(() if targets else BUILT_IN), *targets),
            challenges=schedule_options.challenges,
            warmup_challenges=schedule_options.warmups,
            restart=schedule_options.restart,
            forks=fork_options.count,
            seed=subject_options.seed,
            heap_mb=subject_options.heap_mb,
            track=subject_options.track,
            corpus=subject_options.corpus,
            files=subject_options.files,
            segments=subject_options.segments,
            params=param_options.read(),
            include_tasks=filter_options.include_tasks,
            exclude_tasks=filter_options.exclude_tasks,
            ingest_clients=subject_options.ingest_clients,
            paired=subject_options.paired,
            on_error=load_options.on_error,
            assertions=load_options.assertions,
            transport=load_options.transport,
            workers=load_options.workers or 1,
            stop=fork_options.stop,
            index_builds=subject_options.index_builds,
            pin=subject_options.pin_spec(load_options.workers or 1),
            consent=Consent(home, given=trust),
        )
        plan, loaded = plan_run(options)
        plan = as_trial(plan) if test_mode else plan
        folder = None
    else:
        _only_resume(click.get_current_context())
        folder = store.find(resume)
        plan = folder.load().plan
        confirm_plugin(plan, Consent(home, given=trust))
        loaded = reload_track(plan)
    with measuring(wait=wait, quiet=quiet) as observer:
        bench = Bench(home, store, observer, threading.Event(), endpoints_of(plan.variants, os.environ))
        if folder is None:
            choosing = load_options.workers == AUTO and needs_calibration(plan)
            calibration = calibrate(observer, bench.stop) if calibrating or choosing else None
            if choosing and calibration is not None:
                plan = with_workers(plan, calibration, psutil.cpu_count() or 1)
                plan = msgspec.structs.replace(plan, pin=subject_options.pin_spec(plan.workers))
            folder, record = start_run(
                bench,
                plan,
                loaded,
                calibration=calibration,
                tags=tuple(dict.fromkeys(tags)),
                until_steady=until_steady,
                files=subject_options.files,
            )
        else:
            record = resume_run(bench, folder, loaded)
    conclude(folder, record, home, output_format)


def _only_resume(context: click.Context) -> None:
    """Refuse options that would silently have no effect."""
    given = [
        option.opts[0]
        for option in context.command.params
        if option.name not in _WITH_RESUME
        and context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
    ]
    if given:
        raise UsageError(
            f"--resume goes on with a run as it was planned: {', '.join(given)} cannot change it",
            hint=f"leave out {', '.join(given)}, or start a new run",
        )
