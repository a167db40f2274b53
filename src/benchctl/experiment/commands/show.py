"""`benchctl experiment show` and `report`, and what `run` has of them: sizes, estimates, reports."""

import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

import click
import msgspec

from benchctl.cli.options import (
    AmountType,
    F,
    ParamOptions,
    TableFormat,
    grouped,
    param_options,
    print_table,
    printed_as,
    table_format_option,
)
from benchctl.cli.run_options import setting_option, test_mode_option
from benchctl.cli.streams import complain, emit, note, say, text_width
from benchctl.disk import disk_errors, try_writing
from benchctl.experiment.estimate import (
    Estimate,
    content_listings,
    cost_listing,
    estimate,
    estimate_lines,
    overview_lines,
)
from benchctl.experiment.execution import runs_of, seen_calls
from benchctl.experiment.file import experiment_names, find_experiment, read_experiment
from benchctl.experiment.judge import analyse_experiment
from benchctl.experiment.plan import Changes, Experiment, left_out, load_experiment
from benchctl.experiment.record import ExperimentRecord, ExperimentStore
from benchctl.experiment.report import Format, render, write
from benchctl.home import Home, resolve_home
from benchctl.quantities import COUNT, DURATION
from benchctl.report.html.page import refuse_foreign, render_page, run_page
from benchctl.report.table import Column, Table, written
from benchctl.results.model import RunRecord
from benchctl.results.plan import FIRST_LOOK
from benchctl.results.store import RunStore
from benchctl.run.forecast import Ahead, Past, Steps, preparation
from benchctl.run.host import describe_host
from benchctl.spec import MOST_FORKS
from benchctl.stats.analyse import analyse_run

change_options = grouped(
    "changes",
    Changes,
    click.option(
        "--forks",
        type=int,
        default=None,
        help="Forks of every variant, instead of the file's; the most of them with --until-decided.",
    ),
    click.option("--docs", type=AmountType(COUNT), default=None, help="Documents, instead of the file's."),
    setting_option("heap", "Heap of every node, instead of the file's."),
    setting_option("seed", "Seed of order and arrivals, instead of the file's."),
    click.option(
        "--measurement",
        "only",
        multiple=True,
        metavar="NAME",
        help="Make only this measurement, and the comparisons that it is enough for. Repeatable.",
    ),
    click.option(
        "--budget",
        "budget_s",
        type=AmountType(DURATION),
        default=None,
        help="End in time, such as 2h: no block begins that is not expected to fit. It is the time of the "
        "forks; the preparation is not counted.",
    ),
    click.option(
        "--until-decided",
        is_flag=True,
        help=f"Begin with {FIRST_LOOK} forks of everything, and give all further ones to what open "
        "expectations rest on, until all are confirmed or refuted, time is up, or a side has as many as "
        f"--forks says.  [default: {MOST_FORKS}]",
    ),
    test_mode_option,
)
"""Replacements of the file's values; the command gets them as one, `changes`."""


def estimated(
    experiment: Experiment, store: RunStore, home: Home, budget_s: float | None
) -> tuple[Estimate, Steps]:
    """Return expected duration and precision of an experiment on this machine, and its steps."""
    past = Past(store, describe_host().fingerprint, home)
    forecast = estimate(experiment.spec, experiment.plans, past, budget_s)
    runs = [Ahead(planned.plan, planned.track, planned.files) for planned in experiment.plans.values()]
    return forecast, preparation(runs, home, past)


def left_out_text(experiment: Experiment) -> str:
    """Return what `--measurement` leaves out, for readers; empty for nothing."""
    what = left_out(experiment.whole, experiment.spec)
    return what and f"left out by --measurement: {what}"


# The report of an experiment on standard output, and as pages.


def report_options(command: F) -> F:
    """Add `--format` and `--html`."""
    pages = click.option(
        "--html",
        "html_folder",
        type=click.Path(path_type=Path, file_okay=False),
        default=None,
        metavar="DIR",
        help="Write its page there, too, and those of its runs; open index.html in it.",
    )
    return printed_as(*get_args(Format), about="How the report is printed.")(pages(command))


def check_page_folder(folder: Path) -> None:
    """Refuse, before hours of measuring, a folder that cannot take the page.

    Raises:
        UsageError: If it is none, or holds somebody else's files of the page's names.
        BenchctlError: If the file system does not let us look, or write.
    """
    with disk_errors(f"look into {folder}"):
        refuse_foreign(folder, ["index.html"])
    with disk_errors(f"write {folder}"):
        try_writing(folder)


def print_report(
    record: ExperimentRecord, store: RunStore, output_format: Format, html_folder: Path | None
) -> dict[str, RunRecord]:
    """Judge an experiment from what is on disk, print that, and write its pages if a folder is given.

    Returns:
        Measurement -> record of its run, if there is one.
    """
    runs = runs_of(record, store, note)
    analysis = analyse_experiment(record, runs, seen_calls(record.spec, runs, store))
    emit(render(record, runs, analysis, output_format, width=text_width()))
    if html_folder is not None:
        pages = {
            name: render_page(run_page(store.find(run.id), run, analyse_run(run), usual=store.root))
            for name, run in runs.items()
        }
        complain(f"Report: {write(html_folder, record, runs, analysis, pages)}")
    return runs


# `benchctl experiment show`: what an experiment asks, takes and will see.


@click.command("show")
@click.argument("name", metavar="NAME|FILE")
@change_options
@param_options
@printed_as(*get_args(Format), about="How it is printed.")
def show_command(
    name: str,
    output_format: Format,
    *,
    changes: Changes,
    param_options: ParamOptions,
) -> None:
    """Show an experiment's plan, cost and expected precision.

    All of it is checked as for a run; nothing is started. Durations and precision come from earlier runs on
    this machine.
    """
    home = resolve_home()
    experiment = load_experiment(
        find_experiment(name), replace(changes, overrides=param_options.read()), home
    )
    forecast, steps = estimated(experiment, RunStore(home.root / "runs"), home, changes.budget_s)
    if output_format == "json":
        whole = {"spec": experiment.spec, "estimate": forecast, "preparation": steps}
        emit(msgspec.json.format(msgspec.json.encode(whole), indent=2).decode() + "\n")
    else:
        _print(experiment, forecast, steps, output_format)


def _print(
    experiment: Experiment, found: Estimate, steps: Steps, output_format: Literal["text", "markdown"]
) -> None:
    spec = experiment.spec
    say(_paragraphs([*overview_lines(spec)]))
    left = left_out_text(experiment)
    if left:
        note(left)
    for listing in content_listings(spec):
        _titled(listing, output_format)
    if found.costs:
        _titled(cost_listing(found), output_format)
    say("\n" + _paragraphs([*estimate_lines(found), *steps.lines()]))


def _paragraphs(lines: list[str]) -> str:
    return "\n".join(textwrap.fill(line, text_width()) for line in lines)


def _titled(table: Table, output_format: Literal["text", "markdown"]) -> None:
    emit("\n" + written("", [[table]], output_format, width=text_width()))


# `benchctl experiment report`: an experiment that was run, judged again from what is kept.


@click.command("report")
@click.argument("name", metavar="ID|NAME")
@report_options
def report_command(name: str, output_format: Format, html_folder: Path | None) -> None:
    """Print the report of a past execution.

    It says what is there, also of one that is not finished.
    """
    home = resolve_home()
    # Whoever only looks makes no folder.
    folder = ExperimentStore(home.root / "experiments").find(name, note)
    print_report(folder.load(), RunStore(home.root / "runs"), output_format, html_folder)


# `benchctl experiment list`: what there is to run, and what was run.

Row = tuple[object, ...]


@click.command("list")
@table_format_option
def list_command(output_format: TableFormat) -> None:
    """List shipped experiments and past executions."""
    home = resolve_home()
    runs = RunStore(home.root / "runs")
    rows: list[Row] = []
    for name in experiment_names():
        spec = read_experiment(find_experiment(name)).spec
        rows.append((name, None, "shipped", len(spec.measurements), None, spec.title))
    # Whoever only looks makes no folder.
    for _, record in ExperimentStore(home.root / "experiments").records(note):
        rows.append(_executed(record, runs))
    columns = ("experiment", "id", "status", Column("measurements"), "forks", "title")
    print_table(Table.listed("Experiments", columns, rows), output_format)


def _executed(record: ExperimentRecord, store: RunStore) -> Row:
    spec = record.spec
    runs = runs_of(record, store, note).values()
    done = sum(run.total - len(run.missing()) for run in runs)
    return (
        spec.name,
        record.id,
        record.status,
        len(spec.measurements),
        f"{done}/{spec.total_forks}",
        spec.title,
    )
