"""`benchctl redline`: the highest rate of an operation at which an objective is still met."""

import os
from pathlib import Path
from typing import Any

import click
import msgspec

from benchctl.cli.measuring import (
    benched,
    conclude,
    dry_run_option,
    measuring_options,
    only_say,
    with_enough_workers,
)
from benchctl.cli.options import (
    NO_SWEEP,
    AmountType,
    ParamOptions,
    SectionedCommand,
    format_option,
    open_store,
    param_options,
    runs_option,
    verbose_option,
)
from benchctl.cli.run_options import PREPARING, SUBJECT, asked_run, form_options
from benchctl.cli.streams import typed_words
from benchctl.cli.targets import with_answers
from benchctl.errors import UsageError, suggestion
from benchctl.home import resolve_home
from benchctl.quantities import DURATION, PERCENT
from benchctl.report.table import Format
from benchctl.results.plan import Plan, RedlineSpec
from benchctl.run.orchestrate import Extras, start_run
from benchctl.run.plan import RunSpec, check_options, freeze
from benchctl.run.targets import check_targets
from benchctl.spec import BusyAction, RunForm
from benchctl.track.load import load_track, reject_unused
from benchctl.track.model import MOST_CLIENTS, Challenge, Task, Track
from benchctl.track.operations import MOST_WAIT_S, Asking
from benchctl.track.operations.catalogue import PluginOperation
from benchctl.track.schedule import MOST_PER_S

# What options of `benchctl run` would mean here, and what to do instead.
_INSTEAD = {
    **NO_SWEEP,
    "--challenge": "name the operation with --operation",
    "--metric": "searches are compared by the rates that they find",
    **dict.fromkeys(("--budget", "--until-decided"), "give the number of searches: --forks"),
    "--warmup": "raise --warm-up",
    "--evidence": "collect it with benchctl run, at the rate that a search found",
}


@click.command(
    "redline",
    cls=SectionedCommand,
    instead=_INSTEAD,
    options_metavar="--operation NAME --slo pN=TIME [OPTIONS]",
    examples=(
        "benchctl redline --operation range --slo p90=50ms",
        "benchctl redline --operation range --slo p99=100ms --variant es --variant es@8.19.0",
    ),
    first=(
        *("operation", "objective", "clients", "forks", "tolerance", "max_per_s"),
        *("variants", "targets", "track", "docs", "params"),
        *("dry_run", "on_busy", "output_format", "quiet", "verbose"),
    ),
)
@click.option("--operation", required=True, metavar="NAME", help="Search operation of the track.")
@click.option(
    "--slo", "objective", required=True, metavar="pN=TIME",
    help="Latency objective, e.g. p90=50ms; p50, p90, p95, p99 or p99.9, in us, ms or s.",
)  # fmt: skip
@form_options(*SUBJECT, "targets", "targets_file", *PREPARING, "hosts", "page_cache", "workers")
@param_options
@click.option(
    "--forks", type=int, default=3, show_default=True, metavar="N",
    help="Searches per variant, each on a fresh node.",
)  # fmt: skip
@click.option("--clients", type=int, default=16, show_default=True, metavar="N", help="Connections.")
@click.option(
    "--schedule", type=click.Choice(["deterministic", "poisson"]), default="poisson", show_default=True,
    help="Arrivals: at equal distances (deterministic), or at random like users (poisson).",
)  # fmt: skip
@click.option(
    "--warm-up", "warm_up_s", type=float, default=10.0, show_default=True, metavar="SECONDS",
    help="Closed loop before the search; it also estimates the first rate.",
)  # fmt: skip
@click.option(
    "--settle", "settle_s", type=float, default=2.0, show_default=True, metavar="SECONDS",
    help="Unmeasured part of every step.",
)  # fmt: skip
@click.option(
    "--step-time", "step_s", type=float, default=5.0, show_default=True, metavar="SECONDS",
    help="Measured part of every step.",
)  # fmt: skip
@click.option(
    "--tolerance", type=AmountType(PERCENT), default="3%", show_default=True,
    help="Distance between the last two rates: the precision of the result.",
)  # fmt: skip
@click.option(
    "--max-rate", "max_per_s", type=float, default=None, metavar="RATE", help="Highest rate to try."
)
@dry_run_option
@measuring_options
@verbose_option
@runs_option
@format_option
def redline_command(
    objective: str,
    forks: int,
    runs_folder: Path | None,
    output_format: Format,
    *,
    form: RunForm,
    param_options: ParamOptions,
    on_busy: BusyAction | None,
    dry_run: bool,
    quiet: bool,
    verbose: bool,
    **conditions: Any,
) -> None:
    """Find the maximum request rate that meets a latency objective.

    Each fork searches on a fresh node until it has bracketed the highest rate of an operation that
    sustainably meets the objective. Resume an interrupted search with `benchctl resume RUN`.
    """
    percentile, limit_ns = parse_objective(objective)
    search = RedlineSpec(percentile=percentile, limit_ns=limit_ns, **conditions)
    home = resolve_home()
    store = open_store(home, runs_folder)
    form = msgspec.structs.replace(form, forks=forks, warmup="as-written")
    spec = asked_run(form, param_options)
    plan, loaded = plan_redline(spec, search)
    plan = msgspec.structs.replace(with_answers(plan, os.environ), words=typed_words())
    if dry_run:
        only_say(plan, loaded, spec.files, home, store, on_busy)
        return
    with benched(home, store, plan, on_busy, quiet=quiet) as bench:
        plan, calibration = with_enough_workers(plan, bench, form)
        folder, record = start_run(bench, plan, loaded, Extras(calibration=calibration, files=spec.files))
    conclude(folder, record, home, output_format, details=verbose)


_PERCENTILES = {"p50": 50.0, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p99.9": 99.9}
_NS_PER_S = 10**9


def parse_objective(text: str) -> tuple[float, int]:
    """Return the percentile and the nanoseconds of an objective such as `p90=50ms`.

    Raises:
        UsageError: If the text is no objective.
    """
    name, _, limit = text.partition("=")
    limit_s = DURATION.amount(limit) if limit.endswith("s") else None
    limit_ns = round((limit_s or 0.0) * _NS_PER_S)
    if name not in _PERCENTILES or limit_ns < 1:
        raise UsageError(
            f"--slo: '{text}' is not an objective",
            hint=f"write p90=50ms with {', '.join(_PERCENTILES)}, us, ms or s",
        )
    return _PERCENTILES[name], limit_ns


def plan_redline(options: RunSpec, search: RedlineSpec) -> tuple[Plan, Track]:
    """Check a search's options, and freeze them.

    The plan has one challenge of one task, the operation, so that everything that reads plans knows what was
    measured; the search decides at which rates.

    Raises:
        UsageError: If an option or combination is invalid; nothing has been started.
    """
    check_options(options)
    _check(search)
    warmed = next((spec.name for spec in options.variants if spec.warmups), None)
    if warmed is not None:
        raise UsageError(
            f"variant '{warmed}' has warm-up challenges, and a red-line search warms up by itself",
            hint="name a variant without, or raise --warm-up",
        )
    track, param_names = load_track(options.track, options.params)
    reject_unused(options.params, param_names)
    operation = track.operations.get(search.operation)
    if operation is None:
        raise UsageError(
            f"unknown operation '{search.operation}' in track {track.name}",
            hint=f"{suggestion(search.operation, sorted(track.operations))}; see: benchctl list operations",
        )
    if isinstance(operation, PluginOperation):
        raise UsageError(
            f"operation '{search.operation}' needs {operation.lacks} of the track's Python plug-in, and "
            "red-lines are searched without plug-ins",
            hint="name an operation of benchctl's own types",
        )
    if not isinstance(operation, Asking):
        raise UsageError(
            f"operation '{search.operation}' is a {operation.type_name}, and only searches have a red-line",
            hint="name an operation that searches",
        )
    task = Task(
        operation=search.operation,
        clients=search.clients,
        time_period=search.step_s,
        warmup_time_period=search.settle_s,
        schedule=search.schedule,
    )
    challenge = Challenge(name=f"redline-{search.operation}", schedule=(task,))
    challenge = msgspec.structs.replace(challenge, remarks=track.remarks_on(challenge))
    plan = freeze(options, track, (challenge,))
    plan = msgspec.structs.replace(plan, redline=search, apart="a search loads a node for minutes")
    track = track.with_challenges(challenge)
    check_targets(plan, track)
    return plan, track


def _check(search: RedlineSpec) -> None:
    limits = (
        ("--clients", search.clients, 1, MOST_CLIENTS, ""),
        ("--warm-up", search.warm_up_s, 0.5, MOST_WAIT_S, " s"),
        ("--step-time", search.step_s, 0.5, MOST_WAIT_S, " s"),
        ("--settle", search.settle_s, 0, MOST_WAIT_S, " s"),
        ("--slo", search.limit_ns / _NS_PER_S, 0, MOST_WAIT_S, " s"),
        ("--tolerance", 100 * search.tolerance, 0.1, 50, "%"),
        ("--max-rate", 2.0 if search.max_per_s is None else search.max_per_s, 2, MOST_PER_S, " a second"),
    )
    for option, value, least, most, unit in limits:
        if not least <= value <= most:
            raise UsageError(f"{option} must be from {least:g} to {most:,}{unit}")
