"""The options of commands that plan a run, as what the planner takes."""

from benchctl.cli.filter_options import FilterOptions
from benchctl.cli.param_options import ParamOptions
from benchctl.cli.schedule_options import ScheduleOptions
from benchctl.cli.subjects import BUILT_IN, SubjectOptions
from benchctl.results.plan import VariantSpec
from benchctl.run.plan import PlanOptions

_NO_SCHEDULE = ScheduleOptions(challenges=(), restart="challenge", warmups=())
_NO_FILTERS = FilterOptions(include_tasks="", exclude_tasks="")


def plan_options(
    subject: SubjectOptions,
    params: ParamOptions,
    *,
    forks: int,
    workers: int = 1,
    targets: tuple[VariantSpec, ...] = (),
    schedule: ScheduleOptions = _NO_SCHEDULE,
    filters: FilterOptions = _NO_FILTERS,
    usual: tuple[str, ...] = BUILT_IN,
) -> PlanOptions:
    """What was asked for on the command line; what a command has no options about is as usual.

    Args:
        subject: what is measured.
        params: of tracks and challenges.
        forks: of every variant.
        workers: processes that the driver's clients work in.
        targets: clusters that run already; with them, no variant has to be named.
        schedule: which challenges; none for a command that makes its own.
        filters: which of their tasks.
        usual: what is measured when no variant is named, nor a target.

    Raises:
        UsageError: an option cannot be understood, or not be had here.
    """
    return PlanOptions(
        variants=(*subject.specs(() if targets else usual), *targets),
        challenges=schedule.challenges,
        warmup_challenges=schedule.warmups,
        restart=schedule.restart,
        forks=forks,
        seed=subject.seed,
        heap_mb=subject.heap_mb,
        track=subject.track,
        corpus=subject.corpus,
        files=subject.files,
        segments=subject.segments,
        params=params.read(),
        include_tasks=filters.include_tasks,
        exclude_tasks=filters.exclude_tasks,
        ingest_clients=subject.ingest_clients,
        paired=subject.paired,
        workers=workers,
        index_builds=subject.index_builds,
        pin=subject.pin_spec(workers),
        settle=not schedule.as_written,
    )
