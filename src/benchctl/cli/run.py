"""`benchctl run`: measure, then compare."""

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click
import psutil
from click.core import ParameterSource

from benchctl.cli.load_options import AUTO, LoadOptions, load_options
from benchctl.cli.options import (
    DocumentsType,
    HeapType,
    format_option,
    open_store,
    runs_option,
)
from benchctl.cli.targets import TargetOptions, endpoints_of, resolve_targets, target_options
from benchctl.cli.variants import resolve_variants
from benchctl.cli.watch import watching
from benchctl.errors import BenchctlError, ExitCode, UsageError
from benchctl.home import resolve_home
from benchctl.results.checks import unanswered
from benchctl.results.plan import CorpusSpec, RestartPolicy
from benchctl.results.store import reference
from benchctl.run.calibrate import calibrate
from benchctl.run.lock import host_lock
from benchctl.run.offer import needs_calibration, with_workers
from benchctl.run.orchestrate import Bench, resume_run, start_run
from benchctl.run.plan import PlanOptions, default_heap_mb, parse_params, plan_run, reload_track

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
@click.option(
    "--variant",
    "variants",
    multiple=True,
    metavar="VARIANT",
    help="es, os, es@8.19.0, or LABEL=BASE,jvm:FLAG,setting:KEY=VALUE; repeatable, the first is the baseline"
    "  [default: es and os, or the targets]",
)
@target_options
@load_options
@click.option(
    "--forks", type=int, default=5, show_default=True, help="Passes of every variant on fresh nodes."
)
@click.option(
    "--docs", type=DocumentsType(), default="1m", show_default=True, help="Documents of the corpus."
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
@click.option("--track", default="big5", show_default=True, metavar="NAME|PATH", help="Index and operations.")
@click.option(
    "--heap",
    "heap_mb",
    type=HeapType(),
    default=None,
    help="Heap of every node  [default: a quarter of memory, at most 4g]",
)
@click.option(
    "--jdk",
    "jdks",
    multiple=True,
    metavar="[VARIANT=]PATH|MAJOR",
    help="Java home, or a major version to fetch  [default: the bundled 21]",
)
@click.option(
    "--distribution",
    "distributions",
    multiple=True,
    metavar="VARIANT=PATH|URL",
    help="A .tar.gz, .zip or folder instead of Maven Central.",
)
@click.option("--segments", type=int, default=1, show_default=True, help="Segments of the prepared index.")
@click.option(
    "--ingest-clients",
    type=int,
    default=2,
    show_default=True,
    help="Concurrent bulk senders that fill the prepared index.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of the order of variants in blocks.")
@click.option("--corpus-seed", type=int, default=1, show_default=True, help="Of the corpus.")
@click.option("--paired", is_flag=True, help="Declare that blocks will be analysed as pairs.")
@click.option(
    "--calibrate",
    "calibrating",
    is_flag=True,
    help="First measure what the driver itself costs on this machine, and keep that with the run.",
)
@click.option("--resume", metavar="RUN", help="Go on with a run that was interrupted.")
@click.option("--wait", is_flag=True, help="Wait while another benchctl is measuring on this host.")
@click.option("--quiet", is_flag=True, help="Print the result only.")
@runs_option
@format_option
def run_command(
    challenges: tuple[str, ...],
    variants: tuple[str, ...],
    forks: int,
    docs: int,
    params: tuple[str, ...],
    restart: RestartPolicy,
    warmups: tuple[str, ...],
    track: str,
    heap_mb: int | None,
    jdks: tuple[str, ...],
    distributions: tuple[str, ...],
    segments: int,
    ingest_clients: int,
    seed: int,
    corpus_seed: int,
    resume: str | None,
    runs_folder: Path | None,
    output_format: "Format",
    *,
    target_options: TargetOptions,
    load_options: LoadOptions,
    paired: bool,
    calibrating: bool,
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
        started = variants or (() if targets else ("es", "os"))
        options = PlanOptions(
            variants=(*resolve_variants(started, distributions, jdks), *targets),
            challenges=challenges,
            warmup_challenges=warmups,
            restart=restart,
            forks=forks,
            seed=seed,
            heap_mb=heap_mb or default_heap_mb(psutil.virtual_memory().total),
            track=track,
            corpus=CorpusSpec(seed=corpus_seed, documents=docs, generator_version=0, digest=""),
            segments=segments,
            params=parse_params(params),
            ingest_clients=ingest_clients,
            paired=paired,
            on_error=load_options.on_error,
            transport=load_options.transport,
            workers=load_options.workers or 1,
        )
        plan, loaded = plan_run(options)
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
    # The statistics behind the tables take longer to load than a search; no first request waits for them.
    from benchctl.cli.output import print_run  # noqa: PLC0415 - see above

    print_run(folder, output_format, usual=home.runs)
    if record.missing():
        total = plan.forks * len(plan.variants)
        name = reference(folder, home.runs)
        raise BenchctlError(
            f"{len(record.missing())} of {total} forks failed; the tables show the rest",
            hint=f"see the reasons with: benchctl show {name}; go on with: benchctl run --resume {name}",
            exit_code=ExitCode.FAILED,
        )
    failing = unanswered(record)
    if failing:
        raise BenchctlError(
            f"every request failed in {', '.join(failing)}; the tables show the rest",
            hint="the notes below the tables say why",
        )


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
