"""`benchctl redline`: the highest rate at which an operation still meets an objective."""

import threading
from pathlib import Path
from typing import Any, Literal

import click

from benchctl.cli.measuring import conclude, measuring, measuring_options
from benchctl.cli.options import (
    ParamOptions,
    PercentType,
    SectionedCommand,
    format_option,
    open_store,
    param_options,
    runs_option,
    verbose_option,
)
from benchctl.cli.run_options import (
    PREPARING,
    SubjectOptions,
    run_spec,
    settings_options,
    subject_options,
)
from benchctl.home import resolve_home
from benchctl.report.formats import Format
from benchctl.results.plan import RedlineSpec
from benchctl.run.bench import Bench
from benchctl.run.orchestrate import Extras, start_run
from benchctl.run.prepare import check_host
from benchctl.run.redline import Objective, parse_objective, plan_redline


class ObjectiveType(click.ParamType[Objective]):
    """An objective such as `p90=50ms`."""

    name = "objective"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Objective:  # noqa: ANN401 - click's type
        """Read it."""
        if isinstance(value, tuple):
            return value
        try:
            return parse_objective(value)
        except ValueError as err:
            return self.fail(str(err), param, ctx)


@click.command("redline", cls=SectionedCommand)
@click.option("--operation", required=True, metavar="NAME", help="A search of the track.")
@click.option(
    "--slo",
    "objective",
    type=ObjectiveType(),
    required=True,
    metavar="pN=TIME",
    help="What latency has to keep to, such as p90=50ms: p50, p90, p95, p99 or p99.9; us, ms or s.",
)
@subject_options
@settings_options(*PREPARING)
@param_options
@click.option("--forks", type=int, default=3, show_default=True, help="Searches, each on a fresh node.")
@click.option(
    "--clients",
    type=int,
    default=16,
    show_default=True,
    help="Connections: more than the node's search threads, so that it is never idle while requests wait.",
)
@click.option(
    "--schedule",
    type=click.Choice(["deterministic", "poisson"]),
    default="poisson",
    show_default=True,
    help="Arrivals: users come at random, and random bursts are what makes queues.",
)
@click.option(
    "--warm-up", "warm_up_s", type=float, default=10.0, show_default=True, metavar="SECONDS",
    help="Closed loop before the search; it also says near which rate to begin.",
)  # fmt: skip
@click.option(
    "--settle", "settle_s", type=float, default=2.0, show_default=True, metavar="SECONDS",
    help="Unmeasured part of every rate.",
)  # fmt: skip
@click.option(
    "--step-time", "step_s", type=float, default=5.0, show_default=True, metavar="SECONDS",
    help="Measured part of every rate.",
)  # fmt: skip
@click.option(
    "--tolerance", type=PercentType(), default="3%", show_default=True,
    help="How close the last two rates are: the precision of the answer.",
)  # fmt: skip
@click.option(
    "--max-rate", "max_per_s", type=float, default=None, metavar="RATE",
    help="No higher rate is tried.",
)  # fmt: skip
@click.option(
    "--workers",
    type=int,
    default=1,
    show_default=True,
    help="Processes that clients work in; one is enough unless the search ends driver-limited.",
)
@measuring_options
@verbose_option
@runs_option
@format_option
def redline_command(
    operation: str,
    objective: Objective,
    forks: int,
    clients: int,
    schedule: Literal["deterministic", "poisson"],
    warm_up_s: float,
    settle_s: float,
    step_s: float,
    tolerance: float,
    max_per_s: float | None,
    workers: int,
    runs_folder: Path | None,
    output_format: Format,
    *,
    subject_options: SubjectOptions,
    param_options: ParamOptions,
    settings: dict[str, Any],
    wait: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Find the highest rate at which an operation meets an objective, and compare the variants by it.

    Every fork searches on a fresh node: rate after rate in an open loop, until two neighbouring rates are
    known of which the lower one meets the objective and goes on doing so. Go on with an interrupted search
    by `benchctl run --resume RUN`.
    """
    home = resolve_home()
    store = open_store(home, runs_folder)
    percentile, limit_ns = objective
    search = RedlineSpec(
        operation=operation,
        percentile=percentile,
        limit_ns=limit_ns,
        clients=clients,
        schedule=schedule,
        warm_up_s=warm_up_s,
        settle_s=settle_s,
        step_s=step_s,
        tolerance=tolerance,
        max_per_s=max_per_s,
    )
    spec = run_spec(subject_options, param_options, settings, forks=forks, workers=workers)
    plan, loaded = plan_redline(spec, search)
    store.open()
    check_host(plan, home)
    with measuring(wait=wait, quiet=quiet) as observer:
        bench = Bench(home, store, observer, threading.Event())
        folder, record = start_run(bench, plan, loaded, Extras(files=subject_options.files))
    conclude(folder, record, home, output_format, details=verbose)
