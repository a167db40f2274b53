"""`benchctl run`: measure, then compare."""

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click
import psutil
from click.core import ParameterSource

from benchctl.cli.conclude import conclude
from benchctl.cli.load_options import AUTO, LoadOptions, load_options
from benchctl.cli.options import (
    format_option,
    open_store,
    runs_option,
)
from benchctl.cli.subjects import BUILT_IN, SubjectOptions, subject_options
from benchctl.cli.targets import TargetOptions, endpoints_of, resolve_targets, target_options
from benchctl.cli.trial_option import trial_option
from benchctl.cli.watch import watching
from benchctl.errors import UsageError
from benchctl.home import resolve_home
from benchctl.results.plan import RestartPolicy
from benchctl.run.calibrate import calibrate
from benchctl.run.lock import host_lock
from benchctl.run.offer import needs_calibration, with_workers
from benchctl.run.orchestrate import Bench, resume_run, start_run
from benchctl.run.plan import PlanOptions, parse_params, plan_run, reload_track
from benchctl.run.trial import as_trial

if TYPE_CHECKING:
    from benchctl.report.formats import Format

# What may stand beside --resume: it says where, how and what to show, not what to measure.
_WITH_RESUME = frozenset({"resume", "wait", "quiet", "runs_folder", "output_format"})


@click.command("run")
@click.option(
    "--challenge",
    "challenges",
    multiple=True,
    metavar="NAME|FILE",
    help="What to run; repeat it to run schedules in order on one fork.",
)
@subject_options
@target_options
@load_options
@click.option(
    "--forks", type=int, default=5, show_default=True, help="Passes of every variant on fresh nodes."
)
@click.option(
    "--param",
    "params",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a parameter, such as iterations=300, or one of a single challenge: warmup.iterations=50.",
)
@click.option(
    "--restart",
    type=click.Choice(["challenge", "task", "never"]),
    default="challenge",
    show_default=True,
    help="When a fresh node comes in between.",
)
@click.option(
    "--warmup-challenge",
    "warmups",
    multiple=True,
    metavar="NAME|FILE",
    help="Run unmeasured on every fresh node before the schedule.",
)
@click.option(
    "--calibrate",
    "calibrating",
    is_flag=True,
    help="First measure what the driver itself costs on this machine, and keep that with the run.",
)
@trial_option
@click.option("--resume", metavar="RUN", help="Go on with a run that was interrupted.")
@click.option("--wait", is_flag=True, help="Wait while another benchctl is measuring on this host.")
@click.option("--quiet", is_flag=True, help="Print the result only.")
@runs_option
@format_option
def run_command(
    challenges: tuple[str, ...],
    forks: int,
    params: tuple[str, ...],
    restart: RestartPolicy,
    warmups: tuple[str, ...],
    resume: str | None,
    runs_folder: Path | None,
    output_format: "Format",
    *,
    subject_options: SubjectOptions,
    target_options: TargetOptions,
    load_options: LoadOptions,
    calibrating: bool,
    test_mode: bool,
    wait: bool,
    quiet: bool,
) -> None:
    """Measure challenges on fresh nodes, or on clusters that run already, and compare the variants.

    Everything that is needed is fetched or built first and kept for the next run: engines, a Java runtime,
    the corpus, one prepared index an engine.
    """
    home = resolve_home()
    store = open_store(home, runs_folder)
    if resume is None:
        targets = resolve_targets(target_options, os.environ)
        options = PlanOptions(
            variants=(*subject_options.specs(() if targets else BUILT_IN), *targets),
            challenges=challenges,
            warmup_challenges=warmups,
            restart=restart,
            forks=forks,
            seed=subject_options.seed,
            heap_mb=subject_options.heap_mb,
            track=subject_options.track,
            corpus=subject_options.corpus,
            segments=subject_options.segments,
            params=parse_params(params),
            ingest_clients=subject_options.ingest_clients,
            paired=subject_options.paired,
            on_error=load_options.on_error,
            transport=load_options.transport,
            workers=load_options.workers or 1,
        )
        plan, loaded = plan_run(options)
        plan = as_trial(plan) if test_mode else plan
        folder = None
    else:
        _only_resume(click.get_current_context())
        folder = store.find(resume)
        plan = folder.load().plan
        loaded = reload_track(plan)
    with (
        watching(quiet=quiet) as observer,
        host_lock(wait=wait, on_wait=lambda holder: observer.note(f"waiting for another benchctl: {holder}")),
    ):
        bench = Bench(home, store, observer, threading.Event(), endpoints_of(plan.variants, os.environ))
        if folder is None:
            choosing = load_options.workers == AUTO and needs_calibration(plan)
            calibration = calibrate(observer, bench.stop) if calibrating or choosing else None
            if choosing and calibration is not None:
                plan = with_workers(plan, calibration, psutil.cpu_count() or 1)
            folder, record = start_run(bench, plan, loaded, calibration=calibration)
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
