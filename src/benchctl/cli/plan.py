"""`benchctl plan`: how many forks a difference takes, and how long they are, before any of them runs."""

from pathlib import Path

import click
import msgspec

from benchctl.cli.filter_options import FilterOptions, filter_options
from benchctl.cli.fork_options import DEFAULT_FORKS
from benchctl.cli.options import PercentType, open_store, runs_option
from benchctl.cli.output import text_width
from benchctl.cli.param_options import ParamOptions, param_options
from benchctl.cli.schedule_options import ScheduleOptions, schedule_options
from benchctl.cli.subjects import SubjectOptions, subject_options
from benchctl.cli.tables import TableFormat, table_format_option
from benchctl.errors import UsageError
from benchctl.home import resolve_home
from benchctl.plugin.consent import Consent
from benchctl.report.command_line import command
from benchctl.report.fork_plan import render_fork_plan
from benchctl.results.plan import Plan
from benchctl.run.forecast import earlier_runs
from benchctl.run.host import describe_host
from benchctl.run.plan import PlanOptions, plan_run
from benchctl.stats.outlook import ForkPlan, plan_forks


@click.command("plan")
@click.option(
    "--effect",
    type=PercentType(),
    required=True,
    metavar="PERCENT",
    help="The difference to be found, such as 5%; four runs of five find it.",
)
@schedule_options
@param_options
@filter_options
@subject_options
@runs_option
@table_format_option
def plan_command(
    effect: float,
    runs_folder: Path | None,
    output_format: TableFormat,
    *,
    schedule_options: ScheduleOptions,
    param_options: ParamOptions,
    filter_options: FilterOptions,
    subject_options: SubjectOptions,
) -> None:
    """How many forks a side, and how long, `benchctl run` needs for a difference of a given size.

    The spread of forks and their duration come from earlier runs on this machine, those of the same sizes
    before others. Without any, the table is for spreads that are assumed. Nothing is started.
    """
    if effect <= 0:
        raise UsageError("--effect must be more than 0 %", hint="no number of forks finds no difference")
    home = resolve_home()
    store = open_store(home, runs_folder)
    plan, _ = plan_run(
        PlanOptions(
            variants=subject_options.specs(),
            challenges=schedule_options.challenges,
            warmup_challenges=schedule_options.warmups,
            restart=schedule_options.restart,
            forks=max(DEFAULT_FORKS, subject_options.index_builds),
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
            index_builds=subject_options.index_builds,
            pin=subject_options.pin_spec(1),
            consent=Consent(home),
        )
    )
    if len(plan.variants) == 1:
        raise UsageError(
            "there is only one variant, and no difference to plan for", hint="give another --variant"
        )
    found = plan_forks(earlier_runs(store, plan, describe_host().fingerprint), plan, effect)
    found = msgspec.structs.replace(found, command=_command(plan, found))
    click.echo(render_fork_plan(found, output_format, width=text_width()), nl=False)


def _command(plan: Plan, found: ForkPlan) -> str:
    """What measures so many forks; without earlier ones, a pilot."""
    hardest = found.hardest
    forks = plan.forks if hardest is None else max(hardest.likely.forks, plan.index_builds)
    return command(plan, forks=forks, corpus_documents=plan.corpus.documents, iterations=None)
