"""`benchctl plan`: forks and time, before a run."""

from pathlib import Path

import click
import msgspec

from benchctl.cli.options import (
    AmountType,
    ParamOptions,
    SectionedCommand,
    TableFormat,
    open_store,
    param_options,
    runs_option,
    table_format_option,
)
from benchctl.cli.run_options import (
    SCHEDULE,
    SETTINGS,
    SUBJECT,
    asked_run,
    config_option,
    form_options,
)
from benchctl.cli.streams import emit, text_width
from benchctl.errors import UsageError
from benchctl.home import resolve_home
from benchctl.plugin.code import Consent
from benchctl.quantities import PERCENT
from benchctl.report.command_line import command
from benchctl.report.planning import render_fork_plan
from benchctl.results.plan import CorpusFile, Plan
from benchctl.run.documents import FileOptions
from benchctl.run.forecast import Past
from benchctl.run.host import describe_host
from benchctl.run.plan import plan_run
from benchctl.spec import DEFAULT_FORKS, RunForm
from benchctl.stats.outlook import plan_forks


@click.command(
    "plan",
    cls=SectionedCommand,
    first=("effect", "challenges", "variants", "track", "docs", "params", "sweep", "output_format"),
)
@click.option(
    "--effect",
    type=AmountType(PERCENT),
    required=True,
    help="Difference to detect in four of five runs, e.g. 5%.",
)
@config_option
@param_options
@form_options(*SCHEDULE, *SUBJECT, *SETTINGS)
@runs_option
@table_format_option
def plan_command(
    effect: float,
    runs_folder: Path | None,
    output_format: TableFormat,
    *,
    form: RunForm,
    param_options: ParamOptions,
) -> None:
    """Estimate the forks and time needed to detect a difference.

    Fork-to-fork variation and duration are taken from earlier runs on this host, preferring runs of the same
    size; without any, typical values are assumed. Nothing is measured.
    """
    if effect <= 0:
        raise UsageError("--effect must be more than 0%", hint="no number of forks finds no difference")
    home = resolve_home()
    store = open_store(home, runs_folder)
    form = msgspec.structs.replace(form, forks=max(DEFAULT_FORKS, form.index_builds), evidence=None)
    spec = asked_run(form, param_options, consent=Consent(home))
    plan, _ = plan_run(msgspec.structs.replace(spec, stop=None))
    if len(plan.variants) == 1:
        raise UsageError(
            "there is only one variant, and no difference to plan for", hint="give another --variant"
        )
    fork_plan = plan_forks(Past(store, describe_host().fingerprint, home, None).history(plan), plan, effect)
    # Without earlier runs, a pilot.
    hardest = None if fork_plan.hardest is None else fork_plan.hardest.need.forks
    forks = plan.forks if hardest is None else max(hardest.forks or hardest.within, plan.index_builds)
    text = command(_with_files(plan, spec.files), forks=forks)
    fork_plan = msgspec.structs.replace(fork_plan, command=text)
    emit(render_fork_plan(fork_plan, output_format, width=text_width()))


def _with_files(plan: Plan, files: FileOptions) -> Plan:
    """Return a plan with its documents' files, none of which was read."""
    paths = {folder.absolute() / "any": "any" for folder in files.folders}
    if files.local is not None:
        paths = {files.local.absolute(): ""}
    corpus_files = tuple(
        CorpusFile(
            path=str(path),
            documents=0,
            held=0,
            raw_bytes=0,
            sha256="",
            corpus=corpus,
        )
        for path, corpus in paths.items()
    )
    # Of files, all documents are used unless a number was given.
    spec = msgspec.structs.replace(plan.corpus, documents=files.docs or 0, files=corpus_files)
    return msgspec.structs.replace(plan, corpus=spec) if corpus_files else plan
