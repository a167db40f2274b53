"""`benchctl redline`: the highest rate, factor or number of clients at which an objective is still met."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

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
    completing,
    format_option,
    given_options,
    open_store,
    param_options,
    runs_option,
    verbose_option,
)
from benchctl.cli.run_options import (
    PREPARING,
    SUBJECT,
    TARGETS,
    asked_run,
    form_options,
)
from benchctl.cli.targets import with_answers
from benchctl.errors import UsageError
from benchctl.home import resolve_home
from benchctl.quantities import PERCENT
from benchctl.redline.conduct import (
    Clients,
    Objective,
    parse_clients,
    parse_objective,
    plan_redline,
    search_of,
    searched_by,
)
from benchctl.report.table import Format
from benchctl.results.plan import SearchedBy
from benchctl.run.orchestrate import Extras, start_run
from benchctl.spec import BusyAction, RunForm
from benchctl.track.library import challenge_names

T = TypeVar("T")


class ReadType(click.ParamType[T]):
    """A value that `read` makes of a text, or says what is wrong with it by a ValueError."""

    def __init__(self, name: str, read: Callable[[str], T]) -> None:
        self.name = name
        self._read = read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> T:
        """Read it; a default may have been read."""
        if not isinstance(value, str):
            return cast("T", value)
        try:
            return self._read(value)
        except ValueError as err:
            return self.fail(str(err), param, ctx)


# What options of `benchctl run` would mean here, and what to do instead.
_INSTEAD = {
    **NO_SWEEP,
    "--metric": "searches are compared by the loads that they find",
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
        "benchctl redline --challenge big5 --slo p99=100ms --variant es --variant es@8.19.0",
        "benchctl redline --operation range --slo p90=50ms --clients 1..64",
    ),
    first=(
        *("names", "challenge", "objective", "clients", "forks", "tolerance", "max_per_s"),
        *("variants", "targets", "track", "docs", "params"),
        *("dry_run", "on_busy", "output_format", "quiet", "verbose"),
    ),
)
@click.option(
    "--operation",
    "--task",
    "names",
    multiple=True,
    metavar="NAME",
    help="Search operation of the track; with --challenge, a task that --slo applies to. Repeatable.",
)
@click.option(
    "--challenge",
    metavar="NAME|FILE",
    shell_complete=completing(challenge_names),
    help="Challenge to find the highest factor on all task rates of.",
)
@click.option(
    "--slo",
    "objective",
    type=ReadType("objective", parse_objective),
    required=True,
    metavar="pN=TIME",
    help="Latency objective, e.g. p90=50ms; p50, p90, p95, p99 or p99.9, in us, ms or s.",
)
@form_options(
    *SUBJECT, *TARGETS, *PREPARING, "include_tasks", "exclude_tasks", "hosts", "page_cache", "workers"
)
@param_options
@click.option(
    "--forks",
    type=int,
    default=3,
    show_default=True,
    metavar="N",
    help="Searches per variant, each on a fresh node.",
)
@click.option(
    "--clients",
    type=ReadType("clients", parse_clients),
    default="16",
    show_default=True,
    metavar="N|MIN..MAX",
    help="Connections; a range searches for their number in a closed loop.",
)
@click.option(
    "--schedule",
    type=click.Choice(["deterministic", "poisson"]),
    default="poisson",
    show_default=True,
    help="Arrivals: at equal distances (deterministic), or at random like users (poisson).",
)
@click.option(
    "--warm-up", "warm_up_s", type=float, default=10.0, show_default=True, metavar="SECONDS",
    help="Closed loop before the search; it also estimates the first load.",
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
    help="Distance between the last two loads: the precision of the result.",
)  # fmt: skip
@click.option(
    "--max-rate", "max_per_s", type=float, default=None, metavar="RATE",
    help="Highest rate to try.",
)  # fmt: skip
@click.option(
    "--max-factor",
    type=float,
    default=None,
    metavar="FACTOR",
    help="Highest factor to try, with --challenge.",
)
@dry_run_option
@measuring_options
@verbose_option
@runs_option
@format_option
def redline_command(
    names: tuple[str, ...],
    challenge: str | None,
    objective: Objective,
    forks: int,
    clients: Clients,
    schedule: Literal["deterministic", "poisson"],
    warm_up_s: float,
    settle_s: float,
    step_s: float,
    tolerance: float,
    max_per_s: float | None,
    max_factor: float | None,
    runs_folder: Path | None,
    output_format: Format,
    *,
    form: RunForm,
    param_options: ParamOptions,
    on_busy: BusyAction | None,
    dry_run: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Find the maximum load that meets a latency objective.

    Load is the request rate of one operation, a factor on all task rates (--challenge), or a number of
    closed-loop clients (--clients MIN..MAX). Each fork runs a search on a fresh node until it has bracketed
    the highest load that sustainably meets the objective. Resume an interrupted search with
    `benchctl resume RUN`.
    """
    _refuse_alien(challenge, clients)
    search = search_of(
        names,
        challenge,
        objective,
        clients=clients,
        schedule=schedule,
        warm_up_s=warm_up_s,
        settle_s=settle_s,
        step_s=step_s,
        tolerance=tolerance,
        max_rate=max_per_s,
        max_factor=max_factor,
    )
    home = resolve_home()
    store = open_store(home, runs_folder)
    form = msgspec.structs.replace(form, forks=forks, warmup="as-written")
    spec = asked_run(form, param_options)
    plan, loaded = plan_redline(spec, search)
    plan = with_answers(plan, os.environ)
    if dry_run:
        only_say(plan, loaded, spec.files, home, store, on_busy)
        return
    with benched(home, store, plan, on_busy, quiet=quiet) as bench:
        plan, calibration = with_enough_workers(plan, bench, form)
        folder, record = start_run(bench, plan, loaded, Extras(calibration=calibration, files=spec.files))
    conclude(folder, record, home, output_format, details=verbose)


# Options that mean something to one kind of search only, as click names them.
_ONLY: Mapping[SearchedBy, frozenset[str]] = {
    "rate": frozenset({"schedule", "max_per_s"}),
    "factor": frozenset({"max_factor", "include_tasks", "exclude_tasks"}),
    "clients": frozenset(),
}


def _refuse_alien(challenge: str | None, clients: Clients) -> None:
    """Refuse options that would have no effect."""
    by = searched_by(challenge, clients)
    alien = frozenset().union(*_ONLY.values()) - _ONLY[by] | ({"clients"} if by == "factor" else set())
    for name, option in given_options(click.get_current_context()).items():
        if name in alien:
            what = {
                "rate": "for the rate of an operation",
                "factor": "for a factor, and each task of the challenge has its own",
                "clients": "for a number of clients in a closed loop",
            }
            raise UsageError(f"{option} has no effect on a search {what[by]}", hint=f"remove {option}")
