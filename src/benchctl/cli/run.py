"""`benchctl run`: measure, then compare."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from benchctl.cli.measuring import (
    benched,
    conclude,
    dry_run_option,
    only_say,
    quiet_option,
    with_enough_workers,
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
from benchctl.cli.streams import typed_words
from benchctl.cli.targets import with_answers
from benchctl.home import resolve_home
from benchctl.plugin.code import Consent
from benchctl.run.form import in_test_mode
from benchctl.run.orchestrate import Extras, start_run
from benchctl.run.plan import plan_run
from benchctl.spec import RunForm

if TYPE_CHECKING:
    from benchctl.report.table import Format


# Options of Rally and OpenSearch Benchmark that have another form here.
_INSTEAD = {
    **dict.fromkeys(
        ("--car", "--provision-config-instance"), "use --heap, or --variant LABEL=es,KEY:VALUE,..."
    ),
    "--client-options": "put them into a file of --targets",
    "--html": "write the report afterwards: benchctl show latest --html DIR",
    "--pipeline": "name a running cluster: --target NAME=URL",
    **dict.fromkeys(("--report-file", "--results-file"), "use: --format csv > FILE"),
    "--distribution-version": "name versions as variants: --variant es@8.19.0",
    "--target-hosts": "name a running cluster: --target NAME=URL",
    "--telemetry": "use --evidence, or --metric, such as gc",
}


@click.command(
    "run",
    cls=SectionedCommand,
    instead=_INSTEAD,
    options_metavar="[--challenge NAME|FILE] [OPTIONS]",
    examples=(
        "benchctl run --challenge range-only",
        "benchctl run --challenge big5rangedebug --variant es --variant es@8.19.0 --forks 12",
        "benchctl run --challenge big5rangedebug --until-decided --budget 30m",
    ),
    first=(
        *("challenges", "variants", "targets", "track", "docs", "params", "sweep"),
        *("forks", "until_decided", "budget", "test_mode"),
        *("dry_run", "on_busy", "evidence_kinds", "tags", "output_format", "quiet", "verbose"),
    ),
)
@config_option
@param_options
@form_options()
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
    test_mode: bool,
    trust: bool,
    quiet: bool,
    dry_run: bool,
    verbose: bool,
) -> None:
    """Run challenges on fresh nodes and compare the variants."""
    home = resolve_home()
    store = open_store(home, runs_folder)
    consent = Consent(home, given=trust)
    spec = asked_run(form, param_options, consent=consent)
    plan, track = plan_run(msgspec.structs.replace(spec, settle=spec.settle and not test_mode))
    plan = msgspec.structs.replace(in_test_mode(plan) if test_mode else plan, words=typed_words())
    plan = with_answers(plan, os.environ)
    if dry_run:
        only_say(plan, track, spec.files, home, store, form.on_busy)
        return
    with benched(home, store, plan, form.on_busy, quiet=quiet) as bench:
        plan, calibration = with_enough_workers(plan, bench, form)
        extras = Extras(
            calibration=calibration,
            tags=form.tags,
            files=spec.files,
        )
        folder, record = start_run(bench, plan, track, extras)
    conclude(folder, record, home, output_format, details=verbose)
